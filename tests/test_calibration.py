"""Parameters fitted to trees: against formulas worked out by hand, maxima of scipy, finite differences and the truth.

The objective is written down a second time: dense likelihoods and sums over states of `reference.py`, priors of scipy.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

import coaltree as ct
import reference
from coaltree.errors import InputError
from coaltree.process.multinomial import gradients
from tables import code_table

A = B = 1.1  # shape and scale of the Gamma priors

TREE = ct.Tree.from_newick("((a:1,b:1):1,c:2);")
OTHER = ct.Tree.from_newick("((a:0.3,c:0.3):2.2,b:2.5);").reorder(["a", "b", "c"])
X3 = np.array([[0.5, 2.0], [1.5, -1.0], [-2.0, 4.0]])


# -- the objective, written down a second time ---------------------------------------------------------------------


def spreads(X):
    """The variance of each column's observed cells; 1 where they do not vary."""
    values = [column[~np.isnan(column)] for column in np.asarray(X).T]
    return np.array([x.var() if len(x) and x.var() > 0 else 1.0 for x in values])


def middles(X):
    values = [column[~np.isnan(column)] for column in np.asarray(X).T]
    return np.array([x.mean() if len(x) else 0.0 for x in values])


def rounding(X):
    """What noise has to account for at the least: a twelfth of the squared least step, or a fifth of the column's variance."""
    rows = [np.unique(column[~np.isnan(column)]) for column in np.asarray(X).T]
    steps = np.array([np.diff(values).min() if len(values) > 1 else 0.0 for values in rows])
    return np.minimum(steps**2 / 12, 0.2 * spreads(X))


def variance_log_prior(variance, X):
    """Of the precision times the column's own variance; for matrices, Wishart's, which is the same for one column."""
    spread = spreads(X)
    if np.ndim(variance) == 2:
        D = len(variance)
        prior = stats.wishart(df=2 * A - 2 + D + 1, scale=np.diag(B / (2 * spread)))
        return prior.logpdf(np.linalg.inv(variance))
    precisions = np.atleast_1d((spread if np.ndim(variance) else spread.mean()) / variance)
    return stats.gamma(A, scale=B).logpdf(precisions).sum()


def log_prior(process, X, hold_noise=False):
    """Of all parameters, or of all but the noise."""
    if isinstance(process, ct.Multinomial):
        rates = stats.gamma(A, scale=B).logpdf(np.atleast_1d(process.rate)).sum()
        return rates + sum(
            stats.dirichlet(np.full(len(q), 1 + 1 / len(q))).logpdf(q) for q in process.equilibrium if len(q) > 1
        )
    estimates = np.diag(process.variance) if process.variance.ndim == 2 else process.variance
    least = rounding(X) if process.variance.ndim else rounding(X).mean()
    if np.any(process.noise * estimates < (1 - 1e-9) * least):
        return -np.inf
    total = variance_log_prior(process.variance, X)
    if not hold_noise:
        total += stats.invgamma(1.0, scale=0.05).logpdf(process.noise)
    if isinstance(process, ct.OrnsteinUhlenbeck):
        total += stats.gamma(A, scale=B).logpdf(process.rate)
        total += stats.norm(middles(X), np.sqrt(spreads(X))).logpdf(process.mean).sum()
    return total


def shares_of(trees, weights):
    weights = np.ones(len(trees)) if weights is None else np.asarray(weights, dtype=float)
    return weights / weights.sum()


def objective(process, trees, X, weights=None):
    """The mean log likelihood, by brute force, and the log prior."""
    logs = [reference.log_likelihood(tree, X, process) for tree in trees]
    return shares_of(trees, weights) @ logs + log_prior(process, X)


def own_objective(process, trees, X, weights=None, hold_noise=False):
    """The same by the library, for trees of any size."""
    process = process.resolve(X)
    logs = [process.log_likelihood(tree, X) for tree in trees]
    return shares_of(trees, weights) @ logs + process.log_parameter_prior(X, hold_noise)


def real_table(rng, n, n_columns, missing=0.0):
    X = rng.normal(size=(n, n_columns)) * rng.choice([0.3, 1.0, 5.0], n_columns) + rng.normal(size=n_columns)
    if missing:
        X[rng.random(X.shape) < missing] = np.nan
        X[rng.integers(n), rng.integers(n_columns)] = np.nan
    return X


def matrix(rng, n_columns):
    a = rng.normal(size=(n_columns, n_columns))
    return a @ a.T + 0.2 * np.eye(n_columns)


def random_variance(rng, shape, n_columns):
    return {
        "scalar": rng.lognormal(sigma=1.5),
        "diagonal": rng.lognormal(sigma=1.5, size=n_columns),
        "missing": rng.lognormal(sigma=1.5, size=n_columns),
        "full": rng.lognormal() * matrix(rng, n_columns),
    }[shape]


def problem(kind, shape, rng, n):
    """Return a process to start from and a table of n rows."""
    noise = 10.0 ** rng.uniform(-3, 1)
    if kind == "multinomial":
        equilibria = None if shape == "scalar" else [rng.dirichlet(np.full(k, 2.0)) for k in (2, 3, 2)]
        rate = 10.0 ** rng.uniform(-2, 2, () if shape == "scalar" else 3)
        return ct.Multinomial(rate, equilibria), code_table(rng, n, (2, 3, 2), 0.2 if shape == "missing" else 0.0)
    X = real_table(rng, n, 3, 0.3 if shape == "missing" else 0.0)
    variance = random_variance(rng, shape, 3)
    if kind == "brownian":
        return ct.Brownian(variance, noise), X
    return ct.OrnsteinUhlenbeck(10.0 ** rng.uniform(-2, 1.5), rng.normal(size=3), variance, noise), X


