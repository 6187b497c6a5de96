"""What defines clusters and why rows are in them: `profile` and `explain`, against recomputation and planted clusters."""

import datetime as dt
import math
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats

import coaltree as ct
from coaltree.inference.partition import CONCENTRATION, FREEDOM, SHARES_WITHIN
from named import refused

N = 150
pytestmark = pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning")  # about tables that are odd on purpose


def planted_table(seed):
    """Three clusters in two of ten columns; the others have the scales and shapes that confuse rankings."""
    rng = np.random.default_rng(seed)
    group = np.arange(N) % 3
    columns = {f"noise {k}": rng.normal(size=N) * 10.0**k for k in range(4)}
    columns |= {"first": rng.normal(size=N) + 9 * (group == 1), "second": rng.normal(size=N) + 9 * (group == 2)}
    columns |= {"uniform": rng.random(N), "skewed": rng.lognormal(size=N)}
    columns |= {"coin": rng.choice(["head", "tail"], N), "many": rng.choice(list("abcdefghij"), N)}
    return pd.DataFrame(columns), group


def mixed_table():
    """Two clusters in a number, a date and a category, with missing cells and a row without any."""
    rng = np.random.default_rng(3)
    group = np.arange(60) % 2
    table = pd.DataFrame(
        {
            "income": rng.normal(size=60) + 8.0 * group,
            "born": pd.Timestamp("1980-03-01") + pd.to_timedelta(group * 9000 + rng.integers(0, 900, 60), "D"),
            "colour": np.where(rng.random(60) < 0.1, "grey", np.where(group, "red", "green")),
            "constant": 4.0,
        },
        index=[f"person {k}" for k in range(60)],
    )
    table = table.mask(rng.random(table.shape) < 0.1)
    table.loc["person 7"] = None
    return table, group


@pytest.fixture(scope="module")
def mixed():
    table, _ = mixed_table()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return table, ct.CoalescentClustering(n_clusters=2).fit(table)


@pytest.fixture(scope="module")
def numbers():
    X = np.random.default_rng(5).normal(size=(40, 3)) + 4.0 * (np.arange(40) % 3 == np.arange(3)[:, None]).T
    X[np.random.default_rng(6).random(X.shape) < 0.1] = np.nan
    return X, ct.CoalescentClustering(n_clusters=4, min_cluster_size=1).fit(X)


@pytest.mark.parametrize("seed", range(3))
def test_columns_that_define_planted_clusters_come_first(seed):
    table, group = planted_table(seed)
    model = ct.CoalescentClustering().fit(table)
    assert model.n_clusters_ == 3
    assert (model.labels_ == group).mean() > 0.9  # group k has the k-th row, as cluster k has
    by_cluster = model.profile().groupby("cluster")
    assert set(by_cluster.head(2).column) == {"first", "second"}
    assert by_cluster.head(2).evidence.min() > 3 * by_cluster.tail(8).evidence.max()


def test_a_copy_of_a_column_has_the_same_evidence():
    """Neither would be missed, but both define the clusters."""
    table, _ = planted_table(0)
    model = ct.CoalescentClustering(n_clusters=3).fit(table.drop(columns="second").assign(copy=-5 * table["first"]))
    profile = model.profile().set_index(["column", "cluster"]).evidence
    np.testing.assert_allclose(profile["copy"], profile["first"], rtol=1e-9)
    assert model.profile(n_columns=2).column.isin(["copy", "first"]).all()


def predict_t(x, others, s):
    """Return the log predictive density of x in a cluster of other cells of a column with mean 0 and variance 1."""
    others = others[~np.isnan(others)]
    n, kappa, mean = len(others), s / (1 - s), others.mean() if len(others) else 0.0
    scale = (FREEDOM - 1) * s + ((others - mean) ** 2).sum() + kappa * n / (kappa + n) * mean**2
    width = math.sqrt(scale / (1 + FREEDOM + n) * (1 + 1 / (kappa + n)))
    return stats.t.logpdf(x, 1 + FREEDOM + n, n * mean / (kappa + n), width)


def log_marginal(cells, s):
    """Return the log density of cells, one after another."""
    cells = cells[~np.isnan(cells)]
    return sum(predict_t(x, cells[:k], s) for k, x in enumerate(cells))


