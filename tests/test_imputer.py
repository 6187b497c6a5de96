"""CoalescentImputer: which cells are filled, dtypes, indicators, draws, and the coverage of intervals."""

import datetime as dt
import math
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import coaltree as ct
from coaltree.errors import InputError, InputWarning
from coaltree.inference import posterior_draws
from coaltree.predict.results import DateCells, RealCells
from named import refused

pytestmark = [
    pytest.mark.usefixtures("short_chains"),
    # two groups that differ in every column make copies of their columns, up to the names of categories
    pytest.mark.filterwarnings("ignore:.*cop(y|ies) of (an)?other:coaltree.errors.InputWarning"),
]

nan = np.nan


@pytest.fixture(scope="module")
def frame():
    """Two groups that differ in every column, of many types, with holes in all of them."""
    rng = np.random.default_rng(3)
    group = np.repeat([0, 1], 15)
    day = np.datetime64("2020-01-01") + 1000 * group + rng.integers(0, 30, 30)
    table = pd.DataFrame(
        {
            "length": 10 * group + rng.normal(size=30),
            "legs": pd.array(2 + 4 * group + rng.integers(0, 2, 30), dtype="Int64"),
            "colour": pd.Categorical(np.array(["red", "blue"])[group], categories=["red", "never", "blue"]),
            "wings": pd.array(group == 1, dtype="boolean"),
            "born": day.astype("datetime64[s]"),
            "name": np.array(["finch", "wasp"], dtype=object)[group],
        },
        index=[f"animal {i}" for i in range(30)],
    )
    for k, name in enumerate(table):
        table.loc[[f"animal {k}", f"animal {15 + k}"], name] = None
    return table


@pytest.fixture(scope="module")
def imputer(frame):
    return ct.CoalescentImputer(noise=0.1).fit(frame)


@pytest.fixture(scope="module")
def numbers():
    rng = np.random.default_rng(0)
    tree = ct.simulate_tree(40, 0)
    X = ct.OrnsteinUhlenbeck(0.5, 3.0, 4.0, 0.1).simulate(tree, rng, n_columns=4)
    X[rng.random(X.shape) < 0.15] = nan
    return X


@pytest.fixture(scope="module")
def fitted(numbers):
    return ct.CoalescentImputer(noise=0.1).fit(numbers)


# -- what comes out ----------------------------------------------------------------------------------------------------


def test_only_missing_cells_are_filled(imputer, frame):
    before = frame.copy(deep=True)
    filled = imputer.transform(frame)
    pd.testing.assert_frame_equal(frame, before)
    assert not filled.isna().to_numpy().any()
    assert filled.dtypes.equals(frame.dtypes)
    assert filled.index.equals(frame.index)
    known = frame.notna().to_numpy()
    assert (filled.to_numpy(dtype=object)[known] == frame.to_numpy(dtype=object)[known]).all()
    assert filled["length"].to_numpy()[known[:, 0]].tobytes() == frame["length"].to_numpy()[known[:, 0]].tobytes()


def test_filled_cells_match_group(imputer, frame):
    filled = imputer.transform(frame)
    group = np.repeat([0, 1], 15)
    assert np.all(np.abs(filled["length"] - 10 * group) < 5)
    assert set(filled["legs"][:15]) <= {2, 3}
    assert set(filled["legs"][15:]) <= {6, 7}
    assert filled["colour"].tolist() == ["red"] * 15 + ["blue"] * 15
    assert list(filled["colour"].cat.categories) == ["red", "never", "blue"]
    assert filled["wings"].tolist() == [False] * 15 + [True] * 15
    assert filled["name"].tolist() == ["finch"] * 15 + ["wasp"] * 15
    late = (filled["born"] > "2021-06-01").to_numpy()
    np.testing.assert_array_equal(late, group == 1)


def test_fit_transform_equals_fit_then_transform(imputer, frame):
    pd.testing.assert_frame_equal(ct.CoalescentImputer(noise=0.1).fit_transform(frame), imputer.transform(frame))


def test_subset_of_training_rows_is_filled_alike(imputer, frame, fitted, numbers):
    whole = imputer.transform(frame)
    for rows in (slice(3, 20), slice(None, None, -1), [0], [17, 2, 16]):
        pd.testing.assert_frame_equal(imputer.transform(frame.iloc[rows]), whole.iloc[rows])
    filled = fitted.transform(numbers)
    for rows in (slice(3, 20), slice(None, None, -1), [0], [17, 2, 16]):
        np.testing.assert_allclose(fitted.transform(numbers[rows]), filled[rows], rtol=1e-9)


