"""Sequential Monte Carlo against enumeration and quadrature, the prior, itself and simulations from the model.

Seeds are fixed, so the tests do not flicker; the levels say how unlikely it was that a right program should fail them.
"""

import math
import warnings
from typing import get_args

import joblib
import numpy as np
import pytest
from scipy import stats

import coaltree as ct
import exact_posterior
import reference
from coaltree._parameters import Proposal
from coaltree.errors import InputWarning
from coaltree.process.base import merge_log_likelihoods
from named import refused

PROPOSALS = get_args(Proposal)

pytestmark = pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning")

RATES = [0.7, 1.6]
SHARES = [[0.6, 0.4], [0.2, 0.5, 0.3]]


def with_holes(X, holes):
    X = np.array(X, dtype=float)
    for cell in holes:
        X[cell] = np.nan
    return X


def table(kind, n, missing):
    rng = np.random.default_rng(n)
    real = rng.normal(size=(n, 2)) + 0.8 * np.arange(n)[:, None]
    codes = np.column_stack([rng.integers(0, 2, n), rng.integers(0, 3, n)]).astype(float)
    brownian = ct.Brownian([1.0, 2.5], noise=0.2 if n == 3 else 0.0)
    multinomial = ct.Multinomial(RATES, SHARES)
    if kind == "brownian":
        X, process, holes = real, brownian, [(0, 0), (n - 1, 1)]
    elif kind == "multinomial":
        X, process, holes = codes, multinomial, [(1, 0), (0, 1)]
    else:
        X, holes = np.hstack([real, codes]), [(0, 0), (1, 1), (1, 2), (2, 3)]
        process = ct.Mixed((brownian, [0, 1]), (multinomial, [2, 3]))
    return (with_holes(X, holes) if missing else X), process


CASES = [
    ("brownian", 3, False),
    ("brownian", 4, False),
    ("brownian", 4, True),
    ("multinomial", 4, True),
    ("mixed", 4, True),
]


@pytest.fixture(scope="module")
def exact():
    known = {}

    def integrals(kind, n, missing):
        if (kind, n, missing) not in known:
            known[kind, n, missing] = exact_posterior.integrals(*table(kind, n, missing))
        return known[kind, n, missing]

    return integrals


@pytest.mark.parametrize(("kind", "n", "missing"), CASES)
def test_enumeration_is_normalised(kind, n, missing):
    """The likelihoods of the quadrature equal those of whole trees by brute force."""
    X, process = table(kind, n, missing)
    rng = np.random.default_rng(0)
    for children in exact_posterior.histories(n):
        heights = np.cumsum(rng.exponential(size=(1, n - 1)), axis=1)
        tree = ct.Tree(children, np.concatenate([np.zeros(n), heights[0]]))
        expected = reference.log_likelihood(tree, X, process)
        assert exact_posterior.log_likelihoods(children, heights, X, process)[0] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("proposal", PROPOSALS)
@pytest.mark.parametrize(("kind", "n", "missing"), CASES)
def test_smc_evidence_and_posterior_are_exact(kind, n, missing, proposal, exact):
    """Estimates times the evidence are unbiased: means over 30 runs agree with quadrature.

    Each is held to 6 standard errors of the mean, a level of 2e-6 with 29 degrees of freedom; some 300 of them are looked at.
    """
    X, process = table(kind, n, missing)
    truth = exact(kind, n, missing)
    for what, (mean, error, value) in exact_posterior.sampled(X, process, proposal, truth).items():
        # quadrature is exact to 1e-3
        assert abs(mean - value) < 6 * error + 1e-3 * truth.evidence, what
        if what == "evidence":
            assert error < 0.05 * value, "the test would see nothing"


@pytest.fixture(scope="module")
def roots_of_the_prior():
    return np.array([ct.simulate_tree(4, random_state=seed).heights[-1] for seed in range(3000)])


@pytest.mark.parametrize("proposal", PROPOSALS)
@pytest.mark.parametrize("process", [ct.Brownian(), ct.Multinomial(1.0, [[0.5, 0.5]] * 2)], ids=["real", "categorical"])
def test_smc_without_data_samples_prior(proposal, process, roots_of_the_prior):
    """Levels: 1e-4 for each of the two tests of a case."""
    n, n_particles = 4, 3000
    sample = ct.smc(np.full((n, 2), np.nan), process, proposal, n_particles=n_particles, random_state=1)
    assert sample.log_evidence == pytest.approx(0.0, abs=1e-9)
    assert np.allclose(sample.weights, 1 / n_particles)
    assert not sample.resampled.any()
    roots = np.array([tree.heights[-1] for tree in sample.trees])
    assert abs(roots.mean() - 2 * (1 - 1 / n)) < 4 * roots.std() / math.sqrt(n_particles)
    assert stats.ks_2samp(roots, roots_of_the_prior).pvalue > 1e-4
    counts = {}
    for tree in sample.trees:
        key = tuple(map(tuple, np.sort(tree.children, axis=1).tolist()))
        counts[key] = counts.get(key, 0) + 1
    assert len(counts) == 18
    assert stats.chisquare(list(counts.values())).pvalue > 1e-4


