"""The Ornstein-Uhlenbeck process, against dense covariance matrices, slow searches and enumeration."""

import warnings

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import coaltree as ct
import exact_posterior
import reference
from coaltree.errors import InputError, InputWarning
from coaltree.inference.kernels.heights import best_path
from coaltree.process.base import merge_log_likelihoods
from coaltree.process.kernels import messages as op
from named import refused
from test_greedy import (
    Problem,
    check_best_height,
    check_least_slope,
    check_scanned_slopes,
    check_slopes,
    inside,
    replay,
)

SIZES = [1, 2, 3, 20]


def close(value):
    return pytest.approx(value, rel=1e-8, abs=1e-8)


def real_table(rng, n, n_columns, missing=0.0):
    """Loose groups; where cells are missing, at least one is."""
    X = rng.normal(size=(n, n_columns)) + 1.5 * rng.integers(-1, 2, size=(n, 1))
    if missing:
        X[rng.random(X.shape) < missing] = np.nan
        X[rng.integers(n), rng.integers(n_columns)] = np.nan
    return X


def random_covariance(rng, n_columns):
    a = rng.normal(size=(n_columns, n_columns))
    return a @ a.T + 0.2 * np.eye(n_columns)


def random_variance(rng, shape, n_columns):
    return {
        "scalar": rng.lognormal(),
        "diagonal": rng.lognormal(size=n_columns),
        "full": random_covariance(rng, n_columns),
    }[shape]


def random_mean(rng, shape, n_columns):
    return rng.normal() if shape == "scalar" else rng.normal(size=n_columns)


# -- the reference itself ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_reference_recursion_matches_scipy(noise):
    """Four routes: the recursion and the dense formula of `reference.py`, scipy, and an integral over the root's state."""
    rng = np.random.default_rng(0)
    for n in (2, 3, 7):
        tree = ct.simulate_tree(n, rng)
        x = rng.normal(size=n)
        process = ct.OrnsteinUhlenbeck(0.7, 0.4, 1.8, noise)
        covariance = 1.8 * (np.exp(-1.4 * reference.common_heights(tree)) + noise * np.eye(n))
        expected = stats.multivariate_normal(np.full(n, 0.4), covariance).logpdf(x)
        assert reference.log_likelihood(tree, x[:, None], process) == close(expected)
        assert reference.climb(tree, x[:, None], process).log_likelihood == close(expected)
    # two rows are independent given their ancestor's state z
    tree = ct.Tree([[0, 1]], [0, 0, 0.6])
    retention = np.exp(-0.7 * 0.6)
    below = stats.norm(0.4, np.sqrt(1.8))
    total, _ = scipy.integrate.quad(
        lambda z: (
            below.pdf(z)
            * np.prod(stats.norm.pdf(x[:2], 0.4 + retention * (z - 0.4), np.sqrt(1.8 * (1 - retention**2 + noise))))
        ),
        -12,
        12,
        epsabs=0,
        epsrel=1e-11,
    )
    assert reference.log_likelihood(tree, x[:2, None], process) == close(np.log(total))


def test_reference_recursion_with_missing_cells():
    rng = np.random.default_rng(1)
    for n in range(2, 9):
        tree = ct.simulate_tree(n, rng)
        X = real_table(rng, n, 3, missing=0.4)
        process = ct.OrnsteinUhlenbeck(1.3, [0.0, 1.0, -1.0], [0.5, 1.0, 4.0], 0.2)
        assert reference.climb(tree, X, process).log_likelihood == close(reference.log_likelihood(tree, X, process))


# -- the likelihood ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("noise", [0.0, 0.25])
@pytest.mark.parametrize("mean", ["scalar", "columns"])
@pytest.mark.parametrize("variance", ["scalar", "diagonal", "full"])
def test_likelihood_of_complete_tables_matches_dense_covariance(n, noise, mean, variance):
    for seed in range(3):
        rng = np.random.default_rng([n, seed])
        tree = ct.simulate_tree(n, rng)
        X = real_table(rng, n, 3)
        process = ct.OrnsteinUhlenbeck(
            rng.lognormal(), random_mean(rng, mean, 3), random_variance(rng, variance, 3), noise
        )
        assert process.log_likelihood(tree, X) == close(reference.log_likelihood(tree, X, process))


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("noise", [0.0, 0.25])
@pytest.mark.parametrize("variance", ["scalar", "diagonal"])
def test_likelihood_with_missing_cells_matches_dense_covariance(n, noise, variance):
    for seed in range(3):
        rng = np.random.default_rng([n, seed])
        tree = ct.simulate_tree(n, rng)
        X = real_table(rng, n, 4, missing=0.4)
        process = ct.OrnsteinUhlenbeck(rng.lognormal(), rng.normal(size=4), random_variance(rng, variance, 4), noise)
        assert process.log_likelihood(tree, X) == close(reference.log_likelihood(tree, X, process))


def deepen(tree, factor, top):
    """Return the tree with its heights multiplied, and its last merges moved up towards `top`."""
    heights = tree.heights * factor
    n_moved = tree.n_leaves // 3
    heights[-n_moved:] = np.linspace(0.3 * top, top, n_moved)
    return ct.Tree(tree.children, heights)


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("noise", [0.0, 0.1])
@pytest.mark.parametrize("top", [20.0, 300.0, 700.0, 5000.0])
def test_likelihood_of_deep_trees_matches_dense_covariance(missing, noise, top):
    """``exp(-2 rate h)`` is zero or underflows: what is left are independent groups."""
    rng = np.random.default_rng(3)
    for rate in (0.5, 1.0):
        tree = deepen(ct.simulate_tree(20, rng), 0.5, top)
        X = real_table(rng, 20, 3, missing)
        process = ct.OrnsteinUhlenbeck(rate, [0.5, 0.0, -0.5], [0.3, 1.0, 3.0], noise)
        assert process.log_likelihood(tree, X) == close(reference.log_likelihood(tree, X, process))


