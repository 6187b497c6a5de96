"""Dendrograms as the content of picture files, without a display and without a change to pyplot."""

from __future__ import annotations

import io
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from ..errors import MissingDependencyError
from ..tree.summary import SummaryTree
from ..tree.tree import Tree
from .dendrogram import Orientation, extent, plot_dendrogram, write_names
from .drawn import Drawn, drawn_part
from .fonts import any_script

# Up to this many leaves are named in a picture, and above it the picture grows no more.
MAX_NAMED_LEAVES = 300
_DPI = 150
_ACROSS, _LONGEST = 6.0, 8.0  # inches from root to leaves, and along leaves without names
# What a file would tell of when it was made.
_TIMELESS = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}

_MARGIN = 0.2  # inches around all that is drawn
_LIGHT: dict[str, dict[str, Any]] = {"png": {"pil_kwargs": {"compress_level": 4}}}  # as small, in half the time

PictureKind = Literal["png", "svg", "pdf"]


def dendrogram_bytes(
    tree: Tree,
    *,
    labels: ArrayLike | None = None,
    title: str = "",
    kind: PictureKind = "png",
    width: float | None = None,
    height: float | None = None,
    orientation: Orientation = "left",
    names: bool = True,
    collapse: int | Literal["auto"] | None = "auto",
) -> bytes:
    """Draw a tree into a picture: the same one for the same tree.

    Parameters
    ----------
    tree : Tree
    labels : array-like of int, shape (n_leaves,), optional
        Cluster of each leaf, -1 for outliers.
    title : str, default ""
        Written above the tree.
    kind : {"png", "svg", "pdf"}, default "png"
    width, height : float, optional
        Inches. By default what the names need.
    orientation, collapse
        As of `plot_dendrogram`.
    names : bool, default True
        Whether to write the leaves' names, if they have room.

    Returns
    -------
    bytes
    """
    try:
        import matplotlib
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingDependencyError(
            'Dendrograms are drawn with matplotlib, which is not installed: pip install "coaltree[cli]".'
        ) from error
    drawn = drawn_part(tree, collapse)
    usual = _usual_size(drawn, orientation, names)
    fixed = width is not None or height is not None
    figure = Figure(figsize=(width or usual[0], height or usual[1]), dpi=_DPI, layout="constrained" if fixed else None)
    canvas = FigureCanvasAgg(figure)
    clusters = None
    if labels is not None:
        clusters = ["outliers" if label == -1 else f"cluster {label}" for label in np.asarray(labels).tolist()]
    with any_script(), matplotlib.rc_context({"svg.hashsalt": "coaltree"}):
        # Unless the size is given the axes fill the figure, so that names find their size, and the picture is cut around all
        # that is drawn.
        ax = figure.add_subplot() if fixed else figure.add_axes((0.0, 0.0, 1.0, 1.0))
        named = names and drawn.n_tips <= MAX_NAMED_LEAVES
        as_texts = named and orientation in ("left", "right")
        plot_dendrogram(
            tree,
            labels=clusters,
            ax=ax,
            orientation=orientation,
            leaf_names="auto" if named and not as_texts else False,
            max_leaf_names=MAX_NAMED_LEAVES,
            support=named and isinstance(tree, SummaryTree),
            collapse=collapse,
        )
        if as_texts:
            write_names(ax, drawn, drawn.texts(), orientation, None, insist=False, ticks=False)
        if title:
            _write_title(ax, title, fixed)
        picture = io.BytesIO()
        # What "tight" would find, but for drawing everything twice.
        renderer = canvas.get_renderer()  # type: ignore[no-untyped-call, unused-ignore]
        box = None if fixed else figure.get_tightbbox(renderer).padded(_MARGIN)
        figure.savefig(
            picture, format=kind, dpi=_DPI, metadata=_TIMELESS[kind], bbox_inches=box, **_LIGHT.get(kind, {})
        )
    return picture.getvalue()


def _usual_size(drawn: Drawn, orientation: Orientation, names: bool) -> tuple[float, float]:
    """Return width and height of a picture in which names have room."""
    along = extent(drawn) if names and drawn.n_tips <= MAX_NAMED_LEAVES else _LONGEST
    return (_ACROSS, along) if orientation in ("left", "right") else (max(along, 3.0), _ACROSS)


def _write_title(ax: Any, title: str, fixed: bool) -> None:
    """Write the title above everything else."""
    if fixed:
        heading = ax.figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    else:
        legend = ax.get_legend()
        above = legend.get_window_extent().y1 - ax.get_window_extent().y1 if legend else 0.0
        heading = ax.set_title(title, loc="left", fontsize=11, pad=72 * max(above, 0.0) / _DPI + 5)
    heading.set_parse_math(False)
