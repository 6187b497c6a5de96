"""Markov chains over trees: exactness, checkpoints, convergence diagnostics and heated chains."""

import importlib
import json
import math
import pickle
import warnings
from functools import cache

import numpy as np
import pytest
from scipy.stats import gamma

import coaltree as ct
import exact_posterior
from coaltree.errors import InputError, InputWarning
from coaltree.inference import chain as chain_module
from coaltree.inference import results, tempering
from coaltree.inference.chain import Chain, without_ties
from coaltree.inference.checkpoint import ChainCheckpoint
from coaltree.inference.results import Topologies, effective_samples, find_warmup, r_hat
from coaltree.inference.tempering import TemperedChain
from coaltree.process.base import merge_log_likelihoods
from coaltree.tree.clades import clade_masks
from command_line import command_in
from named import refused

mcmc_module = importlib.import_module("coaltree.inference.mcmc")  # the package has a function of that name

BATCHES = 40
BOUND = 6  # standard errors, from batches: with 39 degrees of freedom a false alarm in less than a million comparisons

MIXED = ct.Mixed((ct.Brownian([1.0, 2.0], 0.05), [0, 1]), (ct.Multinomial([0.5], [[0.2, 0.3, 0.5]]), [2]))
PROCESSES = {
    "brownian": ct.Brownian([1.0, 2.0], 0.05),
    "stationary": ct.OrnsteinUhlenbeck(0.7, 0.0, 1.0, 0.05),
    "multinomial": ct.Multinomial([0.5, 1.0], [[0.3, 0.7], [0.2, 0.3, 0.5]]),
    "mixed": MIXED,
}


def table(kind, n, missing):
    process = PROCESSES[kind]
    X = process.simulate(ct.simulate_tree(n, 1), 2, n_columns={"mixed": 3}.get(kind, 2))
    if missing:
        X[0, 0] = X[2, 1] = np.nan
    return X, process.resolve(X)


def chain_of(X, process, seed=3):
    rng = np.random.default_rng(seed)
    return Chain(X, process, without_ties(ct.simulate_tree(len(X), seed), rng), rng)


def tempered_chain(X, process, n_heated, seed=3):
    rngs = [np.random.default_rng([seed, k]) for k in range(n_heated + 1)]
    return TemperedChain(X, process, without_ties(ct.simulate_tree(len(X), seed), rngs[0]), rngs)


def samples_of(chain, count, moves=20):
    samples = []
    for _ in range(count):
        chain.move(moves)
        samples.append(chain.sample())
    return samples