def graded_log_likelihood(tree, x, rate, noise):
    """The dense density for rates however small: of the first row and of the others' differences from it.

    All entries of the covariance are sums of ``exp(-2 rate h) - 1``, none a difference of numbers near 1. Differences
    are taken in units of the root of 2 rate, in which their covariance is of the order of 1.
    """
    n = len(x)
    bent = np.expm1(-2 * rate * reference.common_heights(tree))
    scale = np.sqrt(2 * rate)
    covariance = np.empty((n, n))
    covariance[0, 0] = 1 + noise
    covariance[0, 1:] = covariance[1:, 0] = (bent[0, 1:] - noise) / scale
    covariance[1:, 1:] = (bent[1:, 1:] - bent[1:, :1] - bent[:1, 1:]) / scale**2
    covariance[1:, 1:] += noise * (1 + np.eye(n - 1)) / scale**2
    differences = (x[1:] - x[0]) / scale
    return reference.normal_log_density(np.concatenate([x[:1], differences]), covariance) - (n - 1) * np.log(scale)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("noise", [0.0, 1e-7, 0.2])
@pytest.mark.parametrize("rate", [1e-30, 1e-14, 1e-7, 1e-3, 1.0, 1e3, 1e12, 1e30])
def test_likelihood_at_tiny_and_huge_rates(rate, noise, missing):
    """Rows that differ as much as such a rate allows; an empty column tests the other layout of messages."""
    tree = ct.simulate_tree(12, 4)
    spread = np.sqrt(noise + min(2 * rate, 1.0))
    x = 0.7 + spread * np.random.default_rng(5).normal(size=12)
    X = np.column_stack([x, np.full(12, np.nan)]) if missing else x[:, None]
    expected = graded_log_likelihood(tree, x, rate, noise)
    # rows are given to 16 digits, and so are their differences: 0.7 * 1e-16 of them in units of their deviation
    lost = 1e-14 / spread
    assert ct.OrnsteinUhlenbeck(rate, noise=noise).log_likelihood(tree, X) == pytest.approx(
        expected, rel=1e-8, abs=1e-8 + 100 * lost
    )


def test_graded_reference_matches_dense_covariance():
    tree = ct.simulate_tree(12, 4)
    x = np.random.default_rng(5).normal(size=12)
    for rate, noise in [(0.01, 0.0), (1.0, 0.3), (50.0, 0.0)]:
        process = ct.OrnsteinUhlenbeck(rate, noise=noise)
        assert graded_log_likelihood(tree, x, rate, noise) == close(reference.log_likelihood(tree, x[:, None], process))


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_slow_rate_limit_is_brownian_motion_with_wide_root(noise):
    """With variance ``1 / (2 rate)`` two rows part at speed 1; the rest is the root's state under ``N(mean, 1 / (2 rate))``."""
    rng = np.random.default_rng(6)
    tree = ct.simulate_tree(9, rng)
    x = rng.normal(size=9)
    contrasts = ct.Brownian(1.0, noise).log_likelihood(tree, x[:, None])
    # the root's state has the generalised least squares mean y and variance v, given the rows and a flat prior
    inverse = np.linalg.inv(tree.heights[-1] - reference.common_heights(tree) + noise * np.eye(9))
    v = 1 / inverse.sum()
    y = v * inverse.sum(axis=0) @ x
    gaps = []
    for rate in (1e-2, 1e-4, 1e-6):
        process = ct.OrnsteinUhlenbeck(rate, 0.8, 1 / (2 * rate), 2 * rate * noise)
        root = stats.norm.logpdf(y, 0.8, np.sqrt(v + 1 / (2 * rate)))
        gaps.append(abs(process.log_likelihood(tree, x[:, None]) - contrasts - root))
    assert gaps[0] < 0.5
    assert gaps[1] < 0.02 * gaps[0]
    assert gaps[2] < 0.02 * gaps[1] + 1e-8


def mixed_problem(rng, n):
    X = np.column_stack([real_table(rng, n, 2, missing=0.2), rng.integers(0, 3, (n, 2))])
    X[rng.random(n) < 0.2, 3] = np.nan
    process = ct.Mixed(
        (ct.OrnsteinUhlenbeck(0.8, [0.3, -0.3], [0.5, 2.0], rng.choice([0.0, 0.2])), [0, 1]),
        (ct.Multinomial([0.3, 2.0], [[0.5, 0.3, 0.2], [0.2, 0.2, 0.6]]), [2, 3]),
    )
    return process, X


@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_mixed_likelihood_is_sum_of_parts(n):
    rng = np.random.default_rng(n)
    process, X = mixed_problem(rng, n)
    tree = ct.simulate_tree(n, rng)
    assert process.log_likelihood(tree, X) == close(reference.log_likelihood(tree, X, process))


# -- ratios --------------------------------------------------------------------------------------------------------


def subtable_log_density(process, heights, X, rows):
    """The dense log density of some rows, the heights of whose common ancestors are known, a row and a column each."""
    n_columns = X.shape[1]
    covariance = np.exp(-2 * process.rate * heights[np.ix_(rows, rows)]) + process.noise * np.eye(len(rows))
    Y = X[rows] - process.mean
    if process.variance.ndim == 2:
        return reference.normal_log_density(Y.ravel(), np.kron(covariance, process.variance))
    total = 0.0
    for y, variance in zip(Y.T, np.broadcast_to(process.variance, n_columns), strict=True):
        observed = ~np.isnan(y)
        total += reference.normal_log_density(y[observed], variance * covariance[np.ix_(observed, observed)])
    return total


