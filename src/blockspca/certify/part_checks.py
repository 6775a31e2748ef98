"""The parts of a certificate with constraints, each checked as a problem of its own."""

from __future__ import annotations

import numpy as np

from ..certificate import Certificate, PartClaim
from ..constraint_rules import Rules
from ..covariance.schur_complement import LevelTooLow
from .claims import LAPACK_AGREEMENT, BoundChecks
from .parts import (
    Part,
    bound_of_set,
    first_uncovered,
    groups_left,
    left_of,
    matrix_of,
    problem_of,
)
from .verification import require
from .whole_groups import matrix_of_groups, norms_of


class PartChecks:
    """Checks what a certificate says under constraints.

    `whole` are the checks for the matrix itself, whose limits hold for each part too.
    `checks` says what was found, `unchecked` what could not be checked.
    """

    def __init__(self, certificate: Certificate, whole: BoundChecks) -> None:
        assert certificate.constraints is not None
        self.cov, self.certificate = whole.cov, certificate
        self.rules: Rules = certificate.constraints
        self.max_nodes, self.deadline = whole.max_nodes, whole.deadline
        self.checks: list[str] = []
        self.unchecked: list[str] = []

    def component(self) -> None:
        """The component keeps the rules."""
        certificate, rules = self.certificate, self.rules
        require(
            rules.n_features == self.cov.n_features,
            f"the constraints are for {rules.n_features} features, the matrix has "
            f"{self.cov.n_features}",
        )
        loadings = np.array(certificate.loadings)
        support = np.array(certificate.support)[loadings != 0]
        broken = rules.objection(support, certificate.k)
        require(broken == "", f"the component breaks a constraint: {broken}")
        if rules.nonnegative:
            require(
                (loadings >= 0).all(),
                "the component has a negative loading, but must not have any",
            )
        self.checks.append(f"constraints: kept; {describe_rules(rules)}")

    def bound(self) -> float:
        """Every allowed set is in a part; return the largest bound of a part."""
        certificate, rules, k = self.certificate, self.rules, self.certificate.k
        parts = tuple(
            Part(claim.include, claim.exclude, claim.restored, void=claim.void)
            for claim in certificate.parts
        )
        missing = first_uncovered(parts, rules, k, self.cov)
        require(
            missing is None,
            f"no part has the sets with {missing and missing[0]} and without "
            f"{missing and missing[1]}",
        )
        for number, (part, claim) in enumerate(
            zip(parts, certificate.parts, strict=True), 1
        ):
            words = self._part(part, claim)
            self.checks += [f"part {number}: {text}" for text in words]
        bounds = [c.upper_bound for c in certificate.parts if not c.void]
        require(bool(bounds), "no part has a bound")
        return max(bounds)

    def _part(self, part: Part, claim: PartClaim) -> list[str]:
        self._check_shape(claim)
        k, d = self.certificate.k, self.cov.n_features
        if claim.void:  # `first_uncovered` looks at it itself
            return ["nothing to bound: it is taken apart"]
        if self.rules.whole_groups and claim.limited:
            return self._groups(part, claim)
        rest, places, _ = left_of(d, k, self.rules, part, limited=claim.limited)
        if places == 0:
            return [self._single_set(part, claim)]
        try:
            problem = problem_of(
                matrix_of(self.cov, self.rules, part) if claim.limited else self.cov,
                k,
                self.rules,
                part,
                claim.level,
                limited=claim.limited,
            )
        except LevelTooLow as error:
            return self._without_problem(part, claim, error)
        support = np.intersect1d(self.certificate.support, rest)
        at = tuple(np.searchsorted(rest, support).tolist())[:places]
        bounds = BoundChecks(
            problem.cov, places, at, self.max_nodes, self.deadline, problem.groups
        )
        return self._steps(claim, bounds, places)

    def _groups(self, part: Part, claim: PartClaim) -> list[str]:
        """A part of whole groups: its steps are about norms of groups."""
        k, whole = self.certificate.k, self.rules.groups
        for group in whole:
            members = set(group.tolist())
            for chosen in (set(claim.include), set(claim.exclude)):
                require(
                    not members & chosen or members <= chosen,
                    "a part cuts a group that is used as a whole",
                )
        _, places = groups_left(self.rules, part, k)
        if places == 0:
            return [self._single_set(part, claim)]
        try:
            matrix, at = matrix_of_groups(self.cov, k, self.rules, part, claim.level)
        except LevelTooLow as error:
            return self._without_problem(part, claim, error)
        # A norm here may be above that of a claim about the data in another form: by
        # what it is raised by, and by as much again that it errs by.
        doubted = 2 * max(map(len, at)) * matrix.entry_error
        bounds = BoundChecks(
            norms_of(matrix, at), places, (), self.max_nodes, self.deadline,
            doubted=doubted,
        )  # fmt: skip
        return self._steps(claim, bounds, places)

    def _without_problem(
        self, part: Part, claim: PartClaim, error: LevelTooLow
    ) -> list[str]:
        """A part whose own features are not provably below its level.

        It was claimed for data in a form with smaller errors, if only errors are in the
        way: a level may be 2e-10 above what these features have.
        """
        chosen = np.array(part.include, dtype=np.intp)
        doubt = 4 * len(chosen) * self.cov.entry_error
        require(
            claim.level is not None
            and doubt > 0
            and bound_of_set(self.cov, chosen) <= claim.level + doubt,
            f"a part has no problem: {error}",
        )
        self.unchecked.append(f"a part with {part.include}: {error}")
        return ["its level is within what entries of this matrix may be off by"]

    def _steps(self, claim: PartClaim, bounds: BoundChecks, places: int) -> list[str]:
        """The steps of a part lead up to its bound."""
        steps = [step.k for step in claim.steps]
        require(
            bool(steps) and steps == list(range(steps[0], places + 1)),
            f"the steps of a part do not lead up to its {places} place(s)",
        )
        for step in claim.steps:
            require(
                all(i < bounds.cov.n_features for i in step.survivors),
                "a survivor is not a feature of its part",
            )
        words = [f"k = {step.k}: {bounds.check(step)}" for step in claim.steps]
        self.unchecked += bounds.unchecked
        proved = float(bounds.upper[places])
        if claim.level is not None:
            proved = max(proved, claim.level)
        require(
            claim.upper_bound >= proved,
            f"the bound {claim.upper_bound:.17g} of a part is below the proved "
            f"{proved:.17g}",
        )
        return words

    def _check_shape(self, claim: PartClaim) -> None:
        d = self.cov.n_features
        at = [i for pair in claim.restored for i in pair]
        require(all(0 <= i < d for i in at), "a restored entry is not one of A")
        require(
            not set(claim.include) & set(claim.exclude),
            "a part includes what it excludes",
        )
        said = {*claim.include, *claim.exclude}
        require(
            not claim.limited
            or self.rules.whole_groups
            or set(self.rules.include) <= said,
            "a part does not say whether what must be included has a loading",
        )
        require(
            (claim.level is not None) == bool(claim.include and claim.steps),
            "a part has a level without features to include, or the other way round",
        )

    def _single_set(self, part: Part, claim: PartClaim) -> str:
        bound = bound_of_set(self.cov, np.array(part.include, dtype=np.intp))
        if not claim.upper_bound >= bound:
            # Entries may have been computed from the data in another form.
            doubt = 4 * len(part.include) * self.cov.entry_error
            require(
                bound - claim.upper_bound <= LAPACK_AGREEMENT * abs(bound) + doubt,
                f"the set {part.include} gives {bound:.17g}, above the claimed "
                f"{claim.upper_bound:.17g}",
            )
            self.unchecked.append(f"the set {part.include} agrees up to rounding only")
        return f"a single set, at most {claim.upper_bound:.12g}"


def describe_rules(rules: Rules) -> str:
    """Say in a few words what the rules demand."""
    said = []
    if rules.include:
        said.append(f"{len(rules.include)} feature(s) in")
    if rules.exclude:
        said.append(f"{len(rules.exclude)} out")
    if rules.label and not rules.whole_groups:
        said.append(f"limits for {len(rules.room)} group(s)")
    if rules.beside:
        said.append(f"and for {len(rules.beside_room)} beside an overlap")
    if rules.whole_groups:
        said.append(f"{len(rules.room)} whole group(s)")
    if rules.nonnegative:
        said.append("no negative loading")
    return ", ".join(said) or "none"
