"""Missing cells filled from near rows for the search: the definition, invariance, and what stays missing."""

import numpy as np
import pytest

import coaltree as ct
from coaltree.inference.preparation import fill_from_neighbors


def mixed_table(n=60, seed=0, missing=0.25):
    """Return three real columns and two of categories, of three groups."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 3, n)
    real = 3 * rng.normal(size=(3, 3))[group] + rng.normal(size=(n, 3))
    codes = np.column_stack([(group + (rng.random(n) < 0.2)) % 3, rng.integers(0, 2, n)])
    X = np.column_stack([real * [1.0, 10.0, 0.1] + 5, codes])
    X[rng.random(X.shape) < missing] = np.nan
    return X


def by_definition(X, n_real, n_near):
    """Return the filled table, one pair of rows and one cell at a time."""
    n, filled = len(X), X.copy()
    squared_range = (np.nanmax(X, axis=0) - np.nanmin(X, axis=0)) ** 2
    unit = np.mean((np.nanvar(X, axis=0) / squared_range)[:n_real])  # mean variance of a column with a range of 1
    distance = np.full((n, n), np.nan)
    for i in range(n):
        for j in range(n):
            total, columns = 2.0, 1
            for d in range(X.shape[1]):
                a, b, values = X[i, d], X[j, d], X[~np.isnan(X[:, d]), d]
                if np.isnan(a) or np.isnan(b):
                    continue
                columns += 1
                if d < n_real:
                    total += (a - b) ** 2 / (unit * squared_range[d])
                elif a != b:
                    shares = np.unique(values, return_counts=True)[1] / len(values)
                    total += 2 / (1 - np.sum(shares**2))
            distance[i, j] = total / columns
    for i, d in zip(*np.nonzero(np.isnan(X[:, :n_real])), strict=True):
        others = np.flatnonzero(~np.isnan(X[:, d]))
        away = distance[i, others]
        limit = np.sort(away)[min(n_near, len(others)) - 1]
        if not np.isnan(X[i]).all():
            filled[i, d] = X[others[away <= limit + 1e-9], d].mean()
    return filled


@pytest.mark.parametrize(("n", "n_near"), [(60, 10), (60, 3), (7, 10)])
def test_fill_from_neighbors_uses_nearest_rows(n, n_near):
    X = mixed_table(n)
    X[2] = np.nan
    filled = fill_from_neighbors(X, 3, n_neighbors=n_near)
    np.testing.assert_allclose(filled, by_definition(X, 3, n_near), rtol=1e-9)
    assert np.isnan(filled[2]).all()  # nothing is known of it
    assert not np.isnan(np.delete(filled, 2, axis=0)[:, :3]).any()
    np.testing.assert_array_equal(filled[:, 3:], X[:, 3:])  # categories stay missing


def test_fill_from_neighbors_is_independent_of_blocks():
    X = mixed_table(600)
    order = np.random.default_rng(1).permutation(len(X))  # other blocks
    np.testing.assert_allclose(fill_from_neighbors(X[order], 3), fill_from_neighbors(X, 3)[order], rtol=1e-9)


def test_fill_from_neighbors_is_invariant_to_order_and_units():
    X = mixed_table()
    filled = fill_from_neighbors(X, 3)
    rows, columns = np.random.default_rng(0).permutation(len(X)), [2, 0, 1, 4, 3]
    np.testing.assert_allclose(fill_from_neighbors(X[rows][:, columns], 3), filled[rows][:, columns], rtol=1e-9)
    units, shift = np.array([-2.0, 1e3, 1e-3, 1, 1]), np.array([7.0, 0, -1, 0, 0])
    np.testing.assert_allclose(fill_from_neighbors(X * units + shift, 3), filled * units + shift, rtol=1e-7)
    renamed = X.copy()
    renamed[:, 3] = 2 - X[:, 3]
    np.testing.assert_allclose(fill_from_neighbors(renamed, 3)[:, :3], filled[:, :3], rtol=1e-9)


def test_fill_from_neighbors_keeps_complete_and_categorical_tables():
    X = mixed_table(missing=0.0)
    assert fill_from_neighbors(X, 3) is X
    codes = mixed_table()[:, 3:]
    assert fill_from_neighbors(codes, 0) is codes


def test_fill_from_neighbors_without_common_columns_uses_column_mean():
    X = np.array([[1.0, np.nan], [3.0, np.nan], [np.nan, 5.0], [np.nan, 9.0]])
    assert fill_from_neighbors(X, 2, n_neighbors=1).tolist() == [[1, 7], [3, 7], [2, 5], [2, 9]]


def test_fit_with_missing_cells_is_invariant_to_order_and_units():
    X = mixed_table(80)[:, :3]
    model = ct.CoalescentClustering().fit(X)
    rows = np.random.default_rng(0).permutation(len(X))
    other = ct.CoalescentClustering(n_jobs=2).fit((X * [2.0, -0.1, 1e3])[rows][:, [2, 0, 1]])
    np.testing.assert_allclose(other.tree_.heights, model.tree_.heights, rtol=1e-6, atol=1e-9)
    assert other.cut(n_clusters=3).tolist() == _numbered(model.cut(n_clusters=3)[rows])
    assert other.log_likelihood_ - model.log_likelihood_ == pytest.approx(0.0, abs=1e-6)


def _numbered(labels):
    """Number clusters in the order of their first rows."""
    known = {}
    return [known.setdefault(label, len(known)) for label in labels.tolist()]


def test_log_likelihood_uses_only_observed_cells():
    X = mixed_table(40)[:, :3]
    model = ct.CoalescentClustering().fit(X)
    matrix = (X - np.nanmean(X, axis=0)) / np.nanstd(X, axis=0)
    assert model.log_likelihood_ == pytest.approx(model.process_.log_likelihood(model.tree_, matrix), rel=1e-6)
