"""Dendrograms: the content of the axes."""

import builtins
import io
import sys
from itertools import combinations, pairwise

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from scipy.cluster.hierarchy import fcluster

from coaltree.errors import InputError, MissingDependencyError
from coaltree.plot.dendrogram import plot_dendrogram
from coaltree.plot.style import MIXED, PALETTE, distinct_colors
from coaltree.tree.coalescent import simulate_tree
from coaltree.tree.layout import elbows, node_positions
from coaltree.tree.tree import Tree

SMALL = Tree.from_newick("((a:1,b:1):2,(c:2,d:2):1);", ["d", "a", "b", "c"])


@pytest.fixture
def ax():
    figure = Figure(figsize=(6, 4))
    FigureCanvasAgg(figure)
    return figure.subplots()


@pytest.fixture
def pyplot():
    previous = mpl.get_backend()
    import matplotlib.pyplot as plt

    plt.switch_backend("Agg")
    yield plt
    plt.close("all")
    plt.switch_backend(previous)


def caterpillar(n):
    children = [(0, 1)] + [(n + k - 1, k + 1) for k in range(1, n - 1)]
    return Tree(children, [0.0] * n + list(range(1, n)))


def save(ax):
    target = io.BytesIO()
    ax.figure.savefig(target, format="png")
    return target.getvalue()


def lines(ax):
    (collection,) = (c for c in ax.collections if isinstance(c, LineCollection))
    return collection


def names_written(ax, axis="y"):
    return [text.get_text() for text in getattr(ax, f"get_{axis}ticklabels")()]


# -- layout ------------------------------------------------------------------------------------


def test_node_positions_of_leaves_and_merges():
    # Nodes: d, a, b, c, then ab, cd and the root.
    assert node_positions(SMALL.children, SMALL.first_positions[:4].astype(float)).tolist() == [
        3,
        0,
        1,
        2,
        0.5,
        2.5,
        1.5,
    ]


def test_elbows_connect_children():
    assert elbows(SMALL.children, SMALL.heights).tolist() == [
        [[0, 0], [0, 1], [1, 1], [1, 0]],
        [[2, 0], [2, 2], [3, 2], [3, 0]],
        [[0.5, 1], [0.5, 3], [2.5, 3], [2.5, 2]],
    ]


def test_one_leaf_has_position_and_no_elbow():
    one = Tree.from_newick("a;")
    assert node_positions(one.children, np.zeros(1)).tolist() == [0]
    assert elbows(one.children, one.heights).shape == (0, 4, 2)


# -- drawing -----------------------------------------------------------------------------------


@pytest.mark.parametrize("orientation", ["left", "right", "top", "bottom"])
def test_dendrogram_draws_one_line_per_branch(ax, orientation):
    assert plot_dendrogram(SMALL, ax=ax, orientation=orientation) is ax
    draws = {tuple(map(tuple, line)) for line in lines(ax).get_segments()}
    # Every branch goes up from its node to the height of its parent and across to it; (position, height).
    expected = {
        ((3, 0), (3, 2), (2.5, 2)),
        ((2, 0), (2, 2), (2.5, 2)),
        ((0, 0), (0, 1), (0.5, 1)),
        ((1, 0), (1, 1), (0.5, 1)),
        ((0.5, 1), (0.5, 3), (1.5, 3)),
        ((2.5, 2), (2.5, 3), (1.5, 3)),
    }
    if orientation in ("left", "right"):
        expected = {tuple((height, place) for place, height in line) for line in expected}
    assert draws == expected


@pytest.mark.parametrize(
    ("orientation", "axis", "falls"),
    [("left", "x", True), ("right", "x", False), ("top", "y", False), ("bottom", "y", True)],
)
def test_root_position_and_axis_limits(ax, orientation, axis, falls):
    plot_dendrogram(SMALL, ax=ax, orientation=orientation, height_label="time")
    first, last = getattr(ax, f"get_{axis}lim")()
    assert (first > last) == falls
    assert min(first, last) <= 0
    assert max(first, last) >= 3
    assert getattr(ax, f"get_{axis}label")() == "time"
    other = "y" if axis == "x" else "x"
    low, high = sorted(getattr(ax, f"get_{other}lim")())
    assert low < 0
    assert high > 3
    assert names_written(ax, other) == ["a", "b", "c", "d"]


def test_height_axis_is_labelled_by_default(ax):
    plot_dendrogram(SMALL, ax=ax)
    assert ax.get_xlabel() == "height"
    assert [side for side, spine in ax.spines.items() if spine.get_visible()] == ["bottom"]