def test_evidence_and_explanations_match_predictions_one_by_one(numbers):
    """Chains of t densities in place of moments; the totals without any sum over columns of the library."""
    X, model = numbers
    labels, k = model.labels_, model.n_clusters_
    profile = model.profile().set_index(["column", "cluster"])
    Z = (X - np.nanmean(X, axis=0)) / np.nanstd(X, axis=0)
    shares = []
    for j, z in enumerate(Z.T):
        sums = [sum(log_marginal(z[labels == c], s) for c in range(k)) for s in SHARES_WITHIN]
        s = float(SHARES_WITHIN[np.argmax(sums)])
        shares.append(s)
        for c in range(k):
            expected = log_marginal(z[labels == c], s) + log_marginal(z[labels != c], s) - log_marginal(z, s)
            assert profile.evidence[f"x{j}", c] == pytest.approx(expected, abs=1e-7)
    why = model.explain(range(40)).set_index("row")
    for i in range(40):
        others = np.arange(40) != i
        members = [others & (labels == c) for c in range(k)]
        total = [
            math.log(max(m.sum(), CONCENTRATION))
            + sum(predict_t(Z[i, j], Z[m, j], shares[j]) for j in range(3) if not np.isnan(Z[i, j]))
            for m in members
        ]
        own, lines = labels[i], why.loc[str(i)]
        best = max((c for c in range(k) if c != own), key=lambda c: total[c])
        assert set(lines.next_cluster) == {best}
        assert lines.log_ratio.sum() == pytest.approx(total[own] - total[best], abs=1e-7)


def test_profile_has_the_units_of_the_table(mixed):
    table, model = mixed
    profile = model.profile().set_index(["column", "cluster"])
    assert "constant" not in profile.index
    for cluster in (0, 1):
        rows, rest = (table[model.labels_ == cluster], table[model.labels_ != cluster])
        income = profile.loc[("income", cluster)]
        assert income.typical == pytest.approx(rows.income.mean())
        assert income.spread == pytest.approx(rows.income.std(ddof=0))
        assert income.elsewhere == pytest.approx(rest.income.mean())
        assert income.missing == pytest.approx(rows.income.isna().mean())
        assert income.effect == pytest.approx((rows.income.mean() - rest.income.mean()) / table.income.std(ddof=0))
        born = profile.loc[("born", cluster)]
        assert born.typical == rows.born.mean().round("D").date()
        assert born.spread == pytest.approx(rows.born.std(ddof=0) / pd.Timedelta("1D"))
        colour, shares = profile.loc[("colour", cluster)], rows.colour.value_counts(normalize=True)
        assert (colour.typical, colour.spread) == (shares.index[0], pytest.approx(shares.iloc[0]))
        assert colour.elsewhere == pytest.approx((rest.colour.dropna() == shares.index[0]).mean())
        h = [2 * np.arcsin(np.sqrt((part.colour.dropna() == colour.level).mean())) for part in (rows, rest)]
        assert colour.effect == pytest.approx(h[0] - h[1])


def test_missing_cells_do_not_count_in_explanations(mixed):
    table, model = mixed
    why = model.explain(list(table.index))
    missing = why[~why.column.str.startswith("(") & why.value.isna()]
    assert len(missing) == table.drop(columns="constant").isna().to_numpy().sum()
    assert (missing.log_ratio == 0).all()
    empty = why[why.row == "person 7"]
    assert (empty.log_ratio != 0).sum() <= 1  # the sizes may


def test_largest_total_is_the_label_of_clear_clusters(mixed):
    _, model = mixed
    totals = model.explain(range(60)).groupby("row").log_ratio.sum().drop("person 7")
    assert (totals > 0).mean() > 0.98


def test_columns_that_are_not_listed_are_added_up(mixed):
    _, model = mixed
    whole, part = model.explain("person 3"), model.explain(3, n_columns=1)
    assert part.column.tolist() == [whole.column[0], "(other columns)", "(size)"]
    assert part.log_ratio.sum() == pytest.approx(whole.log_ratio.sum())
    assert model.profile(n_columns=1).groupby("cluster").size().tolist() == [1, 1]


def test_new_rows_are_explained_in_the_cluster_of_predict():
    table = pd.DataFrame(
        {"x": [0.0, 0.2, 0.4, 7.0, 7.3, 7.1], "colour": ["red", "red", "red", "green", "green", "red"]}
    )
    model = ct.CoalescentClustering(n_clusters=2).fit(table)
    new = pd.DataFrame({"colour": ["red", "violet", None, "green"], "x": [0.1, 6.9, 0.3, None]}, index=list("abcd"))
    why = model.explain(new)
    assert why.groupby("row", sort=False).cluster.first().tolist() == model.predict(new).tolist()
    assert why.row.unique().tolist() == list("abcd")
    ratios = why.set_index(["row", "column"]).log_ratio
    assert (ratios[[("b", "colour"), ("c", "colour"), ("d", "x")]] == 0).all()
    assert (ratios[[("a", "colour"), ("a", "x"), ("b", "x"), ("d", "colour")]] > 0).all()


