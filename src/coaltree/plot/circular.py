"""Circular dendrograms: the root in the centre, the leaves on a circle."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .style import FONT, SMALL_FONT
from .visible_tree import VisibleTree, name_width

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FloatArray = NDArray[np.float64]

_GAP = 0.04  # share of the circle without leaves, where the scale is
_STEP = math.radians(2)  # between the points of an arc
_SCALE_COLOR = "#DDDDDD"
_MIN_FONT, _MAX_FONT = 4.0, FONT
_SUPPORT_FONT, _SUPPORT_COLOR = 6.0, "#555555"
_LETTER = 0.6  # mean width of a letter as a share of the font size


class Circle:
    """Coordinates of a tree on a circle of radius 1.

    Parameters
    ----------
    visible : VisibleTree
    """

    def __init__(self, visible: VisibleTree) -> None:
        self.visible = visible
        self.root = float(visible.heights[-1])

    def angles(self, positions: FloatArray) -> FloatArray:
        """Return angles: clockwise from the top, with a gap there."""
        share = (positions + 0.5) / self.visible.span
        return np.asarray(0.5 * math.pi - 2 * math.pi * (0.5 * _GAP + (1 - _GAP) * share))

    def radii(self, heights: FloatArray) -> FloatArray:
        """Return distances from the centre."""
        return np.asarray(1 - heights / self.root if self.root > 0 else np.ones_like(heights))

    def points(self, positions: FloatArray, heights: FloatArray) -> FloatArray:
        """Return points of the plane."""
        angles, radii = self.angles(positions), self.radii(heights)
        return np.stack([radii * np.cos(angles), radii * np.sin(angles)], axis=-1)

    def branches(self) -> list[FloatArray]:
        """Return a line for each branch: outwards from the child, then along the circle of its parent."""
        lines = []
        for line in self.visible.branches():
            (child, _, parent), (height, above, _) = line.T
            turn = abs(float(np.diff(self.angles(np.array([child, parent])))[0]))
            along = np.linspace(child, parent, 2 + int(turn / _STEP))
            lines.append(
                self.points(np.concatenate([[child], along]), np.concatenate([[height], np.full(len(along), above)]))
            )
        return lines

    def wedges(self) -> list[FloatArray]:
        """Return a sector for each collapsed clade."""
        sectors = []
        for apex, low, high in self.visible.wedges()[1]:
            base = np.linspace(low[0], high[0], 12)
            sectors.append(self.points(np.append(apex[0], base), np.append(apex[1], np.zeros(len(base)))))
        return sectors


def circular_size(visible: VisibleTree, names: list[str]) -> tuple[float, float]:
    """Return the inches of a figure in which names do not touch."""
    longest = max(map(name_width, names), default=0.0) * _LETTER * _MAX_FONT / 72
    radius = np.clip(0.14 * visible.span / (2 * math.pi), 1.6, 8.0)
    side = float(2 * (radius + longest) + 0.6)
    return side, side


def frame_circle(ax: Axes, circle: Circle, height_label: str) -> None:
    """Draw the circles of some heights with their values, and hide the axes."""
    from matplotlib.ticker import MaxNLocator

    ax.set_aspect("equal")
    ax.set_axis_off()
    ax.set_xlim(-1.03, 1.03)
    ax.set_ylim(-1.03, 1.03)
    if circle.root == 0:
        return
    around = np.linspace(0, 2 * math.pi, 181)
    heights = [own for own in MaxNLocator(3).tick_values(0.0, circle.root) if 0 <= own < 0.97 * circle.root]
    for height in heights:
        radius = 1 - height / circle.root
        ax.plot(radius * np.cos(around), radius * np.sin(around), color=_SCALE_COLOR, linewidth=0.6, zorder=0)
        text = f"{height:g}" + (f" {height_label}" if height == heights[-1] and height_label else "")
        note = ax.text(0.0, radius, text, fontsize=SMALL_FONT - 2, color=_SUPPORT_COLOR, ha="center", va="center")
        note.set_parse_math(False)
        note.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 0.5})


def draw_circular_names(ax: Axes, circle: Circle, names: list[str], inches: float | None, *, insist: bool) -> None:
    """Write the names outside the circle, turned outwards, in a font size at which they do not touch.

    ``inches`` is the side of a new figure.
    """
    if not names:
        return
    visible = circle.visible
    order = visible.tree.leaf_order
    longest = max(map(name_width, names)) * _LETTER
    side = 72 * (inches or min(ax.get_window_extent().size) / ax.figure.dpi)
    # Names and circle share half of the side; what names take depends on their size, which depends on the circle.
    pitch = 2 * math.pi * (1 - _GAP) * float(np.min(visible.widths)) / visible.span
    size = min(_MAX_FONT, 0.85 * pitch * 0.5 * side / (1 + 0.85 * pitch * longest))
    if size < _MIN_FONT and not insist:
        return
    reach = 1 + (longest * size + 4) / max(0.5 * side - longest * size - 4, 0.2 * side)
    ax.set_xlim(-reach, reach)
    ax.set_ylim(-reach, reach)
    angles = circle.angles(visible.positions[order])
    for angle, name in zip(angles.tolist(), names, strict=True):
        left = math.cos(angle) < 0
        note = ax.text(
            1.02 * math.cos(angle),
            1.02 * math.sin(angle),
            name,
            fontsize=size,
            rotation=math.degrees(angle) + (180 if left else 0),
            rotation_mode="anchor",
            ha="right" if left else "left",
            va="center_baseline",
        )
        note.set_parse_math(False)


def draw_circular_support(ax: Axes, circle: Circle, shares: FloatArray) -> None:
    """Write per cents at the merges; the support of the root itself is always 1."""
    from matplotlib.patheffects import withStroke

    visible = circle.visible
    n = visible.n_tips
    at = circle.points(visible.positions[n:], visible.heights[n:])
    own: list[Any] = shares[len(shares) - n + 1 :].tolist()
    for share, (x, y) in list(zip(own, at.tolist(), strict=True))[:-1]:
        if share == share:
            ax.text(
                x,
                y,
                f"{100 * share:.0f}",
                fontsize=_SUPPORT_FONT,
                color=_SUPPORT_COLOR,
                ha="center",
                va="center",
                clip_on=True,
                path_effects=[withStroke(linewidth=1.5, foreground="white")],
            )
