"""``Tree``: an immutable rooted binary tree with heights; ``SummaryTree``: one with support and heights of clades."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._parameters import FLAG, check_parameter
from .._validation import check_index, quote
from ..errors import InputError
from . import arrays, convert, layout, newick, nexus

IntArray = NDArray[np.intp]
FloatArray = NDArray[np.float64]


class Tree:
    """A rooted binary tree with all leaves at height 0.

    Leaf ``i`` is row ``i`` of the table it was built from. Interior nodes are numbered by age:
    node ``n + k`` is the ``k``-th merge, most recent first, so a child's number is always smaller
    than its parent's and one plain loop over the numbers visits children before parents.

    Parameters
    ----------
    children : array-like of int, shape (n - 1, 2)
        The two nodes that each merge joins.
    heights : array-like of float, shape (2n - 1,)
        Time before the present of each node: 0 for leaves, non-decreasing over merges.
    leaf_names : sequence of str, optional
        Distinct names, row by row; "0", "1", ... by default.

    Examples
    --------
    >>> from coaltree import Tree
    >>> tree = Tree.from_newick("((ape:1,man:1):2,owl:3);")
    >>> tree.n_leaves
    3
    >>> tree.children.tolist()
    [[0, 1], [3, 2]]
    >>> tree.heights.tolist()
    [0.0, 0.0, 0.0, 1.0, 3.0]
    """

    _children: IntArray
    _heights: FloatArray
    _leaf_names: tuple[str, ...]

    def __init__(self, children: ArrayLike, heights: ArrayLike, leaf_names: Sequence[str] | None = None) -> None:
        kids = check_children(children)
        ages = check_heights(heights, kids)
        names = check_leaf_names(leaf_names, len(kids) + 1)
        kids.setflags(write=False)
        ages.setflags(write=False)
        self.__dict__.update(_children=kids, _heights=ages, _leaf_names=names)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"A Tree cannot be changed: {name!r} was not set. Make a new Tree instead.")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"A Tree cannot be changed: {name!r} was not deleted. Make a new Tree instead.")

    # -- attributes------------------------------------------------------------------------------

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return len(self._children) + 1

    @property
    def n_nodes(self) -> int:
        """Number of leaves and merges together, ``2 n_leaves - 1``."""
        return 2 * len(self._children) + 1

    @property
    def root(self) -> int:
        """Number of the root node."""
        return self.n_nodes - 1

    @property
    def leaf_names(self) -> tuple[str, ...]:
        """Names of the leaves, in row order."""
        return self._leaf_names

    @property
    def children(self) -> IntArray:
        """The two children of each merge, shape ``(n - 1, 2)``, read-only."""
        return self._children

    @property
    def heights(self) -> FloatArray:
        """Height of every node, shape ``(2n - 1,)``, read-only."""
        return self._heights

    @property
    def merge_heights(self) -> FloatArray:
        """Heights of the merges alone, shape ``(n - 1,)``, non-decreasing."""
        return self._heights[self.n_leaves :]

    @cached_property
    def parents(self) -> IntArray:
        """Parent of every node, shape ``(2n - 1,)``; the root's is -1."""
        parents = np.full(self.n_nodes, -1, dtype=np.intp)
        parents[self._children.ravel()] = np.repeat(np.arange(self.n_leaves, self.n_nodes), 2)
        parents.setflags(write=False)
        return parents

    @property
    def branch_lengths(self) -> FloatArray:
        """Length of the branch above every node but the root, shape ``(2n - 2,)``."""
        return self._heights[self.parents[:-1]] - self._heights[:-1]

    @cached_property
    def leaf_counts(self) -> IntArray:
        """Number of leaves at or below every node, shape ``(2n - 1,)``."""
        result = arrays.leaf_counts(self._children)
        result.setflags(write=False)
        return result

    @cached_property
    def first_positions(self) -> IntArray:
        """Position of each node's first leaf in :attr:`leaf_order`, shape ``(2n - 1,)``.

        The leaves below node ``i`` are ``leaf_order[first_positions[i] : first_positions[i] + leaf_counts[i]]``.
        """
        result = arrays.first_positions(self._children, self.leaf_counts)
        result.setflags(write=False)
        return result

    @cached_property
    def leaf_order(self) -> IntArray:
        """Leaves in drawing order, left to right, shape ``(n,)``."""
        order = np.empty(self.n_leaves, dtype=np.intp)
        order[self.first_positions[: self.n_leaves]] = np.arange(self.n_leaves)
        order.setflags(write=False)
        return order

    @cached_property
    def depth_first(self) -> IntArray:
        """All nodes in depth-first order, parents before children, shape ``(2n - 1,)``."""
        order = np.lexsort((-np.arange(self.n_nodes), self.first_positions))
        order.setflags(write=False)
        return order

    @property
    def total_length(self) -> float:
        """Sum of the lengths of all branches."""
        return float(np.sum(self.branch_lengths))

    def leaves_below(self, node: int) -> IntArray:
        """Leaves at or below a node, in drawing order."""
        node = check_index(node, "node", self.n_nodes)
        first = self.first_positions[node]
        return self.leaf_order[first : first + self.leaf_counts[node]]

    def rename(self, leaf_names: Sequence[str]) -> Tree:
        """Return the same tree with other names on its leaves, in row order."""
        return Tree(self._children, self._heights, leaf_names)

    # -- exchange ------------------------------------------------------------------------------

    @classmethod
    def from_newick(
        cls,
        text: str,
        leaf_names: Sequence[str] | None = None,
        *,
        preserve_underscores: bool = True,
        tolerance: float = 1e-6,
    ) -> Tree:
        """Read a tree from a Newick string.

        Parameters
        ----------
        text : str
            One rooted, binary, ultrametric tree with branch lengths. Numbers from 0 to 1, or to 100, that label interior nodes,
            and ``[&posterior=0.9]`` and similar comments of BEAST, MrBayes and other programs, are their support. Other
            labels and comments are ignored.
        leaf_names : sequence of str, optional
            Order of the rows. By default leaves are numbered as they appear in the text. Blanks of these names may be
            underscores in the text.
        preserve_underscores : bool, default True
            Keep underscores of unquoted labels, as ape, Biopython and IQ-TREE do; the Newick standard reads them as blanks.
        tolerance : float, default 1e-6
            Largest distance of a leaf from height 0, as a share of the root's height.

        Returns
        -------
        Tree
            A `SummaryTree` if the text has the support of merges.

        Raises
        ------
        InputError
            If the text is not such a tree, with the position of the error. It is a ``ValueError``.
        """
        tree = cls.from_parsed(newick.parse(text, preserve_underscores, tolerance))
        if leaf_names is None:
            return tree
        name_of = {name.replace(" ", "_"): name for name in check_leaf_names(leaf_names, tree.n_leaves)}
        if {*tree.leaf_names} == name_of.keys() and len(name_of) == tree.n_leaves:
            tree = tree.rename([name_of[name] for name in tree.leaf_names])
        return tree.reorder(leaf_names)

    @classmethod
    def from_parsed(cls, parsed: newick.ParsedTree) -> Tree:
        """Return the tree of a text, a `SummaryTree` if the text has the support of merges."""
        children, heights, names, notes = parsed
        return SummaryTree(children, heights, names, **notes) if notes else cls(children, heights, names)

    def to_newick(self, *, quote_names: bool = False) -> str:
        """Write the tree as a Newick string.

        Newick text holds the lengths of branches, which are differences of heights: added up again, heights may be off
        in the last digit. A linkage matrix and a pickle keep them bit for bit.

        Parameters
        ----------
        quote_names : bool, default False
            Blanks in names are written as underscores, because ``ape`` and other programs keep quotes as a part of the name;
            in quotes are names with punctuation, and those that differ from another one only by blanks and underscores.
            With True, all names with blanks or underscores are in quotes, so that every reader restores them.
        """
        return newick.render(self._children, self._heights, newick.spell_names(self._leaf_names, quote_names))

    @classmethod
    def from_linkage(cls, Z: ArrayLike, leaf_names: Sequence[str] | None = None) -> Tree:
        """Read a tree from a scipy linkage matrix; heights are its distances."""
        children, heights = convert.from_linkage(Z)
        return cls(children, heights, leaf_names)

    def to_linkage(self) -> FloatArray:
        """Write the tree as a scipy linkage matrix; its distances are the heights."""
        return convert.to_linkage(self._children, self._heights, self.leaf_counts)

    def to_networkx(self) -> Any:
        """Return the tree as a ``networkx.DiGraph`` from the root to the leaves.

        Nodes keep their numbers. Leaves have a ``name``, all nodes a ``height``, merges of a `SummaryTree` a ``support``
        where it is known, and edges a ``length``.

        Raises
        ------
        MissingDependencyError
            If networkx is not installed.

        Examples
        --------
        >>> from coaltree import Tree
        >>> graph = Tree.from_newick("((ape:1,man:1):2,owl:3);").to_networkx()
        >>> graph.nodes[0]["name"], graph.edges[4, 3]["length"], list(graph.successors(3))
        ('ape', 2.0, [0, 1])
        """
        return convert.to_networkx(self)

    def to_dendropy(self) -> Any:
        """Return the tree as a rooted ``dendropy.Tree``.

        Nodes have their height as ``age`` and, from a `SummaryTree`, their support as an annotation. Merges that only
        resolve a polytomy remain, on branches of length 0. Convert back with
        ``Tree.from_newick(tree.as_string("newick"))``.

        Raises
        ------
        MissingDependencyError
            If dendropy is not installed.
        """
        return convert.to_dendropy(self)

    def to_tskit(self) -> Any:
        """Return the tree as a ``tskit.TreeSequence`` of one tree over a sequence of length 1.

        Sample ``i`` is leaf ``i``, with its name in the node's metadata; times are heights. Merges of equal height become
        one node, and the support of a `SummaryTree` is lost.

        Raises
        ------
        MissingDependencyError
            If tskit is not installed.
        InputError
            If merges are at height 0, which tskit does not allow.

        Examples
        --------
        >>> from coaltree import Tree
        >>> sequence = Tree.from_newick("((ape:1,man:1):2,owl:3);").to_tskit()
        >>> sequence.first().tmrca(0, 2), sequence.node(2).metadata
        (3.0, {'name': 'owl'})
        """
        return convert.to_tskit(self)

    def reorder(self, leaf_names: Sequence[str]) -> Tree:
        """Return the same tree with its leaves numbered in the order of the given names."""
        names = check_leaf_names(leaf_names, self.n_leaves)
        position = {name: i for i, name in enumerate(names)}
        newick.check_same_names(self._leaf_names, position)
        number = np.arange(self.n_nodes)
        number[: self.n_leaves] = [position[name] for name in self._leaf_names]
        return Tree(number[self._children], self._heights, names)

    # -- protocols -----------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tree):
            return NotImplemented
        return (
            self._leaf_names == other._leaf_names
            and np.array_equal(self._children, other._children)
            and np.array_equal(self._heights, other._heights)
        )

    def __hash__(self) -> int:
        return hash((self._leaf_names, self._children.tobytes(), self._heights.tobytes()))

    def __reduce__(self) -> tuple[Any, ...]:
        return Tree, (self._children, self._heights, self._leaf_names)

    def __repr__(self) -> str:
        return f"<Tree: {self.n_leaves} leaves, root height {self._heights[-1]:.4g}>"

    def _repr_html_(self) -> str:
        return layout.tree_html(self)