KINDS = ["brownian", "stationary", "multinomial"]
SHAPES = ["scalar", "diagonal", "full", "missing"]
CASES = [(kind, shape) for kind in KINDS for shape in SHAPES if (kind, shape) != ("multinomial", "full")]
every_case = pytest.mark.parametrize(("kind", "shape"), CASES)


@every_case
def test_parameter_prior_matches_documentation(kind, shape):
    """Up to a constant: differences between two settings of the parameters."""
    rng = np.random.default_rng(0)
    first, X = problem(kind, shape, rng, 30)
    compared = 0
    for _ in range(8):
        second, _ = problem(kind, shape, rng, 30)
        settled = [process.resolve(X) for process in (first, second)]
        for hold_noise in (False, True):
            expected = [log_prior(process, X, hold_noise) for process in settled]
            values = [process.log_parameter_prior(X, hold_noise) for process in settled]
            if -np.inf in expected:
                assert np.isinf(values).tolist() == np.isinf(expected).tolist()
            else:
                assert values[1] - values[0] == pytest.approx(expected[1] - expected[0], rel=1e-9, abs=1e-9)
                compared += 1
    assert compared >= 1


# -- variance, by hand ---------------------------------------------------------------------------------------------

# On TREE with noise v: rows a and b part with variance 2 (1 + v); half of that is left of their mean's uncertainty, (1 + v) / 2,
# and the mean parts from c with variance (1 + v) / 2 + 1 + (2 + v).


def contrasts_by_hand(X, noise):
    """Return the contrasts of TREE, a row each, in units of their deviation."""
    a, b, c = X
    return np.array([(a - b) / np.sqrt(2 * (1 + noise)), ((a + b) / 2 - c) / np.sqrt((1 + noise) / 2 + 1 + 2 + noise)])


def variance_by_hand(shape, scaled):
    """``1 / Lambda = (a' - 1) b'`` with ``a' = a + merges / 2`` and ``1 / b' = spread / b + squares / 2``."""
    spread, merges = X3.var(axis=0), len(scaled)
    if shape == "full":
        return (2 / B * np.diag(spread) + scaled.T @ scaled) / (2 * A - 2 + merges)
    squares = (scaled**2).sum(axis=0)
    if shape == "scalar":
        a, inverse_b = A + 0.5 * 2 * merges, spread.mean() / B + 0.5 * squares.sum()
    else:
        a, inverse_b = A + 0.5 * merges, spread / B + 0.5 * squares
    return inverse_b / (a - 1)


START = {"scalar": 1.0, "diagonal": [1.0, 1.0], "full": np.eye(2)}
held_noises = pytest.mark.parametrize("noise", [0.5, 0.0, 1e-3])


@pytest.mark.parametrize("shape", ["scalar", "diagonal", "full"])
@held_noises
def test_brownian_variance_of_three_rows_matches_formula(shape, noise):
    fitted = ct.calibrate(ct.Brownian(START[shape], noise), TREE, X3, hold_noise=True)
    assert fitted.noise == noise
    assert fitted.variance == pytest.approx(variance_by_hand(shape, contrasts_by_hand(X3, noise)), rel=1e-9)
    assert fitted.variance.shape == np.shape(START[shape])


@held_noises
def test_variance_uses_only_merges_with_both_sides_observed(noise):
    """b's cell is missing: a meets c over a path of length 4. The third column has one cell, the fourth none."""
    X = np.array([[0.5, 2.0, np.nan, np.nan], [np.nan, -1.0, 3.0, np.nan], [-2.0, 4.0, np.nan, np.nan]])
    fitted = ct.calibrate(ct.Brownian([1.0] * 4, noise), TREE, X, hold_noise=True)
    first = (np.var([0.5, -2.0]) / B + 0.5 * 2.5**2 / (4 + 2 * noise)) / (A + 0.5 - 1)
    second = variance_by_hand("diagonal", contrasts_by_hand(X3, noise))[1]
    prior = 1 / B / (A - 1)  # the most probable precision before there are data, in units of a variance of 1
    assert fitted.variance == pytest.approx([first, second, prior, prior], rel=1e-9)


@pytest.mark.parametrize("shape", ["scalar", "diagonal", "full"])
def test_sums_of_squares_are_averaged_over_trees(shape):
    """OTHER joins a and c at 0.3, then b at 2.5."""
    noise, weights = 0.4, np.array([1.0, 3.0])
    a, b, c = X3
    other = np.array(
        [(a - c) / np.sqrt(2 * (0.3 + noise)), ((a + c) / 2 - b) / np.sqrt((0.3 + noise) / 2 + 2.2 + 2.5 + noise)]
    )
    scaled = [contrasts_by_hand(X3, noise), other]
    # rows stacked with the roots of the weights have the average squares, of two merges and not of four
    stacked = np.vstack([np.sqrt(share) * value for share, value in zip(weights / 4, scaled, strict=True)])
    spread, squares = X3.var(axis=0), stacked.T @ stacked
    estimates = np.diag(squares)
    expected = {
        "scalar": (spread.mean() / B + 0.5 * estimates.sum()) / (A + 2 - 1),
        "diagonal": (spread / B + 0.5 * estimates) / (A + 1 - 1),
        "full": (2 / B * np.diag(spread) + squares) / (2 * A - 2 + 2),
    }[shape]
    fitted = ct.calibrate(ct.Brownian(START[shape], noise), [TREE, OTHER], X3, weights, hold_noise=True)
    assert fitted.variance == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("shape", ["scalar", "diagonal"])
