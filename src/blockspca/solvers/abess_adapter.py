"""abess, best-subset selection by splicing, as a solver; an optional dependency."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .._validation import FloatArray
from ._canonical import CanonicalForm
from ._heuristic import Heuristic, shifted_to_psd
from .base import SolverError
from .template import SolverRun

MARGIN = 1e-6  # of the largest entry, added to the diagonal: abess refuses singular A


class Abess(Heuristic):
    """`abess.decomposition.SparsePCA` with `support_size=k`, given A itself.

    abess refuses matrices that are not positive semidefinite, within its own rounding.
    It is therefore given A + cI, whose maximisers are those of A, in a form that does
    not depend on the order, signs and scale of the features.

    Notes
    -----
    Needs the package abess: ``pip install "blockspca[abess]"``. A heuristic. It makes
    one proposal, which a time limit does not stop.

    References
    ----------
    Zhu, J. et al. (2022). abess: a fast best-subset selection library in Python and R.
    Journal of Machine Learning Research 23.
    """

    name = "abess"
    required_module = "abess"

    def _propose(self, A: FloatArray, k: int, run: SolverRun) -> Iterator[FloatArray]:
        try:
            from abess.decomposition import SparsePCA
        except ImportError:
            raise SolverError(
                "solver 'abess' needs the package abess, which is not installed; run "
                'pip install "blockspca[abess]".'
            ) from None
        if not A.any():
            return  # abess 0.4 aborts the process on a zero matrix
        form = CanonicalForm(A)
        definite = shifted_to_psd(form.matrix) + MARGIN * np.eye(len(A))
        fitted = SparsePCA(support_size=k).fit(Sigma=definite)
        yield form.restore(np.asarray(fitted.coef_, dtype=np.float64).ravel())