_ANNOTATIONS = ("support", "mean_heights", "median_heights", "height_hpd")


class SummaryTree(Tree):
    """A tree that summarises a sample of trees.

    Merges that only resolve a polytomy have the height of their parent, and NaN as support and heights. The support of other
    merges may be unknown, too, if the tree was read from a text.

    Parameters
    ----------
    children, heights, leaf_names
        As of a :class:`Tree`.
    support : array-like of float, shape (n - 1,), optional
        Share of the sample with the clade of each merge, NaN where it is unknown. This and the next arrays have one
        entry per merge, most recent first; the defaults describe a sample of one tree.
    mean_heights, median_heights : array-like of float, shape (n - 1,), optional
        Mean and median height of the clade, over the trees that have it.
    height_hpd : array-like of float, shape (n - 1, 2), optional
        The shortest interval that contains 95 % of the clade's heights.

    Examples
    --------
    >>> from coaltree import Tree
    >>> from coaltree.tree.sample import TreeSample
    >>> texts = ["((a:1,b:1):2,c:3);", "((a:2,b:2):2,c:4);", "((a:2,c:2):3,b:5);"]
    >>> tree = TreeSample([Tree.from_newick(text, "abc") for text in texts], [3, 3, 2]).mcc()
    >>> tree.to_newick()
    '((a:1.5,b:1.5)0.75:2.375,c:3.875)1;'
    >>> tree.height_hpd.tolist()
    [[1.0, 2.0], [3.0, 5.0]]
    """

    _support: FloatArray
    _mean_heights: FloatArray
    _median_heights: FloatArray
    _height_hpd: FloatArray

    def __init__(
        self,
        children: ArrayLike,
        heights: ArrayLike,
        leaf_names: Sequence[str] | None = None,
        support: ArrayLike | None = None,
        mean_heights: ArrayLike | None = None,
        median_heights: ArrayLike | None = None,
        height_hpd: ArrayLike | None = None,
    ) -> None:
        super().__init__(children, heights, leaf_names)
        merge_heights = self.merge_heights
        defaults = (
            np.ones(len(merge_heights)),
            merge_heights,
            merge_heights,
            np.column_stack([merge_heights, merge_heights]),
        )
        annotations = (support, mean_heights, median_heights, height_hpd)
        for name, values, default in zip(_ANNOTATIONS, annotations, defaults, strict=True):
            array = np.array(default if values is None else values, dtype=np.float64)
            if array.shape != default.shape:
                raise InputError(
                    f"{name} has shape {array.shape}; a tree of {len(merge_heights)} merges needs {default.shape}, "
                    "the most recent merge first."
                )
            array.setflags(write=False)
            self.__dict__["_" + name] = array
        shares, ends = self._support, self._height_hpd
        if np.any((shares < 0) | (shares > 1)):
            wrong = shares[(shares < 0) | (shares > 1)][0]
            raise InputError(f"support holds {wrong:g}; shares of a sample lie between 0 and 1.")
        if np.any(ends[:, 0] > ends[:, 1]):
            raise InputError(
                "height_hpd holds an interval that ends below its beginning; give each as lower and upper end."
            )

    # -- attributes------------------------------------------------------------------------------

    @property
    def support(self) -> FloatArray:
        """Share of the sample with the clade of each merge, NaN where it is unknown."""
        return self._support

    @property
    def is_clade(self) -> NDArray[np.bool_]:
        """Whether each merge is a clade, and does not only resolve a polytomy, shape ``(n - 1,)``."""
        above = self._heights[self.parents[self.n_leaves :]]
        above[-1:] = np.inf
        return ~np.isnan(self._support) | (above > self.merge_heights)

    @property
    def mean_heights(self) -> FloatArray:
        """Mean height of each merge's clade over the trees that have it, shape ``(n - 1,)``."""
        return self._mean_heights

    @property
    def median_heights(self) -> FloatArray:
        """Median height of each merge's clade over the trees that have it, shape ``(n - 1,)``."""
        return self._median_heights

    @property
    def height_hpd(self) -> FloatArray:
        """Shortest interval that holds 95 % of the heights of each merge's clade, shape ``(n - 1, 2)``."""
        return self._height_hpd

    def rename(self, leaf_names: Sequence[str]) -> SummaryTree:
        """Return the same tree with other names on its leaves, in row order."""
        return self._annotate(super().rename(leaf_names))

    def reorder(self, leaf_names: Sequence[str]) -> SummaryTree:
        """Return the same tree with its leaves numbered in the order of the given names."""
        return self._annotate(super().reorder(leaf_names))

    # -- exchange ------------------------------------------------------------------------------

    def to_newick(self, support: bool = True, *, quote_names: bool = False) -> str:
        """Write the tree as a Newick string, with its polytomies.

        Parameters
        ----------
        support : bool, default True
            Label merges with their support, to four digits.
        quote_names : bool, default False
            As in :meth:`Tree.to_newick`.

        Returns
        -------
        str
            :meth:`Tree.from_newick` reads it with the support, but only if there is no polytomy.
        """
        check_parameter("support", support, FLAG)
        labels = [f"{share:.4g}" if support and share == share else "" for share in self._support.tolist()]
        return self._render(newick.spell_names(self._leaf_names, quote_names), labels)

    def to_nexus(self, *, quote_names: bool = False) -> str:
        """Write the tree as a NEXUS file, annotated as by TreeAnnotator, for FigTree and similar programs.

        Parameters
        ----------
        quote_names : bool, default False
            As in :meth:`Tree.to_newick`.

        Returns
        -------
        str
            Polytomies are preserved. Merges have ``posterior``, ``height``, ``height_mean``, ``height_median``
            and ``height_95%_HPD``.
        """
        columns = (self._support, self.merge_heights, self._mean_heights, self._median_heights, *self._height_hpd.T)
        comments = [
            f"[&posterior={share!r},height={height!r},height_mean={mean!r},height_median={median!r},"
            f"height_95%_HPD={{{low!r},{high!r}}}]"
            if share == share
            else ""
            for share, height, mean, median, low, high in zip(*(column.tolist() for column in columns), strict=True)
        ]
        keys = [str(key) for key in range(1, self.n_leaves + 1)]
        return nexus.render(self._leaf_names, [("SUMMARY", f"[&R] {self._render(keys, comments)}")], quote_names)

    def _render(self, leaf_labels: list[str], merge_labels: list[str]) -> str:
        n = self.n_leaves
        is_shown = np.concatenate([np.ones(n, dtype=bool), self.is_clade])
        above = self.parents.copy()
        for node in np.flatnonzero(~is_shown)[::-1].tolist():
            above[self._children[node - n]] = above[node]
        lengths = self._heights[above[:-1]] - self._heights[:-1]
        tails = [f":{length!r}" for length in lengths.tolist()] + [""]
        first = self.first_positions
        opening = np.bincount(first[n:][is_shown[n:]], minlength=n)[first[:n]].tolist()
        heads = ["," + "(" * count + label for count, label in zip(opening, leaf_labels, strict=True)]
        heads += [")" + label for label in merge_labels]
        # A node is complete after its last leaf and before its parent, which has a larger number.
        order = np.argsort(first + self.leaf_counts, kind="stable")
        return "".join(heads[node] + tails[node] for node in order[is_shown[order]].tolist())[1:] + ";"

    # -- protocols -----------------------------------------------------------------------------

    def _annotate(self, tree: Tree) -> SummaryTree:
        return SummaryTree(
            tree.children,
            tree.heights,
            tree.leaf_names,
            self._support,
            self._mean_heights,
            self._median_heights,
            self._height_hpd,
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tree):
            return NotImplemented
        # Never equal to a plain tree: otherwise two different summaries could equal the same tree.
        return (
            isinstance(other, SummaryTree)
            and super().__eq__(other) is True
            and all(np.array_equal(getattr(self, name), getattr(other, name), equal_nan=True) for name in _ANNOTATIONS)
        )

    __hash__ = Tree.__hash__

    def __reduce__(self) -> tuple[Any, ...]:
        annotations = tuple(getattr(self, name) for name in _ANNOTATIONS)
        return SummaryTree, (self._children, self._heights, self._leaf_names, *annotations)

    def __repr__(self) -> str:
        return f"<SummaryTree: {self.n_leaves} leaves, root height {self._heights[-1]:.4g}>"


