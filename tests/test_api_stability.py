"""What other people's scripts and files rely on: names, signatures, pickles, proofs.

    python tests/test_api_stability.py --write     write signatures.json anew
    python tests/test_api_stability.py --record    record a folder for a new version

`tests/api/signatures.json` has every public name with its signature; a change of it is
made on purpose and shows in the diff. `tests/api/VERSION/` has what that version wrote:
pickles with the values they must give, certificates, and the names its documentation
gives a full path for. Such a folder is never written again, only read.
"""

from __future__ import annotations

import base64
import enum
import importlib
import inspect
import json
import pickle
import re
import sys
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import blockspca as bs

ROOT = Path(__file__).parents[1]
FOLDER = Path(__file__).with_name("api")
SIGNATURES = FOLDER / "signatures.json"
NAMESPACES = (
    "blockspca",
    "blockspca.components",
    "blockspca.datasets",
    "blockspca.plotting",
    "blockspca.report",
    "blockspca.reproduction",
    "blockspca.solvers",
)
KINDS = (  # of objects that people keep in files
    "covariance-of-data",
    "covariance-of-sparse-data",
    "correlation",
    "covariance-as-matrix",
    "limits",
    "result",
    "result-of-blocks",
    "path",
    "components",
    "projected-components",
    "estimator",
)
VERSIONS = sorted(path.name for path in FOLDER.iterdir() if path.is_dir())


# Names and signatures


def public_names(module: ModuleType) -> list[str]:
    """Return `__all__`, or what is defined in the module and has a public name."""
    if hasattr(module, "__all__"):
        return sorted(module.__all__)
    return sorted(
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and getattr(value, "__module__", "").startswith(module.__name__)
    )


def described(value: Any) -> Any:
    """Return the signature of a function; of a class, also those of its members."""
    if isinstance(value, ModuleType):
        return "module"
    if inspect.isclass(value):
        return described_class(value)
    if callable(value):
        return signature(value)
    return type(value).__name__


def described_class(cls: type) -> dict[str, str]:
    if issubclass(cls, enum.Enum):
        return {member.name: repr(member.value) for member in cls}
    members = {}
    if not issubclass(cls, BaseException):  # theirs depends on the version of Python
        members["()"] = signature(cls)
    for base in reversed(cls.__mro__):
        if base.__module__.split(".")[0] != "blockspca":
            continue
        for name, member in vars(base).items():
            if not name.startswith("_"):
                members[name] = described_member(member)
        for name in getattr(base, "__annotations__", ()):
            if not name.startswith("_"):
                members[name] = "attribute"
    return dict(sorted(members.items()))


def described_member(member: Any) -> str:
    function = getattr(member, "__func__", member)  # of a class or static method
    return signature(function) if inspect.isfunction(function) else "attribute"


def signature(function: Any) -> str:
    text = str(inspect.signature(function))
    return re.sub(r" at 0x[0-9a-f]+", "", text)


def current_signatures() -> dict[str, dict[str, Any]]:
    found = {}
    for namespace in NAMESPACES:
        module = importlib.import_module(namespace)
        found[namespace] = {
            name: described(getattr(module, name)) for name in public_names(module)
        }
    return found


