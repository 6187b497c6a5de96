"""The axes that pictures are drawn on: given by the user, or new."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from ..extras import need
from .drawn import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FONT = 9.0
SMALL_FONT = 8.0


def need_matplotlib() -> None:
    """Raise, with a word on how to get it, unless matplotlib is installed."""
    need("matplotlib", "Pictures are drawn with", "plot")


def check_axes(ax: object, what: str = "ax") -> None:
    """Refuse what is neither None nor axes of matplotlib."""
    if ax is not None and not hasattr(ax, "add_collection"):
        raise InputError(
            f"{what} is of type {type(ax).__name__}; it must be matplotlib Axes, as plt.subplots() gives, or None."
        )


def checked_panels(axes: Any, names: Sequence[str]) -> dict[str, Axes] | None:
    """Return axes by the names of a picture's panels, or None if there are none yet."""
    if axes is None:
        return None
    if not isinstance(axes, Mapping) or any(name not in axes for name in names):
        raise InputError(
            f"axes must be a mapping of {', '.join(map(repr, names))} to matplotlib Axes, as plt.subplot_mosaic gives, or None."
        )
    for name in names:
        check_axes(axes[name], f"axes[{name!r}]")
    return {name: axes[name] for name in names}


def new_axes(size: tuple[float, float]) -> Axes:
    """Return the axes of a new pyplot figure, in which all texts have room."""
    import matplotlib.pyplot as plt

    # The constrained layout keeps names and legend inside of the figure; it belongs to the figure alone.
    return plt.subplots(figsize=size, layout="constrained")[1]


def new_panels(names: Sequence[str], size: tuple[float, float]) -> dict[str, Axes]:
    """Return axes of a new pyplot figure, one below the other with one horizontal axis, by name."""
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=size, layout="constrained")
    found: dict[str, Axes] = figure.subplot_mosaic([[name] for name in names], sharex=True)
    return found


def write_label(ax: Axes, axis: str, name: str) -> None:
    """Name an axis after a column; names are text: a dollar sign in one does not begin a formula."""
    label = getattr(ax, f"set_{axis}label")(shown(name))
    label.set_parse_math(False)


def hide_spines(ax: Axes, *sides: str) -> None:
    """Take away lines around axes."""
    for side in sides:
        ax.spines[side].set_visible(False)
