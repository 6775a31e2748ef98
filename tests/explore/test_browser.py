"""The page in headless Chromium: what a person does, from end to end."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from xml.etree import ElementTree

import pytest

pytest.importorskip("playwright.sync_api")
pytest.importorskip("tornado")
pytest.importorskip("plotly")

import blockspca as bs
from blockspca.explore import explore_table
from blockspca.explore import server as server_module
from blockspca.explore.pictures import MAX_POINTS
from blockspca.explore.run import Explorer, make_server
from blockspca.explore.state import State
from browser import assert_accessible, chromium, heard, needs_chromium

from .conftest import MARKUP, SCRIPT, make_dataset

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


def drawn(page, *pictures: str) -> None:
    """Wait until nothing is left to draw, and some pictures are there."""
    for name in pictures:
        page.locator(f"#{name} .main-svg").first.wait_for()
    page.wait_for_function("() => explorer.pictures === 'drawn'")


def middle(place) -> tuple[float, float]:
    box = place.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


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
    drawn(page, "scores")
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
    page.select_option("#scheme", "residual-disjoint")
    wait(page)
    page.check("#scale")
    wait(page)
    page.check("#groups-on")
    wait(page)
    page.check("#nonnegative")
    wait(page)
    asked = State(
        k=3, n_components=2, scheme="residual-disjoint", scale=True, max_per_group=1,
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
        k=3, n_components=2, scheme="residual-disjoint", scale=True, weight=0.5
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
    drawn(page, "path")
    points = page.locator("#path .trace:nth-child(3) .point")
    assert points.count() == 12
    page.locator("#path").scroll_into_view_if_needed()
    page.mouse.move(*middle(points.nth(6)))
    page.locator("#path .hovertext").wait_for()
    said = page.locator("#path .hovertext").text_content()
    assert said.startswith("k = 7: variance ")
    page.mouse.click(*middle(points.nth(6)))
    wait(page)
    assert state_of(page)["k"] == 7
    assert "12 of 12 proved" in page.locator("#path").get_attribute("aria-label")


def test_samples_have_names_and_colours(page):
    drawn(page, "scores")
    assert sorted(page.locator("#legend .swatch").all_inner_texts()) == ["a", "b"]
    points = page.locator("#scores .point")
    assert points.count() == 60
    page.locator("#scores").scroll_into_view_if_needed()
    page.mouse.move(*middle(points.nth(7)))
    page.locator("#scores .hovertext").wait_for()
    assert page.locator("#scores .hovertext").text_content().startswith(f"{MARKUP}, ")
    assert page.locator("#sample").inner_text().startswith(f"Sample {MARKUP}: ")
    page.locator("#scores").focus()
    page.keyboard.press("ArrowRight")
    assert page.locator("#sample").inner_text().startswith("Sample sample ")
    enter(page, "#n_components", 2)
    page.select_option("#axis-x", "1")
    page.select_option("#label", "component 1")
    wait(page)
    page.locator("#legend .shade-8").wait_for()
    assert state_of(page)["axes"] == [1, 1]


def draw_around(page) -> None:
    """Draw around all samples of the picture."""
    page.locator("#scores").scroll_into_view_if_needed()
    box = page.locator("#scores .nsewdrag").bounding_box()
    corners = [(0.01, 0.01), (0.99, 0.01), (0.99, 0.99), (0.01, 0.99)]
    left, top, wide, high = (box[key] for key in ("x", "y", "width", "height"))
    places = [(left + wide * x, top + high * y) for x, y in corners]
    page.mouse.move(*places[0])
    page.mouse.down()
    for place in places[1:]:
        page.mouse.move(*place, steps=5)
    page.mouse.up()


def counted(page, count: str) -> None:
    page.wait_for_function(
        "(count) => document.querySelector('#sample').textContent.startsWith(count)",
        arg=count,
    )


def test_a_lasso_counts_samples(page):
    drawn(page, "scores")
    draw_around(page)
    counted(page, "60 samples inside the line (")
    assert page.locator("#sample").text_content().startswith("60 samples inside")


def scrolls(page) -> bool:
    """Whether the page scrolls where a finger goes up over the samples."""
    page.evaluate("document.getElementById('scores').scrollIntoView({block: 'center'})")
    before = page.evaluate("scrollY")
    x, y = middle(page.locator("#scores .nsewdrag"))
    touch = page.context.new_cdp_session(page)
    steps = [("touchStart", 0), *(("touchMove", 20 * i) for i in range(1, 11))]
    for kind, up in steps:
        content = {"type": kind, "touchPoints": [{"x": x, "y": y - up}]}
        touch.send("Input.dispatchTouchEvent", content)
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    return page.evaluate("scrollY") > before + 50


def test_a_finger_scrolls_the_page_until_it_is_to_draw(browser, served):
    with opened(browser, served.url, 390, has_touch=True, is_mobile=True) as page:
        drawn(page, "scores")
        assert scrolls(page)
        page.locator("#draws").tap()
        drawn(page)
        assert not scrolls(page)


def test_many_samples_are_counted_cells(browser):
    """They are named by pointing, by keys and by a lasso as points are."""
    n = MAX_POINTS + 1
    with (
        explore_table(make_dataset(n=n), START) as served,
        opened(browser, served.url) as page,
    ):
        drawn(page, "scores")
        assert page.locator("#scores .point").count() == 0
        page.locator("#scores").focus()
        for _ in range(3):
            page.keyboard.press("ArrowRight")
        page.locator("#sample", has_text=" here (").wait_for()
        draw_around(page)
        counted(page, f"{n:,} samples inside the line")
        page.mouse.move(*middle(page.locator("#scores .nsewdrag")))
        page.locator("#sample", has_text=" here (").wait_for()
        svg = saved(page, page.locator("button[data-picture=scores]").click)
        assert "data:image/png" in svg


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
    page.click("#ask-blocks")
    drawn(page, "path", "share", "scores", "heat")
    link = lambda name: lambda: page.get_by_role("link", name=name).click()  # noqa: E731
    script = saved(page, link("Python script"))
    compile(script, "script.py", "exec")
    assert "k=3" in script
    assert "component,feature,loading" in saved(page, link("Loadings, CSV"))
    assert json.loads(saved(page, link("State, JSON")))["k"] == 3
    for name in ("path", "share", "scores", "heat"):
        svg = saved(page, page.locator(f"button[data-picture={name}]").click)
        assert ElementTree.fromstring(svg).tag == "{http://www.w3.org/2000/svg}svg"
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
        drawn(page, "path", "share", "scores", "heat")
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
    drawn(page, "path", "scores")
    page.locator("body").focus()
    order = []
    while "ask-stability" not in order and len(order) < 120:
        page.keyboard.press("Tab")
        order.append(page.evaluate("document.activeElement.id"))
    reached = set(order)
    wanted = {"k", "k-number", "n_components", "scheme", "scale", "nonnegative"}
    wanted |= {"search", "axis-x", "label", "scores", "ask-swaps", "within", "theme"}
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


# -- what goes wrong -------------------------------------------------------------------


@contextmanager
def tab_of(browser, url: str):
    """A tab that may say what went wrong."""
    context = browser.new_context()
    tab = context.new_page()
    tab.set_default_timeout(300_000)
    tab.goto(url)
    yield tab
    context.close()


def test_an_interrupted_solve_leaves_the_page_usable(browser, monkeypatch):
    with explore_table(make_dataset(), START) as served:
        engine = served._server.engine
        begun, solve = threading.Event(), engine.solve

        def endless(state, tell, found):
            found(solve(state))
            begun.set()
            while True:
                tell(bs.progress.Event("proof", 0, 1, state.k, 1.0, 2.0))

        with opened(browser, served.url) as page:
            monkeypatch.setattr(engine, "solve", endless)
            page.check("#contrast-on")  # no path answers this one
            assert begun.wait(300)
            page.locator("#said", has_text="100 % better").wait_for()
            page.click("#stop")
            page.locator("#said", has_text="Stopped").wait_for()
            assert len(names(page)) == 3  # what was known stays
            monkeypatch.undo()
            enter(page, "#k-number", 5)
            assert len(names(page)) == 5
            assert page.locator(f"{FIRST} .badge").inner_text() == "proved optimal"
            drawn(page, "scores", "path")


class _Empty(BaseHTTPRequestHandler):
    """A site of somebody else."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()

    def log_message(self, *words) -> None:
        pass