def test_rows_without_common_columns_have_prior_posterior():
    X = np.where(np.eye(4) == 1, [1.0, -2.0, 3.0, 0.5], np.nan)
    sample = ct.smc(X, ct.Brownian(), n_particles=50, random_state=0)
    assert sample.log_evidence == pytest.approx(0.0, abs=1e-12)
    codes = np.where(np.eye(4) == 1, 1.0, np.nan)
    sample = ct.smc(codes, ct.Multinomial(1.0, [[0.75, 0.25]] * 4), "race", n_particles=50, random_state=0)
    assert sample.log_evidence == pytest.approx(4 * math.log(0.25), abs=1e-12)
    assert np.allclose(sample.weights, 1 / 50)


@pytest.mark.parametrize(("proposal", "kind"), [("post-post", "brownian"), ("race", "multinomial")])
def test_smc_simulation_based_calibration_is_uniform(proposal, kind):
    """Truth from the model has a uniform rank among draws from its posterior; chi-squared, level 1e-4 each."""
    process = ct.Brownian([1.0] * 4) if kind == "brownian" else ct.Multinomial(1.0, [[0.5, 0.5]] * 12)
    rng = np.random.default_rng(5)
    n_draws, ranks = 9, {"root height": [], "height of rows 0 and 1": []}
    for seed in range(100):
        tree = ct.simulate_tree(5, random_state=rng)
        X = process.simulate(tree, random_state=rng)
        sample = ct.smc(X, process, proposal, n_particles=100, random_state=seed)
        draws = rng.choice(len(sample.weights), size=n_draws, p=sample.weights)
        roots = np.array([sample.trees[draw].heights[-1] for draw in draws])
        pairs = sample.merge_heights(0, 1)[draws]
        ranks["root height"].append(int((roots < tree.heights[-1]).sum()))
        ranks["height of rows 0 and 1"].append(int((pairs < reference.common_heights(tree)[0, 1]).sum()))
    for what, values in ranks.items():
        counts = np.bincount(values, minlength=n_draws + 1)
        assert stats.chisquare(counts).pvalue > 1e-4, what


# -- regrafts ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "n", "proposal"),
    [
        ("brownian", 4, "post-post"),
        ("brownian", 4, "prior-prior"),
        ("mixed", 4, "post-post"),
    ],
)
def test_regrafts_keep_evidence_and_posterior_exact(kind, n, proposal, exact):
    """As above, with particles resampled after every merge and moved."""
    X, process = table(kind, n, kind == "mixed")
    truth = exact(kind, n, kind == "mixed")
    estimates = exact_posterior.sampled(X, process, proposal, truth, threshold=1.0, regrafts=5)
    for what, (mean, error, value) in estimates.items():
        assert abs(mean - value) < 6 * error + 1e-3 * truth.evidence, what


def test_regrafts_keep_recent_merges_distinct():
    process = ct.Brownian(1.0, 0.05)
    X = process.simulate(ct.simulate_tree(40, 3), 4, n_columns=3)
    records = []
    for regrafts in (0, 20):
        sample = ct.smc(X, process, n_particles=30, regrafts=regrafts, random_state=0)
        records.append(len({tree.heights[41] for tree in sample.trees}))
        tree = sample.trees[0]
        assert sample.log_joints[0] == pytest.approx(ct.log_joint(tree, X, process), rel=1e-9)
        merges = merge_log_likelihoods(sample.process, tree, X)
        np.testing.assert_allclose(sample.log_ratios[0], merges.log_ratios, atol=1e-8)
    assert records[1] > 2 * records[0]


# -- the result ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def animals():
    process = ct.Brownian()
    X = process.simulate(ct.simulate_tree(12, random_state=3), random_state=4, n_columns=3)
    return X, process


def same(a, b):
    return (
        a.trees == b.trees
        and np.array_equal(a.weights, b.weights)
        and a.log_evidence == b.log_evidence
        and np.array_equal(a.run_ess, b.run_ess)
    )


