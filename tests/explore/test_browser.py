"""The page in headless Chromium: what a person does, from end to end."""

from __future__ import annotations

import json
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("playwright.sync_api")
pytest.importorskip("tornado")

import blockspca as bs
from blockspca.explore import explore_table
from blockspca.explore.state import State
from browser import assert_accessible, chromium, heard, needs_chromium

from .conftest import SCRIPT, make_dataset

pytestmark = needs_chromium
START = State(k=3, seconds=600, label="kind")
FIRST = "#components article:first-child"


@pytest.fixture(scope="module")
def browser():
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def served():
    with explore_table(make_dataset(), START) as page:
        yield page


@contextmanager
def opened(browser, url: str, width: int = 1400, **options):
    """A tab; nothing may be said on its console, or asked of another host."""
    context = browser.new_context(
        viewport={"width": width, "height": 900}, accept_downloads=True, **options
    )
    page = context.new_page()
    page.set_default_timeout(300_000)  # the first solve on a machine compiles
    said, asked = heard(page)
    page.goto(url)
    wait(page)
    yield page
    assert said == []
    assert all(one.startswith(("http://127.0.0.1", "ws:", "blob:")) for one in asked)
    context.close()


@pytest.fixture
def page(browser, served):
    with opened(browser, served.url) as tab:
        yield tab


def wait(page) -> None:
    """Wait for the answer to what was asked last."""
    page.wait_for_function(
        "() => window.explorer && explorer.asked > 0 &&"
        " Number(document.body.dataset.answered) >= explorer.asked"
    )


def state_of(page) -> dict:
    return page.evaluate("explorer.state")


def enter(page, field: str, value) -> None:
    page.fill(field, str(value))
    page.press(field, "Enter")
    wait(page)


def names(page, component: int = 1) -> list[str]:
    place = f"#components article:nth-child({component}) .loadings .name"
    return page.locator(place).all_inner_texts()


def features_of(state: State) -> list[set[str]]:
    dataset = make_dataset()
    groups = None if state.max_per_group is None else dataset.groups
    constraints = None
    if state.is_constrained:
        constraints = bs.Constraints(
            include=state.include,
            exclude=state.exclude,
            groups=groups,
            max_per_group=state.max_per_group,
            nonnegative=state.nonnegative,
        )
    found = bs.solve_components(
        dataset.covariance(state),
        state.k,
        state.n_components,
        scheme=state.scheme,
        constraints=constraints,
    )
    return [set(result.features) for result in found.results]


def test_the_slider_shows_the_component_of_every_k(page):
    slider = page.locator("#k")
    slider.focus()
    for key, k in (("ArrowRight", 4), ("End", 12), ("Home", 1)):
        page.keyboard.press(key)
        wait(page)
        assert state_of(page)["k"] == k
        assert len(names(page)) == k
        assert page.locator(f"{FIRST} .badge").inner_text() == "proved optimal"
    page.keyboard.press("ArrowRight")
    wait(page)
    assert set(names(page)) == features_of(State(k=2))[0]
    assert page.locator("#k-number").input_value() == "2"


def test_names_are_text_whatever_they_hold(page):
    enter(page, "#k-number", 4)
    assert SCRIPT in names(page)
    page.fill("#search", "<script>")
    row = page.locator("#found li")
    row.wait_for()
    assert row.locator(".name").inner_text() == SCRIPT
    row.get_by_role("button", name=f"Leave {SCRIPT} out").click()
    wait(page)
    assert page.locator("#chosen .name").inner_text() == f"{SCRIPT} left out"
    page.locator("#prices th").first.wait_for()
    assert page.title() == "Explore: toy"
    assert page.locator("#views img, #views script, #controls script").count() == 0


def test_features_are_kept_in_and_left_out_by_click(page):
    first = names(page)[0]
    page.get_by_role("button", name=f"Leave {first} out").first.click()
    wait(page)
    assert first not in names(page)
    page.fill("#search", "gene 11")
    page.get_by_role("button", name="Keep gene 11 in").click()
    wait(page)
    assert "gene 11" in names(page)
    state = state_of(page)
    assert len(state["exclude"]) == 1
    assert state["include"] == [11]
    page.locator("#prices tr").nth(2).wait_for()
    assert "%" in page.locator("#prices td").first.inner_text()
    page.click("#clear")
    wait(page)
    assert state_of(page)["exclude"] == state_of(page)["include"] == []
    assert page.locator("#price").is_hidden()


