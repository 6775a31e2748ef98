"""Random problems against brute force: what is wrong is noticed."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from unittest.mock import patch

import numpy as np
import pytest

import judge
import zoo
from blockspca.certify.screening import Screening
from blockspca.search import averaging as growth
from blockspca.status import Status

FILE = Path(__file__).parents[2] / "benchmarks" / "soundness.py"


@pytest.fixture
def soundness() -> Iterator[ModuleType]:
    before = list(sys.path)
    spec = importlib.util.spec_from_file_location("benchmark_soundness", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]
    sys.path[:] = before


def test_two_hundred_problems_are_all_right() -> None:
    """Those that a run begins with; `benchmarks/soundness.py` goes on."""
    count, wrong, seed = 0, [], 0
    while count < 200:
        problem = zoo.problem(seed)
        wrong += [(seed, one) for one in judge.judge(problem, seed)]
        count, seed = count + problem.d, seed + 1
    assert wrong == []


def test_every_family_and_change_is_drawn() -> None:
    kinds = [zoo.problem(seed).kind for seed in range(1500)]
    for name in [*zoo.FAMILIES, *(change.__name__ for change in zoo.CHANGES), "data"]:
        assert any(name in kind for kind in kinds), name
    sizes = {zoo.problem(seed).d for seed in range(100)}
    assert sizes == set(range(3, 11))


def test_a_problem_is_a_function_of_its_seed() -> None:
    for seed in range(30):
        one, other = zoo.problem(seed), zoo.problem(seed)
        np.testing.assert_array_equal(one.A, other.A)
        assert one.kind == other.kind


def test_the_reference_is_the_optimum() -> None:
    """Of matrices whose optima are known: k of a matrix of ones, and a spike."""
    ones = zoo.Reference(np.ones((7, 7)))
    spike = np.diag([3.0, 0.0, 0.0, 0.0]) - 5 * np.diag([0.0, 0.0, 1.0, 1.0])
    for k in range(1, 8):
        assert k * (1 - 1e-17 * 100) <= ones.reached[k] <= k
    assert zoo.Reference(spike).reached == pytest.approx(dict.fromkeys(range(1, 5), 3))
    A = np.diag([1.0, 1.0, -1e9])
    A[0, 1] = A[1, 0] = 0.5
    found = zoo.Reference(A)
    assert 1.5 * (1 - 2 * zoo.EPS) <= found.reached[3] <= 1.5  # not 1.5 ± 1e-7
    assert found.scale(3) in (1.0, 1e9)
    assert found.above(2, 1.4).tolist() == [[True, True, False]]
    with pytest.raises(ValueError, match="184756 supports of a size"):
        zoo.Reference(np.eye(20))
    assert list(zoo.Reference(2 * np.eye(20), 2).reached) == [1, 2]


def case_of(A: np.ndarray) -> judge.Case:
    return judge.Case.of(zoo.from_matrix(A), 0)


GOOD = {
    "x": np.array([1.0, 1.0, 0.0]) / np.sqrt(2),
    "support": np.array([0, 1]),
    "objective": 3.0,
    "upper_bound": 3.0 + 1e-12,
    "status": Status.OPTIMAL,
}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, None),
        ({"upper_bound": 3.0 - 1e-15}, "the bound is"),
        ({"upper_bound": np.nan}, "the bound is"),
        ({"upper_bound": 3.0 + 1e-5}, "optimal with a gap"),
        ({"upper_bound": 3.0 + 1e-5, "status": Status.TIME_LIMIT}, None),
        ({"objective": 3.0 + 1e-12}, "the objective is"),
        ({"x": np.array([0.0, 0.0, 1.0])}, "x has"),
        (
            {
                "x": np.array([0.0, 0.0, 1.0]),
                "support": np.array([2]),
                "objective": 2.5,
            },
            "optimal is",
        ),
        ({"x": np.array([1.0, 1.0, 1e-9]) / np.sqrt(2)}, "x has"),
        ({"x": np.array([1.0, 1.0, 0.0]) / 1.41421}, "the norm"),
    ],
)
def test_a_wrong_statement_is_noticed(changes: dict, said: str | None) -> None:
    A = np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.1], [0.0, 0.1, 2.5]])
    result = SimpleNamespace(**{**GOOD, **changes})
    wrong = list(judge.solution(case_of(A), "test", 2, result))
    texts = [one.text for one in wrong]
    if said is None:
        assert texts == []
    else:
        assert any(text.startswith(said) for text in texts), texts


def test_a_wrong_bound_of_a_prover_is_noticed() -> None:
    """Each prover, made wrong, is caught on one of a few problems."""
    outcome = growth.AveragingOutcome(True, None, 0, 0)
    lies = {
        judge.refutations: patch.object(
            growth, "no_support_above", lambda *a, **b: outcome
        ),
        judge.trees: patch.object(judge.ProofTree, "advance", lambda *a: 0),
        judge.parts: patch.object(judge, "connected_parts", lambda *a: []),
        judge.plain_searches: patch.object(
            judge.plain_proof, "prove_none_above", lambda *a: 1
        ),
        judge.spectral: patch.object(
            judge,
            "spectral_fixing",
            lambda A, *a: SimpleNamespace(
                candidates=np.arange(len(A) - 1), fixed_in=np.arange(0)
            ),
        ),
        judge.screenings: patch.object(
            judge.AdaptiveScreening, "survivors", lambda *a: np.arange(1)
        ),
        judge.by_variance: patch.object(Screening, "unscanned", lambda *a: 0),
        judge.closed_forms: patch.object(judge, "row_sum_bound", lambda *a: -1e300),
    }
    for ask, lie in lies.items():
        with lie:
            found = [
                one
                for seed in range(12)
                for one in judge.judge(zoo.problem(seed), seed, {ask: 1})
            ]
        assert found, ask.__name__
        assert all(one.k > 0 for one in found)


def test_a_run_goes_on_where_it_ended(
    soundness: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = []

    def batch(first: int, last: int) -> tuple:
        calls.append((first, last))
        wrong = [{"seed": 3, "kind": "a", "d": 5, "prover": "p", "k": 2, "text": "no"}]
        return first, last, 5 * (last - first), wrong if first == 0 else []

    class Pool:
        def __init__(self, jobs: int) -> None: ...
        def __enter__(self) -> Pool:
            return self

        def __exit__(self, *args: object) -> None: ...
        def submit(self, run: object, *args: int) -> object:
            future: soundness.Future = soundness.Future()
            future.set_result(batch(*args))
            return future

    state = tmp_path / "deep" / "state.json"
    with patch.object(soundness, "ProcessPoolExecutor", Pool):
        words = ["--state", str(state), "--problems"]
        assert soundness.main([*words, "1000"]) == 1
        seeds = soundness.BATCH
        first = len(calls)
        assert calls == [(i * seeds, (i + 1) * seeds) for i in range(first)]
        assert soundness.main([*words, str(5 * seeds * first + 1)]) == 1
        assert calls[first][0] == first * seeds
        written = json.loads(state.read_text(encoding="utf-8"))
        assert written["done"] == [[0, len(calls) * seeds]]
        assert written["problems"] == 5 * len(calls) * seeds
        assert [one["seed"] for one in written["wrong"]] == [3]
        written["sources"] = "another"
        state.write_text(json.dumps(written), encoding="utf-8")
        calls.clear()
        soundness.main([*words, "10"])
        assert calls[0] == (0, seeds)
    said = capsys.readouterr().out
    assert "WRONG: seed 3 (a, d = 5), k = 2: p: no" in said
    assert "starting again" in said


def test_one_seed_alone(
    soundness: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    lie = judge.Wrong("growth", 3, "refutes what is reached")
    with patch.object(judge, "judge", lambda *a: [lie]):
        assert soundness.main(["--seed", "5"]) == 1
    said = capsys.readouterr().out
    assert "WRONG: seed 5" in said
    assert "k = 3: growth: refutes what is reached" in said
