"""Mutants of the provers: does a test notice when an inequality is wrong?

    python benchmarks/mutation.py                          all files, both suites
    python benchmarks/mutation.py --files averaging screen    some of them
    python benchmarks/mutation.py --limit 50               the next fifty mutants
    python benchmarks/mutation.py --list                   name the mutants, run none

A mutant is a prover's source with one change: an inequality turned round (`<` into `>`,
`<=` into `>=`; not `<` into `<=`), an allowance for rounding dropped, a minimum for a
maximum. It is made in memory; no file is edited. First the fast suite runs
(`tests/adversarial`, plain functions, kernels as Python) for the provers that it goes
into, then, for what survives it, the tests of the mutated module by pytest. A mutant
that does not end in time counts as killed and is told apart. `mutation_survivors.md`
explains survivors by their source text: changes that only cost time, or are no change
at all.

What is done is written to a file, so that a run goes on where the last one ended. A
result holds for the source of its file; after a change to the tests, give another
state.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from mutants import SOURCE, Finder, Mutant, mutants_of

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

ROOT = Path(__file__).parents[1]
SUITE = ROOT / "tests" / "adversarial"
EXPLAINED = Path(__file__).with_name("mutation_survivors.md")
PATIENCE = 5.0  # times what a test takes without a mutant, in seconds of the CPU
AT_LEAST = 2.0
LONG_SECONDS = 900.0

#: Each prover and the tests that are run if the fast suite does not kill a mutant.
FILES: dict[str, tuple[str, ...]] = {
    "_kernels/averaging.py": ("search/test_averaging",),
    "_kernels/schur_tree.py": (
        "adversarial/test_golden_groups",
        "_kernels/test_kernels",
        "certify/test_path",
    ),
    "_kernels/screen.py": (
        "_kernels/test_kernels",
        "certify/test_path",
    ),
    "_kernels/selection.py": (
        "adversarial/test_golden_searches",
        "_kernels/test_kernels",
    ),
    "_kernels/set_lists.py": (
        "adversarial/test_golden_groups",
        "certify/test_path",
        "inspection/test_alternatives",
    ),
    "search/averaging.py": ("search/test_averaging",),
    "certify/screening.py": (
        "adversarial/test_golden_groups",
        "certify/test_path",
    ),
    "certify/adaptive_screening.py": ("certify/test_path",),
    "search/spectral.py": (
        "search/test_spectral",
        "certify/test_path",
    ),
    "search/parts.py": ("certify/test_path",),
    "search/schur_tree.py": (
        "_kernels/test_kernels",
        "certify/test_path",
    ),
    "search/reference.py": (
        "adversarial/test_golden_groups",
        "search/test_reference",
        "certify/test_verify",
    ),
    "search/portfolio.py": (
        "adversarial/test_golden_groups",
        "search/test_portfolio",
        "certify/test_path",
    ),
    "certify/path.py": ("adversarial/test_golden_policy", "certify/test_path"),
    "certify/chain.py": ("adversarial/test_golden_groups", "certify/test_path"),
    "certify/conclude.py": ("certify/test_path", "certify/test_alarms"),
    "bounds/closed_form.py": (
        "covariance/test_contrast",
        "bounds/test_closed_form",
        "bounds/test_best",
    ),
    "bounds/smaller_k.py": ("bounds/test_smaller_k",),
    "bounds/best.py": (
        "adversarial/test_golden_policy",
        "adversarial/test_golden_joint",
        "bounds/test_best",
    ),
    "numerics/upper_eigenvalues.py": (
        "adversarial/test_golden_joint",
        "bounds/test_closed_form",
        "bounds/direction_dual/test_relaxation",
    ),
    "bounds/direction_dual/relaxation.py": (
        "bounds/test_closed_form",
        "bounds/direction_dual/test_relaxation",
        "bounds/direction_dual/test_search_threads",
    ),
    "bounds/direction_dual/fixing.py": (
        "adversarial/test_golden_dual",
        "bounds/direction_dual/test_fixing",
    ),
    "bounds/direction_dual/density.py": (
        "bounds/direction_dual/test_density",
        "bounds/direction_dual/test_coordinates",
    ),
    "bounds/direction_dual/problem.py": (
        "adversarial/test_golden_policy",
        "adversarial/test_golden_dual",
        "bounds/direction_dual/test_relaxation",
        "bounds/test_closed_form",
    ),
    "bounds/direction_dual/node.py": (
        "bounds/direction_dual/test_search",
        "bounds/direction_dual/test_coordinates",
    ),
    "bounds/direction_dual/search.py": (
        "bounds/direction_dual/test_search",
        "bounds/test_closed_form",
    ),
    "bounds/direction_dual/ascent.py": (
        "adversarial/test_golden_dual",
        "bounds/direction_dual/test_search",
        "bounds/direction_dual/test_coordinates",
        "bounds/direction_dual/test_fixing",
    ),
    "bounds/entry_dual/proof.py": (
        "adversarial/test_golden_entries",
        "bounds/entry_dual/test_bound",
    ),
    "bounds/entry_dual/check.py": (
        "adversarial/test_golden_entries",
        "bounds/entry_dual/test_bound",
        "bounds/entry_dual/test_claim",
    ),
    **{
        f"certify/{name}.py": (
            "adversarial/test_golden_claims",
            "adversarial/test_golden_groups",
            "certify/test_claims",
            "certify/test_verify",
        )
        for name in ("verify", "claims", "searched_claims")
    },
}
_ENTRY_DUAL = (
    "adversarial/test_golden_entries",
    "adversarial/test_golden_joint",
    *(
        f"bounds/entry_dual/test_{name}"
        for name in ("screening", "ulps", "claim", "forged", "search")
    ),
)
#: Provers that the fast suite does not go into, and their tests, which are quick. The
#: ascents of the entry dual and of shared supports prove nothing by themselves.
OTHERS: dict[str, tuple[str, ...]] = {
    "numerics/rounding.py": (
        "numerics/test_rounding",
        "adversarial/test_golden_entries",
        "bounds/entry_dual/test_ulps",
        "bounds/entry_dual/test_screening",
        "components/test_joint_split",
    ),
    **{
        f"bounds/entry_dual/{name}.py": _ENTRY_DUAL
        for name in ("fixing", "screening", "search", "log", "pairs")
    },
    "components/joint_entries.py": (
        "adversarial/test_golden_joint",
        "components/test_joint_entries",
        "components/test_joint_split",
    ),
    "components/joint_split.py": (
        "adversarial/test_golden_joint",
        "components/test_joint_split",
    ),
    "components/earlier.py": ("components/test_earlier",),
    "components/shared_bounds.py": (
        "adversarial/test_golden_policy",
        "adversarial/test_golden_joint",
        "components/test_shared_support",
    ),
    "components/shared_tree.py": ("components/test_shared_tree",),
    "certify/nonnegative.py": (
        "adversarial/test_golden_joint",
        "certify/test_nonnegative",
        "certify/test_constrained",
    ),
    "certify/whole_groups.py": (
        "adversarial/test_golden_joint",
        "certify/test_whole_groups",
    ),
}

# -- the fast suite, in a process of its own for each mutant ---------------------------


def fast_tests() -> Iterator[tuple[str, Any]]:
    """Import the fast suite and yield its functions."""
    for path in sorted(SUITE.glob("test_*.py")):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for name, function in list(vars(module).items()):
            if name.startswith("test_"):
                yield f"{path.stem}.{name}", function


def _concerns(test: str, mutant: Mutant) -> bool:
    """Whether a test can notice; those that take long are for some files."""
    parts = {
        "duals": ("dual", "density", "bound", "eigenvalues"),
        "entries": ("entry_dual", "eigenvalues"),
        "verification": ("verify", "claims", "reference", "parts", "bound"),
    }
    return all(
        word not in test or any(part in mutant.file for part in concerned)
        for word, concerned in parts.items()
    )


class _TooLong(BaseException):
    """A test took much longer than it does without a mutant."""


def _give_up(*_: object) -> None:
    raise _TooLong


def _child(mutant: Mutant | None, times: dict[str, float], answer: int) -> None:
    """Run the fast suite on a mutant and write the name of the test that fails.

    Without a mutant, write what each test takes.
    """
    said, running = "survived", "import"
    taken = {}
    signal.signal(signal.SIGPROF, _give_up)
    try:
        if mutant is not None:
            sys.meta_path.insert(0, Finder(mutant))
        for running, test in fast_tests():
            if mutant is not None:
                if not _concerns(running, mutant):
                    continue
                limit = AT_LEAST + PATIENCE * times[running]
                signal.setitimer(signal.ITIMER_PROF, limit)
            started = time.process_time()
            test()
            taken[running] = time.process_time() - started
    except _TooLong:
        said = f"timeout in {running}"
    except BaseException as error:
        said = f"killed by {running}"
        if mutant is None:
            traceback.print_exception(error)
    if mutant is None and said == "survived":
        said = json.dumps(taken)
    os.write(answer, said.encode())


def fast(mutant: Mutant | None, times: dict[str, float]) -> str:
    """Return "survived", "killed by …" or "timeout in …"."""
    mine, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(mine)
        if mutant is not None:
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
        try:
            _child(mutant, times, theirs)
        finally:
            os._exit(0)
    os.close(theirs)
    # A loop in C, or threads that wait for one another, do not hear of a signal.
    ends = time.monotonic() + 100 + 3 * PATIENCE * sum(times.values())
    if mutant is None:
        ends = float("inf")
    while not (ended := os.waitpid(pid, os.WNOHANG)[0]) and time.monotonic() < ends:
        time.sleep(0.01)
    if not ended:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    said = os.read(mine, 1 << 16).decode() if ended else "timeout"
    os.close(mine)
    return said or "killed by a crash"


def prepare() -> None:
    """Import what every mutant needs and none changes: a fork then has it."""
    os.environ["NUMBA_DISABLE_JIT"] = "1"
    sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]
    for name in (
        "numba",
        "scipy.sparse.csgraph",
        "scipy.linalg",
        "scipy.optimize",
        "sklearn.base",
        "joblib",
        "hypothesis",
        "pytest",
        "unittest.mock",
    ):
        importlib.import_module(name)


# -- the tests of the module, by pytest ------------------------------------------------


def long(mutant: Mutant, seconds: float = LONG_SECONDS) -> str:
    """Run the tests of the mutated module; kernels are Python if one is mutated."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    environment.pop("NUMBA_DISABLE_JIT", None)
    if mutant.file.startswith("_kernels"):
        environment["NUMBA_DISABLE_JIT"] = "1"
    folder = ROOT / "tests"
    tests = [str(folder / f"{name}.py") for name in (FILES | OTHERS)[mutant.file]]
    given = json.dumps([mutant.file, mutant.position, *tests])
    command = [sys.executable, str(Path(__file__)), "--pytest", given]
    try:
        done = subprocess.run(
            command, env=environment, timeout=seconds, capture_output=True, text=True
        )
    except subprocess.TimeoutExpired:
        return "timeout"
    if done.returncode == 0:
        return "survived"
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.M)
    return f"killed by {Path(failed[0]).name if failed else 'pytest'}"


