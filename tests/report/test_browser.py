"""The page in headless Chromium: no errors, a slider that works, no requests."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_wine

import blockspca as bs
from browser import assert_accessible, chromium, heard, needs_chromium

pytest.importorskip("jinja2")
pytest.importorskip("playwright.sync_api")

from blockspca.report import Report, build_report

pytestmark = needs_chromium


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 9))
    X[:, :3] += 2 * rng.normal(size=(40, 1))
    names = [
        "<script>document.title = 'owned'</script>",
        "<img src=x onerror=alert(1)>",
    ]
    names += ["proanthocyanins_of_diluted_wines", "x" * 80]
    names += [f"feature {j}" for j in range(4, 9)]
    cov = bs.Covariance.from_data(X, feature_names=names)
    found = bs.solve_components(cov, 3, 3, scheme=bs.ResidualDeflation())
    report = Report(
        cov=cov,
        components=found,
        path=bs.solve_path(cov, 6),
        scores=(X - X.mean(axis=0)) @ found.components.T,
        title="A page",
        labels=tuple(["red", "blue", "<b>green</b>", ""][i % 4] for i in range(40)),
        alternatives=bs.alternatives(cov, 3, within=0.2),
        stability=bs.stability(X, 3, 8, n_components=3),
        importance=(bs.feature_importance(cov, found[0]),),
    )
    path = tmp_path_factory.mktemp("report") / "page.html"
    path.write_text(build_report(report), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def browser():
    with chromium() as running:
        yield running


@pytest.fixture
def opened(browser, page_file):
    """The page, with what it said on its console and asked the network for."""
    page = browser.new_page(viewport={"width": 375, "height": 740})
    said, asked = heard(page)
    page.goto(page_file.as_uri())
    yield page, said, asked
    page.close()


def test_no_errors_and_no_requests(opened, page_file):
    page, said, asked = opened
    page.mouse.wheel(0, 5000)
    page.wait_for_timeout(200)
    assert said == []
    assert [url for url in asked if not url.startswith("data:")] == [page_file.as_uri()]


def test_names_are_shown_as_text(opened):
    page, *_ = opened
    assert page.title() == "A page"
    assert page.locator("th", has_text="<script>document.title").count() >= 1
    assert page.locator("img").count() == 0
    page.locator("#heatmap rect").first.hover()
    assert page.locator("#value").inner_text() != ""
    assert page.title() == "A page"


def picture(page) -> tuple[str, str, str]:
    fills = (
        "[...document.querySelectorAll('#heatmap rect')].map(r => r.outerHTML).join()"
    )
    marker = page.locator("#marker").get_attribute("cx")
    return page.evaluate(fills), page.locator("#epsilon-text").inner_text(), marker


@pytest.mark.parametrize("width", [360, 1100])
def test_no_label_of_a_chart_is_cut_off(opened, width):
    page, *_ = opened
    page.set_viewport_size({"width": width, "height": 740})
    cut = page.evaluate(
        """[...document.querySelectorAll('svg.chart')].flatMap(chart => {
            const edge = chart.getBoundingClientRect();
            return [...chart.querySelectorAll('text')].filter(text => {
                const box = text.getBoundingClientRect();
                return box.right > edge.right + 1 || box.left < edge.left - 1;
            }).map(text => text.textContent);
        })"""
    )
    assert cut == []


def test_names_of_arrows_side_by_side_do_not_cover_each_other(browser, tmp_path):
    rng = np.random.default_rng(0)
    X = 0.3 * rng.normal(size=(60, 12))
    # Many near 0 and a few far up: the arrows begin low, and the first eight together.
    X[:, :8] += rng.exponential(size=(60, 1)) ** 2
    X[:, 8:] += rng.exponential(size=(60, 1)) ** 2
    names = [f"HLA-DQA{j}" for j in range(12)]
    cov = bs.Covariance.from_data(X, feature_names=names)
    found = bs.solve_components(cov, [8, 4], 2)
    scores = (X - X.mean(axis=0)) @ found.components.T
    path = tmp_path / "page.html"
    about = Report(cov=cov, components=found, scores=scores)
    path.write_text(build_report(about), encoding="utf-8")
    page = browser.new_page(viewport={"width": 1100, "height": 740})
    page.goto(path.as_uri())
    boxes = page.evaluate(
        """[...document.querySelectorAll('.arrow-name')].map(name => {
            const box = name.getBBox();
            return [box.x, box.x + box.width, box.y + box.height / 2, box.height];
        })"""
    )
    page.close()
    assert len(boxes) == 12
    for i, (left, right, middle, height) in enumerate(boxes):
        for other_left, other_right, other, _ in boxes[:i]:
            beside = right <= other_left or other_right <= left
            assert beside or abs(middle - other) > 0.85 * height


def test_names_at_the_edge_leave_the_tips_of_arrows_free(browser, tmp_path):
    wine = load_wine()
    names = wine.feature_names
    cov = bs.Covariance.from_data(wine.data, scale=True, feature_names=names)
    found = bs.solve_components(cov, 4, 2)
    centred = (wine.data - wine.data.mean(axis=0)) / wine.data.std(axis=0, ddof=1)
    path = tmp_path / "page.html"
    about = Report(cov=cov, components=found, scores=centred @ found.components.T)
    path.write_text(build_report(about), encoding="utf-8")
    page = browser.new_page(viewport={"width": 1400, "height": 740})
    page.goto(path.as_uri())
    covered = page.evaluate(
        """[...document.querySelectorAll('.arrow')].map(line => {
            const [x, y] = [line.x2.baseVal.value, line.y2.baseVal.value];
            return [...document.querySelectorAll('.arrow-name')].filter(name => {
                const box = name.getBBox();
                return box.x < x && x < box.x + box.width
                    && box.y + 1 < y && y < box.y + box.height - 1;
            }).length;
        })"""
    )
    page.close()
    assert covered == [0] * 8


def test_the_slider_changes_the_picture(opened):
    page, said, _ = opened
    slider = page.locator("#epsilon")
    slider.focus()
    page.keyboard.press("Home")
    everything = picture(page)
    assert everything[1].startswith("ε = 0.000: 1 block, the largest of 9 features")
    page.keyboard.press("ArrowRight")
    second = picture(page)
    page.keyboard.press("End")
    last = picture(page)
    assert "9 blocks, the largest of 1 feature" in last[1]
    for one, other in ((everything, second), (second, last)):
        assert all(a != b for a, b in zip(one, other, strict=True))
    assert slider.get_attribute("aria-valuetext") == last[1]
    assert (
        "Every feature is a block of its own."
        in page.locator("#block-list").inner_text()
    )
    assert said == []


def test_sorting_moves_the_features(opened):
    page, *_ = opened
    before = picture(page)[0]
    page.locator("#sorted").click()
    assert picture(page)[0] != before
    page.locator("#sorted").click()
    assert picture(page)[0] == before


def test_values_by_mouse_and_by_keyboard(opened):
    page, *_ = opened
    page.locator("#heatmap").focus()
    page.keyboard.press("ArrowRight")
    first = page.locator("#value").inner_text()
    assert "×" in first
    page.keyboard.press("ArrowLeft")
    assert page.locator("#value").inner_text().startswith("variance of")


@pytest.mark.parametrize("width", [320, 390, 1400, 2200])
def test_nothing_is_wider_than_the_screen(browser, page_file, width):
    page = browser.new_page(viewport={"width": width, "height": 740})
    page.goto(page_file.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()


def test_wide_screens_have_pictures_side_by_side(browser, page_file):
    """And the sections in a column of their own; on a narrow one all is in turn."""
    at = """(ids) => ids.map((id) => {
        const box = document.querySelector(id).getBoundingClientRect();
        return [box.left, box.top, box.right];
    })"""
    for width in (390, 1400, 2200):
        page = browser.new_page(viewport={"width": width, "height": 900})
        page.goto(page_file.as_uri())
        nav, main, scores, path = page.evaluate(
            at, ["nav", "main", "#samples", "#path"]
        )
        page.close()
        assert (nav[2] <= main[0]) == (width > 390)
        assert (scores[2] <= path[0]) == (width == 2200)
        assert (scores[1] == path[1]) == (width == 2200)
        assert main[2] > 0.85 * width


def test_long_names_break_between_their_parts(browser, page_file):
    page = browser.new_page(viewport={"width": 360, "height": 740})
    page.goto(page_file.as_uri())
    lines = page.evaluate(
        """() => {
          const name = [...document.querySelectorAll(".loadings th")]
            .find((e) => e.textContent.startsWith("proantho"));
          const range = document.createRange();
          const lines = new Map();
          for (const node of name.childNodes) {
            for (let i = 0; i < (node.length || 0); i++) {
              range.setStart(node, i);
              range.setEnd(node, i + 1);
              const top = Math.round(range.getBoundingClientRect().top);
              lines.set(top, (lines.get(top) || "") + node.data[i]);
            }
          }
          return [...lines.values()];
        }"""
    )
    assert len(lines) > 1
    assert all(line.endswith("_") for line in lines[:-1])
    page.close()


def test_what_can_be_operated_has_a_name(opened):
    page, *_ = opened
    for control in page.locator("input").all():
        name = control.evaluate("e => e.labels.length && e.labels[0].innerText.trim()")
        assert name
    for image in page.locator("svg[role=img], svg[role=application]").all():
        assert image.get_attribute("aria-label")
    assert page.locator("html").get_attribute("lang") == "en"


def test_text_has_contrast(opened):
    page, *_ = opened
    ratios = page.evaluate(
        """() => {
          const light = (rgb) => {
            const [r, g, b] = rgb.match(/[\\d.]+/g).slice(0, 3).map((v) => {
              const c = v / 255;
              return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
            });
            return 0.2126 * r + 0.7152 * g + 0.0722 * b;
          };
          const behind = (e) => {
            for (; e; e = e.parentElement) {
              const colour = getComputedStyle(e).backgroundColor;
              if (!colour.endsWith(", 0)")) return colour;
            }
            return "rgb(255, 255, 255)";
          };
          const texts = "p, th, td, dt, dd, a, h1, h2, h3, span";
          return [...document.querySelectorAll(texts)]
            .filter((e) => e.innerText && e.offsetParent)
            .map((e) => {
              const a = light(getComputedStyle(e).color), b = light(behind(e));
              return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
            });
        }"""
    )
    assert len(ratios) > 50
    assert min(ratios) >= 4.5


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1400])
def test_axe_finds_nothing(browser, page_file, width, scheme):
    size = {"width": width, "height": 900}
    page = browser.new_page(viewport=size, color_scheme=scheme)
    page.goto(page_file.as_uri())
    assert_accessible(page)
    page.close()


def background(page) -> str:
    return page.evaluate("getComputedStyle(document.body).backgroundColor")


def test_dark_mode_follows_the_system_and_the_button(browser, page_file):
    page = browser.new_page(color_scheme="dark")
    page.goto(page_file.as_uri())
    dark = background(page)
    page.get_by_role("button", name="Light mode").click()
    light = background(page)
    page.get_by_role("button", name="Dark mode").click()
    assert (background(page), light) == (dark, "rgb(255, 255, 255)")
    page.close()


def places(page) -> list[str]:
    return page.evaluate(
        "[...document.querySelectorAll('#scores .points use')]"
        ".map(e => e.getAttribute('x') + ' ' + e.getAttribute('y'))"
    )


def test_axes_of_the_scores_can_be_chosen(opened):
    page, said, _ = opened
    first = places(page)
    page.locator("#axis-y").select_option("2")
    second = places(page)
    assert [a.split()[0] for a in first] == [a.split()[0] for a in second]
    assert first != second
    assert "component 3" in page.locator("#scores .axes").text_content()
    page.locator("#axis-y").select_option("1")
    assert places(page) == first
    assert said == []


def test_the_script_places_samples_where_they_were_drawn(page_file, opened):
    page, *_ = opened
    drawn = re.findall(
        r'<use href="#shape-\d" x="([\d.-]+)" y="([\d.-]+)"',
        page_file.read_text("utf-8"),
    )
    moved = [place.split() for place in places(page)]
    np.testing.assert_allclose(
        np.array(moved, dtype=float), np.array(drawn, dtype=float), atol=0.02
    )


def test_arrows_come_and_go(opened):
    page, *_ = opened
    arrows = page.locator("#scores .arrow")
    assert arrows.count() >= 4
    page.locator("#arrows").uncheck()
    assert arrows.count() == 0


def test_a_label_hides_its_samples(opened):
    page, *_ = opened
    hidden = page.locator("#scores .points use[visibility=hidden]")
    key = page.get_by_role("button", name="<b>green</b>")
    assert hidden.count() == 0
    key.click()
    assert hidden.count() == 10
    assert key.get_attribute("aria-pressed") == "false"
    key.press("Enter")
    assert hidden.count() == 0


def test_samples_are_read_by_keyboard(opened):
    page, *_ = opened
    page.locator("#scores").focus()
    page.keyboard.press("ArrowRight")
    first = page.locator("#sample").inner_text()
    page.keyboard.press("ArrowRight")
    second = page.locator("#sample").inner_text()

    def across(text: str) -> float:
        return float(re.search(r"component 1: ([\d.e-]+)", text)[1])

    assert across(second) >= across(first)
    assert first != second


def test_pictures_are_saved_as_svg(opened):
    from xml.etree import ElementTree

    page, *_ = opened
    buttons = page.locator("button.save")
    assert buttons.count() >= 7
    for button in buttons.all():
        with page.expect_download() as waiting:
            button.click()
        text = Path(waiting.value.path()).read_text(encoding="utf-8")
        root = ElementTree.fromstring(text)
        assert root.tag.endswith("}svg")
        assert 'fill="rgb' in text
        assert "class=" not in text


def test_tables_are_saved_as_csv(opened):
    import csv

    page, *_ = opened
    links = page.locator("a[download$='.csv']")
    names = {link.get_attribute("download") for link in links.all()}
    assert names == {"loadings.csv", "scores.csv", "path.csv", "stability.csv"}
    with page.expect_download() as waiting:
        page.locator("a[download='scores.csv']").click()
    with open(waiting.value.path(), newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    assert rows[0][:3] == ["sample", "label", "component_1"]
    assert len(rows) == 41
