"""Likelihoods of tables on given trees, against brute force: whole covariance matrices and all interior states."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import integrate, stats

import coaltree as ct
import reference
from coaltree.errors import InputError
from named import refused
from tables import code_table

SIZES = range(2, 8)


def real_table(rng, n, n_columns, missing=0.0):
    X = rng.normal(size=(n, n_columns)) * rng.choice([0.1, 1.0, 30.0], n_columns) + rng.normal(size=n_columns)
    X[rng.random(X.shape) < missing] = np.nan
    return X


def random_equilibria(rng, n_states):
    return [rng.dirichlet(np.full(k, 2.0)) for k in n_states]


def random_covariance(rng, n_columns):
    a = rng.normal(size=(n_columns, n_columns))
    return a @ a.T + 0.1 * np.eye(n_columns)


def close(value):
    return pytest.approx(value, rel=1e-8, abs=1e-8)


def with_empty_row_and_column(X):
    X = X.copy()
    X[0] = np.nan
    X[:, -1] = np.nan
    return X


# -- the reference itself ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", [0.0, 0.4])
def test_flat_root_likelihood_is_integral_over_root(noise):
    """The closed form, a quadrature over the root's state, the contrasts and the recursion agree."""
    rng = np.random.default_rng(1)
    tree = ct.simulate_tree(4, 3)
    x = rng.normal(size=4)
    variance = 1.7
    covariance = variance * (tree.heights[-1] - reference.common_heights(tree) + noise * np.eye(4))
    closed = reference.brownian_log_likelihood(tree, x[:, None], variance, noise)

    density = stats.multivariate_normal(np.zeros(4), covariance).pdf
    integral, _ = integrate.quad(
        lambda mu: density(x - mu), -30, 30, epsabs=0, epsrel=1e-11, limit=500, points=[x.mean()]
    )
    assert closed == pytest.approx(np.log(integral), abs=1e-9)

    contrasts = np.hstack([np.eye(3), -np.ones((3, 1))])  # every row against the last: a unit Jacobian
    by_contrasts = stats.multivariate_normal(np.zeros(3), contrasts @ covariance @ contrasts.T).logpdf(contrasts @ x)
    assert closed == close(by_contrasts)

    process = ct.Brownian(variance, noise)
    assert reference.climb(tree, x[:, None], process).log_likelihood == close(closed)


def test_reference_recursion_matches_enumeration():
    rng = np.random.default_rng(2)
    n_states = (2, 3, 4)
    process = ct.Multinomial([0.2, 1.0, 8.0], random_equilibria(rng, n_states))
    for n in SIZES:
        tree = ct.simulate_tree(n, n)
        X = code_table(rng, n, n_states, missing=0.2)
        assert reference.climb(tree, X, process).log_likelihood == close(reference.log_likelihood(tree, X, process))


# -- agreement -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("noise", [0.0, 0.25])
@pytest.mark.parametrize("missing", [0.0, 0.35])
@pytest.mark.parametrize("variance", [1.0, 0.3, "columns"])
def test_brownian_matches_dense_covariance(n, noise, missing, variance):
    for seed in range(4):
        rng = np.random.default_rng([n, seed])
        tree = ct.simulate_tree(n, rng)
        variances = rng.lognormal(sigma=2, size=4) if variance == "columns" else variance
        X = real_table(rng, n, 4, missing)
        process = ct.Brownian(variances, noise)
        assert process.log_likelihood(tree, X) == close(reference.brownian_log_likelihood(tree, X, variances, noise))


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("noise", [0.0, 0.25])
def test_full_covariance_matches_kronecker_product(n, noise):
    for seed in range(4):
        rng = np.random.default_rng([n, seed])
        tree = ct.simulate_tree(n, rng)
        variance = random_covariance(rng, 3)
        X = real_table(rng, n, 3)
        process = ct.Brownian(variance, noise)
        assert process.log_likelihood(tree, X) == close(reference.brownian_log_likelihood(tree, X, variance, noise))


def test_diagonal_matrix_equals_column_variances():
    rng = np.random.default_rng(0)
    tree = ct.simulate_tree(6, rng)
    X = real_table(rng, 6, 3)
    variances = np.array([0.2, 1.0, 7.0])
    full = ct.Brownian(np.diag(variances), 0.1).log_likelihood(tree, X)
    assert full == close(ct.Brownian(variances, 0.1).log_likelihood(tree, X))


