"""Circular dendrograms, tanglegrams and samples of trees: the content of the axes."""

import io
from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import to_rgba

import coaltree as ct
from coaltree.errors import InputError
from coaltree.plot.dendrogram import Circle
from coaltree.plot.style import MIXED, PALETTE
from coaltree.plot.trees import choose_evenly, count_crossings, rotate_clades, straight_branches, untangle_trees
from coaltree.plot.visible_tree import select_visible
from coaltree.tree.clades import clade_masks

SMALL = ct.Tree.from_newick("((a:1,b:1):2,(c:2,d:2):1);")
OTHER = ct.Tree.from_newick("((c:1,a:1):1.5,(b:2,d:2):0.5);")


@pytest.fixture(autouse=True)
def close_figures():
    plt.switch_backend("Agg")
    yield
    plt.close("all")


def lines(ax, k=0):
    return [c for c in ax.collections if isinstance(c, LineCollection)][k]


def save(figure):
    target = io.BytesIO()
    figure.savefig(target, format="png")
    assert target.getvalue()


class TestCircular:
    def test_circular_coordinates_match_tree(self):
        tree = ct.simulate_tree(12, random_state=0)
        circle = Circle(select_visible(tree, None))
        branches = circle.branches()
        assert len(branches) == 22
        ends = circle.points(circle.visible.positions, tree.heights)
        assert np.hypot(*ends[:12].T) == pytest.approx(1)
        assert ends[-1] == pytest.approx(0)
        children = tree.children.ravel()
        for line, child, parent in zip(branches, children, np.repeat(np.arange(12, 23), 2), strict=True):
            assert line[0] == pytest.approx(ends[child])
            assert line[-1] == pytest.approx(ends[parent])
            # the arc is on the circle of the parent's height
            assert np.hypot(*line[1:].T) == pytest.approx(1 - tree.heights[parent] / tree.heights[-1], abs=1e-12)
        # leaves go round once, clockwise, and leave a gap
        angles = circle.angles(circle.visible.positions[tree.leaf_order])
        assert np.all(np.diff(angles) < 0)
        assert np.ptp(angles) < 2 * np.pi

    def test_circular_names_and_colours(self):
        ax = ct.plot_dendrogram(SMALL, labels=[0, 0, 1, 1], layout="circular")
        texts = [text for text in ax.texts if text.get_text() in "abcd"]
        assert sorted(text.get_text() for text in texts) == list("abcd")
        assert all(np.hypot(*text.get_position()) > 1 for text in texts)
        values = {tuple(color) for color in lines(ax).get_colors()}
        assert values == {to_rgba(PALETTE[0]), to_rgba(PALETTE[1])}
        assert ax.get_aspect() == 1
        save(ax.figure)

    @pytest.mark.parametrize(("n", "seed"), [(12, 0), (12, 1), (40, 2), (80, 3)])
    def test_no_branch_touches_the_scale_of_a_circle(self, n, seed):
        tree = ct.simulate_tree(n, random_state=seed).rename([f"row {k}" for k in range(n)])
        ax = ct.plot_dendrogram(tree, layout="circular")
        ax.figure.draw_without_rendering()
        values = [text for text in ax.texts if text.get_text() not in tree.leaf_names]
        assert len(values) >= 2
        assert sum("height" in text.get_text() for text in values) == 1
        paths = [path.transformed(ax.transData) for path in lines(ax).get_paths()]
        for text in values:
            # on the circle of its height
            height = float(text.get_text().split()[0])
            assert np.hypot(*text.get_position()) == pytest.approx(1 - height / tree.heights[-1])
            box = text.get_window_extent()
            assert not any(path.intersects_bbox(box, filled=False) for path in paths), text

    def test_circular_names_without_room_are_omitted(self):
        figure, ax = plt.subplots(figsize=(2, 2))
        tree = ct.simulate_tree(140, random_state=0)
        ct.plot_dendrogram(tree, ax=ax, layout="circular")
        assert not [text for text in ax.texts if np.hypot(*text.get_position()) > 1]
        ct.plot_dendrogram(tree, ax=ax, layout="circular", leaf_names=True)
        assert len([text for text in ax.texts if np.hypot(*text.get_position()) > 1]) == 140
        save(figure)

    def test_circular_collapsed_clades_and_support(self):
        ax = ct.plot_dendrogram(ct.simulate_tree(300, random_state=0), collapse=10, layout="circular")
        wedges = next(c for c in ax.collections if isinstance(c, PolyCollection))
        for path in wedges.get_paths():
            assert np.hypot(*path.vertices[1:-1].T) == pytest.approx(1)
        sample = ct.TreeSample([SMALL, SMALL, OTHER.reorder(SMALL.leaf_names)])
        ax = ct.plot_dendrogram(sample.ccd0(), layout="circular")
        assert "67" in {text.get_text() for text in ax.texts}

    @pytest.mark.parametrize("n", [1, 2, 3])
    def test_circular_dendrogram_of_few_leaves(self, n):
        save(ct.plot_dendrogram(ct.simulate_tree(n, random_state=0), layout="circular").figure)

    def test_circular_dendrogram_of_flat_tree(self):
        save(ct.plot_dendrogram(ct.Tree([[0, 1], [2, 3]], np.zeros(5)), layout="circular").figure)

    def test_unknown_layout_is_rejected(self):
        with pytest.raises(InputError, match="'square'"):
            ct.plot_dendrogram(SMALL, layout="square")