@pytest.mark.parametrize("noise", [0.0, 0.3])
@pytest.mark.parametrize("kind", ["complete", "full", "missing"])
def test_log_ratios_compare_joined_and_independent_trees(kind, noise):
    rng = np.random.default_rng(7)
    for n in (2, 3, 20):
        tree = ct.simulate_tree(n, rng)
        X = real_table(rng, n, 3, 0.3 if kind == "missing" else 0.0)
        variance = random_covariance(rng, 3) if kind == "full" else [0.5, 1.0, 2.0]
        process = ct.OrnsteinUhlenbeck(rng.lognormal(), [0.2, 0.0, -0.4], variance, noise)
        actual = merge_log_likelihoods(process, tree, X)
        heights, below = reference.common_heights(tree), [sorted(each) for each in reference.leaves_below(tree)]
        for (left, right), ratio in zip(tree.children.tolist(), actual.log_ratios, strict=True):
            one, *two = (
                subtable_log_density(process, heights, X, rows)
                for rows in (below[left] + below[right], below[left], below[right])
            )
            assert ratio == close(one - sum(two))
        assert np.array_equal(actual.log_z, actual.log_ratios)


# -- one pair of lineages ------------------------------------------------------------------------------------------


def random_rate(rng):
    return np.exp(rng.uniform(np.log(0.03), np.log(30)))


def complete(rng, n):
    return ct.OrnsteinUhlenbeck(random_rate(rng), 0.2, [0.3, 1.0, 3.0], rng.choice([0.0, 0.02, 0.5])), real_table(
        rng, n, 3
    )


def full(rng, n):
    process = ct.OrnsteinUhlenbeck(random_rate(rng), rng.normal(size=3), random_covariance(rng, 3), 0.1)
    return process, real_table(rng, n, 3)


def far_off(rng, n):
    """All rows some ten deviations to one side of the mean, or to both: inner products, not distances, decide."""
    X = real_table(rng, n, 2) + rng.choice([5.0, -5.0, 20.0], size=(1 if rng.random() < 0.5 else n, 1))
    return ct.OrnsteinUhlenbeck(random_rate(rng), 0.0, 0.5, rng.choice([0.0, 0.1])), X


def alike(rng, n):
    """Rows that all but agree, close to the mean: neither distances nor inner products count."""
    X = 1e-3 * real_table(rng, n, 3, missing=rng.choice([0.0, 0.2]))
    return ct.OrnsteinUhlenbeck(random_rate(rng), noise=rng.choice([1e-3, 0.1])), X


def missing(rng, n):
    X = real_table(rng, n, 4, missing=0.35)
    X[rng.integers(n)] = np.nan
    return ct.OrnsteinUhlenbeck(random_rate(rng), rng.normal(size=4), rng.lognormal(sigma=1.5, size=4)), X


def missing_noise(rng, n):
    return ct.OrnsteinUhlenbeck(random_rate(rng), 0.0, [0.1, 1.0, 1.0, 8.0], noise=0.2), real_table(rng, n, 4, 0.35)


def noises(rng, n):
    """A noise of its own in each column, in some none; complete, or with holes."""
    noise = rng.choice([0.0, 0.02, 0.5], size=4, p=[0.2, 0.3, 0.5])
    process = ct.OrnsteinUhlenbeck(random_rate(rng), rng.normal(size=4), [0.1, 1.0, 1.0, 8.0], noise)
    return process, real_table(rng, n, 4, rng.choice([0.0, 0.35]))


SETUPS = [complete, full, far_off, alike, missing, missing_noise, noises]
seeds = st.integers(0, 2**32 - 1)
setups = st.sampled_from(SETUPS)
patient = settings(deadline=None, max_examples=100, derandomize=True)


@settings(patient, max_examples=100)
@given(setups, seeds, st.sampled_from([1.0, 3.0, 28.0]))
def test_search_height_is_optimal(setup, seed, c):
    check_best_height(Problem(setup, seed), c, np.logspace(-9, 4, 3000))


def test_best_path_solves_its_equation():
    """``G(x) = d2`` of `heights`, in extended precision, up to the rounding of d2 and of x."""
    rng = np.random.default_rng(6)
    for n_columns, rate, d2, product, c in 10.0 ** rng.uniform([0, -4, -8, -6, 0], [2.5, 3, 12, 8, 8], size=(5_000, 5)):
        x = np.longdouble(best_path(n_columns, rate, d2, product, c))
        most = n_columns * -np.expm1(-2 * x) + 2 * c / rate * np.sinh(x) ** 2 + 4 * product * np.sinh(x / 2) ** 2
        slope = 2 * n_columns * np.exp(-2 * x) + 2 * c / rate * np.sinh(2 * x) + 2 * product * np.sinh(x)
        assert abs(most - d2) <= 4 * np.finfo(float).eps * (d2 + x * slope), (n_columns, rate, d2, product, c)


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_height_of_two_rows_matches_scipy_optimum(noise):
    """The log density of the bivariate normal minus the height, over a grid of heights and then by scipy's simplex."""
    rng = np.random.default_rng(8)
    above = 0
    for _ in range(20):
        X = rng.normal(size=(2, 3)) * rng.choice([0.3, 1.0, 4.0])
        rate = random_rate(rng)

        def cost(log_h, X=X, rate=rate):
            h = float(np.exp(np.squeeze(log_h)))
            # sum and difference of the two rows are independent
            plus, minus = 1 + noise + np.exp(-2 * rate * h), noise - np.expm1(-2 * rate * h)
            law = (
                stats.norm.logpdf(X[0] + X[1], 0, np.sqrt(2 * plus)),
                stats.norm.logpdf(X[0] - X[1], 0, np.sqrt(2 * minus)),
            )
            return h - np.sum(law)

        log_h, best, *_ = scipy.optimize.brute(cost, [(-16, 7)], Ns=180, full_output=True)
        result = ct.greedy(X, ct.OrnsteinUhlenbeck(rate, noise=noise)).tree.heights[-1]
        at_zero = cost(-np.inf) if noise > 0 else np.inf
        with np.errstate(divide="ignore"):
            assert cost(np.log(result)) <= min(best, at_zero) + 1e-8
        if at_zero > best:
            assert result == pytest.approx(np.exp(log_h.item()), rel=2e-3)
            above += 1
        else:
            assert result == 0
    assert above >= 10


