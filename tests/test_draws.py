"""Draws of cells given what was observed: against dense conditional distributions and against enumeration.

Seeds are fixed. Every z-score is held below `Z_BOUND` = 5, which one correct estimate exceeds with probability 5.7e-7; with
fewer than 400 such estimates in this file, correct draws fail for one choice of seeds in 4,000.
"""

from itertools import product

import numpy as np
import pytest
from scipy import stats

import coaltree as ct
import reference
from coaltree.predict.predictor import Predictor
from coaltree.process.likelihood import Beliefs
from coaltree.tree.edit import with_leaves

Z_BOUND = 5.0
nan = np.nan
TREE = ct.Tree.from_newick("(((a:0.2,b:0.2):0.5,(c:0.4,d:0.4):0.3):0.6,e:1.3);")
CHERRY_MISSING = np.array([[nan], [nan], [-1.0], [nan], [2.0]])
MUTATION = ct.Multinomial([0.5, 2.0], [[0.5, 0.3, 0.2], [0.4, 0.6]])


def draws(process, X, size, seed=0, tree=TREE):
    beliefs = Beliefs(tree, X, process)
    return beliefs.draw(size, np.random.default_rng(seed))


def assert_normal_moments(samples, mean, covariance):
    """One draw a row; for Gaussians Var(x_i x_j) = C_ii C_jj + C_ij^2 about the mean."""
    count, size = samples.shape
    centred = samples - mean
    assert np.abs(centred.mean(axis=0) / np.sqrt(np.diag(covariance) / count)).max() < Z_BOUND
    for i in range(size):
        for j in range(i + 1):
            spread = np.sqrt((covariance[i, i] * covariance[j, j] + covariance[i, j] ** 2) / count)
            z = (np.mean(centred[:, i] * centred[:, j]) - covariance[i, j]) / spread
            assert abs(z) < Z_BOUND, (i, j)


def dense(x, states, noise, mean=None):
    """Mean and covariance of the cells that all leaves would show anew, given those that were observed.

    `states` is the covariance of the leaves' states; without a mean it is unknown and flat, and estimated with the rest.
    """
    observed = np.flatnonzero(~np.isnan(x))
    inverse = np.linalg.inv(states[np.ix_(observed, observed)] + noise * np.eye(len(observed)))
    gain = states[:, observed] @ inverse
    covariance = states + noise * np.eye(len(x)) - gain @ states[observed]
    if mean is not None:
        return mean + gain @ (x[observed] - mean), covariance
    information = inverse.sum()
    mean = (inverse @ x[observed]).sum() / information
    lack = 1 - gain.sum(axis=1)
    return mean + gain @ (x[observed] - mean), covariance + np.outer(lack, lack) / information


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_brownian_draws_have_conditional_covariance(noise):
    # 2 x (5 means + 15 covariances), those of observed cells without noise left out
    process = ct.Brownian(2.0, noise)
    samples = draws(process, CHERRY_MISSING, 20_000)[..., 0]
    states = 2.0 * (TREE.heights[-1] - reference.common_heights(TREE))
    mean, covariance = dense(CHERRY_MISSING[:, 0], states, 2.0 * noise)
    free = np.arange(5) if noise else np.array([0, 1, 3])
    assert_normal_moments(samples[:, free], mean[free], covariance[np.ix_(free, free)])
    if not noise:
        np.testing.assert_allclose(samples[:, [2, 4]], np.tile([-1.0, 2.0], (20_000, 1)), atol=1e-6)


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_stationary_draws_have_conditional_covariance(noise):
    # 2 x (5 means + 15 covariances), those of observed cells without noise left out
    process = ct.OrnsteinUhlenbeck(0.6, 0.5, 2.0, noise)
    samples = draws(process, CHERRY_MISSING, 20_000, seed=1)[..., 0]
    states = 2.0 * np.exp(-2 * 0.6 * reference.common_heights(TREE))
    mean, covariance = dense(CHERRY_MISSING[:, 0], states, 2.0 * noise, mean=0.5)
    free = np.arange(5) if noise else np.array([0, 1, 3])
    assert_normal_moments(samples[:, free], mean[free], covariance[np.ix_(free, free)])
    if not noise:
        np.testing.assert_allclose(samples[:, [2, 4]], np.tile([-1.0, 2.0], (20_000, 1)), atol=1e-6)


