"""Data on a GPU, told by their type: CuPy arrays, cupyx matrices, torch tensors.

The factor C of A = C'C is computed on the host, in double, as for any data: proofs and
certificates need it there. That the data came from a GPU says that the scan, nearly all
of the work, is done there (`scan.device`).
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any


def on_host(X: Any) -> tuple[Any, bool]:
    """Return X in the memory of the host, and whether it was on a GPU."""
    library = type(X).__module__.split(".")[0]
    if library in ("cupy", "cupyx") and hasattr(X, "get"):
        return X.get(), True
    if library == "torch" and hasattr(X, "detach"):
        on_device = bool(X.is_cuda)
        if on_device and find_spec("cupy") is None:
            raise ImportError(
                "X is a torch tensor on a GPU, whose kernels need CuPy: pip install "
                "'blockspca[gpu]', or pass X.cpu()."
            )
        return X.detach().cpu().numpy(), on_device
    return X, False