def check_mean(values, expected, what):
    values = np.asarray(values, dtype=float)
    batches = values[: len(values) // BATCHES * BATCHES].reshape(BATCHES, -1).mean(axis=1)
    # what is rare may not have been seen at all
    error = max(batches.std(ddof=1) / math.sqrt(BATCHES), math.sqrt(abs(expected) * 1e-1 / len(values)))
    assert abs(batches.mean() - expected) < BOUND * error, what


def slow(*case):
    return pytest.param(*case, marks=pytest.mark.slow)


CASES = [("brownian", 3, False), ("brownian", 4, False), ("mixed", 3, True), ("mixed", 4, True)]
KINDS = ("brownian", "stationary", "multinomial")
RARER = [*((kind, 3, True) for kind in KINDS), *(slow(kind, 4, True) for kind in KINDS)]


@pytest.mark.parametrize(("kind", "n", "missing"), [*CASES, *RARER])
def test_mcmc_posterior_matches_enumeration(kind, n, missing):
    X, process = table(kind, n, missing)
    check_posterior(samples_of(chain_of(X, process), 2000), X, process)


def check_posterior(samples, X, process):
    """Compare samples with all trees of three or four leaves."""
    truth = exact_posterior.integrals(X, process)
    target = {"root": sum(history.moment for history in truth.histories) / truth.evidence}
    for children, mass, _ in truth.histories:
        for key in (("first", frozenset(children[0])), ("topology", exact_posterior.clades(children))):
            target[key] = target.get(key, 0.0) + mass / truth.evidence
    first = [frozenset(sample.children[0].tolist()) for sample in samples]
    topology = [exact_posterior.clades(sample.children.tolist()) for sample in samples]
    check_mean([sample.heights[-1] for sample in samples], target.pop("root"), "root")
    for (what, value), expected in target.items():
        matches = first if what == "first" else topology
        check_mean([item == value for item in matches], expected, (what, value))


@pytest.mark.parametrize("kind", ["brownian", "multinomial"])
def test_moves_that_skip_places_beyond_valleys_are_exact(kind, monkeypatch):
    """With so shallow a valley most moves evaluate f at some places only, yet all topologies have the right probability."""
    monkeypatch.setattr(chain_module, "VALLEY", 0.2)
    test_mcmc_posterior_matches_enumeration(kind, 4, False)


@pytest.mark.parametrize(("kind", "missing"), [("mixed", True), ("multinomial", False)])
def test_exchanges_with_heated_chains_are_exact(kind, missing):
    """Trees come from heated chains all the time, so an error in them or in the exchange would show in the first chain."""
    X, process = table(kind, 4, missing)
    chain = tempered_chain(X, process, 2)
    check_posterior(samples_of(chain, 1000, moves=8), X, process)
    assert chain.accepted[chain_module.EXCHANGE] > 1000


def test_heated_chains_that_draw_parameters_are_exact(monkeypatch):
    """Precisions of Brownian columns, with the Gamma prior of eq. (13.4), are integrated out by hand.

    Given its tree, a precision in a chain with power b is a Gamma variable as well: its probability integral is uniform.
    """
    X = np.array([[0.0, 1.0], [0.4, 0.7], [2.0, -1.0], [1.1, 0.2]])
    process, prior_shape, prior_rate = ct.Brownian([1.0, 1.0]), 1.1, X.var(axis=0) / 1.1

    def squares(common):
        """Return log determinants of the covariances of differences from the first row, and squared distances by column."""
        covariance = common[:, 1:, :1] + common[:, :1, 1:] - common[:, 1:, 1:]
        z = X[1:] - X[0]
        return np.linalg.slogdet(covariance)[1], np.einsum("id,nij,jd->nd", z, np.linalg.inv(covariance), z)

    def log_marginals(more):
        """Return the log integral of ``p(x | tree)`` times the first precision to the power `more`, but for a constant."""

        def log_likelihoods(children, heights, X, process):
            log_det, distances = squares(exact_posterior.common_heights(children, heights))
            exponents = prior_shape + 1.5 + np.array([more, 0])
            return -log_det - (exponents * np.log(prior_rate + 0.5 * distances)).sum(axis=1)

        return log_likelihoods

    monkeypatch.setattr(tempering, "SPACING", 6.0)  # so that draws at power 1 would be far off in the heated chain
    evidences = []
    for more in (1, 0):
        monkeypatch.setattr(exact_posterior, "log_likelihoods", log_marginals(more))
        evidences.append(exact_posterior.integrals(X, process).evidence)
    rngs = [np.random.default_rng([4, k]) for k in range(2)]
    tree = without_ties(ct.simulate_tree(4, 3), rngs[0])
    chain = TemperedChain(X, process, tree, rngs, [process.sampler(X, False) for _ in rngs])
    samples, integrals = [], []
    for _ in range(1000):
        chain.move(8)
        samples.append(chain.sample())
        for member in chain.members():
            tree = member.tree()
            _, distances = squares(exact_posterior.common_heights(tree.children, tree.merge_heights[None]))
            rates = prior_rate + 0.5 * member.power * distances[0]
            integrals.append(gamma.cdf(1 / member.process.variance, prior_shape + 1.5 * member.power, scale=1 / rates))
    assert chain.accepted[chain_module.EXCHANGE] > 300
    check_posterior(samples, X, process)
    expected = (prior_shape + 1.5) * evidences[0] / evidences[1]
    check_mean([1 / sample.parameters[0] for sample in samples], expected, "precision")
    for which, name in ((0, "first"), (1, "heated")):
        uniform = np.array(integrals[which::2]).ravel()
        check_mean(uniform, 1 / 2, name)
        check_mean((uniform - 1 / 2) ** 2, 1 / 12, name)


def test_heated_chains_take_over_parameters_in_warm_up():
    """Those of a correlated table with missing cells: the joint density is that of the first chain's tree and new table."""
    X, rng = np.random.default_rng(0).normal(size=(20, 3)), np.random.default_rng(1)
    X[[3, 7, 7], [0, 1, 2]] = np.nan
    process = ct.OrnsteinUhlenbeck(0.5, [0.0] * 3, np.eye(3), 0.3 * np.eye(3))
    rngs = [np.random.default_rng([9, k]) for k in range(2)]
    tree = without_ties(ct.simulate_tree(20, 3), rng)
    chain = TemperedChain(X, process, tree, rngs, [process.sampler(X.copy(), False) for _ in rngs])
    chain.move(20)
    first, heated = chain.members()
    assert first.process.to_dict() != heated.process.to_dict()
    chain.tune()
    assert first.process.to_dict() == heated.process.to_dict()
    assert np.isfinite(heated.table).all()
    np.testing.assert_array_equal(first.table, heated.table)
    assert first.table is not heated.table
    likelihood = heated.process.log_likelihood(heated.tree(), heated.table)
    assert heated.log_likelihood == pytest.approx(likelihood, rel=1e-9)


@pytest.mark.slow
def test_mcmc_posterior_of_five_leaves_matches_enumeration(monkeypatch):
    monkeypatch.setattr(exact_posterior, "POINTS", 18)
    monkeypatch.setattr(exact_posterior, "LOWEST", -9.0)
    X, process = table("brownian", 5, False)
    truth = exact_posterior.integrals(X, process)
    result = samples_of(chain_of(X, process), 8000)
    check_mean([s.heights[-1] for s in result], sum(h.moment for h in truth.histories) / truth.evidence, "root")
    for clade in {clade for h in truth.histories for clade in exact_posterior.clades(h.children)}:
        mass = sum(h.mass for h in truth.histories if clade in exact_posterior.clades(h.children))
        matches = [clade in exact_posterior.clades(s.children.tolist()) for s in result]
        check_mean(matches, mass / truth.evidence, clade)


def test_different_rows_joined_at_start_separate():
    """Chains begin with some rows joined next to height 0 that differ in a few columns, where f is nearly 0."""
    process = ct.Multinomial([0.3] * 10, [[0.5, 0.3, 0.2]] * 10)
    for seed in (0, 2):
        X = process.simulate(ct.simulate_tree(12, 50 + seed), 80 + seed)
        assert ct.mcmc(X, process, 300, 4, random_state=seed).r_hat["log_joint"] < 1.1


def test_mcmc_without_data_samples_prior():
    """Root height, its square and the length are those of eq. (1.3) and (1.4); all 180 histories of five leaves are alike."""
    n = 5
    X = np.full((n, 3), np.nan)
    result = samples_of(chain_of(X, MIXED.resolve(X)), 6000)
    roots = np.array([sample.heights[-1] for sample in result])
    variance = sum((2 / (k * (k - 1))) ** 2 for k in range(2, n + 1))
    check_mean(roots, 2 * (1 - 1 / n), "root")
    check_mean((roots - 2 * (1 - 1 / n)) ** 2, variance, "its variance")
    live = np.arange(n, 1, -1)
    lengths = [np.diff(sample.heights, prepend=0.0) @ live for sample in result]
    check_mean(lengths, 2 * sum(1 / k for k in range(1, n)), "length")
    histories = [tuple(map(tuple, sample.children.tolist())) for sample in result]
    assert len(set(histories)) == 180
    for history in set(histories):
        check_mean([value == history for value in histories], 1 / 180, history)


class Careless:
    """A source of random numbers that lets every scaling of the heights be accepted, and half of the moves be scalings."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.bit_generator = self.rng.bit_generator

    def random(self, shape):
        uniforms = self.rng.random(shape)
        uniforms[:, 2] = 1e-300
        uniforms[::2, 0] = 0.999
        return uniforms


def roots_of_redrawn_data(rng, process, moving, n=6, count=1500):
    """Redraw the data from the tree, and move the tree given the data, in turn (Geweke); return the root's heights."""
    draws = np.random.default_rng(8)
    tree, roots = ct.simulate_tree(n, 4), []
    for _ in range(count):
        X = process.simulate(tree, draws, n_columns=2)
        chain = Chain(X, moving, tree, rng)
        chain.move(30)
        actual = chain.sample()
        tree = ct.Tree(actual.children, np.append(np.zeros(n), actual.heights))
        roots.append(actual.heights[-1])
    return np.array(roots)


def check_roots(roots, n=6):
    """Compare mean and quantiles with those of the prior, whose waiting times are exponential."""
    check_mean(roots, 2 * (1 - 1 / n), "mean")
    for share, height in zip(SHARES, quantiles_of_roots(n), strict=True):
        check_mean(roots < height, share, share)


SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)


