"""Rows of the fit among new rows: they are recognised by their cells and get the clusters of the fit."""

import warnings

import numpy as np
import pandas as pd
import pytest

import coaltree as ct
from coaltree.errors import InputWarning
from coaltree.predict import known_rows
from coaltree.predict.known_rows import KnownRows

N_TABLES = 300
nan = float("nan")


def random_table(rng):
    """Return a small table of mixed columns, some of them constant, perhaps with outliers, holes and equal rows."""
    n = int(rng.choice([1, 2, 3, 4, 6, 10, 15, 20]))
    columns = {}
    for k in range(int(rng.integers(1, 4))):
        kinds = [
            rng.normal(size=n),
            rng.normal(size=n) + 8.0 * rng.integers(0, 3, n),
            rng.integers(0, 3, n).astype(float),
            np.exp(3 * rng.normal(size=n)),
            np.full(n, 5.0),
            rng.choice(["a", "b", "c"][: rng.integers(1, 4)], n).astype(object),
        ]
        values = kinds[rng.integers(len(kinds))]
        if values.dtype == float and rng.random() < 0.3:
            values[rng.integers(n)] += 1e3 * rng.normal()
        columns[f"c{k}"] = values
    frame = pd.DataFrame(columns)
    if rng.random() < 0.4:
        frame = frame.mask(rng.random(frame.shape) < 0.2)
    if rng.random() < 0.5:
        frame = frame.iloc[rng.integers(0, n, n)].reset_index(drop=True)
    return frame


def random_options(rng, n):
    """Return how a table of some rows is to be cut."""
    rules = [{}, {}, {"resolution": float(rng.random())}, {"height_threshold": float(rng.exponential(0.5))}]
    rules.append({"n_clusters": int(rng.integers(1, min(n, 5) + 1))})
    options = {"assign_outliers": bool(rng.random() < 0.5), **rules[rng.integers(len(rules))]}
    if rng.random() < 0.3:
        options["min_cluster_size"] = 1
    samples = [{"inference": "mcmc", "n_chains": 1, "n_samples": 10}, {"inference": "smc", "n_particles": 10}]
    if "resolution" not in options and rng.random() < 0.1:
        options |= samples[rng.integers(2)]
    return options


def group_rows(frame):
    """Return the rows of each group of rows that are equal in all columns that vary, by comparing cell for cell."""
    groups, frame = {}, frame.loc[:, frame.nunique() > 1]
    if not frame.shape[1]:
        return [list(range(len(frame)))]
    for k, row in enumerate(frame.itertuples(index=False)):
        groups.setdefault(tuple("" if pd.isna(cell) else cell for cell in row), []).append(k)
    return list(groups.values())


@pytest.mark.usefixtures("few_replicates")
@pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning")
def test_predictions_of_fit_rows_are_their_labels():
    """Of all tables and ways to cut them; and equal rows have one label."""
    rng = np.random.default_rng(0)
    for seed in range(N_TABLES):
        frame = random_table(rng)
        options = random_options(rng, len(frame))
        model = ct.CoalescentClustering(random_state=seed, **options)
        labels = model.fit_predict(frame)
        np.testing.assert_array_equal(labels, model.labels_)
        np.testing.assert_array_equal(model.predict(frame), labels, err_msg=f"{seed}: {options}")
        shuffled = rng.permutation(len(frame)).repeat(2)
        np.testing.assert_array_equal(
            model.predict(frame.iloc[shuffled]), labels[shuffled], err_msg=f"{seed}: {options}"
        )
        assert all(len(set(labels[rows])) == 1 for rows in group_rows(frame)), (seed, options)


