"""How the messages of a forest lie in memory: blocks of slots side by side, as processes make them, or the columns of a slot."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ._mixed_kernels import PairForest
from ._multinomial_kernels import CategoricalForest
from ._site_kernels import as_sites


def columns_together(forest: Any) -> Any:
    """Return a forest with the columns of each slot side by side, for work on slots and pairs here and there."""
    return _laid_out(forest, "F")


def for_chains(forest: Any) -> Any:
    """Return a forest for work on single slots and places, as Markov chains do it: see `_site_kernels`."""
    if isinstance(forest, CategoricalForest):
        return as_sites(forest)
    if isinstance(forest, PairForest):
        return PairForest(forest.height, for_chains(forest.first), for_chains(forest.second))
    return columns_together(forest)


def slots_together(forest: Any) -> Any:
    """Return a forest with blocks of slots side by side, for work on many slots in turn."""
    return _laid_out(forest, "C")


def first_slots(forest: Any, n: int) -> Any:
    """Return the first n slots of a forest, in the same memory.

    An array of parameters that happens to be as long as the slots are many is cut as well, so that this is for looking and
    for putting back, not for computing.
    """
    slots = len(forest.height)

    def cut(field: Any) -> Any:
        if isinstance(field, tuple):
            return type(field)(*map(cut, field))
        return field[..., :n] if isinstance(field, np.ndarray) and field.shape[-1] == slots else field

    return cut(forest)


def _laid_out(forest: Any, order: Literal["C", "F"]) -> Any:
    """Return the forest with its matrices, of columns by slots, in some order; parts and other arrays are the same."""
    fields = []
    for field in forest:
        if isinstance(field, tuple):
            fields.append(_laid_out(field, order))
        elif isinstance(field, np.ndarray) and field.ndim == 2:
            fields.append(np.asarray(field, order=order))
        else:
            fields.append(field)
    return type(forest)(*fields)
