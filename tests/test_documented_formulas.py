"""The formulas of docs/mathematics.md, worked out in plain numpy and compared with the library.

Each test says which formulas it is about. All formulas of the page are covered, and the numbers that the code cites exist.
"""

import math
import re
from itertools import combinations, pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.linalg
from scipy import special, stats
from scipy.integrate import quad
from scipy.optimize import minimize_scalar

import coaltree as ct
from coaltree.inference.evidence import Steps, draw_from_prior
from coaltree.inference.kernels.partitions import best_sums
from coaltree.inference.partition import CONCENTRATION, FREEDOM, SHARES_WITHIN, score_nodes
from coaltree.inference.partition_chances import cluster_chances, membership_chances
from coaltree.inference.principal_points import _lost_variance
from coaltree.inference.signals import column_signals
from coaltree.inference.tempering import TemperedChain, heated_powers
from coaltree.predict.calibration import LOG_CONCENTRATIONS, SPREADS, calibrated_deviate, fit_concentrations
from coaltree.predict.mixtures import LEVELS
from coaltree.predict.pooling import pool_analyses
from coaltree.predict.predictor import Predictor
from coaltree.process.base import WeightedTrees
from coaltree.process.covariance_sampling import CovariancePrior, draw_inverse_wishart
from coaltree.process.kernels.components import draw_missing, send_up
from coaltree.process.multinomial import _best_equilibria, _best_noise, _best_rates, _draw_noise, expect_redraws
from coaltree.process.normal_scores import WIDTHS, Marginal
from coaltree.process.predictions import Predictions
from coaltree.process.site_rates import category_rates
from coaltree.tree.coalescent import Survival, pair_counts

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "mathematics.md").read_text()
NUMBERS = re.findall(r"\\tag\{([\d.]+)\}", PAGE)
covered: list[str] = []


def formula(*numbers):
    covered.extend(numbers)
    return lambda test: test


def log_normal(x, mean, variance):
    return -0.5 * (np.log(2 * np.pi * variance) + (x - mean) ** 2 / variance)


TREE = ct.Tree([[0, 1], [2, 3], [4, 5]], [0.0, 0.0, 0.0, 0.0, 0.3, 0.5, 1.2])
X = np.array([[0.1, 2.0], [0.4, 1.0], [-1.5, 0.3], [-1.0, -0.2]])
CODES = np.array([[0.0], [0.0], [1.0], [2.0]])
Q = np.array([0.5, 0.3, 0.2])


@formula("1.1", "1.2")
def test_coalescent_prior_formula():
    assert pair_counts(4).tolist() == [6, 3, 1]
    assert ct.log_prior(TREE) == pytest.approx(-(6 * 0.3 + 3 * 0.2 + 1 * 0.7))


@formula("1.3", "1.4")
def test_expected_height_and_length_formula():
    """Six standard errors: a false alarm in less than one run of a hundred million."""
    n = 10
    trees = [ct.simulate_tree(n, random_state=seed) for seed in range(4000)]
    for value, expected in (
        ([tree.heights[-1] for tree in trees], 2 * (1 - 1 / n)),
        ([tree.total_length for tree in trees], 2 * sum(1 / k for k in range(1, n))),
    ):
        assert abs(np.mean(value) - expected) < 6 * np.std(value) / math.sqrt(len(value))


def climb(tree, leaves, merge):
    """Return messages of all nodes, with their heights, and log Z of every merge."""
    messages, log_z = list(leaves), []
    for k, (left, right) in enumerate(tree.children):
        h = tree.heights[tree.n_leaves + k]
        value, message = merge(messages[left], messages[right], h - tree.heights[left], h - tree.heights[right])
        messages.append(message)
        log_z.append(value)
    return messages, np.array(log_z)


def brownian_merge(left, right, climb_left, climb_right, variance=1.0):
    (y_l, v_l), (y_r, v_r) = left, right
    w_l, w_r = v_l + climb_left, v_r + climb_right
    s = w_l + w_r
    d2 = np.sum((y_l - y_r) ** 2 / variance)
    D = len(y_l)
    log_det = np.sum(np.log(np.broadcast_to(variance, D)))
    v = 1 / (1 / w_l + 1 / w_r)
    return -D / 2 * math.log(2 * math.pi * s) - log_det / 2 - d2 / (2 * s), (v * (y_l / w_l + y_r / w_r), v)


def stationary_merge(left, right, climb_left, climb_right, rate=0.8):
    (a_l, f_l), (a_r, f_r) = left, right
    f_l, f_r = f_l * math.exp(-rate * climb_left), f_r * math.exp(-rate * climb_right)
    rho, d2, m = f_l * f_r, np.sum((a_l - a_r) ** 2), np.sum(a_l * a_r)
    log_z = -len(a_l) / 2 * math.log(1 - rho**2) - d2 * rho**2 / (2 * (1 - rho**2)) + m * rho / (1 + rho)
    tau = f_l**2 / (1 - f_l**2) + f_r**2 / (1 - f_r**2)
    f = math.sqrt(tau / (1 + tau))
    a = (1 - f**2) / f * (f_l * a_l / (1 - f_l**2) + f_r * a_r / (1 - f_r**2))
    return log_z, (a, f)


def multinomial_merge(left, right, climb_left, climb_right, rate=0.7):
    kept_l, kept_r = math.exp(-rate * climb_left), math.exp(-rate * climb_right)
    Z = 1 - kept_l * kept_r * (1 - np.sum(Q * left * right))
    return math.log(Z), (1 - kept_l * (1 - left)) * (1 - kept_r * (1 - right)) / Z


def leaf_messages(codes):
    return [np.where(np.arange(3) == code, 1 / Q[int(code)], 0.0) for code in codes]


@formula("2.1", "2.2", "3.1", "3.2", "3.3")
def test_brownian_likelihood_formula():
    variance = np.array([1.5, 0.5])
    _, log_z = climb(TREE, [(x, 0.2) for x in X], lambda *arguments: brownian_merge(*arguments, variance))
    process = ct.Brownian(variance, noise=0.2)
    assert process.log_likelihood(TREE, X) == pytest.approx(log_z.sum())
    assert ct.log_joint(TREE, X, process) == pytest.approx(log_z.sum() + ct.log_prior(TREE))


@formula("4.2", "4.3", "4.4", "4.5", "4.6")
def test_ornstein_uhlenbeck_likelihood_formula():
    mean, variance, noise = np.array([0.2, -0.1]), np.array([1.5, 0.5]), 0.2
    white = (X - mean) / np.sqrt(variance)
    f = 1 / math.sqrt(1 + noise)
    _, log_z = climb(TREE, [(f * x, f) for x in white], stationary_merge)
    leaves = np.sum(log_normal(X, mean, (1 + noise) * variance))
    process = ct.OrnsteinUhlenbeck(0.8, mean, variance, noise)
    assert process.log_likelihood(TREE, X) == pytest.approx(leaves + log_z.sum())


@formula("4.1")
def test_correlation_of_two_rows_formula():
    """The density of two rows is that of a Gaussian with this correlation."""
    tree, kappa, x = ct.Tree([[0, 1]], [0.0, 0.0, 0.6]), 0.8, np.array([0.3, -1.1])
    rho = math.exp(-2 * kappa * 0.6)
    covariance = np.array([[1, rho], [rho, 1]])
    expected = -0.5 * (
        2 * math.log(2 * math.pi) + math.log(np.linalg.det(covariance)) + x @ np.linalg.solve(covariance, x)
    )
    assert ct.OrnsteinUhlenbeck(kappa).log_likelihood(tree, x[:, None]) == pytest.approx(expected)


@formula("5.2", "5.3", "5.4")
def test_mutation_likelihood_formula():
    _, log_z = climb(TREE, leaf_messages(CODES[:, 0]), multinomial_merge)
    leaves = sum(math.log(Q[int(code)]) for code in CODES[:, 0])
    assert ct.Multinomial(0.7, [Q]).log_likelihood(TREE, CODES) == pytest.approx(leaves + log_z.sum())


