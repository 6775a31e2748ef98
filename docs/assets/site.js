// What the theme adds to pages and leaves without a name or out of a keyboard's reach:
// the navigation of every block of code, with its copy button, and tables that scroll.
"use strict";
(function () {
  function name() {
    document.querySelectorAll("nav.md-code__nav").forEach((nav, i) => {
      nav.setAttribute("aria-label", `Code ${i + 1}`);
    });
    for (const table of document.querySelectorAll(".md-typeset__scrollwrap")) {
      table.tabIndex = 0;
    }
  }
  new MutationObserver(name).observe(document.body, { childList: true, subtree: true });
  name();
})();