@pytest.mark.parametrize("proposal", PROPOSALS)
def test_smc_is_reproducible_for_any_threads(animals, proposal):
    X, process = animals
    one = ct.smc(X, process, proposal, n_particles=17, n_runs=2, random_state=0, n_jobs=1)
    for n_jobs in (2, 3, 5):
        assert same(one, ct.smc(X, process, proposal, n_particles=17, n_runs=2, random_state=0, n_jobs=n_jobs))
    assert not same(one, ct.smc(X, process, proposal, n_particles=17, n_runs=2, random_state=1))


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_smc_is_equal_for_any_joblib_backend(animals, backend):
    X, process = animals
    one = ct.smc(X, process, "prior-prior", n_particles=5, n_runs=2, random_state=0)
    with joblib.parallel_config(backend, n_jobs=2):
        other = ct.smc(X, process, "prior-prior", n_particles=5, n_runs=2, random_state=0, n_jobs=2, progress=print)
    assert same(one, other)


def test_smc_result_attributes_are_consistent(animals):
    X, process = animals
    sample = ct.smc(X, process, n_particles=40, n_runs=3, random_state=0, threshold=0.6)
    assert len(sample.trees) == len(sample.weights) == 120
    assert sample.weights.sum() == pytest.approx(1)
    assert sample.run_ess.shape == sample.resampled.shape == (3, 11)
    assert np.allclose(sample.ess, sample.run_ess.sum(axis=0))
    assert np.all((sample.run_ess >= 1) & (sample.run_ess <= 40 + 1e-9))
    assert np.array_equal(sample.resampled[:, :-1], sample.run_ess[:, :-1] < 0.6 * 40)
    assert not sample.resampled[:, -1].any()
    evidences = np.exp(sample.run_log_evidences - sample.log_evidence)
    assert evidences.mean() == pytest.approx(1)
    assert sample.log_evidence_se == pytest.approx(np.std(sample.run_log_evidences, ddof=1) / math.sqrt(3))
    by_run = sample.weights.reshape(3, 40).sum(axis=1)
    assert np.allclose(by_run, evidences / 3)
    joints = [ct.log_joint(tree, X, process) for tree in sample.trees]
    assert ct.log_joint(sample.best(), X, process) == pytest.approx(max(joints))
    assert "log evidence" in repr(sample)
    assert 1 <= sample.n_distinct <= 120


def test_evidence_is_independent_of_resampling_scheme(animals):
    """Means over 16 runs each, held to 6 standard errors of their difference."""
    X, process = animals
    ways = [(0.5, "systematic"), (0.0, "systematic"), (1.0, "multinomial"), (0.9, "stratified"), (0.9, "residual")]
    means = []
    for threshold, scheme in ways:
        logs = [
            ct.smc(X[:6], process, n_particles=250, random_state=s, threshold=threshold, resampling=scheme).log_evidence
            for s in range(16)
        ]
        ratios = np.exp(np.array(logs) - np.mean(logs))
        scale = math.exp(np.mean(logs) + 10)
        means.append((scale * ratios.mean(), scale * ratios.std(ddof=1) / 4))
    (first, error), *others = means
    for mean, other_error in others:
        assert abs(mean - first) < 6 * math.hypot(error, other_error)
        assert 6 * math.hypot(error, other_error) < 0.5 * first, "the test would see nothing"


def test_progress_reports_share_ess_and_evidence(animals):
    X, process = animals
    calls = []
    sample = ct.smc(X, process, n_particles=10, n_runs=2, random_state=0, progress=lambda *facts: calls.append(facts))
    shares = [facts[0] for facts in calls]
    assert len(calls) == 22
    assert shares == sorted(shares)
    assert shares[-1] == 1
    assert calls[-1][2] == pytest.approx(sample.run_log_evidences[-1])