@patient
@given(setups, seeds)
def test_slopes_match_derivative_of_log_z(setup, seed):
    check_slopes(Problem(setup, seed))


@patient
@given(setups, seeds)
def test_rise_is_convex(setup, seed):
    """All searches rest on that: minus its derivative only falls."""
    problem = Problem(setup, seed)
    *_, pair, _, lowest = problem.pair()
    falls = [op.slopes(problem.forest, pair, lowest + climb)[2] for climb in np.logspace(-6, 3, 60)]
    assert np.all(np.diff(falls) <= 1e-12 * np.abs(falls[:-1]))


@settings(patient, max_examples=100)
@given(setups, seeds, st.floats(-5, 2), st.floats(-5, 2), st.booleans())
def test_least_slope_is_a_lower_bound(setup, seed, log_low, log_width, from_lowest):
    check_least_slope(Problem(setup, seed), log_low, log_width, from_lowest)


@patient
@given(setups, seeds, st.floats(-5, 2), st.floats(-5, 1))
def test_least_slopes_are_close_on_short_intervals(setup, seed, log_low, log_width):
    """On a thousandth of the path the bound nearly equals the slope; a loose bound would make the search slow."""
    problem = Problem(setup, seed)
    i, j, pair, shift, lowest = problem.pair()
    low = lowest + 10.0**log_low
    path = 2 * low - problem.forest.height[i] - problem.forest.height[j] + shift
    bound = op.least_slope(problem.forest, pair, low, low + 5e-4 * path * min(1.0, 1 / path), shift)
    rise, drop, rise_falls, drop_falls = op.slopes(problem.forest, pair, low)
    assert bound >= rise - drop - 0.02 * (rise + drop + path * (rise_falls + drop_falls)) - 1e-9


@settings(patient, max_examples=100)
@given(setups, seeds, st.floats(-5, 2), st.floats(-5, 2), st.booleans())
def test_drop_falls_stays_in_its_range(setup, seed, log_low, log_width, from_lowest):
    problem = Problem(setup, seed)
    *_, pair, _, lowest = problem.pair()
    low = lowest if from_lowest else lowest + 10.0**log_low
    high = low + 10.0**log_width
    least, most = op.drop_falls_range(problem.forest, pair, low, high)
    slopes = np.array([op.slopes(problem.forest, pair, h) for h in inside(low, high)])
    falls = slopes[:, 3]
    # where lineages are all but independent, rise and drop are what is left of larger numbers
    rounding = 1e-14 * (slopes[:, 2:].max() + problem.forest.rate[0] * slopes[:, :2].max())
    assert least <= min(falls) * (1 + 1e-9) + rounding
    assert most >= max(falls) * (1 - 1e-9) - rounding
    # ... and is nothing but that on an interval of no length
    at_low = op.drop_falls_range(problem.forest, pair, low, low)
    assert at_low == pytest.approx((falls[0], falls[0]), rel=1e-9, abs=rounding)


@settings(patient, max_examples=100)
@given(setups, seeds, st.floats(-3, 3))
def test_slope_above_highest_height_is_below_c(setup, seed, log_c):
    problem = Problem(setup, seed)
    c = 10.0**log_c
    *_, pair, _, lowest = problem.pair()
    highest = max(op.highest(problem.forest, pair, c), lowest)
    for h in highest + np.concatenate([[0.0], np.logspace(-6, 3, 30)]):
        assert op.slopes(problem.forest, pair, h)[0] <= c * (1 + 1e-9)


@patient
@given(setups, seeds, st.sampled_from([0.0, 0.01, 1.0]), st.floats(-4, 2))
def test_scanned_slopes_match_pair_slopes(setup, seed, start, log_width):
    check_scanned_slopes(Problem(setup, seed), start, log_width)


# -- greedy inference ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("setup", [*SETUPS, mixed_problem])
def test_every_merge_is_optimal(setup):
    steps = skipped = 0
    for seed, n in enumerate([2, 3, 4, 5, 6, 9]):
        process, X = setup(np.random.default_rng([seed, n]), n)
        result = ct.greedy(X, process)
        search = reference.GreedyReference(process, X, "rate1")
        for (i, j), height in zip(result.tree.children.tolist(), result.tree.merge_heights, strict=True):
            choice = search.choose()
            steps += 1
            assert choice.shortfall[min(i, j), max(i, j)] < 1e-8, (seed, steps)
            if choice.clear:
                assert (min(i, j), max(i, j)) == choice.pair, (seed, steps)
                assert height == pytest.approx(choice.height, rel=1e-6, abs=1e-12), (seed, steps)
            else:
                skipped += 1
            search.merge((i, j), height)
        expected = reference.climb(result.tree, X, process)
        assert result.log_likelihood == close(expected.log_likelihood)
        assert result.log_ratios == pytest.approx(expected.log_ratios, rel=1e-7, abs=1e-7)
        assert result.log_joint == close(expected.log_likelihood + reference.log_prior(result.tree))
    assert skipped <= 0.05 * steps


def large_complete(rng):
    return ct.OrnsteinUhlenbeck(1.5, noise=0.05), real_table(rng, 150, 2)


def large_missing(rng):
    return ct.OrnsteinUhlenbeck(0.7, 0.0, [0.3, 1.0, 4.0]), real_table(rng, 100, 3, missing=0.3)


def large_noises(rng):
    process = ct.OrnsteinUhlenbeck(0.7, 0.0, [0.3, 1.0, 4.0], [0.5, 0.01, 0.1])
    return process, real_table(rng, 100, 3, missing=0.1)


def sorted_line(rng):
    """As the estimators sort rows: the nearest older point of each is the one before it."""
    return ct.OrnsteinUhlenbeck(0.5, noise=0.3), np.sort(rng.normal(size=(200, 1)), axis=0)


@pytest.mark.parametrize("setup", [large_complete, large_missing, large_noises, sorted_line])
def test_exact_search_finds_best_pairs(setup):
    process, X = setup(np.random.default_rng(3))
    tree = ct.greedy(X, process).tree
    _, wrong, rounded = replay(process, X, tree)
    assert (wrong, rounded) == (0, 0)