def check_tree(value: object, argument: str = "tree") -> Tree:
    """Return a tree unchanged; for anything else raise, and say how to get its tree.

    Parameters
    ----------
    value : object
        What was passed as a tree.
    argument : str, default "tree"
        Name of the argument.

    Returns
    -------
    Tree

    Raises
    ------
    InputError
        If it is not a tree.
    """
    if isinstance(value, Tree):
        return value
    if isinstance(value, type):
        description, advice = f"the class {value.__name__} itself", "pass an object of the class Tree"
    else:
        description, advice = f"of type {type(value).__name__}", "pass a Tree"
        if hasattr(value, "tree_"):
            advice = "pass its attribute tree_, as in model.tree_"
        elif hasattr(value, "tree"):
            advice = "pass its attribute tree, as in result.tree"
        elif hasattr(value, "ccd0"):
            advice = "pass one of its trees, or their summary, as in sample.ccd0()"
        elif hasattr(value, "fit"):
            advice = "fit it first, then pass its attribute tree_, as in model.tree_"
        elif isinstance(value, str):
            advice = "read a Newick text with Tree.from_newick(text)"
        elif hasattr(value, "shape") or isinstance(value, list | tuple):
            advice = "read a linkage matrix with Tree.from_linkage(Z)"
    raise InputError(f"{argument} is {description} and not a Tree; {advice}.")