@pytest.mark.usefixtures("short_chains")
@pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning")
@pytest.mark.parametrize("table", [[[5.0, 5.0]] * 4, [[3.0, 1.0]], [[1.0], [nan], [1.0]], [["a"], ["a"]]])
def test_rows_of_constant_table_are_in_its_cluster(table, tmp_path):
    model = ct.CoalescentClustering(assign_outliers=False).fit(pd.DataFrame(table))
    model.save(tmp_path / "model.coaltree")
    for fitted in (model, ct.load_model(tmp_path / "model.coaltree")):
        assert set(fitted.labels_) == {0}
        assert fitted.predict(pd.DataFrame(table[:1])).tolist() == [0]
        placed = fitted.place(pd.DataFrame(table[:1]))
        assert placed.cluster.tolist() == [0]
        assert placed.cluster_probability.tolist() == [1.0]


@pytest.mark.usefixtures("short_chains")
@pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning")
def test_placements_have_clusters_of_fit():
    rng = np.random.default_rng(1)
    X = np.vstack([rng.normal(size=(30, 2)), rng.normal(size=(30, 2)) + 3, [[60.0, -60.0]]])
    for assign_outliers in (True, False):
        model = ct.CoalescentClustering(n_clusters=6, assign_outliers=assign_outliers).fit(X)
        placed, shares = model.place(X), model.predict_proba(X)
        np.testing.assert_array_equal(placed.cluster, model.labels_)
        assert np.any(shares.argmax(axis=1) != model.labels_)  # otherwise, this is no test
        inside = np.flatnonzero(placed.cluster >= 0)
        np.testing.assert_allclose(placed.cluster_probability[inside], shares[inside, placed.cluster[inside]])


def test_known_rows_equal_search_through_all_rows(monkeypatch):
    """Also if different rows have the same hash."""
    rng = np.random.default_rng(2)
    X = rng.choice([0.0, -0.0, 1.0, nan, -nan], size=(60, 3))
    rows = np.vstack([X[::-1], rng.choice([0.0, 1.0, nan, 2.0], size=(60, 3))])
    expected = [
        next((k for k, known in enumerate(X) if np.array_equal(row, known, equal_nan=True)), -1) for row in rows
    ]
    assert KnownRows(X).find(rows).tolist() == expected
    monkeypatch.setattr(known_rows, "_hash_rows", lambda cells: cells[:, :1].sum(axis=1) % np.uint64(3))
    assert KnownRows(X).find(rows).tolist() == expected
    monkeypatch.undo()
    assert KnownRows(np.empty((2, 0))).find(np.empty((3, 0))).tolist() == [0, 0, 0]
    assert KnownRows(X).find(X[:0]).tolist() == []


@pytest.mark.usefixtures("short_chains")
def test_clusters_of_known_rows_need_no_trees():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        X = np.random.default_rng(0).normal(size=(30, 2))
        model = ct.CoalescentClustering().fit(X)
        model.predict(X[:5])
        assert model._model.known_predictor is None


def test_more_clusters_than_distinct_rows_are_remarked():
    model = ct.CoalescentClustering(n_clusters=5, min_cluster_size=1)
    with pytest.warns(InputWarning, match="n_clusters=5 is more than the 3 distinct rows"):
        labels = model.fit_predict(np.repeat([[0.0], [1.0], [4.0]], [4, 7, 1], axis=0))
    assert labels.tolist() == [0] * 4 + [1] * 7 + [2]


@pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning")
def test_whole_numbers_that_are_no_quantities_are_remarked():
    rows = pd.DataFrame({"day": [20200106, 20191231, None, 19000228], "id": [10**17 * (k + 9) // 77 for k in range(4)]})
    rows["near"], rows["size"] = [20200106, 20191331, 20200107, 20200108], [1e300, 2e300, 4e300, 8e300]
    remarks = ct.CoalescentClustering().fit(rows).remarks_
    assert "20200106" in next(remark for remark in remarks if "'day'" in remark)
    assert "17 digits" in next(remark for remark in remarks if "'id'" in remark)
    assert not any("'near'" in remark or "'size'" in remark for remark in remarks)