@pytest.mark.parametrize("noise", [0.0, 0.25])
def test_brownian_contrasts_match_scipy(noise):
    """A third party: differences to the last row, under scipy's multivariate normal."""
    rng = np.random.default_rng(5)
    for n in SIZES:
        tree = ct.simulate_tree(n, rng)
        X = real_table(rng, n, 2)
        variance = random_covariance(rng, 2)
        rows = tree.heights[-1] - reference.common_heights(tree) + noise * np.eye(n)
        contrasts = np.hstack([np.eye(n - 1), -np.ones((n - 1, 1))])
        covariance = np.kron(contrasts @ rows @ contrasts.T, variance)
        expected = stats.multivariate_normal(np.zeros(2 * n - 2), covariance).logpdf((contrasts @ X).ravel())
        assert ct.Brownian(variance, noise).log_likelihood(tree, X) == close(expected)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("missing", [0.0, 0.35])
@pytest.mark.parametrize("rate", [0.7, (0.02, 1.0, 3.0, 40.0)])
def test_multinomial_matches_sum_over_interior_states(n, missing, rate):
    n_states = (2, 3, 4, 2)
    for seed in range(3):
        rng = np.random.default_rng([n, seed])
        tree = ct.simulate_tree(n, rng)
        equilibria = random_equilibria(rng, n_states)
        X = code_table(rng, n, n_states, missing)
        expected = reference.multinomial_log_likelihood(tree, X, rate, equilibria)
        assert ct.Multinomial(rate, equilibria).log_likelihood(tree, X) == close(expected)


@pytest.mark.parametrize("n", SIZES)
def test_estimated_equilibria_are_smoothed_shares(n):
    rng = np.random.default_rng(n)
    tree = ct.simulate_tree(n, rng)
    X = code_table(rng, n, (2, 3, 4), missing=0.2)
    process = ct.Multinomial(1.3)
    assert process.log_likelihood(tree, X) == close(reference.log_likelihood(tree, X, process))
    column = np.array([[0.0], [2.0], [np.nan], [2.0]])
    (shares,) = process.resolve(column).equilibrium
    assert shares == pytest.approx([2 / 6, 1 / 6, 3 / 6])


def mixed_process(rng):
    """Three parts whose columns interleave; two real parts differ in noise."""
    return ct.Mixed(
        (ct.Brownian([0.5, 2.0], noise=0.3), [3, 0]),
        (ct.Multinomial([0.1, 5.0], random_equilibria(rng, (3, 2))), [1, 5]),
        (ct.Brownian(1.5), [2, 4]),
    )


def mixed_table(rng, n, missing=0.0):
    X = real_table(rng, n, 6, missing)
    X[:, [1, 5]] = code_table(rng, n, (3, 2), missing)
    return X


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_mixed_log_likelihood_is_sum_of_parts(n, missing):
    rng = np.random.default_rng(n)
    tree = ct.simulate_tree(n, rng)
    process = mixed_process(rng)
    X = mixed_table(rng, n, missing)
    assert process.log_likelihood(tree, X) == close(reference.log_likelihood(tree, X, process))
    parts = sum(part.log_likelihood(tree, X[:, list(columns)]) for part, columns in process.parts)
    assert process.log_likelihood(tree, X) == close(parts)


@pytest.mark.parametrize("n", SIZES)
def test_likelihood_with_empty_rows_and_columns(n):
    rng = np.random.default_rng(n)
    tree = ct.simulate_tree(n, rng)
    equilibria = random_equilibria(rng, (2, 3, 4))
    for process, X in [
        (ct.Brownian([0.4, 1.0, 3.0]), real_table(rng, n, 3)),
        (ct.Brownian(2.0, noise=0.5), real_table(rng, n, 3, missing=0.2)),
        (ct.Multinomial([0.3, 1.0, 9.0], equilibria), code_table(rng, n, (2, 3, 4), missing=0.2)),
        (ct.Multinomial(), code_table(rng, n, (2, 3, 4))),
        (mixed_process(rng), mixed_table(rng, n, missing=0.1)),
    ]:
        X = with_empty_row_and_column(X)
        assert process.log_likelihood(tree, X) == close(reference.log_likelihood(tree, X, process))


