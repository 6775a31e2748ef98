"""Mutants: every kind of change is made, one at a time, and reported as it ended."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"

TEXT = '''
def widened(values, allowance, tau):
    """Sum of what is above τ."""
    total = 0.0
    for value in values:
        if 0 < value <= tau:
            total += min(value, tau) + 2 * allowance
    total *= 1 - 1e-12
    margin = tau - total
    return max(total - margin, 0.0)
'''


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(FOLDER))
    before = set(sys.modules)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield importlib.import_module("mutation")
    for name in set(sys.modules) - before:
        if str(FOLDER) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.fixture
def mutants(
    scripts: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> ModuleType:
    module = sys.modules["mutants"]
    (tmp_path / "some.py").write_text(TEXT, encoding="utf-8")
    monkeypatch.setattr(module, "SOURCE", tmp_path)
    return module


def value_of(module: ModuleType, mutant: object) -> float:
    space: dict = {}
    exec(module.code_of(mutant), space)
    return space["widened"]([1.0, 2.0, 5.0], 0.125, 3.0)


def test_each_change_is_found_and_made(mutants: ModuleType) -> None:
    found = mutants.mutants_of("some.py")
    assert [(one.kind, one.text, one.which) for one in found] == [
        ("zero", "return max(total - margin, 0.0)", 0),
        ("turned", "0 < value <= tau", 0),
        ("turned", "0 < value <= tau", 1),
        ("dropped", "min(value, tau) + 2 * allowance", 0),
        ("swapped", "min(value, tau)", 0),
        ("dropped", "1 - 1e-12", 0),
        ("zero", "margin = tau - total", 0),
        ("swapped", "max(total - margin, 0.0)", 0),
        ("dropped", "total - margin", 0),
    ]
    original = 2 * 3.5 - 3.0
    for one in found:
        if one.text != "1 - 1e-12":
            assert value_of(mutants, one) != pytest.approx(original), one.key
    assert len({one.key for one in found}) == len(found)


def test_the_key_survives_an_edit_elsewhere(
    mutants: ModuleType, tmp_path: Path
) -> None:
    keys = {one.key for one in mutants.mutants_of("some.py")}
    (tmp_path / "some.py").write_text("import math\n\n" + TEXT, encoding="utf-8")
    assert {one.key for one in mutants.mutants_of("some.py")} == keys


def test_a_mutant_takes_the_place_of_its_module(
    mutants: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    swapped = next(m for m in mutants.mutants_of("some.py") if m.kind == "swapped")
    monkeypatch.setattr(sys, "meta_path", [mutants.Finder(swapped), *sys.meta_path])
    module = importlib.import_module("blockspca.some")
    del sys.modules["blockspca.some"]
    assert module.widened([1.0], 0.0, 3.0) == pytest.approx(3.0)  # max, not min


def test_every_prover_has_mutants_and_tests(scripts: ModuleType) -> None:
    for file, tests in scripts.FILES.items():
        assert (scripts.SOURCE / file).exists(), file
        assert scripts.mutants_of(file), file
        for name in tests:
            assert (scripts.ROOT / "tests" / f"{name}.py").exists()


def test_what_ended_how_is_told(
    scripts: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Killed, out of time, explained and open; and a second run has nothing to do."""
    mutants = scripts.mutants_of("search/parts.py")
    calls = []

    def fast(mutant: object, times: dict) -> str:
        if mutant is None:
            return json.dumps({"test": 1.0})
        calls.append(mutant)
        ends = ["killed by a.b", "timeout in a.b", "survived", "survived"]
        return ends[mutants.index(mutant)]

    monkeypatch.setattr(scripts, "prepare", lambda: None)
    monkeypatch.setattr(scripts, "fast", fast)
    monkeypatch.setattr(scripts, "long", lambda mutant: "survived")
    why = tmp_path / "why.md"
    why.write_text(f"# Survivors\n\n- {mutants[2].key} — no change\n", encoding="utf-8")
    monkeypatch.setattr(scripts, "EXPLAINED", why)
    words = ["--files", "parts", "--state", str(tmp_path / "state.json")]
    assert scripts.main([*words, "--limit", "1"]) == 0
    assert scripts.main(words) == 0
    assert calls == mutants
    said = capsys.readouterr().out
    assert "| search/parts.py | 4 | 2 | 1 | 1 | 1 | 0 | 75.0% |" in said
    assert said.rstrip().endswith(mutants[3].key)
    assert scripts.main(words) == 0
    assert calls == mutants


def test_the_fast_suite_kills_a_mutant(scripts: ModuleType) -> None:
    """In a process of its own: an eigenvalue bound without its allowance."""
    import subprocess

    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import mutation as m\n"
        "m.prepare()\n"
        "m.fast_tests_of = m.fast_tests\n"
        "m.fast_tests = lambda: ((n, t) for n, t in m.fast_tests_of() if 'large' in n"
        " and 'formulas' in n)\n"
        "name = 'test_golden_bounds.test_formulas_with_a_large_eps'\n"
        "found = m.mutants_of('numerics/upper_eigenvalues.py')\n"
        "drop = next(x for x in found if x.kind == 'dropped' and 's + (n' in x.text)\n"
        "print(m.fast(drop, {name: 5.0}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(FOLDER)], capture_output=True, text=True
    )
    assert "killed by test_golden_bounds.test_formulas_with" in done.stdout, done.stderr