def test_components_schemes_scale_groups_signs_and_background(page):
    enter(page, "#n_components", 2)
    page.select_option("#scheme", "residual")
    wait(page)
    page.check("#scale")
    wait(page)
    page.check("#groups-on")
    wait(page)
    page.check("#nonnegative")
    wait(page)
    asked = State(
        k=3, n_components=2, scheme="residual", scale=True, max_per_group=1,
        nonnegative=True,
    )  # fmt: skip
    assert [set(names(page, j)) for j in (1, 2)] == features_of(asked)
    page.click("#clear")
    wait(page)
    page.check("#contrast-on")
    wait(page)
    enter(page, "#weight", 0.5)
    assert state_of(page)["weight"] == 0.5
    with_background = State(
        k=3, n_components=2, scheme="residual", scale=True, weight=0.5
    )
    assert [set(names(page, j)) for j in (1, 2)] == features_of(with_background)


def test_what_cannot_be_is_said_and_the_page_goes_on(page):
    for name in ("gene 8", "gene 9", "gene 10", "gene 11"):
        page.fill("#search", name)
        page.get_by_role("button", name=f"Keep {name} in").click()
    alert = page.locator("#alert")
    alert.wait_for()
    assert "include has 4 features for k = 3" in alert.inner_text()
    page.click("#undo")
    wait(page)
    assert alert.is_hidden()
    assert len(names(page)) == 3


def test_undo_redo_and_history(page):
    enter(page, "#k-number", 5)
    enter(page, "#k-number", 6)
    page.keyboard.press("Escape")
    page.locator("#components").focus()
    page.keyboard.press("Control+z")
    wait(page)
    assert state_of(page)["k"] == 5
    page.click("#undo")
    wait(page)
    assert state_of(page)["k"] == 3
    assert page.locator("#undo").is_disabled()
    page.click("#redo")
    wait(page)
    assert state_of(page)["k"] == 5
    page.get_by_role("button", name="start", exact=True).click()
    wait(page)
    assert state_of(page)["k"] == 3
    assert page.evaluate("explorer.entries") == ["start", "k = 5", "k = 6"]


def test_a_link_restores_the_state_in_another_tab(page, browser):
    enter(page, "#k-number", 5)
    page.fill("#search", "gene 9")
    page.get_by_role("button", name="Keep gene 9 in").click()
    wait(page)
    here, shown = state_of(page), names(page)
    with opened(browser, page.evaluate("location.href")) as other:
        assert state_of(other) == here
        assert names(other) == shown
        enter(other, "#k-number", 2)
        assert "gene 9 kept in" in other.locator("#chosen").inner_text()
    assert state_of(page) == here  # two tabs do not mix
    assert names(page) == shown


def test_the_path_leads_to_a_k(page):
    dots = page.locator("#path .dot")
    dots.first.wait_for()
    assert dots.count() == 12
    page.locator('#path [data-k="7"]').click()
    wait(page)
    assert state_of(page)["k"] == 7
    assert "12 of 12 proved" in page.locator("#path svg").get_attribute("aria-label")


def test_samples_have_names_colours_and_a_lasso(page):
    page.locator("#legend .swatch").first.wait_for()
    assert sorted(page.locator("#legend .swatch").all_inner_texts()) == ["a", "b"]
    canvas = page.locator("#canvas")
    canvas.scroll_into_view_if_needed()
    canvas.focus()
    page.keyboard.press("ArrowRight")
    assert page.locator("#sample").inner_text().startswith("Sample sample ")
    box = canvas.bounding_box()
    corners = [(0.14, 0.02), (0.97, 0.02), (0.97, 0.88), (0.14, 0.88)]
    left, top, wide, high = (box[key] for key in ("x", "y", "width", "height"))
    places = [(left + wide * x, top + high * y) for x, y in corners]
    page.mouse.move(*places[0])
    page.mouse.down()
    for place in places[1:]:
        page.mouse.move(*place, steps=5)
    page.mouse.up()
    page.wait_for_function(
        "() => document.querySelector('#sample').textContent.startsWith('60 samples')"
    )
    enter(page, "#n_components", 2)
    page.select_option("#axis-x", "1")
    page.select_option("#label", "component 1")
    wait(page)
    page.locator("#legend .shade-8").wait_for()
    assert state_of(page)["axes"] == [1, 1]


