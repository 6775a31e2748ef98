"""Which strategy a threshold stands for: an object, a name or a number."""

from __future__ import annotations

from .._validation import check_real
from .block_search import BlockSearch
from .strategies import FixedThreshold, NoiseThreshold, ThresholdStrategy

_STRATEGIES = {"search": BlockSearch, "noise": NoiseThreshold}


def as_strategy(
    threshold: ThresholdStrategy | float | str | None,
) -> ThresholdStrategy:
    """Accept a strategy, its name or a threshold; None is the search of Algorithm 5.

    Examples
    --------
    >>> from blockspca.blocks.strategy_names import as_strategy
    >>> as_strategy(0.3)
    FixedThreshold(epsilon=0.3)
    """
    if threshold is None:
        return BlockSearch()
    if isinstance(threshold, str):
        if threshold in _STRATEGIES:
            return _STRATEGIES[threshold]()
        raise ValueError(
            f"threshold = {threshold!r} is not known; pass one of "
            f"{sorted(_STRATEGIES)}, a number or a strategy such as BlockSearch()."
        )
    if hasattr(threshold, "search") and not isinstance(threshold, type):
        return threshold
    if isinstance(threshold, type):
        raise TypeError(
            f"threshold = {threshold.__name__} is a class; pass an instance, "
            f"{threshold.__name__}()."
        )
    return FixedThreshold(check_real(threshold, "threshold", minimum=0))
