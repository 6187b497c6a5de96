"""Estimators and the command line with Markov chains, and with a refined greedy tree."""

import importlib.util
import json

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp
from sklearn.base import clone
from typer.testing import CliRunner

import coaltree as ct
from coaltree import _progress
from coaltree.cli import app
from coaltree.errors import InputError
from coaltree.persist.result_files import trace_log
from coaltree.predict.predictor import Predictor
from named import refused

pytestmark = [
    pytest.mark.usefixtures("short_chains"),
    pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning"),
]

NAMES = ["<script>alert(1)</script>", "a,b", 'it\'s "q"', "🦊", "e", "f\ng", "h", "i"]
QUICK = {"noise": 0.1}
CHAINS = {"inference": "mcmc", "n_chains": 3, "n_samples": 300, "random_state": 0}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    groups = np.repeat([0.0, 6.0], 4)
    columns = {"a": groups + rng.normal(size=8), "b": -groups + rng.normal(size=8)}
    return pd.DataFrame(columns, index=NAMES)


@pytest.fixture(scope="module")
def fitted(table):
    return ct.CoalescentClustering(**CHAINS, **QUICK).fit(table)


@pytest.fixture(scope="module")
def greedy(table):
    return ct.CoalescentClustering(**QUICK).fit(table)


def standardized(table):
    return np.asarray((table - table.mean()) / table.std(ddof=0))


# -- a sample of trees -------------------------------------------------------------------------------


def test_mcmc_fit_uses_parameters_of_greedy_tree(fitted, greedy):
    assert fitted.parameters_ == greedy.parameters_
    settings = {"n_samples": 300, "n_chains": 3, "leaf_names": NAMES, "random_state": 0}
    own_sample = ct.mcmc(greedy._model.predictor.X, greedy.process_, **settings)
    assert type(fitted.sample_) is ct.MCMCResult
    assert fitted.sample_.trees == own_sample.trees
    assert fitted.sample_.verdict == own_sample.verdict
    assert not hasattr(fitted, "log_evidence_")
    assert not hasattr(fitted, "search_")


def test_draw_parameters_samples_parameters(table, tmp_path):
    """The model takes their means."""
    joint = ct.CoalescentClustering(**CHAINS | {"n_samples": 40}, draw_parameters=True).fit(table)
    sample = joint.sample_
    assert list(sample.parameters) == ["rate", "mean[0]", "mean[1]", "variance[0]", "variance[1]", "noise"]
    samples = {name: trace[:, sample.warmup :] for name, trace in sample.parameters.items()}
    assert all(trace.std() > 0 for trace in samples.values())
    assert joint.process_.rate == pytest.approx(samples["rate"].mean())
    assert joint.parameters_["a"]["rate"] == pytest.approx(samples["rate"].mean())
    processes = sample.processes()
    assert [process.noise for process in processes] == samples["noise"].ravel().tolist()
    for tree, process, log_joint in list(zip(sample.trees, processes, sample.log_joints, strict=True))[::30]:
        assert ct.log_joint(tree, joint._model.predictor.X, process) == pytest.approx(log_joint)
    diagnostics = sample.parameter_diagnostics()
    assert list(diagnostics) == list(sample.parameters)
    assert all(0.9 < r_hat < 2 and effective > 1 for r_hat, effective in diagnostics.values())
    header, first = trace_log(sample, 1).splitlines()[:2]
    row = dict(zip(header.split("\t"), first.split("\t"), strict=True))
    assert float(row["noise"]) == pytest.approx(samples["noise"][1, 0])
    if importlib.util.find_spec("xarray"):
        np.testing.assert_array_equal(sample.to_xarray()["rate"], samples["rate"].ravel())
    joint.save(tmp_path / "m.coaltree")
    again = ct.load_model(tmp_path / "m.coaltree").sample_
    for name, trace in sample.parameters.items():
        np.testing.assert_array_equal(again.parameters[name], trace)
    np.testing.assert_array_equal(again.traces["log_parameter_prior"], sample.traces["log_parameter_prior"])