def test_variance_and_noise_match_scipy_optimum(shape):
    """Noise is searched for to one per cent, within a factor of ten of the start."""
    rng = np.random.default_rng(2)
    tree = ct.simulate_tree(8, rng)
    X = ct.Brownian([2.0, 0.5], 0.4).simulate(tree, rng)
    fitted = ct.calibrate(ct.Brownian(START[shape], 0.3), tree, X)
    count = 1 if shape == "scalar" else 2

    def cost(logs):
        variance = np.exp(logs[1:]) if shape == "diagonal" else np.exp(logs[1])
        return -objective(ct.Brownian(variance, np.exp(logs[0])), [tree], X)

    values = optimize.minimize(
        cost, np.zeros(1 + count) - 1, method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-9}
    )
    assert fitted.noise == pytest.approx(np.exp(values.x[0]), rel=0.02)
    assert np.atleast_1d(fitted.variance) == pytest.approx(np.exp(values.x[1:]), rel=0.02)


# -- no better place nearby ----------------------------------------------------------------------------------------


def neighbors(process):
    """Return processes with one parameter moved by a tenth of itself, or of a deviation."""
    values = []
    for factor in (0.9, 1 / 0.9):
        if isinstance(process, ct.Multinomial):
            for d in range(process.rate.size):
                rate = np.array(process.rate)
                rate[(d,) * rate.ndim] *= factor
                values.append(ct.Multinomial(rate, process.equilibrium))
            for d, q in enumerate(process.equilibrium):
                moved = np.array(q)
                moved[0] *= factor
                others = list(process.equilibrium)
                others[d] = moved / moved.sum()
                values.append(ct.Multinomial(process.rate, others))
            continue
        estimates = {"variance": process.variance, "noise": process.noise}
        if isinstance(process, ct.OrnsteinUhlenbeck):
            estimates |= {"rate": process.rate, "mean": process.mean}
            step = (factor - 1) * process.deviations(len(process.mean))
            values += [type(process)(**(estimates | {"mean": process.mean + e * step})) for e in np.eye(len(step))]
            values.append(type(process)(**(estimates | {"rate": factor * process.rate})))
        values.append(type(process)(**(estimates | {"variance": factor * process.variance})))
        values.append(type(process)(**(estimates | {"noise": factor * process.noise})))
        if process.variance.ndim == 1:
            values += [
                type(process)(**(estimates | {"variance": process.variance * np.where(e, factor, 1)}))
                for e in np.eye(len(process.variance))
            ]
        if process.variance.ndim == 2:
            tilt = np.diag(process.deviations(2)) @ np.array([[0, 1.0], [1.0, 0]]) @ np.diag(process.deviations(2))
            values.append(type(process)(**(estimates | {"variance": process.variance + 0.1 * (factor - 1) * tilt})))
    return values


@every_case
def test_fit_is_local_maximum(kind, shape):
    """Variance and mean are exact; rate and noise are found to about one per cent, which costs little."""
    rng = np.random.default_rng(3)
    gained = []
    for n in (3, 4):
        trees, weights = [ct.simulate_tree(n, rng), ct.simulate_tree(n, rng)], [2.0, 1.0]
        process, X = problem(kind, shape, rng, n)
        X = X[:, :2]
        if kind == "multinomial":
            start = ct.Multinomial(np.ones(2) if process.rate.ndim else 1.0, [[0.5, 0.5], [0.3, 0.3, 0.4]])
        else:
            variance = np.eye(2) if shape == "full" else np.ones(2) if process.variance.ndim else 1.0
            estimates = {"rate": 0.8, "mean": [0.0, 0.0]} if kind == "stationary" else {}
            start = type(process)(variance=variance, noise=0.1, **estimates)
        fitted = ct.calibrate(start, trees, X, weights)
        best = objective(fitted, trees, X, weights)
        gained.append(best - objective(start, trees, X, weights))
        for near in neighbors(fitted):
            assert objective(near, trees, X, weights) <= best + 0.01, near
    assert min(gained) >= -1e-9
    assert max(gained) > 0.1


# -- never a step down ---------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=30, derandomize=True)
@given(
    st.sampled_from(CASES),
    st.integers(0, 2**32 - 1),
    st.integers(2, 12),
    st.integers(1, 3),
    st.floats(-3, 2),
    st.booleans(),
)
def test_calibrate_never_lowers_objective(case, seed, n, n_trees, log_scale, hold_noise):
    rng = np.random.default_rng(seed)
    process, X = problem(*case, rng, n)
    simulated = [ct.simulate_tree(n, rng) for _ in range(n_trees)]
    trees = [ct.Tree(tree.children, 10.0**log_scale * tree.heights) for tree in simulated]
    weights = rng.exponential(size=n_trees) if rng.random() < 0.5 else None
    fitted = ct.calibrate(process, trees, X, weights, hold_noise=hold_noise)
    assert type(fitted) is type(process)
    if isinstance(process, ct.Multinomial):
        assert fitted.rate.shape == process.rate.shape
    else:
        assert fitted.variance.shape == process.variance.shape
        assert fitted.noise == process.noise or not hold_noise
    before, after = (own_objective(each, trees, X, weights, hold_noise) for each in (process, fitted))
    assert after >= before - 1e-7 * (1 + abs(before))