@cache
def quantiles_of_roots(n):
    live = np.arange(n, 1, -1)
    draws = np.random.default_rng(0).exponential(2 / (live * (live - 1)), size=(1_000_000, n - 1)).sum(axis=1)
    return np.quantile(draws, SHARES)


class TestDataAndTreeInTurn:
    """The heights follow the prior; and they do not when a weight is wrong, so that the test can fail."""

    process = ct.Brownian(1.0, 0.05)

    def test_redrawn_data_keep_prior_heights(self):
        check_roots(roots_of_redrawn_data(np.random.default_rng(5), self.process, self.process))

    def test_redrawn_data_keep_prior_heights_with_valleys(self, monkeypatch):
        monkeypatch.setattr(chain_module, "VALLEY", 0.2)
        check_roots(roots_of_redrawn_data(np.random.default_rng(6), self.process, self.process))

    def test_wrong_likelihood_is_detected(self):
        roots = roots_of_redrawn_data(np.random.default_rng(5), self.process, ct.Brownian(1.3, 0.05), count=2500)
        with pytest.raises(AssertionError):
            check_roots(roots)

    def test_wrong_scaling_move_is_detected(self):
        roots = roots_of_redrawn_data(Careless(5), self.process, self.process, count=2500)
        with pytest.raises(AssertionError):
            check_roots(roots)