def test_noise_parameter_is_held_fixed(table):
    joint = ct.CoalescentClustering(**CHAINS | {"n_samples": 20}, draw_parameters=True, noise=0.1).fit(table)
    assert np.ptp(joint.sample_.parameters["noise"]) == 0


def test_mcmc_tree_summarises_sample(fitted, table):
    assert fitted.tree_ == fitted.sample_.ccd0()
    assert fitted.tree_.leaf_names == tuple(NAMES)
    clades = fitted.sample_.clade_probabilities()
    for k, share in enumerate(fitted.tree_.support):
        names = frozenset(NAMES[leaf] for leaf in fitted.tree_.leaves_below(8 + k))
        assert clades[names] == pytest.approx(share)
    assert fitted.log_joint_ == pytest.approx(ct.log_joint(fitted.tree_, standardized(table), fitted.process_))
    assert fitted.labels_.tolist() == [0] * 4 + [1] * 4
    consensus = clone(fitted).set_params(summary="consensus").fit(table)
    assert consensus.tree_ == fitted.sample_.consensus()


def test_mcmc_fits_are_reproducible(fitted, table):
    again = clone(fitted).set_params(n_jobs=2).fit(table)
    assert again.sample_.trees == fitted.sample_.trees
    assert clone(fitted).set_params(random_state=1).fit(table).sample_.trees != fitted.sample_.trees


def test_predictions_average_over_thinned_sample(fitted, table, tmp_path, monkeypatch):
    """They are evenly from all chains, each with its own parameters; a model from a file does the same."""
    monkeypatch.setattr("coaltree.workflow.model.MAX_PREDICTION_TREES", 20)
    joint = ct.CoalescentClustering(**CHAINS | {"n_samples": 30}, draw_parameters=True).fit(table)
    sample, draws = joint.sample_, joint._model.predictor.ensemble.draws
    places = [sample.trees.index(draw.tree) for draw in draws]
    assert len(sample) > 20 == len(draws)
    assert (places[0], places[-1]) == (0, len(sample) - 1)
    assert max(np.diff(places)) - min(np.diff(places)) <= 1
    rates = sample.parameters["rate"][:, sample.warmup :].ravel()
    assert [draw.process.rate for draw in draws] == [rates[k] for k in places]
    rows = np.asarray(table)
    expected = [
        Predictor.from_trees([d.tree], np.ones(1), d.X, d.process).log_density(standardized(table)) for d in draws
    ]
    expected = logsumexp(expected, axis=0) - np.log(20) - np.log(rows.std(axis=0)).sum()
    np.testing.assert_allclose(joint.score_samples(table), expected)
    joint.save(tmp_path / "m")
    np.testing.assert_array_equal(ct.load_model(tmp_path / "m").score_samples(table), joint.score_samples(table))
    # trees with fixed parameters are not asked: the draws are others
    assert len(fitted._model.predictor.trees) < len(fitted.sample_)
    assert fitted._model.predictor.trees[0] not in fitted.sample_.trees


def test_convergence_verdict_is_a_remark(table):
    model = ct.CoalescentClustering(inference="mcmc", n_chains=2, n_samples=12, random_state=0, **QUICK)
    with pytest.warns(ct.errors.InputWarning, match="The chains have not converged: the trees are worth only"):
        model.fit(table)
    assert model.remarks_ == [model.sample_.verdict]
    assert "not converged" in repr(model.sample_)
    assert ", chains converged no, " in model._repr_html_()


@pytest.mark.parametrize("inference", ["greedy", "smc"])
def test_refit_removes_chains(table, inference):
    model = ct.CoalescentClustering(inference="mcmc", n_samples=20, random_state=0).fit(table)
    model.set_params(inference=inference, n_particles=5).fit(table)
    assert hasattr(model, "sample_") == hasattr(model, "log_evidence_") == (inference == "smc")
    assert model.set_params(inference="mcmc").fit(table).sample_.n_chains == 4
    assert not hasattr(model, "log_evidence_")