def test_filled_cells_are_independent_of_other_rows():
    """More rows with missing cells than are left out one by one, many of them equal."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(250, 3)).round()
    X[rng.random(X.shape) < 0.3] = nan
    X = X[~np.isnan(X).all(axis=1)]
    imputer = ct.CoalescentImputer(noise=0.1).fit(X)
    whole = imputer.transform(X)
    np.testing.assert_allclose(imputer.transform(X[::-1]), whole[::-1], rtol=1e-9)


def test_new_rows_are_filled_from_observed_cells(imputer, frame):
    new = pd.DataFrame(
        {
            "length": [10.3, nan, nan],
            "legs": pd.array([None, 2, None], dtype="Int64"),
            "colour": pd.Categorical([None, None, "blue"], categories=["red", "never", "blue"]),
            "wings": pd.array([None, False, None], dtype="boolean"),
            "born": np.array(["NaT", "2020-01-10", "NaT"], dtype="datetime64[s]"),
            "name": ["wasp", None, None],
        }
    )
    filled = imputer.transform(new)
    assert filled["colour"].tolist() == ["blue", "red", "blue"]
    assert filled["name"].tolist() == ["wasp", "finch", "wasp"]
    assert filled["wings"].tolist() == [True, False, True]
    assert 4 <= filled["legs"][0] <= 8
    assert abs(filled["length"][1]) < 5 < filled["length"][2]
    assert filled["born"][1] == new["born"][1]
    assert filled.dtypes.equals(new.dtypes)


def test_imputer_agrees_for_pandas_polars_and_arrays(numbers):
    settings = {"noise": 0.1}
    expected = ct.CoalescentImputer(**settings).fit_transform(numbers)
    assert type(expected) is np.ndarray
    names = list("abcd")
    from_pandas = ct.CoalescentImputer(**settings).fit_transform(pd.DataFrame(numbers, columns=names))
    pd.testing.assert_frame_equal(from_pandas, pd.DataFrame(expected, columns=names))
    table = pl.DataFrame(numbers, schema=names, nan_to_null=True)
    from_polars = ct.CoalescentImputer(**settings).fit_transform(table)
    assert from_polars.equals(pl.DataFrame(expected, schema=names))
    from_lists = ct.CoalescentImputer(**settings).fit_transform(
        [[None if np.isnan(x) else x for x in row] for row in numbers]
    )
    np.testing.assert_array_equal(from_lists, expected)


def test_polars_frame_keeps_dtypes(frame):
    table = pl.from_pandas(frame.reset_index(drop=True)).with_columns(
        pl.col("born").cast(pl.Date), pl.col("legs").cast(pl.UInt8), pl.col("length").cast(pl.Float32)
    )
    filled = ct.CoalescentImputer(noise=0.1).fit_transform(table)
    assert filled.schema == table.schema
    assert filled.null_count().sum_horizontal().item() == 0
    for name in table.columns:
        known = table[name].is_not_null()
        assert filled[name].filter(known).equals(table[name].filter(known))
    assert isinstance(filled["born"][4], dt.date)
    assert filled["colour"].to_list() == ["red"] * 15 + ["blue"] * 15


def test_float32_stays_float32(numbers):
    table = numbers.astype(np.float32)
    filled = ct.CoalescentImputer().fit_transform(table)
    assert filled.dtype == np.float32
    known = ~np.isnan(table)
    assert filled[known].tobytes() == table[known].tobytes()


@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_set_output_chooses_library(fitted, numbers, container):
    imputer_with_output = ct.CoalescentImputer(noise=0.1).set_output(transform=container)
    filled = imputer_with_output.fit_transform(numbers)
    assert isinstance(filled, pd.DataFrame if container == "pandas" else pl.DataFrame)
    assert list(filled.columns) == ["x0", "x1", "x2", "x3"]
    np.testing.assert_array_equal(filled.to_numpy(), fitted.transform(numbers))


@pytest.mark.parametrize("container", ["default", "pandas", "polars"])
@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
@pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning")
def test_output_has_columns_of_fit(kind, container):
    values = {"a": [1.0, 2.0, 3.0, 9.0], "b": [10.0, 20.0, None, 90.0], "c": ["x", "y", "x", "y"]}
    imputer = ct.CoalescentImputer().set_output(transform=container).fit(kind(values))
    expected = imputer.transform(kind(values))
    assert list(expected.columns) == ["a", "b", "c"]
    assert list(expected["a"]) == values["a"]
    for names in (["c", "b", "a"], ["b", "extra", "c", "a"]):
        moved = kind({name: values.get(name, [5, 6, 7, 8]) for name in names})
        assert expected.equals(imputer.transform(moved))
        for draw in imputer.sample(moved, 2, 0):
            assert list(draw.columns) == ["a", "b", "c"]


def test_set_output_with_indicator(numbers, frame):
    numbers = numbers.copy()
    numbers[:, 3] = np.arange(40.0)
    imputer_with_output = ct.CoalescentImputer(add_indicator=True).set_output(transform="pandas")
    filled = imputer_with_output.fit_transform(numbers)
    expected = ["x0", "x1", "x2", "x3", *(f"missingindicator_x{j}" for j in range(3))]
    assert list(filled) == expected == imputer_with_output.get_feature_names_out().tolist()


def test_get_feature_names_out_lists_columns(imputer, fitted, frame):
    assert imputer.get_feature_names_out().tolist() == list(frame)
    assert fitted.get_feature_names_out().tolist() == ["x0", "x1", "x2", "x3"]
    assert fitted.get_feature_names_out(list("abcd")).tolist() == list("abcd")
    with pytest.raises(ValueError, match="input_features"):
        imputer.get_feature_names_out(["other"] * 6)


def test_add_indicator_appends_columns(numbers):
    numbers = numbers.copy()
    numbers[:, 2] = np.arange(40.0)  # a column without holes has none
    imputer = ct.CoalescentImputer(add_indicator=True).fit(numbers)
    assert imputer.indicator_features_.tolist() == [0, 1, 3]
    filled = imputer.transform(numbers)
    assert filled.shape == (40, 7)
    np.testing.assert_array_equal(filled[:, 4:], np.isnan(numbers)[:, [0, 1, 3]].astype(float))
    plain = ct.CoalescentImputer().fit_transform(numbers)
    np.testing.assert_array_equal(filled[:, :4], plain)
    # columns of the fit count, whatever is missing in new rows
    new = np.array([[1.0, 2.0, nan, 3.0]])
    assert imputer.transform(new)[0, 4:].tolist() == [0.0, 0.0, 0.0]


def test_add_indicator_names_frame_columns(frame):
    columns = ["length", "colour"]
    imputer = ct.CoalescentImputer(add_indicator=True)
    filled = imputer.fit_transform(frame[columns])
    names = ["missingindicator_length", "missingindicator_colour"]
    assert list(filled) == [*columns, *names] == imputer.get_feature_names_out().tolist()
    for column, name in zip(columns, names, strict=True):
        assert filled[name].dtype == bool
        np.testing.assert_array_equal(filled[name], frame[column].isna())
    table = pl.from_pandas(frame[columns].reset_index(drop=True))
    other = ct.CoalescentImputer(add_indicator=True).fit_transform(table)
    assert other.columns == [*columns, *names]
    assert other[names[0]].to_list() == frame["length"].isna().tolist()


def test_invalid_add_indicator_is_rejected(numbers):
    with pytest.raises(InputError, match="add_indicator is 'yes'"):
        ct.CoalescentImputer(add_indicator="yes").fit(numbers)


# -- in scikit-learn ---------------------------------------------------------------------------------------------------


def test_imputer_works_in_pipeline(numbers):
    y = (np.nan_to_num(numbers[:, 0], nan=3.0) > 3).astype(int)
    model = make_pipeline(StandardScaler(), ct.CoalescentImputer(), LogisticRegression())
    model.fit(numbers, y)
    assert model.score(numbers, y) > 0.8
    assert clone(model).set_params(coalescentimputer__noise=0.2).fit(numbers, y).predict(numbers).shape == (40,)


def test_imputer_works_in_column_transformer(frame):
    model = ColumnTransformer(
        [("fill", ct.CoalescentImputer(), ["length", "colour"])], remainder="passthrough"
    ).set_output(transform="pandas")
    filled = model.fit_transform(frame)
    assert list(filled)[:2] == ["fill__length", "fill__colour"]
    assert not filled[["fill__length", "fill__colour"]].isna().to_numpy().any()
    assert filled["remainder__legs"].isna().sum() == 2


def test_imputer_can_be_cloned_and_pickled(imputer, frame):
    twin = clone(imputer)
    assert twin.get_params() == imputer.get_params()
    assert not hasattr(twin, "tree_")
    again = pickle.loads(pickle.dumps(imputer))
    pd.testing.assert_frame_equal(again.transform(frame), imputer.transform(frame))
    before = pickle.loads(pickle.dumps(ct.CoalescentImputer(noise=0.5)))
    assert before.noise == 0.5


@pytest.mark.parametrize("method", ["transform", "predictive", "sample"])
def test_unfitted_imputer_is_rejected(method, numbers):
    with pytest.raises(NotFittedError):
        getattr(ct.CoalescentImputer(), method)(numbers)


def test_imputer_is_independent_of_threads(fitted, numbers):
    twin = ct.CoalescentImputer(noise=0.1, n_jobs=2).fit(numbers)
    np.testing.assert_array_equal(twin.transform(numbers), fitted.transform(numbers))
    for a, b in zip(twin.sample(numbers, 2, 0), fitted.sample(numbers, 2, 0), strict=True):
        np.testing.assert_array_equal(a, b)


# -- tables at the edge ------------------------------------------------------------------------------------------------


def test_complete_table_is_unchanged(numbers):
    complete = np.nan_to_num(numbers, nan=1.5)
    np.testing.assert_array_equal(ct.CoalescentImputer().fit_transform(complete), complete)


def test_empty_column_stays_empty(numbers):
    table = pd.DataFrame(numbers, columns=list("abcd")).assign(none=nan)
    with pytest.warns(InputWarning, match="no observed cell.*'none'"):
        imputer = ct.CoalescentImputer(noise=0.1).fit(table)
    assert any("'none'" in remark for remark in imputer.remarks_)
    filled = imputer.transform(table)
    assert filled["none"].isna().all()
    assert not filled[list("abcd")].isna().to_numpy().any()
    cells = imputer.predictive(table)["none"]
    assert np.isnan(cells.mean).all()
    assert np.isnan(cells.sd).all()


def test_constant_column_is_filled_with_constant(numbers):
    table = pd.DataFrame(numbers, columns=list("abcd")).assign(same=7.5, one="x")
    holed = table["a"].isna()
    table.loc[holed, ["same", "one"]] = nan, None
    with pytest.warns(InputWarning, match="constant"):
        imputer = ct.CoalescentImputer(noise=0.1).fit(table)
    filled = imputer.transform(table)
    assert (filled["same"] == 7.5).all()
    assert (filled["one"] == "x").all()
    cells = imputer.predictive(table)
    np.testing.assert_array_equal(cells["same"].mean, 7.5)
    np.testing.assert_array_equal(cells["same"].sd, 0.0)
    np.testing.assert_array_equal(cells["one"].probability, 1.0)
    draws = imputer.sample(table, 2, 0)
    assert all((each["same"] == 7.5).all() and (each["one"] == "x").all() for each in draws)


@pytest.mark.parametrize("method", ["transform", "predictive", "sample"])
def test_missing_cell_only_in_constant_column(method):
    """The row is complete in all columns that take part."""
    X = np.array([[1.0, 5.0, 0.0], [2.0, nan, 1.0], [3.0, 5.0, 4.0], [nan, 5.0, 2.0]])
    with pytest.warns(InputWarning, match="constant"):
        imputer = ct.CoalescentImputer(noise=0.1).fit(X)
    answer = getattr(imputer, method)(X)
    if method == "predictive":
        assert answer["x1"].mean.tolist() == [5.0] * 4
        assert answer["x0"].mean[:3].tolist() == [1.0, 2.0, 3.0]
        return
    for filled in answer if method == "sample" else [answer]:
        assert filled[:, 1].tolist() == [5.0] * 4
        assert filled[:3, 0].tolist() == [1.0, 2.0, 3.0]
        assert np.isfinite(filled[3, 0])


def test_uninformative_table_is_filled_with_constants():
    X = np.array([[2.0, nan], [nan, nan], [2.0, nan]])
    with pytest.warns(InputWarning, match="No column has two different values"):
        imputer = ct.CoalescentImputer().fit(X)
    filled = imputer.transform(X)
    assert filled[:, 0].tolist() == [2.0, 2.0, 2.0]
    assert np.isnan(filled[:, 1]).all()


def test_empty_row_is_filled_near_column_means(numbers):
    X = numbers.copy()
    X[7] = nan
    with pytest.warns(InputWarning, match="arbitrary"):
        imputer = ct.CoalescentImputer(noise=0.1).fit(X)
    middle, spread = np.nanmean(X, axis=0), np.nanstd(X, axis=0)
    for rows in (X, np.full((1, 4), nan)):
        at = 7 if len(rows) > 1 else 0
        assert np.all(np.abs(imputer.transform(rows)[at] - middle) < spread)
        cells = imputer.predictive(rows)
        sd = np.array([cells[f"x{j}"].sd[at] for j in range(4)])
        assert np.all((0.5 * spread < sd) & (sd < 2 * spread))


def test_imputer_accepts_one_row():
    with pytest.warns(InputWarning, match="one row"):
        imputer = ct.CoalescentImputer().fit([[1.0, 2.0]])
    assert imputer.transform([[nan, 2.0]]).tolist() == [[1.0, 2.0]]
    with pytest.warns(InputWarning, match="one row"):
        imputer = ct.CoalescentImputer().fit([[1.0, nan]])
    np.testing.assert_array_equal(imputer.transform([[nan, nan]]), [[1.0, nan]])


def test_imputer_accepts_two_rows():
    imputer = ct.CoalescentImputer(noise=0.1).fit([[1.0, 2.0, 5.0], [3.0, 7.0, 4.0]])
    filled = imputer.transform([[1.1, 2.2, nan], [nan, nan, nan]])
    assert np.all(np.isfinite(filled))
    assert filled[0, 2] > filled[1, 2]  # nearer to the first row, whose cell is 5, than a row that may be anywhere
    with pytest.warns(InputWarning):
        imputer = ct.CoalescentImputer().fit([[1.0, nan], [nan, 2.0]])
    assert imputer.transform([[1.0, nan], [nan, 2.0]]).tolist() == [[1.0, 2.0], [1.0, 2.0]]


def test_unseen_category_is_kept(imputer, frame):
    new = frame[15:17].copy()
    new["name"] = ["bee", None]
    with pytest.warns(InputWarning, match="bee"):
        filled = imputer.transform(new)
    assert filled["name"].tolist() == ["bee", "wasp"]
    with pytest.warns(InputWarning, match="bee"):
        cells = imputer.predictive(new)["name"]
    assert cells.missing.tolist() == [False, True]
    np.testing.assert_allclose(cells.probability.sum(axis=1), 1.0)
    complete = frame[28:].assign(name="bee")
    with pytest.warns(InputWarning, match="bee"):
        cells = imputer.predictive(complete)["name"]
    np.testing.assert_allclose(cells.probability.sum(axis=1), 1.0)
    strict = ct.CoalescentImputer(noise=0.1, unseen_categories="error").fit(frame)
    with pytest.raises(InputError, match="bee"):
        strict.transform(new)


def test_columns_are_matched_by_name(imputer, frame):
    whole = imputer.transform(frame)
    order = list(frame)[::-1]
    pd.testing.assert_frame_equal(imputer.transform(frame[order]), whole)
    with pytest.warns(InputWarning, match="'tail' did not occur"):
        filled = imputer.transform(frame.assign(tail=[nan, *range(29)]))
    pd.testing.assert_frame_equal(filled, whole)
    with pytest.raises(InputError, match="lacks the column 'legs'"):
        imputer.transform(frame.drop(columns="legs"))


def test_wrong_number_of_columns_is_rejected(fitted):
    with refused("X 3 features CoalescentImputer expecting 4"):
        fitted.transform(np.zeros((2, 3)))


def test_correlated_columns_fill_each_other(monkeypatch):
    """A column that is twice another one plus noise is filled from it, whatever the tree."""
    monkeypatch.setattr(posterior_draws, "MIN_SWEEPS", 40)
    monkeypatch.setattr(posterior_draws, "MAX_SWEEPS", 40)
    rng = np.random.default_rng(0)
    x = rng.normal(size=80)
    X = np.column_stack([x, 2 * x + 0.05 * rng.normal(size=80), rng.normal(size=(80, 4))])
    holes = X.copy()
    holes[::4, 1] = np.nan
    filled = {
        setting: ct.CoalescentImputer(covariance=setting, random_state=0).fit_transform(holes)
        for setting in ("full", "diagonal")
    }
    errors = {setting: np.sqrt(np.mean((table - X)[::4, 1] ** 2)) for setting, table in filled.items()}
    assert errors["full"] < 0.15 < 0.3 < errors["diagonal"]


@pytest.mark.usefixtures("short_chains")
def test_columns_are_correlated_by_default(numbers):
    default, full = (ct.CoalescentImputer(**setting, random_state=0) for setting in ({}, {"covariance": "full"}))
    np.testing.assert_array_equal(default.fit_transform(numbers), full.fit_transform(numbers))


# -- what is known of the cells ----------------------------------------------------------------------------------------


def test_predictive_returns_distributions(imputer, frame):
    cells = imputer.predictive(frame)
    assert list(cells) == list(frame)
    filled = imputer.transform(frame)
    for name in ("length", "legs"):
        missing = frame[name].isna().to_numpy()
        np.testing.assert_array_equal(cells[name].missing, missing)
        observed = frame[name].to_numpy(dtype=float, na_value=nan)
        np.testing.assert_array_equal(cells[name].mean[~missing], observed[~missing])
        np.testing.assert_array_equal(cells[name].sd[~missing], 0.0)
        assert np.all(cells[name].sd[missing] > 0)
    np.testing.assert_array_equal(cells["length"].mean, filled["length"])
    np.testing.assert_array_equal(np.rint(cells["legs"].mean), filled["legs"].to_numpy(dtype=float))
    born, missing = cells["born"], cells["born"].missing
    np.testing.assert_array_equal(born.mean[~missing], frame["born"].dropna().to_numpy())
    days = (frame["born"] - pd.Timestamp(0)) / pd.Timedelta(days=1)
    np.testing.assert_allclose(born.days.mean[~missing], days.dropna())
    for name in ("colour", "wings", "name"):
        p = cells[name].probability
        missing = frame[name].isna().to_numpy()
        np.testing.assert_array_equal(cells[name].missing, missing)
        np.testing.assert_allclose(p.sum(axis=1), 1.0)
        assert np.all(p[~missing].max(axis=1) == 1.0)
        assert np.all(p[missing].max(axis=1) < 1.0)
        best = [cells[name].categories[k] for k in p.argmax(axis=1)]
        assert best == filled[name].tolist()
    low, high = cells["length"].interval(0.5)
    missing = cells["length"].missing
    assert np.all((low < cells["length"].median) == missing)
    assert np.all((high > cells["length"].median) == missing)
    # Nearly Gaussian: the quantiles themselves are tested against brute force.
    np.testing.assert_allclose((high - low)[missing], 2 * 0.6744897 * cells["length"].sd[missing], rtol=0.3)
    with pytest.raises(InputError, match=r"level is 1\.5"):
        cells["length"].interval(1.5)
    assert "12 missing cells" in repr(cells)


@pytest.mark.parametrize(
    ("step", "clock", "is_kept"), [(86_400, 0, True), (86_400, 45_000, True), (86_500, 0, False), (1e-3, 0, False)]
)
def test_filled_times_have_the_clock_of_all_known_ones(step, clock, is_kept):
    rng = np.random.default_rng(0)
    x = rng.normal(size=40)
    seconds = 18_000 * 86_400 + clock + np.rint(100 * x + rng.normal(size=40)) * step
    when = (1e6 * seconds).astype("datetime64[us]")
    when[::5] = "NaT"
    filled = ct.CoalescentImputer().fit_transform(pd.DataFrame({"when": when, "x": x}))["when"].to_numpy()
    clocks = (filled - np.datetime64(0, "us")) % np.timedelta64(1, "D")
    assert np.array_equal(filled[~np.isnat(when)], when[~np.isnat(when)])
    assert bool(np.all(clocks == np.timedelta64(clock, "s"))) == is_kept
    assert len(np.unique(filled[::5])) > 1


def test_dates_are_predicted_as_dates(imputer, frame):
    born, filled = imputer.predictive(frame)["born"], imputer.transform(frame)["born"]
    assert born.mean.dtype == born.median.dtype == "datetime64[us]"
    assert born.sd.dtype == "timedelta64[us]"
    step = np.timedelta64(1, "D")
    assert np.all(np.abs(born.mean - filled.to_numpy()) <= step)  # filled cells may be whole days
    low, high = born.interval(0.8)
    assert np.all((low < born.median) == born.missing)
    assert np.all((born.median < high) == born.missing)
    assert np.all((born.sd > np.timedelta64(0, "us")) == born.missing)
    # the same as in days, to the microsecond
    for times, days in (
        (low, born.days.interval(0.8)[0]),
        (born.mean, born.days.mean),
        (born.median, born.days.median),
    ):
        np.testing.assert_allclose((times - np.datetime64(0, "us")) / step, days, rtol=0, atol=1e-9)
    np.testing.assert_allclose(born.sd / step, born.days.sd, rtol=0, atol=1e-9)
    assert "DateCells" in repr(born)
    assert str(born.mean[0])[:10] in born._repr_html_()
    assert "date" in imputer.predictive(frame)._repr_html_()


def test_dates_beyond_the_calendar():
    codes = RealCells(
        np.array([1e300, nan, -np.inf, 0.5]), np.array([np.inf, nan, 1e300, 0.25]), np.zeros(4, dtype=bool)
    )
    cells = DateCells(codes)
    assert cells.mean[0] > np.datetime64("200000-01-01")
    assert np.isnat(cells.mean).tolist() == [False, True, True, False]
    assert np.isnat(cells.sd).tolist() == [True, True, False, False]
    assert cells.mean[3] == np.datetime64("1970-01-01T12:00")
    assert cells.sd[3] == np.timedelta64(6, "h")


def test_filled_values_match_predictive_distributions(fitted, numbers):
    """In the table's units; the predictor is tested against brute force."""
    rows = np.flatnonzero(np.isnan(numbers).any(axis=1))
    predicted = fitted._model.predictor.training_cells(rows)
    middle, spread = np.nanmean(numbers, axis=0), np.nanstd(numbers, axis=0)
    expected = np.where(np.isnan(numbers[rows]), middle + spread * predicted.mean, numbers[rows])
    np.testing.assert_allclose(fitted.transform(numbers)[rows], expected, rtol=1e-9)
    cells = fitted.predictive(numbers)
    for j in range(4):
        holes = np.isnan(numbers[rows, j])
        np.testing.assert_allclose(cells[f"x{j}"].sd[rows][holes], spread[j] * predicted.sd[holes, j])