def flat(tree: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, value in tree.items():
        if isinstance(value, dict) and value:
            yield from flat(value, f"{prefix}{name} ")
        else:
            yield f"{prefix}{name}", str(value)


def changes(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    old, new = dict(flat(before)), dict(flat(now))
    return [
        *(f"gone:    {name}" for name in old if name not in new),
        *(f"new:     {name}{new[name]}" for name in new if name not in old),
        *(
            f"changed: {name}\n    {old[name]}\n    {new[name]}"
            for name in old
            if name in new and old[name] != new[name]
        ),
    ]


def test_public_names_and_signatures():
    written = json.loads(SIGNATURES.read_text(encoding="utf-8"))
    changed = changes(written, current_signatures())
    hint = "\nIf that is meant, run python tests/test_api_stability.py --write"
    assert not changed, "\n".join(changed) + hint


def test_a_change_of_signature_is_seen():
    before = {"m": {"f": "(a, b=1)", "C": {"()": "(x)", "y": "attribute"}}}
    now = {"m": {"f": "(a, b=2)", "C": {"()": "(x)"}, "g": "()"}}
    assert changes(before, now) == [
        "gone:    m C y",
        "new:     m g()",
        "changed: m f\n    (a, b=1)\n    (a, b=2)",
    ]
    assert described(bs.Limits)["()"].startswith("(time: 'float | None' = None, ")
    assert described(bs.Status)["OPTIMAL"] == "'optimal'"
    assert "smallest_k" in described(bs.SparsityPath)


# Names with a full path in the documentation


def named_in_documents() -> list[str]:
    """Return every blockspca.something that a page, example or benchmark names."""
    named = set()
    for path in documents():
        text = path.read_text(encoding="utf-8")
        named.update(re.findall(r"\bblockspca(?:\.[A-Za-z_]\w*)+", text))
        statement = r"from (blockspca(?:\.\w+)*) import (\([^)]*\)|[^\n]*)"
        for module, names in re.findall(statement, text):
            for name in re.findall(r"\w+", names.split(" as ")[0]):
                named.add(f"{module}.{name}")
    return sorted(named)


def documents() -> Iterable[Path]:
    yield from (ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md")
    for folder, pattern in (
        ("docs", "*.md"),
        ("docs", "*.py"),
        ("examples", "*.py"),
        ("benchmarks", "*.py"),
    ):
        yield from sorted((ROOT / folder).glob(pattern))


def resolved(name: str) -> Any:
    """Import what a dotted name stands for; a part may be a module or an attribute."""
    parts = name.split(".")
    value = importlib.import_module(parts[0])
    for depth, part in enumerate(parts[1:], start=2):
        try:
            value = importlib.import_module(".".join(parts[:depth]))
        except ModuleNotFoundError:
            value = getattr(value, part)
    return value


def test_names_in_the_documents_exist():
    named = named_in_documents()
    assert "blockspca.solvers.Chan" in named
    for name in named:
        resolved(name)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_names_of_earlier_documents_exist(version):
    named = (FOLDER / version / "names.txt").read_text(encoding="utf-8").split()
    assert len(named) > 50
    for name in named:
        resolved(name)


# Pickles


def data() -> np.ndarray:
    """Return small data with a group of correlated features and short decimals."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 10))
    X[:, :4] += rng.standard_normal((20, 1))
    return X.round(2)


def objects() -> dict[str, Any]:
    """Return one of each kind."""
    X = data()
    names = [f"feature {i}" for i in range(10)]
    cov = bs.Covariance.from_data(X, feature_names=names)
    limits = bs.Limits(nodes=1000)
    fitted = bs.SparsePCA(n_components=2, k=3, limits=limits).fit(X)
    return {
        "covariance-of-data": cov,
        "covariance-of-sparse-data": bs.Covariance.from_data(sp.csr_array(X)),
        "correlation": bs.Covariance.from_data(X, scale=True),
        "covariance-as-matrix": bs.Covariance.from_matrix(np.cov(X.T).round(4)),
        "limits": bs.Limits(time=1.5, nodes=10, gap=0.01, memory=10**6),
        "result": bs.solve(cov, 3),
        "result-of-blocks": bs.solve(cov, 3, threshold=0.5, certify=False),
        "path": bs.solve_path(cov, 4),
        "components": bs.solve_components(cov, 3, 2),
        "projected-components": bs.solve_components(
            cov, 3, 2, scheme=bs.ProjectionDeflation()
        ),
        "estimator": fitted,
    }


def facts(value: Any) -> Any:
    """Return what must be the same after a round trip, as plain lists and numbers."""
    if isinstance(value, bs.Limits):
        return [value.time, value.nodes, value.gap, value.memory]
    if isinstance(value, bs.Covariance):
        entries = value.submatrix(slice(None))
        return {
            "names": None if value.feature_names is None else [*value.feature_names],
            "shape": [value.n_features, value.n_samples],
            "entries": entries.tolist(),
            "product": value.matvec(np.arange(1.0, value.n_features + 1)).tolist(),
        }
    if isinstance(value, bs.Result):
        return facts_of_result(value)
    if isinstance(value, bs.SparsityPath):
        rows = [{**row, "time": 0.0} for row in value.to_rows()]
        return {
            "rows": rows,
            "ceiling": value.ceiling,
            "results": [facts_of_result(result) for result in value.values()],
        }
    if isinstance(value, bs.Components):
        return {
            "results": [facts_of_result(result) for result in value.results],
            "ratio": np.asarray(value.explained_variance_ratio).tolist(),
            "joint_upper_bound": float(value.joint_upper_bound),
        }
    if isinstance(value, bs.SparsePCA):
        return {
            "parameters": [value.n_components, value.k, facts(value.limits)],
            "components": value.components_.tolist(),
            "ratio": value.explained_variance_ratio_.tolist(),
            "upper_bound": np.asarray(value.upper_bound_).tolist(),
            "scores": value.transform(data()).tolist(),
        }
    raise TypeError(type(value))


def facts_of_result(result: bs.Result) -> dict[str, Any]:
    certificate = result.certificate
    return {
        "k": result.k,
        "x": result.x.tolist(),
        "support": result.support.tolist(),
        "features": [*map(str, result.features)],
        "objective": float(result.objective),
        "upper_bound": float(result.upper_bound),
        "gap": float(result.gap),
        "status": result.status.value,
        "bound_name": result.bound_name,
        "nodes": int(result.nodes),
        "solver": result.solver,
        "threshold": result.threshold,
        "block_sizes": None if result.blocks is None else result.blocks.sizes.tolist(),
        "certificate": None if certificate is None else claims(certificate.to_json()),
    }


def claims(text: str) -> dict[str, Any]:
    """Return what a certificate of any version says; a later one may say more."""
    content = json.loads(text)
    kept = ("k", "n_features", "support", "loadings", "objective", "upper_bound")
    return {name: content[name] for name in (*kept, "status", "component")}


def assert_same(found: Any, expected: Any, where: str) -> None:
    if isinstance(expected, dict):
        for name, value in expected.items():
            assert_same(found[name], value, f"{where}.{name}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), where
        for i, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
            assert_same(ours, theirs, f"{where}[{i}]")
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-12, abs=1e-14), where
    else:
        assert found == expected, where


def kept(version: str) -> dict[str, Any]:
    return json.loads((FOLDER / version / "pickles.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("version", "name"), [(version, name) for version in VERSIONS for name in KINDS]
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "2.0.0",
    reason="arrays that NumPy 2 has pickled are not read by older ones",
)
def test_earlier_pickles_load(version, name):
    stored = kept(version)[name]
    with warnings.catch_warnings():
        # scikit-learn warns whenever its own version has changed.
        warnings.filterwarnings("ignore", message="Trying to unpickle estimator")
        loaded = pickle.loads(base64.b64decode(stored["pickle"]))
    assert_same(facts(loaded), stored["facts"], name)
    cov = bs.Covariance.from_data(data())
    if isinstance(loaded, bs.Components):
        # Each by itself: the joint bound of version 0.1.0 left out its own rounding,
        # a few units in the 14th digit, so that `Components.verify` refuses it.
        for index, result in enumerate(loaded.results):
            assert_verified(result, loaded.problem(index, cov))
    elif isinstance(loaded, bs.Result) and loaded.certificate is not None:
        assert_verified(loaded, cov)


def assert_verified(result: bs.Result, cov: bs.Covariance) -> None:
    left = bs.verify(result, cov).unchecked
    # Version 0.1.0 left the error of the entries out of the bound for k = 1.
    assert all(text.startswith("k = 1: variances:") for text in left)


def test_round_trip():
    made = objects()
    assert tuple(made) == KINDS
    for name, value in made.items():
        before = json.loads(json.dumps(facts(value)))
        assert_same(facts(pickle.loads(pickle.dumps(value))), before, name)


# Certificates


def problems() -> dict[str, tuple[np.ndarray, int, dict[str, Any]]]:
    """Return problems whose certificates claim different kinds of bounds."""
    X = data()
    noise = np.random.default_rng(1).standard_normal((12, 12)).round(2)
    rng = np.random.default_rng(3)
    wide = rng.standard_normal((8, 60)).round(2)
    wide[:, :36] += rng.standard_normal((8, 1)).round(2)
    return {
        "psd": (np.cov(X.T).round(4), 4, {}),
        "indefinite": ((noise + noise.T) / 2, 4, {}),
        "node-limit": ((noise + noise.T) / 2, 6, {"limits": bs.Limits(nodes=2)}),
        "direction-dual": (wide, 32, {}),
    }


def as_covariance(array: np.ndarray) -> bs.Covariance:
    """Take what is square as the matrix itself, and anything else as data."""
    n, d = array.shape
    return (
        bs.Covariance.from_matrix(array) if n == d else bs.Covariance.from_data(array)
    )


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", problems())
def test_earlier_certificates_verify(version, name):
    path = FOLDER / version / "certificates.json"
    stored = json.loads(path.read_text(encoding="utf-8"))[name]
    text = json.dumps(stored["certificate"])
    certificate = bs.Certificate.from_json(text)
    expected = claims(text)
    assert_same(claims(certificate.to_json()), expected, name)
    cov = as_covariance(np.array(stored["input"]))
    verification = bs.verify(certificate, cov)
    assert verification.complete
    assert verification.upper_bound <= certificate.upper_bound * (1 + 1e-9)
    other = np.array(cov.submatrix(slice(None)))
    other[certificate.support[0]] *= 0.9
    other[:, certificate.support[0]] *= 0.9
    with pytest.raises(bs.VerificationError):
        bs.verify(certificate, other)


# Writing


def write_signatures() -> None:
    text = json.dumps(current_signatures(), indent=1, ensure_ascii=False)
    SIGNATURES.write_text(text + "\n", encoding="utf-8")
    print(f"{SIGNATURES} written")


def record() -> None:
    """Write what this version of the library writes, once."""
    folder = FOLDER / bs.__version__
    folder.mkdir()
    names = "\n".join(named_in_documents()) + "\n"
    (folder / "names.txt").write_text(names, encoding="utf-8")
    pickles = {
        name: {
            "pickle": base64.b64encode(pickle.dumps(value, protocol=4)).decode(),
            "facts": facts(value),
        }
        for name, value in objects().items()
    }
    write_lines(folder / "pickles.json", pickles)
    certificates = {}
    for name, (array, k, options) in problems().items():
        result = bs.solve(as_covariance(array), k, **options)
        content = json.loads(result.certificate.to_json())
        certificates[name] = {"input": array.tolist(), "certificate": content}
    write_lines(folder / "certificates.json", certificates)
    print(f"{folder} written")


def write_lines(path: Path, content: dict[str, Any]) -> None:
    """Write JSON with one line for each entry."""
    lines = (
        f"{json.dumps(key)}: {json.dumps(value)}" for key, value in content.items()
    )
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    if "--record" in sys.argv[1:]:
        record()
    if "--write" in sys.argv[1:]:
        write_signatures()
