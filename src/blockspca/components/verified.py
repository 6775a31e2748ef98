"""Components verified: the certificate of each, and what is claimed of the set."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..bound_names import BoundName
from ..certify.verify import Verification, verify, verify_replayed
from ..covariance.covariance import Covariance
from ..result import Result
from .checks import check_relations, check_variances
from .earlier import check_earlier_bound
from .finish import check_finished
from .recording import replayed_components
from .requests import asked_of
from .scheme import BaseScheme, completed
from .sweeps import others

if TYPE_CHECKING:
    from .solve import Components


def given(found: Components, index: int, cov: Covariance) -> tuple[Result, ...]:
    """Return the components that count as earlier ones of component `index`."""
    if found.first is None:
        return found.results[:index]
    return others(cov, found.results, index)


def check_component(
    cov: Covariance,
    results: Sequence[Result],
    index: int,
    scheme: BaseScheme,
    earlier: Sequence[Result],
    done: Sequence[Verification] | None,
    **options: Any,
) -> Verification:
    """Check the certificate of one component against its own problem.

    Parameters
    ----------
    earlier : sequence of Result
        The components that its problem depends on.
    done : sequence of Verification or None
        The checks of those before it, which its bound may rest on; None leaves such a
        bound open.
    **options
        Passed to `blockspca.verify`.
    """
    result, problem = results[index], scheme.problem(cov, earlier)
    check = verify(result, problem, **options)
    check = check_finished(check, result, problem, cov, earlier, scheme, **options)
    if done is None:
        return check
    return check_earlier_bound(check, cov, results, index, scheme, done)


def verified(
    found: Components, cov: Covariance, *, data: Any = None, **limits: Any
) -> tuple[Verification, ...]:
    """Check every component against its own problem, and the set.

    `data` are for a proof that was recorded, and `limits` as in `verify`. What was
    found of the set is said with the last component.
    """
    scheme, is_swept = completed(found.scheme), found.first is not None
    said = check_relations(found.results, scheme, is_swept)
    checked, unchecked = check_variances(found, cov, **limits)
    said += checked
    if found.first is not None:
        # A replay would leave out smaller k, on which the joint bound may rest.
        alone = verify(replace(found.first, proof=None), cov, **limits)
        said += [f"alone: {words}" for words in alone.checks]
        unchecked += [f"alone: {words}" for words in alone.unchecked]
    replay = replayed_components(found, cov, data)
    said += [replay.message] if replay.message else []
    replayed = dict(enumerate(replay.bounds))
    checks: list[Verification] = []
    for index, result in enumerate(found.results):
        problem, bound = found.problem(index, cov), replayed.get(index)
        if bound is not None:
            smaller = 0 if index or is_swept else _smaller_k(found)
            checks.append(verify_replayed(result, problem, bound, smaller, **limits))
            continue
        earlier, done = given(found, index, cov), None if is_swept else checks
        checks.append(
            check_component(cov, found.results, index, scheme, earlier, done, **limits)
        )
    *before, last = checks
    if unchecked:
        left = (*last.unchecked, *unchecked)
        last = replace(last, upper_bound=math.inf, unchecked=left)
    return (*before, replace(last, checks=(*last.checks, *said)))


def _smaller_k(found: Components) -> int:
    """The largest k below that of the first component, of which the joint bound is."""
    if found.joint_bound_name != BoundName.COMPONENTS:
        return 0
    ks = asked_of(found.results, found.sparsities)
    return max((k for k in ks if k < ks[0]), default=0)
