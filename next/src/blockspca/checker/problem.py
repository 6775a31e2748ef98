"""The contents of a proof file: problems, claims, records (docs/proof-format.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .reading import (
    ProofError,
    at_least,
    boolean,
    check_features,
    integer,
    many,
    parse,
    real,
    take,
    text,
)
from .records import Average, Record, Rows, Sets, Tree, Variance

FORMAT, VERSION = "blockspca-proof", 1
MOST_FEATURES = 2**40  # more would overflow sizes, whatever the file claims
RULES: dict[str, tuple[type, dict[str, Any]]] = {
    "variance": (Variance, {}),
    "rows": (Rows, {}),
    "average": (Average, {"smaller": at_least(1)}),
    "tree": (Tree, {"features": many(integer), "nodes": at_least(0)}),
}
HOW = {"kind": text, "center": boolean, "scale": boolean, "ddof": at_least(0)}


@dataclass(frozen=True)
class Vector:
    """A vector with few nonzeros."""

    support: tuple[int, ...]
    x: tuple[float, ...]


@dataclass(frozen=True)
class Claim:
    """objective ≤ x'Ax / x'x, and opt(k) ≤ upper."""

    k: int
    vector: Vector
    objective: float
    upper: float


ALL_SETS = Sets()


@dataclass(frozen=True)
class Problem:
    """How A is made of the data, and which sets count."""

    kind: str
    center: bool = False
    scale: bool = False
    ddof: int = 0
    residual: tuple[Vector, ...] = ()
    sets: Sets = ALL_SETS


@dataclass(frozen=True)
class Proof:
    """One problem with claims about it, and the records that show them."""

    problem: Problem
    claims: tuple[Claim, ...]
    records: tuple[Record, ...]


@dataclass(frozen=True)
class Header:
    """The data that a file is about."""

    sha256: str
    samples: int
    features: int


def read_proofs(document: str) -> tuple[Header, tuple[Proof, ...]]:
    """Return the contents of a proof file, or refuse it."""
    whole = parse(document)
    fields = take(
        whole,
        "the file",
        format=text,
        version=integer,
        data=lambda value, place: take(
            value,
            place,
            sha256=text,
            samples=at_least(1),
            features=at_least(1),
        ),
        proofs=many(lambda value, place: value),
    )
    if fields["format"] != FORMAT:
        raise ProofError(f"format = {fields['format'][:40]!r} must be {FORMAT!r}")
    if fields["version"] != VERSION:
        raise ProofError(
            f"version = {fields['version']} is not supported; this checker reads "
            f"version {VERSION}"
        )
    header = Header(**fields["data"])
    if max(header.samples, header.features) > MOST_FEATURES:
        raise ProofError("the file claims more samples or features than there can be")
    if not fields["proofs"]:
        raise ProofError("the file has no proofs")
    return header, tuple(
        _proof(value, f"proof {i + 1}", header)
        for i, value in enumerate(fields["proofs"])
    )


def _proof(value: Any, place: str, header: Header) -> Proof:
    d = header.features
    fields = take(
        value,
        place,
        problem=lambda value, place: _problem(value, place, header),
        claims=many(lambda value, place: _claim(value, place, d)),
        records=many(lambda value, place: _record(value, place, d)),
    )
    if not fields["claims"]:
        raise ProofError(f"{place} has no claims")
    return Proof(**fields)


def _problem(value: Any, place: str, header: Header) -> Problem:
    d = header.features
    is_data = type(value) is dict and value.get("kind") == "data"
    own: Any = HOW if is_data else {"kind": text}
    fields = take(
        value,
        place,
        ("residual", "without", "groups"),
        residual=many(lambda value, place: _vector(value, place, d)),
        without=many(integer),
        groups=many(
            lambda value, place: take(
                value, place, most=at_least(1), features=many(integer)
            )
        ),
        **own,
    )
    if fields["kind"] not in ("data", "matrix"):
        raise ProofError(f"{place}, kind must be 'data' or 'matrix'")
    if not is_data and header.samples != d:
        raise ProofError(f"{place}: a matrix must be square")
    if is_data and header.samples <= fields["ddof"]:
        raise ProofError(f"{place}, ddof must be less than the number of samples")
    without, groups = fields.pop("without", ()), fields.pop("groups", ())
    check_features(without, d, f"{place}, without")
    if len(without) == d:
        raise ProofError(f"{place}, without leaves no feature")
    for group in groups:
        check_features(group["features"], d, f"{place}, groups")
    together = [i for group in groups for i in group["features"]]
    if len(set(together)) < len(together):
        raise ProofError(f"{place}: a feature is in two groups")
    limits = tuple((group["most"], group["features"]) for group in groups)
    return Problem(**fields, sets=Sets(without=without, groups=limits))


def _vector(value: Any, place: str, d: int) -> Vector:
    return _checked(take(value, place, support=many(integer), x=many(real)), place, d)


def _checked(fields: dict[str, Any], place: str, d: int) -> Vector:
    vector = Vector(fields["support"], fields["x"])
    check_features(vector.support, d, f"{place}, support")
    if len(vector.x) != len(vector.support):
        raise ProofError(f"{place}, x must have one number for each feature")
    if not 2.0**-100 <= max(map(abs, vector.x), default=0.0) <= 2.0**100:
        raise ProofError(f"{place}, x must have its largest number within 2^±100")
    return vector


def _claim(value: Any, place: str, d: int) -> Claim:
    fields = take(
        value,
        place,
        k=at_least(1),
        support=many(integer),
        x=many(real),
        objective=real,
        upper=real,
    )
    vector = _checked(fields, place, d)
    if not len(vector.support) <= fields["k"] <= d:
        raise ProofError(f"{place}: k must be between the size of support and {d}")
    return Claim(fields["k"], vector, fields["objective"], fields["upper"])


def _record(value: Any, place: str, d: int) -> Record:
    rule = value.get("rule") if type(value) is dict else None
    if type(rule) is not str or rule not in RULES:
        raise ProofError(f"{place}, rule must be one of {', '.join(RULES)}")
    kind, own = RULES[rule]
    fields = take(value, place, rule=text, k=at_least(1), upper=real, **own)
    del fields["rule"]
    if fields["k"] > d:
        raise ProofError(f"{place}, k = {fields['k']} must be at most {d}")
    if "features" in fields:
        check_features(fields["features"], d, f"{place}, features", ascending=False)
    record: Record = kind(**fields)
    return record