@pytest.mark.parametrize("kind", ["complete", "missing"])
def test_ties_prefer_smaller_node_numbers(kind):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (60, 3)).astype(float)
    if kind == "missing":
        X[rng.random(X.shape) < 0.2] = np.nan
    process = ct.OrnsteinUhlenbeck(1.0, noise=0.2)
    ties, wrong, rounded = replay(process, X, ct.greedy(X, process).tree)
    assert ties > 15
    assert wrong == 0
    assert rounded <= 3


@pytest.mark.parametrize("setup", [large_complete, large_missing])
def test_greedy_is_independent_of_threads(setup):
    process, X = setup(np.random.default_rng(4))
    one, two = (ct.greedy(X, process, n_jobs=n_jobs) for n_jobs in (1, 3))
    assert one.tree == two.tree
    assert np.array_equal(one.log_ratios, two.log_ratios)


# -- what must not change anything ---------------------------------------------------------------------------------


def clades(tree):
    return {
        frozenset(tree.leaves_below(node).tolist()): tree.heights[node] for node in range(tree.n_leaves, tree.n_nodes)
    }


@pytest.mark.parametrize("kind", ["complete", "full", "missing"])
def test_greedy_is_equivariant_to_units_and_origin(kind):
    """With x, mean and variance rescaled together, only the Jacobian changes."""
    rng = np.random.default_rng(9)
    X = real_table(rng, 14, 3, 0.25 if kind == "missing" else 0.0)
    mean, a, shift = np.array([0.3, 0.0, -1.0]), np.array([1e-3, 12.0, 500.0]), np.array([3.0, -7.0, 1e4])
    variance = random_covariance(rng, 3) if kind == "full" else np.array([0.5, 1.0, 2.0])
    scales = np.outer(a, a) if kind == "full" else a**2
    one = ct.greedy(X, ct.OrnsteinUhlenbeck(0.8, mean, variance, 0.01))
    two = ct.greedy(X * a + shift, ct.OrnsteinUhlenbeck(0.8, mean * a + shift, variance * scales, 0.01))
    jacobian = np.sum(np.sum(~np.isnan(X), axis=0) * np.log(a))
    assert two.log_likelihood == pytest.approx(one.log_likelihood - jacobian, rel=1e-9)
    assert clades(two.tree) == pytest.approx(clades(one.tree), rel=1e-6, abs=1e-10)
    assert two.log_ratios == pytest.approx(one.log_ratios, rel=1e-6, abs=1e-7)


def test_linear_map_changes_density_by_jacobian():
    rng = np.random.default_rng(10)
    tree = ct.simulate_tree(6, rng)
    X, mean, variance, a = real_table(rng, 6, 3), rng.normal(size=3), random_covariance(rng, 3), rng.normal(size=(3, 3))
    before = ct.OrnsteinUhlenbeck(0.6, mean, variance, 0.2).log_likelihood(tree, X)
    after = ct.OrnsteinUhlenbeck(0.6, a @ mean, a @ variance @ a.T, 0.2).log_likelihood(tree, X @ a.T)
    assert after == close(before - 6 * np.linalg.slogdet(a)[1])


def test_rescale_clock_keeps_likelihood():
    """A clock twice as fast with half the rate: the same likelihood."""
    rng = np.random.default_rng(11)
    tree = ct.simulate_tree(8, rng)
    X = real_table(rng, 8, 3, missing=0.2)
    slow = ct.OrnsteinUhlenbeck(0.35, noise=0.1).log_likelihood(ct.Tree(tree.children, 2 * tree.heights), X)
    assert slow == close(ct.OrnsteinUhlenbeck(0.7, noise=0.1).log_likelihood(tree, X))


def test_greedy_is_invariant_to_order_and_empty_column():
    rng = np.random.default_rng(12)
    X = real_table(rng, 12, 3)
    mean, variance = np.array([0.3, 0.0, -1.0]), np.array([0.5, 1.0, 2.0])
    one = ct.greedy(X, ct.OrnsteinUhlenbeck(0.8, mean, variance, 0.01))
    rows, columns = rng.permutation(12), [2, 0, 1]
    two = ct.greedy(X[rows][:, columns], ct.OrnsteinUhlenbeck(0.8, mean[columns], variance[columns], 0.01))
    named = {frozenset(rows[list(clade)].tolist()): height for clade, height in clades(two.tree).items()}
    assert named == pytest.approx(clades(one.tree), rel=1e-7)
    assert two.log_joint == pytest.approx(one.log_joint, rel=1e-9)
    wider = np.column_stack([X, np.full(12, np.nan)])
    three = ct.greedy(wider, ct.OrnsteinUhlenbeck(0.8, [*mean, 5.0], [*variance, 9.0], 0.01))
    assert clades(three.tree) == pytest.approx(clades(one.tree), rel=1e-7)
    assert three.log_joint == pytest.approx(one.log_joint, rel=1e-9)


def test_diagonal_matrix_equals_column_variances():
    rng = np.random.default_rng(13)
    tree, X = ct.simulate_tree(6, rng), real_table(rng, 6, 3)
    variances = np.array([0.2, 1.0, 7.0])
    matrix = ct.OrnsteinUhlenbeck(1.2, 0.3, np.diag(variances), 0.1)
    assert matrix.log_likelihood(tree, X) == close(
        ct.OrnsteinUhlenbeck(1.2, 0.3, variances, 0.1).log_likelihood(tree, X)
    )


# -- simulation ----------------------------------------------------------------------------------------------------

TREE = ct.Tree.from_newick("(((a:0.3,b:0.3):0.5,(c:0.4,d:0.4):0.4):0.7,e:1.5);")


