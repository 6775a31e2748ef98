"""The names of upper bounds, as certificates and results have them."""

from __future__ import annotations

from enum import Enum


class BoundName(str, Enum):
    """Which argument gave an upper bound; `text` says it for people.

    A bound is named in `Result.bound_name`, in every step of a certificate and in
    files, always by the value. A new bound needs a member here, and a check of it in
    `certify/claims.py`; of several components, in `components/checks.py` if each has
    features of its own to choose, and in `components/shared_result.py` if they share.
    """

    text: str

    def __new__(cls, value: str, text: str) -> BoundName:
        name = str.__new__(cls, value)
        name._value_ = value
        name.text = text
        return name

    PROOF_TREE = "proof tree", "a search of all sets that the screening left"
    GROWTH = "growth", "averages over subsets: no set can be grown this far"
    SCREENING = "screening", "the screening inequality: no set is left"
    NESTED = "nested 2×2", "the bound for k − 1 and the largest row norm"
    ROW_SUMS = "row sums", "the largest row sum of k entries"
    VARIANCES = "variances", "the largest variances"
    SMALLER_K = "smaller k", "the bound for a smaller k, by averages over its subsets"
    DIRECTION_DUAL = "direction dual", "the dual over directions"
    ENTRY_DUAL = "entry dual", "the dual over entries"
    LARGEST_EIGENVALUE = "largest eigenvalue", "the largest eigenvalue of A"
    TARGET = "target", "a bound of the target, of which a contrast is less"
    SOFT_THRESHOLD = (
        "soft threshold",
        "the blocks of A after soft thresholding, and k − 1 times the threshold",
    )
    COMPOSITIONS = (
        "compositions",
        "how many features each block can give, and a search of what that leaves",
    )
    EARLIER_COMPONENT = (
        "earlier component",
        "the bound of an earlier component, which holds for it too",
    )
    CONDITIONS = (
        "search under conditions",
        "a search of all sets under the conditions of the scheme",
    )
    CONSTRAINED = (
        "constrained",
        "the bounds of all parts of what the constraints allow",
    )
    BLOCKS = (
        "blocks + (k − 1) · largest entry between them",
        "the bounds of the blocks and the largest entry between them",
    )
    COMPONENTS = "components", "the bounds of the components one by one, added up"
    EIGENVALUES = "eigenvalues", "the largest eigenvalues of A"
    SHARED_SUPPORT = (
        "shared support",
        "a bound on the best components that share all their features",
    )
    SPLIT_ENTRY_DUAL = (
        "split entry dual",
        "a search for one component of what the dual over entries leaves",
    )
    SCREENING_TABLE = (
        "screening table",
        "the screening inequality, from fewer components and features",
    )
    BRANCH_AND_BOUND = (
        "branch and bound",
        "a branch and bound with the dual over directions",
    )
    ENUMERATION = "enumeration", "an enumeration of all sets"
    NONE = "none", "nothing"

    def __str__(self) -> str:
        return self.value

    @classmethod
    def named(cls, name: str) -> str:
        """Return the member of a name that was read, or a name of another release.

        Examples
        --------
        >>> BoundName.named("variances") is BoundName.VARIANCES
        True
        """
        known = cls._value2member_map_.get(name)
        return known if isinstance(known, cls) else name

    @classmethod
    def text_of(cls, name: str) -> str:
        """Return the text for people of a name, or the name if it is not one of ours.

        Examples
        --------
        >>> BoundName.text_of("variances")
        'the largest variances'
        """
        known = cls.named(name)
        return known.text if isinstance(known, cls) else name