def test_collapsed_sample_warns(animals):
    X, process = animals
    with pytest.warns(InputWarning, match="particles"):
        sample = ct.smc(100 * X, process, "prior-prior", n_particles=30, random_state=0)
    assert sample.remarks
    with pytest.warns(InputWarning, match="Each run had one particle"):
        ct.smc(X, process, n_particles=1, random_state=0, n_runs=3)
    with pytest.warns(InputWarning, match="runs disagree on the evidence"):
        ct.smc(100 * X, process, "prior-prior", n_particles=30, random_state=0, n_runs=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ct.smc(X[:3], process, n_particles=200, random_state=0)


@pytest.mark.parametrize("n", [1, 2])
def test_smc_of_one_and_two_rows(n):
    X = np.array([[0.3, 1.0], [0.1, 2.0]])[:n]
    sample = ct.smc(X, ct.Brownian(), "race", n_particles=20, random_state=0)
    assert sample.n_leaves == n
    if n == 1:
        assert sample.log_evidence == 0
        assert sample.ess.shape == (0,)
    assert sample.consensus().n_leaves == n


@pytest.mark.parametrize("proposal", PROPOSALS)
def test_evidence_of_rows_equal_in_only_real_cell(proposal):
    """Their density has a pole, but one that can be integrated: log(1/2) for two rows; six standard errors."""
    logs = [ct.smc([[0.0], [0.0]], ct.Brownian(), proposal, 500, random_state=s).log_evidence for s in range(20)]
    ratios = np.exp(logs) / 0.5
    error = ratios.std(ddof=1) / math.sqrt(20)
    # least noise, 1e-10 of a deviation, takes a little away
    assert abs(ratios.mean() - 1) < 6 * error + 1e-3
    assert error < 0.2


def test_equal_trees_count_once(animals):
    X, process = animals
    sample = ct.smc(X, process, "race", n_particles=60, random_state=0, threshold=1.0)
    weights = {}
    for tree, weight in zip(sample.trees, sample.weights, strict=True):
        weights[tree] = weights.get(tree, 0.0) + weight
    assert len(weights) < 60
    assert sample.effective_size == pytest.approx(1 / sum(weight**2 for weight in weights.values()))


def test_identical_rows_warn():
    X = np.random.default_rng(0).normal(size=(5, 4))
    with pytest.warns(InputWarning, match="5 merge"):
        ct.smc(np.vstack([X, X]), ct.Brownian(), n_particles=30, random_state=0)


def test_smc_of_identical_rows_in_extreme_units_is_finite():
    X = np.array([[1.0, 2.0], [1.0, 2.0], [5.0, 1.0], [5.0, 1.0]])
    for proposal in PROPOSALS:
        for scale in (1.0, 1e-150, 1e150):
            sample = ct.smc(scale * X, ct.Brownian(scale**2, noise=0.1), proposal, n_particles=20, random_state=0)
            assert np.isfinite(sample.log_evidence)
    for proposal in ("post-post", "race"):
        sample = ct.smc(X, ct.Brownian(), proposal, n_particles=20, random_state=0)
        assert np.isfinite(sample.log_evidence)
        assert sample.clade_probabilities()[frozenset("01")] > 0.99


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_particles": 0}, "n_particles 0"),
        ({"n_particles": 2.5}, "n_particles 2.5"),
        ({"n_runs": 0}, "n_runs 0"),
        ({"regrafts": -1}, "regrafts -1 0"),
        ({"regrafts": 2, "proposal": "race"}, "regrafts 0 proposal race"),
        ({"threshold": 1.5}, "threshold 1.5"),
        ({"threshold": -0.1}, "threshold -0.1"),
        ({"threshold": math.nan}, "threshold nan"),
        ({"threshold": None}, "threshold None"),
        ({"progress": 5}, "progress 5"),
        ({"n_jobs": 0}, "n_jobs 0"),
        ({"proposal": "post"}, "proposal post"),
        ({"resampling": "none"}, "resampling none"),
        ({"process": "brownian"}, "process brownian"),
        ({"random_state": "x"}, "random_state x"),
        ({"leaf_names": ["a"]}, "1 leaf"),
    ],
)
def test_invalid_smc_arguments_are_rejected(arguments, message):
    with refused(message):
        ct.smc(**({"X": [[0.0], [1.0], [3.0]], "process": ct.Brownian()} | arguments))


def test_vanishing_weights_raise_with_merge(animals, monkeypatch):
    X, process = animals

    def vanish(forest, particles, k, uniforms, first, last):
        np.asarray(particles.log_weights)[first:last] = -math.inf if k == 2 else 0.0

    monkeypatch.setattr("coaltree.inference.kernels.particles.extend_prior_prior", vanish)
    with refused("merge 3 11 10 particles weight 0"):
        ct.smc(X, process, "prior-prior", n_particles=10, random_state=0)


def test_smc_log_joints_and_ratios_match_trees(animals):
    X, process = animals
    for proposal in PROPOSALS:
        sample = ct.smc(X, process, proposal, n_particles=20, random_state=0, threshold=0.9)
        for k in (0, 7, 19):
            climb = reference.climb(sample.trees[k], X, process)
            joint = reference.log_likelihood(sample.trees[k], X, process) + reference.log_prior(sample.trees[k])
            assert sample.log_joints[k] == pytest.approx(joint, abs=1e-8)
            assert np.allclose(sample.log_ratios[k], climb.log_ratios, atol=1e-8)