@pytest.mark.parametrize("process", [ct.Brownian([2.0, 0.5], 0.3), ct.OrnsteinUhlenbeck(0.6, 0.0, [2.0, 0.5], 0.3)])
def test_columns_are_drawn_independently(process):
    # 2 x 25 covariances
    X = np.column_stack([CHERRY_MISSING[:, 0], CHERRY_MISSING[::-1, 0]])
    samples = draws(process, X, 4000, seed=2)
    centred = samples - samples.mean(axis=0)
    products = centred[:, :, None, 0] * centred[:, None, :, 1]
    z = products.mean(axis=0) / (products.std(axis=0) / np.sqrt(len(samples)))
    assert np.abs(z).max() < Z_BOUND


def test_brownian_draws_of_complete_rows_have_fresh_noise():
    # 5 means + 15 covariances
    x = np.array([0.1, 0.4, -1.0, -1.4, 2.0])
    samples = draws(ct.Brownian(1.5, 0.4), x[:, None], 20_000, seed=3)[..., 0]
    mean, covariance = dense(x, 1.5 * (TREE.heights[-1] - reference.common_heights(TREE)), 0.6)
    assert_normal_moments(samples, mean, covariance)


def test_stationary_draws_of_complete_rows_have_fresh_noise():
    # 5 means + 15 covariances
    x = np.array([0.1, 0.4, -1.0, -1.4, 2.0])
    samples = draws(ct.OrnsteinUhlenbeck(0.6, 0.5, 1.5, 0.4), x[:, None], 20_000, seed=4)[..., 0]
    mean, covariance = dense(x, 1.5 * np.exp(-1.2 * reference.common_heights(TREE)), 0.6, mean=0.5)
    assert_normal_moments(samples, mean, covariance)


def test_draws_have_full_covariance():
    # 2 means + 3 covariances: what one leaf would show, of both columns together
    variance = np.array([[1.0, -0.6], [-0.6, 0.8]])
    X = np.array([[0.1, 2.0], [0.4, 1.2], [-1.0, 0.3], [-1.4, -0.2], [2.0, -1.1]])
    samples = draws(ct.Brownian(variance, 0.4), X, 20_000, seed=5)[:, 1]
    parts = [dense(x, TREE.heights[-1] - reference.common_heights(TREE), 0.4) for x in X.T]
    assert_normal_moments(samples, [mean[1] for mean, _ in parts], parts[0][1][1, 1] * variance)


def test_categorical_draws_match_enumeration():
    """All ways to fill the holes at once, column by column: chi-squared with p > 1e-6 for each of two columns."""
    X = np.array([[nan, 1.0], [nan, nan], [1.0, nan], [nan, nan], [2.0, 0.0]])
    samples = draws(MUTATION, X, 20_000, seed=6).astype(int)
    for d, (rate, q) in enumerate(zip(MUTATION.rate, MUTATION.equilibrium, strict=True)):
        holes = np.flatnonzero(np.isnan(X[:, d]))
        observed = np.flatnonzero(~np.isnan(X[:, d]))
        assert np.all(samples[:, observed, d] == X[observed, d])
        ways = list(product(range(len(q)), repeat=len(holes)))
        probabilities = []
        for way in ways:
            codes = X[:, d].copy()
            codes[holes] = way
            probabilities.append(reference.column_probability(TREE, codes, rate, q))
        probabilities = np.array(probabilities) / np.sum(probabilities)
        places = {way: k for k, way in enumerate(ways)}
        actual = np.bincount([places[tuple(row)] for row in samples[:, holes, d].tolist()], minlength=len(ways))
        assert stats.chisquare(actual, probabilities * len(samples)).pvalue > 1e-6