@pytest.mark.parametrize(
    ("kind", "shape"),
    [(kind, shape) for kind in ("brownian", "stationary") for shape in SHAPES],
)
def test_calibrate_can_move_from_zero_noise(kind, shape):
    """The prior is 0 without noise and positive with the fitted noise, also if rows merge at height 0."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        process, X = problem(kind, shape, rng, 8)
        X[3] = X[2]
        simulated = ct.simulate_tree(8, rng)
        heights = simulated.heights.copy()
        heights[8:10] = 0.0
        tree = ct.Tree(simulated.children, heights)
        estimates = {"rate": process.rate, "mean": process.mean} if kind == "stationary" else {}
        fitted = ct.calibrate(type(process)(variance=process.variance, noise=0.0, **estimates), tree, X)
        assert 1e-6 <= fitted.noise <= 1e4
        reached = own_objective(fitted, [tree], X)
        assert np.isfinite(reached)
        for noise in (0.01, 0.1, 1.0):
            held = ct.calibrate(
                type(process)(variance=process.variance, noise=noise, **estimates), tree, X, hold_noise=True
            )
            if kind == "brownian":  # without a start, noise is looked for everywhere
                assert reached >= own_objective(held, [tree], X) - 0.01


def test_calibrate_never_lowers_objective_from_extreme_rate():
    """Columns without any change have their maximum at the lowest rate."""
    tree = ct.simulate_tree(60, 0)
    X = np.zeros((60, 1000))
    process = ct.Multinomial(1e-6, [[0.75, 0.25]] * 1000)
    fitted = ct.calibrate(process, tree, X)
    assert own_objective(fitted, [tree], X) >= own_objective(process, [tree], X)


def test_mixed_process_is_fitted_by_part():
    rng = np.random.default_rng(4)
    tree = ct.simulate_tree(30, rng)
    X = np.empty((30, 4))
    X[:, [3, 0]], X[:, [1, 2]] = real_table(rng, 30, 2, 0.2), code_table(rng, 30, (3, 2), 0.1)
    real, codes = ct.OrnsteinUhlenbeck(0.5, noise=0.3), ct.Multinomial(0.5)
    mixed = ct.Mixed((real, [3, 0]), (codes, [1, 2]))
    fitted = ct.calibrate(mixed, tree, X)
    alone = ct.calibrate(real, tree, X[:, [3, 0]]), ct.calibrate(codes, tree, X[:, [1, 2]])
    assert [columns for _, columns in fitted.parts] == [(3, 0), (1, 2)]
    assert fitted.parts[0][0].rate == alone[0].rate
    assert np.array_equal(fitted.parts[0][0].variance, alone[0].variance)
    assert np.array_equal(fitted.parts[1][0].rate, alone[1].rate)
    assert own_objective(fitted, [tree], X) > own_objective(mixed, [tree], X)
    held = ct.calibrate(mixed, tree, X, hold_noise=True)
    assert held.parts[0][0].noise == 0.3
    assert fitted.parts[0][0].noise != 0.3


# -- gradients -----------------------------------------------------------------------------------------------------


def column_log_probability(tree, codes, rate, q):
    return np.log(reference.column_probability(tree, codes, rate, q))


def unrooted_log_probability(tree, codes, rate, q):
    """Sum over all states of all nodes, one child of the root as the start: then q is only ever the law of a draw.

    It need not add up to 1: a mutation has weight q_k for state k, whatever the others are.
    """
    n, K = tree.n_leaves, len(q)
    left, right = tree.children[-1].tolist()
    edges = [(left, right, 2 * tree.heights[-1] - tree.heights[left] - tree.heights[right])]
    for k, pair in enumerate(tree.children[:-1].tolist()):
        edges += [(n + k, child, tree.heights[n + k] - tree.heights[child]) for child in pair]
    known = {leaf: int(codes[leaf]) for leaf in range(n) if not np.isnan(codes[leaf])}
    hidden = [node for node in range(2 * n - 2) if node not in known]
    ways = np.indices((K,) * len(hidden)).reshape(len(hidden), K ** len(hidden))
    state = dict(zip(hidden, ways, strict=True)) | {leaf: np.full(ways.shape[1], code) for leaf, code in known.items()}
    weight = q[state[left]].copy()
    for one, other, length in edges:
        weight *= reference.transition(q, rate, length)[state[one], state[other]]
    return np.log(weight.sum())


def slope(function, x, step):
    """A central difference of the fourth order."""
    return (8 * (function(x + step) - function(x - step)) - function(x + 2 * step) + function(x - 2 * step)) / (
        12 * step
    )


def assert_gradients(process, tree, X):
    """Compare with differences of sums over all states, column by column."""
    by_rate, by_equilibrium = gradients(process, tree, X)
    rates = np.broadcast_to(process.rate, X.shape[1])
    assert by_rate.shape == rates.shape
    for column in zip(X.T, rates, process.equilibrium, by_rate, by_equilibrium, strict=True):
        assert_gradient(tree, *column)


def assert_gradient(tree, codes, rate, q, by_rate, by_equilibrium):
    expected = slope(lambda r: column_log_probability(tree, codes, r, q), rate, 1e-3 * rate)
    assert by_rate == pytest.approx(expected, rel=1e-6, abs=1e-8)
    step = 1e-3 * q.min()
    for e in np.eye(len(q)):
        # a little from the first state to another: the probabilities still add up to 1
        way = np.eye(len(q))[0] - e
        expected = slope(lambda x, way=way: column_log_probability(tree, codes, rate, q + x * way), 0, step)
        assert by_equilibrium @ way == pytest.approx(expected, rel=1e-6, abs=1e-8)
        # each on its own, as if they need not
        expected = slope(lambda x, e=e: unrooted_log_probability(tree, codes, rate, q + x * e), 0, step)
        assert by_equilibrium @ e == pytest.approx(expected, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("n", [2, 3, 5])
def test_gradients_match_finite_differences(n, missing):
    for seed in range(3):
        rng = np.random.default_rng([n, seed])
        n_states = (2, 3, 2)
        equilibria = [rng.dirichlet(np.full(k, 3.0)) for k in n_states]
        rate = rng.lognormal(size=() if seed == 0 else 3)
        assert_gradients(
            ct.Multinomial(rate, equilibria), ct.simulate_tree(n, rng), code_table(rng, n, n_states, missing)
        )


def test_unrooted_and_rooted_likelihood_agree():
    rng = np.random.default_rng(5)
    for n in (2, 3, 5):
        tree, q = ct.simulate_tree(n, rng), rng.dirichlet([2.0, 2.0, 2.0])
        codes = code_table(rng, n, (3,), 0.2)[:, 0]
        expected = column_log_probability(tree, codes, 0.7, q)
        assert unrooted_log_probability(tree, codes, 0.7, q) == pytest.approx(expected, abs=1e-12)


def test_gradients_are_finite_at_zero_branch_lengths():
    tree = ct.Tree([[0, 1], [2, 4], [3, 5]], [0, 0, 0, 0, 0.0, 0.0, 0.8])
    X = np.array([[1, 0], [1, np.nan], [1, 0], [0, 0]])
    assert_gradients(ct.Multinomial([0.6, 1.4], [[0.3, 0.7], [0.6, 0.4]]), tree, X)


def test_gradients_of_large_tree_and_one_row():
    """Against differences of the library's own likelihood, which other tests hold to enumeration."""
    rng = np.random.default_rng(6)
    tree = ct.simulate_tree(80, rng)
    q = np.array([0.5, 0.3, 0.2])
    X = ct.Multinomial(1.2, [q] * 3).simulate(tree, rng)
    X[rng.random(X.shape) < 0.2] = np.nan
    by_rate, by_equilibrium = gradients(ct.Multinomial(0.9, [q] * 3), tree, X)
    expected = slope(lambda r: ct.Multinomial(r, [q] * 3).log_likelihood(tree, X), 0.9, 1e-3)
    assert by_rate.sum() == pytest.approx(expected, rel=1e-6)
    e = np.array([1.0, 0.0, -1.0])
    expected = slope(lambda x: ct.Multinomial(0.9, [q + x * e, q, q]).log_likelihood(tree, X), 0.0, 1e-4)
    assert by_equilibrium[0] @ e == pytest.approx(expected, rel=1e-6)
    by_rate, by_equilibrium = gradients(ct.Multinomial(0.9, [q] * 3), ct.simulate_tree(1, 0), [[0, 2, np.nan]])
    assert by_rate.tolist() == [0, 0, 0]
    assert by_equilibrium[0].tolist() == pytest.approx([2, 0, 0])
    assert by_equilibrium[1].tolist() == pytest.approx([0, 0, 5])