def crossings_by_pairs(left, right):
    one, other = (np.argsort(tree.leaf_order) for tree in (left, right))
    return sum((one[i] < one[j]) != (other[i] < other[j]) for i, j in combinations(range(left.n_leaves), 2))


class TestTanglegram:
    @pytest.mark.parametrize("seed", range(5))
    def test_count_crossings_matches_brute_force(self, seed):
        left, right = (ct.simulate_tree(17, random_state=10 * seed + k) for k in range(2))
        assert count_crossings(left, right) == crossings_by_pairs(left, right)
        one, other = untangle_trees(left, right)
        assert count_crossings(one, other) <= count_crossings(left, right)
        for turned, tree in ((one, left), (other, right)):
            assert clade_masks(turned) == clade_masks(tree)
            assert np.array_equal(turned.heights, tree.heights)

    def test_equal_trees_are_untangled(self):
        tree = ct.simulate_tree(60, random_state=0)
        mixed = rotate_clades(tree, np.random.default_rng(0).permutation(60))
        assert count_crossings(tree, mixed) > 0
        assert count_crossings(*untangle_trees(tree, mixed)) == 0

    def test_tanglegram_lines_join_equal_names(self):
        axes = ct.plot_tanglegram(SMALL, OTHER, labels=[0, 0, 1, 1], titles=("one", "other"))
        assert set(axes) == {"left", "links", "right"}
        order = {}
        for side in ("left", "right"):
            ticks = zip(axes[side].get_yticks(), axes[side].get_yticklabels(), strict=True)
            order[side] = {text.get_text(): place for place, text in ticks}
        joined = {(path.vertices[0, 1], path.vertices[1, 1]) for path in lines(axes["links"]).get_paths()}
        assert joined == {(order["left"][name], order["right"][name]) for name in "abcd"}
        assert axes["left"].get_ylim() == axes["links"].get_ylim() == axes["right"].get_ylim()
        assert axes["right"].get_title() == "other"
        save(axes["links"].figure)

    def test_tanglegram_axes_option(self):
        axes = plt.figure().subplot_mosaic([["left", "links", "right"]])
        actual = ct.plot_tanglegram(SMALL, OTHER, axes=axes, untangle=False)
        assert actual["left"] is axes["left"]
        with pytest.raises(InputError, match="links"):
            ct.plot_tanglegram(SMALL, OTHER, axes={"left": axes["left"]})

    def test_tanglegram_rejects_invalid_arguments(self):
        with pytest.raises(InputError, match="'e'"):
            ct.plot_tanglegram(SMALL, ct.Tree.from_newick("((a:1,b:1):2,(c:2,e:2):1);"))
        with pytest.raises(InputError, match="titles"):
            ct.plot_tanglegram(SMALL, OTHER, titles="two")
        with pytest.raises(InputError):
            ct.plot_tanglegram(SMALL, "tree")