def test_imputer_is_equivariant_to_units(fitted, numbers):
    scale, shift = np.array([1e-3, 1.0, 1e4, 7.0]), np.array([5.0, 0.0, -3.0, 100.0])
    other = ct.CoalescentImputer(noise=0.1).fit(scale * numbers + shift)
    actual = (other.transform(scale * numbers + shift) - shift) / scale
    np.testing.assert_allclose(actual, fitted.transform(numbers), rtol=1e-5)


# -- draws -------------------------------------------------------------------------------------------------------------


def test_sample_fills_missing_cells_with_different_draws(imputer, frame):
    draws = imputer.sample(frame, 4, random_state=0)
    assert len(draws) == 4
    known = frame.notna().to_numpy()
    for table in draws:
        assert table.dtypes.equals(frame.dtypes)
        assert not table.isna().to_numpy().any()
        assert (table.to_numpy(dtype=object)[known] == frame.to_numpy(dtype=object)[known]).all()
    lengths = np.array([table["length"].to_numpy()[[0, 15]] for table in draws])
    assert len(np.unique(lengths)) == 8
    again = imputer.sample(frame, 4, random_state=0)
    for a, b in zip(draws, again, strict=True):
        pd.testing.assert_frame_equal(a, b)
    assert not draws[0].equals(imputer.sample(frame, 1, random_state=1)[0])
    assert len(imputer.sample(frame)) == 5