@formula("5.1")
def test_transition_probability_formula():
    """Of two leaves: ``q_j P(path)_jk``."""
    tree, process = ct.Tree([[0, 1]], [0.0, 0.0, 0.6]), ct.Multinomial(0.7, [Q])
    retention = math.exp(-0.7 * 1.2)
    P = retention * np.eye(3) + (1 - retention) * np.outer(np.ones(3), Q)
    for j, k in ((0, 0), (0, 1), (2, 1)):
        assert process.log_likelihood(tree, [[j], [k]]) == pytest.approx(math.log(Q[j] * P[j, k]))


@formula("2.3")
def test_mixed_likelihood_formula():
    brownian, mutation = ct.Brownian(noise=0.1), ct.Multinomial(0.7, [Q])
    mixed = ct.Mixed((brownian, [0, 1]), (mutation, [2]))
    whole = np.hstack([X, CODES])
    apart = brownian.log_likelihood(TREE, X) + mutation.log_likelihood(TREE, CODES)
    assert mixed.log_likelihood(TREE, whole) == pytest.approx(apart)
    whole[0, 0] = np.nan  # a flat message: as if the column had no such row
    rest = ct.Tree([[1, 2], [0, 3]], [0.0, 0.0, 0.0, 0.5, 1.2])
    assert brownian.log_likelihood(TREE, whole[:, :1]) == pytest.approx(brownian.log_likelihood(rest, X[1:, :1]))


def best_height(objective, lowest):
    optimum = minimize_scalar(
        lambda h: -objective(h), bounds=(lowest, lowest + 20), method="bounded", options={"xatol": 1e-9}
    )
    return optimum.x if objective(optimum.x) > objective(lowest) else lowest


@formula("6.1", "6.2")
def test_brownian_best_height_formula():
    a, b = X[0], X[2]
    D, d2 = 2, np.sum((a - b) ** 2)
    s = (math.sqrt(D**2 + 4 * d2) - D) / 2
    expected = max(0.0, (s - 0.1 - 0.1) / 2)
    result = ct.greedy(np.array([a, b]), ct.Brownian(noise=0.1)).tree.heights[-1]
    assert result == pytest.approx(expected)
    searched = best_height(lambda h: brownian_merge((a, 0.1), (b, 0.1), h, h)[0] - h, 0.0)
    assert result == pytest.approx(searched, abs=1e-6)


@formula("6.3")
def test_mutation_best_height_formula():
    rows = np.array([[0.0, 1.0, 2.0, 0.0], [0.0, 0.0, 2.0, 1.0]])
    S = np.array([np.sum(Q * a * b) for a, b in zip(leaf_messages(rows[0]), leaf_messages(rows[1]), strict=True)])
    u = minimize_scalar(
        lambda u: -(math.log(u) / (2 * 0.7) + np.sum(np.log(1 - (1 - S) * u))), bounds=(1e-9, 1 - 1e-9), method="bounded",
        options={"xatol": 1e-12},
    ).x  # fmt: skip
    result = ct.greedy(rows, ct.Multinomial(0.7, [Q] * 4)).tree.heights[-1]
    assert math.exp(-0.7 * 2 * result) == pytest.approx(u, abs=1e-6)


@formula("7.1", "7.2", "7.3")
@pytest.mark.parametrize("rule", ["rate1", "max-prob", "min-duration"])
def test_greedy_rule_formulas(rule):
    rows = 3 * np.random.default_rng(4).normal(size=(7, 2))  # far apart, so that no best height is cut off
    live = {i: (row, 0.1, 0.0) for i, row in enumerate(rows)}
    children, heights, clock = [], [], 0.0
    while len(live) > 1:
        c = 1.0 if rule == "rate1" else len(live) * (len(live) - 1) / 2
        best = None
        for i, j in combinations(sorted(live), 2):
            (y_i, v_i, h_i), (y_j, v_j, h_j) = live[i], live[j]

            def log_z(h, y_i=y_i, v_i=v_i, h_i=h_i, y_j=y_j, v_j=v_j, h_j=h_j):
                return brownian_merge((y_i, v_i), (y_j, v_j), h - h_i, h - h_j)[0]

            lowest = clock if rule == "max-prob" else max(h_i, h_j)
            h = best_height(lambda h, log_z=log_z, c=c: log_z(h) - c * h, lowest)
            score = log_z(h) - c * (h - clock) if rule == "max-prob" else -h
            if best is None or score > best[0] + 1e-9:
                best = (score, i, j, h)
        _, i, j, h = best
        clock = max(h, clock)
        (y_i, v_i, h_i), (y_j, v_j, h_j) = live.pop(i), live.pop(j)
        _, (y, v) = brownian_merge((y_i, v_i), (y_j, v_j), clock - h_i, clock - h_j)
        live[7 + len(children)] = (y, v, clock)
        children.append({i, j})
        heights.append(clock)
    tree = ct.greedy(rows, ct.Brownian(noise=0.1), rule=rule).tree
    assert [set(pair) for pair in tree.children.tolist()] == children
    np.testing.assert_allclose(tree.merge_heights, heights, atol=1e-5)


@formula("7.4")
def test_zero_height_merge_order_formula():
    """By messages as functions on a grid: with much noise all rows merge at height 0, the most similar first."""
    rows = np.random.default_rng(8).normal(size=6)
    x = np.linspace(-9, 9, 4001)
    equilibrium = np.exp(-0.5 * x**2)
    live = {i: np.exp(-0.5 * (row - x) ** 2 / 4) for i, row in enumerate(rows)}
    children = []
    while len(live) > 1:
        norm = {i: math.sqrt(np.sum(equilibrium * message**2)) for i, message in live.items()}
        cosines = {
            (i, j): np.sum(equilibrium * live[i] * live[j]) / (norm[i] * norm[j]) for i, j in combinations(live, 2)
        }
        i, j = max(cosines, key=cosines.get)
        live[6 + len(children)] = live.pop(i) * live.pop(j)
        children.append({i, j})
    tree = ct.greedy(rows[:, None], ct.OrnsteinUhlenbeck(0.5, noise=4.0)).tree
    assert np.all(tree.heights == 0)
    assert [set(pair) for pair in tree.children.tolist()] == children


THREE_ROWS = [[0.0], [0.4], [-1.0]]


@pytest.fixture(scope="module")
def evidence_of_three_rows():
    """By two integrals."""
    y = np.array(THREE_ROWS)

    def of_pair(pair, other):
        def first(h):
            log_z, (mean, v) = brownian_merge((y[pair[0]], 0.3), (y[pair[1]], 0.3), h, h)

            def second(wait):
                return math.exp(brownian_merge((mean, v), (y[other], 0.3), wait, h + wait)[0] - wait)

            return math.exp(log_z - 3 * h) * quad(second, 0, 60)[0]

        return quad(first, 0, 20)[0]

    return sum(of_pair(*split) for split in (((0, 1), 2), ((0, 2), 1), ((1, 2), 0)))


@formula("8.1", "8.2", "8.3", "8.4", "8.5", "8.6")
@pytest.mark.parametrize("proposal", ["prior-prior", "prior-post", "post-post", "race"])
def test_smc_evidence_formula(proposal, evidence_of_three_rows):
    """Six standard errors: false alarms are out of the question."""
    sample = ct.smc(THREE_ROWS, ct.Brownian(noise=0.3), proposal, 150, n_runs=50, random_state=0, threshold=0.0)
    estimates = np.exp(sample.run_log_evidences)
    assert abs(estimates.mean() - evidence_of_three_rows) < 6 * estimates.std(ddof=1) / math.sqrt(50)


@formula("8.7")
def test_effective_sample_size_formula():
    sample = ct.smc(X, ct.Brownian(noise=0.3), "post-post", 100, threshold=0.0, random_state=0)
    assert sample.ess[-1] == pytest.approx(np.sum(sample.weights) ** 2 / np.sum(sample.weights**2))


@formula("9.1")
def test_belief_formula():
    """At the parent of the first two rows."""
    messages, _ = climb(TREE, [(x, 0.2) for x in X], brownian_merge)
    (y_up, w_up), (y_sibling, v_sibling) = messages[4], messages[5]
    w_down = v_sibling + (1.2 - 0.5) + (1.2 - 0.3)
    v = 1 / (1 / w_up + 1 / w_down)
    states = ct.Beliefs(TREE, X, ct.Brownian(noise=0.2)).at([4], [0.3])
    np.testing.assert_allclose(states.mean[0], v * (y_up / w_up + y_sibling / w_down))
    np.testing.assert_allclose(states.sd[0], math.sqrt(v))