@pytest.fixture(scope="module")
def eight():
    process = ct.Brownian(1.0, 0.05)
    return process.simulate(ct.simulate_tree(8, 7), 8, n_columns=3), process


@pytest.fixture(scope="module")
def sample(eight):
    X, process = eight
    return ct.mcmc(X, process, n_samples=2500, n_chains=4, random_state=1, leaf_names=list("abcdefgh"), n_jobs=2)


def test_mcmc_clades_match_smc(eight, sample):
    X, process = eight
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        runs = [ct.smc(X, process, n_particles=200, random_state=k, leaf_names=list("abcdefgh")) for k in range(12)]
    shares = np.exp([run.log_evidence for run in runs])
    found_by_runs = [run.clade_probabilities() for run in runs]
    of_trees = [named_clades(tree) for tree in sample.trees]
    for clade, probability in sample.clade_probabilities().items():
        if probability > 0.02:
            actual = np.array([run.get(clade, 0.0) for run in found_by_runs])
            expected = np.average(actual, weights=shares)
            chains = [np.mean([clade in of_trees[k] for k in np.flatnonzero(sample.chains == c)]) for c in range(4)]
            error = math.hypot(actual.std(ddof=1) / math.sqrt(12), np.std(chains, ddof=1) / 2)
            assert abs(probability - expected) < max(BOUND * error, 0.01), clade


def named_clades(tree):
    return {frozenset(tree.leaf_names[i] for i in range(tree.n_leaves) if mask >> i & 1) for mask in clade_masks(tree)}


def test_mcmc_result_attributes_are_consistent(eight, sample):
    X, process = eight
    assert sample.converged
    assert sample.remarks == []
    assert sample.verdict.startswith("The 4 chains agree: R-hat is at most 1.0")
    assert sample.n_chains == 4
    n_kept = 2500 - sample.warmup
    assert 250 <= sample.warmup <= 250 + 1125
    assert len(sample) == 4 * n_kept
    assert sample.chains.tolist() == np.repeat(range(4), n_kept).tolist()
    assert sample.traces["log_joint"].shape == (4, 2500)
    for k in (0, n_kept, 4 * n_kept - 1):
        tree, chain, at = sample.trees[k], sample.chains[k], sample.warmup + k % n_kept
        assert sample.log_joints[k] == pytest.approx(ct.log_joint(tree, X, process), rel=1e-10)
        assert sample.traces["root_height"][chain, at] == tree.heights[-1]
        assert sample.traces["tree_length"][chain, at] == pytest.approx(tree.total_length)
        merges = merge_log_likelihoods(process.resolve(X), tree, X)
        np.testing.assert_allclose(sample.log_ratios[k], merges.log_ratios, atol=1e-8)
    assert set(sample.acceptance) == {"subtree", "near", "leaf", "heights", "scale"}
    assert all(0.1 < share <= 1 for share in sample.acceptance.values())
    assert "4 chains, converged" in repr(sample)
    assert set(sample.to_xarray()["chain"].values.tolist()) == {0, 1, 2, 3}


def test_diagnostics_match_arviz(sample):
    import arviz

    for name, trace in sample.traces.items():
        samples = trace[:, sample.warmup :]
        assert sample.r_hat[name] == pytest.approx(float(arviz.rhat(samples)), rel=1e-6)
        assert sample.effective_samples[name] == pytest.approx(float(arviz.ess(samples)), rel=1e-6)


def test_to_arviz_has_chains(sample):
    posterior = sample.to_arviz().posterior
    assert posterior.sizes["chain"] == 4
    np.testing.assert_array_equal(posterior["root_height"], sample.traces["root_height"][:, sample.warmup :])


def test_too_few_trees_warn(eight):
    with pytest.warns(InputWarning, match=r"have not converged: 2 tree\(s\)"):
        ct.mcmc(*eight, n_samples=3, n_chains=2, warmup=1, random_state=0)


