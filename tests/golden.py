"""What provers did, number by number, as it was written down: the common part.

A test that only asks whether a bound holds does not notice an inequality that was
turned so as to prune less, nor, on most matrices, an allowance for rounding that is
missing. Counts of nodes and survivors notice the first. For the second, eps is made
large: then what is set aside for rounding shows in the values.

After a change that is meant to alter a count, write the numbers again, and read the
difference before it is committed:

    OPENBLAS_CORETYPE=Haswell python tests/golden.py

They are those of OpenBLAS with these kernels, which every processor with AVX2 can run
and `run.sh` asks for. Others add up in another order: most of the numbers stay, and
some of a thousand searches take another way. There the tests are skipped.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import math
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import PropertyMock, patch

import numpy as np
import pytest
from threadpoolctl import threadpool_info

import zoo
from blockspca.covariance.covariance import Covariance
from blockspca.search import spectral

FOLDER = Path(__file__).parent / "adversarial"
LARGE_EPS = 1e-6
RELATIVE = 1e-6
KERNELS = "Haswell"  # of OpenBLAS
Numbers = dict[str, Any]
Groups = dict[str, Callable[[], Numbers]]


def matrices() -> Iterator[tuple[str, np.ndarray]]:
    """Matrices whose searches differ, none of which hangs on an ulp."""
    for name, d in [("gaussian", 8), ("indefinite", 7), ("correlation", 8)]:
        yield name, zoo.FAMILIES[name](d, np.random.default_rng(d))
    noise = 0.2 * zoo.indefinite(9, np.random.default_rng(5))
    yield "flat", np.eye(9) + noise
    A = 0.02 * zoo.indefinite(9, np.random.default_rng(7)) + np.eye(9)
    A[:3, :3] += 0.4
    A[4:8, 4:8] += 0.35
    yield "two groups", A
    A = zoo.indefinite(9, np.random.default_rng(8))
    label = np.array([0, 1, 2, 0, 1, 2, 0, 1, 1])
    yield "blocks", A * (label[:, None] == label)


def data() -> tuple[np.ndarray, np.ndarray]:
    """Samples: fewer than features with a factor in common, and more."""
    rng = np.random.default_rng(3)
    wide = rng.standard_normal((6, 9)) * rng.gamma(2.0, size=9)
    wide[:, :4] += 2.0 * rng.standard_normal((6, 1))
    return wide, rng.standard_normal((20, 7)) @ rng.standard_normal((7, 7))


def by_k(A: np.ndarray, above: float = 1e-7) -> Iterator[tuple[int, float, np.ndarray]]:
    """Yield k, a τ that is a little above opt(k), and upper for the chain."""
    known = zoo.Reference(A)
    for k in range(2, len(A)):
        upper = np.full(k + 1, np.inf)
        for q in range(1, k):
            upper[q] = known.reached[q] * (1 + 1e-9)
        yield k, known.reached[k] + above * abs(known.reached[k]), upper


def listed(found: Any) -> list[int]:
    return [] if found is None else [int(i) for i in found]


_WITH_EPS = (
    "bounds.best",
    "bounds.closed_form",
    "bounds.direction_dual.ascent",
    "bounds.direction_dual.fixing",
    "bounds.direction_dual.problem",
    "bounds.direction_dual.relaxation",
    "bounds.entry_dual.check",
    "bounds.entry_dual.proof",
    "numerics.upper_eigenvalues",
    "search.averaging",
    "search.reference",
    "search.schur_tree",
)


@contextmanager
def large_eps(eps: float) -> Iterator[None]:
    """Let the provers believe that rounding is far more than it is."""
    with ExitStack() as stack:
        for name in _WITH_EPS:
            module = importlib.import_module(f"blockspca.{name}")
            stack.enter_context(patch.object(module, "EPS", eps))
        stack.enter_context(patch.object(spectral, "_ROUNDING", eps))
        for name, times in (("entry_error", 1e2), ("factor_error", 1e4)):
            error = PropertyMock(return_value=times * eps)
            stack.enter_context(patch.object(Covariance, name, error))
        yield


def enlarged(
    numbers: Callable[[], Numbers], eps: float = LARGE_EPS
) -> Callable[[], Numbers]:
    def with_large_eps() -> Numbers:
        with large_eps(eps):
            return numbers()

    return with_large_eps


def digest(value: Any) -> list[Any]:
    """Return what is kept of some numbers: a checksum of all but the floats, and those.

    Counts and names are compared exactly, floats up to rounding.
    """
    floats: list[float] = []

    def without_floats(inner: Any) -> Any:
        if isinstance(inner, float):
            floats.append(float(f"{inner:.8g}"))
            return None
        if isinstance(inner, (list, tuple)):
            return [without_floats(each) for each in inner]
        return inner

    text = json.dumps(without_floats(value))
    return [zlib.crc32(text.encode()), *floats]


def same(one: list[float], other: list[float]) -> bool:
    """Compare two digests."""
    return len(one) == len(other) and all(map(_near, one, other))


def _near(a: float, b: float) -> bool:
    if isinstance(a, int) or not (math.isfinite(a) and math.isfinite(b)):
        return a == b or (math.isnan(a) and math.isnan(b))
    return abs(a - b) <= RELATIVE * max(abs(a), abs(b))


def other_kernels() -> str:
    """Return the BLAS kernels in use, or "" if they are those of the numbers."""
    used = {
        f"{library['internal_api']} {library.get('architecture')}"
        for library in threadpool_info()
        if library["user_api"] == "blas"
    }
    if used == {f"openblas {KERNELS}"}:
        return ""
    return ", ".join(sorted(used)) or "unknown"


def assert_as_written(file: str, groups: Groups, group: str) -> None:
    """Assert that a group of numbers is as it was written down for a test file."""
    if other := other_kernels():
        pytest.skip(f"numbers are for OPENBLAS_CORETYPE={KERNELS}, BLAS is {other}")
    path = Path(file).with_suffix(".json")
    written = json.loads(path.read_text(encoding="utf-8"))[group]
    found = groups[group]()
    assert written.keys() == found.keys()
    for key, numbers in written.items():
        assert same(numbers, digest(found[key])), (key, found[key], numbers)


def write() -> None:
    """Write the numbers of every test file in `adversarial` that has groups."""
    if other := other_kernels():
        raise SystemExit(f"set OPENBLAS_CORETYPE={KERNELS}: BLAS is {other}")
    for path in sorted(FOLDER.glob("test_golden_*.py")):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        groups: Groups = module.GROUPS
        parts = [
            f"{json.dumps(name)}: {{\n"
            + ",\n".join(
                f"{json.dumps(key)}: {json.dumps(digest(value), separators=(',', ':'))}"
                for key, value in numbers().items()
            )
            + "\n}"
            for name, numbers in groups.items()
        ]
        text = "{\n" + ",\n".join(parts) + "\n}\n"
        path.with_suffix(".json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