def test_branches_within_cluster_are_coloured(ax):
    labels = ["y", "x", "x", "z"]  # of d, a, b, c
    plot_dendrogram(SMALL, labels=labels, ax=ax)
    shade = {
        tuple(line[0]): tuple(color)
        for line, color in zip(lines(ax).get_segments(), lines(ax).get_colors(), strict=True)
    }
    x, y, z = map(to_rgba, PALETTE[:3])
    assert shade == {
        (0, 0): x,
        (0, 1): x,
        (1, 0.5): x,  # the branch above a and b
        (0, 3): y,
        (0, 2): z,
        (2, 2.5): to_rgba(MIXED),  # the branch above c and d
    }
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["x", "y", "z"]


def test_colors_option_sets_colours(ax):
    plot_dendrogram(SMALL, labels=[1, 0, 0, 1], colors={0: "red", 1: "blue"}, ax=ax)
    assert {tuple(c) for c in lines(ax).get_colors()} == {to_rgba("red"), to_rgba("blue")}
    ax.clear()
    plot_dendrogram(SMALL, labels=[1, 0, 0, 1], colors=["green", "black"], ax=ax)
    handles = ax.get_legend().get_lines()
    assert [handle.get_color() for handle in handles] == ["green", "black"]
    ax.clear()
    plot_dendrogram(SMALL, colors="purple", linewidth=3, ax=ax)
    assert [tuple(c) for c in lines(ax).get_colors()] == [to_rgba("purple")]
    assert lines(ax).get_linewidths() == [3]


def test_neighboring_clusters_have_different_colours(ax):
    tree = simulate_tree(40, 0)
    plot_dendrogram(tree, labels=range(40), ax=ax)
    shade = {
        line[0][1]: tuple(color)
        for line, color in zip(lines(ax).get_segments(), lines(ax).get_colors(), strict=True)
        if line[0][0] == 0
    }
    assert len(shade) == 40
    assert all(shade[i] != shade[i + 1] for i in range(39))


@pytest.mark.parametrize(("n_clusters", "legend"), [(1, False), (2, True), (30, True), (31, False)])
def test_legend_is_drawn_for_two_to_thirty_clusters(ax, n_clusters, legend):
    plot_dendrogram(simulate_tree(40, 1), labels=np.arange(40) % n_clusters, ax=ax)
    assert (ax.get_legend() is not None) == legend


def test_legend_lists_clusters_in_order(ax):
    plot_dendrogram(simulate_tree(11, 1), labels=[f"c{i}" for i in range(11)], ax=ax)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [f"c{i}" for i in range(11)]


@pytest.mark.parametrize("n_clusters", [9, 10, 60, 100])
def test_clusters_have_different_colours(ax, n_clusters):
    plot_dendrogram(simulate_tree(100, 1), labels=np.arange(100) % n_clusters, colors=None, ax=ax)
    at_leaves = [tuple(color) for color in lines(ax).get_colors()]
    assert len(set(at_leaves) - {to_rgba(MIXED)}) == n_clusters
    colors = distinct_colors(n_clusters)
    assert colors[:9] == list(PALETTE)
    for color in colors:  # neither too pale for white paper nor black: relative luminance
        red, green, blue = (float(channel) for channel in to_rgba(color)[:3])
        assert 0.01 < 0.2126 * red**2.2 + 0.7152 * green**2.2 + 0.0722 * blue**2.2 < 0.75


@pytest.mark.parametrize(("labels", "layout"), [(12, "circular"), (25, "circular"), (25, "rectangular")])
def test_long_legend_is_inside_figure_and_above_tree(pyplot, labels, layout):
    ax = plot_dendrogram(simulate_tree(40, 2), labels=[f"cluster {k % labels}" for k in range(40)], layout=layout)
    ax.figure.canvas.draw()
    legend = ax.get_legend().get_window_extent()
    names = ax.texts if layout == "circular" else ax.get_yticklabels()
    assert legend.y1 <= ax.figure.bbox.y1
    assert legend.x1 <= ax.figure.bbox.x1
    assert all(text.get_window_extent().y1 <= legend.y0 + 1 for text in names)