def test_empty_row_does_not_change_likelihood():
    """The likelihood depends only on the subtree of the leaves with cells."""
    X = np.array([[1.0, 0.0], [np.nan, np.nan], [2.5, 1.0]])
    process = ct.Mixed((ct.Brownian(2.0), [0]), (ct.Multinomial(0.5, [[0.3, 0.7]]), [1]))
    three = ct.Tree.from_newick("((a:1,b:1):1,c:2);")
    two = ct.Tree.from_newick("(a:2,c:2);")
    assert process.log_likelihood(three, X) == close(process.log_likelihood(two, X[[0, 2]]))


def test_empty_table_has_likelihood_one():
    tree = ct.simulate_tree(5, 0)
    X = np.full((5, 2), np.nan)
    for process in [
        ct.Brownian(),
        ct.Brownian(noise=1.0),
        ct.Multinomial(),
        ct.Mixed((ct.Brownian(), [0]), (ct.Multinomial(), [1])),
    ]:
        assert process.log_likelihood(tree, X) == 0.0


def test_branch_above_empty_sibling_adds_variance():
    """b's message passes a's empty branch; on its way up to c's ancestor it covers the whole path of length 2."""
    tree = ct.Tree.from_newick("((a:1,b:1):1,c:2);")
    expected = stats.norm(0, np.sqrt(4.0)).logpdf(3.0)  # path b to c: 1 + 1 + 2
    for X in ([[np.nan], [0.5], [3.5]], [[0.5], [np.nan], [3.5]]):
        assert ct.Brownian().log_likelihood(tree, X) == close(expected)
    # ... also where the other column is complete, so that neither child is empty as a whole
    X = [[np.nan, 1.0], [0.5, 1.5], [3.5, 0.0]]
    second = ct.Brownian().log_likelihood(tree, [[1.0], [1.5], [0.0]])
    assert ct.Brownian().log_likelihood(tree, X) == close(expected + second)
    # ... and a categorical state has had the whole path to change
    agree = 0.4 * (np.exp(-4.0) + (1 - np.exp(-4.0)) * 0.4)
    process = ct.Multinomial(1.0, [[0.4, 0.6]])
    assert process.log_likelihood(tree, [[np.nan], [0], [0]]) == close(np.log(agree))


@pytest.mark.parametrize("process", [ct.Brownian(), ct.Brownian(noise=1.0), ct.Brownian([1.0, 2.0])])
def test_one_row_of_real_cells_has_a_flat_density(process):
    tree = ct.simulate_tree(1, 0)
    assert process.log_likelihood(tree, [[3.0, -1.0]]) == 0.0


def test_one_categorical_row_has_equilibrium_probability():
    tree = ct.simulate_tree(1, 0)
    process = ct.Multinomial(1.0, [[0.2, 0.8], [0.5, 0.3, 0.2]])
    assert process.log_likelihood(tree, [[1, 2]]) == close(np.log(0.8 * 0.2))
    assert process.log_likelihood(tree, [[1, np.nan]]) == close(np.log(0.8))


def test_probabilities_of_all_tables_sum_to_one():
    """The categorical likelihood is a probability: it sums to one over all tables of three leaves."""
    tree = ct.simulate_tree(3, 8)
    process = ct.Multinomial(0.9, [[0.5, 0.3, 0.2]])
    tables = np.indices((3, 3, 3)).reshape(3, -1).T
    total = sum(np.exp(process.log_likelihood(tree, table[:, None])) for table in tables)
    assert total == pytest.approx(1.0, abs=1e-12)


# -- symmetries ----------------------------------------------------------------------------------------------------


def test_log_joint_is_likelihood_times_prior():
    rng = np.random.default_rng(0)
    for n in SIZES:
        tree = ct.simulate_tree(n, rng)
        process = mixed_process(rng)
        X = mixed_table(rng, n, missing=0.2)
        expected = process.log_likelihood(tree, X) + reference.log_prior(tree)
        assert ct.log_joint(tree, X, process) == close(expected)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_likelihood_is_invariant_to_shift(missing):
    rng = np.random.default_rng(4)
    tree = ct.simulate_tree(7, rng)
    X = real_table(rng, 7, 3, missing)
    process = ct.Brownian([0.5, 1.0, 2.0], noise=0.1)
    shifted = process.log_likelihood(tree, X + np.array([100.0, -3.0, 0.5]))
    assert shifted == pytest.approx(process.log_likelihood(tree, X), rel=1e-9)