def test_mcmc_is_reproducible_for_any_threads(eight):
    X, process = eight
    with pytest.warns(InputWarning, match="have not converged"):
        one = ct.mcmc(X, process, n_samples=30, n_chains=3, random_state=2)
    with pytest.warns(InputWarning, match="have not converged"):
        two = ct.mcmc(X, process, n_samples=30, n_chains=3, random_state=2, n_jobs=2)
    assert one.trees == two.trees
    with pytest.warns(InputWarning, match="have not converged"):
        other = ct.mcmc(X, process, n_samples=30, n_chains=3, random_state=3)
    assert one.trees != other.trees


@pytest.mark.parametrize("kind", PROCESSES)
@pytest.mark.parametrize("draws_parameters", [False, True], ids=["trees", "trees and parameters"])
def test_pickled_chain_continues_bitwise_equal(kind, draws_parameters):
    """Clusters pickle chains without their derived arrays, which are computed anew."""
    X, process = table(kind, 12, missing=True)
    rng = np.random.default_rng(1)
    draws = process.sampler(X, hold_noise=False) if draws_parameters else None
    chain = Chain(X, process, without_ties(ct.simulate_tree(12, 2), rng), rng, draws)
    other = pickle.loads(pickle.dumps(chain))
    for _ in range(20):
        for each in (chain, other):
            each.move(10)
            each.tune()
        actual, expected = other.sample(), chain.sample()
        for name, value in expected._asdict().items():
            np.testing.assert_array_equal(getattr(actual, name), value, err_msg=name)
        np.testing.assert_array_equal([other.tried, other.accepted], [chain.tried, chain.accepted])
        other = pickle.loads(pickle.dumps(other))


# -- checkpoints ------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:The chains have not converged")
@pytest.mark.parametrize(
    ("draws_parameters", "n_heated"),
    [(False, 0), (True, 0), (False, 2), (True, 1)],
    ids=["trees", "trees and parameters", "heated chains", "heated chains and parameters"],
)
def test_killed_run_resumes_bitwise_equal(draws_parameters, n_heated, eight, tmp_path, monkeypatch):
    X, process = eight
    settings = {"n_samples": 60, "n_chains": 2, "random_state": 5, "thin": 5, "draw_parameters": draws_parameters}
    settings["n_heated"] = n_heated
    whole = ct.mcmc(X, process, **settings)
    calls = []

    def stop(share, *_):
        calls.append(share)
        if share > 0.4:
            raise KeyboardInterrupt

    path = tmp_path / "chains.npz"
    with pytest.raises(KeyboardInterrupt):
        ct.mcmc(X, process, **settings, checkpoint=path, progress=stop)
    assert calls[-1] < 0.5
    shares = []
    again = ct.mcmc(X, process, **settings, checkpoint=path, progress=lambda share, *_: shares.append(share))
    assert shares[0] > 0.4  # it did not begin anew
    assert again.trees == whole.trees
    assert again.acceptance == whole.acceptance
    assert bool(whole.parameters) == draws_parameters
    for name, trace in (whole.traces | whole.parameters).items():
        np.testing.assert_array_equal((again.traces | again.parameters)[name], trace)
    monkeypatch.setattr(Chain, "move", None)  # all is in the file
    assert ct.mcmc(X, process, **settings, checkpoint=path).trees == whole.trees


def test_finished_run_can_be_extended(eight, tmp_path):
    X, process = eight
    settings = {"n_chains": 2, "random_state": 5, "thin": 20, "checkpoint": tmp_path / "chains.npz"}
    short = ct.mcmc(X, process, 200, **settings)
    long = ct.mcmc(X, process, 333, **settings)
    assert long.traces["log_joint"].shape == (2, 333)
    np.testing.assert_array_equal(long.traces["log_joint"][:, :200], short.traces["log_joint"])
    assert len(np.unique(long.traces["log_joint"])) == 666
    assert short.warmup >= 20
    assert long.warmup >= 33  # a tenth of all, though moves were tuned during 20 samples
    with refused("chains.npz 333 samples chain n_samples 300"):
        ct.mcmc(X, process, 300, **settings)
    again = ct.mcmc(X, process, 333, **settings | {"random_state": 5})
    assert again.trees == long.trees