# -- several trees -------------------------------------------------------------------------------------------------


def parameters(process):
    if isinstance(process, ct.Multinomial):
        return np.concatenate([np.atleast_1d(process.rate), *process.equilibrium])
    estimates = [process.variance.ravel(), [process.noise]]
    if isinstance(process, ct.OrnsteinUhlenbeck):
        estimates += [[process.rate], process.mean]
    return np.concatenate(estimates)


@every_case
def test_weights_act_like_repetitions(kind, shape):
    rng = np.random.default_rng(7)
    process, X = problem(kind, shape, rng, 10)
    first, second, third = (ct.simulate_tree(10, rng) for _ in range(3))
    weighted = ct.calibrate(process, [first, second, third], X, [2.0, 6.0, 0.0])
    repeated = ct.calibrate(process, [first, second, second, second], X)
    assert parameters(weighted) == pytest.approx(parameters(repeated), rel=1e-6)
    alone = ct.calibrate(process, first, X)
    assert parameters(ct.calibrate(process, [first, first], X)) == pytest.approx(parameters(alone), rel=1e-6)
    assert parameters(alone) != pytest.approx(parameters(weighted), rel=1e-3)


# -- the truth from simulated tables -------------------------------------------------------------------------------


def test_calibrate_recovers_brownian_parameters():
    """One variance and 20 columns: over 60 seeds it came out within 14 %, the noise within 15 % (deviations 6 % each)."""
    tree = ct.simulate_tree(500, 0)
    X = ct.Brownian(2.0, 0.3).simulate(tree, 1, n_columns=20)
    fitted = ct.calibrate(ct.Brownian(), tree, X)
    assert fitted.variance == pytest.approx(2.0, rel=0.15)
    assert fitted.noise == pytest.approx(0.3, rel=0.25)
    # the variance of the noise itself, which all neighbours tell of, is known far better
    assert fitted.variance * fitted.noise == pytest.approx(0.6, rel=0.05)


def test_calibrate_recovers_column_variances_and_covariance():
    """A third of columns' cells missing; four or five deviations (6 to 8 % each) for a column or an entry of the matrix."""
    rng = np.random.default_rng(8)
    tree = ct.simulate_tree(500, rng)
    variances = np.geomspace(0.1, 10, 8)
    X = ct.Brownian(variances, 0.05).simulate(tree, rng)
    X[rng.random(X.shape) < 0.33] = np.nan
    fitted = ct.calibrate(ct.Brownian(np.ones(8), 0.05), tree, X, hold_noise=True)
    assert fitted.variance == pytest.approx(variances, rel=0.4)
    truth = np.array([[2.0, -0.9, 0.0], [-0.9, 0.7, 0.2], [0.0, 0.2, 1.0]])
    X = ct.Brownian(truth, 0.05).simulate(tree, rng)
    fitted = ct.calibrate(ct.Brownian(np.eye(3), 0.05), tree, X, hold_noise=True)
    scale = np.sqrt(np.outer(np.diag(truth), np.diag(truth)))
    assert np.abs((fitted.variance - truth) / scale).max() < 0.3


