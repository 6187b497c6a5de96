"""CoalescentClustering with a sample of trees from sequential Monte Carlo."""

import json

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from typer.testing import CliRunner

import coaltree as ct
from coaltree.cli import app
from coaltree.errors import InputError
from coaltree.tree.cut import cut_by_agreement
from named import refused

pytestmark = [
    pytest.mark.usefixtures("short_chains"),
    pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning"),
]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    groups = np.repeat([0.0, 6.0, 12.0], 5)
    frame = pd.DataFrame({"a": groups + rng.normal(size=15), "b": -groups + rng.normal(size=15)})
    frame.loc[3, "a"] = np.nan
    frame.index = [f"row {i}" for i in range(15)]
    return frame


@pytest.fixture(scope="module")
def fitted(table):
    settings = {"inference": "smc", "n_particles": 60, "n_runs": 2, "n_clusters": 3, "noise": 0.1}
    return ct.CoalescentClustering(**settings, random_state=0).fit(table)


def test_smc_labels_are_consensus_of_trees(fitted):
    assert fitted.labels_.tolist() == [0] * 5 + [1] * 5 + [2] * 5
    assert fitted.n_clusters_ == 3


def test_smc_tree_summarises_sample(fitted, table):
    sample = fitted.sample_
    assert len(sample) == 120
    assert fitted.tree_ == sample.ccd0()
    assert fitted.tree_.leaf_names == tuple(table.index)
    assert fitted.log_evidence_ == sample.log_evidence
    clades = sample.clade_probabilities()
    for k, share in enumerate(fitted.tree_.support):
        names = frozenset(fitted.tree_.leaf_names[leaf] for leaf in fitted.tree_.leaves_below(15 + k))
        assert clades[names] == pytest.approx(share)
    X = np.asarray((table - table.mean()) / table.std(ddof=0))
    assert fitted.log_joint_ == pytest.approx(ct.log_joint(fitted.tree_, X, fitted.process_))
    assert len(fitted.log_ratios_) == len(fitted.distances_) == 14


def test_smc_fits_are_reproducible(fitted, table):
    again = clone(fitted).set_params(n_jobs=2).fit(table)
    assert again.tree_ == fitted.tree_
    assert again.log_evidence_ == fitted.log_evidence_
    assert np.array_equal(again.labels_, fitted.labels_)


def test_smc_consensus_cut_parameters(table):
    settings = {"inference": "smc", "n_particles": 40, "summary": "consensus", "noise": 0.1}
    model = ct.CoalescentClustering(**settings, random_state=0)
    assert model.fit(table).tree_ == model.sample_.consensus()
    assert model.n_clusters_ >= 1
    tall = clone(model).set_params(height_threshold=100.0).fit(table)
    assert tall.n_clusters_ == 1
    low = clone(model).set_params(height_threshold=0.0).fit(table)
    assert low.n_clusters_ == 15


def test_smc_cut_equals_refit(table):
    settings = {"inference": "smc", "n_particles": 30, "n_runs": 2, "noise": 0.1}
    fitted = ct.CoalescentClustering(**settings, random_state=0).fit(table)
    for parameters in ({}, {"n_clusters": 5}, {"height_threshold": 0.5}):
        again = clone(fitted).set_params(**parameters).fit(table)
        assert fitted.cut(**parameters).tolist() == again.labels_.tolist()


def test_greedy_refit_removes_sample(table):
    model = ct.CoalescentClustering(inference="smc", n_particles=5, random_state=0).fit(table)
    model.set_params(inference="greedy").fit(table)
    assert not hasattr(model, "sample_")
    assert not hasattr(model, "log_evidence_")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"inference": "exact"}, "inference exact"),
        ({"proposal": "post"}, "proposal post"),
        ({"summary": "mean"}, "summary mean"),
        ({"inference": "smc", "n_particles": 0}, "n_particles 0"),
        ({"inference": "smc", "n_runs": 0}, "n_runs 0"),
        ({"random_state": "x"}, "random_state x"),
        ({"standardize": "no"}, "standardize 'no'"),
        ({"n_clusters": "abc"}, "n_clusters abc"),
        ({"n_clusters": float("nan")}, "n_clusters nan"),
        ({"n_clusters": float("inf")}, "n_clusters inf"),
        ({"n_clusters": [2]}, "n_clusters [2]"),
        ({"height_threshold": "a"}, "height_threshold 'a'"),
        ({"height_threshold": [1]}, "height_threshold [1]"),
    ],
)
def test_invalid_smc_parameters_are_rejected(table, parameters, message):
    with refused(message):
        ct.CoalescentClustering(**parameters).fit(table)


