"""The explorer in Chromium: from a move of the slider to the component on the page.

    python benchmarks/run.py explore --output DIR

The time is the page's own: from the event of the slider to the components in the page
(`performance.measure`), so that it has the way to the server and back, the answer and
the drawing of the list. Pictures, by plotly.js, follow in moments without work: the
time to the last of them is given too, of moves that wait for it. First paint is from
the request of the page to its components, after the data are loaded and the first
answer was solved ahead; the first pictures wait for plotly.js, which is loaded then.
Chromium is looked for as chromium or by BLOCKSPCA_CHROMIUM.
"""

from __future__ import annotations

import os
import shutil
import time
from typing import Any

import numpy as np
import scipy.sparse as sp
from playwright.sync_api import sync_playwright

from blockspca.explore import explore_table
from blockspca.explore.dataset import Dataset
from blockspca.explore.state import State
from blockspca.io import Table
from common import Options, Report, load

CHROMIUM = os.environ.get("BLOCKSPCA_CHROMIUM") or shutil.which("chromium")
ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
ANSWERED = (
    "() => window.explorer && Number(document.body.dataset.answered) >= explorer.asked"
    " && explorer.asked > 0"
)
SETTLED = "() => Number(document.body.dataset.settled) >= explorer.asked"
DRAWN = "() => explorer.pictures === 'drawn'"
# The last picture of each question.
PICTURES = """() => Object.values(Object.fromEntries(
  performance.getEntriesByName("pictures").map((e) => [e.detail, e.duration])))"""
MOVES, QUICK_MOVES, PICTURE_MOVES = 150, 40, 30
PATIENCE = 120_000  # milliseconds
COLUMNS = {
    "set": ("data", ""),
    "samples": ("samples", ""),
    "features": ("features", ""),
    "components": ("components", ""),
    "first": ("first paint, s", ".2f"),
    "first_pictures": ("first pictures, s", ".2f"),
    "median": ("median, ms", ".0f"),
    "p95": ("95th percentile, ms", ".0f"),
    "worst": ("worst, ms", ".0f"),
    "pictures": ("all pictures, median, ms", ".0f"),
}


def large(n: int, d: int, seed: int = 0) -> Table:
    """Sparse counts with a few factors, as of single cells."""
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, d), density=0.005, rng=rng, format="csc")
    weights = rng.normal(size=(n, 3)) ** 2
    block = sp.csc_array(weights @ rng.random((3, 60)))
    return Table(sp.hstack([block, X[:, 60:]], format="csr"))


def measured(page: Any, name: str, table: Table, n_components: int, moves: int) -> Any:
    """Open a page, move its slider about, and return one row."""
    state = State(k=5, n_components=n_components, seconds=60.0)
    with explore_table(Dataset(table, name), state) as served:
        while served._server.engine.known(state) is None:  # solved ahead
            time.sleep(0.05)
        started = time.perf_counter()
        page.goto(served.url)
        page.wait_for_function(ANSWERED, timeout=PATIENCE)
        first = time.perf_counter() - started
        page.wait_for_function(DRAWN, timeout=PATIENCE)
        first_pictures = time.perf_counter() - started
        page.wait_for_function(SETTLED, timeout=PATIENCE)
        page.locator("#k").focus()
        rng = np.random.default_rng(0)
        keys = ["ArrowRight", "ArrowLeft", "PageUp", "PageDown"]
        for _ in range(moves):
            page.keyboard.press(str(rng.choice(keys)))
            page.wait_for_function(ANSWERED, timeout=PATIENCE)
        times = page.evaluate(
            "performance.getEntriesByName('answer').map((e) => e.duration)"
        )[1:]
        page.evaluate("performance.clearMeasures('pictures')")
        for _ in range(PICTURE_MOVES):
            page.keyboard.press(str(rng.choice(keys)))
            for condition in (ANSWERED, SETTLED, DRAWN):
                page.wait_for_function(condition, timeout=PATIENCE)
        pictures = page.evaluate(PICTURES)
    n, d = table.shape
    return {
        "set": name,
        "samples": n,
        "features": d,
        "components": n_components,
        "first": first,
        "first_pictures": first_pictures,
        "median": float(np.median(times)),
        "p95": float(np.percentile(times, 95)),
        "worst": float(np.max(times)),
        "pictures": float(np.median(pictures)),
        "times": times,
    }


def report(options: Options) -> Report:
    moves = QUICK_MOVES if options.quick else MOVES
    cases = [("Prostate", Table(load("Prostate")), 1)]
    cases += [("Prostate", cases[0][1], 2)]
    if not options.quick:
        cases.append(("single cells, made", large(100_000, 20_000), 1))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        rows = []
        for name, table, n_components in cases:
            page = browser.new_page(viewport={"width": 1400, "height": 900})
            rows.append(measured(page, name, table, n_components, moves))
            page.close()
        browser.close()
    found = Report("The explorer in Chromium", seeds=[0])
    found.notes.append(
        f"{moves} moves of the slider over k = 1, …, 30, each after the answer to the "
        "last."
    )
    found.add("From the slider to the component", COLUMNS, rows)
    return found