def test_mixed_draws_match_parts():
    # 3 means, 3 variances, and the mean of a code
    X = np.column_stack([[nan, nan, 1.0, nan, 0.0], CHERRY_MISSING[:, 0], [0.0, 0.0, nan, 1.0, 1.0]])
    mutation = ct.Multinomial([0.5, 2.0], [[0.5, 0.5], [0.4, 0.6]])
    process = ct.Mixed((ct.OrnsteinUhlenbeck(0.6, 0.5, 2.0, 0.3), [1]), (mutation, [0, 2]))
    samples = draws(process, X, 10_000, seed=7)
    states = 2.0 * np.exp(-1.2 * reference.common_heights(TREE))
    mean, covariance = dense(X[:, 1], states, 0.6, mean=0.5)
    for leaf in (0, 1, 3):
        assert_normal_moments(samples[:, [leaf], 1], mean[[leaf]], covariance[[leaf]][:, [leaf]])
    codes = X[:, 2].copy()
    shares = []
    for code in range(2):
        codes[2] = code
        shares.append(reference.column_probability(TREE, codes, 2.0, np.array([0.4, 0.6])))
    p = shares[1] / sum(shares)
    assert abs(samples[:, 2, 2].mean() - p) < Z_BOUND * np.sqrt(p * (1 - p) / len(samples))
    assert np.all(samples[:, [2, 4], 0] == X[[2, 4], 0])


def test_draws_of_one_leaf():
    assert draws(MUTATION, [[2.0, 0.0]], 3, tree=ct.Tree([], [0.0])).tolist() == [[[2.0, 0.0]]] * 3
    samples = draws(ct.Brownian(2.0, 0.5), [[1.5]], 20_000, tree=ct.Tree([], [0.0]))[:, 0]
    # the state behind the cell has the variance of its noise, and what is shown has it twice
    assert_normal_moments(samples, 1.5, np.array([[2.0]]))


# -- draws of rows by a predictor --------------------------------------------------------------------------------------


def predictor_of(X, process, tree=TREE):
    return Predictor.from_trees([tree], np.ones(1), np.asarray(X), process)


def test_draws_of_new_rows_match_predictive_moments():
    # 4 means, 4 variances, 6 shares
    X = np.array([[0.1, 0, 2.0], [nan, 1, 1.2], [-1.0, nan, nan], [-1.4, 1, -0.2], [2.0, 2, nan]])
    mutation = ct.Multinomial(0.5, [[0.5, 0.3, 0.2]])
    stationary = ct.OrnsteinUhlenbeck(0.5, 0.2, [1.0, 2.0], 0.2)
    predictor = predictor_of(X, ct.Mixed((stationary, [0, 2]), (mutation, [1])))
    rows = np.array([[0.3, nan, nan], [nan, 2, 1.0]])
    size = 20_000
    samples = predictor.draw(rows, size, np.random.default_rng(0))
    cells = predictor.cells(rows)
    assert samples.shape == (size, 2, 3)
    z = (samples[:, :, [0, 2]].mean(axis=0) - cells.mean) / (cells.sd / np.sqrt(size))
    assert np.abs(z).max() < Z_BOUND
    squares = (samples[:, :, [0, 2]] - cells.mean) ** 2
    z = (squares.mean(axis=0) - cells.sd**2) / (squares.std(axis=0) / np.sqrt(size))
    assert np.abs(z).max() < Z_BOUND
    shares = np.array([(samples[:, :, 1] == code).mean(axis=0) for code in range(3)]).T
    p = cells.probability
    assert np.abs((shares - p) / np.sqrt(p * (1 - p) / size)).max() < Z_BOUND


def test_cells_of_one_draw_share_attachment_point():
    """Both cells of a row come from the same attachment point, so they covary as the means of the points do."""
    X = np.array([[3.0, 3.0], [2.8, 3.2], [-3.0, -3.0], [-3.1, -2.8], [3.1, 2.9]])
    predictor = predictor_of(X, ct.Brownian(0.5, 0.05))
    empty = np.full((1, 2), nan)
    samples = predictor.draw(empty, 5000, np.random.default_rng(0))[:, 0]
    prior = np.exp(predictor.groups.points.log_masses)
    means = predictor.groups.predict_at(np.arange(len(prior))).mean
    centred = means - prior @ means
    expected = np.sum(prior * centred[:, 0] * centred[:, 1])
    products = np.prod(samples - samples.mean(axis=0), axis=1)
    assert expected > 1  # a mixture of two groups
    assert abs(products.mean() - expected) < Z_BOUND * products.std() / np.sqrt(len(products))