def test_cut_by_agreement_with_min_size():
    together = np.array([[1.0, 0.9, 0.2], [0.9, 1.0, 0.1], [0.2, 0.1, 1.0]])
    assert cut_by_agreement(together).tolist() == [0, 0, 1]
    assert cut_by_agreement(together, 1).tolist() == [0, 0, 0]
    assert cut_by_agreement(together, 3).tolist() == [0, 1, 2]
    assert cut_by_agreement([[1.0]]).tolist() == [0]
    pairs = np.full((5, 5), 0.2) + 0.8 * np.eye(5)
    pairs[0, 1] = pairs[1, 0] = pairs[2, 3] = pairs[3, 2] = 0.9
    pairs[4, :4] = pairs[:4, 4] = [0.0, 0.0, 0.1, 0.1]
    assert cut_by_agreement(pairs).tolist() == [0, 0, 1, 1, 2]
    assert cut_by_agreement(pairs, min_size=2).tolist() == [0, 0, 1, 1, 1]
    assert cut_by_agreement(pairs, min_size=2, assign_outliers=False).tolist() == [0, 0, 1, 1, -1]
    assert cut_by_agreement(pairs, 2, min_size=2).tolist() == [0, 0, 1, 1, 1]


# -- the command line ----------------------------------------------------------------------------------------------


def test_fit_command_writes_smc_sample(table, tmp_path):
    table.to_csv(tmp_path / "t.csv", index_label="name")
    quick = ["--noise", "0.1"]
    arguments = ["fit", str(tmp_path / "t.csv"), *quick, "-o", str(tmp_path / "out"), "--inference", "smc"]
    done = CliRunner().invoke(app, [*arguments, "--particles", "40", "--runs", "2", "--n-clusters", "3"])
    assert done.exit_code == 0, done.output
    out = tmp_path / "out"
    files = {"tree.nwk", "tree.nex", "sample.trees", "clusters.csv", "dendrogram.png", "summary.json", "model.coaltree"}
    assert {path.name for path in out.iterdir()} == files
    facts = json.loads((out / "summary.json").read_text())
    assert facts["inference"] == "smc"
    assert facts["n_trees"] == 80
    assert facts["log_evidence_se"] > 0
    assert len(facts["ess"]) == 14
    assert facts["settings"]["n_runs"] == 2
    sample = ct.TreeSample.from_nexus((out / "sample.trees").read_text())
    assert len(sample) == 80
    assert sample.weights.sum() == pytest.approx(1)
    assert "posterior=" in (out / "tree.nex").read_text()
    assert "log evidence" in done.output
    again = CliRunner().invoke(
        app, [*arguments[:-3], str(tmp_path / "two"), *arguments[-2:], "--particles", "40", "--runs", "2"]
    )
    assert again.exit_code == 0
    assert (tmp_path / "two" / "sample.trees").read_bytes() == (out / "sample.trees").read_bytes()
    greedy = CliRunner().invoke(app, arguments[:-2])
    assert greedy.exit_code == 0
    assert {path.name for path in out.iterdir()} == files - {"tree.nex", "sample.trees"}


@pytest.fixture
def _no_figures_left():
    yield
    plt.close("all")


@pytest.mark.usefixtures("_no_figures_left")
def test_dendrogram_shows_support(fitted):
    axes = ct.plot_dendrogram(fitted.tree_)
    written = [text.get_text() for text in axes.texts]
    assert written == [f"{100 * share:.0f}" for share in fitted.tree_.support[-2::-1]]  # the oldest first
    assert not ct.plot_dendrogram(fitted.tree_, support=False).texts
    plain = ct.Tree(fitted.tree_.children, fitted.tree_.heights)
    assert not ct.plot_dendrogram(plain).texts
    shares = np.linspace(0, 1, 14)
    shares[3] = np.nan
    assert len(ct.plot_dendrogram(plain, support=shares, orientation="top").texts) == 12
    with pytest.raises(InputError, match="needs a tree with support"):
        ct.plot_dendrogram(plain, support=True)
    with pytest.raises(InputError, match="there are 14 merges"):
        ct.plot_dendrogram(plain, support=[1.0])
    assert not ct.plot_dendrogram(fitted.tree_, support=None).texts
    with pytest.raises(InputError, match="support holds 67"):
        ct.plot_dendrogram(plain, support=[67.0] * 14)
    with pytest.raises(InputError, match="support is 'all'"):
        ct.plot_dendrogram(plain, support="all")


def test_summary_parameter_chooses_tree(tmp_path):
    X = np.random.default_rng(0).normal(size=(7, 2))
    model = ct.CoalescentClustering(inference="smc", n_particles=20, random_state=0)
    model.set_params(summary="mcc", summary_heights="median").fit(X)
    assert model.tree_ == model.sample_.mcc("median")
    assert model.tree_ != model.sample_.mcc()
    model.save(tmp_path / "m.coaltree")
    assert ct.load_model(tmp_path / "m.coaltree").tree_ == model.tree_