def test_swaps_sets_stability_and_blocks_on_demand(page):
    page.click("#ask-swaps")
    page.locator("#swaps li").nth(2).wait_for()
    assert "costs" in page.locator("#swaps li").first.inner_text()
    page.click("#ask-sets")
    page.locator("#sets li").first.wait_for()
    assert "no other, proved" in page.locator("#sets-said").inner_text()
    page.fill("#resamples", "3")
    page.click("#ask-stability")
    page.locator("#stability li").first.wait_for()
    assert "3 resamples" in page.locator("#stability-said").inner_text()
    page.click("#ask-blocks")
    page.locator("#blocks").wait_for()
    page.locator("#epsilon").focus()
    page.keyboard.press("End")
    assert "12 blocks of 12 features" in page.locator("#blocks-said").inner_text()
    page.locator("#heat").focus()
    page.keyboard.press("ArrowRight")
    assert " × " in page.locator("#pair").inner_text()


def saved(page, action) -> str:
    with page.expect_download() as waiting:
        action()
    return Path(waiting.value.path()).read_text(encoding="utf-8")


def test_exports(page):
    page.locator("#path .dot").first.wait_for()
    page.locator("#share svg").wait_for()
    link = lambda name: lambda: page.get_by_role("link", name=name).click()  # noqa: E731
    script = saved(page, link("Python script"))
    compile(script, "script.py", "exec")
    assert "k=3" in script
    assert "component,feature,loading" in saved(page, link("Loadings, CSV"))
    assert json.loads(saved(page, link("State, JSON")))["k"] == 3
    for name in ("path", "share", "scores"):
        button = page.locator(f"button[data-picture={name}]")
        svg = saved(page, button.click)
        assert svg.startswith("<svg")
        assert "var(" not in svg
    enter(page, "#k-number", 4)
    assert "k=4" in saved(page, link("Python script"))


@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        (390, "dark"),
        (1400, "light"),
        pytest.param(390, "light", marks=pytest.mark.slow),
        pytest.param(1400, "dark", marks=pytest.mark.slow),
        pytest.param(2200, "light", marks=pytest.mark.slow),
        pytest.param(2200, "dark", marks=pytest.mark.slow),
    ],
)
def test_accessible_at_every_width_in_light_and_dark(browser, served, width, scheme):
    with opened(browser, served.url, width, color_scheme=scheme) as page:
        page.click("#ask-blocks")
        page.locator("#blocks").wait_for()
        page.locator("#path .dot").first.wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert_accessible(page)


@pytest.mark.slow
def test_the_theme_is_chosen_and_kept(page):
    paper = "getComputedStyle(document.body).backgroundColor"
    seen = set()
    for expected in ("light", "dark"):
        page.click("#theme")
        assert page.locator("#theme").inner_text() == f"Theme: {expected}"
        seen.add(page.evaluate(paper))
    assert len(seen) == 2
    page.reload()
    wait(page)
    assert page.locator("#theme").inner_text() == "Theme: dark"


def test_everything_is_reached_by_keyboard(page):
    page.locator("#path .dot").first.wait_for()
    page.locator("body").focus()
    order = []
    while "ask-stability" not in order and len(order) < 120:
        page.keyboard.press("Tab")
        order.append(page.evaluate("document.activeElement.id"))
    reached = set(order)
    wanted = {"k", "k-number", "n_components", "scheme", "scale", "nonnegative"}
    wanted |= {"search", "axis-x", "label", "canvas", "ask-swaps", "within", "theme"}
    assert wanted <= reached
    page.locator("#components").focus()
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "search"


def test_focus_stays_on_the_button_that_was_pressed(page):
    button = page.get_by_role("button", name="Keep", exact=False).first
    label = button.get_attribute("aria-label")
    button.focus()
    page.keyboard.press("Enter")
    wait(page)
    now = page.locator("*:focus")
    assert now.get_attribute("aria-label") == label
    assert now.get_attribute("aria-pressed") == "true"


@pytest.mark.slow
def test_a_server_that_ends_is_noticed(browser):
    page = explore_table(make_dataset(), START)
    context = browser.new_context()
    tab = context.new_page()
    tab.set_default_timeout(300_000)
    tab.goto(page.url)
    wait(tab)
    shown = names(tab)
    page.stop()
    tab.locator("#alert").wait_for()
    assert "connection is lost" in tab.locator("#alert").inner_text()
    assert names(tab) == shown
    context.close()