@formula("9.2")
def test_attachment_prior_formula():
    assert Survival(TREE).log_survival(np.array([0.4]))[0] == pytest.approx(-(4 * 0.3 + 3 * 0.1))
    survival = Survival(TREE)
    total = sum(
        quad(lambda h: math.exp(survival.log_survival(np.array([h]))[0]), low, high)[0]
        for low, high in zip(TREE.heights[:-1], TREE.heights[TREE.parents[:-1]], strict=True)
    )
    above = quad(lambda h: math.exp(survival.log_survival(np.array([h]))[0]), 1.2, 60)[0]
    assert total + above == pytest.approx(1.0)


def new_leaf(process, table, node, h):
    """What a new leaf shows that hangs from a point, by a tree that has it as a row without any cell."""
    beliefs = ct.Beliefs(TREE, table, process)
    return next(beliefs.new_leaves(np.array([node]), np.array([h]))), beliefs.at([node], [h])


@formula("9.3", "9.4", "9.5")
def test_new_leaf_cell_formula():
    cells, states = new_leaf(ct.Brownian(2.0, noise=0.2), X, 4, 0.9)
    np.testing.assert_allclose(cells.mean, states.mean)
    np.testing.assert_allclose(cells.sd**2, states.sd**2 + 2.0 * (0.9 + 0.2))
    cells, states = new_leaf(ct.OrnsteinUhlenbeck(0.8, noise=0.2), X, 4, 0.9)
    retention = math.exp(-0.8 * 0.9)
    np.testing.assert_allclose(cells.mean, retention * states.mean)
    np.testing.assert_allclose(cells.sd**2, retention**2 * states.sd**2 + 1 - retention**2 + 0.2)
    cells, states = new_leaf(ct.Multinomial(0.7, [Q]), CODES, 4, 0.9)
    retention = math.exp(-0.7 * 0.9)
    np.testing.assert_allclose(cells.probability, retention * states.probability + (1 - retention) * Q)


@formula("9.6", "9.7")
def test_predictive_density_and_missing_cell_formulas():
    """By integrals along the branches; the library takes a few points of each."""
    process, row = ct.Brownian(noise=0.2), np.array([[0.2, np.nan]])
    beliefs, survival = ct.Beliefs(TREE, X, process), Survival(TREE)
    tops = np.append(TREE.heights[TREE.parents[:-1]], 40.0)
    density, first, second = 0.0, 0.0, 0.0
    for node, (low, high) in enumerate(zip(TREE.heights, tops, strict=True)):
        x, w = np.polynomial.legendre.leggauss(40)
        for edge, end in ((low, min(high, low + 2)), (min(high, low + 2), high)):
            h = edge + (end - edge) * (1 + x) / 2
            states = Predictions.stack(list(beliefs.new_leaves(np.full(40, node), h)))
            mass = w * (end - edge) / 2 * np.exp(survival.log_survival(h))
            mass = mass * np.exp(log_normal(row[0, 0], states.mean[:, 0], states.sd[:, 0] ** 2))
            density += mass.sum()
            first += mass @ states.mean[:, 1]
            second += mass @ (states.sd[:, 1] ** 2 + states.mean[:, 1] ** 2)
    predictor = Predictor.from_trees([TREE], np.ones(1), X, process)
    assert math.exp(predictor.log_density(row)[0]) == pytest.approx(density, rel=0.01)
    cells = predictor.cells(row)
    mean = first / density
    assert cells.mean[0, 1] == pytest.approx(mean, abs=0.02)
    assert cells.sd[0, 1] == pytest.approx(math.sqrt(second / density - mean**2), rel=0.02)


@formula("9.9")
def test_missing_cell_quantile_formula():
    """The distribution function at the quantiles, by components at the library's own points; scores in test_mixtures."""
    row = np.array([[0.2, np.nan]])
    predictor = Predictor.from_trees([TREE], np.ones(1), X, ct.Brownian(noise=0.2))
    groups = predictor.groups
    _, (posterior,) = groups.map_blocks(row, 1, lambda posterior: posterior)
    points = groups.predict_at(np.arange(len(groups.points.nodes)))
    shares = np.concatenate(
        [share[: b - a] for share, a, b in zip(posterior.shares, groups.starts, groups.stops, strict=True)]
    )
    quantiles = predictor.cells(row, True).quantiles
    for level, x in zip(LEVELS, quantiles.values[quantiles.at[0, 1]], strict=True):
        assert shares @ special.ndtr((x - points.mean[:, 1]) / points.sd[:, 1]) == pytest.approx(level, abs=5e-4)


@formula("9.10")
def test_calibrated_levels():
    levels = [stats.beta(c, c).rvs(n, random_state=n) for c, n in ((2.5, 400), (1.1, 300))]
    grid, means, spreads = LOG_CONCENTRATIONS, LOG_CONCENTRATIONS, SPREADS
    likelihood = 0.5 * np.array([[stats.beta(c, c).logpdf(own).sum() for c in np.exp(grid)] for own in levels])

    def weights(mean, spread):
        prior = stats.norm(mean, spread).pdf(grid)
        joint = prior / prior.sum() * np.exp(likelihood - likelihood.max(axis=1, keepdims=True))
        return joint.sum(axis=1), joint @ grid / joint.sum(axis=1)

    def log_density(mean, spread):
        hyper = stats.norm(0, 0.2).logpdf(mean) + stats.norm(math.log(0.1), 1).logpdf(math.log(spread))
        return hyper + np.log(weights(mean, spread)[0]).sum()

    _, mean, spread = max((log_density(m, s), m, s) for m in means for s in spreads)
    found = fit_concentrations(levels)
    np.testing.assert_allclose(found, np.exp(weights(mean, spread)[1]))
    deviate = calibrated_deviate(stats.norm.ppf(0.05), found[0])
    assert special.betainc(found[0], found[0], stats.norm.cdf(deviate)) == pytest.approx(0.05)
    assert calibrated_deviate(stats.norm.ppf(0.95), found[0]) == pytest.approx(-deviate)


@formula("9.11")
def test_variance_of_pooled_estimates():
    rng = np.random.default_rng(1)
    q, u = rng.normal(size=6), rng.random(6)
    answers = [SimpleNamespace(params=[a], bse=[math.sqrt(b)], df_resid=30.0) for a, b in zip(q, u, strict=True)]
    pooled = pool_analyses(lambda answer: answer, answers, 6)
    total = np.mean(u) + (1 + 1 / 6) * np.sum((q - q.mean()) ** 2) / 5
    share = (1 + 1 / 6) * np.sum((q - q.mean()) ** 2) / 5 / total
    assert pooled.std_error[0] ** 2 == pytest.approx(total)
    assert 1 / pooled.df[0] == pytest.approx(share**2 / 5 + 33 / (31 * 30 * (1 - share)))


@formula("9.8")
def test_normal_score_bandwidth_formula():
    x = np.sort(np.random.default_rng(0).exponential(size=60))
    marginal = Marginal.fit(x)
    mu, sigma, distances = x.mean(), x.std(), np.sort(np.abs(x[:, None] - x), axis=1)

    def score(at, k, factor, a):
        h = factor * distances[:, k]
        kernels = stats.norm.cdf((at[:, None] - x) / h).mean(axis=1)
        return stats.norm.ppf(a * stats.norm.cdf((at - mu) / sigma) + (1 - a) * kernels)

    def left_out(k, factor, a):
        h = factor * distances[:, k]
        density = stats.norm.pdf(x[:, None], x, h)
        np.fill_diagonal(density, 0.0)
        return np.log(a * stats.norm.pdf(x, mu, sigma) + (1 - a) * density.sum(axis=1) / (len(x) - 1)).sum()

    shares = np.linspace(0.02, 0.98, 97)
    best, k, factor = max((left_out(k, factor, a), k, factor) for k, factor in WIDTHS for a in shares)
    inner = marginal.knots[(marginal.knots > x[0]) & (marginal.knots < x[-1])]
    optimum = minimize_scalar(
        lambda a: np.abs(marginal.apply(inner) - score(inner, k, factor, a)).max(), bounds=(0.02, 0.98)
    )
    assert optimum.fun < 1e-3
    assert left_out(k, factor, optimum.x) > best - 0.3  # of a sum over 60 cells: the search for a stops early