@pytest.mark.parametrize(
    "process", [ct.Brownian(1.0, 0.2), ct.OrnsteinUhlenbeck(0.6, 0.0, 1.5, 0.2)], ids=["brownian", "stationary"]
)
def test_draws_of_training_row_match_predictive_moments(process):
    """A row with missing cells is placed anew for each draw. 2 means and 2 variances."""
    X = np.array([[0.1, 2.0], [0.4, nan], [-1.0, 0.3], [-1.4, -0.2], [2.0, -1.1]])
    predictor = predictor_of(X, process)
    size = 400
    samples = predictor.draw_training_cells(np.array([1]), size, np.random.default_rng(0))[:, 0, 1]
    cells = predictor.training_cells(np.array([1]))
    mean, sd = cells.mean[0, 1], cells.sd[0, 1]
    assert abs(samples.mean() - mean) < Z_BOUND * sd / np.sqrt(size)
    squares = (samples - mean) ** 2
    assert abs(squares.mean() - sd**2) < Z_BOUND * squares.std() / np.sqrt(size)


def test_similar_rows_are_drawn_jointly():
    """Two rows that agree in many cells and both miss one are nearly always neighbours, in whatever tree they are drawn.

    Rows that are drawn apart have for 100 draws a correlation above 0.5 with probability 1e-7.
    """
    rng = np.random.default_rng(1)
    process = ct.Brownian(1.0, 1e-4)
    tree = ct.simulate_tree(11, 3)
    tree = with_leaves(tree, np.array([4]), np.array([1e-6]), np.array([7]))
    X = process.simulate(tree, rng, n_columns=12)
    X[[4, 7], 5] = nan
    predictor = predictor_of(X, process, tree)
    samples = predictor.draw_training_cells(np.array([4, 7]), 100, rng)[:, :, 5]
    assert samples.std(axis=0).min() > 0.01
    assert np.corrcoef(samples.T)[0, 1] > 0.9
    apart = predictor.draw(X[[4, 7]], 100, rng)[:, :, 5]
    assert abs(np.corrcoef(apart.T)[0, 1]) < 0.5


def test_draws_use_tree_weights():
    """In one tree all leaves have one state, in the other each its own: the draws show which it was.

    The share of the first, 0.3, within 5 standard deviations.
    """
    X = np.array([[5.0], [-5.0], [5.0], [-5.0]])
    trees = [ct.Tree([[0, 1], [4, 2], [5, 3]], [0, 0, 0, 0, *np.multiply(scale, [1, 2, 3])]) for scale in (1e-9, 1e9)]
    predictor = Predictor.from_trees(
        [trees[0], trees[1], trees[0]], np.array([0.2, 1.4, 0.4]), X, ct.Brownian(1.0, 0.01)
    )
    size = 400
    samples = predictor.draw_training_cells(np.array([0, 1]), size, np.random.default_rng(0))[..., 0]
    together = np.abs(samples[:, 0]) < 1
    np.testing.assert_array_equal(together, np.abs(samples[:, 1]) < 1)
    np.testing.assert_array_equal(~together, np.abs(samples[:, 0] - 5) < 1)
    assert abs(together.mean() - 0.3) < Z_BOUND * np.sqrt(0.21 / size)


def test_seeds_reproduce_draws():
    X = np.array([[0.1, 2.0], [0.4, nan], [-1.0, 0.3], [nan, -0.2], [2.0, -1.1]])
    predictor = predictor_of(X, ct.Brownian(1.0, 0.2))
    rows = np.array([1, 3])
    first, second, other = (predictor.draw_training_cells(rows, 2, np.random.default_rng(seed)) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, second)
    assert not np.any(first == other)
    assert not np.any(first[0] == first[1])
