"""Draws from the processes against the laws they claim to follow.

Seeds are fixed. Every z-score is held below `Z_BOUND` = 5, which one correct estimate exceeds with probability 5.7e-7;
with fewer than 150 such estimates in this file, a correct simulator fails for one choice of seeds in 10,000.
"""

import tracemalloc

import numpy as np
import pytest
from scipy import stats

import coaltree as ct
import reference
from coaltree.errors import InputError
from named import refused

Z_BOUND = 5.0
TREE = ct.Tree.from_newick("(((a:0.3,b:0.3):0.5,(c:0.4,d:0.4):0.4):0.7,e:1.5);")


def leaf_covariance(tree, noise):
    return tree.heights[-1] - reference.common_heights(tree) + noise * np.eye(tree.n_leaves)


def assert_normal_moments(draws, mean, covariance):
    """`draws` has one replicate a row; for Gaussians Var(x_i x_j) = C_ii C_jj + C_ij^2 about the mean."""
    count, size = draws.shape
    centred = draws - mean
    z_mean = centred.mean(axis=0) / np.sqrt(np.diag(covariance) / count)
    assert np.abs(z_mean).max() < Z_BOUND
    for i in range(size):
        for j in range(i + 1):
            spread = np.sqrt((covariance[i, i] * covariance[j, j] + covariance[i, j] ** 2) / count)
            z = (np.mean(centred[:, i] * centred[:, j]) - covariance[i, j]) / spread
            assert abs(z) < Z_BOUND, (i, j)


@pytest.mark.parametrize("noise", [0.0, 0.8])
def test_brownian_leaves_have_shared_path_covariance(noise):
    # 2 x (5 means + 15 covariances)
    process = ct.Brownian(2.5, noise)
    rng = np.random.default_rng(11)
    # columns are independent replicates, and so are tables
    draws = np.hstack([process.simulate(TREE, rng, n_columns=500) for _ in range(80)]).T
    assert_normal_moments(draws, np.zeros(5), 2.5 * leaf_covariance(TREE, noise))


def test_brownian_leaves_are_gaussian():
    # Kolmogorov-Smirnov at p > 1e-6: false alarm once in a million
    difference = np.subtract(*ct.Brownian(2.0).simulate(TREE, 4, n_columns=2_000)[[0, 4]])
    assert stats.kstest(difference / np.sqrt(2.0 * 3.0), "norm").pvalue > 1e-6


def test_brownian_columns_have_column_variance_and_root():
    # 2 x (2 means + 3 covariances)
    tree = ct.Tree.from_newick("((a:1,b:1):1,c:2);")
    process = ct.Brownian([0.1, 9.0], noise=0.5)
    rng = np.random.default_rng(5)
    draws = np.array([process.simulate(tree, rng, root=[3.0, -7.0]) for _ in range(10_000)])
    rows = leaf_covariance(tree, 0.5)[:2, :2]
    assert_normal_moments(draws[:, :2, 0], 3.0, 0.1 * rows)
    assert_normal_moments(draws[:, :2, 1], -7.0, 9.0 * rows)


def test_brownian_full_covariance_is_kronecker_product():
    # 6 means + 21 covariances
    tree = ct.Tree.from_newick("((a:1,b:1):1,c:2);")
    variance = np.array([[2.0, -0.9], [-0.9, 0.7]])
    process = ct.Brownian(variance, noise=0.3)
    rng = np.random.default_rng(6)
    draws = np.array([process.simulate(tree, rng).ravel() for _ in range(10_000)])
    assert_normal_moments(draws, np.zeros(6), np.kron(leaf_covariance(tree, 0.3), variance))


def test_multinomial_leaves_are_at_equilibrium():
    # 5 leaves x 3 states
    q, count = np.array([0.6, 0.3, 0.1]), 10_000
    codes = ct.Multinomial(0.8, [q] * count).simulate(TREE, 1)
    for leaf in range(5):
        shares = np.bincount(codes[leaf].astype(int), minlength=3) / count
        z = (shares - q) / np.sqrt(q * (1 - q) / count)
        assert np.abs(z).max() < Z_BOUND


