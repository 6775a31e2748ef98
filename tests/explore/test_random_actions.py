"""Random actions on the page against a model of its state; nothing may go wrong."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

pytest.importorskip("playwright.sync_api")
pytest.importorskip("tornado")
pytest.importorskip("plotly")

from blockspca.explore import explore_table
from blockspca.explore.engine import Engine
from blockspca.explore.state import State
from blockspca.status import Status
from browser import chromium, needs_chromium

from .conftest import make_dataset
from .test_browser import names, opened, wait

pytestmark = needs_chromium
START = State(k=3, seconds=2.0)  # signs take long on what earlier ones leave
DATASET = make_dataset()


class Model:
    """What the page should hold after each action: a state, and a history of them."""

    def __init__(self) -> None:
        self.history, self.at = [START], 0

    @property
    def state(self) -> State:
        return self.history[self.at]

    def change(self, **fields) -> None:
        new = replace(self.state, **fields)
        if new != self.state:
            self.history[self.at + 1 :] = [new]
            self.at += 1

    def go(self, step: int) -> None:
        self.at = max(0, min(len(self.history) - 1, self.at + step))


# Each action does something on the page, and the same to the model.


def move_slider(page, model, rng):
    key = rng.choice(["ArrowLeft", "ArrowRight", "PageUp", "PageDown", "Home", "End"])
    page.locator("#k").focus()
    page.keyboard.press(key)
    model.change(k=int(page.locator("#k").input_value()))


def type_k(page, model, rng):
    k = rng.randint(1, 12)
    page.fill("#k-number", str(k))
    page.press("#k-number", "Enter")
    model.change(k=k)


def type_nonsense(page, model, rng):
    page.fill("#k-number", rng.choice(["0", "99", "-4", "2.5", ""]))
    page.press("#k-number", "Enter")


def choose_components(page, model, rng):
    n = rng.randint(1, 3)
    page.fill("#n_components", str(n))
    page.press("#n_components", "Enter")
    model.change(n_components=n)


def choose_scheme(page, model, rng):
    scheme = rng.choice(["disjoint", "residual", "projection", "uncorrelated"])
    page.select_option("#scheme", scheme)
    model.change(scheme=scheme)


def check(field: str, box: str, on, off):
    def action(page, model, rng):
        page.locator(box).click()
        now = getattr(model.state, field)
        model.change(**{field: on if now == off else off})

    return action


def toggle(page, model, rng):
    """Keep or leave out a feature that is shown, or found by its name."""
    i, keep = rng.randrange(12), rng.random() < 0.5
    name = DATASET.names[i]
    page.fill("#search", name)
    said = f"Keep {name} in" if keep else f"Leave {name} out"
    page.locator("#found").get_by_role("button", name=said, exact=True).click()
    field, other = ("include", "exclude") if keep else ("exclude", "include")
    chosen = set(getattr(model.state, field)) ^ {i}
    rest = set(getattr(model.state, other)) - {i}
    model.change(**{field: tuple(sorted(chosen)), other: tuple(sorted(rest))})


def clear(page, model, rng):
    if page.locator("#clear").is_visible():
        page.click("#clear")
        model.change(include=(), exclude=(), max_per_group=None, nonnegative=False)


def choose_axis(page, model, rng):
    j = rng.randrange(-1, model.state.n_components)
    at = rng.randrange(2)
    page.select_option(("#axis-x", "#axis-y")[at], str(j))
    axes = list(model.state.axes)
    shown = axes[at] if axes[at] < model.state.n_components else -1
    if j != shown:  # a browser tells of no change where there is none
        axes[at] = j
        model.change(axes=tuple(axes))


def choose_label(page, model, rng):
    label = rng.choice(["", "kind", "dose", "component 1"])
    page.select_option("#label", label)
    model.change(label=label or None)


def undo(page, model, rng):
    if page.locator("#undo").is_enabled():
        page.click("#undo")
    model.go(-1)


def redo(page, model, rng):
    if page.locator("#redo").is_enabled():
        page.click("#redo")
    model.go(1)


def ask_for_more(page, model, rng):
    button = rng.choice(["#ask-swaps", "#ask-sets", "#ask-blocks"])
    if page.locator(button).is_enabled():
        page.click(button)


def reload(page, model, rng):
    page.reload()
    wait(page)
    model.history, model.at = [model.state], 0


ACTIONS = [
    move_slider,
    move_slider,
    type_k,
    type_nonsense,
    choose_components,
    choose_scheme,
    check("scale", "#scale", True, False),
    check("nonnegative", "#nonnegative", True, False),
    check("max_per_group", "#groups-on", 1, None),
    check("weight", "#contrast-on", 1.0, None),
    toggle,
    toggle,
    clear,
    choose_axis,
    choose_label,
    undo,
    redo,
    ask_for_more,
    reload,
]


def assert_shown(page, model, engine: Engine) -> None:
    """The page holds the model's state, and shows its components or why not."""
    wait(page)
    state = page.evaluate("explorer.state")
    assert State.checked(state, 12) == model.state
    page.evaluate("document.activeElement.blur()")
    answer, refused = None, ""
    try:
        answer = engine.solve(model.state)
    except ValueError as error:
        refused = str(error)
    if answer is None:
        assert page.locator("#alert:visible").inner_text() == refused
        return
    if page.locator("#alert").is_visible():  # some lists are not to be had
        assert "without constraints only" in page.locator("#alert").inner_text()
    assert page.locator("#components article").count() == model.state.n_components
    for j, result in enumerate(answer.results):
        card = page.locator("#components article").nth(j)
        reached, bound = (
            float(card.locator(part).inner_text())
            for part in (".objective", ".upper-bound")
        )
        assert bound >= reached * (1 - 1e-5)
        if "proved" not in card.locator(".badge").get_attribute("class"):
            return  # another run may have come to another point in its time
        if result.status is not Status.OPTIMAL:
            return
        assert reached == pytest.approx(result.objective, rel=1e-4)
        assert len(names(page, j + 1)) == len(result.features)


@pytest.mark.parametrize(
    ("seed", "steps"), [(0, 15), pytest.param(1, 200, marks=pytest.mark.slow)]
)
def test_random_actions_leave_the_page_as_the_model_says(seed, steps):
    rng, model, engine = random.Random(seed), Model(), Engine(DATASET)
    done = []
    with (
        chromium() as browser,
        explore_table(DATASET, START) as served,
        opened(browser, served.url) as page,
    ):
        for number in range(steps):
            action = rng.choice(ACTIONS)
            done.append(action.__name__)
            action(page, model, rng)
            if rng.random() < 0.6 or number == steps - 1:  # else the next overtakes it
                assert_shown(page, model, engine)
    assert len(done) == steps