@pytest.mark.parametrize("cells", [[[1.0]], [[np.nan]]])
def test_mcmc_fit_of_one_row(cells):
    model = ct.CoalescentClustering(inference="mcmc", random_state=0).fit(cells)
    assert model.tree_.n_leaves == 1
    assert not hasattr(model, "sample_")
    assert model.labels_.tolist() == [0]


@pytest.mark.parametrize("cells", [np.zeros((2, 1)), np.full((3, 2), np.nan), np.ones((4, 2)), [[0.0], [1.0]]])
def test_mcmc_fit_of_uninformative_tables(cells):
    model = ct.CoalescentClustering(inference="mcmc", n_chains=2, n_samples=40, random_state=0, **QUICK).fit(cells)
    assert model.sample_.n_leaves == len(cells) == len(model.labels_)


def test_verbose_shows_r_hat_and_effective_samples(table, capsys, monkeypatch):
    monkeypatch.setattr(_progress, "QUIET_SECONDS", 0.0)
    ct.CoalescentClustering(**CHAINS, **QUICK, verbose=1).fit(table)
    displayed = capsys.readouterr().err.split("\r[CoalescentClustering]")[1:]
    shares = [int(text.split()[0]) for text in displayed]
    assert shares == sorted(shares)
    assert shares[-1] == 100
    assert any("R-hat 1.0" in text and "effective samples" in text for text in displayed)
    assert not any("nan" in text for text in displayed)


def test_imputer_uses_mcmc_sample(table):
    holes = table.copy()
    holes.iloc[1, 0] = holes.iloc[6, 1] = np.nan
    imputer = ct.CoalescentImputer(**CHAINS, **QUICK, real_process="ornstein-uhlenbeck").fit(holes)
    cells = imputer.predictive(holes)
    assert type(imputer.sample_) is ct.MCMCResult
    assert abs(cells["a"].mean[1] - table.iloc[1, 0]) < 4 * cells["a"].sd[1]
    assert cells["a"].mean[1] < 3.0
    assert cells["b"].mean[6] < -3.0


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"inference": "gibbs"}, "inference gibbs greedy smc mcmc"),
        ({"n_chains": 0}, "n_chains 0 1"),
        ({"n_samples": 2.5}, "n_samples 2.5 1"),
        ({"n_samples": True}, "n_samples True 1"),
        ({"refine": "yes"}, "refine yes True False"),
        (
            {"refine": True, "inference": "mcmc"},
            "refine True inference mcmc tree greedy refined",
        ),
        ({"draw_parameters": "all"}, "draw_parameters 'all' True False"),
    ],
)
def test_invalid_mcmc_parameters_are_rejected(table, parameters, message):
    for kind in (ct.CoalescentClustering, ct.CoalescentImputer):
        with refused(message):
            kind(**parameters).fit(table)


# -- refinement --------------------------------------------------------------------------------------


@pytest.mark.parametrize("search", ["exact", "neighbors"])
def test_refine_parameter_refines_tree(search):
    X = np.random.default_rng(3).normal(size=(30, 2))
    before = ct.CoalescentClustering(search=search, **QUICK).fit(X)
    result = ct.greedy(before._model.matrix, before.process_, search=search)
    after = clone(before).set_params(refine=True).fit(X)
    encoded = (X - X.mean(axis=0)) / X.std(axis=0)
    assert after.log_joint_ > before.log_joint_ + 0.1
    assert after.log_joint_ == pytest.approx(ct.log_joint(after.tree_, encoded, before.process_))
    expected = ct.refine(result.tree, before._model.matrix, before.process_).tree
    # Subtrees, some of them tied, are visited in the order of the rows, which the estimator chooses.
    np.testing.assert_allclose(after.tree_.heights, expected.heights, atol=1e-3)


