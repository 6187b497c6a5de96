"""What every process supplies to the compiled algorithms: operations on a forest of messages.

A *forest* is a ``NamedTuple`` of plain arrays that holds, slot by slot, the messages of live lineages. Two slots
``i`` and ``j`` that might merge make a *pair*: a small scratch array, filled once by `load_pair`, that answers every
question about the merge as a function of its height ``h``. Write ``g(h) = 2 h - height[i] - height[j]`` for the length
of the path between the two tops; ``h`` is never below either top, so ``g`` starts at or above 0 and grows.

The slope of ``log Z`` is the difference of two decreasing functions of ``h``: the *rise*, from cells that disagree and
want a longer path, which is convex, and the *drop*, from cells that agree and want a shorter one, which need not
be. All searches for the best height rest on that, see `coaltree.inference._pair_kernels`.

Every forest has the field ``height``, one number a slot. The parts of a mixed forest share one such array, and the
algorithm that merges writes it.
"""

# These bodies are declarations: the docstring is the contract, processes supply the code.

from __future__ import annotations

from typing import Any

from ..compiled import Operation


def _pair_size(forest: Any) -> int:  # type: ignore[empty-body]
    """Length of the scratch array that a pair needs."""


def _load_pair(forest: Any, i: int, j: int, pair: Any) -> None:
    """Fill the scratch array for slots i and j."""


def _log_z(forest: Any, pair: Any, h: float) -> float:  # type: ignore[empty-body]
    """Log local likelihood of the pair's merge at height h, every constant in."""


def _slopes(forest: Any, pair: Any, h: float) -> tuple[float, float, float, float]:  # type: ignore[empty-body]
    """Rise and drop of ``log Z`` at h, and minus their derivatives: all four non-negative."""


def _least_variance(forest: Any, i: int) -> float:  # type: ignore[empty-body]
    """Smallest variance of slot i's message over its real columns; infinite if it has none."""


def _least_slope(forest: Any, pair: Any, low: float, high: float, shift: float) -> float:  # type: ignore[empty-body]
    """A number that ``(g(h) + shift) / (g(high) + shift) * slope(h)`` does not fall below for h in [low, high].

    The factor is positive, so it leaves the sign of the slope alone; it takes away the pole at ``g = 0`` that
    would otherwise spoil every bound there. `shift` is the sum of the two slots' least variances, or 0.
    """


def _drop_falls_range(forest: Any, pair: Any, low: float, high: float) -> tuple[float, float]:  # type: ignore[empty-body]
    """A number below and one above minus the derivative of the drop, for all h in [low, high]."""


def _highest(forest: Any, pair: Any, c: float) -> float:  # type: ignore[empty-body]
    """A height above which the rise is below c, so that ``log Z - c h`` falls."""


def _add_least_slopes(
    forest: Any, i: int, first: int, last: int, low: float, high: float, shifts: Any, slopes: Any
) -> None:
    """Add `least_slope` over [low, high] to slopes[j - first], for slots first <= j < last.

    Neither slot i nor any slot of the block stands above `low`.
    """


def _merge(forest: Any, i: int, j: int, h: float, into: int) -> None:
    """Write the message of the merged lineage into a slot, which may be i or j."""


def _move(forest: Any, source: int, target: int) -> None:
    """Copy a slot's message to another slot."""


def _root_log_density(forest: Any, i: int) -> float:  # type: ignore[empty-body]
    """Log of what a proper root at the top of slot i would add to the likelihood; 0 where messages are ratios."""


def _place_size(forest: Any) -> int:  # type: ignore[empty-body]
    """Length of the scratch array that a place needs."""


def _load_place(forest: Any, below: int, beyond: int, turn: float, third: int, scratch: int, place: Any) -> None:
    """Fill the scratch array for a *place*: a branch, from a point of which a third slot may hang.

    Slot `below` stands at the branch's lower end; what slot `beyond` holds has the way ``turn - h`` to go to a point at height h.
    A slot that nothing is kept in may be used.
    """


def _log_z_at(forest: Any, place: Any, h: float) -> float:  # type: ignore[empty-body]
    """Log local likelihood of the third slot's merge with all else, at the place's point at height h."""


def _noisy(forest: Any) -> bool:  # type: ignore[empty-body]
    """Whether leaves have noise, so that many pairs would merge before they live: then the likelier ones come first."""


PAIR_SIZE = Operation(_pair_size)
LOAD_PAIR = Operation(_load_pair)
LOG_Z = Operation(_log_z)
SLOPES = Operation(_slopes)
LEAST_VARIANCE = Operation(_least_variance)
LEAST_SLOPE = Operation(_least_slope)
DROP_FALLS_RANGE = Operation(_drop_falls_range)
HIGHEST = Operation(_highest)
ADD_LEAST_SLOPES = Operation(_add_least_slopes)
MERGE = Operation(_merge)
MOVE = Operation(_move)
ROOT_LOG_DENSITY = Operation(_root_log_density)
NOISY = Operation(_noisy)


# What a place says by the operations above: the two messages are merged at the point, and make a pair with the third.
def _place_of_a_pair(forest: Any) -> int:
    return 5 + int(pair_size(forest))


def _load_slots(forest: Any, below: int, beyond: int, turn: float, third: int, scratch: int, place: Any) -> None:
    place[0], place[1], place[2], place[3], place[4] = below, beyond, turn, third, scratch


def _log_z_of_a_pair(forest: Any, place: Any, h: float) -> Any:
    below, beyond, third, scratch = int(place[0]), int(place[1]), int(place[3]), int(place[4])
    forest.height[beyond] = 2 * h - place[2]
    merge(forest, below, beyond, h, scratch)
    forest.height[scratch] = h
    load_pair(forest, scratch, third, place[5:])
    return log_z(forest, place[5:], h)


PLACE_SIZE = Operation(_place_size, default=_place_of_a_pair)
LOAD_PLACE = Operation(_load_place, default=_load_slots)
LOG_Z_AT = Operation(_log_z_at, default=_log_z_of_a_pair)

pair_size = PAIR_SIZE.function
load_pair = LOAD_PAIR.function
log_z = LOG_Z.function
slopes = SLOPES.function
least_variance = LEAST_VARIANCE.function
least_slope = LEAST_SLOPE.function
drop_falls_range = DROP_FALLS_RANGE.function
highest = HIGHEST.function
add_least_slopes = ADD_LEAST_SLOPES.function
merge = MERGE.function
move = MOVE.function
root_log_density = ROOT_LOG_DENSITY.function
noisy = NOISY.function
place_size = PLACE_SIZE.function
load_place = LOAD_PLACE.function
log_z_at = LOG_Z_AT.function