@formula("10.1", "10.2")
def test_merge_ratio_formula():
    rows = np.random.default_rng(1).normal(size=(6, 2)) * [1.0, 3.0]
    variance = np.array([0.7, 2.0])
    result = ct.greedy(rows, ct.Brownian(variance, noise=0.3))
    leaves = [(row, 0.3) for row in rows]
    messages, log_z = climb(result.tree, leaves, lambda *arguments: brownian_merge(*arguments, variance))
    spread = np.mean(rows.var(axis=0) / variance)
    root = [np.sum(log_normal(y, rows.mean(axis=0), (v + spread) * variance)) for y, v in messages]
    expected = [log_z[k] + root[6 + k] - root[i] - root[j] for k, (i, j) in enumerate(result.tree.children)]
    np.testing.assert_allclose(result.log_ratios, expected)
    stationary = ct.greedy(rows, ct.OrnsteinUhlenbeck(0.8, noise=0.3))
    f = 1 / math.sqrt(1.3)
    _, log_z = climb(stationary.tree, [(f * row, f) for row in rows], stationary_merge)
    np.testing.assert_allclose(stationary.log_ratios, log_z)


@formula("10.3", "10.4", "10.5", "10.6")
def test_evidence_of_partition_formulas():
    points, share = X - X.mean(axis=0), 4  # of the shares of variance within clusters
    log_scores = score_nodes(TREE, points, np.zeros_like(points))
    r, nu, s = 2, 2 + FREEDOM, float(SHARES_WITHIN[share])
    kappa, psi = s / (1 - s), (nu - r - 1) * s * np.mean(points**2) * np.eye(r)
    for node in range(TREE.n_nodes):
        rows = points[TREE.leaves_below(node)]
        n, mean = len(rows), rows.mean(axis=0)
        C = (rows - mean).T @ (rows - mean)
        expected = math.log(CONCENTRATION) + math.lgamma(n)
        expected += special.multigammaln((nu + n) / 2, r) - special.multigammaln(nu / 2, r)
        expected += -n * r / 2 * math.log(math.pi) + r / 2 * math.log(kappa / (kappa + n))
        expected += nu / 2 * math.log(np.linalg.det(psi))
        expected -= (nu + n) / 2 * math.log(np.linalg.det(psi + C + kappa * n / (kappa + n) * np.outer(mean, mean)))
        if n == 1:  # which may also be on its own
            alone = stats.multivariate_t.logpdf(rows[0], np.zeros(r), np.mean(points**2) * np.eye(r), 1)
            expected = np.logaddexp(expected, math.log(CONCENTRATION) + alone)
        assert log_scores[node, share] == pytest.approx(expected)
    S = np.exp(log_scores[:, share] - np.log(np.exp(log_scores[:, share]).max()))
    T, best = S.copy(), np.log(S)
    for node, (a, b) in enumerate(TREE.children.tolist(), start=4):
        T[node] += T[a] * T[b]
        best[node] = max(best[node], best[a] + best[b])
    found = np.empty((7, 1))
    best_sums(TREE.children, np.log(S)[:, None], found)
    np.testing.assert_allclose(found[:, 0], best)
    apart = 1 - S / T
    P = (
        S
        / T
        * np.array(
            [apart[4] * apart[6], apart[4] * apart[6], apart[5] * apart[6], apart[5] * apart[6], *[apart[6]] * 2, 1]
        )
    )
    np.testing.assert_allclose(cluster_chances(TREE, np.log(S)), P)
    together = membership_chances(TREE, np.log(S), np.arange(4))
    np.testing.assert_allclose(together[0], [1, P[4] + P[6], P[6], P[6]])


@formula("10.7")
def test_variance_that_equal_cells_lack_formula():
    """By the variance of a truncated normal distribution."""
    actual, z = _lost_variance(np.repeat([1.0, 2.0, 7.0], [2, 5, 3])), stats.norm.ppf([0, 0.2, 0.7, 1])
    expected = [stats.truncnorm(low, high).var() for low, high in pairwise(z)]
    np.testing.assert_allclose(actual, np.repeat(expected, [2, 5, 3]), atol=1e-7)
    p, phi = 0.5, stats.norm.pdf(z[1:3])
    formula = 1 + (z[1] * phi[0] - z[2] * phi[1]) / p - ((phi[0] - phi[1]) / p) ** 2
    assert actual[4] == pytest.approx(formula)


@formula("10.8", "10.9", "10.10")
def test_evidence_of_columns_formulas():
    """Of numbers by the score of clusters in one dimension, of categories by gamma functions, of a row by their ratios."""
    model = ct.CoalescentClustering(n_clusters=2).fit(
        [[x, "abc"[int(code)]] for (x, _), (code,) in zip(X, CODES, strict=True)]
    )
    assert model.labels_.tolist() == [0, 0, 1, 1]
    z, q = (X[:, 0] - X[:, 0].mean()) / X[:, 0].std(), np.array([0.5, 0.25, 0.25])

    def log_p_of_numbers(rows):  # for each share s
        pairs = ct.Tree(TREE.children, TREE.heights)
        order = [*rows, *np.setdiff1d(range(4), rows)]
        node = {1: 0, 2: 4, 4: 6}[len(rows)]
        scores = score_nodes(pairs, z[order][:, None], np.zeros((4, 1)))[node]
        return scores - math.log(CONCENTRATION) - math.lgamma(len(rows))

    def log_p_of_categories(rows):
        kappa, counts = (
            (SHARES_WITHIN / (1 - SHARES_WITHIN))[:, None],
            np.bincount(CODES[rows, 0].astype(int), minlength=3),
        )
        terms = special.gammaln(kappa * q + counts) - special.gammaln(kappa * q)
        return terms.sum(axis=1) + special.gammaln(kappa[:, 0]) - special.gammaln(kappa[:, 0] + len(rows))

    profile, why = model.profile().set_index(["column", "cluster"]), model.explain(1).set_index("column")
    total = math.log(1 / 2)
    for column, log_p in (("x0", log_p_of_numbers), ("x1", log_p_of_categories)):
        share = int(np.argmax(log_p([0, 1]) + log_p([2, 3])))
        evidence = (log_p([0, 1]) + log_p([2, 3]) - log_p([0, 1, 2, 3]))[share]
        assert profile.evidence[column, 0] == pytest.approx(evidence)
        kappa = SHARES_WITHIN[share] / (1 - SHARES_WITHIN[share])
        if column == "x1":  # that of the third row is one of two
            ratio = math.log((1 + kappa * 0.5) / (1 + kappa)) - math.log(kappa * 0.5 / (2 + kappa))
        else:
            ratio = log_prediction(z, [0], share) - log_prediction(z, [2, 3], share)
        assert why.log_ratio[column] == pytest.approx(ratio)
        total += ratio
    assert why.log_ratio.sum() == pytest.approx(total)


def log_prediction(z, rows, share):
    """Return the log density of the second number given others, of a t distribution."""
    s, n = float(SHARES_WITHIN[share]), len(rows)
    kappa, nu = s / (1 - s), 1 + FREEDOM
    mean = z[rows].mean()
    scale = (nu - 2) * s + ((z[rows] - mean) ** 2).sum() + kappa * n / (kappa + n) * mean**2
    width = math.sqrt(scale / (nu + n) * (1 + 1 / (kappa + n)))
    return stats.t.logpdf(z[1], nu + n, n * mean / (kappa + n), width)


