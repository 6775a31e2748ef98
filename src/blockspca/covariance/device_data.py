"""Recognises data on a GPU: CuPy arrays, cupyx matrices and CUDA tensors of torch.

The factor C of A = C'C is computed on the host, in double, as proofs and certificates
need it there. On the GPU that the data came from run the scan (`scan.device`) or the
forming of A from many samples (`device_gram`), which are nearly all of the work.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any


def is_on_device(X: Any) -> bool:
    """Tell whether X is in the memory of a GPU, without importing what it is of."""
    library = type(X).__module__.split(".")[0]
    if library in ("cupy", "cupyx"):
        return hasattr(X, "get")
    return library == "torch" and hasattr(X, "detach") and bool(X.is_cuda)


def on_host(X: Any) -> Any:
    """Return X in the memory of the host, where it may be already."""
    on_device = is_on_device(X)
    if on_device and hasattr(X, "get"):
        return X.get()
    if on_device and find_spec("cupy") is None:
        raise ImportError(
            "X is a torch tensor on a GPU, whose kernels need CuPy: pip install "
            "'blockspca[gpu]', or pass X.cpu()."
        )
    if type(X).__module__.split(".")[0] == "torch" and hasattr(X, "detach"):
        return X.detach().cpu().numpy()
    return X
