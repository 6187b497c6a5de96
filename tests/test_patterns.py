"""Weights of columns, and site patterns: equal columns that are computed once."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import coaltree as ct
import exact_posterior
from coaltree.inference.chain import Chain, without_ties
from coaltree.inference.kernels import heights as search
from coaltree.process import layout
from coaltree.process.kernels import messages as op
from coaltree.process.kernels.passes import climb


def repeated_table(n=7, n_columns=60, seed=0):
    """Return a table with many equal columns, some with renamed states, and missing cells."""
    rng = np.random.default_rng(seed)
    tree = ct.simulate_tree(n, random_state=seed)
    process = ct.Multinomial(0.7, [[0.25] * 4] * 12)
    few = process.simulate(tree, seed)
    few[rng.random(few.shape) < 0.1] = np.nan
    chosen = few[:, rng.integers(12, size=n_columns)]
    for d in range(n_columns):
        observed = ~np.isnan(chosen[:, d])
        chosen[observed, d] = rng.permutation(4)[chosen[observed, d].astype(int)]
    return chosen


def processes():
    two_rates = np.where(np.arange(60) % 2, 0.5, 1.5)
    return {
        "one rate": ct.Multinomial(0.7, [[0.25] * 4] * 60),
        "two rates": ct.Multinomial(two_rates, [[0.25] * 4] * 60),
        "noise": ct.Multinomial(0.7, [[0.25] * 4] * 60, noise=0.1),
        "unequal": ct.Multinomial(0.7, [[0.1, 0.4, 0.4, 0.1]] * 60),
        "fitted": ct.Multinomial(0.7),
    }


@pytest.mark.filterwarnings("ignore:The chains have not converged")
@pytest.mark.filterwarnings("ignore:The particles")
@pytest.mark.parametrize("kind", processes())
def test_patterns_do_not_change_results(kind, monkeypatch):
    X, process = repeated_table(), processes()[kind]

    def results():
        n_sites = process.resolve(X).forest(X, 7).n_sites
        result = ct.greedy(X, process)
        tree = result.tree
        sample = ct.mcmc(X, process, n_samples=30, n_chains=1, random_state=1, n_jobs=1)
        smc = ct.smc(X, process, n_particles=20, proposal="post-post", random_state=1, n_jobs=1)
        beliefs = ct.Beliefs(tree, X, process)
        fitted = ct.calibrate(process, [tree], X)
        return n_sites, [
            [process.log_likelihood(tree, X)],
            tree.heights,
            ct.greedy(X, process, rule="max-prob").tree.heights,
            tree.children.ravel(),
            sample.traces["log_joint"].ravel(),
            [smc.log_evidence],
            beliefs.leaves().probability.ravel(),
            beliefs.nodes().probability.ravel(),
            beliefs.others().probability.ravel(),
            fitted.parameter_values(),
        ]

    fewer, with_patterns = results()
    monkeypatch.setattr(layout, "MAX_PATTERNS", -1.0)
    all_columns, without = results()
    assert all_columns == 60
    assert fewer <= (36 if kind in ("unequal", "fitted") else 24)
    for value, other in zip(with_patterns, without, strict=True):
        assert np.asarray(value) == pytest.approx(np.asarray(other), rel=1e-6, abs=1e-9)


def test_unobserved_states_are_pooled():
    X = np.array([[0, 3, 1], [0, 3, np.nan], [2, 1, 1.0]])
    process = ct.Multinomial(1.0, [[0.1, 0.2, 0.3, 0.2, 0.2], [0.4, 0.2, 0.2, 0.1, 0.1], [0.3, 0.7]])
    forest = process.forest(X, 5)
    assert forest.n_sites == 3
    assert forest.state.shape[1] == 3 + 3 + 2
    draws = ct.Beliefs(ct.greedy(X, process).tree, X, process).nodes().probability
    assert np.add.reduceat(draws, [0, 5, 10], axis=1) == pytest.approx(1.0)


def test_columns_with_different_parameters_are_separate_sites():
    X = np.repeat([[0.0], [1.0], [0.0]], 8, axis=1)
    uniform = [[0.5, 0.5]] * 8
    assert ct.Multinomial(1.0, uniform).forest(X, 3).n_sites == 1
    assert ct.Multinomial([1.0] * 4 + [2.0] * 4, uniform).forest(X, 3).n_sites == 2
    assert ct.Multinomial(1.0, uniform, noise=[0.1] * 6 + [0.2] * 2).forest(X, 3).n_sites == 2
    assert ct.Multinomial(1.0, [[0.5, 0.5]] * 4 + [[0.4, 0.6]] * 4).forest(X, 3).n_sites == 2
    assert np.asarray(ct.Multinomial(1.0, uniform).forest(X, 3).site_weight).tolist() == [8.0]


def weighted_and_repeated(kind, seed=0):
    """Return forests of columns with whole weights, and of as many copies of each column, each a site of its own."""
    rng = np.random.default_rng(seed)
    n, weights = 5, np.array([3, 1, 2, 4])
    if kind.startswith("sites"):
        rate = [0.5, 1.0, 2.0, 0.8] if kind == "sites" else 0.8
        process = ct.Multinomial(rate, [[0.3, 0.7], [0.2, 0.3, 0.5], [0.5, 0.5], [0.25] * 4], noise=0.05)
        X = process.simulate(ct.simulate_tree(n, random_state=seed), seed)
    else:
        noise = 0.1 if kind.endswith("complete") else [0.1, 0.2, 0.3, 0.4]
        process = ct.Brownian(1.5, noise) if "brownian" in kind else ct.OrnsteinUhlenbeck(0.7, 0.0, 1.0, noise)
        X = rng.normal(size=(n, 4))
        if not kind.endswith("complete"):
            X[1, 2] = np.nan
        else:
            weights = np.array([3, 3, 3, 3])
    values = process.resolve(X).columns(X)[0]
    weighted = layout.make_forest([replace(values, weight=weights.astype(float))], 2 * n - 1, True)
    copies = np.repeat(np.arange(4), weights)
    if kind.startswith("sites"):
        starts = np.cumsum([0, *map(len, values.equilibrium)])
        states = np.concatenate([np.arange(starts[c], starts[c + 1]) for c in copies])
        q = [values.equilibrium[c] for c in copies]
        repeated = replace(values, message=values.message[:, states], equilibrium=q, rate=values.rate[copies])
    else:
        spread = values.spread if values.complete else values.spread[:, copies]
        scale = None if values.log_scale is None else values.log_scale[copies]
        center = None if values.center is None else values.center[copies]
        repeated = replace(values, mean=values.mean[:, copies], spread=spread, log_scale=scale, center=center)
    return weighted, layout.make_forest([repeated], 2 * n - 1, True, patterns=False)


@pytest.mark.parametrize("power", [1.0, 0.3])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.4, 0.9, 1.0])  # of sites that weigh more than the least weight
def test_weighted_sum_of_logs(share, power):
    """Whether many or few sites weigh more than others, with values of any size, and with sites of weight 0."""
    rng = np.random.default_rng(0)
    n = 40
    weights = np.where(rng.random(n) < share, rng.integers(2, 600, n), 1).astype(float)
    X = rng.integers(0, 2, (3, n)).astype(float)
    own = ct.Multinomial(1.0, [[0.5, 0.5]] * n).resolve(X).columns(X)[0]
    for lightest in (1.0, 0.0):
        weights[5] = lightest
        forest = layout.make_forest([replace(own, weight=weights)], 5, patterns=False)
        forest.set_power(power)
        assert np.asarray(forest.site_weight) == pytest.approx(power * weights)
        scratch = op.Rows(SimpleNamespace(n_sites=n, n_real=0, chain=np.empty((0, 0))))
        for spread in (0.5, 30.0, 200.0):
            values = np.exp(rng.normal(0, spread, n))
            values[5] = values[5] if lightest else 0.0
            np.asarray(scratch.rows)[1] = values
            wanted = power * np.sum(weights[weights > 0] * np.log(values[weights > 0]))
            assert op.log_of_sites(forest, scratch, 1, 2) == pytest.approx(wanted, rel=1e-12, abs=1e-10)
        np.asarray(scratch.rows)[1, np.argmax(weights)] = 0.0
        assert op.log_of_sites(forest, scratch, 1, 2) == -np.inf


@pytest.mark.parametrize(
    "kind", ["sites", "sites of one rate", "brownian", "brownian complete", "stationary", "stationary complete"]
)
def test_site_weights_act_like_copies(kind):
    forests = weighted_and_repeated(kind)
    answers = []
    for forest in forests:
        op.set_log_norms(forest, 5)
        pair, place = op.Pair(forest), op.Place(forest)
        op.merge(forest, 0, 1, 0.4, 5, pair)
        np.asarray(forest.height)[5] = 0.4
        actual = list(np.asarray(forest.log_norm)[:5])
        for i, j in [(2, 3), (3, 4), (5, 2), (5, 4)]:
            op.load_pair(forest, i, j, pair)
            shift = op.pair_shift(forest, i, j)
            for h in (0.4, 0.7, 3.0):
                actual += [op.log_z(forest, pair, h), *op.slopes(forest, pair, h)]
            actual += [op.least_slope(forest, pair, 0.5, 0.9, shift), *op.drop_falls_range(forest, pair, 0.5, 0.9)]
            actual.append(op.highest(forest, pair, 1.0))
            actual.append(search.best_height(forest, pair, shift, 1.0, 0.4, np.inf))
            if not forest.complete:
                op.start_scan(forest, i, 0.5, 0.9, pair)
                actual.append(op.scan_slope(forest, i, j, 0.5, 0.9, shift, pair))
        actual.append(op.root_log_density(forest, 5))
        op.load_place(forest, 5, 2, 2.0, 3, place)
        actual += [op.log_z_at(forest, place, h) for h in (0.5, 1.2, 1.9)]
        answers.append(actual)
    weighted, repeated = answers
    assert weighted == pytest.approx(repeated, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("power", [0.3, 1.7])
def test_weighted_likelihood_matches_brute_force(power):
    """All states of the interior nodes, and whole covariance matrices, on a tree of four leaves."""
    rng = np.random.default_rng(3)
    tree = ct.simulate_tree(4, random_state=3)
    X = np.column_stack([rng.integers(3, size=(4, 2)), rng.normal(size=(4, 4))]).astype(float)
    X[0, 1] = X[2, 3] = np.nan
    sites, noises = ct.Multinomial([0.5, 2.0], [[0.2, 0.3, 0.5]] * 2, 0.1), [0.1, 0.3]
    real = ct.Brownian([0.5, 2.0], noises), ct.OrnsteinUhlenbeck(0.8, 0.0, 1.0, noises)
    parts = [(sites, X[:, :2]), (real[0], X[:, 2:4]), (real[1], X[:, 4:])]
    weights = rng.uniform(0.1, 3.0, (3, 2))
    declared, expected = [], 0.0
    heights = tree.heights[None, 4:]
    common = exact_posterior.common_heights(tree.children.tolist(), heights)
    for (process, value), weight in zip(parts, weights, strict=True):
        resolved = process.resolve(value)
        columns = resolved.columns(value)[0]
        declared.append(replace(columns, weight=weight))
        for d in range(2):
            one = value[:, d : d + 1]
            if process is sites:
                q = np.array([0.2, 0.3, 0.5])
                log = exact_posterior.categorical_column(
                    value[:, d], sites.rate[d], q, 0.1, tree.children.tolist(), heights
                )
                log -= np.log(q[one[~np.isnan(one)].astype(int)]).sum()
            elif process is real[0]:
                log = exact_posterior.real_column(value[:, d], process.variance[d], noises[d], common)
            else:
                log = exact_posterior.stationary_column(value[:, d], 0.8, 0.0, 1.0, noises[d], common)
                observed = one[~np.isnan(one)]
                log += 0.5 * np.sum(np.log(2 * np.pi * (1 + noises[d])) + observed**2 / (1 + noises[d]))
            expected += weight[d] * float(log[0])
    forest = layout.make_forest(declared, 4)
    forest.set_power(power)
    log_z, ratios = np.empty(3), np.empty(3)
    climb(forest, tree.children, tree.heights, np.arange(7), log_z, ratios, 0, 3)
    assert log_z.sum() == pytest.approx(power * expected, rel=1e-10)


@pytest.mark.parametrize("kind", ["sites", "complete"])
def test_chain_of_power_samples_powered_posterior(kind):
    """Clade and root height of three leaves by enumeration; false alarms: one in 10^4 seeds, with 4 standard errors."""
    X = np.array([[0, 0, 1, 0], [0, 1, 1, 0], [1, 1, 0, 1.0]])
    process = ct.Multinomial(1.0, [[0.5, 0.5]] * 4) if kind == "sites" else ct.OrnsteinUhlenbeck(1.0, 0.5, 0.3, 0.2)
    power = 0.5
    real = exact_posterior.log_likelihoods
    exact_posterior.log_likelihoods = lambda *arguments: power * real(*arguments)
    try:
        truth = exact_posterior.integrals(X, process)
    finally:
        exact_posterior.log_likelihoods = real
    resolved = process.resolve(X)
    tree = without_ties(ct.greedy(X, process).tree, np.random.default_rng(0))
    chain = Chain(X, resolved, tree, np.random.default_rng(0), power=power)
    together, roots = [], []
    for _ in range(4000):
        chain.move(5)
        sample = chain.sample()
        together.append(sorted(sample.children[0].tolist()) == [0, 1])
        roots.append(sample.heights[-1])
    expected = sum(h.mass for h in truth.histories if sorted(h.children[0]) == [0, 1]) / truth.evidence
    root = sum(h.moment for h in truth.histories) / truth.evidence
    for values, true in ((together, expected), (roots, root)):
        batches = np.mean(np.reshape(values, (40, 100)), axis=1)
        assert abs(batches.mean() - true) < 4 * batches.std(ddof=1) / np.sqrt(40)