@pytest.mark.parametrize("rate", [0.2, 1.0, 4.0])
def test_multinomial_pairs_agree_with_expected_probability(rate):
    # 3 x 10 pairs; the chance is e^(-rate path) + (1 - e^(-rate path)) sum q^2
    q, count = np.array([0.6, 0.3, 0.1]), 6_000
    codes = ct.Multinomial(rate, [q] * count).simulate(TREE, 2)
    heights = reference.common_heights(TREE)
    for i in range(5):
        for j in range(i):
            stay = np.exp(-2 * rate * heights[i, j])
            expected = stay + (1 - stay) * np.sum(q**2)
            z = (np.mean(codes[i] == codes[j]) - expected) / np.sqrt(expected * (1 - expected) / count)
            assert abs(z) < Z_BOUND, (i, j)


def test_multinomial_tables_follow_likelihood():
    # Whole rows of states of three leaves: chi-squared at p > 1e-6
    tree = ct.Tree.from_newick("((a:0.4,b:0.4):0.5,c:0.9);")
    q, count = np.array([0.7, 0.3]), 8_000
    codes = ct.Multinomial(1.1, [q] * count).simulate(tree, 3).astype(int)
    observed = np.bincount(codes[0] * 4 + codes[1] * 2 + codes[2], minlength=8)
    tables = np.indices((2, 2, 2)).reshape(3, -1).T.astype(float)
    expected = [count * reference.column_probability(tree, table, 1.1, q) for table in tables]
    assert sum(expected) == pytest.approx(count)
    assert stats.chisquare(observed, expected).pvalue > 1e-6


def test_multinomial_columns_have_column_rates():
    # 2 estimates
    count = 4_000
    process = ct.Multinomial([0.1] * count + [10.0] * count, [[0.5, 0.5]] * (2 * count))
    same = np.equal(*process.simulate(TREE, 9)[[0, 4]])
    for rate, block in [(0.1, same[:count]), (10.0, same[count:])]:
        expected = 0.5 + 0.5 * np.exp(-rate * 3.0)
        assert abs(block.mean() - expected) / np.sqrt(expected * (1 - expected) / count) < Z_BOUND


MIXED = ct.Mixed(
    (ct.Brownian([1e4, 1e8]), [3, 0]),
    (ct.Multinomial(1.0, [[0.5, 0.5], [0.25, 0.25, 0.25, 0.25]]), [1, 4]),
    (ct.Brownian(1e-4), [2]),
)


def test_mixed_simulation_keeps_column_order():
    tables = np.array([MIXED.simulate(TREE, seed) for seed in range(60)])
    assert tables.shape == (60, 5, 5)
    assert set(np.unique(tables[:, :, 1])) == {0, 1}
    assert set(np.unique(tables[:, :, 4])) == {
        0,
        1,
        2,
        3,
    }  # 300 cells: one state absent with probability below 1e-30
    # Spreads a factor of 100 apart, known to within 20 % or so: no false alarm below 10 sigma.
    sizes = np.sqrt(np.mean((tables[:, 0] - tables[:, 4]) ** 2, axis=0))
    for column, variance in [(3, 1e4), (0, 1e8), (2, 1e-4)]:
        assert sizes[column] / np.sqrt(3.0 * variance) == pytest.approx(1.0, abs=0.9)


def test_likelihood_prefers_true_tree():
    """Average gain over a wrong tree is positive (it is a divergence); here by far more than 5 standard errors."""
    other = ct.Tree.from_newick("(((a:0.3,e:0.3):0.5,(c:0.4,b:0.4):0.4):0.7,d:1.5);").reorder(TREE.leaf_names)
    for process in [ct.Brownian([1.0] * 20, noise=0.1), ct.Multinomial(0.7, [[0.5, 0.5]] * 20), MIXED]:
        gains = []
        for seed in range(50):
            X = process.simulate(TREE, seed)
            gains.append(process.log_likelihood(TREE, X) - process.log_likelihood(other, X))
        assert np.mean(gains) / (np.std(gains) / np.sqrt(50)) > Z_BOUND


@pytest.mark.parametrize("process", [ct.Brownian([1.0, 2.0], 0.1), ct.Multinomial(1.0, [[0.1, 0.2, 0.7]] * 9), MIXED])
def test_simulation_is_reproducible(process):
    first = process.simulate(TREE, 7)
    assert first.shape[0] == TREE.n_leaves
    assert np.array_equal(first, process.simulate(TREE, 7))
    assert np.array_equal(first, process.simulate(TREE, np.random.default_rng(7)))
    assert not np.array_equal(first, process.simulate(TREE, 8))
    generator = np.random.default_rng(7)
    process.simulate(TREE, generator)
    assert not np.array_equal(first, process.simulate(TREE, generator))  # a generator moves on
    old_style = process.simulate(TREE, np.random.RandomState(3))
    assert np.array_equal(old_style, process.simulate(TREE, np.random.RandomState(3)))


