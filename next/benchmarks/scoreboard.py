"""Compare two packages, BASE and NEW, in the same run: speed, proofs and gaps.

    python benchmarks/scoreboard.py BASE NEW [--quick] [--rows PATTERN]

BASE and NEW are `PYTHON` or `PYTHON:SOURCES`: the interpreter of an environment, and
the folder that its PYTHONPATH gets. PATTERN is a regular expression for names
of rows; `--quick` takes some of each kind. BLOCKSPCA_DATA names the data. Run
`blockspca compile` with both before: a limit does not wait for compilers.

Speed: the median of five alternating runs, or of three if a run takes more than 2 s; a
row is slower if NEW takes above 1.15 times and above 0.05 s more, twice. Reach: a limit
of 10 s on both sides; a row is worse if NEW proves less, or has a gap above 1.1 times
that of BASE + 0.02 %, with 10 s and again with 20 s. The exit code is 1 if any row is.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import select
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

HERE = Path(__file__).resolve().parent
DATA = Path(os.environ.get("BLOCKSPCA_DATA", HERE.parents[2] / "shared" / "data"))
BASE = json.loads((HERE / "results/base/components.json").read_text("utf-8"))
PATIENCE = 300.0  # seconds until a side that does not answer is ended
Facts = dict[str, Any]  # proved, gap, and seconds if a run measures them itself
Run = Callable[[], Facts]


class Package:
    """The public names of one side, and the calls that differ."""

    def __init__(self) -> None:
        import blockspca

        self.module: Any = blockspca
        self.old = blockspca.__version__.startswith("0.")
        self.evidence = {"proof": True} if self.old else {}  # new results have it

    def __getattr__(self, name: str) -> Any:
        try:
            return getattr(self.module, name)
        except AttributeError:
            raise NotImplementedError(name) from None

    def covariance(self, array: Any, scale: bool = False) -> Any:
        """Return the covariance, or the correlations if `scale`."""
        if array.shape[0] == array.shape[1]:
            roots = np.sqrt(np.diagonal(array)) if scale else np.ones(len(array))
            return self.Covariance.from_matrix(array / np.outer(roots, roots))
        return self.Covariance.from_data(array, scale=scale, constant="ignore")


def python(*words: str, **environment: str) -> str:
    """Run this interpreter in a new process; return what it prints."""
    command, everything = [sys.executable, *words], os.environ | environment
    return subprocess.check_output(command, env=everything, text=True)


def facts(results: Iterable[Any]) -> Facts:
    """Return how many results are proved, and the largest gap of the others."""
    gaps = [0.0 if r.status.value == "optimal" else float(r.gap) for r in results]
    return {"proved": gaps.count(0.0)} | ({"gap": max(gaps)} if any(gaps) else {})


def load(name: str) -> Any:
    with np.load(DATA / f"{name}.npz", allow_pickle=False) as file:
        for key in {"A", "X"} & set(file):
            return file[key].astype(float)
    return sp.load_npz(DATA / f"{name}.npz").astype(float)


def expression(d: int, n_alike: int = 0) -> np.ndarray:
    """100 samples; groups of 50 features share a factor, `n_alike` nearly agree."""
    rng = np.random.default_rng(0)
    X = np.empty((100, d))
    for i in range(0, d, 50):
        loading = rng.uniform(0.5, 0.95, size=50)
        deviation = np.exp(rng.normal(0, 0.5) + rng.normal(0, 0.2, size=50))
        block = rng.normal(size=(100, 50)) * np.sqrt(1 - loading**2)
        X[:, i : i + 50] = (block + rng.normal(size=(100, 1)) * loading) * deviation
    noise = 0.2 * rng.normal(size=(100, n_alike))
    X[:, :n_alike] = noise + rng.normal(size=(100, 1))
    return X


def cells(n: int, d: int) -> Any:
    """Logarithms of counts of six types of cells, each with forty markers (CSR)."""
    rng = np.random.default_rng(0)
    types = rng.integers(0, 6, n)
    X = sp.random_array((n, d), density=0.05, rng=rng, format="csr")
    X.data = rng.poisson(2 * rng.gamma(1, 1, X.nnz)) + 1.0
    for group in range(6):
        own = np.flatnonzero(types == group)
        more = sp.random_array((len(own), 40), density=0.6, rng=rng, format="coo")
        more.data = rng.poisson(6, more.nnz) + 1.0
        place = (own[more.coords[0]], 40 * group + more.coords[1])
        X = X + sp.coo_array((more.data, place), shape=(n, d)).tocsr()
    X.data = np.log1p(X.data)
    return X


def model_1() -> np.ndarray:
    """Model 1 of the paper: 30 blocks of 20 features, plus noise."""
    rng = np.random.default_rng(42)
    A = np.zeros((600, 600))
    for i in range(0, 600, 20):
        M = rng.standard_normal((100, 20))
        A[i : i + 20, i : i + 20] = M.T @ M / 100
    noise = np.triu(rng.normal(scale=0.1, size=(600, 600)))
    return A + noise + np.triu(noise, 1).T


def solving(call: str, data: Any, sizes: Any, scale: Any, bs: Any, limit: float) -> Run:
    """Time a public function from data to results; as below, return the run."""
    function, limits = getattr(bs, call), bs.Limits(time=limit)
    options = {"scheme": "residual"} if call == "solve_components" else {}
    array = load(data) if isinstance(data, str) else data()

    def run() -> Facts:
        found = function(bs.covariance(array, scale), *sizes, limits=limits, **options)
        found = found.values() if call == "solve_path" else found
        return facts(found if call in ("solve_path", "solve_components") else [found])

    return run


def verifying(name: str, k: int, bs: Any, limit: float) -> Run:
    cov = bs.covariance(array := load(name))
    result = bs.solve(cov, k, limits=bs.Limits(time=limit), **bs.evidence)
    data = {"data": array} if bs.old else {}
    return lambda: {"verified": repr(bs.verify(result, cov, **data))}


def checking(name: str, k: int, bs: Any, limit: float) -> Run:
    """Check the proof of a path in a process of its own."""
    folder, array = Path(tempfile.mkdtemp()), load(name)
    np.save(folder / "data.npy", array)
    results = bs.solve_path(bs.covariance(array), k, **bs.evidence)
    results.write_proof(folder / "proof", *(() if bs.old else (array,)))
    words = ("-m", "blockspca.checker", *(("--floats",) if bs.old else ()))
    return lambda: {"printed": python(*words, f"{folder}/proof", f"{folder}/data.npy")}


def starting(code: str, cold: bool, bs: Any, limit: float) -> Run:
    """Run code in a new process, if need be with an empty cache of kernels."""
    code = f"from time import perf_counter as t; s = t(); {code}; print(t() - s)"
    _ = bs.solve if "solve" in code else None

    def run() -> Facts:
        with tempfile.TemporaryDirectory() as cache:
            place = {"NUMBA_CACHE_DIR": cache} if cold else {}
            return {"seconds": float(python("-c", code, **place))}

    run()
    return run


def constrained(name: str, bs: Any, limit: float) -> Run:
    """Solve under six constraints, k = 10, with a sixth of the limit for each."""
    cov, limits = bs.covariance(load(name)), bs.Limits(time=limit / 6)
    free = bs.solve(cov, 10, limits=bs.Limits(time=60))
    own, rng = free.support.tolist(), np.random.default_rng(0)
    order = np.argsort(-np.abs(cov.matvec(free.x)), kind="stable")
    near = [int(i) for i in order if i not in own]
    rules = (
        bs.Constraints(include=near[:2]),
        bs.Constraints(include=rng.permutation(len(order))[:2].tolist()),
        bs.Constraints(exclude=own[:3]),
        bs.Constraints(groups=rng.integers(0, 5, len(order)), max_per_group=2),
        bs.Constraints(nonnegative=True),
        bs.Constraints(overlap_with=near[:10], min_overlap=3),
    )
    solve = partial(bs.solve, cov, 10, limits=limits)
    return lambda: facts([solve(constraints=rule) for rule in rules])


def unproved(name: str, k: int, peers: Any, bs: Any, limit: float) -> Run:
    """Count predictive numbers above those of peers, or miss a share of the trace."""
    array, m = load(name), 5 if peers else 4
    options = {"scheme": "orthogonal", "sweeps": 1, "limits": bs.Limits(time=limit)}
    options = {"scheme": "predictive"} if peers else options  # it uses up any limit

    def run() -> Facts:
        cov, size = bs.covariance(array), min(k, array.shape[1] // m)
        found = bs.solve_components(cov, size, m, certify=False, **options)
        if not peers:
            return {"gap": 1 - sum(found.explained_variance) / found.total_variance}
        adjusted = sum(found.adjusted_explained_variance) / found.total_variance
        ours = np.array([100 * adjusted, 100 * found.r2])
        return {"proved": int((ours > np.array(peers)).sum())}

    return run


def paper(bs: Any, limit: float) -> Run:
    """Count numbers that are as good as the paper's, and rows that are proved."""
    start = ("-m", "blockspca", "reproduce") if bs.old else (str(HERE / "paper"),)
    if not bs.old and not (HERE / "paper").is_dir():
        raise NotImplementedError("benchmarks/paper")

    def run() -> Facts:
        with tempfile.TemporaryDirectory() as folder:
            options = ("--quick", "--output", folder, "--data", str(DATA))
            for table in ("branch-and-bound", "chan"):
                python(*start, table, *options)
            text = "".join(p.read_text("utf-8") for p in Path(folder).glob("*.json"))
        return {"proved": len(re.findall(r': "(?:equal.*|better|proved)"', text))}

    return run


