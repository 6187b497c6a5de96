"""``plot_co_clustering``: the probability that two rows share a cluster, next to a tree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .._cut import Cut
from ..errors import InputError
from ..tree.sample import TreeSample, co_clustering_matrix
from .panels import draw_color_bar, draw_dendrogram_panels, tip_edges
from .style import require_matplotlib
from .visible_tree import select_visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_ROWS = 3_000


def plot_co_clustering(
    sample: Any,
    *,
    n_clusters: int | None = None,
    height: float | None = None,
    axes: Mapping[str, Axes] | None = None,
) -> dict[str, Axes]:
    """Draw the probability that two rows share a flat cluster, in the order of a summary tree.

    Parameters
    ----------
    sample : TreeSample, or CoalescentClustering fitted with ``inference="smc"`` or ``"mcmc"``
        A sample is drawn next to its CCD0 tree, a model next to its tree with the colours of its
        clusters. At most 3,000 rows.
    n_clusters, height : optional
        How to cut the sampled trees, see :meth:`TreeSample.co_clustering`; by default as the model does, or by likelihood
        ratio.
    axes : mapping of "dendrogram", "matrix" and "key" to matplotlib Axes, optional
        Where to draw; by default a new pyplot figure.

    Returns
    -------
    dict of str to matplotlib Axes
        With the keys of `axes`.

    Raises
    ------
    MissingDependencyError
        If matplotlib is not installed.
    InputError
        If there is no sample of trees, or it has too many rows.

    Examples
    --------
    >>> import coaltree as ct
    >>> sample = ct.smc([[0.0], [0.1], [3.0], [3.2]], ct.OrnsteinUhlenbeck(), n_runs=2, random_state=0)
    >>> axes = ct.plot_co_clustering(sample)  # doctest: +SKIP
    """
    trees = getattr(sample, "sample_", sample)
    if not isinstance(trees, TreeSample):
        raise InputError(
            f"sample is of type {type(sample).__name__}, which has no sample of trees; pass a TreeSample, such as the result of "
            "smc(), or a model fitted with inference='smc' or 'mcmc'."
        )
    if trees.n_leaves > MAX_ROWS:
        raise InputError(
            f"The sample has {trees.n_leaves:,} rows; the matrix of all pairs is limited to {MAX_ROWS:,} rows. Draw the tree "
            "with plot_dendrogram instead."
        )
    if isinstance(sample, Cut) and n_clusters is None and height is None:
        together = co_clustering_matrix(trees, sample)
    else:
        together = trees.co_clustering(n_clusters=n_clusters, height=height)
    labels = getattr(sample, "labels_", None)
    visible = select_visible(trees.ccd0() if trees is sample else sample.tree_, None)
    require_matplotlib()

    panels = draw_dendrogram_panels(visible, labels, None, axes, "matrix", 0.0, (), {})
    order, edges = visible.original.leaf_order, tip_edges(visible)
    mesh = panels.panel.pcolormesh(
        edges, edges, together[order][:, order], cmap="Blues", vmin=0.0, vmax=1.0, rasterized=True
    )
    panels.panel.set_xlim(edges[0], edges[-1])
    panels.panel.set_xticks([])
    draw_color_bar(panels, mesh, "probability of one cluster", ticks=[0, 0.5, 1])
    return {"dendrogram": panels.tree, "matrix": panels.panel, "key": panels.key}