@pytest.mark.parametrize("noise", [0.0, 0.6])
@pytest.mark.parametrize("variance", [2.5, [[2.0, -0.9], [-0.9, 0.7]]])
def test_simulated_tables_have_model_covariance(noise, variance):
    """Tables whitened by the whole covariance matrix are independent standard normal numbers.

    Held against that: every mean and every covariance, at five standard errors (65 a case at most, each exceeded with
    probability 6e-7), the mean square (five again) and the shape (Kolmogorov and Smirnov at 1e-5). A right program
    fails one of the four cases for one choice of seed in 5,000.
    """
    process = ct.OrnsteinUhlenbeck(0.6, 1.5, variance, noise)
    rng = np.random.default_rng(14)
    count, width = 6000, 2
    draws = np.array([process.simulate(TREE, rng, n_columns=width) for _ in range(count)])
    rows = np.exp(-1.2 * reference.common_heights(TREE)) + noise * np.eye(5)
    columns = np.array(variance) if np.ndim(variance) else variance * np.eye(2)
    factor = np.linalg.cholesky(np.kron(rows, columns))
    white = np.linalg.solve(factor, (draws - 1.5).reshape(count, -1).T)
    assert np.abs(white.mean(axis=1)).max() * np.sqrt(count) < 5
    covariance = white @ white.T / count
    errors = np.sqrt((1 + np.eye(len(white))) / count)
    assert np.abs((covariance - np.eye(len(white))) / errors).max() < 5
    assert abs(np.mean(white**2) - 1) / np.sqrt(2 / white.size) < 5
    assert stats.kstest(white.ravel(), "norm").pvalue > 1e-5


def test_simulation_is_reproducible_and_has_given_width():
    process = ct.OrnsteinUhlenbeck(1.0, noise=0.1)
    assert process.simulate(TREE, 7).shape == (5, 1)
    assert process.simulate(TREE, 7, n_columns=4).shape == (5, 4)
    assert ct.OrnsteinUhlenbeck(mean=[1.0, 2.0, 3.0]).simulate(TREE, 0).shape == (5, 3)
    assert np.array_equal(process.simulate(TREE, 7), process.simulate(TREE, np.random.default_rng(7)))
    assert not np.array_equal(process.simulate(TREE, 7), process.simulate(TREE, 8))
    with pytest.raises(InputError, match=r"4 column\(s\).*describes 3"):
        ct.OrnsteinUhlenbeck(mean=[1.0, 2.0, 3.0]).simulate(TREE, 0, n_columns=4)


def test_simulated_single_leaf_follows_equilibrium():
    """Mean and variance of 20,000 cells, five standard errors each."""
    x = ct.OrnsteinUhlenbeck(1.0, 3.0, 4.0, 0.5).simulate(ct.simulate_tree(1, 0), 15, n_columns=20_000)
    assert x.shape == (1, 20_000)
    assert abs(x.mean() - 3) < 5 * np.sqrt(6 / x.size)
    assert abs(x.var() / 6 - 1) < 5 * np.sqrt(2 / x.size)


# -- sequential Monte Carlo ----------------------------------------------------------------------------------------


def small_table(n, with_missing):
    X = np.random.default_rng(n).normal(size=(n, 2)) + 0.5 * np.arange(n)[:, None]
    if with_missing:
        X[0, 0] = X[n - 1, 1] = np.nan
    return X, ct.OrnsteinUhlenbeck(0.8, [0.5, 0.0], [1.0, 2.5], noise=0.2 if n == 3 else 0.0)


CASES = [(3, False), (3, True), (4, False), (4, True)]


@pytest.mark.parametrize(("n", "with_missing"), CASES)
def test_enumeration_is_normalised(n, with_missing):
    X, process = small_table(n, with_missing)
    rng = np.random.default_rng(0)
    for children in exact_posterior.histories(n):
        heights = np.cumsum(rng.exponential(size=(1, n - 1)), axis=1)
        tree = ct.Tree(children, np.concatenate([np.zeros(n), heights[0]]))
        expected = reference.log_likelihood(tree, X, process)
        assert exact_posterior.log_likelihoods(children, heights, X, process)[0] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("n", "with_missing"), CASES)
def test_smc_evidence_and_posterior_are_exact(n, with_missing):
    """As in `test_smc.py`: means over 30 runs at 6 standard errors, a level of 2e-6 each; some 120 are looked at."""
    X, process = small_table(n, with_missing)
    truth = exact_posterior.integrals(X, process)
    for proposal in ("post-post", "race"):
        for what, (mean, error, value) in exact_posterior.sampled(X, process, proposal, truth).items():
            assert abs(mean - value) < 6 * error + 1e-3 * truth.evidence, (proposal, what)
            if what == "evidence":
                assert error < 0.05 * value, "the test would see nothing"


def test_smc_log_joints_and_ratios_match_trees():
    X, process = small_table(4, True)
    sample = ct.smc(X, process, "race", n_particles=20, random_state=0, threshold=0.9)
    for k in (0, 7, 19):
        climb = reference.climb(sample.trees[k], X, process)
        joint = reference.log_likelihood(sample.trees[k], X, process) + reference.log_prior(sample.trees[k])
        assert sample.log_joints[k] == close(joint)
        assert np.allclose(sample.log_ratios[k], climb.log_ratios, atol=1e-8)


# -- extremes ------------------------------------------------------------------------------------------------------


def test_likelihood_of_identical_rows_with_noise():
    X = np.repeat(real_table(np.random.default_rng(0), 5, 3), 2, axis=0)
    tree = ct.simulate_tree(10, 1)
    process = ct.OrnsteinUhlenbeck(0.9, noise=0.05)
    assert process.log_likelihood(tree, X) == close(reference.log_likelihood(tree, X, process))
    result = ct.greedy(X, process)  # warnings are errors here
    assert result.tree.merge_heights[:5].tolist() == [0.0] * 5
    assert result.log_likelihood == close(reference.log_likelihood(result.tree, X, process))