@pytest.mark.parametrize("layout", ["rectangular", "circular"])
def test_support_numbers_do_not_touch(pyplot, layout):
    tree = simulate_tree(67, 3)
    ax = plot_dendrogram(tree, support=np.linspace(0, 1, 66), layout=layout)
    ax.figure.canvas.draw()
    numbers = [text for text in ax.texts if text.get_path_effects()]
    visible = [text.get_window_extent() for text in numbers if text.get_visible()]
    others = [text.get_window_extent() for text in ax.texts if text not in numbers]
    assert 5 < len(visible) < 65
    assert not any(one.overlaps(other) for one, other in combinations(visible, 2))
    assert not any(one.overlaps(other) for one in visible for other in others)
    ax.figure.set_size_inches(60, 60)  # there is room for more
    ax.figure.canvas.draw()
    assert sum(text.get_visible() for text in numbers) > len(visible)


@pytest.mark.parametrize("orientation", ["left", "right", "top", "bottom"])
def test_legend_and_names_stay_inside_figure(pyplot, orientation):
    names = [f"leaf {i} with quite a long name {'x' * i}" for i in range(30)]
    ax = plot_dendrogram(simulate_tree(30, 2, leaf_names=names), labels=np.arange(30) % 12, orientation=orientation)
    ax.figure.canvas.draw()
    legend, frame = ax.get_legend().get_window_extent(), ax.get_window_extent()
    assert legend.y0 >= frame.y1 or legend.y1 <= frame.y0
    along = "y" if orientation in ("left", "right") else "x"
    boxes = [text.get_window_extent() for text in getattr(ax, f"get_{along}ticklabels")()]
    assert len(boxes) == 30
    whole = ax.figure.bbox
    for box in [*boxes, legend]:
        assert whole.x0 <= box.x0
        assert box.x1 <= whole.x1
        assert whole.y0 <= box.y0
        assert box.y1 <= whole.y1
    spans = sorted((getattr(box, f"{along}0"), getattr(box, f"{along}1")) for box in boxes)
    assert all(end <= start + 1 for (_, end), (start, _) in pairwise(spans))


def test_legend_lists_cluster_names_with_underscore(ax):
    plot_dendrogram(SMALL, labels=["_a", "_a", "$b$", "$b$"], ax=ax)
    assert sorted(text.get_text() for text in ax.get_legend().get_texts()) == ["$b$", "_a"]
    save(ax)


# -- names -------------------------------------------------------------------------------------


def test_leaf_names_are_not_parsed_as_math(ax):
    plot_dendrogram(SMALL.rename(["$x$", r"$\broken", r"a\$b", "$\\frac$"]), ax=ax)
    assert names_written(ax) == [r"$\broken", r"a\$b", "$\\frac$", "$x$"]
    assert not any(text.get_parse_math() for text in ax.get_yticklabels())
    save(ax)  # matplotlib raises here on a bad formula


def test_long_leaf_names_are_shortened(ax):
    plot_dendrogram(SMALL.rename(["d" * 50, "a\nb", "b", "c" * 30]), ax=ax)
    assert names_written(ax) == ["a b", "b", "c" * 30, "d" * 19 + "…" + "d" * 10]


@pytest.mark.parametrize(
    "pattern",
    [
        "a very long name of a row that ends with {}",
        "{} begins a very long name of a row that is cut",
        "a very long name of the isolate {} of a mouse, complete genome of the mitochondrion",
        "a very long name of the isolate and its {} and of a mouse with a {} in the very middle of all",
    ],
)
def test_shortened_names_differ(pattern, ax):
    """Wherever the names differ."""
    tree = simulate_tree(10, random_state=0).rename([pattern.format(f"no. {k}", k) for k in range(10)])
    plot_dendrogram(tree, ax=ax)
    shown = names_written(ax)
    assert len(set(shown)) == 10
    assert all(len(name) == 30 for name in shown)
    assert all(any(part in name for name in tree.leaf_names) for text in shown for part in text.split("…"))


def test_leaf_names_have_no_control_characters(ax):
    plot_dendrogram(SMALL.rename(["ab\u202ecd23\x1b[31m", "b\x07", "\ud800c", "d\te"]), ax=ax)
    assert sorted(names_written(ax)) == [r"\ud800c", r"ab\u202ecd23\u001b[31m", r"b\u0007", "d e"]
    save(ax)


def test_leaf_names_are_drawn_up_to_150_leaves(pyplot):
    assert len(names_written(plot_dendrogram(simulate_tree(150, 0)))) == 150
    assert names_written(plot_dendrogram(simulate_tree(151, 0))) == []
    assert len(names_written(plot_dendrogram(simulate_tree(20, 0), max_leaf_names=20))) == 20
    assert names_written(plot_dendrogram(simulate_tree(20, 0), max_leaf_names=19)) == []
    assert len(names_written(plot_dendrogram(simulate_tree(20, 0), max_leaf_names=19, leaf_names=True))) == 20
    assert names_written(plot_dendrogram(simulate_tree(5, 0), leaf_names=False)) == []