def check_children(children: ArrayLike) -> NDArray[np.intp]:
    """Return children as a new array, after checking that every node but the root is a child exactly once."""
    array = _to_number_array(children, "children")
    if array.size == 0:
        array = np.empty((0, 2), dtype=np.intp)
    if array.ndim != 2 or array.shape[1] != 2:
        raise InputError(f"children has shape {array.shape}; it must be (n - 1, 2), two nodes for each merge.")
    if array.dtype == np.intp:  # arrays from the library itself
        kids = array.astype(np.intp, order="C")
    else:
        with np.errstate(invalid="ignore"):
            kids = array.astype(np.intp, order="C")
        if not np.array_equal(kids, array):
            raise InputError("children must hold whole numbers: the numbers of the nodes that merge.")
    n_merges = len(kids)
    limit = np.arange(n_merges + 1, 2 * n_merges + 1)[:, None]
    wrong = (kids < 0) | (kids >= limit)
    if wrong.any():
        k, side = np.argwhere(wrong)[0]
        raise InputError(
            f"Merge {k} joins node {kids[k, side]}, but only nodes 0 to {limit[k, 0] - 1} exist by then; "
            "order the merges from the most recent to the oldest."
        )
    uses = np.bincount(kids.ravel(), minlength=2 * n_merges)
    if n_merges and (uses != 1).any():
        node = int(np.argmax(uses != 1))
        raise InputError(
            f"Node {node} is a child {uses[node]} times; every node but the root must be one exactly once."
        )
    return kids


