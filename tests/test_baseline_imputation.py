"""Baselines that predict missing cells, against their definitions."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from coaltree.baselines import ColumnMode, NearestInTree, NearestRow, PrincipalComponentCells
from coaltree.errors import InputError
from named import refused

RIVALS = [ColumnMode(), NearestRow(), NearestInTree(), PrincipalComponentCells(2)]


def name(rival):
    return type(rival).__name__


@pytest.fixture
def table():
    """Two groups of rows with states of their own, half of the cells missing."""
    rng = np.random.default_rng(0)
    n_states = [2, 4, 3, 2, 5]
    group = np.repeat([0, 1], 20)
    X = np.array([[(g if rng.random() < 0.8 else rng.integers(k)) for k in n_states] for g in group]).astype(float)
    X[rng.random(X.shape) < 0.5] = np.nan
    return X


@pytest.mark.parametrize("rival", RIVALS, ids=name)
def test_predicted_probabilities_are_valid(rival, table):
    rows, columns = np.nonzero(np.isnan(table))
    rival.fit(table)
    probabilities = rival.predict_proba(rows, columns)
    most = np.nanmax(table, axis=0)
    assert probabilities.shape == (len(rows), most.max() + 1)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert probabilities.min() >= 0
    states = np.arange(probabilities.shape[1])
    assert np.all(probabilities[states > most[columns][:, None]] == 0)
    predicted = rival.predict(rows, columns)
    np.testing.assert_allclose(probabilities[np.arange(len(rows)), predicted], probabilities.max(axis=1))


def test_column_mode_predicts_column_shares(table):
    probabilities = ColumnMode().fit(table).predict_proba(*np.nonzero(np.isnan(table)))
    for column, probability in zip(np.nonzero(np.isnan(table))[1], probabilities, strict=True):
        values = table[:, column][~np.isnan(table[:, column])]
        np.testing.assert_allclose(probability, [np.mean(values == state) for state in range(len(probability))])


def distance(x, y):
    both = ~np.isnan(x) & ~np.isnan(y)
    return np.mean(x[both] != y[both]) if both.any() else 1.0


def test_nearest_row_predicts_shares_of_nearest_rows(table):
    rows, columns = np.nonzero(np.isnan(table))
    probabilities = NearestRow().fit(table).predict_proba(rows, columns)
    for row, column, probability in zip(rows, columns, probabilities, strict=True):
        having = np.flatnonzero(~np.isnan(table[:, column]))
        distances = np.array([distance(table[row], table[other]) for other in having])
        nearest = table[having[distances <= distances.min() + 1e-9], column]
        np.testing.assert_allclose(probability, [np.mean(nearest == state) for state in range(len(probability))])


def test_nearest_in_tree_predicts_shares_of_smallest_observed_clade(table):
    rows, columns = np.nonzero(np.isnan(table))
    rival = NearestInTree().fit(table)
    probabilities = rival.predict_proba(rows, columns)
    tree = rival.tree_
    for row, column, probability in zip(rows, columns, probabilities, strict=True):
        node = row
        while np.isnan(table[tree.leaves_below(node), column]).all():
            node = tree.parents[node]
        values = table[tree.leaves_below(node), column]
        values = values[~np.isnan(values)]
        np.testing.assert_allclose(probability, [np.mean(values == state) for state in range(len(probability))])


def test_baselines_recover_cells_of_clear_groups():
    """With clear groups, all methods but the mode predict better than the column alone."""
    rng = np.random.default_rng(1)
    truth = np.repeat([0.0, 1.0], 25)[:, None] * np.ones(8)
    truth = np.where(rng.random(truth.shape) < 0.05, 1 - truth, truth)
    hidden = rng.random(truth.shape) < 0.2
    at = np.nonzero(hidden)
    right = {
        name(rival): np.mean(rival.fit(np.where(hidden, np.nan, truth)).predict(*at) == truth[at]) for rival in RIVALS
    }
    assert right.pop("ColumnMode") < 0.7
    assert min(right.values()) > 0.8


def test_predict_breaks_ties_by_commoner_state():
    X = [[0, 0], [1, 1], [2, 1], [3, np.nan], [1, 0], [0, 1]]
    rival = NearestRow().fit(X)  # all others are as far from row 3
    assert rival.predict_proba([3], [1])[0, :2].tolist() == [0.4, 0.6]
    X[0][0], X[1][0] = 3, 3
    assert NearestRow().fit(X).predict_proba([3], [1])[0, :2].tolist() == [0.5, 0.5]
    assert NearestRow().fit(X).predict([3], [1]).tolist() == [1]


@pytest.mark.parametrize("rival", RIVALS, ids=name)
def test_empty_columns_and_rows_are_handled(rival):
    nan = np.nan
    X = [[0, nan, 1], [nan, nan, nan], [1, nan, 1], [1, nan, nan]]
    rival.fit(X)
    assert rival.predict([1, 3], [2, 2]).tolist() == [1, 1]
    np.testing.assert_allclose(rival.predict_proba([1, 1, 3], [0, 2, 2]).sum(axis=1), 1)
    with refused("Column 1 observed cell states"):
        rival.predict([3, 3], [2, 1])


@pytest.mark.parametrize("rival", RIVALS, ids=name)
def test_baselines_accept_one_row(rival):
    assert rival.fit([[np.nan, 2.0]]).predict([], []).tolist() == []
    assert rival.predict_proba([], []).shape == (0, 3)


@pytest.mark.parametrize("make", [ColumnMode, NearestRow, NearestInTree, lambda: PrincipalComponentCells(2)])
def test_unfitted_baseline_and_invalid_codes_are_rejected(make):
    with pytest.raises(NotFittedError, match="call fit first"):
        make().predict([0], [0])
    with refused("Row 1 column 0 code 1e+12 codes 10,000"):
        make().fit([[0, 1], [1e12, 1]])
    with pytest.raises(InputError, match="could not be read as numbers"):
        make().fit(pd.DataFrame({"a": ["x", "y"]}))


def test_invalid_cells_are_rejected(table):
    rival = ColumnMode().fit(table)
    row, column = np.argwhere(~np.isnan(table))[0]
    with pytest.raises(InputError, match=f"The cell in row {row}, column {column} is not missing"):
        rival.predict([row], [column])
    with pytest.raises(InputError, match="the table of 40 rows and 5 columns"):
        rival.predict([40], [0])
    with pytest.raises(InputError, match="the table of 40 rows and 5 columns"):
        rival.predict([-1], [0])
    with refused("rows columns shapes (2,) (1,)"):
        rival.predict([1, 2], [0])
    with refused("Row 0 column -1 cells codes"):
        rival.fit([[-1.0]])