class TestTrees:
    def test_tree_branches_match_positions(self):
        visible = select_visible(SMALL, None)
        place = dict(zip(SMALL.leaf_names, visible.positions[:4], strict=True))
        other = OTHER.reorder(SMALL.leaf_names)
        actual = straight_branches(other, visible)
        assert actual.shape == (6, 2, 2)
        # c and a meet halfway between their places, at height 1
        merge = [(place["c"] + place["a"]) / 2, 1.0]
        meeting = [line for line in actual.tolist() if line[1] == merge]
        assert sorted(line[0] for line in meeting) == sorted([[place["c"], 0.0], [place["a"], 0.0]])

    def test_plot_trees_draws_all_trees(self):
        sample = ct.TreeSample([SMALL, SMALL, OTHER.reorder(SMALL.leaf_names)])
        ax = ct.plot_trees(sample, summary=False)
        assert len(lines(ax).get_segments()) == 3 * 6
        colors = [tuple(color[:3]) for color in lines(ax).get_colors()]
        assert colors == [to_rgba(PALETTE[0])[:3]] * 12 + [to_rgba(PALETTE[1])[:3]] * 6
        assert len(ax.collections) == 1
        assert len(ct.plot_trees(sample).collections) == 2
        save(ax.figure)

    def test_rare_topologies_are_grey(self):
        trees = [ct.simulate_tree(6, random_state=k) for k in range(8)]
        colors = {tuple(color[:3]) for color in lines(ct.plot_trees(ct.TreeSample(trees))).get_colors()}
        assert colors == {to_rgba(value)[:3] for value in (*PALETTE[:3], MIXED)}

    def test_choose_evenly_follows_weights(self):
        trees = [ct.simulate_tree(4, random_state=k) for k in range(4)]
        weighted = ct.TreeSample(trees, weights=[0.5, 0.25, 0.0, 0.25])
        assert np.bincount(choose_evenly(weighted, 8), minlength=4).tolist() == [4, 2, 0, 2]
        assert choose_evenly(ct.TreeSample(trees), 8) == [0, 1, 2, 3]
        assert choose_evenly(ct.TreeSample(trees), 2) == [0, 2]

    @pytest.mark.parametrize("orientation", ["left", "right", "top", "bottom"])
    def test_plot_trees_names_and_height_axis(self, orientation):
        sample = ct.TreeSample([SMALL, ct.Tree(SMALL.children, 2 * SMALL.heights, SMALL.leaf_names)])
        ax = ct.plot_trees(sample, orientation=orientation, leaf_names=True)
        axis, limits = (ax.yaxis, ax.get_xlim()) if orientation in ("left", "right") else (ax.xaxis, ax.get_ylim())
        assert sorted(text.get_text() for text in axis.get_ticklabels()) == list("abcd")
        assert max(limits) >= 6
        save(ax.figure)

    @pytest.mark.parametrize(
        "options",
        [{"orientation": "up"}, {"alpha": 0}, {"alpha": 2}, {"max_trees": 0}, {"leaf_names": "no"}, {"ax": 3}],
    )
    def test_plot_trees_rejects_invalid_options(self, options):
        with pytest.raises(InputError, match=next(iter(options))):
            ct.plot_trees(ct.TreeSample([SMALL]), **options)
        with pytest.raises(InputError, match="TreeSample"):
            ct.plot_trees(SMALL)
