"""The style of all figures."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from coaltree._validation import require_package

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STYLE: Any = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "legend.frameon": False,
    "errorbar.capsize": 2,
}


@contextmanager
def new_figure(
    rows: int, columns: int, size: tuple[float, float], **options: Any
) -> Iterator[tuple[Figure, list[Axes]]]:
    """Give a figure and its axes, row by row, to be drawn in the common style; no window opens."""
    require_package("matplotlib", "Figures need", "plot")
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=size, layout="constrained")
        yield figure, list(figure.subplots(rows, columns, squeeze=False, **options).flat)


def title_panels(axes: list[Axes], titles: list[str]) -> None:
    """Give panels their letters and titles."""
    for letter, panel, title in zip("abcdefgh", axes, titles, strict=False):
        panel.set_title(f"({letter}) {title}")
