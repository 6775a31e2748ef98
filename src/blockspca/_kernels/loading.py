"""Load kernels within a time limit: the first use of each on a machine compiles it.

The import runs in a thread of its own, and who asks for the kernels waits no longer
than their time lasts. The thread goes on, so that the next call finds them ready.
"""

from __future__ import annotations

import importlib
import threading
import time
from contextlib import suppress

_imports: dict[str, threading.Thread] = {}
_ready: set[str] = set()
_lock = threading.Lock()


def load(*names: str, seconds: float | None = None) -> bool:
    """Import modules of this package; False if the seconds did not suffice.

    An import that fails is left to the caller's own, which raises where it can be seen.
    """
    if is_loaded(*names):
        return True
    if seconds is None:  # here and now: in a thread it takes a second longer
        for name in names:
            _load(name)
        _ready.update(names)
        return True
    ends = time.perf_counter() + seconds
    for name in names:
        with _lock:
            if name not in _imports:
                thread = threading.Thread(target=_load, args=(name,))
                # Not a daemon: ending the interpreter in the middle of a compilation
                # is not safe.
                thread.start()
                _imports[name] = thread
        _imports[name].join(max(0.0, ends - time.perf_counter()))
        if _imports[name].is_alive():
            return False
    _ready.update(names)
    return True


def is_loaded(*names: str) -> bool:
    """Tell whether `load` has nothing left to do for these."""
    return _ready.issuperset(names)


def _load(name: str) -> None:
    with suppress(ImportError):
        importlib.import_module(f"{__package__}.{name}")