def test_sample_matches_predictive_moments():
    """A new row is placed anew in each draw: mean and variance within 5 standard deviations, 4 estimates."""
    X = np.random.default_rng(1).normal(size=(12, 3))
    imputer = ct.CoalescentImputer(noise=0.1).fit(X)
    new = np.array([[0.5, nan, nan]])
    cells = imputer.predictive(new)
    draws = np.array(imputer.sample(new, 2000, random_state=0))[:, 0]
    assert np.all(draws[:, 0] == 0.5)
    for j in (1, 2):
        mean, sd = cells[f"x{j}"].mean[0], cells[f"x{j}"].sd[0]
        assert abs(draws[:, j].mean() - mean) < 5 * sd / np.sqrt(2000)
        squares = (draws[:, j] - mean) ** 2
        assert abs(squares.mean() - sd**2) < 5 * squares.std() / np.sqrt(2000)


def test_similar_rows_have_correlated_draws():
    """Two rows that differ in next to nothing but a cell that both miss: a draw fills both from the same tree.

    Drawn apart, 100 pairs have a correlation above 0.5 with probability 1e-7.
    """
    rng = np.random.default_rng(5)
    X = rng.normal(size=(12, 8))
    X[6] = X[2] + 1e-4
    X[[2, 6], 3] = nan
    imputer = ct.CoalescentImputer(noise=1e-6).fit(X)
    draws = np.array(imputer.sample(X, 100, random_state=0))[:, [2, 6], 3]
    assert draws.std(axis=0).min() > 0.05
    assert np.corrcoef(draws.T)[0, 1] > 0.9