def test_leaf_names_without_room_are_omitted_by_default():
    figure = Figure(figsize=(3, 2))
    first, second = figure.subplots(1, 2)
    assert names_written(plot_dendrogram(simulate_tree(100, 0), ax=first)) == []
    assert len(names_written(plot_dendrogram(simulate_tree(100, 0), ax=second, leaf_names=True))) == 100


# -- sizes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["a;", "(a:1,b:1);", "((a:0,b:0):0,c:0);"])
def test_dendrogram_of_smallest_trees_and_zero_heights(pyplot, text):
    tree = Tree.from_newick(text)
    ax = plot_dendrogram(tree, labels=list(tree.leaf_names))
    assert names_written(ax) == list(tree.leaf_names)
    assert len(lines(ax).get_segments()) == 2 * tree.n_leaves - 2
    save(ax)


def test_dendrogram_of_thousands_of_leaves(pyplot):
    ax = plot_dendrogram(simulate_tree(3_000, 0), labels=np.arange(3_000) % 3, collapse=None)
    assert len(lines(ax).get_segments()) == 5_998
    assert save(ax).startswith(b"\x89PNG")


def test_dendrogram_of_deep_caterpillar(ax):
    n = 4_000
    assert n > 2 * sys.getrecursionlimit()
    plot_dendrogram(caterpillar(n), ax=ax, orientation="top", collapse=None)
    assert len(lines(ax).get_segments()) == 2 * n - 2
    save(ax)


# -- collapsed clades --------------------------------------------------------------------------


def wedges(ax):
    """Triangles as (places, heights) of their three corners, the tree drawn with its root on top."""
    (collection,) = (c for c in ax.collections if isinstance(c, PolyCollection))
    return [path.vertices[:3].T for path in collection.get_paths()], collection


def test_collapsed_clades_match_cut(pyplot):
    n, k = 3000, 40
    tree = simulate_tree(n, 5, leaf_names=[f"leaf {i}" for i in range(n)])
    ax = plot_dendrogram(tree, collapse=k, orientation="top", leaf_names=True)
    texts = names_written(ax, "x")
    sizes = [int(text[4:].replace(",", "")) if text.startswith("n = ") else 1 for text in texts]
    flat = fcluster(tree.to_linkage(), k, criterion="maxclust")
    assert len(texts) == k
    assert sum(sizes) == n
    assert sorted(sizes) == sorted(np.bincount(flat)[1:].tolist())
    # From left to right they come as the leaves do, and a clade of one leaf has its name.
    order = tree.leaf_order.tolist()
    starts = np.concatenate([[0], np.cumsum(sizes)]).tolist()
    for text, begin, end in zip(texts, starts[:-1], starts[1:], strict=True):
        assert len({flat[leaf] for leaf in order[begin:end]}) == 1
        assert text == (f"n = {end - begin:,}" if end - begin > 1 else tree.leaf_names[order[begin]])
    assert len(lines(ax).get_segments()) == 2 * k - 2


def test_wedges_span_collapsed_clades(ax):
    tree = simulate_tree(500, 6)
    plot_dendrogram(tree, collapse=20, orientation="top", leaf_names=True, ax=ax)
    flat = fcluster(tree.to_linkage(), 20, criterion="maxclust")[tree.leaf_order]
    clades = [np.flatnonzero(flat == c) for c in dict.fromkeys(flat.tolist())]
    # The root of a clade is the lowest merge with all of its leaves.
    spans = list(zip(tree.first_positions.tolist(), (tree.first_positions + tree.leaf_counts).tolist(), strict=True))
    expected = [
        min(tree.heights[node] for node, (first, end) in enumerate(spans) if first <= c[0] and c[-1] < end)
        for c in clades
        if len(c) > 1
    ]
    triangles, _ = wedges(ax)
    assert [heights.tolist() for _, heights in triangles] == [[height, 0, 0] for height in expected]
    # Wedges are apart, wider for more leaves, and stand where the branch above them ends.
    sides = [(places.min(), places.max()) for places, _ in triangles]
    assert all(a[1] < b[0] for a, b in pairwise(sides))
    sizes = [len(c) for c in clades if len(c) > 1]
    widths = [high - low for low, high in sides]
    assert np.argsort(sizes, kind="stable").tolist() == np.argsort(widths, kind="stable").tolist()
    ends = {tuple(line[0]) for line in lines(ax).get_segments()}
    assert all((places[0], heights[0]) in ends for places, heights in triangles)
    save(ax)


