"""Several provers of one problem at a time, a core for each: the first proof ends all.

Which of two proofs comes first is for the clock to say. So they run at once only where
a limit on time leaves how far a proof gets to the clock anyway.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from threading import Event
from typing import TypeVar

from ..limits import until_called_off
from ..numerics.blas import single_threaded
from ..numerics.threads import allowed_threads

Found = TypeVar("Found")

_LOOKS = 0.1  # seconds between two looks for Ctrl-C


def side_by_side(
    provers: Sequence[Callable[[], Found]],
    is_final: Callable[[Found], bool],
    head_start: float,
) -> tuple[list[Found], bool]:
    """Run provers in threads, each after the one before has had a head start.

    Parameters
    ----------
    provers : sequence of callables
        They look at a `Deadline` that they make, and return what they have when it has
        passed, which it has once another one is final.
    is_final : callable
        Whether an answer needs no other.
    head_start : float
        Seconds; if the answer is final by then, the next prover is not begun.

    Returns
    -------
    answers : list
        Of those that were begun, in their order.
    interrupted : bool
        By Ctrl-C, which calls all of them off.

    Examples
    --------
    >>> from blockspca.certify.side_by_side import side_by_side
    >>> side_by_side([lambda: 1, lambda: 2], lambda found: found == 2, 0.0)
    ([1, 2], False)
    """
    called_off = Event()

    def run(prover: Callable[[], Found]) -> Found:
        try:
            with allowed_threads(1), until_called_off(called_off):
                found = prover()
            if is_final(found):
                called_off.set()
            return found
        except BaseException:
            called_off.set()
            raise

    futures: list[Future[Found]] = []
    interrupted = False
    # The number of BLAS threads is global: set here, so that no prover resets it.
    with single_threaded(), ThreadPoolExecutor(len(provers)) as pool:
        try:
            for prover in provers:
                wait(futures, timeout=head_start)
                if called_off.is_set():
                    break
                futures.append(pool.submit(copy_context().run, run, prover))
            # On some systems Ctrl-C is not delivered while a thread waits for a lock.
            while wait(futures, timeout=_LOOKS).not_done:
                pass
        except KeyboardInterrupt:
            called_off.set()
            if not futures:
                raise
            interrupted = True
            wait(futures)
    return [future.result() for future in futures], interrupted
