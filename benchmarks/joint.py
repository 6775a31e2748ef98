"""Components that are judged together: what they reach, and what any could reach.

    python benchmarks/run.py components --rows orthogonal joint shared

Three parts of the case `components`:

- orthogonal: four orthogonal, or uncorrelated, components of `snp500` against the R
  packages msPCA 0.5.1 and nsprcomp: Σ x_j'Ax_j as a share of the trace, and how far
  loadings are from orthogonal and scores from uncorrelated.
- joint: the gap between orthogonal components and the bound on all of them.
- shared: `solve_shared`, r = 5 components on one set of k features.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import blockspca as bs
from blockspca.components.variance import score_covariance
from common import Options, load

Row = dict[str, Any]

#: Shares of the trace that the R packages reach, for k = 5, 10, …, 35: orthogonal
#: loadings by msPCA and by nsprcomp, uncorrelated scores by msPCA.
SPARSITIES = (5, 10, 15, 20, 25, 30, 35)
MSPCA = (0.034738, 0.063933, 0.075760, 0.092991, 0.095253, 0.111273, 0.114208)
NSPRCOMP = (0.041671, 0.065967, 0.083172, 0.098580, 0.108312, 0.102457, 0.105149)
MSPCA_UNCORRELATED = (
    0.024990,
    0.038296,
    0.049310,
    0.059560,
    0.065814,
    0.078295,
    0.079490,
)

JOINT_SETS = ("normIonosphere", "normLung", "normCommunities")
JOINT_TIME = 25.0
SHARED_SETS = ("Prostate", "Lymphoma2", "Leukemia")
SHARED_TIME = 60.0

SHARE_COLUMNS = {
    "scheme": ("components", ""),
    "k": ("k", ""),
    "share": ("share of the trace", ".4f"),
    "mspca": ("msPCA", ".4f"),
    "nsprcomp": ("nsprcomp", ".4f"),
    "violation": ("largest violation", ".0e"),
    "seconds": ("seconds", ".1f"),
}
JOINT_COLUMNS = {
    "data": ("data", ""),
    "d": ("d", ""),
    "r": ("r", ""),
    "k": ("k", ""),
    "gap": ("joint gap", ".2%"),
    "seconds": ("seconds by the clock", ".1f"),
}
SHARED_COLUMNS = {
    "data": ("data", ""),
    "d": ("d", ""),
    "k": ("k", ""),
    "gap": ("gap", ".2%"),
    "bound": ("bound", ""),
    "seconds": ("seconds", ".1f"),
    "verify": ("verify, seconds", ".2f"),
}


def orthogonal(options: Options) -> Iterator[Row]:
    """Yield a row for each kind of component and each k, of four components."""
    A = load("snp500")
    cov = bs.Covariance.from_matrix(A)
    kinds = (
        ("orthogonal", bs.Orthogonalised(), MSPCA, NSPRCOMP),
        ("uncorrelated", bs.UncorrelatedScores(), MSPCA_UNCORRELATED, None),
    )
    for name, scheme, mspca, nsprcomp in kinds:
        for place, k in enumerate(SPARSITIES[:2] if options.quick else SPARSITIES):
            started = time.process_time()
            found = bs.solve_components(
                cov, k, 4, scheme=scheme, certify=False, sweeps=1
            )
            spent = time.process_time() - started
            V = found.components
            variances = score_covariance(cov, V)
            products = V @ V.T if name == "orthogonal" else variances
            lengths = np.sqrt(np.diag(products))
            cosines = products / np.outer(lengths, lengths) - np.eye(len(V))
            yield {
                "scheme": name,
                "k": k,
                "share": float(np.trace(variances) / np.trace(A)),
                "mspca": mspca[place],
                "nsprcomp": nsprcomp[place] if nsprcomp else None,
                "violation": float(np.abs(cosines).max()),
                "seconds": spent,
            }


def joint(options: Options) -> Iterator[Row]:
    """Yield a row for each set, r and k: the gap to any orthogonal components."""
    for data in JOINT_SETS[:1] if options.quick else JOINT_SETS:
        A = load(data)
        for r in (2, 3):
            for k in (5, 10, 20):
                cov = bs.Covariance.from_matrix(A)
                started = time.perf_counter()
                found = bs.solve_components(
                    cov,
                    k,
                    r,
                    scheme=bs.Orthogonalised(),
                    sweeps=1,
                    limits=bs.Limits(time=JOINT_TIME),
                )
                spent = time.perf_counter() - started
                row = {"data": data, "d": len(A), "r": r, "k": k}
                yield row | {"gap": found.joint_gap, "seconds": spent}


def shared(options: Options) -> Iterator[Row]:
    """Yield a row for each set and k: five components on one set of features."""
    for data in SHARED_SETS[:1] if options.quick else SHARED_SETS:
        for k in (50, 200):
            cov = bs.Covariance.from_data(load(data))
            started = time.process_time()
            found = bs.solve_shared(cov, k, 5, limits=bs.Limits(time=SHARED_TIME))
            spent = time.process_time() - started
            started = time.process_time()
            found.verify(cov)
            yield {
                "data": data,
                "d": cov.n_features,
                "k": k,
                "gap": found.gap,
                "bound": str(found.bound_name),
                "seconds": spent,
                "verify": time.process_time() - started,
            }
