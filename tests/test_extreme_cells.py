"""Extreme cells: how they are moved for the search."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coaltree as ct
from coaltree.inference.preparation import are_extreme, shorten_gaps
from coaltree.predict.kernels.places import find_clusters
from coaltree.predict.predictor import Traversal, _fill_mixed


def by_definition(values):
    """Return where the cells of a column go, and their levels, cell by cell."""
    n, k = len(values), len(values) // 20
    ordered = sorted(values)
    places, levels = list(values), [0] * n
    if n < 20 or ordered[n // 4] == ordered[n // 4 + n // 2]:
        return places, levels
    inside = ordered[k : n - k]
    grows = True
    while grows:
        spread = inside[-1] - inside[0]
        more = [v for v in ordered if v < inside[0] and inside[0] - v <= 2 * spread]
        more += [v for v in ordered if v > inside[-1] and v - inside[-1] <= 2 * spread]
        grows = bool(more)
        inside = sorted(inside + more)
    spread = inside[-1] - inside[0]
    for i, value in enumerate(values):
        for sign in (-1, 1):
            edge = max(sign * inside[0], sign * inside[-1])
            path = [edge, *sorted({sign * v for v in values if edge < sign * v <= sign * value})]
            if sign * value > edge:
                steps = np.diff(path)
                wide = steps > 2 * spread
                places[i] = sign * (edge + float(np.where(wide, spread / 2, steps).sum()))
                levels[i] = sign * int(wide.sum())
    return places, levels


@settings(max_examples=150, deadline=None)
@given(
    st.integers(15, 90),
    st.integers(0, 10_000),
    st.lists(st.tuples(st.floats(-1e3, 1e3), st.integers(1, 3)), max_size=5),
)
def test_shorten_gaps_matches_definition(n, seed, far):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=n).round(seed % 3)
    at = 0
    for value, times in far:
        values[at : at + times] = value + rng.normal(size=len(values[at : at + times]))
        at += times
    X = np.append(values, np.nan)[:, None]
    shortened, levels = shorten_gaps(X)
    places, expected = by_definition(values.tolist())
    np.testing.assert_allclose(shortened[:n, 0], places, rtol=1e-9, atol=1e-9)
    assert np.isnan(shortened[n, 0])
    if any(expected):
        assert levels[:, 0].tolist() == [*expected, 0]
    else:
        assert shortened is X
        assert levels.shape == (n + 1, 0)


def test_shorten_gaps_keeps_ordinary_columns():
    """In a hundred columns of each kind: normal cells are never so extreme, single exponential ones once in a thousand tables."""
    rng = np.random.default_rng(0)
    for X in (
        rng.normal(size=(100, 100)),
        rng.uniform(size=(100, 100)),
        rng.integers(0, 5, size=(100, 100)).astype(float),
    ):
        assert shorten_gaps(X)[0] is X
    flags = np.zeros((100, 1))
    flags[:3] = 1.0
    assert shorten_gaps(flags)[0] is flags
    assert shorten_gaps(rng.exponential(size=(200, 20)))[1].any(axis=0).sum() <= 2


def test_new_cells_beyond_twice_the_range_are_extreme():
    X = np.column_stack([np.linspace(0, 1, 30), np.repeat([0.0, 1.0], [25, 5])])  # the second column has no scale
    new = np.array([[2.9, 0.0], [3.1, 0.0], [-1.9, 0.0], [-2.1, 0.0], [0.5, 9.0], [np.nan, 0.0]])
    assert are_extreme(new, X).tolist() == [False, True, False, True, False, False]
    assert not are_extreme(new, X[:15]).any()


@pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning")
def test_tree_is_independent_of_outlier_distance(tmp_path):
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(40, 3)), rng.normal(size=(40, 3)) + 5, np.zeros((1, 3))])
    trees = []
    for distance in (1e2, 1e4, 1e6):
        X[80, 1] = distance
        model = ct.CoalescentClustering().fit(X)
        trees.append(model.tree_)
        assert model.log_joint_ == pytest.approx(ct.log_joint(model.tree_, model._model.tree_matrix, model.process_))
        model.save(tmp_path / "model.coaltree")
        assert ct.load_model(tmp_path / "model.coaltree").log_joint_ == pytest.approx(model.log_joint_)
    for tree in trees[1:]:
        assert tree.children.tolist() == trees[0].children.tolist()
        np.testing.assert_allclose(tree.heights, trees[0].heights, rtol=1e-3)


@pytest.mark.parametrize("seed", range(4))
def test_branches_outside_clusters_match_definition(seed):
    """A branch is in a cluster that has 90 % of the leaves below it; the one above the root is in none."""
    tree = ct.simulate_tree(60, seed)
    labels = np.random.default_rng(seed).choice(3, 60, p=[0.9, 0.07, 0.03])
    traversal = Traversal.from_tree(tree)
    clusters = np.empty(tree.n_nodes, dtype=np.intp)
    find_clusters(labels, traversal.size, traversal.first_leaf, traversal.leaf_order, clusters)
    _fill_mixed(traversal, labels, 3, clusters)
    for place, node in enumerate(tree.depth_first.tolist()):
        counts = np.bincount(labels[[node] if node < 60 else tree.leaves_below(node)], minlength=3)
        main = int(counts.argmax()) if counts.max() >= 0.9 * counts.sum() and place else 3
        assert clusters[place] == main