def stationary_fits():
    """Three tables of 500 rows and 40 columns: rate 1.5, variance 3, noise 0.2; the averages of what was fitted."""
    values = []
    for seed in range(3):
        tree = ct.simulate_tree(500, seed)
        X = ct.OrnsteinUhlenbeck(1.5, 2.0, 3.0, 0.2).simulate(tree, 100 + seed, n_columns=40)
        fitted = ct.calibrate(ct.OrnsteinUhlenbeck(noise=0.1), tree, X)
        values.append([fitted.rate, fitted.variance, fitted.noise, fitted.mean.mean()])
    return np.mean(values, axis=0)


@pytest.fixture(scope="module")
def stationary_averages():
    return stationary_fits()


def test_calibrate_recovers_stationary_parameters(stationary_averages):
    """Rate within a half, variance and noise within a third, the columns' means on average within a sixth of a deviation.

    The means of 40 columns are fitted with the rest, each to half a dozen draws' worth of data, and that they fit too well comes
    out as a rate too high and a variance too low: 35 % and 20 % on average, however many columns there are.
    """
    rate, variance, noise, mean = stationary_averages
    assert rate == pytest.approx(1.5, rel=0.5)
    assert variance == pytest.approx(3.0, rel=0.33)
    assert noise == pytest.approx(0.2, rel=0.35)
    assert mean == pytest.approx(2.0, abs=0.3)
    # what two close rows tell of: noise, and how fast they part
    assert noise * variance == pytest.approx(0.6, rel=0.06)
    assert rate * variance == pytest.approx(4.5, rel=0.15)


def test_calibrate_recovers_stationary_parameters_at_high_rate():
    """At rate 20 a column has a hundred draws' worth of data: rate and variance within 15 %, noise within 25 %."""
    tree = ct.simulate_tree(500, 1)
    X = ct.OrnsteinUhlenbeck(20.0, 2.0, 3.0, 0.2).simulate(tree, 2, n_columns=40)
    fitted = ct.calibrate(ct.OrnsteinUhlenbeck(5.0, noise=0.1), tree, X)
    assert fitted.rate == pytest.approx(20.0, rel=0.15)
    assert fitted.variance == pytest.approx(3.0, rel=0.15)
    assert fitted.noise == pytest.approx(0.2, rel=0.25)
    assert np.mean(np.abs(fitted.mean - 2.0)) < 0.3


def test_calibrate_recovers_multinomial_parameters():
    """One rate for 100 columns within 15 %, equilibria within 0.1 a state on average.

    At rate 4 a column has some 40 draws. With fewer, equilibria that fit too well make the rate too high: by a fifth to two
    fifths at 0.8, on nine tables.
    """
    rng = np.random.default_rng(9)
    tree = ct.simulate_tree(500, rng)
    equilibria = [rng.dirichlet([4.0, 4.0, 4.0]) for _ in range(100)]
    X = ct.Multinomial(4.0, equilibria).simulate(tree, rng)
    X[rng.random(X.shape) < 0.1] = np.nan
    fitted = ct.calibrate(ct.Multinomial(0.5, [[1 / 3] * 3] * 100), tree, X)
    assert fitted.rate == pytest.approx(4.0, rel=0.15)
    errors = [np.abs(q - truth).mean() for q, truth in zip(fitted.equilibrium, equilibria, strict=True)]
    assert np.mean(errors) < 0.1


def test_calibrate_recovers_order_of_column_rates():
    """Fifty slow columns and fifty fast ones, a factor of 40 apart: nine in ten on their own side, the fast ones within 30 %.

    A column's rate alone is known to a factor of two or so, and its prior does not believe in rates far above 1.
    """
    rng = np.random.default_rng(10)
    tree = ct.simulate_tree(300, rng)
    X = ct.Multinomial(np.repeat([0.1, 4.0], 50), [[0.5, 0.5]] * 100).simulate(tree, rng)
    fitted = ct.calibrate(ct.Multinomial(np.full(100, 0.6), [[0.5, 0.5]] * 100), tree, X)
    assert np.quantile(fitted.rate[:50], 0.9) < np.quantile(fitted.rate[50:], 0.1)
    assert np.median(fitted.rate[50:]) == pytest.approx(4.0, rel=0.3)


# -- rounded tables ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["brownian", "stationary"])
@pytest.mark.parametrize("shape", ["scalar", "diagonal", "full"])
def test_noise_is_at_least_rounding_noise(kind, shape):
    """Whole numbers, halves, and the values 0 and 1: a twelfth of the squared step, but no more than a fifth of the variance."""
    rng = np.random.default_rng(12)
    tree = ct.simulate_tree(60, rng)
    smooth = ct.Brownian(4.0).simulate(tree, rng, n_columns=3)
    X = np.column_stack([np.round(smooth[:, 0]), np.round(2 * smooth[:, 1]) / 2, smooth[:, 2] > 0])
    least = np.minimum([1 / 12, 1 / 48, 1 / 12], 0.2 * X.var(axis=0))
    start = {"scalar": 1.0, "diagonal": np.ones(3), "full": np.eye(3)}[shape]
    process = ct.Brownian(start, 0.5) if kind == "brownian" else ct.OrnsteinUhlenbeck(1.0, 0.0, start, 0.5)
    fitted = ct.calibrate(process, tree, X)
    estimates = fitted.deviations(3) ** 2 * fitted.noise
    if shape == "scalar":
        estimates, least = estimates.mean(), least.mean()
    assert np.all(estimates >= least * (1 - 1e-6))
    assert own_objective(fitted, [tree], X) > own_objective(process, [tree], X)
    lower = {"variance": fitted.variance, "noise": 0.9 * fitted.noise * np.min(least / estimates)}
    lower |= {"rate": 1.0} if kind == "stationary" else {}
    assert type(process)(**lower).log_parameter_prior(X) == -np.inf