QUICK = re.compile(
    "path k<=15|k<=50 (Cov|Lym)|components (Cov|alon)|verify k=10|checker.* Leukemia|"
    "import|warm|k=29 CovColon|k=30 Lymphoma2|given k=100 CovColon|model 1 k=5|"
    "orthogonal k=5 |predictive (pitprops|Eisen1|Leukemia)|constraints (normL|CovC)"
)
PATHS = "Prostate Leukemia Lymphoma2 gordon singh golub_raw Arcene_train_valid BASEHOCK"
HARD = "CovColon alon_colon srbct_khan Leukemia Lymphoma2 ALLAML gordon Prostate_GE"
EASY = "normIonosphere normMiniBooNE normLung Eisen1Cov normCommunities Eisen2Cov "
EASY += "LymphomaCov1 madelon Reddit2000 golub_raw singh borovecki snp500"
FIRST = f"import numpy, blockspca as bs; A = numpy.load({str(DATA / 'CovColon.npz')!r})"


def rows() -> Iterator[tuple[str, Any]]:
    """Yield the name of each row and what prepares it."""

    def row(name: str, call: str, data: Any, *sizes: int, scale: bool = False) -> Any:
        return name, partial(solving, f"solve{call}", data, sizes, scale)

    for x in PATHS.split():
        yield row(f"speed path k<=15 {x}", "_path", x, 15)
    for x in ("CovColon", "LymphomaCov1", "Dorothea_train"):
        yield row(f"speed path k<=50 {x}", "_path", x, 50)
    for k in (200, 2000):
        yield row(f"speed solve k={k} Dorothea_train", "", "Dorothea_train", k)
    data: Any = partial(expression, 100_000, 60)
    yield row("speed 100 x 100000 standardised", "_path", data, 20, scale=True)
    data = partial(expression, 1_000_000)
    yield row("speed 100 x 1000000 raw", "_path", data, 20)
    data = partial(cells, 30_000, 5_000)
    yield row("speed components 30000 x 5000 sparse", "_components", data, 15, 4)
    for x in f"{HARD} LymphomaCov1 golub_raw".split():
        yield row(f"speed components {x}", "_components", x, 10, 5)
    for x in ("Prostate", "Lymphoma2", "Leukemia"):
        for k in (50, 200):
            yield row(f"speed panel k={k} {x}", "_shared", x, k, 5)
    for x, k in (("ALLAML", 10), ("Leukemia", 20), ("normLung", 20)):
        yield f"speed verify k={k} {x}", partial(verifying, x, k)
    for x in ("Leukemia", "Lymphoma2", "ALLAML"):
        yield f"speed checker k<=20 {x}", partial(checking, x, 20)
    solve = f"{FIRST}['A']; bs.solve(A, 10)"
    yield "speed import", partial(starting, "import blockspca", False)
    yield "speed first call warm", partial(starting, solve, False)
    yield "speed first call on an empty cache", partial(starting, solve, True)
    for x in HARD.split():
        for k in (29, 30, 100, *((300,) if x in "gordon srbct_khan Lymphoma2" else ())):
            yield row(f"reach correlations k={k} {x}", "", x, k, scale=True)
    for x in ("CovColon", "LymphomaCov1", "Reddit2000", "snp500"):
        for k in (100, 200):
            yield row(f"reach given k={k} {x}", "", x, k)
    yield row("reach path k<=20 ALLAML", "_path", "ALLAML", 20)
    for k in (5, 7):
        yield row(f"reach model 1 k={k}", "", model_1, k)
    for k in range(5, 36, 5):
        yield f"reach orthogonal k={k} snp500", partial(unproved, "snp500", k, None)
    for peer in BASE["tables"]["Components that predict"]:
        if isinstance(peer["SparsePCA"], list):  # a set that is not too large for it
            peers = [peer["SparsePCA"][:2], peer["MiniBatchSparsePCA"][:2]]
            x, _ = peer["data, d"].split(", ")
            yield f"reach predictive {x}", partial(unproved, x, 10, peers)
    for x in f"{EASY} {HARD}".split()[:-1]:
        yield f"reach constraints {x}", partial(constrained, x)
    yield "reach paper", paper