@pytest.mark.parametrize("with_missing", [False, True])
def test_identical_rows_without_noise_warn_with_advice(with_missing):
    X = np.random.default_rng(0).normal(size=(7, 3))
    X[[2, 5]] = X[0]
    X[6] = X[1]
    if with_missing:
        X[4, 1] = np.nan
    with pytest.warns(InputWarning, match=r"^3 merge\(s\) join rows that are identical.*noise=0\.01"):
        result = ct.greedy(X, ct.OrnsteinUhlenbeck())
    assert np.isfinite(result.log_joint)
    assert np.all(np.isfinite(result.log_ratios))
    assert result.tree.merge_heights[:3].tolist() == [0.0] * 3
    assert result.tree.merge_heights[3] > 0
    noisy = ct.OrnsteinUhlenbeck(noise=0.01).log_likelihood(result.tree, X)
    assert result.log_likelihood > noisy  # what is infinite is large, not small


@pytest.mark.parametrize("with_missing", [False, True])
def test_greedy_of_constant_columns(with_missing):
    X = real_table(np.random.default_rng(2), 9, 2)
    X[:, 1] = 3.0
    if with_missing:
        X[4] = np.nan
    tree = ct.simulate_tree(9, 3)
    for process in (ct.OrnsteinUhlenbeck(0.5), ct.OrnsteinUhlenbeck(0.5, [0.0, 3.0], [1.0, 1e-4], 0.1)):
        assert process.log_likelihood(tree, X) == close(reference.log_likelihood(tree, X, process))
        assert np.isfinite(ct.greedy(X, process).log_joint)
    same = np.full((4, 2), 3.0)
    process = ct.OrnsteinUhlenbeck(noise=0.1)
    result = ct.greedy(same, process)
    assert result.tree.merge_heights.tolist() == [0.0] * 3
    assert result.log_likelihood == close(reference.log_likelihood(result.tree, same, process))
    with pytest.warns(InputWarning, match=r"^3 merge\(s\)"):
        assert np.isfinite(ct.greedy(same, ct.OrnsteinUhlenbeck()).log_joint)


def test_greedy_with_empty_rows_and_columns():
    rng = np.random.default_rng(4)
    X = real_table(rng, 8, 3, missing=0.1)
    X[[2, 5]] = np.nan
    X[:, 1] = np.nan
    tree = ct.simulate_tree(8, rng)
    process = ct.OrnsteinUhlenbeck(0.7, [0.1, 0.2, 0.3], [0.5, 1.0, 2.0])
    assert process.log_likelihood(tree, X) == close(reference.log_likelihood(tree, X, process))
    result = ct.greedy(X, process)
    assert result.log_likelihood == close(reference.log_likelihood(result.tree, X, process))
    assert result.tree.merge_heights[0] == 0.0  # an empty row says nothing: it joins at once
    nothing = np.full((5, 2), np.nan)
    assert ct.OrnsteinUhlenbeck().log_likelihood(ct.simulate_tree(5, 0), nothing) == 0.0
    result = ct.greedy(nothing, ct.OrnsteinUhlenbeck())
    assert result.log_joint == 0.0
    assert result.tree.merge_heights.tolist() == [0.0] * 4


def test_branch_above_empty_sibling_loses_correlation():
    """b's message passes a's empty branch and keeps losing correlation: with c it is that of the whole path, 4."""
    tree = ct.Tree.from_newick("((a:1,b:1):1,c:2);")
    rho = np.exp(-0.3 * 4)
    expected = stats.multivariate_normal([0, 0], [[1, rho], [rho, 1]]).logpdf([0.5, -0.7])
    process = ct.OrnsteinUhlenbeck(0.3)
    for X in ([[np.nan], [0.5], [-0.7]], [[0.5], [np.nan], [-0.7]]):
        assert process.log_likelihood(tree, X) == close(expected)


@pytest.mark.parametrize("n", [1, 2])
def test_greedy_of_one_and_two_rows(n):
    for with_missing in (False, True):
        X = np.array([[0.3, -1.0], [0.4, np.nan if with_missing else -1.2]])[:n]
        process = ct.OrnsteinUhlenbeck(0.5, 0.1, [1.0, 2.0], 0.2)
        result = ct.greedy(X, process)
        assert result.tree.n_leaves == n
        assert result.log_likelihood == close(reference.log_likelihood(result.tree, X, process))
        assert len(result.log_ratios) == n - 1


def test_different_rows_at_height_zero_have_finite_likelihood():
    tree = ct.Tree([[0, 1], [2, 3]], [0, 0, 0, 0.0, 1.0])
    value = ct.OrnsteinUhlenbeck().log_likelihood(tree, [[0.0], [1.0], [2.0]])
    assert np.isfinite(value)
    assert value < -1e6


@pytest.mark.parametrize("with_missing", [False, True])
@pytest.mark.parametrize(
    ("scale", "noise"),
    [
        (1e3, 0.0),
        (1e6, 0.0),
        (1e8, 0.0),
        (1e12, 0.0),
        (1e50, 0.0),
        (1e6, 0.1),
        (1e12, 0.1),
        (1e20, 0.1),
        (1e50, 0.1),
    ],
)
def test_likelihood_of_values_far_from_mean(scale, noise, with_missing):
    x = scale * np.array([1.0, -0.5, 2.0, 0.3])
    X = np.column_stack([x, [0.1, 0.2, 0.3, np.nan if with_missing else 0.5]])
    tree = ct.Tree([[0, 1], [2, 3], [4, 5]], [0, 0, 0, 0, 0.1, 0.25, 0.4])
    process = ct.OrnsteinUhlenbeck(1.0, noise=noise)
    assert process.log_likelihood(tree, X) == close(reference.log_likelihood(tree, X, process))


@pytest.mark.parametrize("with_missing", [False, True])
@pytest.mark.parametrize("scale", [1e3, 1e8, 1e12, 1e20, 1e50])
@pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning")
def test_heights_of_values_far_from_mean(scale, with_missing):
    """Two rows on either side of the mean. Where only ``m rho`` is left of log Z, ``2 rate |m| rho = 1`` at the best height."""
    X = scale * np.array([[1.0, 1.0], [-1.5, -1.0]])
    if with_missing:
        X = np.column_stack([X, [np.nan, np.nan]])
    for rate in (0.3, 1.0):
        expected = np.log(2 * rate * 2.5 * scale**2) / (2 * rate)
        assert ct.greedy(X, ct.OrnsteinUhlenbeck(rate)).tree.heights[-1] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("scale", [1e-50, 1e-20])