@contextmanager
def other_site():
    with HTTPServer(("127.0.0.1", 0), _Empty) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


ASK = """(url) => new Promise((end) => {
  const [got, refused] = [() => end("got"), () => end("refused")];
  if (url.startsWith("ws:")) {
    const socket = new WebSocket(url);
    [socket.onopen, socket.onerror] = [got, refused];
  } else {
    fetch(url, { mode: "no-cors" }).then(got, refused);
  }
})"""


def test_a_page_of_another_site_gets_nothing(browser, served):
    socket = served.url.replace("http:", "ws:") + "socket"
    paths = ("assets/plotly.min.js", "export/state.json")
    with other_site() as url, tab_of(browser, url) as tab:
        for address in (*(served.url + path for path in paths), socket):
            assert tab.evaluate(ASK, address) == "refused"
    with opened(browser, served.url) as own:
        assert own.evaluate(ASK, served.url + paths[1]) == "got"


def test_without_pictures_the_page_is_used(browser, served):
    context = browser.new_context()
    page = context.new_page()
    page.set_default_timeout(300_000)
    page.route("**/plotly.min.js", lambda route: route.abort())
    page.goto(served.url)
    alert = page.locator("#alert", has_text="pictures could not be loaded")
    alert.wait_for()
    enter(page, "#k-number", 4)
    assert len(names(page)) == 4
    context.close()


def test_closing_the_tab_ends_it(browser, monkeypatch):
    monkeypatch.setattr(server_module, "GRACE", 0.05)
    served = Explorer(make_server(make_dataset(), START))
    with opened(browser, served.url):
        assert served.running
    served._thread.join(300)
    assert not served.running


@pytest.mark.slow
def test_a_server_that_ends_is_noticed(browser):
    served = explore_table(make_dataset(), START)
    with tab_of(browser, served.url) as tab:
        wait(tab)
        shown = names(tab)
        served.stop()
        tab.locator("#alert").wait_for()
        assert "connection is lost" in tab.locator("#alert").inner_text()
        assert names(tab) == shown
