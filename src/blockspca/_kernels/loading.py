"""Load kernels within a time limit: the first use of each on a machine compiles it.

The imports run in a thread of their own, and the caller waits no longer than its time
lasts. The thread goes on to the last of them, so that the next call finds them ready.
"""

from __future__ import annotations

import importlib
import threading
import time
from contextlib import suppress

#: What `solve` may use of any matrix, with the settings it has by itself.
PROVING = ("forest", "screen", "averaging", "schur_tree", "entry_shares")
#: What it uses of some.
SCANNING = (
    "rowtops",
    "columntops",
    "single_tops",
    "sparse_tops",
    "corrected_tops",
    "sparse_gram",
    "sparse_columns",
)
#: What the proofs of `write_proof` are recorded by, besides those of the scan.
RECORDED_BY = ("screen", "tree_log")
#: What named solvers and schemes and recorded proofs use besides.
OTHERS = (
    "opening",
    "row_truncation",
    "tree_log",
    "branch_and_bound",
    "prediction_sets",
    "prediction_exchange",
    "lasso",
)

_begun: dict[str, threading.Event] = {}  # set when the import has ended
_ready: set[str] = set()
_failed: dict[str, Exception] = {}  # of imports that ended so
_cut_short: list[tuple[str, ...]] = []  # modules for which there was no time
_lock = threading.Lock()


def load(*names: str, seconds: float | None = None) -> bool:
    """Import modules of this package; False if the seconds did not suffice.

    A module that is not there is left to the caller's own import. Any other failure, of
    a compilation or of its cache, is raised here, and the next call tries again.
    """
    if is_loaded(*names):
        return True
    if seconds is None:  # here and now: in a thread it takes a second longer
        for name in names:
            _load(name)
        _ready.update(names)
        return True
    with _lock:
        new = {name: threading.Event() for name in names if name not in _begun}
        _begun.update(new)
        waited_for = [_begun[name] for name in names]
        if new:
            # Not a daemon: ending the interpreter in the middle of a compilation is
            # not safe.
            threading.Thread(target=_load_in_turn, args=(new,)).start()
    ends = time.perf_counter() + seconds
    for ended in waited_for:
        if not ended.wait(max(0.0, ends - time.perf_counter())):
            if seconds > 0:  # of no time at all nothing went into compiling
                _cut_short.append(names)
            return False
    with _lock:
        failed = [name for name in names if name in _failed]
        errors = [_failed.pop(name) for name in failed]
        for name in failed:
            del _begun[name]
    if errors:
        raise errors[0]
    return True


def times_cut_short() -> int:
    """How often there was too little time for `load`: once before, and again after."""
    return len(_cut_short)


def is_loaded(*names: str) -> bool:
    """Tell whether `load` has nothing left to do for these."""
    return _ready.issuperset(names)


def _load_in_turn(new: dict[str, threading.Event]) -> None:
    for name, ended in new.items():
        try:
            _load(name)
            _ready.add(name)
        except Exception as error:  # numba's, or of the files of its cache
            _failed[name] = error
        finally:
            ended.set()


def _load(name: str) -> None:
    with suppress(ImportError):
        importlib.import_module(f"{__package__}.{name}")