@pytest.mark.parametrize("noise", [0.0, 0.3])
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_scaling_column_changes_density_by_jacobian(noise, missing):
    rng = np.random.default_rng(6)
    tree = ct.simulate_tree(7, rng)
    X = real_table(rng, 7, 3, missing)
    X[:, 2] = np.where(np.arange(7) == 3, X[:, 2], np.nan) if missing else X[:, 2]
    variances, a = np.array([0.5, 1.0, 2.0]), np.array([1e-3, 7.0, 200.0])
    jacobian = np.sum(np.maximum(np.sum(~np.isnan(X), axis=0) - 1, 0) * np.log(a))
    before = ct.Brownian(variances, noise).log_likelihood(tree, X)
    after = ct.Brownian(variances * a**2, noise).log_likelihood(tree, X * a)
    assert after == close(before - jacobian)


def test_linear_map_changes_density_by_jacobian():
    rng = np.random.default_rng(6)
    tree = ct.simulate_tree(6, rng)
    X = real_table(rng, 6, 3)
    variance, a = random_covariance(rng, 3), rng.normal(size=(3, 3))
    before = ct.Brownian(variance, 0.2).log_likelihood(tree, X)
    after = ct.Brownian(a @ variance @ a.T, 0.2).log_likelihood(tree, X @ a.T)
    assert after == close(before - 5 * np.linalg.slogdet(a)[1])


# -- edges ---------------------------------------------------------------------------------------------------------


def tree_joined_at(height):
    return ct.Tree([[0, 1], [2, 3]], [0, 0, 0, height, height + 1.0])


def test_impossible_data_has_probability_zero():
    process = ct.Multinomial(1.0, [[0.5, 0.5], [0.2, 0.8]])
    X = np.array([[0, 0], [1, 0], [1, 0]])
    assert process.log_likelihood(tree_joined_at(0.0), X) == -np.inf
    assert ct.log_joint(tree_joined_at(0.0), X, process) == -np.inf
    mixed = ct.Mixed((process, [0, 1]), (ct.Brownian(), [2]))
    assert mixed.log_likelihood(tree_joined_at(0.0), np.column_stack([X, [0.0, 1.0, 2.0]])) == -np.inf


def test_possible_data_at_zero_branch_length():
    process = ct.Multinomial(1.0, [[0.5, 0.5], [0.2, 0.8]])
    X = np.array([[1, 0], [1, 0], [0, np.nan]])
    expected = reference.log_likelihood(tree_joined_at(0.0), X, process)
    assert np.isfinite(expected)
    assert process.log_likelihood(tree_joined_at(0.0), X) == close(expected)


@pytest.mark.parametrize("height", [1e-6, 1e-12, 1e-200])
def test_likelihood_of_different_states_on_very_short_path(height):
    """``1 - e^(-x)`` must not be computed as a difference: at 1e-200 nothing would be left of it."""
    tree = ct.Tree([[0, 1]], [0, 0, height])
    process = ct.Multinomial(1.5, [[0.3, 0.7]])
    expected = np.log(0.3 * 0.7) + np.log(-np.expm1(-1.5 * 2 * height))
    assert process.log_likelihood(tree, [[0], [1]]) == pytest.approx(expected, rel=1e-12)


def test_identical_rows_without_noise_stay_finite():
    X = np.array([[1.0, 2.0], [1.0, 2.0], [1.0, 2.0], [4.0, 0.0]])
    tree = ct.Tree([[0, 1], [2, 4], [3, 5]], [0, 0, 0, 0, 0, 0, 1.0])
    for table in (X, np.where(np.eye(4, 2, -3) > 0, np.nan, X)):
        value = ct.Brownian().log_likelihood(tree, table)
        assert np.isfinite(value)
        assert value > ct.Brownian(noise=0.01).log_likelihood(tree, table)  # what is infinite is large, not small
    with_noise = ct.Brownian(noise=0.01)
    assert with_noise.log_likelihood(tree, X) == close(reference.log_likelihood(tree, X, with_noise))


