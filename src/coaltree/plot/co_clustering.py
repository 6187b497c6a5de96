"""How often rows are in one cluster, beside a tree, with matplotlib."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from ..tree.sample import TreeSample
from .panels import draw_dendrogram, edges_of, write_color_bar
from .style import need_matplotlib
from .visible_tree import drawn_part

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_ROWS = 3_000


def plot_co_clustering(
    sample: Any,
    *,
    n_clusters: int | None = None,
    height: float | None = None,
    axes: Mapping[str, Axes] | None = None,
) -> dict[str, Axes]:
    """Draw the probability that two rows are in the same flat cluster, in the order of a tree that stands for the sample.

    Parameters
    ----------
    sample : TreeSample, or CoalescentClustering fitted with ``inference="smc"`` or ``"mcmc"``
        A sample is drawn beside its tree of maximum clade credibility, a model beside its tree, whose branches have the
        colours of its clusters. At most 3,000 rows.
    n_clusters, height : optional
        How the sampled trees are cut, see :meth:`TreeSample.co_clustering`; by default as the model cuts them, or where the
        likelihood ratio says.
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
    found = getattr(sample, "sample_", sample)
    if not isinstance(found, TreeSample):
        raise InputError(
            f"sample is of type {type(sample).__name__}, which has no sample of trees; it must be a TreeSample, as of smc(), or "
            "a model fitted with inference='smc' or 'mcmc'."
        )
    if found.n_leaves > MOST_ROWS:
        raise InputError(
            f"The sample has {found.n_leaves:,} rows, and a matrix of all pairs is drawn for at most {MOST_ROWS:,}: draw the "
            "tree with plot_dendrogram instead."
        )
    if n_clusters is None and height is None:
        n_clusters, height = getattr(sample, "n_clusters", None), getattr(sample, "height_threshold", None)
    together = found.co_clustering(n_clusters=n_clusters, height=height)
    labels = getattr(sample, "labels_", None)
    drawn = drawn_part(found.mcc() if found is sample else sample.tree_, None)
    need_matplotlib()

    beside = draw_dendrogram(drawn, labels, None, axes, "matrix", 0.0, (), {})
    order, edges = drawn.whole.leaf_order, edges_of(drawn)
    mesh = beside.panel.pcolormesh(
        edges, edges, together[order][:, order], cmap="Blues", vmin=0.0, vmax=1.0, rasterized=True
    )
    beside.panel.set_xlim(edges[0], edges[-1])
    beside.panel.set_xticks([])
    write_color_bar(beside, mesh, "probability of one cluster", ticks=[0, 0.5, 1])
    return {"dendrogram": beside.tree, "matrix": beside.panel, "key": beside.key}
