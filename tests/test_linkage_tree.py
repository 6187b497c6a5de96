"""Classical linkage as trees, against scipy."""

import numpy as np
import pytest
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import squareform

from coaltree.baselines import linkage_tree
from coaltree.baselines.linkage import disagreement
from coaltree.errors import InputError
from named import refused


@pytest.mark.parametrize("method", ["average", "complete", "single", "ward"])
def test_linkage_tree_matches_scipy(method):
    X = np.random.default_rng(0).normal(size=(40, 3))
    tree = linkage_tree(X, method, leaf_names=[f"row {i}" for i in range(40)])
    np.testing.assert_array_equal(tree.to_linkage(), linkage(X, method))
    assert tree.leaf_names[3] == "row 3"


@pytest.mark.parametrize("method", ["average", "complete", "single", "ward"])
def test_linkage_tree_of_ties(method):
    grid = np.stack(np.meshgrid(np.arange(6), np.arange(6)), axis=-1).reshape(-1, 2) * 0.1
    tree = linkage_tree(np.vstack([grid, grid]), method)
    assert np.all(np.diff(tree.merge_heights) >= 0)
    assert np.all(tree.merge_heights[:36] == 0)


def hamming(X, i, j):
    pairs = [(a, b) for a, b in zip(X[i], X[j], strict=True) if not np.isnan(a) and not np.isnan(b)]
    return sum(a != b for a, b in pairs) / len(pairs) if pairs else 1.0


def test_hamming_distance_uses_shared_cells():
    rng = np.random.default_rng(1)
    X = rng.integers(0, 4, (25, 6)).astype(float)
    X[rng.random(X.shape) < 0.5] = np.nan
    X[4] = np.nan
    expected = np.array([[hamming(X, i, j) for j in range(25)] for i in range(25)])
    np.testing.assert_allclose(disagreement(X), expected, atol=1e-12)
    np.testing.assert_allclose(disagreement(X, np.array([3, 7])), expected[[3, 7]], atol=1e-12)
    np.fill_diagonal(expected, 0)
    tree = linkage_tree(X, "complete", metric="hamming")
    theirs = linkage(squareform(expected), "complete")
    np.testing.assert_allclose(tree.merge_heights, theirs[:, 2], atol=1e-12)


def test_linkage_tree_of_one_and_two_rows():
    assert linkage_tree([[1.0, 2.0]]).n_leaves == 1
    assert linkage_tree([[1.0], [3.0]]).heights.tolist() == [0, 0, 2]
    assert linkage_tree([[1.0, np.nan], [np.nan, 0]], metric="hamming").heights.tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "centroid"}, "method is 'centroid'; it must be 'average' or 'complete' or 'single' or 'ward'"),
        ({"metric": "cosine"}, "metric is 'cosine'; it must be 'euclidean' or 'hamming'"),
        ({"method": "ward", "metric": "hamming"}, "method='ward' is for Euclidean distances"),
        ({}, "The cell in row 0, column 1 is missing, and Euclidean distances need complete rows"),
    ],
)
def test_linkage_tree_rejects_invalid_tables(options, message):
    with pytest.raises(InputError, match=message):
        linkage_tree([[1.0, np.nan], [2.0, 3.0]], **options)


def test_linkage_tree_rejects_invalid_codes():
    with refused("Row 1 column 0 0.5 cells codes 2"):
        linkage_tree([[1.0], [0.5]], metric="hamming")


@pytest.mark.parametrize("method", ["average", "complete", "single", "ward"])
@pytest.mark.parametrize("unit", [1e-200, 1e200, 0.0])
def test_linkage_tree_is_invariant_to_units(method, unit):
    X = np.random.default_rng(2).normal(size=(12, 3))
    plain, scaled = linkage_tree(X, method), linkage_tree(X * unit, method)
    np.testing.assert_allclose(scaled.heights, plain.heights * unit, rtol=1e-12)
    if unit:
        assert np.array_equal(scaled.children, plain.children)