def test_different_rows_at_height_zero_have_finite_likelihood():
    X = np.array([[0.0], [1.0], [2.0]])
    value = ct.Brownian().log_likelihood(tree_joined_at(0.0), X)
    assert np.isfinite(value)
    assert value < -1e6


def test_likelihood_of_identical_rows_matches_reference():
    """A table of identical rows has no scale."""
    X = np.full((3, 2), 5.0)
    assert np.isfinite(ct.Brownian().log_likelihood(tree_joined_at(0.0), X))
    process = ct.Brownian(noise=0.5)
    assert process.log_likelihood(tree_joined_at(0.3), X) == close(
        reference.log_likelihood(tree_joined_at(0.3), X, process)
    )


@pytest.mark.parametrize("outlier", [1e3, 1e6])
def test_outlier_keeps_likelihood_of_other_merges(outlier):
    """No row is identical to another and no branch has length 0: the likelihood is the true one, whatever the range."""
    X = np.array([[0.0], [1.0], [outlier]])
    tree = ct.Tree([[0, 1], [2, 3]], [0, 0, 0, 0.31, outlier / 2])  # about what is most probable
    process = ct.Brownian()
    assert process.log_likelihood(tree, X) == close(reference.log_likelihood(tree, X, process))


def test_missing_cells_of_frames_are_nan():
    tree = tree_joined_at(0.4)
    X = np.array([[0.1, 1.0], [np.nan, 0.0], [0.7, np.nan]])
    process = ct.Mixed((ct.Brownian(), [0]), (ct.Multinomial(), [1]))
    expected = process.log_likelihood(tree, X)
    assert process.log_likelihood(tree, [[0.1, 1], [None, 0], [0.7, None]]) == expected
    nullable = pd.DataFrame({"x": pd.array([0.1, None, 0.7], "Float64"), "k": pd.array([1, 0, None], "Int64")})
    assert process.log_likelihood(tree, nullable) == expected
    assert process.log_likelihood(tree, pl.DataFrame({"x": [0.1, None, 0.7], "k": [1, 0, None]})) == expected


def test_likelihood_does_not_modify_table():
    rng = np.random.default_rng(0)
    tree = ct.simulate_tree(5, rng)
    process = mixed_process(rng)
    X = mixed_table(rng, 5, missing=0.2)
    before = X.copy()
    process.log_likelihood(tree, X)
    assert np.array_equal(X, before, equal_nan=True)


# -- what is refused -----------------------------------------------------------------------------------------------

TREE = ct.Tree.from_newick("((a:1,b:1):1,c:2);")
REAL = np.arange(6.0).reshape(3, 2)


