"""The site as it opens from a disk: links, search, copy buttons, mathematics."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from browser import assert_accessible, chromium, heard, needs_chromium

pytest.importorskip("material")
pytest.importorskip("playwright.sync_api")

ROOT = Path(__file__).parents[2]
PAGES = ("how-it-works.md", "how-the-proof-works.md", "index.md")


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """Three pages, built as the whole is but for the gallery and the API."""
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    folder = tmp_path_factory.mktemp("site")
    docs = folder / "docs"
    shutil.copytree(ROOT / "docs" / "assets", docs / "assets")
    shutil.copytree(ROOT / "docs" / "pictures", docs / "pictures")
    for name in PAGES:
        text = (ROOT / "docs" / name).read_text(encoding="utf-8")
        shown = "|".join(re.escape(page) for page in PAGES)
        # links to pages that are left out here lead nowhere
        text = re.sub(rf"\]\((?!{shown}|pictures)[^)]*\)", "](index.md)", text)
        (docs / name).write_text(text, encoding="utf-8")
    config = load_config(str(ROOT / "mkdocs.yml"), docs_dir=str(docs), strict=True)
    config.site_dir = str(folder / "built")
    config.nav = None
    del config.plugins["mkdocstrings"]
    for event in config.plugins.events.values():
        event[:] = [call for call in event if "mkdocstrings" not in str(call)]
    hooks = config.plugins.events
    hooks["files"] = [c for c in hooks["files"] if "docs/" not in c.__module__]
    build(config)
    return folder / "built"


@pytest.fixture(scope="module")
def browser():
    with chromium() as running:
        yield running


def test_formulas_are_mathml(site):
    text = (site / "how-the-proof-works.html").read_text(encoding="utf-8")
    assert text.count("<math") >= 20
    assert "arithmatex" not in text
    assert "<mfrac>" in text


def test_nothing_comes_from_elsewhere(site):
    for page in site.glob("*.html"):
        loaded = re.findall(
            r'<(?:script|link|img)[^>]*(?:src|href)="([^"]+)"', page.read_text("utf-8")
        )
        assert loaded
        assert [url for url in loaded if "//" in url] == []
    for style in site.rglob("*.css"):
        assert not re.search(r"url\(['\"]?https?:", style.read_text("utf-8"))


@needs_chromium
def test_links_and_search_from_a_disk(site, browser):
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    said, asked = heard(page)
    page.goto((site / "index.html").as_uri())
    page.locator("input.md-search__input").press_sequentially("screening")
    page.locator("a.md-search-result__link").first.click()
    page.wait_for_url("**/how-the-proof-works.html*")
    page.locator(".md-tabs a, .md-nav a", has_text="How it works").first.click()
    page.wait_for_url("**/how-it-works.html*")
    assert said == []
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    page.close()


@needs_chromium
def test_the_copy_button_leaves_prompts_and_answers_out(site, browser):
    context = browser.new_context()
    page = context.new_page()
    page.goto((site / "how-it-works.html").as_uri())
    page.evaluate(
        "document.addEventListener('copy', e => { window.copied = "
        "getSelection().toString() || document.activeElement.value; })"
    )
    page.locator("button[data-clipboard-target]").first.click()
    page.wait_for_function("window.copied")
    copied = page.evaluate("window.copied")
    assert "import blockspca as bs" in copied
    assert ">>>" not in copied
    assert "(3, 4)" not in copied
    context.close()


@needs_chromium
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(site, browser, scheme):
    size = {"width": 1400, "height": 900}
    page = browser.new_page(viewport=size, color_scheme=scheme)
    for name in ("index.html", "how-the-proof-works.html"):
        page.goto((site / name).as_uri())
        assert_accessible(page)
    page.close()