def test_outliers_are_explained_by_the_cells_that_lie_outside():
    table, _ = planted_table(1)
    table.loc[0, "first"] = table.loc[0, "second"] = 60.0
    model = ct.CoalescentClustering(assign_outliers=False).fit(table)
    assert model.labels_[0] == -1
    why = model.explain(0)
    assert set(why.column[:2]) == {"first", "second"}
    assert (why.log_ratio[:2] > 15).all()
    assert why.log_ratio.sum() > 20
    assert (why.cluster == -1).all()
    assert (why.next_cluster >= 0).all()
    profile = model.profile(n_columns=2)
    assert profile[profile.cluster == -1]["size"].iloc[0] == (model.labels_ == -1).sum()


@pytest.mark.parametrize(
    "X", [np.ones((5, 2)), [[1.0, 2.0]], np.random.default_rng(0).normal(size=(30, 2))], ids=["equal", "row", "noise"]
)
def test_one_cluster_has_no_evidence(X):
    model = ct.CoalescentClustering().fit(X)
    assert model.n_clusters_ == 1
    profile, why = model.profile(), model.explain(0)
    assert profile.evidence.abs().sum() == pytest.approx(0, abs=1e-9)
    assert profile.effect.isna().all()
    assert set(why.next_cluster) == {-1}
    assert np.isfinite(why.log_ratio).all()


def test_clusters_of_one_row_have_hardly_any_evidence():
    X = np.random.default_rng(0).normal(size=(12, 2))
    model = ct.CoalescentClustering(n_clusters=12, min_cluster_size=1).fit(X)
    assert model.profile().evidence.max() < 3
    assert np.isfinite(model.explain(range(12)).log_ratio).all()


def test_frames_are_those_of_the_library(mixed):
    table, model = mixed
    twin = ct.CoalescentClustering(n_clusters=2).fit(pl.from_pandas(table))
    for ours, theirs in ((twin.profile(), model.profile()), (twin.explain([1, 2]), model.explain([1, 2]))):
        assert isinstance(ours, pl.DataFrame)
        assert ours.columns == list(theirs)
        number = "evidence" if "evidence" in ours.columns else "log_ratio"
        np.testing.assert_allclose(ours[number].to_numpy(), theirs[number])
    assert twin.profile()["typical"].dtype == pl.String
    assert isinstance(model.profile().query("column == 'born'").typical.iloc[0], dt.date)


def test_bad_rows_are_refused_with_what_is_allowed(mixed):
    _, model = mixed
    with refused("person 99"):
        model.explain("person 99")
    with refused("0 to 59"):
        model.explain([0, 60])
    with refused("n_columns"):
        model.explain(0, n_columns=0)
    with refused("n_columns"):
        model.profile(n_columns=1.5)
    assert len(model.explain([])) == 0


def test_extreme_cells_give_finite_numbers():
    X = np.random.default_rng(2).normal(size=(60, 3))
    X[:30, 0] += 9
    X[5, 1], X[6, 2] = 1e12, -1e300
    model = ct.CoalescentClustering(n_clusters=2).fit(X)
    assert np.isfinite(model.profile().evidence).all()
    assert model.profile(n_columns=1).column.tolist() == ["x0", "x0"]
    assert np.isfinite(model.explain([5, 6]).log_ratio).all()


@pytest.mark.filterwarnings("ignore:.*depends on no other column")
def test_columns_that_were_left_out_of_the_tree_have_their_cells():
    rng = np.random.default_rng(0)
    groups = np.repeat([0, 1], 100)
    frame = pd.DataFrame({"a": 6 * groups + rng.normal(size=200), "b": 6 * groups + rng.normal(size=200)})
    frame["city"] = rng.choice(["Rome", "Oslo", "Bonn"], 200)
    model = ct.CoalescentClustering().fit(frame)
    cities = model.profile().query("column == 'city'")
    assert model.parameters_["city"]["signal"] < 0.2
    assert cities["missing"].tolist() == [0, 0]
    assert cities["typical"].tolist() == [frame["city"][model.labels_ == k].mode()[0] for k in range(2)]