@pytest.mark.parametrize(
    ("process", "X", "message"),
    [
        (
            ct.Brownian(np.eye(2)),
            [[0, 1], [2, 3], [np.nan, 1]],
            "1 cell missing row 2 column 0 full covariance",
        ),
        (ct.Brownian([1.0, 2.0, 3.0]), REAL, "2 column Brownian's variance describes 3"),
        (ct.Brownian(np.eye(3)), REAL, "2 column Brownian's variance describes 3"),
        (ct.Multinomial([1.0, 2.0, 3.0]), REAL, "2 column Multinomial's rate describes 3"),
        (ct.Multinomial(1.0, [[1.0]]), REAL, "2 column Multinomial's equilibrium describes 1"),
        (ct.Mixed((ct.Brownian(), [0])), REAL, "2 column Mixed describes 1"),
        (ct.Mixed((ct.Brownian([1.0, 1.0]), [0]), (ct.Brownian(), [1])), REAL, "1 column describes 2"),
        (ct.Multinomial(), [[0.0], [-1.0], [0.0]], "Row 1 column 0 -1 codes 2"),
        (ct.Multinomial(), [[0.0], [1.0], [0.5]], "Row 2 column 0 0.5 codes 1"),
        (
            ct.Multinomial(1.0, [[0.5, 0.5]]),
            [[0], [2], [1]],
            "Row 1 column 0 code 2 states",
        ),
        (ct.Brownian(), REAL[:2], "2 row(s) 3 leaves"),
        (ct.Brownian(), [[0.0], [np.inf], [-np.inf]], "2 cell infinite row 1 column 0 NaN"),
        (ct.Brownian(), [0.0, 1.0, 2.0], "1 dimension"),
        (ct.Brownian(), np.empty((0, 2)), "shape 0 2 row"),
        (ct.Brownian(), np.empty((3, 0)), "shape 3 0 column"),
        (ct.Brownian(), [["red"], ["green"], ["red"]], "numbers"),
        (ct.Brownian(1e-300), [[1e8], [0.0], [1.0]], "rescale column"),
    ],
)
def test_incompatible_tables_are_rejected(process, X, message):
    with refused(message):
        process.log_likelihood(TREE, X)
    with refused(message):
        ct.log_joint(TREE, X, process)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"variance": 0.0}, "variance 0 variances positive"),
        ({"variance": [1.0, -2.0]}, "variance -2 variances positive"),
        ({"variance": [1.0, np.nan]}, "finite"),
        ({"variance": np.inf}, "finite"),
        ({"variance": np.ones((2, 3))}, "shape 2 3"),
        ({"variance": np.ones((2, 2, 2))}, "shape 2"),
        ({"variance": []}, "shape (0,)"),
        ({"variance": [[1.0, 0.5], [0.0, 1.0]]}, "symmetric"),
        ({"variance": [[1.0, 2.0], [2.0, 1.0]]}, "positive definite"),
        ({"noise": -0.1}, "noise -0.1"),
        ({"noise": np.nan}, "noise nan"),
        ({"noise": np.inf}, "noise inf"),
    ],
)
def test_invalid_brownian_parameters_are_rejected(arguments, message):
    with refused(message):
        ct.Brownian(**arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rate": 0.0}, "rate finite positive"),
        ({"rate": [1.0, np.inf]}, "rate finite positive"),
        ({"rate": np.ones((2, 2))}, "rate shape 2"),
        ({"rate": []}, "rate shape (0,)"),
        ({"equilibrium": [[0.5, 0.4]]}, "column 0 adds 0.9"),
        ({"equilibrium": [[1.0], [0.0, 1.0]]}, "column 1 0 probabilities"),
        ({"equilibrium": [[1.0], [1.5, -0.5]]}, "column 1 -0.5"),
        ({"equilibrium": [[[0.5, 0.5]]]}, "column 0 shape 1 2"),
        ({"equilibrium": []}, "equilibrium empty"),
        ({"rate": [1.0, 1.0], "equilibrium": [[0.5, 0.5]]}, "1 column Multinomial's rate describes 2"),
    ],
)
def test_invalid_multinomial_parameters_are_rejected(arguments, message):
    with refused(message):
        ct.Multinomial(**arguments)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([], "pair"),
        ([ct.Brownian()], "pairs process columns"),
        ([("brownian", [0])], "pairs process columns"),
        ([(ct.Brownian(), [])], "list column indices"),
        ([(ct.Brownian(), [0.5])], "list column indices"),
        ([(ct.Brownian(), [0, 1]), (ct.Brownian(), [1])], "columns [0 1 1]"),
        ([(ct.Brownian(), [0, 2])], "columns [0 2]"),
        ([(ct.Brownian(), [-1])], "columns [-1]"),
    ],
)
def test_invalid_mixed_processes_are_rejected(parts, message):
    with refused(message):
        ct.Mixed(*parts)


@pytest.mark.parametrize(
    ("work", "sentence"),
    [
        (lambda: ct.Brownian(variance="wide"), "variance is 'wide'"),
        (lambda: ct.Brownian(noise="loud"), "noise is 'loud'"),
        (
            lambda: ct.greedy([[0.0], [5e9]], ct.Multinomial()),
            "Row 1, column 0 holds code 5e.09; a column may have at most",
        ),
        (lambda: ct.greedy([[0.0], [1.0]], "brownian"), "process is 'brownian'; it must be a process"),
        (lambda: ct.greedy([[0.0], [1.0]], ct.Brownian), "it must be a process"),
    ],
)
def test_wrong_argument_types_are_rejected(work, sentence):
    with pytest.raises(InputError, match=sentence):
        work()
