"""Markov chains in model files."""

import io
import json
import math
import zipfile

import numpy as np
import pytest

import coaltree as ct
from coaltree.estimators.load import to_estimator
from coaltree.persist.archive import array_to_bytes, pack, to_json
from coaltree.persist.model import ModelRecord
from model_files import model_bytes
from named import refused

pytestmark = [
    pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning"),
    pytest.mark.usefixtures("short_chains"),
]

TRACES = ("log_joint", "root_height", "tree_length")


@pytest.fixture(scope="module")
def fitted():
    X = np.repeat([0.0, 6.0], 4)[:, None] + np.random.default_rng(0).normal(size=(8, 2))
    chains = {"inference": "mcmc", "n_chains": 3, "n_samples": 100}
    return ct.CoalescentClustering(**chains, noise=0.1, random_state=1).fit(X)


def change_members(model, change, **members):
    """The file of a model, with model.json changed and some members in the place of others."""
    with zipfile.ZipFile(io.BytesIO(model_bytes(model))) as archive:
        values = {name: archive.read(name) for name in archive.namelist()}
    facts = json.loads(values["model.json"])
    change(facts)
    return pack(values | {"model.json": to_json(facts)} | {f"{name}.npy": data for name, data in members.items()})


def load(data):
    return to_estimator(ModelRecord.from_bytes(data, "m.coaltree"), "m.coaltree")


def test_chains_round_trip(fitted, tmp_path):
    fitted.save(tmp_path / "m.coaltree")
    again = ct.load_model(tmp_path / "m.coaltree")
    before, after = fitted.sample_, again.sample_
    assert type(after) is ct.MCMCResult
    assert after.trees == before.trees
    for name in TRACES:
        np.testing.assert_array_equal(after.traces[name], before.traces[name])
    for name in ("chains", "weights", "log_joints", "log_ratios"):
        np.testing.assert_array_equal(getattr(after, name), getattr(before, name))
    diagnostics = ("acceptance", "r_hat", "effective_samples", "effective_topologies", "split_deviation")
    for name in ("warmup", *diagnostics, "verdict", "converged", "remarks", "n_chains"):
        assert getattr(after, name) == getattr(before, name)
    assert after.process is again.process_
    assert not hasattr(again, "log_evidence_")
    assert again.get_params() == fitted.get_params()
    assert model_bytes(again) == model_bytes(fitted)
    new = np.array([[0.5, 0.1], [np.nan, 5.0]])
    np.testing.assert_array_equal(again.score_samples(new), fitted.score_samples(new))
    np.testing.assert_array_equal(again.cut(n_clusters=3), fitted.cut(n_clusters=3))


def test_untried_move_has_nan_acceptance(fitted):
    def untried(facts):
        facts["chains"]["acceptance"]["scale"] = "nan"

    assert math.isnan(load(change_members(fitted, untried)).sample_.acceptance["scale"])


def with_chains(**facts):
    return lambda record: record["chains"].update(facts)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (with_chains(n_chains=0), "n_chains 0 1"),
        (with_chains(n_chains=7), "270 trees 7 chains"),
        (with_chains(warmup=-1), "warmup -1 0"),
        (with_chains(warmup=11), "trace_log_joint.npy array 3 100 float64 101"),
        (with_chains(warmup=10**12), "trace_log_joint.npy array 3 100 float64"),
        (with_chains(acceptance=[0.5]), "acceptance [0.5] object"),
        (with_chains(acceptance={"leaf": "much"}), "acceptance much"),
        (lambda facts: facts["chains"].pop("warmup"), "chains warmup"),
        (lambda facts: facts.update(chains=[1]), "chains [1] object"),
        (
            lambda facts: facts.update(chains=None),
            "log_evidence sample",
        ),
        (
            lambda facts: facts.update(log_evidence=-3.0),
            "log_evidence sample",
        ),
    ],
)
def test_invalid_chain_files_are_rejected(fitted, change, reason):
    assert fitted.sample_.warmup == 10
    with refused(f"m.coaltree {reason}"):
        load(change_members(fitted, change))


def test_traces_that_contradict_trees_are_rejected(fitted):
    trace = np.array(fitted.sample_.traces["log_joint"])
    trace[2, -1] += 1.0
    with refused("trace_log_joint.npy end log joints trees"):
        load(change_members(fitted, lambda facts: None, trace_log_joint=array_to_bytes(trace, "<f8")))
    trace[0, 0] = math.inf
    with refused("trace_root_height.npy NaN infinite"):
        load(change_members(fitted, lambda facts: None, trace_root_height=array_to_bytes(trace, "<f8")))


def test_chains_without_sample_are_rejected(fitted):
    greedy = ct.CoalescentClustering().fit([[0.0], [1.0]])
    chains = {"n_chains": 1, "warmup": 0, "acceptance": {}}
    with refused("chains sample trees"):
        load(change_members(greedy, lambda facts: facts.update(chains=chains)))
