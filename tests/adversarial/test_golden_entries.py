"""The entry dual, number by number: what is fixed, what is screened, what is rounded.

For each feature the least τ for which a test rules it out, found by halving. With a
large eps, and a large η where margins are compared with it, a margin that is missing
moves that τ.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any
from unittest.mock import PropertyMock, patch

import numpy as np

import zoo
from blockspca.bounds.entry_dual import check, fixing, screening
from blockspca.bounds.entry_dual import search as entry_search
from blockspca.bounds.entry_dual.fixing import fixed_in, fixed_out, likely_in
from blockspca.bounds.entry_dual.log import LoggedPoint
from blockspca.bounds.entry_dual.node import Node
from blockspca.bounds.entry_dual.pairs import Pairs
from blockspca.bounds.entry_dual.proof import Priced, grown_from, within_dense
from blockspca.bounds.entry_dual.screening import survivors
from blockspca.bounds.entry_dual.search import EntrySearch
from blockspca.covariance.covariance import Covariance
from blockspca.limits import Deadline
from blockspca.numerics.rounding import (
    in_units,
    increased,
    larger_root,
    larger_root_above,
    norms_above,
    product_below,
    root_above,
    squared,
    sums_above,
)
from golden import Groups, Numbers, assert_as_written, listed, matrices

_MODULES = (
    "bounds.entry_dual.fixing",
    "bounds.entry_dual.screening",
    "bounds.entry_dual.node",
    "bounds.entry_dual.proof",
    "numerics.rounding",
    "numerics.upper_eigenvalues",
)
LARGE_EPS = 2e-6
MARGIN = 5e-3  # η: more than what rounding is then believed to be
HALVINGS = 34


@contextmanager
def believed(eps: float | None) -> Iterator[None]:
    """Let the bounds believe in this eps, if any, and in a large η."""
    with ExitStack() as stack:
        stack.enter_context(patch.object(fixing, "_MARGIN", MARGIN))
        for name in _MODULES if eps is not None else ():
            module = importlib.import_module(f"blockspca.{name}")
            stack.enter_context(patch.object(module, "EPS", eps))
        yield


def with_eps(
    numbers: Callable[[], Numbers], eps: float | None = None
) -> Callable[[], Numbers]:
    def inside() -> Numbers:
        with believed(eps):
            return numbers()

    return inside


def least(holds: Callable[[float], np.ndarray], top: float) -> list[float]:
    """For each feature, the least level up to `top` at which it is ruled out."""
    first = holds(top)
    low, high = np.zeros(len(first)), np.where(first, top, np.inf)
    asked: dict[float, np.ndarray] = {}  # features share most of their levels
    for i in np.flatnonzero(first):
        for _ in range(HALVINGS):
            middle = float(low[i] + high[i]) / 2
            if middle not in asked:
                asked[middle] = holds(middle)
            if asked[middle][i]:
                high[i] = middle
            else:
                low[i] = middle
    return [float(level) for level in high]


def nodes(A: np.ndarray) -> Iterator[tuple[str, Node]]:
    """Nodes with nothing fixed, and with two features; the weights differ."""
    n = len(A)
    rng = np.random.default_rng(n)
    weights = np.sqrt(rng.uniform(0.02, 0.5, n))
    product = weights[:, None] * weights
    shares = np.clip(A / product, -1.0, 1.0)
    np.fill_diagonal(shares, 0.0)
    for ratio, fixed in ((1.0, 0), (0.6, 2), (2.0, 2)):
        inside = np.arange(n) < fixed
        yield (
            f"{fixed} at {ratio}",
            Node(np.arange(n), inside, weights, shares, ratio=ratio),
        )


def fixed() -> Numbers:
    found: Numbers = {}
    for name, A in matrices():
        A = A / np.abs(A).max()
        for which, node in nodes(A):
            for k in (2, 4):
                M, rounding = EntrySearch(A, k, 0.0, node)._matrix(node)
                top = float(np.linalg.eigvalsh(M)[-1])
                levels = [0.5 * top, 0.8 * top, 0.95 * top, 1.01 * top]
                found[f"{name}, {which}, {k}"] = [
                    least(lambda t: fixed_out(A, node, k, t)[0], 4 * top),  # noqa: B023
                    rounding,
                    [
                        [
                            likely_in(M, tau, node.free).tolist(),
                            fixed_in(M, tau, node.free),
                        ]
                        for tau in levels
                    ],
                ]
    return found


def searched() -> Numbers:
    """Searches with few steps at a node, so that many are split."""
    found: Numbers = {}
    for name, A in matrices():
        A = A / np.abs(A).max()
        for which, node in nodes(A):
            k = 4
            sets = [s for s in zoo.membership(len(A), k) if s[node.fixed_in].all()]
            best = max(float(np.linalg.eigvalsh(A[np.ix_(s, s)])[-1]) for s in sets)
            for tau in (0.9 * best, 1.02 * best):
                search = EntrySearch(A, k, tau, node)
                with patch.object(entry_search, "_STEPS", 2):
                    value = search.run(Deadline(None), 25)
                free = len(search.open[0][2].free) if search.open else 0
                found[f"{name}, {which}, {tau / best:.2f}"] = [
                    [value, search.closed_bound],
                    [search.nodes, free, listed(search.better)],
                    [len(search.log.points), listed(search.log.splits)],
                ]
    return found


def screened_out(
    given: tuple[Pairs, np.ndarray, int], tau: float, *, level: float, error: float
) -> np.ndarray:
    left = survivors(*given, tau, 0.9, level, error)
    return ~np.isin(np.arange(len(given[1])), left)


def screened() -> Numbers:
    found: Numbers = {}
    for name, A in matrices():
        A = A / np.abs(A).max()
        i, j = np.triu_indices(len(A), 1)
        for level in (0.05, 0.3):
            strong = np.abs(A[i, j]) > level
            pairs = Pairs(i[strong], j[strong], A[i, j][strong])
            for k, error in ((2, 0.0), (3, 0.01), (6, 0.0)):
                given = (pairs, np.diagonal(A), k)
                out = partial(screened_out, given, level=level, error=error)
                found[f"{name} {level} {k}"] = least(out, 8.0)
    return found


def priced() -> Iterator[tuple[str, Priced]]:
    """A core of four features, and pairs beside it."""
    for name, A in matrices():
        d = len(A)
        i, j = np.triu_indices(d, 1)
        beside = j >= 4
        pairs = Pairs(i[beside], j[beside], A[i, j][beside])
        core = np.arange(4)
        block = A[:4, :4].copy()
        np.fill_diagonal(block, 0.0)
        yield name, Priced(np.diagonal(A).copy(), core, block, pairs, 0.0)


def grown() -> Numbers:
    """A vector that is followed from K to the rest, and rows of what it leaves."""
    found: Numbers = {}
    for name, M in priced():
        v = np.linspace(1.0, 0.3, M.order)
        top = float(M.diagonal.max())
        for count in (4, 6):
            inside = np.arange(M.order) < count
            for t in (2 * top, 10 * top):
                after, rows = grown_from(M, inside, v, t)
                found[f"{name} {count} {t / top:.1f}"] = [
                    [float(value) for value in after],
                    [float(value) for value in rows],
                ]
            within, added = within_dense(M, np.arange(count), v)
            found[f"{name} {count} within"] = [
                [float(value) for value in within.ravel()],
                [float(value) for value in added],
            ]
    return found


def checked() -> Numbers:
    """What errors of entries add, and what a screen is asked with."""
    found: Numbers = {}
    A = dict(matrices())["flat"]
    A[0, 0] = -1e305
    cov = Covariance.from_matrix(A)
    asked: list[Any] = []

    def survivors(listed: Any, diagonal: np.ndarray, *rest: float) -> np.ndarray:
        asked.append([diagonal.tolist(), [float(value) for value in rest]])
        return np.arange(2)

    known_to = PropertyMock(return_value=0.01)
    with (
        patch.object(Covariance, "entry_error", known_to),
        patch.object(check, "survivors", survivors),
        patch.object(check, "proved_value", lambda *_: 3.0),
        patch.object(check, "EPS", LARGE_EPS),
    ):
        for value in (-2.0, -0.02, 5.0):
            found[f"errors {value}"] = [
                check.with_errors(value, cov, 3),
                check.with_errors(value, cov, 3, 1e-3),
                check.searched_value(value, 0.5, 3, cov),
            ]
        screen = SimpleNamespace(record=SimpleNamespace(unit=0.5), level=0.1)
        for tau in (-2.0, 4.0):
            for given in (None, Pairs(np.arange(1), np.arange(1, 2), np.ones(1))):
                if given is None:
                    listed = check.pairs_of_screen(cov, screen, Deadline(None))
                    check.screened_features(cov, 3, tau, screen, listed, 0.0)
                else:
                    check.screened_features(cov, 3, tau, screen, given, check.AGREED)
                found[f"screen {tau} {given is None}"] = asked[-1]
    # what a screen rules out may reach τ, whatever a search of the rest came to
    record = SimpleNamespace(
        features=np.arange(3), screen=screen, tau=2.0, unit=0.5, log=None
    )
    for value in (1.0, 3.0):
        search = SimpleNamespace(run=lambda *_, value=value: value)
        with (
            patch.object(check, "screened_features", lambda *_: np.arange(3)),
            patch.object(check, "dense_problem", lambda *_: np.eye(3)),
            patch.object(check, "EntrySearch", lambda *_, search=search: search),
        ):
            again = check.searched_again(cov, 2, record, Deadline(None))
        found[f"again {value}"] = again
    return found


def levels() -> Numbers:
    """The levels that a search asks for, of a matrix whose rounding is 0.25."""
    found: Numbers = {}
    asked: list[float] = []

    def asks(M: np.ndarray, level: float, *_: object) -> Any:
        asked.append(float(level))
        return []

    for name, A in matrices():
        A = A / np.abs(A).max()
        node = next(node for _, node in nodes(A))
        n = len(A)
        point = LoggedPoint.of(node.weights, node.shares, node.ratio)
        search = EntrySearch(A, 4, 1.5, node)
        asked.clear()
        with (
            patch.object(EntrySearch, "_matrix", lambda *_, n=n: (np.eye(n), 0.25)),
            patch.object(EntrySearch, "_improved", lambda *_, point=point: point),
            patch.object(entry_search, "is_below", asks),
            patch.object(entry_search, "fixed_in", asks),
            patch.object(entry_search, "likely_in", lambda M, t, free: np.arange(2)),
        ):
            search._ascended(node, Deadline(None))
            search._fixed(node)
        found[name] = list(asked)
    return found


def row_sums() -> Numbers:
    """Sums of squares of rows, as the screening has them at first."""
    found: Numbers = {}
    for name, A in matrices():
        A = A / np.abs(A).max()
        i, j = np.triu_indices(len(A), 1)
        said: list[list[float]] = []

        def norms(
            sums: np.ndarray, *rest: Any, said: list[list[float]] = said
        ) -> np.ndarray:
            said.append([float(value) for value in sums])
            return norms_above(sums, *rest)

        with patch.object(screening, "norms_above", norms):
            survivors(Pairs(i, j, A[i, j]), np.diagonal(A), 3, 1.2, 0.9, 0.01, 0.0)
        found[name] = said[0]
    return found


def rounded() -> Numbers:
    a = np.array([-2.0, 0.5, 1.0, 1.0, 3.0])
    c = np.array([0.0, 0.25, 1.0, 4.0, 1e-3])
    tiny = np.array([1e-200, 1e-160, 0.0, 2.0])

    def floats(values: np.ndarray) -> list[float]:
        return [float(value) for value in np.atleast_1d(values)]

    return {
        "root": [floats(larger_root_above(a, c, b)) for b in (-3.0, 0.0, 1.0, np.inf)],
        "root, about": [floats(larger_root(a, c, b)) for b in (-3.0, 0.0, 1.0)],
        "one root": [
            root_above(x, y, b)
            for x, y in zip(a.tolist(), c.tolist(), strict=True)
            for b in (-3.0, 0.0, 1.0, np.inf)
        ],
        "far apart": [root_above(0.0, 1e-300, -1e300) * 1e300],
        "squares": floats(np.log(squared(tiny) + 1e-307)),
        "sums": [floats(sums_above(c, count)) for count in (1, 5, 30)],
        "norms": [
            floats(norms_above(c, count, error))
            for count in (1, 5)
            for error in (0.0, 0.1)
        ],
        "products": [floats(product_below(np.abs(a), b)) for b in (0.0, 0.3, 2.0)],
        "product that underflows": floats(product_below(np.array([1e-200]), 1e-200)),
        "increased": floats(increased(np.array([-1.0, 0.0, 2.0, np.inf]))),
        "units": floats(in_units(np.array([-8.0, 3.0, -1e302]), 0.25)),
    }


GROUPS: Groups = {
    "fixed": with_eps(fixed),
    "searched": with_eps(searched),
    "screened": with_eps(screened),
    "rounded": with_eps(rounded),
    "fixed, larger eps": with_eps(fixed, 3 * LARGE_EPS),
    "grown": with_eps(grown),
    "grown, large eps": with_eps(grown, LARGE_EPS),
    "checked": checked,
    "levels": levels,
    "row sums": with_eps(row_sums, 10 * LARGE_EPS),
    "fixed, large eps": with_eps(fixed, LARGE_EPS),
    "searched, large eps": with_eps(searched, LARGE_EPS),
    "screened, large eps": with_eps(screened, LARGE_EPS),
    "rounded, large eps": with_eps(rounded, LARGE_EPS),
}


def test_fixed() -> None:
    assert_as_written(__file__, GROUPS, "fixed")


def test_searched() -> None:
    assert_as_written(__file__, GROUPS, "searched")


def test_searched_with_a_large_eps() -> None:
    assert_as_written(__file__, GROUPS, "searched, large eps")


def test_fixed_with_a_larger_eps() -> None:
    assert_as_written(__file__, GROUPS, "fixed, larger eps")


def test_grown() -> None:
    assert_as_written(__file__, GROUPS, "grown")


def test_grown_with_a_large_eps() -> None:
    assert_as_written(__file__, GROUPS, "grown, large eps")


def test_levels() -> None:
    assert_as_written(__file__, GROUPS, "levels")


def test_row_sums() -> None:
    assert_as_written(__file__, GROUPS, "row sums")


def test_checked() -> None:
    assert_as_written(__file__, GROUPS, "checked")


def test_screened() -> None:
    assert_as_written(__file__, GROUPS, "screened")


def test_rounded() -> None:
    assert_as_written(__file__, GROUPS, "rounded")


def test_fixed_with_a_large_eps() -> None:
    assert_as_written(__file__, GROUPS, "fixed, large eps")


def test_screened_with_a_large_eps() -> None:
    assert_as_written(__file__, GROUPS, "screened, large eps")


def test_rounded_with_a_large_eps() -> None:
    assert_as_written(__file__, GROUPS, "rounded, large eps")
