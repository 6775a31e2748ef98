"""A certificate: every claim about one solve, with what is needed to check it again."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._json_reader import Reader
from ._validation import FloatArray
from .bound_names import BoundName
from .constraint_rules import Rules
from .result import Result
from .status import Status, is_search_over, refuse_unproved

FORMAT = "blockspca-certificate"
VERSION = 3  # 1 has no gap, 2 no duals
WITH_CONSTRAINTS = 4  # of certificates that have some; the others stay what they were
LATEST = 5  # of those that have claims by `LATER`, with constraints or without
LATER = (BoundName.TARGET, BoundName.COMPOSITIONS)
MAX_CHARACTERS = 256 * 2**20  # of text; objects of Python take several times that
# More would ask for a vector of gigabytes before anything is checked.
MAX_FEATURES = 10**9
MAX_TARGETS = 20  # contrasts of contrasts, of which there are hardly two


@dataclass(frozen=True)
class StepClaim:
    """opt(k) ≤ upper_bound, by the named bound.

    `bound_name` is a `BoundName`, or a name that only another release knows. For
    `SCREENING`, `PROOF_TREE` and `GROWTH`: features outside `survivors` fail the
    screening inequality at `tau` ≤ upper_bound, given opt(k − 1) ≤ `upper_previous`,
    and a search of the survivors found no k-set above `tau`. What rounding may amount
    to in such a proof is upper_bound − tau.

    For `ENTRY_DUAL`: `dual` is the point of the dual whose bound it is, as text
    (`bounds.entry_dual.record`).

    For `COMPOSITIONS`: `dual` is the level of the entries that make the blocks, as text
    (`certify.compositions`).

    For `TARGET`: the matrix is a contrast, and `target` bounds its target; None if that
    is by its variances, row sums or largest eigenvalue.

    For `EARLIER_COMPONENT` and `CONDITIONS`: the claim is about the vectors that the
    scheme allows this component. It follows from the bound of the component whose
    number is `statistics["component"]` (`components.earlier`), or from a search of all
    sets (`components.finish`).
    """

    k: int
    upper_bound: float
    bound_name: str
    tau: float | None = None
    upper_previous: float | None = None
    survivors: tuple[int, ...] = ()
    statistics: Mapping[str, int] = field(default_factory=dict)
    dual: str | None = None
    target: TargetClaim | None = None

    def with_all(self) -> Iterator[StepClaim]:
        """The claim, and those about a target that it rests on."""
        yield self
        for step in () if self.target is None else self.target.steps:
            yield from step.with_all()

    def features(self) -> set[int]:
        """Features that the claim, or a claim it rests on, names."""
        named = [step.survivors for step in self.with_all()]
        named += [step.target.support for step in self.with_all() if step.target]
        return set().union(*named)

    def renumbered(self, numbers: NDArray[np.intp]) -> StepClaim:
        """The claim with feature i called numbers[i]."""
        survivors = tuple(numbers[list(self.survivors)].tolist())
        target = self.target
        if target is not None:
            support = tuple(numbers[list(target.support)].tolist())
            steps = tuple(step.renumbered(numbers) for step in target.steps)
            target = TargetClaim(support, steps)
        return replace(self, survivors=survivors, target=target)


@dataclass(frozen=True)
class TargetClaim:
    """The target of a contrast has an optimum of at most the last step's bound.

    The steps lead up to the k of the claim. From `support`, a component of the target,
    its direction dual starts.
    """

    support: tuple[int, ...]
    steps: tuple[StepClaim, ...]


@dataclass(frozen=True)
class PartClaim:
    """No allowed set that has `include` and nothing of `exclude` exceeds upper_bound.

    The steps are about the problem of the part (`certify/parts.py`): the features
    outside both, numbered anew in their order, and as many places as `include` leaves.
    """

    include: tuple[int, ...]
    exclude: tuple[int, ...]
    upper_bound: float  #: at least that of the last step, and the level
    #: The τ of the Schur complement of `include`, if there is one.
    level: float | None = None
    #: Whether the steps are about sets that keep the limits of groups, and about A with
    #: entries raised to 0 where loadings are not negative; if not, they are about A
    #: itself and all sets.
    limited: bool = False
    #: Negative entries of A that are kept; the others are raised to 0. For non-negative
    #: loadings only.
    restored: tuple[tuple[int, int], ...] = ()
    steps: tuple[StepClaim, ...] = ()  #: empty if `include` takes every place
    #: Whether there is nothing to bound: `include` takes every place, and the best
    #: loadings on these features have both signs, so that no best x ≥ 0 uses them all.
    void: bool = False


@dataclass(frozen=True)
class Certificate:
    """What a result claims. `verify` checks it against the matrix.

    Attributes
    ----------
    k, n_features : int
    support : tuple of int
    loadings : tuple of float
        The component's entries on the support.
    objective, upper_bound : float
    status : Status
    tolerance : float
        Absolute; "optimal" claims upper_bound − objective ≤ tolerance. At most
        `OPTIMAL_GAP` of the objective.
    steps : tuple of StepClaim
        The chain of bounds for 1, 2, …, k; only that for k if it needs no chain.
    component : int
        1, or the place in a set of components.
    scheme : str
        Its name, if the claims are about what a scheme makes of the matrix after the
        earlier components, or after all others; empty if they are about the matrix
        itself, as for the first component of several that were found in turn.
    gap : float or None
        The gap that was asked for, relative to the objective; "gap_limit" claims it.
        Certificates of version 1 do not have it.
    version : int
        Of the format: 1 to 5; 4 has constraints, 5 claims by a target or compositions.
    constraints : Rules or None
        What the component must be besides sparse; all claims are about such vectors.
    parts : tuple of PartClaim
        Which together hold every set that the constraints allow.

    Examples
    --------
    >>> import blockspca as bs
    >>> bs.solve([[2.0, 1.0], [1.0, 2.0]], k=1).certificate.status.value
    'optimal'
    """

    k: int
    n_features: int
    support: tuple[int, ...]
    loadings: tuple[float, ...]
    objective: float
    upper_bound: float
    status: Status
    tolerance: float
    steps: tuple[StepClaim, ...]
    component: int = 1
    scheme: str = ""
    gap: float | None = None
    version: int = VERSION
    constraints: Rules | None = None
    parts: tuple[PartClaim, ...] = ()

    def __post_init__(self) -> None:
        # Older releases refuse a version that they do not know, instead of a claim.
        is_late = any(step.bound_name in LATER for step in self._all_steps())
        if self.version >= VERSION and is_late:
            object.__setattr__(self, "version", LATEST)

    def _all_steps(self) -> list[StepClaim]:
        """All steps: of the chain, of the parts, and of the targets of either."""
        lists = [self.steps, *(part.steps for part in self.parts)]
        return [one for said in lists for step in said for one in step.with_all()]

    @property
    def bound_name(self) -> str:
        """Which bound gave the upper bound."""
        return self.steps[-1].bound_name

    def as_result(self, **more: Any) -> Result:
        """Return the component as a result, with what else is known about it."""
        return Result(**self._claims(), **more)

    def _claims(self) -> dict[str, Any]:
        """The fields of a result that this certificate determines."""
        support = np.array(self.support, dtype=np.intp)
        return {
            "x": _vector(support, self.loadings, self.n_features),
            "support": support,
            "objective": self.objective,
            "upper_bound": self.upper_bound,
            "status": self.status,
            "k": self.k,
            "n_features": self.n_features,
            "bound_name": self.bound_name,
            "certificate": self,
        }

    def to_json(self) -> str:
        """Write the certificate as JSON; numbers keep every digit."""
        content = asdict(self) | {"status": self.status.value}
        for name in _fields_not_in(self.version):
            del content[name]
        if self.constraints is not None:
            content["constraints"] = self.constraints.content()
        parts = content.get("parts", ())
        for step in (s for said in (content, *parts) for s in said["steps"]):
            _drop_empty_fields(step)
        head = {"format": FORMAT, "version": content.pop("version")}
        return json.dumps(head | content)

    @classmethod
    def from_json(cls, text: str) -> Certificate:
        """Read a certificate, refusing anything that is not exactly one."""
        if not isinstance(text, str):
            raise TypeError(
                f"text is of type {type(text).__name__}; pass the JSON text of a "
                "certificate."
            )
        if len(text) > MAX_CHARACTERS:
            raise ValueError(
                f"the certificate has {len(text)} characters, more than "
                f"{MAX_CHARACTERS}; it is not one of ours."
            )
        try:
            content = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"the certificate is not JSON: {error}.") from None
        reader = Reader(content, "certificate")
        is_ours = reader.text("format") == FORMAT
        version = reader.integer("version", 1)
        if not is_ours or version > LATEST:
            raise ValueError(
                f"the certificate has format {content.get('format')!r} and version "
                f"{content.get('version')!r}; this release reads {FORMAT!r}, versions "
                f"1 to {LATEST}."
            )
        steps = _read_steps(reader, version)
        names = {f.name for f in fields(cls)} - _fields_not_in(version)
        reader.refuse_unknown(names | {"format"})
        try:
            status = Status(reader.text("status"))
        except ValueError:
            raise ValueError(
                f"certificate.status = {content['status']!r} is not a status."
            ) from None
        certificate = cls(
            k=reader.integer("k", 1),
            n_features=reader.integer("n_features", 1),
            support=reader.indices("support"),
            loadings=reader.numbers("loadings"),
            objective=reader.number("objective"),
            upper_bound=reader.number("upper_bound"),
            status=status,
            tolerance=reader.number("tolerance"),
            steps=steps,
            component=reader.integer("component", 1),
            scheme=reader.text("scheme"),
            gap=None if version == 1 else reader.number("gap", optional=True),
            version=version,
            constraints=_read_rules(reader) if version >= WITH_CONSTRAINTS else None,
            parts=_read_parts(reader) if version >= WITH_CONSTRAINTS else (),
        )
        certificate.check()
        return certificate

    def check(self) -> None:
        """Refuse what cannot be a certificate, whatever the matrix."""
        steps = self._all_steps()
        bounds = (
            step.upper_bound for step in steps if step.bound_name != BoundName.NONE
        )
        searches = (
            number
            for step in steps
            for number in (step.tau, step.upper_previous)
            if number is not None
        )
        known = [self.objective, self.tolerance, *self.loadings, *bounds, *searches]
        known += [part.level for part in self.parts if part.level is not None]
        if not all(math.isfinite(number) for number in known):
            raise ValueError("certificate: a number is not finite.")
        uppers = [self.upper_bound, *(part.upper_bound for part in self.parts)]
        if any(math.isnan(upper) for upper in uppers):
            raise ValueError("certificate: an upper bound is not a number.")
        refuse_unproved(self.status, self.objective, self.upper_bound)
        if self.gap is not None and not 0 <= self.gap < math.inf:
            raise ValueError(
                f"certificate.gap = {self.gap} is not a gap; it must be at least 0."
            )
        if self.status is Status.GAP_LIMIT and self.gap is None and self.version > 1:
            raise ValueError(
                "certificate: the status is gap_limit, but no gap was asked for."
            )
        if not 1 <= self.k <= self.n_features <= MAX_FEATURES:
            raise ValueError(
                f"certificate: k = {self.k} and n_features = {self.n_features} do not "
                "go together."
            )
        if len(self.support) != len(self.loadings) or not self.support:
            raise ValueError(
                f"certificate: {len(self.support)} features but {len(self.loadings)} "
                "loadings."
            )
        if self.component > 1 and not self.scheme:
            raise ValueError(
                f"certificate: component {self.component} and scheme "
                f"{self.scheme!r:.80} do not go together."
            )
        ks = [step.k for step in self.steps]
        if not ks or ks != list(range(ks[0], self.k + 1)):
            raise ValueError(
                f"certificate.steps must lead up to k = {self.k}, one after the other."
            )
        has_rules, version = self.constraints is not None, self.version
        if has_rules != (self.parts != ()) or (
            version < LATEST and has_rules != (version == WITH_CONSTRAINTS)
        ):
            raise ValueError(
                "certificate: constraints and their parts are in versions from "
                f"{WITH_CONSTRAINTS} on, and {WITH_CONSTRAINTS} has some."
            )
        everything = [self.support, *(step.survivors for step in steps)]
        everything += [step.target.support for step in steps if step.target]
        if self.constraints is not None:
            everything += [self.constraints.include, self.constraints.exclude]
        for part in self.parts:
            everything += [part.include, part.exclude]
        for indices in everything:
            ascending = all(a < b for a, b in pairwise(indices))
            if indices and not (
                ascending and indices[0] >= 0 and indices[-1] < self.n_features
            ):
                raise ValueError(
                    "certificate: feature indices must ascend and lie in 0.."
                    f"{self.n_features - 1}."
                )


def restated(result: Result, **claims: Any) -> Result:
    """Return the result with other claims, which its certificate makes as well.

    Parameters
    ----------
    **claims
        Fields of a certificate. A result that has none keeps what it says itself:
        the support with its loadings, and the fields that both have.

    Examples
    --------
    >>> import blockspca as bs
    >>> result = bs.solve([[2.0, 1.0], [1.0, 2.0]], 2)
    >>> stopped = restated(result, status=bs.Status.INTERRUPTED)
    >>> stopped.status is stopped.certificate.status
    True
    """
    if result.certificate is not None:
        certificate: Certificate = replace(result.certificate, **claims)
        return replace(result, **certificate._claims())
    unknown = claims.keys() - {f.name for f in fields(Certificate)}
    if unknown:
        raise TypeError(f"{sorted(unknown)} are no fields of a certificate.")
    support = np.array(claims.get("support", result.support), dtype=np.intp)
    loadings = claims.get("loadings", result.x[result.support])
    changes = {f.name: claims[f.name] for f in fields(Result) if f.name in claims}
    if "steps" in claims:
        changes["bound_name"] = claims["steps"][-1].bound_name
    x = _vector(support, loadings, claims.get("n_features", result.n_features))
    return replace(result, **changes | {"x": x, "support": support})


def is_left_by_rounding(result: Result) -> bool:
    """Tell whether a search has ended, and its gap is what rounding may amount to.

    No set exceeds τ, which is as near as searches aim at, but for what is set aside for
    rounding. The result is not called optimal for that: where components have explained
    nearly all, the entries of what they leave are known to the last digits of A, and a
    better set may hide there.
    """
    claim = result.certificate
    if claim is None or not claim.steps:
        return False
    last = claim.steps[-1]
    return (
        last.k == result.k
        and last.tau is not None
        and last.upper_bound == result.upper_bound
        and is_search_over(result.objective, max(last.tau, result.objective), None)
    )


def _vector(support: NDArray[np.intp], loadings: Any, d: int) -> FloatArray:
    x = np.zeros(d)
    x[support] = loadings
    return x


def _drop_empty_fields(step: dict[str, Any]) -> None:
    """Remove empty fields of a step, which versions 1 and 2 do not have."""
    for name in ("dual", "target"):
        if step[name] is None:
            del step[name]
    for inner in step.get("target", {"steps": ()})["steps"]:
        _drop_empty_fields(inner)


def _fields_not_in(version: int) -> set[str]:
    """The fields that a version of the format does not have."""
    late = set() if version >= WITH_CONSTRAINTS else {"constraints", "parts"}
    return late | {"gap"} if version == 1 else late


def _read_rules(reader: Reader) -> Rules | None:
    content = reader.content.get("constraints")
    if content is None:
        return None
    return Rules.read(Reader(content, "certificate.constraints"))


def _read_parts(reader: Reader) -> tuple[PartClaim, ...]:
    parts = []
    for position, content in enumerate(reader.sequence("parts")):
        inner = Reader(content, f"certificate.parts[{position}]")
        inner.refuse_unknown({f.name for f in fields(PartClaim)})
        pairs = inner.sequence("restored")
        if not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
            raise ValueError(f"{inner.where}.restored is not a list of pairs.")
        flat = Reader({"restored": [i for pair in pairs for i in pair]}, inner.where)
        at = iter(flat.indices("restored"))
        parts.append(
            PartClaim(
                include=inner.indices("include"),
                exclude=inner.indices("exclude"),
                upper_bound=inner.number("upper_bound"),
                level=inner.number("level", optional=True),
                limited=inner.flag("limited"),
                restored=tuple(zip(at, at, strict=True)),
                steps=_read_steps(inner, WITH_CONSTRAINTS),
                void=inner.flag("void"),
            )
        )
    return tuple(parts)


def _read_steps(reader: Reader, version: int) -> tuple[StepClaim, ...]:
    return tuple(
        _read_step(step, f"{reader.where}.steps[{position}]", version)
        for position, step in enumerate(reader.sequence("steps"))
    )


def _read_step(content: Any, where: str, version: int) -> StepClaim:
    reader = Reader(content, where)
    known = {f.name for f in fields(StepClaim)}
    reader.refuse_unknown(known - {"dual", "target"} if version < 3 else known)
    statistics = reader.value("statistics", dict)
    for name, count in statistics.items():
        if isinstance(count, bool) or not isinstance(count, int):
            raise ValueError(f"{reader.where}.statistics[{name!r}] is not an integer.")
    return StepClaim(
        k=reader.integer("k", 1),
        upper_bound=reader.number("upper_bound"),
        bound_name=BoundName.named(reader.text("bound_name")),
        tau=reader.number("tau", optional=True),
        upper_previous=reader.number("upper_previous", optional=True),
        survivors=reader.indices("survivors"),
        statistics=statistics,
        dual=reader.text("dual") if "dual" in reader.content else None,
        target=_read_target(reader, version) if "target" in reader.content else None,
    )


def _read_target(reader: Reader, version: int) -> TargetClaim:
    inner = Reader(reader.content.get("target"), f"{reader.where}.target")
    if inner.where.count(".target") > MAX_TARGETS:
        raise ValueError(f"{reader.where:.80}…: targets of targets without end.")
    inner.refuse_unknown({f.name for f in fields(TargetClaim)})
    return TargetClaim(inner.indices("support"), _read_steps(inner, version))