def test_close_values_keep_their_differences(scale):
    """For tiny values heights grow with their squares."""
    X = np.random.default_rng(0).normal(size=(10, 2))
    tree, near = (ct.greedy(scale * factor * X, ct.OrnsteinUhlenbeck()).tree for factor in (1, 1 + 1e-3))
    assert np.array_equal(tree.children, near.children)
    assert np.allclose(near.merge_heights, (1 + 1e-3) ** 2 * tree.merge_heights, rtol=1e-6)
    assert len(np.unique(tree.merge_heights)) == 9


def test_too_close_values_are_rejected_or_exact():
    """`Brownian` rejects values closer than 1e-60 deviations; here the result must be right or rejected too."""
    X = np.random.default_rng(0).normal(size=(10, 2))
    try:
        tree = ct.greedy(1e-100 * X, ct.OrnsteinUhlenbeck()).tree
    except InputError as error:
        assert "rescale" in str(error)  # noqa: PT017
    else:
        assert len(np.unique(tree.merge_heights)) == 9
        assert np.array_equal(tree.children, ct.greedy(1e-20 * X, ct.OrnsteinUhlenbeck()).tree.children)


@pytest.mark.parametrize("rate", [1e-30, 1e-10, 1e10, 1e30])
def test_rates_at_limits_are_accepted(rate):
    """The likelihood knows ``rate h`` alone, and at a high rate the prior does not count: heights go as 1 / rate."""
    X = np.random.default_rng(0).normal(size=(10, 2))
    result = ct.greedy(X, ct.OrnsteinUhlenbeck(rate))
    assert np.isfinite(result.log_joint)
    assert np.all(result.tree.merge_heights > 0)
    if rate > 1:
        near = ct.greedy(X, ct.OrnsteinUhlenbeck(2 * rate if rate < 1e30 else rate / 2))
        factor = 0.5 if rate < 1e30 else 2.0
        assert np.allclose(near.tree.merge_heights[:-1], factor * result.tree.merge_heights[:-1], rtol=1e-3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rate": 0.0}, "rate 0.0 1e-30 1e+30"),
        ({"rate": -1.0}, "rate -1.0"),
        ({"rate": np.nan}, "rate nan"),
        ({"rate": np.inf}, "rate inf"),
        ({"rate": 1e-31}, "rate 1e-31"),
        ({"rate": "fast"}, "rate fast"),
        ({"rate": [1.0, 2.0]}, "rate [1.0 2.0]"),
        ({"mean": "high"}, "mean high column"),
        ({"mean": [1.0, np.nan]}, "mean finite"),
        ({"mean": np.inf}, "mean finite"),
        ({"mean": []}, "mean finite"),
        ({"mean": np.eye(2)}, "mean finite column"),
        ({"variance": 0.0}, "variance 0 variances positive"),
        ({"variance": [[1.0, 2.0], [2.0, 1.0]]}, "positive definite"),
        ({"variance": "wide"}, "variance wide"),
        ({"noise": -0.1}, "noise -0.1"),
        ({"noise": np.inf}, "noise inf"),
        ({"mean": [1.0, 2.0, 3.0], "variance": [1.0, 2.0]}, "3 variance describes 2"),
    ],
)
def test_invalid_parameters_are_rejected(arguments, message):
    with refused(message):
        ct.OrnsteinUhlenbeck(**arguments)


@pytest.mark.parametrize(
    ("process", "X", "message"),
    [
        (ct.OrnsteinUhlenbeck(mean=[0.0, 1.0]), [[0.0], [1.0]], "1 column OrnsteinUhlenbeck describes 2"),
        (ct.OrnsteinUhlenbeck(variance=np.eye(3)), [[0.0], [1.0]], "1 column OrnsteinUhlenbeck describes 3"),
        (
            ct.OrnsteinUhlenbeck(variance=np.eye(2)),
            [[0.0, np.nan], [1.0, 1.0]],
            "1 cell missing row 0 column full covariance",
        ),
        (ct.OrnsteinUhlenbeck(), [[0.0, 1e60], [1.0, 0.0]], "column 1 1e+60 standard deviations"),
        (
            ct.OrnsteinUhlenbeck(variance=1e-200),
            [[1.0], [0.0]],
            "rescale column mean variance",
        ),
        (ct.OrnsteinUhlenbeck(), [[np.inf], [0.0]], "1 cell infinite"),
    ],
)
def test_incompatible_tables_are_rejected(process, X, message):
    with refused(message):
        ct.greedy(X, process)
    with refused(message):
        process.log_likelihood(ct.Tree([[0, 1]], [0, 0, 1.0]), X)


def test_process_repr_and_read_only_parameters():
    assert (
        repr(ct.OrnsteinUhlenbeck(0.5, 1.0, 2.0, 0.1)) == "OrnsteinUhlenbeck(rate=0.5, mean=1, variance=2, noise=0.1)"
    )
    assert ct.OrnsteinUhlenbeck().n_columns is None
    assert ct.OrnsteinUhlenbeck(mean=[1.0, 2.0]).n_columns == 2
    assert ct.OrnsteinUhlenbeck(variance=np.eye(3)).n_columns == 3
    process = ct.OrnsteinUhlenbeck(mean=[1.0, 2.0], variance=[1.0, 2.0])
    with pytest.raises(ValueError, match="read-only"):
        process.mean[0] = 5.0


def test_greedy_does_not_modify_table():
    process, X = mixed_problem(np.random.default_rng(0), 9)
    before = X.copy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        ct.greedy(X, process)
    assert np.array_equal(X, before, equal_nan=True)