@pytest.mark.parametrize("orientation", ["left", "right", "top", "bottom"])
def test_collapsed_dendrogram_fits_axes_in_all_orientations(pyplot, orientation):
    tree = simulate_tree(4000, 7)
    ax = plot_dendrogram(tree, labels=np.arange(4000) % 3, orientation=orientation)
    along = "y" if orientation in ("left", "right") else "x"
    ax.figure.canvas.draw()
    boxes = [text.get_window_extent() for text in getattr(ax, f"get_{along}ticklabels")()]
    assert len(boxes) == 50
    spans = sorted((getattr(box, f"{along}0"), getattr(box, f"{along}1")) for box in boxes)
    assert all(end <= start + 1 for (_, end), (start, _) in pairwise(spans))
    whole = ax.figure.bbox
    assert all(whole.x0 <= b.x0 and b.x1 <= whole.x1 and whole.y0 <= b.y0 and b.y1 <= whole.y1 for b in boxes)
    side = 1 if along == "y" else 0
    low, high = sorted(getattr(ax, f"get_{along}lim")())
    corners = np.concatenate([path.vertices[:3] for path in wedges(ax)[1].get_paths()])
    assert low < corners[:, side].min()
    assert corners[:, side].max() < high


def test_collapsed_clades_have_cluster_colour_or_grey(ax):
    tree = Tree.from_newick("(((a:1,b:1):1,(c:1,d:1):1):2,((e:1,f:1):1,g:2):2);")
    plot_dendrogram(tree, collapse=4, labels=list("xxyxzzz"), orientation="top", ax=ax)
    triangles, collection = wedges(ax)
    assert names_written(ax, "x") == ["n = 2", "n = 2", "n = 2", "g"]
    x, _, z = map(to_rgba, PALETTE[:3])
    assert [tuple(color) for color in collection.get_edgecolor()] == [x, to_rgba(MIXED), z]
    assert [tuple(color[:3]) for color in collection.get_facecolor()] == [x[:3], to_rgba(MIXED)[:3], z[:3]]
    shade = {
        tuple(line[0]): tuple(color)
        for line, color in zip(lines(ax).get_segments(), lines(ax).get_colors(), strict=True)
    }
    assert [shade[places[0], heights[0]] for places, heights in triangles] == [x, to_rgba(MIXED), z]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["x", "y", "z"]
    ax.clear()
    plot_dendrogram(tree, collapse=2, colors="purple", ax=ax)
    assert [tuple(color) for color in wedges(ax)[1].get_edgecolor()] == [to_rgba("purple")] * 2


def test_support_is_drawn_at_visible_merges(ax):
    tree = simulate_tree(30, 8)
    shares = np.arange(29) / 100
    plot_dendrogram(tree, collapse=5, support=shares, orientation="top", ax=ax)
    # Four merges are drawn, the 26th to the 29th; the last is the root.
    written = {text.get_text(): text.xy[1] for text in ax.texts}
    assert written == {str(k): tree.merge_heights[k] for k in (25, 26, 27)}


def test_trees_above_2000_leaves_are_collapsed_by_default():
    for n, collapse, n_tips in [(2000, "auto", 2000), (2001, "auto", 50), (2001, None, 2001), (9, 9, 9), (9, 99, 9)]:
        ax = Figure().subplots()
        plot_dendrogram(simulate_tree(n, 0), ax=ax, collapse=collapse)
        assert len(lines(ax).get_segments()) == 2 * n_tips - 2
        assert any(isinstance(c, PolyCollection) for c in ax.collections) == (n_tips < n)


def test_whole_tree_can_collapse_to_one_clade(ax):
    plot_dendrogram(SMALL, collapse=1, orientation="top", ax=ax)
    triangles, _ = wedges(ax)
    assert [heights.tolist() for _, heights in triangles] == [[3, 0, 0]]
    assert names_written(ax, "x") == ["n = 4"]
    save(ax)