def test_foreign_checkpoint_is_rejected(eight, tmp_path):
    X, process = eight
    path = tmp_path / "chains.npz"
    settings = {"n_samples": 100, "n_chains": 2, "thin": 10, "checkpoint": path, "warmup": 10}
    path.write_text("hello")
    with refused("chains.npz checkpoint Markov chains"):
        ct.mcmc(X, process, **settings)
    path.unlink()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)  # ten samples need not have converged
        ct.mcmc(X, process, **settings)
    for changed, value, thin in ((X + 0.1, process, 10), (X, ct.Brownian(2.0, 0.05), 10), (X, process, 5)):
        with refused("checkpoint table process settings"):
            ct.mcmc(changed, value, **settings | {"thin": thin})
    pickled = tmp_path / "pickled.npz"
    np.savez(pickled, facts=np.array([{}], dtype=object))
    with pytest.raises(InputError, match="is not a checkpoint"):
        ChainCheckpoint(pickled, "mark", 0).resume(None, [])


# -- diagnostics ------------------------------------------------------------------------------------


def test_convergence_diagnostics_of_synthetic_traces():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(4, 500))
    assert r_hat(noise) < 1.02
    assert effective_samples(noise) > 1500
    assert r_hat(noise + 3 * np.arange(4)[:, None]) > 1.5
    assert r_hat(np.repeat([[0.0], [1.0]], 10, axis=1)) == np.inf  # each chain stays where it began
    assert r_hat(np.repeat([0.0, 1.0], 10)[None]) == np.inf
    assert r_hat(noise[:1]) < 1.02
    assert r_hat(np.sort(noise[:1])) > 1.5  # the halves differ
    assert r_hat(np.ones((4, 10))) == 1
    assert effective_samples(np.ones((4, 10))) == 40
    assert math.isnan(r_hat(noise[:, :3]))
    late = noise.copy()
    late[:, :100] += np.linspace(30, 0, 100)
    assert find_warmup(noise) <= 100
    assert 50 <= find_warmup(late) <= 150