@formula("10.11", "10.12")
def test_signal_formulas():
    """By permutations of the column, which has the level of the others in a third of the rows."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, [[3, 3, 2, 4]], (90, 4))
    codes[:30, 1] = codes[:30, 0]
    codes[:30, 2] = np.minimum(codes[:30, 0], 1)

    def chi(a, b):
        return stats.chi2_contingency(stats.contingency.crosstab(a, b).count, correction=False).statistic

    n, f = 90, np.array([2, 2, 1, 3])
    others = [1, 2, 3]
    T = sum(chi(codes[:, 0], codes[:, j]) for j in others)
    between = sum(n * f[i] if i == j else chi(codes[:, i], codes[:, j]) for i in others for j in others)
    E, V = f[0] * f[1:].sum(), 2 * f[0] / n * between
    permuted = [sum(chi(column, codes[:, j]) for j in others) for column in rng.permuted(codes[:, [0] * 800].T, axis=1)]
    assert np.mean(permuted) == pytest.approx(E, abs=4.5 * np.sqrt(V / 800) + E / n)
    assert np.var(permuted) == pytest.approx(V, rel=0.25)
    above = np.mean(permuted > E + 1.645 * np.sqrt(V))  # 5 to 8 %: the statistic is skewed; five standard errors
    assert 0.02 < above < 0.12
    found = column_signals(codes.astype(float), 0)
    assert found.signal[0] == pytest.approx(np.sqrt((T - E) / np.sqrt(n * f[0] * between)), rel=1e-5)


@formula("11.1")
def test_best_variance_formula():
    squares = np.zeros(2)

    def merge(left, right, climb_left, climb_right):
        squares[:] += (left[0] - right[0]) ** 2 / (left[1] + right[1] + climb_left + climb_right)
        return brownian_merge(left, right, climb_left, climb_right)

    climb(TREE, [(x, 0.2) for x in X], merge)
    expected = (X.var(axis=0) / 1.1 + squares / 2) / (0.1 + 3 / 2)
    result = ct.Brownian([1.0, 1.0], noise=0.2).fit(WeightedTrees([TREE], np.ones(1), X), True)
    np.testing.assert_allclose(result.variance, expected)


@formula("11.2", "11.3")
def test_mutation_step_formula():
    process = ct.Multinomial([0.7], [Q])
    actual = expect_redraws(process, WeightedTrees([TREE], np.ones(1), CODES))
    lengths, r = actual.lengths, actual.redraws[0]

    def objective(rate):
        log_posterior = np.sum(r * np.log(-np.expm1(-rate * lengths)) - (1 - r) * rate * lengths)
        return log_posterior + 0.1 * math.log(rate) - rate / 1.1

    best = minimize_scalar(lambda x: -objective(math.exp(x)), bounds=(-6, 6), method="bounded", options={"xatol": 1e-9})
    assert _best_rates(process, actual)[0] == pytest.approx(math.exp(best.x), rel=1e-5)
    expected = (actual.draws + 1 / 3) / (actual.draws.sum() + 1)
    np.testing.assert_allclose(_best_equilibria(process, actual)[0], expected)


@formula("12.1", "12.2", "12.3")
def test_tree_score_formulas():
    tree = ct.simulate_tree(12, random_state=3)
    classes = np.random.default_rng(0).integers(0, 3, 12)
    below = [{leaf} for leaf in range(12)]
    for left, right in tree.children.tolist():
        below.append(below[left] | below[right])

    def smallest(i, j):
        return min((leaves for leaves in below if {i, j} <= leaves), key=len)

    shares = [
        np.mean([classes[k] == classes[i] for k in smallest(i, j)])
        for i, j in combinations(range(12), 2)
        if classes[i] == classes[j]
    ]
    assert ct.metrics.dendrogram_purity(tree, classes) == pytest.approx(np.mean(shares))
    pure = sum(len({classes[k] for k in leaves}) == 1 for leaves in below[12:])
    assert ct.metrics.subtree_score(tree, classes) == pytest.approx(pure / (12 - len(set(classes))))
    credit = 0.0
    for leaf in range(12):
        (sibling,) = (leaves - {leaf} for leaves in [min((b for b in below[12:] if leaf in b), key=len)])
        counts = np.bincount(classes[sorted(sibling)], minlength=3)
        credit += (counts[classes[leaf]] == counts.max()) / np.sum(counts == counts.max())
    assert ct.metrics.leave_one_out_accuracy(tree, classes) == pytest.approx(credit / 12)


@formula("13.1")
def test_regraft_density_formula():
    """A leaf attached at two places: the densities are proportional to those of the whole trees."""
    low = ct.Tree(
        [[0, 1], [2, 3], [4, 5]], [0.0, 0.0, 0.0, 0.0, 0.3, 0.5, 1.2]
    )  # leaf 0 on the branch of leaf 1, at 0.3
    high = ct.Tree([[2, 3], [1, 4], [0, 5]], [0.0, 0.0, 0.0, 0.0, 0.5, 1.2, 1.9])  # above the root of the rest, at 1.9
    process = ct.Brownian(1.0, 0.1)
    log_z = [process.log_likelihood(tree, X) for tree in (low, high)]  # but for what both have in common
    waiting = [3 * 0.3, 3 * 0.5 + 2 * (1.2 - 0.5) + 1 * (1.9 - 1.2)]
    difference = (log_z[1] - waiting[1]) - (log_z[0] - waiting[0])
    assert ct.log_joint(high, X, process) - ct.log_joint(low, X, process) == pytest.approx(difference)


@formula("13.2")
def test_independent_proposal_acceptance_formula():
    """Four places in clades of two sizes, as seen from a subtree m generations below the clade that is chosen."""
    f, g, m, q = np.array([0.5, 0.2, 0.2, 0.1]), np.array([0.1, 0.4, 0.3, 0.2]), np.array([1, 2, 2, 3]), 0.6
    accepted = np.minimum(1, f[None, :] * g[:, None] / (f[:, None] * g[None, :]) * q ** (m[None, :] - m[:, None]))
    moves = q ** m[:, None] * g[None, :] * accepted  # the clade is chosen, then a place within it
    flow = f[:, None] * moves
    np.testing.assert_allclose(flow, flow.T, rtol=1e-12)


@formula("13.13")
def test_other_branch_proposals_satisfy_detailed_balance():
    """Six places on three branches."""
    branch = np.array([0, 0, 1, 1, 1, 2])
    f, g = np.array([0.3, 0.3, 0.1, 0.1, 0.1, 0.1]), np.array([0.1, 0.3, 0.2, 0.1, 0.1, 0.2])
    others = np.array([g[branch != b].sum() for b in branch])
    ratio = f[None, :] * g[:, None] / (f[:, None] * g[None, :]) * others[:, None] / others[None, :]
    moves = np.where(branch[:, None] != branch, g[None, :] / others[:, None], 0.0) * np.minimum(1, ratio)
    flow = f[:, None] * moves
    assert np.count_nonzero(flow) == 36 - (4 + 9 + 1)
    np.testing.assert_allclose(flow, flow.T, rtol=1e-12)


@formula("13.3")
def test_scaling_jacobian_formula():
    """The Jacobian of the map from heights and factor to new heights and the reverse factor, by differences."""
    heights, r, step = np.array([0.3, 0.5, 1.2]), 1.7, 1e-6

    def round_trip(point):
        return np.append(point[:-1] * point[-1], 1 / point[-1])

    point = np.append(heights, r)
    derivative = [(round_trip(point + step * e) - round_trip(point - step * e)) / (2 * step) for e in np.eye(4)]
    density = 1 / point[-1], 1 / round_trip(point)[-1]  # of a factor that is uniform in its logarithm
    factor = abs(np.linalg.det(derivative)) * density[1] / density[0]
    assert factor == pytest.approx(r**3, rel=1e-6)


def _log_gamma_density(x, shape, rate):
    return (shape - 1) * np.log(x) - rate * x


@formula("13.4")
def test_precision_posterior_formula():
    """Prior times normal densities of the contrasts is in proportion to the Gamma density, at any precision."""
    gaps, spans, s = np.array([0.3, -1.2, 0.7]), np.array([0.5, 2.0, 1.1]), 1.7
    precision = np.array([0.1, 0.5, 1.3, 4.0])
    prior = 0.1 * np.log(precision * s) - precision * s / 1.1  # of the precision in the column's own units, section 11
    known = sum(stats.norm.logpdf(u, scale=np.sqrt(v / precision)) for u, v in zip(gaps, spans, strict=True))
    log_posterior = _log_gamma_density(precision, 1.1 + 3 / 2, s / 1.1 + 0.5 * np.sum(gaps**2 / spans))
    np.testing.assert_allclose(np.diff(prior + known), np.diff(log_posterior))


@formula("13.5")
def test_mean_posterior_formula():
    r, v, variance, middle, s = 0.4, 0.7, 1.3, -0.2, 2.1
    mean = np.array([-1.0, 0.0, 0.3, 2.0])
    both = stats.norm.logpdf(r, mean, np.sqrt(variance * v)) + stats.norm.logpdf(mean, middle, 10 * np.sqrt(s))
    w = 1 / (variance * v) + 1 / (100 * s)
    log_posterior = stats.norm.logpdf(mean, (r / (variance * v) + middle / (100 * s)) / w, np.sqrt(1 / w))
    np.testing.assert_allclose(np.diff(both), np.diff(log_posterior))


@formula("13.6")
def test_rate_and_equilibrium_posterior_formulas():
    """A Poisson number of draws on each branch, of which the last one is a state at equilibrium."""
    lengths, counts, draws = np.array([0.3, 1.2, 0.7]), np.array([0, 2, 1]), np.array([2, 1, 0])
    rate = np.array([0.2, 1.0, 3.0])
    both = 0.1 * np.log(rate) - rate / 1.1
    both = both + sum(stats.poisson.logpmf(k, rate * length) for k, length in zip(counts, lengths, strict=True))
    log_posterior = _log_gamma_density(rate, 1.1 + counts.sum(), 1 / 1.1 + lengths.sum())
    np.testing.assert_allclose(np.diff(both), np.diff(log_posterior))
    shares = np.array([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]])
    both = np.mean(np.log(shares), axis=1) + np.log(shares) @ draws  # the prior of section 11, and the draws
    log_posterior = [stats.dirichlet.logpdf(q, 1 + 1 / 3 + draws) for q in shares]
    np.testing.assert_allclose(np.diff(both), np.diff(log_posterior))


@formula("13.7")
def test_clock_move_jacobian_formula():
    """Densities of tree and parameters after scaling by c, and the Jacobian of the scaling, by differences."""
    tree, process, log_c, step = (
        ct.simulate_tree(5, random_state=0),
        ct.Multinomial([0.5, 2.0], [[0.5, 0.5]] * 2),
        0.4,
        1e-6,
    )
    start = np.concatenate([tree.merge_heights, process.rate])

    def move_tree(point):
        return np.concatenate([point[:4] * np.exp(log_c), point[4:] / np.exp(log_c)])

    derivative = [(move_tree(start + step * e) - move_tree(start - step * e)) / (2 * step) for e in np.eye(6)]
    c, n, m = np.exp(log_c), 5, -2
    volume = np.log(abs(np.linalg.det(derivative)))
    assert volume == pytest.approx((n - 1 + m) * log_c, rel=1e-6)
    high = ct.Tree(tree.children, np.append(np.zeros(5), c * tree.merge_heights))
    assert ct.log_prior(high) == pytest.approx(c * ct.log_prior(tree))
    X = np.array([[0, 1], [1, 1], [0, 0], [0, 1], [1, 0]], dtype=float)
    slow = ct.Multinomial(process.rate / c, process.equilibrium)
    assert slow.log_likelihood(high, X) == pytest.approx(process.log_likelihood(tree, X))


@formula("5.5")
def test_noisy_leaf_formula():
    """Both leaves of a cherry, by a sum over their states and over whether each cell is a draw of the noise."""
    rate, noise, h = 0.7, 0.3, 0.4
    tree = ct.Tree([[0, 1]], [0.0, 0.0, h])
    retention = np.exp(-2 * rate * h)
    joint = Q[:, None] * (retention * np.eye(3) + (1 - retention) * Q[None])  # of the two leaves' states
    observation_probability = (1 - noise) * np.eye(3) + noise * Q[None]  # state, what is seen
    for a in range(3):
        for b in range(3):
            expected = np.log(observation_probability[:, a] @ joint @ observation_probability[:, b])
            process = ct.Multinomial(rate, [Q], noise)
            assert process.log_likelihood(tree, [[a], [b]]) == pytest.approx(expected)


@formula("5.6")
def test_state_set_leaf_formula():
    """The message of a leaf, and the probability of a set at a cherry as the sum of those of its states."""
    tree = ct.Tree([[0, 1]], [0.0, 0.0, 0.4])
    for noise in (0.0, 0.3):
        process = ct.Multinomial(0.7, [Q], noise)
        for a in range(3):
            for b in range(a):
                code, share = ct.state_set(a, b), Q[a] + Q[b]
                inside = np.isin(np.arange(3), [a, b])
                message = process.columns(np.array([[code]]))[0].message[0]
                assert message == pytest.approx(np.where(inside, (1 - noise) / share, 0.0) + noise)
                assert process.leaf_log_likelihoods(np.array([[code]]))[0] == pytest.approx(np.log(share))
                each = [process.log_likelihood(tree, [[1], [value]]) for value in (a, b)]
                assert process.log_likelihood(tree, [[1], [code]]) == pytest.approx(np.logaddexp(*each))


@formula("5.7")
def test_ascertained_column_formula():
    """The probability of a column of a cherry, given that its cells differ, or that one is not in the first state."""
    tree = ct.Tree([[0, 1]], [0.0, 0.0, 0.4])
    retention = np.exp(-2 * 0.7 * 0.4)
    joint = Q[:, None] * (retention * np.eye(3) + (1 - retention) * Q[None])
    for ascertainment, unrecorded in (("variable", np.trace(joint)), ("present", joint[0, 0])):
        process = ct.Multinomial(0.7, [Q], ascertainment=ascertainment)
        assert process.log_likelihood(tree, [[2], [1]]) == pytest.approx(np.log(joint[2, 1] / (1 - unrecorded)))


@formula("5.8")
def test_gamma_rates_formula():
    """Means of the quarters by integration, and the mixture over them for a column of a cherry."""
    for shape in (0.3, 1.0, 5.0):
        gamma = stats.gamma(shape, scale=1 / shape)
        ends = gamma.ppf(np.arange(5) / 4)
        means = [4 * gamma.expect(lb=low, ub=high) for low, high in pairwise(ends)]
        assert category_rates(shape) == pytest.approx(means, rel=1e-5)
    tree = ct.Tree([[0, 1]], [0.0, 0.0, 0.4])
    retention = np.exp(-2 * 0.7 * 0.4 * category_rates(0.3))
    process = ct.Multinomial(0.7, [Q], gamma_shape=0.3)
    expected = np.log(np.mean(Q[2] * (retention + (1 - retention) * Q[2])))
    assert process.mixture_log_likelihood(tree, [[2], [2]]) == pytest.approx(expected)


@formula("5.9")
def test_exchange_rates_formula():
    """Rates keep the shares, scores are forgotten at the rate, and nothing else is forgotten more slowly."""
    q, rate = np.array([0.1, 0.2, 0.4, 0.25, 0.05]), 0.7
    ends = np.concatenate([[-np.inf], stats.norm.ppf(np.cumsum(q)[:-1]), [np.inf]])
    scores = np.array([stats.norm.expect(lb=low, ub=high, conditional=True) for low, high in pairwise(ends)])
    np.testing.assert_allclose(scores, (stats.norm.pdf(ends[:-1]) - stats.norm.pdf(ends[1:])) / q, atol=1e-7)
    generator = ct.Ordered(rate, [q]).columns(np.zeros((1, 1)))[0].generator[0]
    up = rate * stats.norm.pdf(ends[1:-1]) / np.diff(scores) / q[:-1]
    np.testing.assert_allclose(np.diag(generator, 1), up, rtol=1e-6)
    np.testing.assert_allclose(np.diag(generator, -1), up * q[:-1] / q[1:], rtol=1e-6)
    np.testing.assert_allclose(generator.sum(axis=1), 0, atol=1e-12)
    np.testing.assert_allclose(generator @ scores, -rate * scores, atol=1e-6)
    assert np.sort(np.linalg.eigvals(generator).real)[-3] < -rate


@formula("5.10")
def test_chain_ratio_formula():
    """Eigenvectors of the symmetric form give the transitions, and the likelihood of a cherry."""
    q, h = np.array([0.1, 0.2, 0.4, 0.3]), 0.4
    process = ct.Ordered(0.7, [q])
    generator, root = process.columns(np.zeros((1, 1)))[0].generator[0], np.sqrt(q)
    values, vectors = np.linalg.eigh(root[:, None] * generator / root)
    transition = (vectors * np.exp(values * h)) @ vectors.T * root / root[:, None]
    np.testing.assert_allclose(transition, scipy.linalg.expm(generator * h), atol=1e-12)
    for a, b in ((0, 0), (0, 3), (2, 1)):
        messages = [vectors.T @ (root * (np.arange(4) == k) / q[k]) for k in (a, b)]
        ratio = np.sum(messages[0] * messages[1] * np.exp(values * 2 * h))
        value = process.log_likelihood(ct.Tree([[0, 1]], [0.0, 0.0, h]), [[a], [b]])
        assert value == pytest.approx(np.log(q[a] * q[b] * ratio))


@formula("5.11")
def test_noisy_level_formula():
    q, noise = np.array([0.1, 0.2, 0.4, 0.3]), 0.3
    generator = ct.Ordered(0.7, [q]).columns(np.zeros((1, 1)))[0].generator[0]
    moved = scipy.linalg.expm(generator * -np.log1p(-noise) / 0.7)
    for j in range(4):
        message = ct.Ordered(0.7, [q], noise).columns(np.array([[float(j)]]))[0].message[0]
        np.testing.assert_allclose(message, moved[:, j] / q[j], atol=1e-12)


@formula("13.14")
def test_draws_of_gamma_rates_formula():
    """Means of the log shape and of each category are held to six standard errors of means of batches."""
    process = ct.Multinomial(0.7, [Q] * 3, gamma_shape=1.0).resolve(CODES[:, [0, 0, 0]])
    cells = np.column_stack([CODES[:, 0], [0.0, 0.0, 0.0, 0.0], [0.0, 1.0, 2.0, np.nan]])
    grid = np.linspace(np.log(1e-3), np.log(200), 80)
    one = [ct.Multinomial(0.7, [Q] * 3, gamma_shape=float(np.exp(x))) for x in grid[1:-1]]
    density = np.array([p.mixture_log_likelihood(TREE, cells) - p.gamma_shape for p in one]) + grid[1:-1]
    mass = np.exp(density - density.max())
    mass /= mass.sum()
    slowest = np.zeros(3)
    for share, p in zip(mass, one, strict=True):
        logs = (
            np.array(
                [
                    [ct.Multinomial(0.7 * r, [Q]).log_likelihood(TREE, cells[:, [d]]) for d in range(3)]
                    for r in category_rates(p.gamma_shape)
                ]
            )
            if share > 1e-4
            else np.zeros((4, 3))
        )
        slowest += share * np.exp(logs - special.logsumexp(logs, axis=0))[0]
    sampler, rng, draws = process.sampler(cells, True), np.random.default_rng(0), []
    for _ in range(1_600):
        process = sampler._draw_site_rates(process, process.gamma_shape, TREE, rng)
        least = category_rates(process.gamma_shape)[0]
        draws.append([np.log(process.gamma_shape), *(process.site_rate == least)])
    batches = np.reshape(draws, (40, -1, 4)).mean(axis=1)
    errors = batches.std(axis=0, ddof=1) / np.sqrt(40)
    assert np.all(np.abs(batches.mean(axis=0) - [mass @ grid[1:-1], *slowest]) < 6 * errors + 5e-3)


@formula("13.11")
def test_unrecorded_columns_formula():
    """The sum over their numbers; and the draws, whose mean and variance are held to six standard errors."""
    process = ct.Multinomial(0.7, [Q] * 4, ascertainment="variable")
    unseen = process.unseen_columns(np.tile([[0.0], [1.0]], 4))
    children, heights = np.array([[0, 1]]), np.array([0.0, 0.0, 0.4])
    P, (V,) = unseen.probabilities(children, heights)
    assert pytest.approx(1 - P.sum()) == V
    numbers = np.indices((60, 60, 60)).reshape(3, -1)
    logs = special.gammaln(4 + numbers.sum(axis=0)) - special.gammaln(4) - special.gammaln(1 + numbers).sum(axis=0)
    assert np.exp(logs + np.log(P) @ numbers).sum() == pytest.approx(V**-4, rel=1e-6)
    rng = np.random.default_rng(0)
    draws = np.array([unseen.draw_counts(children, heights, rng) for _ in range(20_000)])
    mean, variance = 4 * P / V, 4 * P / V * (1 + P / V)  # negative binomial
    assert np.all(np.abs(draws.mean(axis=0) - mean) < 6 * np.sqrt(variance / 20_000))
    assert draws.var(axis=0) == pytest.approx(variance, rel=0.1)


@formula("13.12")
def test_heated_chain_exchange_formula():
    """Detailed balance of the exchange, and its frequency among 2,000 attempts; false alarms in less than one in a million."""
    powers = np.append(1.0, heated_powers(5, 2))
    assert powers == pytest.approx(1 / (1 + 2 * np.arange(3) / np.sqrt(4)))
    X, process = np.array([[0.0], [0.3], [1.0], [1.5], [4.0]]), ct.Brownian(1.0, 0.1)
    rngs = [np.random.default_rng(k) for k in range(2)]
    chain = TemperedChain(X, process, ct.simulate_tree(5, 0), rngs)
    hotter = chain.members()[1]
    best = ct.greedy(X, process).tree
    trees = {"T": best, "S": ct.Tree(best.children, 2 * best.heights)}
    log_likelihood = {name: process.log_likelihood(tree, X) for name, tree in trees.items()}
    b, c = powers[:2]
    accepted = {}
    for value, other in (("T", "S"), ("S", "T")):
        probability = min(1.0, np.exp((log_likelihood[other] - log_likelihood[value]) * (b - c)))
        accepted[value, other] = probability
        count = 0
        for _ in range(2000):
            chain.start_at(trees[value], rngs[0])
            hotter.start_at(trees[other], rngs[1])
            chain._propose_exchange(chain, hotter)
            count += chain.tree() == trees[other]
        assert abs(count / 2000 - probability) <= 5 * np.sqrt(probability * (1 - probability) / 2000)
    assert 0.02 < min(accepted.values()) < 0.98
    target = {value: np.exp(b * log_likelihood[value[0]] + c * log_likelihood[value[1]]) for value in accepted}
    first, second = accepted
    assert target[first] * accepted[first] == pytest.approx(target[second] * accepted[second])


@formula("11.4")
def test_noise_step_formula():
    process = ct.Multinomial(1.3, [Q], 0.3)
    actual = expect_redraws(process, WeightedTrees([TREE], np.ones(1), CODES))
    # the noise's draws by brute force: every combination of leaves' states and of who shows whose
    expected = noise_draws_by_enumeration(process, TREE, CODES[:, 0].astype(int))
    assert actual.noise_draws[0] == pytest.approx(expected)
    assert _best_noise(process, actual, CODES) == pytest.approx(expected / (len(CODES) + 4))


def noise_draws_by_enumeration(process, tree, codes):
    """Return the expected number of cells that are draws of the noise: leaves that show their own state have less."""
    q, noise, n = process.equilibrium[0], float(process.noise), len(codes)
    exact = ct.Multinomial(process.rate, process.equilibrium)
    total = draws = 0.0
    for states in np.ndindex(*[len(q)] * n):
        weight = np.exp(exact.log_likelihood(tree, np.array(states, dtype=float)[:, None]))
        by_noise = noise * q[codes]
        observation_probability = by_noise + (1 - noise) * (np.array(states) == codes)
        total += weight * np.prod(observation_probability)
        draws += weight * np.prod(observation_probability) * np.sum(by_noise / observation_probability)
    return draws / total


@formula("13.8")
def test_noise_posterior_formula():
    """The mean of the drawn noise is that of the Beta distribution, within six standard errors: one false alarm in 10^8 runs."""
    observation_probability, observed = np.zeros((1, 40), dtype=bool), np.ones((1, 40), dtype=bool)
    observation_probability[0, :7] = True
    rng = np.random.default_rng(0)
    draws = [float(_draw_noise(np.array(0.2), observation_probability, observed, rng)) for _ in range(4000)]
    beta = stats.beta(1 + 7, 5 + 33)
    assert np.mean(draws) == pytest.approx(beta.mean(), abs=6 * beta.std() / np.sqrt(4000))
    assert stats.kstest(draws, beta.cdf).pvalue > 1e-6


@formula("13.9")
def test_covariance_posterior_formula():
    """Prior times normal densities of the contrasts is in proportion to the inverse Wishart density, for any matrix."""
    rng = np.random.default_rng(0)
    n, width, strength, scales = 4, 2, 3.5, np.array([0.5, 2.0])
    gaps, spans = rng.standard_normal((n, width)), np.array([0.5, 2.0, 1.1, 0.3])
    freedom, scale = strength + width + 1, strength * np.diag(scales)
    assert stats.invwishart(freedom, scale).mean() == pytest.approx(np.diag(scales))
    draws = stats.invwishart(freedom + n, scale + sum(np.outer(u, u) / v for u, v in zip(gaps, spans, strict=True)))
    offsets = []
    for _ in range(4):
        covariance = draws.rvs(random_state=rng)
        both = stats.invwishart.logpdf(covariance, freedom, scale)
        both += sum(stats.multivariate_normal.logpdf(u, cov=v * covariance) for u, v in zip(gaps, spans, strict=True))
        offsets.append(both - draws.logpdf(covariance))
    assert np.ptp(offsets) < 1e-9
    prior = CovariancePrior(scales)
    prior.strength = strength
    actual = prior.draw_covariance(gaps / np.sqrt(spans)[:, None], np.random.default_rng(1))
    again = draw_inverse_wishart(draws.df, draws.scale, np.random.default_rng(1))
    np.testing.assert_allclose(actual, again)
    # a scale, given the matrix: exponential prior times the inverse Wishart density
    s = np.array([0.1, 0.7, 3.0])
    with_scale = [
        stats.invwishart.logpdf(covariance, freedom, strength * np.diag([value, 2.0])) - value / 0.9 for value in s
    ]
    rate = 1 / 0.9 + strength * np.linalg.inv(covariance)[0, 0] / 2
    np.testing.assert_allclose(np.diff(with_scale), np.diff(_log_gamma_density(s, 1 + freedom / 2, rate)))


@formula("13.10")
def test_missing_cells_given_other_rows_formula():
    """On a cherry, by the Gaussian distribution of all cells; and by the kernel, without its normal numbers."""
    rng = np.random.default_rng(0)
    variance, noise = (value @ value.T + 0.1 * np.eye(3) for value in rng.standard_normal((2, 3, 3)))
    rate, height, mean, table = 0.7, 0.4, np.array([0.3, -1.0, 2.0]), rng.standard_normal((2, 3))
    known, missing = [1], [0, 2]  # cells of the first row
    retention = np.exp(-2 * rate * height)
    whole = np.kron([[1, retention], [retention, 1]], variance) + np.kron(np.eye(2), noise)
    parameters = [1, 3, 4, 5]
    gain = np.linalg.solve(whole[np.ix_(parameters, parameters)], whole[np.ix_(parameters, missing)]).T
    expected = gain @ (table - mean).ravel()[parameters]
    covariance = whole[np.ix_(missing, missing)] - gain @ whole[np.ix_(parameters, missing)]

    process = ct.OrnsteinUhlenbeck(rate, mean, variance, noise)
    V, e = process.basis, process.white_noise
    m, w = retention / (1 + e) * (V.T @ (table[1] - mean)), 1 - retention**2 / (1 + e)
    C = np.diag(1 / (w + e))
    A = V[missing] @ C @ V[missing].T
    actual = np.linalg.solve(A, V[missing] @ C @ (m - V[known].T @ (table[0] - mean)[known]))
    np.testing.assert_allclose(actual, expected)
    np.testing.assert_allclose(np.linalg.inv(A), covariance)

    X, basis, tree = table - mean, np.ascontiguousarray(V), ct.Tree([[0, 1]], [0.0, 0.0, height])
    Z, messages, first, columns = X @ basis, np.empty((6, 3, 3)), np.array([0, 2, 2]), np.array(missing)
    stack, stage = np.empty((2, 3), dtype=np.intp)
    send_up(tree.children, tree.heights, rate, Z, e, messages)
    draw_missing(
        *(tree.children, tree.heights, rate, e, basis, first, columns, np.zeros(2)),
        *(messages, X, Z, stack, stage, np.empty((6, 3))),
    )
    np.testing.assert_allclose(X[0, missing], expected)


@formula("14.1", "14.2")
def test_stepping_stone_evidence_formula():
    """Two rows, whose tree has one height: the integrals of all powers by quadrature, and the sum as it is coded."""
    process = ct.Brownian(0.8, 0.1)

    def likelihood(height):
        return math.exp(process.log_likelihood(ct.Tree([[0, 1]], [0.0, 0.0, height]), X[:2]))

    powers = [0.0, 0.3, 1.0]
    constants = [quad(lambda h, b=b: math.exp(-h) * likelihood(h) ** b, 0, np.inf)[0] for b in powers]
    for (low, high), (z, z_next) in zip(pairwise(powers), pairwise(constants), strict=True):
        mean = quad(
            lambda h, b=low, c=high, z=z: math.exp(-h) * likelihood(h) ** b / z * likelihood(h) ** (c - b), 0, np.inf
        )
        assert mean[0] == pytest.approx(z_next / z)
    sample = ct.evidence(X[:2], process, 2, n_chains=3, n_samples=5, powers=powers, random_state=0)
    trees = draw_from_prior(X[:2], process, 1, 5)
    weights = np.array([likelihood(h) for h in trees.heights[:, 0]]) ** 0.3
    steps = Steps.empty(1, 1)
    steps.add(0, 0, trees, 0.0, 0.3)
    assert steps.log_ratios[0, 0] == pytest.approx(math.log(weights.mean()))
    np.testing.assert_allclose(sample.run_log_evidences, sample.log_ratios.sum(axis=1))


@formula("14.3")
def test_powers_of_likelihoods_at_gamma_rates():
    """Weights of samples at power 0.2 for power 0.7, from the likelihoods of two columns in each category."""
    process = ct.Multinomial(0.8, [[0.3, 0.7]] * 2, gamma_shape=0.6)
    codes = np.array([[0.0, 1.0], [1.0, 1.0], [0.0, 1.0]])
    resolved = process.resolve(codes)
    trees = draw_from_prior(codes, resolved, 1, 5)
    for k, (children, heights) in enumerate(zip(trees.children, trees.heights, strict=True)):
        tree = ct.Tree(children, [0.0] * 3 + heights.tolist())
        given = [
            [
                ct.Multinomial(0.8 * rate, [[0.3, 0.7]]).log_likelihood(tree, codes[:, [d]])
                for rate in category_rates(0.6)
            ]
            for d in range(2)
        ]
        powers = [np.prod(np.mean(np.exp(b * np.array(given)), axis=1)) for b in (0.2, 0.7)]
        found = trees.log_densities(0.7)[k] - trees.log_densities(0.2)[k]
        assert found == pytest.approx(math.log(powers[1] / powers[0]))
    np.testing.assert_allclose(trees.log_densities(0.0), 0.0, atol=1e-12)


def test_formulas_are_numbered_in_order():
    assert len(NUMBERS) == len(set(NUMBERS))
    assert sorted(NUMBERS, key=lambda number: [int(part) for part in number.split(".")]) == NUMBERS
    assert sorted(covered) == sorted(NUMBERS)
    for number in NUMBERS:  # of the section that they stand in
        before = PAGE[: PAGE.index(f"\\tag{{{number}}}")]
        assert re.findall(r"^## (\d+) ", before, re.MULTILINE)[-1] == number.split(".")[0]


def test_cited_formulas_are_documented():
    cited = {
        number
        for module in (ROOT / "src").rglob("*.py")
        for number in re.findall(r"\beq\.\s+\((\d+\.\d+)\)", module.read_text())
    }
    assert len(cited) > 20
    assert cited <= set(NUMBERS)
