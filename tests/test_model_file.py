"""Model files: round trips, and rejection of damaged or foreign files."""

import hashlib
import io
import json
import os
import zipfile
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import coaltree as ct
from coaltree.errors import InputError
from coaltree.estimators.load import to_estimator, to_imputer
from coaltree.persist.archive import array_to_bytes, from_json, pack, to_json
from coaltree.persist.model import FORMAT_VERSION, ModelRecord, read_model_record
from coaltree.persist.schema import encoding_from_json, encoding_to_json, process_from_json, process_to_json
from coaltree.table import columns
from coaltree.table.encoding import fit_encoding
from model_files import model_bytes, model_record
from named import refused

pytestmark = [
    pytest.mark.usefixtures("short_chains"),
    pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning"),
]

N = 12


@pytest.fixture(scope="module")
def frame():
    """Two groups, columns of all kinds, with holes."""
    rng = np.random.default_rng(5)
    group = np.repeat([0, 1], N // 2)
    frame = pd.DataFrame(
        {
            "length": rng.normal(3 * group, 0.5),
            "colour": np.where(rng.random(N) < 0.8, np.array(["red", "blue"])[group], "grün, ß"),
            "weight": rng.normal(100 - 40 * group, 6),
            "wings": pd.array(rng.random(N) < 0.2 + 0.6 * group, dtype="boolean"),
            "legs": pd.Categorical(rng.choice([2, 4, 6], N)),
            "size": pd.Categorical(rng.choice([0.5, 1.0], N)),
            "planet": "earth",
        },
        index=[f"row {i}" for i in range(N)],
    )
    frame.loc["row 3", "length"] = np.nan
    frame.loc["row 8", "colour"] = None
    frame.loc["row 9", "wings"] = pd.NA
    return frame


@pytest.fixture(scope="module")
def new_rows(frame):
    rows = frame.iloc[[0, 4, 7, 10]].copy()
    rows["length"] += [0.1, np.nan, -0.2, 0.3]
    rows.loc["row 7", "colour"] = None
    return rows


@pytest.fixture(scope="module")
def greedy(frame):
    return ct.CoalescentClustering(noise=0.1, n_jobs=1).fit(frame)


@pytest.fixture(scope="module")
def sampled(frame):
    sampling = {"inference": "smc", "n_particles": 15, "n_runs": 2, "proposal": "race"}
    model = {"noise": 0.1, "real_process": "brownian"}
    return ct.CoalescentClustering(**sampling, **model, random_state=np.random.default_rng(0)).fit(frame)


@pytest.fixture(scope="module")
def imputer(frame):
    return ct.CoalescentImputer(noise=0.1, add_indicator=True).fit(frame)


@pytest.fixture(params=["greedy", "sampled", "imputer"])
def fitted(request):
    return request.getfixturevalue(request.param)


def save_and_load(model, folder):
    model.save(folder / "m.coaltree")
    return ct.load_model(folder / "m.coaltree")


def repack(data, changes=None, **facts):
    """The file with some facts of model.json, and some members, changed; None takes one away."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    summary = json.loads(members["model.json"].decode(errors="surrogatepass"))
    for name, value in facts.items():
        if callable(value):
            value(summary)
        else:
            summary[name] = value
    members["model.json"] = to_json(summary)
    for name, member in (changes or {}).items():
        members[name] = member
    return pack({name: member for name, member in members.items() if member is not None})


def load(data):
    return to_estimator(ModelRecord.from_bytes(data, "m.coaltree"), "m.coaltree")


# -- what comes back ---------------------------------------------------------------------------------


def test_model_round_trip(fitted, tmp_path):
    again = save_and_load(fitted, tmp_path)
    assert type(again) is type(fitted)
    parameters = fitted.get_params() | ({"random_state": None} if fitted.inference == "smc" else {})
    assert again.get_params() == parameters
    assert again.tree_ == fitted.tree_
    assert type(again.tree_) is type(fitted.tree_)
    assert again.n_features_in_ == 7
    assert again.feature_names_in_.tolist() == fitted.feature_names_in_.tolist()
    assert again.remarks_ == fitted.remarks_
    assert again.remarks_[0] == "1 column is constant and ignored: 'planet'."
    assert again.parameters_ == fitted.parameters_
    assert repr(again.process_) == repr(fitted.process_)
    for name in ("log_joint_", "log_likelihood_", "log_ratios_"):
        np.testing.assert_array_equal(getattr(again, name), getattr(fitted, name), err_msg=name)
    for name in ("column_names", "kinds", "categories"):
        assert getattr(again.encoding_, name) == getattr(fitted.encoding_, name)
    kinds = [
        [type(category) for category in categories_of_column] for categories_of_column in again.encoding_.categories
    ]
    assert kinds == [
        [type(category) for category in categories_of_column] for categories_of_column in fitted.encoding_.categories
    ]
    assert {kind for categories_of_column in kinds for kind in categories_of_column} == {str, bool, int, float}
    for name in ("center", "scale", "informative"):
        np.testing.assert_array_equal(getattr(again.encoding_, name), getattr(fitted.encoding_, name))


@pytest.mark.parametrize("name", ["greedy", "sampled"])
def test_loaded_clustering_is_bitwise_equal(name, request, frame, new_rows, tmp_path):
    model = request.getfixturevalue(name)
    again = save_and_load(model, tmp_path)
    for attribute in ("labels_", "linkage_", "children_", "distances_"):
        np.testing.assert_array_equal(getattr(again, attribute), getattr(model, attribute))
        assert getattr(again, attribute).dtype == getattr(model, attribute).dtype
    assert again.n_clusters_ == model.n_clusters_
    for rows in (new_rows, frame):
        np.testing.assert_array_equal(again.predict(rows), model.predict(rows))
        np.testing.assert_array_equal(again.predict_proba(rows), model.predict_proba(rows))
        np.testing.assert_array_equal(again.score_samples(rows), model.score_samples(rows))
        assert again.score(rows) == model.score(rows)
        assert (
            again.place(rows, n_nearest=2, level=0.5).columns() == model.place(rows, n_nearest=2, level=0.5).columns()
        )
    assert np.ptp(model.score_samples(new_rows)) > 0


def test_sample_round_trip(sampled, tmp_path):
    again = save_and_load(sampled, tmp_path)
    assert again.sample_.trees == sampled.sample_.trees
    assert again.log_evidence_ == sampled.log_evidence_
    traces = ("log_evidence_traces", "run_ess", "resampled", "run_log_evidences", "n_ancestors", "runs", "ess")
    for name in ("weights", "log_joints", "log_ratios", *traces, "log_evidence_se", "effective_size"):
        np.testing.assert_array_equal(getattr(again.sample_, name), getattr(sampled.sample_, name))
    np.testing.assert_array_equal(again.tree_.support, sampled.tree_.support)
    np.testing.assert_array_equal(again.tree_.height_hpd, sampled.tree_.height_hpd)
    assert len({id(tree) for tree in again.sample_.trees}) == len({id(tree) for tree in sampled.sample_.trees}) > 1
    assert type(again.sample_) is ct.SMCResult
    assert again.sample_.remarks == sampled.sample_.remarks
    assert repr(again.sample_) == repr(sampled.sample_)
    assert again.sample_.process is again.process_
    with pytest.raises(AttributeError, match="cannot be changed"):
        again.sample_.ess = 0


TRACES = ("run_log_evidences", "log_evidence_traces", "run_ess", "resampled", "n_ancestors", "runs")


def test_files_of_earlier_format_are_rejected_with_version(small):
    """Files of the earlier format have no digest: the message names the version that wrote them."""
    with zipfile.ZipFile(io.BytesIO(small)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    facts = json.loads(members["model.json"])
    for version in range(1, FORMAT_VERSION):
        members["model.json"] = to_json(facts | {"format_version": version, "coaltree_version": "0.0.8"})
        with refused(f"m.coaltree earlier version 0.0.8 format {FORMAT_VERSION} fit again") as caught:
            load(zip_members(members))
        assert "damaged" not in str(caught.value)


@pytest.mark.parametrize("name", ["name", "<script>alert(1)</script>", "a,b", 'two\n"lines"', "🦊", ""])
def test_row_name_column_is_restored(frame, name):
    table = replace(columns.read_columns(frame), id_column=name)
    model = ct.CoalescentClustering()._fit_table(table)
    again = load(model_bytes(model))
    assert again._model.id_column == name
    assert model_bytes(again) == model_bytes(model)
    assert again.fit(frame)._model.id_column is None


def test_loaded_imputer_is_bitwise_equal(imputer, frame, new_rows, tmp_path):
    again = save_and_load(imputer, tmp_path)
    assert again.indicator_features_.tolist() == imputer.indicator_features_.tolist() == [0, 1, 3]
    assert again.get_feature_names_out().tolist() == imputer.get_feature_names_out().tolist()
    new_rows = new_rows.assign(planet=["earth", None, "earth", "earth"])
    for rows in (new_rows, frame):
        pd.testing.assert_frame_equal(again.transform(rows), imputer.transform(rows), check_exact=True)
        cells, expected = again.predictive(rows), imputer.predictive(rows)
        for name in expected:
            part = "sd" if hasattr(expected[name], "sd") else "probability"
            np.testing.assert_array_equal(getattr(cells[name], part), getattr(expected[name], part))
        for one, other in zip(again.sample(rows, 2, 7), imputer.sample(rows, 2, 7), strict=True):
            pd.testing.assert_frame_equal(one, other, check_exact=True)
    assert again.transform(new_rows)["planet"].tolist() == ["earth"] * 4


def test_saving_is_reproducible(fitted, tmp_path):
    data = model_bytes(fitted)
    assert model_bytes(fitted) == data
    fitted.save(str(tmp_path / "a"))
    fitted.save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes() == data
    assert model_bytes(ct.load_model(str(tmp_path / "a"))) == data
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]


def test_model_file_contains_no_pickle(sampled):
    with zipfile.ZipFile(io.BytesIO(model_bytes(sampled))) as archive:
        assert archive.testzip() is None
        for info in archive.infolist():
            assert info.date_time == (1980, 1, 1, 0, 0, 0)
            if info.filename != "model.json":
                np.load(io.BytesIO(archive.read(info)), allow_pickle=False)
        facts = json.loads(archive.read("model.json").decode(errors="surrogatepass"))
    assert facts["format"] == "coaltree model"
    assert facts["format_version"] == FORMAT_VERSION
    assert facts["coaltree_version"] == ct.__version__
    assert "load_model" in facts["about"]
    assert facts["clusters_chosen_by"] == "likelihood ratio"
    assert facts["n_clusters"] == sampled.n_clusters_
    assert facts["parameters"]["random_state"] is None
    assert facts["columns"][4]["categories"] == [2, 4, 6]
    assert facts["columns"][4]["types"] == ["int"] * 3


def test_loaded_model_can_be_refitted(greedy, frame, tmp_path):
    again = save_and_load(greedy, tmp_path)
    assert clone(again).fit(frame).tree_ == greedy.tree_
    assert again.set_params(n_clusters=3).fit(frame).n_clusters_ == 3


def test_clustering_file_fills_cells_like_imputer(greedy, imputer, frame, new_rows, tmp_path):
    greedy.save(tmp_path / "m")
    filling = to_imputer(read_model_record(tmp_path / "m"), "m")
    imputer.save(tmp_path / "i")
    expected = to_imputer(read_model_record(tmp_path / "i"), "i", n_jobs=2)
    assert (filling.n_jobs, expected.n_jobs) == (1, 2)
    expected.add_indicator = False
    for rows in (new_rows, frame, new_rows.assign(planet=None)):
        pd.testing.assert_frame_equal(filling.transform(rows), expected.transform(rows))
    assert filling.indicator_features_.tolist() == [0, 1, 3]


def test_clustering_of_later_version_is_rejected_by_imputer(small, tmp_path):
    (tmp_path / "m").write_bytes(repack(small, of=of_parameters(depth=3)))
    with pytest.raises(InputError, match="a later version of coaltree"):
        to_imputer(read_model_record(tmp_path / "m"), "m")


@pytest.mark.parametrize("standardize", [True, False])
def test_clustering_file_keeps_constants(tmp_path, standardize):
    X = np.array([[0.0, 7.0, 0.0, np.nan], [0.1, 7.0, 0.0, np.nan], [4.0, 7.0, 0.0, np.nan]])
    ct.CoalescentClustering(standardize=standardize).fit(X).save(tmp_path / "m")
    assert to_imputer(read_model_record(tmp_path / "m"), "m")._model.constants == [None, 7.0, 0.0, None]


@pytest.mark.parametrize(
    ("table", "parameters"),
    [
        (np.array([[1.0, 2.0]]), {}),
        (np.full((3, 2), 5.0), {}),
        (np.array([[0.0, 1.0], [0.4, 0.2], [3.0, 2.0], [3.5, 2.6]]), {"covariance": "full", "height_threshold": np.inf}),
        (pl.DataFrame({"a": [0.5, None, 3.0], "b": [1, 2, 4]}), {"categorical_features": np.array([False, True])}),
        (pd.DataFrame([[1.0, 2.0], [2.0, 5.0]], columns=[0, 1]), {"n_clusters": np.int64(2), "n_jobs": np.int32(1)}),
        (np.asfortranarray([[0.0, 1.0], [0.4, np.nan], [3.0, 2.0]]), {"real_process": "brownian", "noise": np.float32(0.1)}),
    ],
)  # fmt: skip
def test_models_of_all_table_shapes_round_trip(table, parameters, tmp_path):
    model = ct.CoalescentClustering(**parameters).fit(table)
    again = save_and_load(model, tmp_path)
    assert again.tree_ == model.tree_
    assert hasattr(again, "feature_names_in_") == hasattr(model, "feature_names_in_")
    np.testing.assert_array_equal(again.labels_, model.labels_)
    np.testing.assert_array_equal(again.score_samples(table), model.score_samples(table))
    np.testing.assert_array_equal(again.predict_proba(table), model.predict_proba(table))
    assert again.height_threshold == model.height_threshold
    assert again.noise == model.noise
    assert np.array_equal(again.categorical_features, model.categorical_features)


@pytest.mark.parametrize(
    "process",
    [
        ct.Brownian(2.0, 0.3),
        ct.Brownian([1 / 3, 1e-30]),
        ct.Brownian([[2.0, 0.1], [0.1, 3.0]], 1e-5),
        ct.OrnsteinUhlenbeck(0.1 + 0.2, [1 / 3, -0.0], [1e20, 0.7], 0.1),
        ct.OrnsteinUhlenbeck(1, 0.5, [[2.0, 0.1], [0.1, 3.0]]),
        ct.Mixed(
            (ct.OrnsteinUhlenbeck(variance=[1.0, 0.1]), [0, 1]),
            (ct.Multinomial([0.7, 1e-3], [[1 / 3, 1 / 3, 1 / 3], [0.1, 0.9]]), [2, 3]),
        ),
    ],
    ids=repr,
)
def test_processes_round_trip_bitwise_equal(process):
    written = json.loads(to_json(process_to_json(process)))
    again = process_from_json(written)
    assert process_to_json(again) == process_to_json(process)
    parts = [(process, again)]
    if isinstance(process, ct.Mixed):
        assert [columns for _, columns in again.parts] == [columns for _, columns in process.parts]
        parts = [(one, other) for (one, _), (other, _) in zip(process.parts, again.parts, strict=True)]
    for one, other in parts:
        assert type(one) is type(other)
        for name, value in vars(one).items():
            again = getattr(other, name)
            for x, y in zip(value, again, strict=True) if isinstance(value, tuple) else [(value, again)]:
                np.testing.assert_array_equal(x, y)


@given(st.lists(st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()))
def test_json_keeps_values_and_types(value):
    for plain in (value, "\udce4 \ud800"):
        finite = json.loads(json.dumps(plain).replace("Infinity", "1e300"))
        assert repr(from_json(to_json(finite))) == repr(finite)


@given(st.lists(st.integers(1, 1000), min_size=2, max_size=9))
def test_loading_does_not_renormalise_shares(counts):
    process = ct.Multinomial(1.0, [np.array(counts) / sum(counts)])
    again = process_from_json(json.loads(to_json(process_to_json(process))))
    np.testing.assert_array_equal(again.equilibrium[0], process.equilibrium[0])
    assert not again.equilibrium[0].flags.writeable


# -- what cannot be saved ----------------------------------------------------------------------------


def test_models_that_cannot_be_saved_are_rejected(greedy, frame, tmp_path):
    with pytest.raises(NotFittedError):
        ct.CoalescentClustering().save(tmp_path / "m")

    class Mine(ct.CoalescentClustering):
        pass

    mine = Mine().fit(frame)
    with pytest.raises(InputError, match="A Mine cannot be saved"):
        mine.save(tmp_path / "m")
    changed = save_and_load(greedy, tmp_path)
    changed.set_params(verbose=object())
    with pytest.raises(InputError, match=r"verbose is <object .* cannot be stored"):
        changed.save(tmp_path / "n")
    assert sorted(os.listdir(tmp_path)) == ["m.coaltree"]


def test_unwritable_paths_are_reported(greedy, tmp_path):
    with pytest.raises(InputError, match="it is a folder"):
        greedy.save(tmp_path)
    with pytest.raises(InputError, match="No such file"):
        greedy.save(tmp_path / "no" / "m")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_model_is_written_atomically(greedy, tmp_path, monkeypatch, error):
    (tmp_path / "m").write_bytes(b"old")

    def fail(*arguments):
        raise error

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises((InputError, KeyboardInterrupt)):
        greedy.save(tmp_path / "m")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"old"]


# -- files that are no models --------------------------------------------------------------------------


def zip_members(members, **options):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", **options) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return packed.getvalue()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "m.coaltree is empty"),
        (b"id,x\na,1\n", "not a coaltree model, or is damaged"),
        (b"PK\x03\x04", "not a coaltree model, or is damaged"),
        (b"PK\x05\x06" + bytes(18), "not a coaltree model, or is damaged"),
        (zip_members({"xl/workbook.xml": "<x/>"}), "a zip file of something else"),
        (zip_members({"model.json": "{"}), "model.json is not JSON"),
        (zip_members({"model.json": b"\xff"}), "model.json is not JSON"),
        (zip_members({"model.json": "[" * 100_000}), "model.json is not JSON"),
        (zip_members({"model.json": "1" * 5000}), "model.json is not JSON"),
        (zip_members({"model.json": '{"format": NaN}'}), "model.json is not JSON"),
        (zip_members({"model.json": "[]"}), "not an object"),
        (zip_members({"model.json": '{"format": "cat model"}'}), "coaltree model"),
        (zip_members({"model.json": '{"format": "coaltree model"}'}), "model.json has no 'format_version'"),
        (zip_members({"model.json": "{}"}, compression=zipfile.ZIP_DEFLATED), "it is compressed"),
        (
            zip_members({"model.json": '{"format": "coaltree model", "format_version": 98, "coaltree_version": "9.1"}'}),
            r"was written by a later version of coaltree \(9.1, and this is .*\): update",
        ),
        (
            zip_members({"model.json": '{"format": "coaltree model", "format_version": 1, "coaltree_version": "0.0.9"}'}),
            r"earlier version of coaltree \(0.0.9\).*fit the model again",
        ),
        (
            zip_members({"model.json": '{"format": "coaltree model", "format_version": 99}'}),
            "was written by a later version of coaltree: update",
        ),
        (zip_members({"model.json": '{"format": "coaltree model", "format_version": "1"}'}), "format_version is '1'"),
    ],
)  # fmt: skip
def test_foreign_files_are_rejected(data, message, tmp_path):
    (tmp_path / "m.coaltree").write_bytes(data)
    with pytest.raises(InputError, match=message) as caught:
        ct.load_model(tmp_path / "m.coaltree")
    assert str(tmp_path / "m.coaltree") in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_files_are_reported(tmp_path, monkeypatch):
    with pytest.raises(InputError, match=r"no.coaltree does not exist\.$"):
        ct.load_model(tmp_path / "no.coaltree")
    with pytest.raises(InputError, match="is a folder"):
        ct.load_model(str(tmp_path))
    (tmp_path / "m").write_bytes(b"x")

    def refuse(*arguments, **options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(type(tmp_path), "open", refuse)
    with pytest.raises(InputError, match="m cannot be read: Permission denied"):
        read_model_record(tmp_path / "m")


def test_truncated_archive_is_rejected(sampled):
    data = model_bytes(sampled)
    assert load(data).tree_ == sampled.tree_
    cuts = {*range(1, 200), *range(200, len(data) - 400, 97), *range(len(data) - 400, len(data))}
    for cut in sorted(cuts):
        with pytest.raises(InputError, match="damaged"):
            ModelRecord.from_bytes(data[:cut], "m.coaltree")


@pytest.fixture(scope="module")
def small():
    """A small file, each byte of which has some meaning or none."""
    X = pd.DataFrame({"a": [0.0, 0.3, 4.0, np.nan], "c": ["u", "u", "v", "v"]})
    return model_bytes(ct.CoalescentClustering().fit(X))


def test_every_changed_byte_is_detected(small):
    for place in range(len(small)):
        for change in (1 << place % 8, 0xFF):
            changed = bytearray(small)
            changed[place] ^= change
            with pytest.raises(InputError, match=r"m\.coaltree .*damaged"):
                ModelRecord.from_bytes(bytes(changed), "m.coaltree")


def with_digest(data):
    """The file with a digest that matches its content, as an attacker would write it."""
    return data[:-64] + hashlib.sha256(data[:-64]).hexdigest().encode()


def test_member_checksums_are_verified(small):
    place = small.index(b"NUMPY") + 130
    with pytest.raises(InputError, match=r"CRC-32 .* 'matrix.npy'"):
        load(with_digest(small[:place] + b"X" + small[place + 1 :]))


@given(st.binary(max_size=300))
def test_random_bytes_are_rejected(data):
    for content in (data, b"PK\x03\x04" + data, zip_members({"model.json": data})):
        with pytest.raises(InputError):
            ModelRecord.from_bytes(content)


# -- files that lie --------------------------------------------------------------------------------------

HEIGHTS = np.array([[0.1, 0.2, 1.0]])
CHILDREN = np.array([[[0, 1], [2, 3], [4, 5]]])


def of_column(j, **changes):
    return lambda facts: facts["columns"][j].update(changes)


def swap_columns(facts):
    for k, part in enumerate(facts["process"]["parts"]):
        part["columns"] = [1 - k]


def of_process(**changes):
    return lambda facts: facts["process"]["parts"][0]["process"].update(changes)


def of_parameters(**changes):
    return lambda facts: facts["parameters"].update(changes)


def huge_array(shape):
    """An array that says it is huge, and is not."""
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode()


@pytest.mark.parametrize(
    ("changes", "facts", "message"),
    [
        ({"matrix.npy": None}, {}, "it has no matrix.npy"),
        ({"labels.npy": None}, {}, "it has no labels.npy"),
        ({"matrix.npy": array_to_bytes(np.zeros((4, 3)), "<f8")}, {}, r"matrix.npy is an array \(4, 3\)"),
        ({"matrix.npy": array_to_bytes(np.zeros((4, 2)), "<f4")}, {}, "of float32"),
        ({"matrix.npy": array_to_bytes(np.full((4, 2), np.inf), "<f8")}, {}, "infinite"),
        ({"matrix.npy": array_to_bytes(np.array([[0, 7.0]] * 4), "<f8")}, {}, "has only 2 states"),
        ({"matrix.npy": array_to_bytes(np.array([[0, 0.5]] * 4), "<f8")}, {}, "must be codes"),
        ({"matrix.npy": array_to_bytes(np.array([[1e200, 0]] * 4), "<f8")}, {}, "standard deviations from the mean"),
        ({"matrix.npy": huge_array((10**15, 2))}, {}, "matrix.npy is not a valid array"),
        ({"matrix.npy": huge_array((4, 2))}, {}, "matrix.npy is not a valid array"),
        ({"matrix.npy": b"\x93NUMPY\x02" + huge_array((4, 2))[7:]}, {}, "matrix.npy is not a valid array"),
        ({"matrix.npy": b"\x93NUMPY\x01\x00\x60\x00" + b"(" * 100}, {}, "matrix.npy is not a valid array"),
        ({"matrix.npy": b"{'descr': '|O'}"}, {}, "matrix.npy is not a valid array"),
        ({"matrix.npy": bytes(10**6)}, {}, "matrix.npy has 1000000 bytes"),
        ({"heights.npy": array_to_bytes(HEIGHTS * np.nan, "<f8")}, {}, "heights must be finite"),
        ({"heights.npy": array_to_bytes(HEIGHTS + np.inf, "<f8")}, {}, "heights must be finite"),
        ({"heights.npy": array_to_bytes(HEIGHTS[:, ::-1], "<f8")}, {}, "must not decrease"),
        ({"heights.npy": array_to_bytes(-HEIGHTS, "<f8")}, {}, "less than the leaves"),
        ({"children.npy": array_to_bytes(CHILDREN * 0, "<i4")}, {}, "is a child"),
        ({"children.npy": array_to_bytes(CHILDREN + 9, "<i4")}, {}, "only nodes 0 to"),
        ({"children.npy": array_to_bytes(CHILDREN - 5, "<i4")}, {}, "only nodes 0 to"),
        ({"labels.npy": array_to_bytes(np.array([0, 2, 2, 0]), "<i4")}, {}, "does not number clusters"),
        ({"labels.npy": array_to_bytes(np.array([-2, 0, 0, 0]), "<i4")}, {}, "does not number clusters"),
        ({"labels.npy": array_to_bytes(np.array([0, 1, 2, 3]), "<i4")}, {}, "n_clusters is not the number"),
        ({}, {"n_distinct_trees": 10**18}, "children.npy is an array"),
        ({}, {"n_distinct_trees": 2.0}, "n_distinct_trees is 2.0"),
        ({}, {"n_distinct_trees": True}, "n_distinct_trees is True"),
        ({}, {"n_distinct_trees": 0}, "at least 1"),
        ({}, {"n_sampled_trees": 3}, "it has no which.npy"),
        ({}, {"log_evidence": 1.0}, "log_evidence"),
        ({}, {"row_names": []}, "matrix.npy is an array"),
        ({}, {"row_names": ["a", "b", "c"]}, "matrix.npy is an array"),
        ({}, {"row_names": ["a", "b", "c", "c"]}, "'c' occurs more than once"),
        ({}, {"row_names": ["a", "b", "c", 4]}, "row_names is 4"),
        ({}, {"columns": []}, "columns must"),
        ({}, {"columns": {}}, "columns is {}"),
        ({}, {"of": of_column(0, name="c")}, "distinct names"),
        ({}, {"of": of_column(0, kind="complex")}, "neither real nor categorical"),
        ({}, {"of": of_column(0, scale=0)}, "scale of column 'a' is 0"),
        ({}, {"of": of_column(0, center="nan")}, "center of column 'a' is 'nan'"),
        ({}, {"of": of_column(0, center=10**400)}, "center of column 'a' is 1000"),
        ({}, {"of": of_column(0, used=1)}, "'used' of column 'a' is 1"),
        ({}, {"of": of_column(0, used=False)}, "other columns"),
        ({}, {"of": of_column(1, used=False)}, "other columns"),
        ({}, {"of": of_column(1, categories=["u", "u"])}, "not distinct"),
        ({}, {"of": of_column(1, categories=["u"], types=["str"])}, "too few"),
        ({}, {"of": of_column(1, categories=["u", "v", "w"])}, "3 categories and 2 types"),
        ({}, {"of": of_column(1, categories=["u", "v", "w"], types=["str"] * 3)}, "other categories than the table"),
        ({}, {"of": of_column(1, types=["str", "int"])}, "'v' that is not of the type 'int'"),
        ({}, {"of": of_column(1, types=["str", []])}, "not of the type"),
        ({}, {"of": lambda facts: facts["columns"][0].pop("center")}, "column 'a' has no 'center'"),
        ({}, {"process": None}, "the process is None"),
        ({}, {"process": {"kind": "brownian", "variance": 1.0, "noise": 0.0}}, "other columns"),
        ({}, {"process": {"kind": "magic"}}, "kind 'magic'"),
        ({}, {"process": {"kind": "mixed", "parts": []}}, "at least one pair"),
        ({}, {"of": of_process(variance=-1.0)}, "variances must be positive"),
        ({}, {"of": of_process(variance=[1.0, 2.0])}, "mean has|another number of columns"),
        ({}, {"of": of_process(variance=[[[1.0]]])}, "not a number"),
        ({}, {"of": of_process(mean=[[0.0]])}, "mean must be one finite number"),
        ({}, {"of": of_process(rate="inf")}, "rate .*is 'inf'"),
        ({}, {"of": of_process(rate=[1.0])}, "rate is"),
        ({}, {"of": of_process(noise=-1.0)}, "noise is -1.0"),
        ({}, {"of": of_process(kind="mixed", parts=[])}, "parts itself"),
        ({}, {"of": lambda facts: facts["process"]["parts"][0].update(columns=[1])}, "once each"),
        ({}, {"of": lambda facts: facts["process"]["parts"][1].update(columns=["b"])}, "'b', not a whole number"),
        ({}, {"of": swap_columns}, "other columns"),
        (
            {},
            {"of": lambda facts: facts["process"]["parts"][1]["process"].update(equilibrium=[[0.5, 0.6]])},
            "must add up to 1",
        ),
        ({}, {"n_features_in": 3}, "not the number of its columns"),
        ({}, {"feature_names_in": ["a", "b"]}, "not the names of its columns"),
        ({}, {"clusters_chosen_by": "me"}, "clusters_chosen_by is 'me'"),
        ({}, {"clusters_chosen_by": []}, r"clusters_chosen_by is \[\]"),
        ({}, {"n_clusters": None}, "it has no labels"),
        ({}, {"n_clusters": "two"}, "not the number of its clusters"),
        ({}, {"remarks": "all well"}, "remarks is 'all well'"),
        ({}, {"constants": [0.0]}, "constants"),
        ({}, {"indicator_features": [5]}, "indicator_features"),
        ({}, {"estimator": "RandomForest"}, "'RandomForest', which is not known"),
        ({}, {"estimator": "CoalescentImputer"}, "a later version of coaltree"),
        ({}, {"of": of_parameters(depth=3), "coaltree_version": "7.0"}, r"later version of coaltree \(7.0, and .*: update"),
        ({}, {"coaltree_version": 7}, "coaltree_version is 7"),
        ({}, {"of": of_parameters(n_clusters=9)}, "n_clusters is 9"),
        ({}, {"of": of_parameters(n_jobs=0)}, "n_jobs is 0"),
        ({}, {"of": of_parameters(n_jobs="all")}, "n_jobs is 'all'"),
        ({}, {"of": of_parameters(summary={})}, "summary has no 'number'"),
        ({}, {"of": of_parameters(categorical_features=[[0]])}, "a list of lists"),
        ({}, {"of": of_parameters(draw_parameters=-1)}, "draw_parameters is -1"),
        ({}, {"parameters": []}, r"parameters is \[\]"),
        ({}, {"id_column": 3}, "id_column is 3"),
        ({}, {"n_runs": 2}, "n_runs"),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("error")
def test_inconsistent_files_are_rejected(small, changes, facts, message):
    data = repack(small, changes, **facts)
    with pytest.raises(InputError, match=message) as caught:
        load(data)
    assert "m.coaltree" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "facts", "message"),
    [
        ({"which.npy": array_to_bytes(np.zeros(30), "<i4")}, {}, "which.npy"),
        ({"which.npy": array_to_bytes(np.arange(30) - 1, "<i4")}, {}, "which.npy"),
        ({"weights.npy": array_to_bytes(np.full(30, -1.0), "<f8")}, {}, "weights are finite numbers of at least 0"),
        ({"weights.npy": array_to_bytes(np.zeros(30), "<f8")}, {}, "All weights are 0"),
        ({"log_joints.npy": array_to_bytes(np.full(30, np.nan), "<f8")}, {}, "log_joints holds NaN"),
        ({"log_ratios.npy": array_to_bytes(np.zeros((30, 3)), "<f8")}, {}, "log_ratios.npy is an array"),
        ({}, {"n_sampled_trees": None}, "30 trees|trees but no sample"),
        ({}, {"log_evidence": None}, "log_evidence"),
        ({}, {"log_evidence": "much"}, "log_evidence is 'much'"),
        ({}, {"n_runs": 3}, "run_log_evidences.npy is an array"),
        ({}, {"n_runs": 0}, "n_runs is 0"),
        ({"run_ess.npy": None}, {}, "it has no run_ess.npy"),
        ({"run_ess.npy": array_to_bytes(np.full((2, N - 1), np.nan), "<f8")}, {}, "run_ess.npy holds NaN"),
        ({"run_log_evidences.npy": array_to_bytes(np.array([np.nan, 1]), "<f8")}, {}, "run_log_evidences.npy holds NaN"),
        ({"runs.npy": array_to_bytes(np.full(30, 2), "<i4")}, {}, "runs.npy"),
        ({"runs.npy": array_to_bytes(np.full(30, -1), "<i4")}, {}, "runs.npy"),
        ({"resampled.npy": array_to_bytes(np.zeros((2, 3)), "|b1")}, {}, "resampled.npy is an array"),
    ],
)  # fmt: skip
def test_inconsistent_samples_are_rejected(sampled, changes, facts, message):
    with pytest.raises(InputError, match=message):
        load(repack(model_bytes(sampled), changes, **facts))


def test_harmless_changes_are_accepted(small, sampled):
    """Without a harmful change the same steps lead to a valid model, so the tests above test the change."""
    assert model_bytes(load(repack(small))) == small
    assert load(repack(small, of=lambda facts: facts["parameters"].pop("rule"))).rule == "rate1"
    assert load(repack(model_bytes(sampled), log_evidence="inf")).log_evidence_ == np.inf


def test_false_sizes_in_zip_directory_are_rejected(small):
    """The sizes in the directory of the zip file are made huge, and nothing is allocated for them."""
    with zipfile.ZipFile(io.BytesIO(small)) as archive:
        directory = archive.start_dir
    for field, message in ((20, "compressed"), (24, "compressed"), (None, "more data than it has")):
        changed = bytearray(small)
        for place in (20, 24) if field is None else (field,):
            changed[directory + place : directory + place + 4] = (0xFFFFFFF0).to_bytes(4, "little")
        with pytest.raises(InputError, match=message):
            load(with_digest(bytes(changed)))


def test_duplicate_members_are_rejected(small):
    with zipfile.ZipFile(io.BytesIO(small)) as archive:
        members = [(name, archive.read(name)) for name in archive.namelist()]
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, data in members:
            archive.writestr(name, data)
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr(*members[0])
        archive.comment = b"coaltree sha256:" + b"0" * 64
    with pytest.raises(InputError, match="same name"):
        load(with_digest(packed.getvalue()))


def test_sample_without_log_ratios_cannot_be_saved(greedy):
    record = replace(model_record(greedy), trees=ct.TreeSample([greedy.tree_]), log_evidence=0.0)
    with pytest.raises(InputError, match="log_joints"):
        record.to_bytes()


@pytest.mark.parametrize("path", [None, 3, b"m.coaltree", ["m"], "a\0b"])
def test_invalid_file_names_are_rejected(greedy, path):
    for use in (ct.load_model, greedy.save):
        with refused("path file example model.coaltree"):
            use(path)


def test_truncated_file_is_reported(greedy, tmp_path):
    (tmp_path / "cut").write_bytes(model_bytes(greedy)[:-50])
    with refused("model coaltree damaged end"):
        ct.load_model(tmp_path / "cut")


def test_time_columns_round_trip():
    frame = pd.DataFrame({"day": pd.to_datetime(["2020-01-31", None, "2021-05-01"]), "x": [1.0, 2.0, 4.0]})
    encoding = fit_encoding(columns.read_columns(frame))
    written = json.loads(json.dumps(encoding_to_json(encoding)))
    assert encoding.times == encoding_from_json(written).times == ("day",)
    written[0]["time"] = "yes"
    with pytest.raises(InputError, match="'time' of column 'day'"):
        encoding_from_json(written)