def test_topology_diagnostics_match_counts():
    trees = [ct.simulate_tree(5, seed) for seed in range(400)]
    topologies = Topologies(trees, 2)
    chains = [[set(clade_masks(tree)) for tree in trees[k * 200 : (k + 1) * 200]] for k in range(2)]
    deviations = []
    for clade in set().union(*chains[0], *chains[1]):
        shares = [np.mean([clade in tree for tree in chain]) for chain in chains]
        if max(shares) >= 0.1:
            deviations.append(abs(shares[0] - shares[1]) / math.sqrt(2))
    assert topologies.split_deviation() == pytest.approx(np.mean(deviations))
    assert math.isnan(Topologies(trees, 1).split_deviation())
    assert topologies.effective_topologies() > 250  # of 400 that are independent
    stuck = Topologies([trees[k // 40] for k in range(400)], 2)
    assert stuck.effective_topologies() < 40
    np.testing.assert_array_equal(
        topologies._distances(3).ravel(), [ct.robinson_foulds(tree, trees[3]) for tree in trees]
    )


def test_disagreeing_chains_warn(eight):
    X, process = eight
    with pytest.warns(InputWarning, match="have not converged") as caught:
        result = ct.mcmc(X, process, n_samples=12, n_chains=2, thin=1, random_state=0)
    assert not result.converged
    assert result.remarks == [result.verdict]
    assert str(caught[0].message) == result.verdict
    assert "Take more samples." in result.verdict
    assert "n_heated=1" in result.verdict


def test_one_chain_has_no_agreement_verdict(eight):
    X, process = eight
    result = ct.mcmc(X, process, n_samples=600, n_chains=1, random_state=0)
    assert math.isnan(result.split_deviation)
    assert "only several chains" in result.verdict


# -- n_samples="auto" -------------------------------------------------------------------------------


def test_auto_samples_until_chains_agree(eight, tmp_path):
    """The samples are those of a run of that length with the same tuning; a stored run has stopped for good."""
    X, process = eight
    path = tmp_path / "a.checkpoint"
    result = ct.mcmc(X, process, "auto", random_state=0, checkpoint=path)
    n_samples = result.traces["log_joint"].shape[1]
    assert result.converged
    assert result.remarks == []
    assert result.verdict.endswith(f"They stopped when they had converged, after {n_samples:,} samples each.")
    assert n_samples in (500, 750, 1125)
    again = ct.mcmc(X, process, "auto", random_state=0, checkpoint=path)
    np.testing.assert_array_equal(again.traces["log_joint"], result.traces["log_joint"])
    other = ct.mcmc(X, process, "auto", random_state=0, n_jobs=2, max_seconds=1e6)
    np.testing.assert_array_equal(other.traces["log_joint"], result.traces["log_joint"])


def test_auto_rechecks_slow_chains(eight, monkeypatch):
    X, process = eight
    monkeypatch.setattr(mcmc_module, "FIRST_CHECK", 40)
    counts = []
    check = mcmc_module._make_result
    monkeypatch.setattr(
        mcmc_module, "_make_result", lambda record, *rest: counts.append(record.done[0]) or check(record, *rest)
    )
    result = ct.mcmc(X, process, "auto", 2, random_state=0)
    assert result.converged
    assert counts[:3] == [40, 60, 90]
    assert result.traces["log_joint"].shape == (2, counts[-1])


def test_time_limit_stops_chains_that_can_resume(eight, tmp_path, monkeypatch):
    """For any time limits, the samples are those of one long run."""
    X, process = eight
    monkeypatch.setattr(results, "MIN_EFFECTIVE_SAMPLES", 1e9)
    monkeypatch.setattr(mcmc_module, "FIRST_CHECK", 120)
    path, lengths = tmp_path / "a.checkpoint", []
    for _ in range(2):
        with pytest.warns(
            InputWarning, match="stopped at the time limit of 1e-09 seconds, after .* a larger max_seconds"
        ):
            result = ct.mcmc(X, process, "auto", 2, random_state=0, max_seconds=1e-9, checkpoint=path)
        lengths.append(result.traces["log_joint"].shape[1])
    assert lengths[0] < lengths[1] <= 120
    assert not result.converged
    monkeypatch.setattr(results, "MIN_EFFECTIVE_SAMPLES", 0.0)
    monkeypatch.setattr(results, "MAX_R_HAT", 1e9)
    monkeypatch.setattr(results, "MAX_SPLIT_DEVIATION", 1.0)
    resumed, whole = (ct.mcmc(X, process, "auto", 2, random_state=0, checkpoint=value) for value in (path, None))
    assert whole.traces["log_joint"].shape == (2, 120)
    np.testing.assert_array_equal(resumed.traces["log_joint"], whole.traces["log_joint"])


def test_time_limit_requires_auto(eight):
    with pytest.raises(
        InputError, match=r"max_seconds is 5, and n_samples is 100; a time limit needs n_samples='auto'"
    ):
        ct.mcmc(*eight, 100, max_seconds=5)
    with pytest.raises(
        InputError, match=r"max_seconds is 5, and n_samples is 1000; a time limit needs n_samples='auto'"
    ):
        ct.CoalescentClustering(inference="mcmc", max_seconds=5).fit(eight[0])
    with pytest.raises(InputError, match="n_samples is 'all'; it must be 'auto', or a whole number of at least 1"):
        ct.mcmc(*eight, "all")
    with pytest.raises(InputError, match="max_seconds is 0; it must be None, or a number above 0"):
        ct.mcmc(*eight, "auto", max_seconds=0)


def test_estimators_accept_n_samples_auto(eight):
    model = ct.CoalescentClustering(inference="mcmc", n_samples="auto", n_chains=2, random_state=0).fit(eight[0])
    assert "They stopped when they had converged" in model.sample_.verdict


# -- tables of all kinds ----------------------------------------------------------------------------


def test_mcmc_of_two_rows_and_equal_rows():
    process = ct.Brownian(1.0)
    two = ct.mcmc([[0.0, 0.0], [1.0, 0.0]], process, n_samples=400, n_chains=2, random_state=0)
    assert all(tree.n_leaves == 2 for tree in two.trees)
    assert len({tree.heights[-1] for tree in two.trees}) > 500
    equal = np.repeat([[0.0, 1.0], [3.0, 2.0]], 4, axis=0)
    with pytest.warns(InputWarning, match="have not converged"):
        result = ct.mcmc(equal, ct.Brownian(1.0, 0.1), n_samples=20, random_state=0)
    assert np.all(np.isfinite(result.log_joints))
    assert all(np.all(np.diff(tree.merge_heights) > 0) for tree in result.trees[:20])


def test_equal_rows_without_noise_warn():
    X = np.array([[0.0, 1.0], [0.0, 1.0], [3.0, 1.0], [9.0, 9.0]])
    with pytest.warns(InputWarning) as caught:
        result = ct.mcmc(X, ct.Brownian(), n_samples=50, n_chains=2, random_state=0)
    assert [str(warning.message) for warning in caught] == result.remarks
    assert "identical" in result.remarks[-1]
    assert np.all(np.isfinite(result.log_joints))


@pytest.mark.parametrize("unit", [1e-150, 1e-8, 1e150])
def test_mcmc_is_equivariant_to_units(unit, eight):
    X, _ = eight
    settings = {"n_samples": 200, "n_chains": 2, "random_state": 0}
    result = ct.mcmc(X * unit, ct.Brownian(unit * unit, 0.05), **settings)
    expected = ct.mcmc(X, ct.Brownian(1.0, 0.05), **settings)
    np.testing.assert_allclose(result.traces["root_height"][:, :5], expected.traces["root_height"][:, :5], rtol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_samples": 0}, "n_samples 0 1"),
        ({"draw_parameters": "joint"}, "draw_parameters joint True False"),
        ({"n_chains": True}, "n_chains True 1"),
        ({"thin": 1.5}, "thin 1.5 1"),
        ({"warmup": -1}, "warmup -1 0"),
        (
            {"warmup": 10, "n_samples": 10},
            "warmup 10 samples leaves none smaller n_samples",
        ),
        (
            {"progress": 3},
            "progress 3 function share R-hat effective samples None",
        ),
    ],
)
def test_invalid_mcmc_arguments_are_rejected(eight, arguments, message):
    with refused(message):
        ct.mcmc(*eight, **arguments)


def test_wrong_leaf_names_are_rejected_before_sampling(eight, monkeypatch):
    monkeypatch.setattr(Chain, "move", None)
    with pytest.raises(ValueError, match="1 leaf names were given for 8 leaves"):
        ct.mcmc(*eight, leaf_names=["a"])


def test_mcmc_rejects_one_row():
    with refused("table 1 row tree sample 2 rows"):
        ct.mcmc([[1.0]], ct.Brownian())


# -- heated chains ----------------------------------------------------------------------------------


def test_exchanged_trees_keep_likelihoods(eight):
    X, process = eight
    chain = tempered_chain(X, process.resolve(X), 1)
    hotter = chain.members()[1]
    chain.move(40)
    for _ in range(2):
        trees, expected = (
            [value.tree() for value in (chain, hotter)],
            [value.log_likelihood for value in (hotter, chain)],
        )
        for value, tree in zip((chain, hotter), trees, strict=True):
            likelihood = process.log_likelihood(tree, X)
            assert value.log_likelihood == pytest.approx(likelihood)
            assert value.log_joint == pytest.approx(value.power * likelihood + ct.log_prior(tree))
        chain.exchange_states(hotter)
        assert [value.log_likelihood for value in (chain, hotter)] == pytest.approx(expected)
        assert [value.tree() for value in (chain, hotter)] == trees[::-1]
        Chain.move(chain, 5)
        Chain.move(hotter, 5)


@pytest.mark.filterwarnings("ignore:The chains have not converged")
def test_heated_chains_cross_valley():
    """Half of the columns have one tree and half another; a single chain stays with the tree that it begins with."""
    first, second = [0, 0, 0, 0, 1, 1, 1, 1], [0, 0, 1, 1, 0, 0, 1, 1]
    X = np.column_stack([first] * 14 + [second] * 14).astype(float)
    process = ct.Multinomial(0.1, [0.5, 0.5], share_equilibrium=True)
    flips = []
    for n_heated in (0, 2):
        sample = ct.mcmc(X, process, 400, 2, n_heated=n_heated, random_state=0, warmup=50)
        in_first = np.array([15 in clade_masks(tree) for tree in sample.trees]).reshape(2, -1)
        flips.append(np.count_nonzero(np.diff(in_first, axis=1)))
    assert flips[1] > 10 * (flips[0] + 1)


def test_estimator_and_command_accept_heated_chains(eight, tmp_path, monkeypatch, capsys):
    X, process = eight
    settings = {"n_samples": 60, "n_chains": 2, "n_heated": 1, "random_state": 0}
    with pytest.warns(InputWarning, match="converged"):
        one, two = (ct.mcmc(X, process, n_jobs=n_jobs, **settings) for n_jobs in (1, 2))
    assert one.trees == two.trees
    assert 0 < one.acceptance["exchange"] < 1
    with refused("n_heated -1 0"):
        ct.mcmc(X, process, n_heated=-1)
    with refused("n_heated 1 greedy mcmc"):
        ct.CoalescentClustering(n_heated=1).fit(X)
    (tmp_path / "table.csv").write_text("a,b\n1,2\n2,1\n5,5\n6,5\n")
    options = ["--inference", "mcmc", "--samples", "20", "--chains", "2", "--heated", "1", "--json"]
    code, out, _ = command_in(tmp_path, monkeypatch, capsys)("fit", "table.csv", "-o", "out", *options)
    assert code == 0
    assert json.loads(out)["settings"]["n_heated"] == 1
