"""solve and solve_path: from a matrix or data to supports, and to their proof."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ._kernels.compilation import prepare
from .bounds.closed_form import variance_bound
from .call import Run, Stop, one_call
from .constraints.constraints import Constraints, Problem, problem_of
from .covariance.covariance import Covariance, as_covariance
from .limits import Status
from .proof.evidence import Variance, margin
from .prove.chain import Chain
from .prove.screening import Screening
from .result import Bound, Result
from .sparsity_path import SparsityPath
from .supports.supports import Support, Supports
from .validation import Indices, check_flag, check_sparsity