def check_heights(heights: ArrayLike, children: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return heights as a new array, after checking that leaves are at 0 and merges do not decrease."""
    # Adding 0.0 turns -0.0 into 0.0, so that equal trees have equal bytes and equal hashes.
    ages = _to_number_array(heights, "heights").astype(np.float64) + 0.0
    n_leaves = len(children) + 1
    if ages.shape != (2 * n_leaves - 1,):
        raise InputError(
            f"heights has shape {ages.shape}; a tree of {n_leaves} leaves has {2 * n_leaves - 1} nodes, "
            "leaves first, each with a height."
        )
    if not np.isfinite(ages).all():
        node = int(np.argmax(~np.isfinite(ages)))
        raise InputError(f"The height of node {node} is {ages[node]}; heights must be finite numbers.")
    if ages[:n_leaves].any():
        leaf = int(np.argmax(ages[:n_leaves] != 0))
        raise InputError(f"Leaf {leaf} has height {ages[leaf]:g}; every leaf must be at height 0.")
    steps = ages[n_leaves:] - ages[n_leaves - 1 : -1]
    if (steps < 0).any():
        k = int(np.argmax(steps < 0))
        before = "the leaves" if k == 0 else f"merge {k - 1}"
        raise InputError(
            f"Merge {k} has height {ages[n_leaves + k]:g}, less than {before} at {ages[n_leaves + k - 1]:g}; "
            "heights must not decrease from one merge to the next."
        )
    return ages


def _to_number_array(values: ArrayLike, subject: str) -> NDArray[Any]:
    try:
        array = np.asarray(values)
    except ValueError:
        raise InputError(f"{subject} has rows of different lengths; it must be a regular array.") from None
    if array.size and array.dtype.kind not in "iuf":
        raise InputError(f"{subject} holds {array.dtype} values; it must hold numbers.")
    return array


def check_leaf_names(leaf_names: Sequence[str] | None, n_leaves: int) -> tuple[str, ...]:
    """Return the names of the leaves, after checking that they are distinct and not empty."""
    if leaf_names is None:
        return tuple(map(str, range(n_leaves)))
    try:
        names = tuple(map(str, leaf_names))
    except Exception:  # no sequence, or names that cannot be converted to text
        raise InputError(f"leaf_names is {quote(leaf_names)}; it must be a list of names, one for each leaf.") from None
    if len(names) != n_leaves:
        raise InputError(f"{len(names)} leaf names were given for {n_leaves} leaves; give one name per leaf.")
    if len(set(names)) != n_leaves:
        used: set[str] = set()
        for name in names:
            if name in used:
                raise InputError(f"The leaf name {quote(name)} occurs more than once; names must be distinct.")
            used.add(name)
    if "" in names:
        raise InputError(f"The name of leaf {names.index('')} is empty; every leaf needs a name.")
    return names
