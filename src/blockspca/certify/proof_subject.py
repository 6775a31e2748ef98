"""What a section of a proof is about: a matrix, its features, and the sets that count.

`docs/proof-format.md`, section 8, has the theorems: a matrix that earlier components
have left (deflated), or that features which are chosen at a level leave of it, or whose
negative entries are raised to 0; and limits of groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import FloatArray
from ..certificate import BoundName, Certificate, PartClaim, StepClaim
from ..constraint_rules import GroupLimits, Rules
from ..covariance.covariance import Covariance
from ..covariance.derived import restricted
from ..covariance.raised import raised
from ..covariance.schur_complement import LevelTooLow, forced
from ..limits import Limits
from ..result import Result
from ..search.tree_log import ROOM
from .parts import Part, left_of, negative_pairs
from .provers import ProofOptions
from .results import certified_results

TAKEN = ("hotelling", "orthogonal")  # what is no product of columns


@dataclass(frozen=True)
class Subject:
    """The matrix of a section, and how its header names it."""

    #: A, of all features, perhaps deflated: what objectives are measured by.
    whole: Deflated
    cov: Covariance  #: the matrix of the records
    features: NDArray[np.intp]  #: numbers of its features
    #: What the header says beside data and claims.
    header: dict[str, Any] = field(default_factory=dict)
    #: `groups`, `beside`: of `features`. What screening knows are the former; a tree
    #: keeps both.
    groups: GroupLimits | None = None
    chosen: int = 0  #: how many features are chosen at the level
    level: float | None = None
    #: Features, by their positions, that are used as a whole: those to include first,
    #: together, then every other unit.
    units: tuple[NDArray[np.intp], ...] | None = None
    beside: GroupLimits | None = None

    def limits_of(self, features: NDArray[np.int64]) -> list[GroupLimits]:
        """What sets of some of the features have to keep."""
        given = (self.groups, self.beside)
        return [limits.among(features) for limits in given if limits is not None]


@dataclass(frozen=True)
class Deflated:
    """What earlier components leave of A, and how a header says so.

    The format means the exact matrix; entries of `cov` are within `error` of it, beside
    what is in its entry error.
    """

    cov: Covariance
    header: dict[str, Any] = field(default_factory=dict)
    error: float = 0.0


def deflated_by(
    how: str,
    cov: Covariance,
    vectors: FloatArray,
    values: Sequence[float] = (),
    penalty: float | None = None,
    error: float = 0.0,
) -> Deflated:
    """Describe a matrix by the vectors, (m, d), that were taken out of it."""
    said: list[dict[str, Any]] = []
    for x in vectors:
        support = np.flatnonzero(x)
        numbers = [float(value).hex() for value in x[support]]
        said.append({"support": support.tolist(), "x": numbers})
    for vector, value in zip(said, values, strict=False):
        vector["value"] = float(value).hex()
    if not said:
        return Deflated(cov)
    header: dict[str, Any] = {"how": how, "vectors": said}
    if penalty is not None:
        header["penalty"] = float(penalty).hex()
    return Deflated(cov, {"deflated": header}, error)


def free_subject(whole: Deflated, without: Sequence[int] | NDArray[np.intp]) -> Subject:
    """All sets of the features that are not kept out."""
    features = np.setdiff1d(np.arange(whole.cov.n_features), without)
    header = dict(whole.header)
    if len(without) == 0:
        return Subject(whole, whole.cov, features, header)
    header["without"] = sorted(int(i) for i in without)
    return Subject(whole, restricted(whole.cov, features), features, header)


def constrained_subject(
    whole: Deflated, certificate: Certificate, limits: Limits
) -> tuple[Subject, tuple[StepClaim, ...]]:
    """The subject of a result under constraints, and bounds for its records.

    A certificate of one part has them. Where it has several, or a part that the format
    cannot name, the bounds are found again for all sets at once, of which the parts
    are some; they may be weaker.
    """
    rules = certificate.constraints
    assert rules is not None
    if rules.whole_groups:
        return _in_units(whole, rules), ()
    part = certificate.parts[0] if len(certificate.parts) == 1 else None
    if part is not None and not part.limited:  # the bound without constraints suffices
        return _relaxed(whole, rules, None), _without_points(part, rules)
    with_level = bool(rules.include) and not rules.nonnegative
    # nor does a level go with what is taken off A: see the format
    with_level = with_level and whole.header.get("deflated", {}).get("how") not in TAKEN
    if with_level and (rules.beside if part is None else not part.void):
        found = _chosen(whole, certificate, part)
        if found is not None:
            if part is not None:
                return found, part.steps
            return found, _bounds_of(found, certificate.k, limits)
    pairs = _restored(whole.cov, certificate) if rules.nonnegative else None
    if part is not None and not rules.include and pairs in (None, part.restored):
        return _relaxed(whole, rules, pairs), part.steps
    subject = _relaxed(whole, rules, pairs)
    return subject, _bounds_of(subject, certificate.k, limits)


def _without_points(part: PartClaim, rules: Rules) -> tuple[StepClaim, ...]:
    """The steps of a bound on all sets, for a subject that excludes features.

    Points and logs of the entry dual are for all features, and are found again.
    """
    return tuple(
        replace(step, dual=None)
        if rules.exclude and step.bound_name == BoundName.ENTRY_DUAL
        else step
        for step in part.steps
    )


def _bounds_of(subject: Subject, k: int, limits: Limits) -> tuple[StepClaim, ...]:
    """Bounds for all sets of a subject at once, but for the limits beside groups."""
    places = k - subject.chosen
    if places == 0:
        return ()
    options = ProofOptions(groups=subject.groups)
    ks = range(places, places + 1)
    inner: Result = certified_results(subject.cov, ks, limits, {}, options)[places]
    assert inner.certificate is not None
    return inner.certificate.steps


def _restored(cov: Covariance, certificate: Certificate) -> tuple[tuple[int, int], ...]:
    """The pairs whose negative entries are kept: those of the one part, or of x."""
    if len(certificate.parts) == 1:
        return tuple(sorted(certificate.parts[0].restored))
    return tuple(sorted(negative_pairs(cov, np.array(certificate.support))))


def said_constraints(rules: Rules) -> dict[str, Any]:
    """The fields of a header for the rules; features to exclude are in `without`."""
    groups = _said_groups(rules.label, rules.room)
    said = {"include": list(rules.include), "groups": groups}
    header: dict[str, Any] = {"constraints": {**said, "nonnegative": rules.nonnegative}}
    beside = _said_groups(rules.beside, rules.beside_room)
    if beside and groups:  # without groups all features of those beside are excluded
        header["constraints"]["beside"] = beside
    if rules.whole_groups:
        header["constraints"]["whole"] = True
    if rules.exclude:
        header["without"] = list(rules.exclude)
    return header


def _said_groups(labels: Sequence[int], rooms: Sequence[int]) -> list[dict[str, Any]]:
    label = np.array(labels)
    return [
        {"most": int(room), "features": np.flatnonzero(label == g).tolist()}
        for g, room in enumerate(rooms)
        if room > 0 and (label == g).any()
    ]


def _in_units(whole: Deflated, rules: Rules) -> Subject:
    """All sets of features that are not kept out, and the units they come in."""
    subject = _relaxed(whole, rules, None)
    place = np.full(whole.cov.n_features, -1, dtype=np.intp)
    place[subject.features] = np.arange(len(subject.features))
    include = place[np.array(rules.include, dtype=np.intp)]
    units = [place[unit] for unit in rules.groups]
    rest = [unit for unit in units if unit[0] >= 0 and unit[0] not in include]
    return replace(subject, units=(include, *rest))


def _relaxed(
    whole: Deflated, rules: Rules, pairs: tuple[tuple[int, int], ...] | None
) -> Subject:
    """All sets that keep groups and exclude, whether or not they have `include`."""
    header = {**whole.header, **said_constraints(rules)}
    features = np.setdiff1d(np.arange(whole.cov.n_features), rules.exclude)
    matrix = whole.cov
    if pairs is not None:
        matrix = raised(matrix, pairs)
        header["raised"] = [list(pair) for pair in pairs]
    groups, beside = (
        limits and limits.among(features)
        for limits in (rules.limits, rules.limits_beside)
    )
    if len(features) < whole.cov.n_features:
        matrix = restricted(matrix, features)
    return Subject(whole, matrix, features, header, groups, beside=beside)


def _chosen(
    whole: Deflated, certificate: Certificate, part: PartClaim | None
) -> Subject | None:
    """The features to include, chosen at the level of the part; None if not.

    Where there is none, or one without a level, that is as far above the bound as a
    bound is above a component.
    """
    rules = certificate.constraints
    assert rules is not None
    rest, places, groups = left_of(
        whole.cov.n_features, certificate.k, rules, Part.whole(rules), limited=True
    )
    include = np.array(rules.include, dtype=np.intp)
    beside = rules.limits_beside
    if beside is not None:  # of what `rest` has, none with a full group
        beside = beside.after(include, rest)
        keep = ~beside.full()
        rest, beside = rest[keep], beside.among(keep)
        groups = groups and groups.among(keep)
    if len(rest) == 0:
        return None
    bound = certificate.upper_bound if part is None else part.upper_bound
    level = None if part is None else part.level
    if level is None:
        level = bound + 8 * ROOM * abs(bound)
    try:
        cov = forced(whole.cov, include, rest, level)
    except LevelTooLow:
        return None
    header = {**whole.header, **said_constraints(rules), "level": float(level).hex()}
    assert places == certificate.k - len(include)
    return Subject(whole, cov, rest, header, groups, len(include), level, beside=beside)