@pytest.mark.parametrize("n_draws", [0, -1, 1.5, True, "3"])
def test_invalid_n_draws_is_rejected(fitted, numbers, n_draws):
    with pytest.raises(InputError, match="n_draws is"):
        fitted.sample(numbers, n_draws)


# -- a sample of trees -------------------------------------------------------------------------------------------------


def test_imputation_with_tree_sample(numbers, monkeypatch):
    """Placing rows anew on trees from the posterior changes nothing on average: what their beliefs say, but for chance.

    The standard error of the difference is that of six runs, whose chains are long enough to forget where they began.
    """
    for name in ("MIN_SWEEPS", "MAX_SWEEPS"):
        monkeypatch.setattr(posterior_draws, name, 40)
    X = numbers[:14]
    settings = {"inference": "smc", "noise": 0.3, "n_particles": 50}
    middle, spread = np.nanmean(X, axis=0), np.nanstd(X, axis=0)
    placed, believed = [], []
    for seed in range(6):
        imputer = ct.CoalescentImputer(**settings, random_state=seed).fit(X)
        filled = imputer.transform(X)
        np.testing.assert_array_equal(filled[~np.isnan(X)], X[~np.isnan(X)])
        mean = sum(
            weight * ct.Beliefs(tree, (X - middle) / spread, imputer.process_).leaves().mean
            for tree, weight in zip(imputer.sample_.trees, imputer.sample_.weights, strict=True)
        )
        placed.append(filled[np.isnan(X)])
        believed.append((middle + spread * mean)[np.isnan(X)])
    gap = np.mean(np.subtract(placed, believed), axis=0)
    error = np.std(np.subtract(placed, believed), axis=0, ddof=1) / np.sqrt(6)
    # beyond 9 standard errors of six runs by chance once in 3,500 for each cell
    assert np.all(np.abs(gap) < 9 * error + 0.01 * spread.max())
    draws = imputer.sample(X, 3, random_state=0)
    assert all(np.all(np.isfinite(table)) for table in draws)