def run_pytest(given: str) -> int:
    """Run pytest with a mutant in place (in the process that `long` starts)."""
    import pytest

    file, position, *tests = json.loads(given)
    if position >= 0:
        sys.meta_path.insert(0, Finder(mutants_of(file)[position]))
    # What compares compiled code with its source has no compiled code here.
    deselect = "not signature and not python_source and not data"
    words = ["-x", "-q", "-p", "no:cacheprovider", "-k", deselect]
    return int(pytest.main([*words, "-m", "not data", *tests]))


# -- results ---------------------------------------------------------------------------


def digest(paths: Sequence[Path]) -> str:
    found = hashlib.sha256()
    for path in paths:
        found.update(path.read_bytes())
    return found.hexdigest()[:16]


def explanations() -> dict[str, str]:
    """Read the explained survivors: lines "- `key` — why" of the Markdown file."""
    if not EXPLAINED.exists():
        return {}
    found = {}
    for line in EXPLAINED.read_text(encoding="utf-8").splitlines():
        if line.startswith("- ") and " — " in line:
            key, why = line[2:].split(" — ", 1)
            found[key] = why
    return found


@dataclass
class Results:
    """What became of each mutant, by its key; kept in a file."""

    path: Path
    content: dict[str, dict[str, Any]]

    @classmethod
    def load(cls, path: Path) -> Results:
        content = {}
        if path.exists():
            content = json.loads(path.read_text(encoding="utf-8"))
        return cls(path, content)

    def get(self, mutant: Mutant, version: str) -> str | None:
        """What is known for this version; killed stays killed while the file does."""
        known = self.content.get(mutant.key)
        if known is None or known["version"] != version:
            return None
        return str(known["said"])

    def put(self, mutant: Mutant, version: str, said: str) -> None:
        self.content[mutant.key] = {"version": version, "said": said}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        other = self.path.with_suffix(".new")
        other.write_text(json.dumps(self.content, indent=0), encoding="utf-8")
        other.replace(self.path)