def work() -> None:
    """Answer requests, a row and its limit; keep the row until the next."""
    answers, sys.stdout = sys.stdout, sys.stderr  # the library may print
    package, table, kept, run = Package(), dict(rows()), None, None
    print(package.__file__, package.__version__, file=answers, flush=True)
    for line in sys.stdin:
        name, limit = request = json.loads(line)
        try:
            if kept != request:
                kept = run = None  # two rows may not fit into memory
                kept, run = request, table[name](package, limit)
            start = time.perf_counter()
            answer = run()
            answer.setdefault("seconds", time.perf_counter() - start)
        except NotImplementedError as error:
            answer = {"not built": str(error)}
        except Exception as error:
            answer = {"failed": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


class Side:
    """A process that runs rows with one package."""

    def __init__(self, place: str) -> None:
        self.python, _, sources = place.partition(":")
        self.options: Any = {"env": os.environ | {"PYTHONPATH": sources}, "text": True}
        self.process: Any = None
        self.start()

    def start(self) -> None:
        """Begin anew; a process without a parent ends by itself."""
        if self.process:
            self.process.kill()
        command = [self.python, __file__, "work"]
        pipes = dict.fromkeys(("stdin", "stdout"), subprocess.PIPE)
        self.process = subprocess.Popen(command, **pipes, **self.options)
        self.title = self.line()

    def line(self) -> str:
        ready = select.select([self.process.stdout], [], [], PATIENCE)[0]
        return self.process.stdout.readline().strip() if ready else ""

    def run(self, name: str, limit: float) -> Facts:
        print(json.dumps([name, limit]), file=self.process.stdin, flush=True)
        if answer := self.line():
            return json.loads(answer)
        self.start()
        return {"failed": "no answer"}


def measure(sides: list[Side], name: str, limit: float) -> list[Facts]:
    """Run a row on both sides; a speed row in turns, for the median."""
    turns = [[side.run(name, limit) for side in sides]]
    if name.startswith("speed") and all("seconds" in side for side in turns[0]):
        slow = max(side["seconds"] for side in turns[0]) > 2
        turns += [[s.run(name, limit) for s in sides] for _ in range(2 if slow else 4)]
        for i, side in enumerate(turns[0]):
            side["seconds"] = statistics.median(t[i].get("seconds", 1e9) for t in turns)
    return turns[0]


def verdict(name: str, base: Facts, new: Facts) -> str:
    """Compare the two sides of a row."""
    if failed := [word for word in ("not built", "failed") if word in base | new]:
        return failed[0]
    lost = new.get("proved", 0) < base.get("proved", 0)
    if lost or new.get("gap", 0) > 1.1 * base.get("gap", 0) + 0.0002:
        return "worse"
    more = new["seconds"] - base["seconds"]
    slower = name.startswith("speed") and more > max(0.05, 0.15 * base["seconds"])
    return "slower" if slower else "as good"


def shown(side: Facts) -> str:
    """Write what one side of a row reached."""
    forms = {"seconds": "{:.3f} s", "proved": "{} proved", "gap": "gap {:.3%}"}
    forms |= {"not built": "no {}", "failed": "failed: {:.60}"}
    return ", ".join(forms[key].format(side[key]) for key in forms if key in side)


def main() -> None:
    """Print a line for each row."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("base")
    parser.add_argument("new")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rows", default="", metavar="PATTERN")
    options = parser.parse_args()
    sides = [Side(options.base), Side(options.new)]
    print("BASE", sides[0].title, "\nNEW ", sides[1].title)
    counts: Counter[str] = Counter()
    names = [name for name, _ in rows() if re.search(options.rows, name)]
    for name in filter(QUICK.search, names) if options.quick else names:
        limit, again = (60.0, 60.0) if name.startswith("speed") else (10.0, 20.0)
        word = verdict(name, *(both := measure(sides, name, limit)))
        if word in ("worse", "slower"):  # again, in new processes
            for side in sides:
                side.start()
            word = verdict(name, *(both := measure(sides, name, again)))
        counts[word] += 1
        print(f"{name:<45}", *(f"{shown(side):<36}" for side in both), word, flush=True)
    print(", ".join(f"{count} {word}" for word, count in counts.items()))
    sys.exit(any(counts[word] for word in ("worse", "slower", "failed")))


if __name__ == "__main__":
    work() if sys.argv[1:] == ["work"] else main()