# -- do intervals keep their word? -------------------------------------------------------------------------------------


def simulated(kind, n_real, seed):
    """Draw a table of 300 rows from a model with much noise or little."""
    rng = np.random.default_rng(seed)
    tree = ct.simulate_tree(300, rng)
    noise = (0.03, 0.1, 0.3, 1.0)[seed % 4]
    mean, variance = rng.normal(size=n_real), np.exp(rng.normal(size=n_real))
    if kind == "brownian":
        return ct.Brownian(variance, noise).simulate(tree, rng, root=mean), rng
    stationary = ct.OrnsteinUhlenbeck(0.5, mean, variance, noise)
    if kind == "ornstein-uhlenbeck":
        return stationary.simulate(tree, rng), rng
    process = ct.Mixed((stationary, range(n_real)), (ct.Multinomial(2.0, [[0.2, 0.3, 0.5]]), [n_real]))
    return process.simulate(tree, rng), rng


@pytest.mark.parametrize(
    ("kind", "n_real", "n_tables"),
    [
        ("ornstein-uhlenbeck", 12, 3),
        pytest.param("ornstein-uhlenbeck", 6, 6, marks=pytest.mark.slow),
        pytest.param("brownian", 6, 6, marks=pytest.mark.slow),
        pytest.param("brownian", 12, 3, marks=pytest.mark.slow),
        pytest.param("mixed", 8, 4, marks=pytest.mark.slow),
    ],
)
@pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning")
def test_intervals_have_nominal_coverage(kind, n_real, n_tables):
    """90 % intervals of hidden cells, over tables drawn from the model, cover 87 to 93 % of them.

    About 1,000 cells: if they were independent, the share would have a standard deviation of 0.9 %.
    """
    inside = []
    for seed in range(n_tables):
        X, rng = simulated(kind, n_real, seed)
        hidden = rng.random(X.shape) < 0.1
        table = pd.DataFrame(np.where(hidden, nan, X), columns=[f"c{j}" for j in range(X.shape[1])])
        for name in table.columns[n_real:]:
            table[name] = table[name].map({0.0: "a", 1.0: "b", 2.0: "c"}).astype(object)
        real_process = "brownian" if kind == "brownian" else "ornstein-uhlenbeck"
        cells = ct.CoalescentImputer(real_process=real_process).fit(table).predictive(table)
        low, high = np.array([cells[f"c{j}"].interval(0.9) for j in range(n_real)]).transpose(1, 2, 0)
        inside.append(((low <= X[:, :n_real]) & (X[:, :n_real] <= high))[hidden[:, :n_real]])
    each = ", ".join(f"{100 * part.mean():.1f}" for part in inside)
    inside = np.concatenate(inside)
    assert len(inside) > 900
    message = f"{100 * inside.mean():.1f} % of {len(inside)} cells; of each table {each} %"
    assert 0.87 <= inside.mean() <= 0.93, message


@pytest.mark.parametrize("level", ["a", None, [0.5, 0.9], 0, 1, 90, math.nan, True])
def test_invalid_interval_levels_are_rejected(level):
    cells = RealCells(np.zeros(1), np.ones(1), np.zeros(1, dtype=bool))
    with refused("level number between 0 and 1"):
        cells.interval(level)