def test_refine_accepts_one_row():
    assert ct.CoalescentClustering(refine=True).fit([[1.0, 2.0]]).tree_.n_leaves == 1


# -- the command line --------------------------------------------------------------------------------

FILES = {"tree.nwk", "clusters.csv", "dendrogram.png", "summary.json", "model.coaltree"}
SAMPLE_FILES = {"tree.nex", "sample.trees", "trace_1.log", "trace_2.log", "trace_3.log"}


def fit(folder, *options):
    arguments = ["fit", str(folder / "t.csv"), "-o", str(folder / "out"), "--noise", "0.1"]
    return CliRunner().invoke(app, [*arguments, *options])


def test_fit_command_stops_at_time_limit(table, tmp_path):
    table.to_csv(tmp_path / "t.csv", index_label="name")
    sampling = ("--inference", "mcmc", "--chains", "2", "--samples")
    done = fit(tmp_path, *sampling, "auto", "--max-seconds", "0.001")
    assert done.exit_code == 0, done.output
    assert "stopped at the time limit of 0.001 seconds, after " in done.output.replace("\n", " ")
    failed = fit(tmp_path, *sampling, "some")
    assert failed.exit_code == 2
    assert "neither a whole number nor 'auto'" in " ".join(failed.output.split()).replace("│ ", "")


def test_fit_command_writes_mcmc_sample(table, fitted, tmp_path):
    dendropy = pytest.importorskip("dendropy")
    table.to_csv(tmp_path / "t.csv", index_label="name")
    sampling = ("--inference", "mcmc", "--samples", "300")
    done = fit(tmp_path, *sampling, "--chains", "3", "--seed", "0")
    assert done.exit_code == 0, done.output
    out = tmp_path / "out"
    assert {path.name for path in out.iterdir()} == FILES | SAMPLE_FILES
    sample = fitted.sample_
    assert sample.verdict in done.output
    assert f"{len(sample)} trees from 3 chains, each after a warm-up of {sample.warmup} samples" in done.output
    facts = json.loads((out / "summary.json").read_text())
    assert facts["verdict"] == sample.verdict
    assert facts["converged"] is sample.converged
    assert facts["n_trees"] == len(sample)
    diagnostics = sample.parameter_diagnostics()
    for name, traces, parameters in (
        ("r_hat", sample.r_hat, {name: value for name, (value, _) in diagnostics.items()}),
        ("effective_samples", sample.effective_samples, {name: size for name, (_, size) in diagnostics.items()}),
        ("acceptance", sample.acceptance, {}),
    ):
        assert facts[name] == pytest.approx(traces | parameters)
    assert facts["settings"]["n_chains"] == 3
    assert facts["settings"]["n_samples"] == 300
    assert "log_evidence" not in facts
    trees = dendropy.TreeList.get(path=out / "sample.trees", schema="nexus")
    assert [taxon.label for taxon in trees.taxon_namespace] == NAMES
    assert len(trees) == len(sample)
    assert trees[7].length() == pytest.approx(sample.traces["tree_length"][0, sample.warmup + 7])
    assert "posterior=" in (out / "tree.nex").read_text()
    for chain in range(3):
        lines = (out / f"trace_{chain + 1}.log").read_text().splitlines()
        assert lines[0] == "state\tlog_joint\troot_height\ttree_length"
        states, *columns = np.loadtxt(lines[1:], unpack=True)
        assert states.tolist() == list(range(sample.warmup, 300))
        for name, column in zip(("log_joint", "root_height", "tree_length"), columns, strict=True):
            assert column.tolist() == sample.traces[name][chain, sample.warmup :].tolist()
    model = ct.load_model(out / "model.coaltree")
    assert model.sample_.trees == sample.trees

    (out / "trace_mine.log").write_text("kept")
    fewer = fit(tmp_path, *sampling[:2], "--samples", "20", "--chains", "1")
    assert fewer.exit_code == 0
    assert "from 1 chain, " in fewer.output
    assert {path.name for path in out.iterdir()} == FILES | SAMPLE_FILES - {"trace_2.log", "trace_3.log"} | {
        "trace_mine.log"
    }
    assert fit(tmp_path).exit_code == 0
    assert {path.name for path in out.iterdir()} == FILES | {"trace_mine.log"}