def test_simulate_on_one_leaf():
    tree = ct.simulate_tree(1, 0)
    assert ct.Brownian().simulate(tree, 0, n_columns=3, root=[1.0, 2.0, 3.0]).tolist() == [[1.0, 2.0, 3.0]]
    assert ct.Multinomial(1.0, [[1.0], [0.5, 0.5]]).simulate(tree, 0).shape == (1, 2)


def test_simulate_n_columns_option():
    assert ct.Brownian().simulate(TREE, 0).shape == (5, 1)
    assert ct.Brownian().simulate(TREE, 0, n_columns=4).shape == (5, 4)
    assert ct.Brownian(np.eye(3)).simulate(TREE, 0).shape == (5, 3)
    assert ct.Multinomial(1.0, [[0.5, 0.5]] * 2).simulate(TREE, 0, n_columns=2).shape == (5, 2)


def test_simulate_memory_is_proportional_to_width():
    tracemalloc.start()
    try:
        table = ct.Brownian().simulate(TREE, 0, n_columns=2_000)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 30 * table.nbytes


@pytest.mark.parametrize(
    ("process", "options", "message"),
    [
        (ct.Brownian([1.0, 2.0]), {"n_columns": 3}, r"3 column\(s\).*Brownian's variance describes 2"),
        (
            ct.Multinomial(1.0, [[1.0]]),
            {"n_columns": 3},
            r"3 column\(s\).*Multinomial's equilibrium describes 1",
        ),
        (MIXED, {"n_columns": 3}, r"3 column\(s\).*Mixed describes 5"),
        (ct.Multinomial(), {}, "equilibrium= to simulate"),
        (ct.Mixed((ct.Multinomial(), [0])), {}, "equilibrium= to simulate"),
        (ct.Brownian(), {"random_state": -1}, "random_state is -1"),
        (ct.Brownian(), {"random_state": "seed"}, "random_state is 'seed'"),
    ],
)
def test_invalid_simulations_are_rejected(process, options, message):
    with pytest.raises(InputError, match=message):
        process.simulate(TREE, **options)


@pytest.mark.parametrize(
    "process",
    [ct.Brownian(), ct.OrnsteinUhlenbeck(), ct.Multinomial(1.0, [[0.5, 0.5]]), ct.Mixed((ct.Brownian(), [0]))],
    ids=lambda process: type(process).__name__,
)
@pytest.mark.parametrize("n_columns", [-1, 0, 2.5, "two", True])
def test_invalid_n_columns_is_rejected(process, n_columns):
    with pytest.raises(
        InputError, match=f"n_columns is {n_columns!r}; it must be a whole number of columns of at least 1"
    ):
        process.simulate(TREE, n_columns=n_columns)


@pytest.mark.parametrize(
    "process",
    [ct.Brownian(), ct.OrnsteinUhlenbeck(), ct.Multinomial(1.0, [[0.5, 0.5]]), ct.Mixed((ct.Brownian(), [0]))],
    ids=lambda process: type(process).__name__,
)
def test_simulate_rejects_non_trees(process):
    with pytest.raises(InputError, match="tree is of type str and not a Tree"):
        process.simulate("((a:1,b:1);")


@pytest.mark.parametrize(
    ("root", "sentence"),
    [
        ("high", "root is 'high';.*number.*column"),
        ([1.0, 2.0, 3.0], r"root is \[1.0, 2.0, 3.0\];.*finite number.* 2 column"),
        (np.nan, "root is nan;.*finite number"),
    ],
)
def test_invalid_roots_are_rejected(root, sentence):
    with pytest.raises(InputError, match=sentence):
        ct.Brownian([1.0, 2.0]).simulate(TREE, root=root)


@pytest.mark.parametrize("n", [-1, 0, 2.5, "ten", None, True, np.nan, np.inf])
def test_invalid_numbers_of_leaves_are_rejected(n):
    with refused("leaves 1"):
        ct.simulate_tree(n)