def test_names_of_smallest_clades_are_omitted_first():
    figure = Figure(figsize=(3, 1.5))
    FigureCanvasAgg(figure)
    ax = figure.subplots()
    tree = simulate_tree(10_000, 9)
    plot_dendrogram(tree, ax=ax)
    figure.canvas.draw()
    texts = names_written(ax)
    largest = np.bincount(fcluster(tree.to_linkage(), 50, criterion="maxclust")).max()
    assert 3 < len(texts) < 50
    assert f"n = {largest:,}" in texts
    boxes = sorted((t.get_window_extent().y0, t.get_window_extent().y1) for t in ax.get_yticklabels())
    assert all(end <= start for (_, end), (start, _) in pairwise(boxes))


@pytest.mark.parametrize("shape", ["kingman", "caterpillar", "equal heights"])
def test_dendrogram_of_large_trees_of_any_shape(ax, shape):
    n = 50_000
    if shape == "caterpillar":
        tree = caterpillar(n)
    else:
        tree = simulate_tree(n, 1)
        if shape == "equal heights":
            tree = Tree(tree.children, np.concatenate([np.zeros(n), np.arange(n - 1) // (n // 3)]))
    plot_dendrogram(tree, labels=np.arange(n) % 2, ax=ax)
    assert len(lines(ax).get_segments()) == 98
    assert save(ax).startswith(b"\x89PNG")


# -- manners -----------------------------------------------------------------------------------


def test_new_figure_belongs_to_pyplot_and_rcparams_are_kept(pyplot):
    before, backend = dict(mpl.rcParams), mpl.get_backend()
    ax = plot_dendrogram(SMALL, labels=[0, 1, 1, 0])
    save(ax)
    assert pyplot.fignum_exists(ax.figure.number)
    assert dict(mpl.rcParams) == before
    assert mpl.get_backend() == backend


def test_ax_option_makes_no_new_figure(pyplot, ax):
    plot_dendrogram(SMALL, ax=ax)
    assert pyplot.get_fignums() == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"labels": [1, 2]}, "2 labels were given for 4 leaves"),
        ({"labels": [1, 2, None, 1]}, "label of leaf 2 is missing"),
        ({"labels": "abcd"}, "labels is a str"),
        ({"orientation": "up"}, "orientation is 'up'"),
        ({"leaf_names": "yes"}, "leaf_names is 'yes'"),
        ({"colors": ["red", "blue"]}, "one colour when there are no labels"),
        ({"labels": [1, 1, 2, 2], "colors": {1: "red"}}, "no colour for the cluster 2"),
        ({"labels": [1, 1, 2, 2], "colors": []}, "colors is empty"),
    ],
)
def test_invalid_dendrogram_options_are_rejected(ax, options, message):
    with pytest.raises(InputError, match=message):
        plot_dendrogram(SMALL, ax=ax, **options)
    assert not ax.collections


def test_missing_matplotlib_has_install_hint(monkeypatch):
    real_import = builtins.__import__

    def without_matplotlib(name, *args, **kwargs):
        if name.split(".")[0] == "matplotlib":
            raise ImportError(f"No module named {name!r}")
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_matplotlib)
    with pytest.raises(MissingDependencyError, match=r'pip install "coaltree\[plot\]"'):
        plot_dendrogram(SMALL)


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"max_leaf_names": "a"}, "max_leaf_names is 'a'"),
        ({"max_leaf_names": None}, "max_leaf_names is None"),
        ({"linewidth": "a"}, "linewidth is 'a'"),
        ({"linewidth": -1}, "linewidth is -1"),
        ({"linewidth": float("nan")}, "linewidth is nan"),
        ({"ax": 3}, "ax is of type int"),
        ({"collapse": 0}, "collapse is 0; it must be a whole number of clades"),
        ({"collapse": 2.5}, "collapse is 2.5"),
        ({"collapse": True}, "collapse is True"),
        ({"collapse": float("nan")}, "collapse is nan"),
        ({"collapse": float("inf")}, "collapse is inf"),
        ({"collapse": "all"}, "collapse is 'all'"),
    ],
)
def test_dendrogram_options_of_wrong_type_are_rejected(options, part):
    with pytest.raises(InputError, match=part):
        plot_dendrogram(SMALL, **options)


def test_numpy_numbers_are_accepted_as_options(ax):
    plot_dendrogram(SMALL, ax=ax, linewidth=np.float32(2), max_leaf_names=np.int64(3))
    assert not ax.get_yticklabels()


def test_plot_dendrogram_rejects_non_trees(ax):
    with pytest.raises(InputError, match=r"Tree\.from_linkage\(Z\)"):
        plot_dendrogram(SMALL.to_linkage(), ax=ax)
