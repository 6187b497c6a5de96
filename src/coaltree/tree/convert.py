"""Conversion of trees and samples of trees to the objects of other libraries, which are imported when needed."""

# ruff: noqa: D102  (the classes that implement the protocols document their members)

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import quote, require_package
from ..errors import InputError
from .arrays import TreeArrays, count_zero_heights


class WeightedTrees(Protocol):
    """The attributes of a ``TreeSample`` that are exported."""

    @property
    def trees(self) -> Sequence[TreeArrays]: ...
    @property
    def weights(self) -> NDArray[np.float64]: ...
    @property
    def log_joints(self) -> NDArray[np.float64] | None: ...
    @property
    def n_leaves(self) -> int: ...
    def to_xarray(self) -> Any: ...


def from_linkage(Z: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Read children and heights from a linkage matrix of shape ``(n - 1, 4)``."""
    try:
        matrix = np.asarray(Z, dtype=np.float64)
    except Exception:  # conversions of the objects in it may raise anything
        raise InputError(f"The linkage matrix is {quote(Z)}; it must be an array of numbers, as in scipy.") from None
    if matrix.ndim != 2 or matrix.shape[1] != 4:
        raise InputError(f"The linkage matrix has shape {matrix.shape}; it must be (n - 1, 4), as in scipy.")
    distances = matrix[:, 2]
    drops = np.flatnonzero(np.diff(distances) < 0)
    if len(drops):
        k = int(drops[0])
        raise InputError(
            f"Row {k + 1} of the linkage matrix has distance {distances[k + 1]:g}, less than {distances[k]:g} in the row "
            "before; a tree has no inversions (centroid and median linkage produce them: use another method)."
        )
    return matrix[:, :2], np.concatenate([np.zeros(len(matrix) + 1), distances])


def to_linkage(
    children: NDArray[np.intp], heights: NDArray[np.float64], leaf_counts: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Write a linkage matrix of shape ``(n - 1, 4)``."""
    n = len(children) + 1
    return np.column_stack([children.astype(np.float64), heights[n:], leaf_counts[n:].astype(np.float64)])


def to_networkx(tree: TreeArrays) -> Any:
    """Return the tree as a directed graph; see :meth:`Tree.to_networkx`."""
    require_package("networkx", "Graphs need", "interop")
    import networkx as nx

    graph = nx.DiGraph()
    names = [*tree.leaf_names, *[None] * (tree.n_leaves - 1)]
    for node, (name, height, support) in enumerate(zip(names, tree.heights.tolist(), _supports(tree), strict=True)):
        facts = {"name": name, "height": height, "support": support}
        graph.add_node(node, **{key: value for key, value in facts.items() if value is not None})
    edges = zip(tree.parents[:-1].tolist(), range(tree.n_nodes - 1), tree.branch_lengths.tolist(), strict=True)
    graph.add_weighted_edges_from(edges, weight="length")
    return graph


def to_dendropy(tree: TreeArrays) -> Any:
    """Return the tree as one of dendropy; see :meth:`Tree.to_dendropy`."""
    require_package("dendropy", "DendroPy trees need", "interop")
    import dendropy

    taxa = dendropy.TaxonNamespace(tree.leaf_names)
    lengths = [*tree.branch_lengths.tolist(), None]
    nodes = [dendropy.Node(edge_length=length) for length in lengths]
    for node, taxon in zip(nodes, taxa, strict=False):
        node.taxon = taxon
    for node, height, support in zip(nodes, tree.heights.tolist(), _supports(tree), strict=True):
        node.age = height
        if support is not None:
            node.annotations.add_new("support", support)
    for merge, children in zip(nodes[tree.n_leaves :], tree.children.tolist(), strict=True):
        merge.set_child_nodes([nodes[child] for child in children])
    result = dendropy.Tree(seed_node=nodes[-1], taxon_namespace=taxa)
    result.is_rooted = True
    return result


def to_tskit(tree: TreeArrays) -> Any:
    """Return the tree as a tree sequence of one tree; see :meth:`Tree.to_tskit`."""
    require_package("tskit", "Tree sequences need", "interop")
    import tskit

    at_zero = count_zero_heights(tree.merge_heights)
    if at_zero:
        raise InputError(
            f"{at_zero} merge(s) of the tree are at height 0, because rows are equal or differ by less than the noise. In a "
            "tree sequence parents must be older than their children: drop duplicate rows and, if merges at height 0 "
            "remain, fit with less noise (noise=0)."
        )
    # Merges of the same height are one node with all their children.
    parents = tree.parents.tolist()
    node_of = list(range(tree.n_nodes))
    for node in range(tree.n_nodes - 2, tree.n_leaves - 1, -1):
        if tree.heights[node] == tree.heights[parents[node]]:
            node_of[node] = node_of[parents[node]]
    tables = tskit.TableCollection(sequence_length=1.0)
    tables.time_units = "coalescent units"
    tables.nodes.metadata_schema = tskit.MetadataSchema({"codec": "json"})
    rows: dict[int, int] = {}
    for node, height in enumerate(tree.heights.tolist()):
        if node_of[node] == node:
            leaf = node < tree.n_leaves
            rows[node] = tables.nodes.add_row(
                flags=tskit.NODE_IS_SAMPLE if leaf else 0,
                time=height,
                metadata={"name": tree.leaf_names[node]} if leaf else {},
            )
    for node in rows:
        if node != node_of[tree.root]:
            tables.edges.add_row(0.0, 1.0, rows[node_of[parents[node]]], rows[node])
    tables.sort()
    return tables.tree_sequence()


def to_xarray(sample: WeightedTrees) -> Any:
    """Return the scalars of the trees; see :meth:`TreeSample.to_xarray`."""
    require_package("xarray", "Datasets need", "interop")
    import xarray as xr

    columns = {
        "weight": sample.weights,
        "root_height": np.array([tree.heights[-1] for tree in sample.trees]),
        "total_length": np.array([tree.total_length for tree in sample.trees]),
    }
    if sample.log_joints is not None:
        columns["log_joint"] = sample.log_joints
    return xr.Dataset({name: ("tree", values) for name, values in columns.items()}, attrs={"n_leaves": sample.n_leaves})


def to_arviz(sample: WeightedTrees) -> Any:
    """Return the scalars of equally weighted trees by chain; see :meth:`TreeSample.to_arviz`."""
    require_package("arviz", "ArviZ data need", "interop")
    import arviz

    n_trees = len(sample.trees)
    quantiles = (np.arange(n_trees) + 0.5) / n_trees
    resampled = np.searchsorted(np.cumsum(sample.weights), quantiles, side="right").clip(max=n_trees - 1)
    n_chains = getattr(sample, "n_chains", 1)  # of an MCMCResult; its trees are ordered by chain
    columns = {
        name: values.to_numpy()[resampled].reshape(n_chains, -1)
        for name, values in sample.to_xarray().items()
        if name not in ("weight", "chain")
    }
    parameters = getattr(sample, "parameters", {})  # of an MCMCResult, too
    posterior = {name: columns.pop(name) for name in ("root_height", "total_length", *parameters)}
    if "log_joint" in columns:
        columns["lp"] = columns.pop("log_joint")
    groups: dict[str, Any] = {"posterior": posterior} | ({"sample_stats": columns} if columns else {})
    # arviz 0.23, the last for Python 3.11, takes groups as arguments; arviz 1 takes one dict.
    return arviz.from_dict(**groups) if version("arviz").startswith("0.") else arviz.from_dict(groups)


def _supports(tree: TreeArrays) -> list[float | None]:
    """Return the support of every node, None where nothing is known."""
    known = getattr(tree, "support", None)  # only a SummaryTree has it
    merges = [None] * (tree.n_leaves - 1) if known is None else known.tolist()
    return [*[None] * tree.n_leaves, *(None if share is None or share != share else share for share in merges)]