# -- units ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["brownian", "stationary"])
@pytest.mark.parametrize("scale", [1e-40, 1e-6, 1e6, 1e10, 1e17])
def test_calibrate_is_equivariant_to_units(kind, scale):
    """Nanoseconds since 1970 have a deviation of 1e17."""
    tree = ct.simulate_tree(40, 0)
    X = ct.Brownian(1.0, 0.2).simulate(tree, 1, n_columns=3)
    make = (
        ct.Brownian if kind == "brownian" else lambda variance, noise: ct.OrnsteinUhlenbeck(0.8, 0.0, variance, noise)
    )
    one = ct.calibrate(make(1.0, 0.1), tree, X)
    other = ct.calibrate(make(scale**2, 0.1), tree, scale * X)
    assert float(other.variance) / scale**2 == pytest.approx(float(one.variance), rel=1e-4)
    assert other.noise == pytest.approx(one.noise, rel=1e-4)
    if kind == "stationary":
        assert other.rate == pytest.approx(one.rate, rel=1e-4)
        assert other.mean / scale == pytest.approx(one.mean, rel=1e-4)


@pytest.mark.parametrize("kind", ["brownian", "stationary"])
def test_calibrate_never_lowers_objective_in_small_units(kind):
    tree = ct.simulate_tree(40, 0)
    X = 1e17 * ct.Brownian(1.0, 0.2).simulate(tree, 1, n_columns=3)
    process = ct.Brownian(1e34, 0.1) if kind == "brownian" else ct.OrnsteinUhlenbeck(0.8, 0.0, 1e34, 0.1)
    fitted = ct.calibrate(process, tree, X)
    assert own_objective(fitted, [tree], X) >= own_objective(process, [tree], X)


def test_calibrate_is_equivariant_to_origin():
    tree = ct.simulate_tree(40, 0)
    X = ct.Brownian(1.0, 0.2).simulate(tree, 1, n_columns=3)
    one = ct.calibrate(ct.Brownian(noise=0.1), tree, X)
    other = ct.calibrate(ct.Brownian(noise=0.1), tree, X + [1e6, -50.0, 3.0])
    assert parameters(other) == pytest.approx(parameters(one), rel=1e-4)


# -- edges ---------------------------------------------------------------------------------------------------------

NO_TREE = ct.simulate_tree(1, 0)


def test_calibrate_keeps_parameters_of_one_row():
    for process, row in [
        (ct.Brownian(2.0, 0.1), [[1.0, 2.0]]),
        (ct.OrnsteinUhlenbeck(2.0, noise=0.1), [[1.0, np.nan]]),
        (ct.Multinomial(2.0, [[0.3, 0.7]]), [[1]]),
    ]:
        assert parameters_as_given(ct.calibrate(process, NO_TREE, row)) == parameters_as_given(process)
    fitted = ct.calibrate(ct.Multinomial(2.0), NO_TREE, [[1]])  # what was left open is settled
    assert fitted.equilibrium[0] == pytest.approx([1 / 3, 2 / 3])


def parameters_as_given(process):
    return {name: np.asarray(value).tolist() for name, value in vars(process).items() if name != "equilibrium"}


@every_case
def test_calibrate_accepts_two_rows(kind, shape):
    rng = np.random.default_rng(11)
    process, X = problem(kind, shape, rng, 2)
    tree = ct.Tree([[0, 1]], [0, 0, 0.4])
    fitted = ct.calibrate(process, tree, X)
    assert np.all(np.isfinite(parameters(fitted)))
    assert own_objective(fitted, [tree], X) >= own_objective(process, [tree], X) - 1e-7


@pytest.mark.parametrize("shape", ["scalar", "diagonal", "full"])
def test_variance_of_constant_columns_follows_prior(shape):
    """Constant columns are treated as if their variance were 1."""
    X = np.column_stack([X3[:, 0], np.full(3, 7.0)])
    fitted = ct.calibrate(ct.Brownian(START[shape], 0.5), TREE, X, hold_noise=True)
    assert np.all(np.isfinite(fitted.variance))
    if shape == "diagonal":
        assert fitted.variance[1] == pytest.approx(1 / B / (A + 1 - 1), rel=1e-9)
    process = ct.OrnsteinUhlenbeck(1.0, 0.0, START[shape], 0.5)
    fitted = ct.calibrate(process, TREE, X)
    assert np.all(np.isfinite(parameters(fitted)))
    assert own_objective(fitted, [TREE], X) > own_objective(process, [TREE], X)
    # nothing but constants
    fitted = ct.calibrate(ct.Brownian(START[shape]), TREE, np.ones((3, 2)))
    assert np.all(np.isfinite(parameters(fitted)))
    assert fitted.noise > 0


