"""What is claimed of a set of components beyond each one's certificate, checked."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from .._validation import FloatArray
from ..bound_names import BoundName
from ..certify.claims import LAPACK_AGREEMENT
from ..certify.verification import VerificationError, require
from ..covariance.covariance import Covariance
from ..numerics.rounding import EPS
from ..result import NEGLIGIBLE, Result
from .joint import are_orthogonal
from .joint_entries import JointEntries
from .joint_split import JointSplit
from .requests import asked_of
from .scheme import BaseScheme, completed
from .schemes import scheme_name
from .shared_result import SharedSupport
from .uncorrelated import UncorrelatedScores
from .variance import (
    adjusted_variance,
    as_strict_as,
    correlated,
    joint_bounds,
    predicted,
    score_covariance,
    score_rounding,
)

if TYPE_CHECKING:
    from .solve import Components

# Of an adjusted variance, relative to the variance: regressing on nearly dependent
# scores loses digits. Nothing is proved with it.
REGRESSION_AGREEMENT = 1e-8


def check_relations(
    results: Sequence[Result], scheme: BaseScheme, swept: bool = False
) -> list[str]:
    """Check that components relate to each other as the scheme says; sentences.

    Orthogonality holds up to loadings that count as zero: k of at most `NEGLIGIBLE`
    change an inner product of unit vectors by sqrt(k) `NEGLIGIBLE`, in either vector.
    As much again is left for rounding.
    """
    for j, result in enumerate(results):
        certificate = result.certificate
        name = scheme_name(scheme, swept) if j or swept else ""
        # Certificates of before do not name a penalty.
        names = (name, re.sub(r"\(penalty=.*?\)", "", name))
        require(
            certificate is None
            or (certificate.component == j + 1 and certificate.scheme in names),
            f"component {j + 1}: its certificate is for another place or scheme",
        )
    if scheme.disjoint:
        for i, j in combinations(range(len(results)), 2):
            shared = np.flatnonzero((results[i].x != 0) & (results[j].x != 0))
            require(
                len(shared) == 0,
                f"components {i + 1} and {j + 1} share feature {shared[:1]}, but "
                "supports are claimed to be disjoint",
            )
        return ["supports: no feature is used twice"]
    if scheme.orthogonal:
        most = 0.0
        for i, j in combinations(range(len(results)), 2):
            product = abs(float(results[i].x @ results[j].x))
            k = max(results[i].k, results[j].k)
            require(
                product <= 4 * math.sqrt(k) * NEGLIGIBLE,
                f"components {i + 1} and {j + 1} are claimed to be orthogonal, but "
                f"their inner product is {product:.3g}",
            )
            most = max(most, product)
        return [f"components: orthogonal, inner products at most {most:.1g}"]
    return []


def check_variances(
    found: Components, cov: Covariance, **limits: Any
) -> tuple[list[str], list[str]]:
    """Check the variances of a set of components and their joint bound.

    Returns sentences, and what could not be checked. The joint bound rests on the bound
    of the first component, which `verify` checks. `limits` are `max_nodes` and
    `time_limit`, for searches of a joint proof.
    """
    components = found.components
    require(
        components.shape == (len(found), cov.n_features)
        and all(
            np.array_equal(row, result.x)
            for row, result in zip(components, found.results, strict=True)
        ),
        "the components are not those of the results",
    )
    scores = score_covariance(cov, components)
    variances = np.diagonal(scores)
    roundings = score_rounding(cov, components)
    rounding = np.diagonal(roundings)
    _compare("explained variance", found.explained_variance, variances, rounding)
    adjusted = adjusted_variance(scores)
    slack = rounding + REGRESSION_AGREEMENT * np.abs(variances)
    _compare(
        "adjusted explained variance",
        found.adjusted_explained_variance,
        adjusted,
        slack,
    )
    diagonal = cov.diagonal()
    total = math.fsum(diagonal)
    slack = (len(diagonal) + 1) * EPS * np.abs(diagonal).sum()
    slack += 2 * cov.entry_error * len(diagonal)
    require(
        abs(found.total_variance - total) <= slack,
        f"the total variance is {total:.17g}, not {found.total_variance:.17g}",
    )
    if not math.isnan(found.r2):  # as in sets that were stored without it
        r2 = predicted(cov, components)
        agreement = REGRESSION_AGREEMENT
        # of an indefinite matrix it may be any number, and infinite
        require(
            found.r2 == r2
            or (math.isfinite(r2) and abs(found.r2 - r2) <= agreement * max(1.0, r2)),
            f"the scores predict {r2:.17g} of the variance, not {found.r2:.17g}",
        )
    ks, unchecked = _sparsities(found), list[str]()
    bounds = joint_bounds(
        cov,
        found.first or found.results[0],
        ks,
        margin=1.0,
        shared=_check_joint_proof(found, cov, unchecked, **limits),
        orthogonal=_check_orthogonal(found, cov, unchecked, **limits),
        as_strict=as_strict_as(found.first or found.results[0], found.results),
    )
    claimed, name = found.joint_upper_bound, BoundName.named(found.joint_bound_name)
    require(
        name in bounds, f"the joint bound {str(name)!r} does not exist for this matrix"
    )
    assert isinstance(name, BoundName)
    # Entries that are computed from data in another form may err by more than they did
    # where the claim was made.
    most = max(*ks, cov.n_features)
    doubt = 4 * len(found) * most * cov.entry_error
    doubt += LAPACK_AGREEMENT * abs(claimed) if doubt > 0 else 0.0
    above = f"{bounds[name]:.17g}, above the claimed {claimed:.17g}"
    require(claimed >= bounds[name] - doubt, f"the joint bound by {name} is {above}")
    if not claimed >= bounds[name]:
        unchecked.append(f"the joint bound by {name}: {above} by rounding of the data")
    # whatever was checked: components above the bound refute it
    room = float(rounding.sum() + REGRESSION_AGREEMENT * np.abs(variances).sum())
    require(
        found.joint_total <= claimed + room,
        f"the components have {found.joint_total:.17g} together, more than the joint "
        f"bound {claimed:.17g}",
    )
    said = [f"together: at most {claimed:.12g}, by {name}"]
    if isinstance(found.scheme, UncorrelatedScores):
        said.append(_check_uncorrelated(scores, roundings))
    return said, unchecked


def _sparsities(found: Components) -> tuple[int, ...]:
    """Those that the joint bound is for, of which no component has more."""
    ks = asked_of(found.results, found.sparsities)
    require(
        len(ks) == len(found)
        and all(r.k <= k for r, k in zip(found.results, ks, strict=True)),
        f"the sparsities {ks} are not those of the components",
    )
    return ks


def _check_joint_proof(
    found: Components, cov: Covariance, unchecked: list[str], **limits: Any
) -> float:
    """Return the bound on opt_m(Σ k_j) that the joint bound rests on, checked.

    What could not be checked is added to `unchecked`.
    """
    proof, name = found.joint_proof, found.joint_bound_name
    if not isinstance(proof, SharedSupport) or name != BoundName.SHARED_SUPPORT:
        return math.inf
    features = min(cov.n_features, sum(_sparsities(found)))
    require(
        proof.k >= features
        and proof.n_components >= len(found)
        and not proof.include
        and proof.rules is None,
        "the joint bound rests on a proof that is not for these components",
    )
    left = proof.verify(cov, **limits).unchecked
    unchecked += [f"the joint bound: {words}" for words in left]
    return proof.upper_bound


def _check_orthogonal(
    found: Components, cov: Covariance, unchecked: list[str], **limits: Any
) -> dict[BoundName, float]:
    """Return the bound for orthogonal components that the joint one rests on, checked.

    By its name; nothing if it rests on another. What could not be checked is added to
    `unchecked`.
    """
    proof, name = found.joint_proof, BoundName.named(found.joint_bound_name)
    kinds: dict[str, type[JointEntries | JointSplit]] = {
        BoundName.ENTRY_DUAL: JointEntries,
        BoundName.SPLIT_ENTRY_DUAL: JointSplit,
    }
    if not isinstance(name, BoundName) or name not in kinds:
        return {}
    require(
        isinstance(proof, kinds[name])
        and are_orthogonal(completed(found.scheme))
        and proof.k >= max(_sparsities(found))
        and proof.n_components == len(found)
        and cov.n_features > proof.n_components,
        "the joint bound rests on a proof that is not for these components",
    )
    assert isinstance(proof, (JointEntries, JointSplit))
    try:
        if isinstance(proof, JointEntries):
            return {name: proof.proved(cov)}
        value = proof.proved(cov, **limits)
    except ValueError as error:
        raise VerificationError(f"the joint bound: {error}") from error
    if value is None:
        unchecked.append(
            f"the joint bound: at most {proof.upper_bound:.12g}, by {name}: more nodes "
            "or seconds are needed to search again"
        )
    return {name: proof.upper_bound if value is None else value}


def _check_uncorrelated(scores: FloatArray, rounding: FloatArray) -> str:
    """Check that V'AV is diagonal, to `UNCORRELATED` of the variances and rounding."""
    off = np.abs(scores - np.diag(np.diagonal(scores)))
    for i, j in correlated(scores, rounding):
        raise VerificationError(
            f"the scores of components {i + 1} and {j + 1} are claimed to be "
            f"uncorrelated, but their covariance is {scores[i, j]:.3g}."
        )
    return f"scores: uncorrelated, covariances at most {off.max(initial=0.0):.1g}"


def _compare(
    name: str, claimed: FloatArray, computed: FloatArray, slack: FloatArray
) -> None:
    require(np.shape(claimed) == np.shape(computed), f"the {name} has another length")
    wrong = np.flatnonzero(~(np.abs(np.asarray(claimed) - computed) <= slack))
    if len(wrong):
        j = int(wrong[0])
        raise VerificationError(
            f"component {j + 1}: the {name} is {computed[j]:.17g}, not "
            f"{claimed[j]:.17g}."
        )
