// The theme adds a navigation to every block of code, with the button that copies it;
// screen readers list them, and need a name for each.
"use strict";
(function () {
  function name() {
    document.querySelectorAll("nav.md-code__nav").forEach((nav, i) => {
      nav.setAttribute("aria-label", `Code ${i + 1}`);
    });
  }
  new MutationObserver(name).observe(document.body, { childList: true, subtree: true });
  name();
})();