def test_sample_cuts_follow_resolution_and_min_cluster_size():
    rng = np.random.default_rng(0)
    X = np.repeat([-6.0, 0.0, 6.0], 10)[:, None] + rng.normal(size=(30, 3))
    settings = {"inference": "mcmc", "n_samples": 60, "n_chains": 1, "random_state": 0}
    model = ct.CoalescentClustering(**settings).fit(X)
    counts = [len(set(model.cut(resolution=resolution, min_cluster_size=1))) for resolution in (0.0, 0.3, 0.999)]
    assert counts[0] == 1 < counts[1] <= counts[2] == 30
    height = -np.log(0.3)  # of a resolution of 0.3, eq. (4.1)
    assert model.cut(resolution=0.3).tolist() == model.cut(height_threshold=height).tolist()
    sizes = np.bincount(model.cut(resolution=0.6, min_cluster_size=4))
    assert sizes.min() >= 4
    draws = ct.CoalescentClustering(**settings, draw_parameters=True).fit(X)
    with pytest.raises(InputError, match=r"resolution.*0\.3.*draw_parameters"):
        draws.cut(resolution=0.3)
    with pytest.raises(InputError, match="draw_parameters"):
        ct.CoalescentClustering(**settings, draw_parameters=True, resolution=0.3).fit(X)


def test_fit_command_mcmc_of_one_row(tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n1,2\n")
    done = fit(tmp_path, "--inference", "mcmc")
    assert done.exit_code == 0, done.output
    assert {path.name for path in (tmp_path / "out").iterdir()} == FILES


def test_fit_command_refines(table, greedy, tmp_path):
    table.to_csv(tmp_path / "t.csv", index_label="name")
    assert fit(tmp_path, "--refine").exit_code == 0
    facts = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert facts["log_joint"] == pytest.approx(clone(greedy).set_params(refine=True).fit(table).log_joint_)
    assert facts["settings"]["refine"] is True


def test_impute_command_uses_mcmc(table, tmp_path):
    holes = table.copy()
    holes.iloc[1, 0] = np.nan
    holes.to_csv(tmp_path / "t.csv", index_label="name")
    options = ["--inference", "mcmc", "--chains", "2", "--samples", "50", "--seed", "3"]
    kind = ["--real-process", "ornstein-uhlenbeck"]
    done = CliRunner().invoke(
        app, ["impute", str(tmp_path / "t.csv"), "-o", str(tmp_path / "o.csv"), *options, *kind, "--quiet"]
    )
    assert done.exit_code == 0, done.output
    parameters = {"inference": "mcmc", "n_chains": 2, "n_samples": 50, "random_state": 3}
    imputer = ct.CoalescentImputer(**parameters, real_process="ornstein-uhlenbeck").fit(holes)
    filled = pd.read_csv(tmp_path / "o.csv", index_col="name")
    assert filled.iloc[1, 0] == pytest.approx(imputer.transform(holes).iloc[1, 0], rel=1e-3)


def test_unreachable_min_cluster_size_warns():
    rng = np.random.default_rng(0)
    X = np.repeat([-6.0, 0.0, 6.0], 10)[:, None] + rng.normal(size=(30, 3))
    settings = {"inference": "mcmc", "n_samples": 60, "n_chains": 1, "random_state": 0}
    with pytest.warns(ct.errors.InputWarning, match=r"fewer than 25 rows \(min_cluster_size=25\)"):
        model = ct.CoalescentClustering(**settings, min_cluster_size=25).fit(X)
    assert np.bincount(model.labels_).max() < 25