def test_calibrate_accepts_constant_and_empty_categorical_columns():
    X = np.array([[1, 0, np.nan], [1, 1, np.nan], [1, 1, np.nan]])
    process = ct.Multinomial([1.0, 1.0, 1.0], [[0.5, 0.5], [0.5, 0.5], [0.2, 0.3, 0.5]])
    fitted = ct.calibrate(process, TREE, X)
    assert fitted.rate[0] < fitted.rate[1]
    assert fitted.equilibrium[0][1] > 0.6
    # a column without cells goes to the modes of its priors: the rate to (a - 1) b, the states to equal shares
    assert fitted.rate[2] == pytest.approx((A - 1) * B, rel=0.02)
    assert fitted.equilibrium[2] == pytest.approx([1 / 3] * 3, abs=0.02)
    settled = ct.calibrate(ct.Multinomial(), TREE, X)
    assert [len(q) for q in settled.equilibrium] == [2, 2, 1]


def test_empty_stationary_column_keeps_prior_parameters():
    X = np.column_stack([X3, np.full(3, np.nan)])
    fitted = ct.calibrate(ct.OrnsteinUhlenbeck(1.0, 0.0, [1.0, 1.0, 1.0], 0.5), TREE, X, hold_noise=True)
    assert fitted.variance[2] == pytest.approx(1 / B / (A - 1), rel=1e-9)
    assert fitted.mean[2] == pytest.approx(0.0, abs=1e-9)
    alone = ct.calibrate(ct.OrnsteinUhlenbeck(1.0, 0.0, [1.0, 1.0], 0.5), TREE, X3, hold_noise=True)
    assert fitted.rate == pytest.approx(alone.rate, rel=0.02)
    nothing = ct.calibrate(ct.OrnsteinUhlenbeck(noise=0.5), TREE, np.full((3, 2), np.nan))
    assert np.all(np.isfinite(parameters(nothing)))


def test_calibrate_of_impossible_data_stays_finite():
    """Different states at zero distance have likelihood 0; the fit must still return finite parameters."""
    tree = ct.Tree([[0, 1], [2, 3]], [0, 0, 0, 0.0, 1.0])
    fitted = ct.calibrate(ct.Multinomial(1.0, [[0.5, 0.5]]), tree, [[0.0], [1.0], [1.0]])
    assert np.all(np.isfinite(parameters(fitted)))


class Jumps(ct.Process):
    """A process of the user's own."""

    def resolve(self, X):
        return self


Jumps.__abstractmethods__ = frozenset()  # nothing else of it is ever called


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"process": "brownian"}, "process is 'brownian'"),
        ({"process": ct.OrnsteinUhlenbeck(1.0, 0.0, np.eye(2), np.eye(2))}, "noise is a covariance matrix"),
        ({"trees": "((a:1,b:1):1,c:2);"}, "Tree 0 of the sample is a str"),
        ({"trees": [TREE, "x"]}, "Tree 1 of the sample is a str"),
        ({"trees": []}, "needs at least one tree"),
        ({"weights": [1.0, 2.0]}, "[Ww]eight"),
        ({"weights": 1.0}, "[Ww]eight"),
        ({"weights": [-1.0]}, "[Ww]eight"),
        ({"weights": [0.0]}, "[Ww]eight"),
        ({"weights": [np.nan]}, "[Ww]eight"),
        ({"weights": [np.inf]}, "[Ww]eight"),
        ({"process": ct.Brownian([1.0, 2.0, 3.0])}, r"2 column\(s\).*describes 3"),
        ({"process": ct.Brownian(np.eye(2)), "X": np.where(X3 == 4, np.nan, X3)}, "full covariance"),
        ({"process": ct.Multinomial()}, r"Row 0, column 0 holds 0\.5"),
        ({"X": [[np.inf, 0.0]] * 3}, "infinite"),
        ({"X": X3[:, 0]}, r"1 dimension"),
        ({"process": ct.Multinomial(), "X": [[0.0], [1.0]]}, r"2 row\(s\) and the trees have 3 leaves"),
        ({"process": ct.Multinomial(), "X": [[0.0], [1.0]] * 2}, r"4 row\(s\) and the trees have 3 leaves"),
        ({"X": np.vstack([X3, X3])}, r"6 row\(s\).*3 leaves"),
        ({"X": X3[:1]}, r"1 row\(s\).*3 leaves"),
        ({"X": X3[:2]}, r"2 row\(s\).*3 leaves"),
        ({"trees": None}, "trees"),
        ({"weights": ["heavy"]}, "weights"),
    ],
)
def test_invalid_calibrations_are_rejected(arguments, message):
    values = {"process": ct.Brownian(noise=0.1), "trees": TREE, "X": X3} | arguments
    with pytest.raises(InputError, match=message):
        ct.calibrate(**values)


def test_calibrate_rejects_greedy_result_as_tree():
    with pytest.raises(InputError, match="trees"):
        ct.calibrate(ct.Brownian(noise=0.1), ct.greedy(X3, ct.Brownian()), X3)


def test_process_without_parameters_is_unchanged():
    jumps = Jumps()
    assert ct.calibrate(jumps, TREE, X3) is jumps
    assert jumps.log_parameter_prior(X3) == 0.0
    assert jumps.rescale_clock(2.0) is None
    mixed = ct.calibrate(ct.Mixed((jumps, [0]), (ct.Brownian(), [1])), TREE, X3)
    assert mixed.parts[0][0] is jumps
    assert mixed.rescale_clock(2.0) is None


def test_calibrate_does_not_modify_process_or_table():
    X, process = X3.copy(), ct.Brownian([1.0, 2.0], 0.3)
    ct.calibrate(process, TREE, X)
    assert np.array_equal(X, X3)
    assert process.variance.tolist() == [1.0, 2.0]
    assert process.noise == 0.3
