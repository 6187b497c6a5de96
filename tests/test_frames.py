"""Results as frames of the same library as the input, with its index."""

import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.pipeline import make_pipeline

import coaltree as ct
from coaltree.errors import MissingDependencyError
from named import refused

pytestmark = [
    pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning"),
    pytest.mark.usefixtures("short_chains"),
]

N = 20


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(3)
    group = np.repeat([0, 1], N // 2)
    frame = pd.DataFrame({"length": rng.normal(4 * group, 0.5), "colour": np.array(["red", "blue"])[group]})
    frame.loc[3, "length"] = np.nan
    frame.loc[15, "colour"] = None
    return frame


INDEXES = {
    "default": pd.RangeIndex(N),
    "numbers": pd.Index(range(100, 100 + N), name="id"),
    "dates": pd.date_range("2020-01-01", periods=N),
    "levels": pd.MultiIndex.from_product([["a", "b"], range(N // 2)], names=["group", "number"]),
    "repeated": pd.Index(["x", "y"] * (N // 2)),
}


@pytest.mark.parametrize("index", INDEXES.values(), ids=INDEXES.keys())
def test_cluster_frame_has_index_of_input(frame, index):
    table = frame.set_axis(index)
    model = ct.CoalescentClustering(n_clusters=2).fit(table)
    result = model.to_frame()
    pd.testing.assert_index_equal(result.index, index)
    assert list(result.columns) == ["cluster", "merge_height"]
    assert result["cluster"].tolist() == model.labels_.tolist()
    joined = table.join(result) if index.is_unique else table
    assert len(joined) == N
    placed = model.place(table.iloc[4:7]).to_pandas()
    pd.testing.assert_index_equal(placed.index, index[4:7])


def test_cluster_frame_has_merge_heights_of_tree(frame):
    model = ct.CoalescentClustering().fit(frame)
    expected = [
        min(
            height
            for node, height in enumerate(model.tree_.heights)
            if node >= N and i in model.tree_.leaves_below(node)
        )
        for i in range(N)
    ]
    assert model.to_frame()["merge_height"].tolist() == expected


def test_output_library_matches_input(frame):
    expected = ct.CoalescentClustering().fit(frame)
    for kind, table in ((pl.DataFrame, pl.from_pandas(frame)), (pa.Table, pa.Table.from_pandas(frame))):
        model = ct.CoalescentClustering().fit(table)
        result = model.to_frame()
        assert isinstance(result, kind)
        assert list(result["cluster"].to_numpy()) == expected.labels_.tolist()
    polars = ct.CoalescentClustering().fit(pl.from_pandas(frame))
    placed = polars.place(pl.from_pandas(frame)[:3])
    assert placed.to_polars()["row"].to_list() == ["0", "1", "2"]
    assert placed.to_pandas().index.tolist() == ["0", "1", "2"]


def test_cluster_frame_of_arrays_and_loaded_models(frame, tmp_path):
    X = frame[["length"]].to_numpy()
    result = ct.CoalescentClustering().fit(X).to_frame()
    pd.testing.assert_index_equal(result.index, pd.RangeIndex(N))
    named = frame.set_axis([f"row {i}" for i in range(N)])
    model = ct.CoalescentClustering().fit(named)
    model.save(tmp_path / "m")
    pd.testing.assert_frame_equal(ct.load_model(tmp_path / "m").to_frame(), model.to_frame())


def test_cluster_frame_of_one_row():
    result = ct.CoalescentClustering().fit(pd.DataFrame({"x": [1.0]}, index=["only"])).to_frame()
    assert result.to_dict("index") == {"only": {"cluster": 0, "merge_height": 0.0}}


def test_missing_pandas_has_install_hint(frame, monkeypatch):
    model = ct.CoalescentClustering().fit(frame[["length"]].to_numpy())
    monkeypatch.setitem(sys.modules, "pandas", None)
    with refused("Frames pandas installed pip install", MissingDependencyError):
        model.to_frame()


def test_filled_frames_keep_index_and_names(frame):
    table = frame.set_axis(INDEXES["levels"])
    imputer = ct.CoalescentImputer().fit(table)
    pd.testing.assert_index_equal(imputer.transform(table).index, INDEXES["levels"])
    assert list(imputer.predictive(table)) == ["length", "colour"]
    polars = imputer.transform(pl.from_pandas(frame))
    assert isinstance(polars, pl.DataFrame)
    assert polars.null_count().sum_horizontal().item() == 0
    for container, kind in (("pandas", pd.DataFrame), ("polars", pl.DataFrame)):
        imputer_with_output = ct.CoalescentImputer().set_output(transform=container)
        assert isinstance(imputer_with_output.fit_transform(table), kind)


def test_estimators_work_in_one_pipeline(frame):
    pipeline = make_pipeline(ct.CoalescentImputer(), ct.CoalescentClustering(n_clusters=2))
    labels = pipeline.fit_predict(frame)
    filled = ct.CoalescentImputer().fit_transform(frame)
    expected = ct.CoalescentClustering(n_clusters=2).fit(filled)
    assert labels.tolist() == expected.labels_.tolist()
    assert pipeline.predict(frame[:4]).tolist() == expected.predict(filled[:4]).tolist()
    assert pipeline[-1].to_frame().index.equals(frame.index)
    assert "CoalescentImputer" in pipeline._repr_html_()