def table(chosen: list[Mutant], results: Results, versions: dict[str, str]) -> str:
    """Return a Markdown table by file, and the survivors that nothing explains."""
    known = explanations()
    rows, open_ = [], []
    total: Counter[str] = Counter()
    for file in dict.fromkeys(mutant.file for mutant in chosen):
        counts: Counter[str] = Counter()
        for mutant in (m for m in chosen if m.file == file):
            said = results.get(mutant, versions[file])
            if said is None:
                counts["not run"] += 1
                continue
            counts["run"] += 1
            counts["timeout"] += said.startswith("timeout")
            if not said.startswith("survived"):
                counts["killed"] += 1
            elif mutant.key in known:
                counts["explained"] += 1
            else:
                counts["open"] += 1
                open_.append(f"{mutant.file}:{mutant.line}: {mutant.key}")
        total += counts
        rows.append((file, counts))
    heads = ("run", "killed", "timeout", "explained", "open", "not run")
    lines = ["| file | " + " | ".join(heads) + " | killed or explained |"]
    lines.append("| --- |" + " ---: |" * (len(heads) + 1))
    for file, counts in [*rows, ("all", total)]:
        share = (counts["killed"] + counts["explained"]) / max(counts["run"], 1)
        cells = " | ".join(str(counts[head]) for head in heads)
        lines.append(f"| {file} | {cells} | {share:.1%} |")
    return "\n".join([*lines, "", *open_])


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--files", nargs="*", help="parts of their names; all if none")
    parser.add_argument("--limit", type=int, help="mutants to run, at the most")
    parser.add_argument("--state", type=Path, default=ROOT / "build" / "mutation.json")
    parser.add_argument("--fast", action="store_true", help="the fast suite only")
    parser.add_argument("--again", action="store_true", help="run survivors again")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--pytest", help=argparse.SUPPRESS)
    given = parser.parse_args(words)
    if given.pytest:
        return run_pytest(given.pytest)
    names = [
        file
        for file in FILES | OTHERS
        if not given.files or any(part in file for part in given.files)
    ]
    chosen = [mutant for file in names for mutant in mutants_of(file)]
    if given.list:
        for mutant in chosen:
            print(f"{mutant.line:5d}  {mutant.key}")
        print(f"{len(chosen)} mutants")
        return 0
    prepare()
    times: dict[str, float] = {}
    if not set(names) <= set(OTHERS):
        if not (said := fast(None, {})).startswith("{"):
            print(f"The fast suite fails without a mutant: {said}.")
            return 2
        times = json.loads(said)
        print(f"The fast suite takes {sum(times.values()):.1f} s.", flush=True)
    versions = {file: digest([SOURCE / file]) for file in names}
    results = Results.load(given.state)
    left = len(chosen) if given.limit is None else given.limit
    for mutant in chosen:
        known = results.get(mutant, versions[mutant.file])
        done = known is not None and not (given.again and known.startswith("survived"))
        if known == "survived fast" and not given.fast:
            done = False
        if done:
            continue
        if left == 0:
            break
        left -= 1
        said = "survived fast"
        if mutant.file not in OTHERS and (known != said or given.again):
            said = fast(mutant, times)
            said = "survived fast" if said == "survived" else said
        if said == "survived fast" and not given.fast:
            said = long(mutant)
        results.put(mutant, versions[mutant.file], said)
        if said.startswith("survived"):
            print(f"{mutant.line:5d}  {mutant.key}", flush=True)
    print(table(chosen, results, versions))
    return 0


if __name__ == "__main__":
    sys.exit(main())
