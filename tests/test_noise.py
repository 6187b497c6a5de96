"""The noise by which rows left out are predicted best."""

import numpy as np
import pytest
from scipy.integrate import quad

import coaltree as ct
from coaltree.estimators.noise import FEWEST_ROWS, MOST_ROWS, _parts, predictive_noise
from coaltree.predict.predictor import Predictor, cell_log_scores

pytestmark = pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning")


@pytest.mark.parametrize("real_process", ["brownian", pytest.param("ornstein-uhlenbeck", marks=pytest.mark.slow)])
@pytest.mark.parametrize("noise", [0.03, 0.3])
def test_noise_is_recovered(real_process, noise):
    """Within a factor of two, on three tables of 300 rows together; the tree is not known."""
    ratios = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        tree = ct.simulate_tree(300, rng)
        true = ct.Brownian(1.0, noise) if real_process == "brownian" else ct.OrnsteinUhlenbeck(0.5, 0.0, 1.0, noise)
        X = true.simulate(tree, rng, n_columns=12)
        variances = X.var(axis=0)
        start = ct.Brownian(variances, 0.1)
        if real_process == "ornstein-uhlenbeck":
            start = ct.OrnsteinUhlenbeck(1.0, X.mean(axis=0), variances / 1.1, 0.11)
        found = predictive_noise(start, X, 12).noise_share(X)
        ratios.append(found / np.mean(noise / variances))
    assert 0.5 < np.exp(np.mean(np.log(ratios))) < 2


def test_a_score_of_cells_is_the_log_density_of_each_given_the_others():
    """With two columns the conditional densities come from the joint one by quadrature."""
    tree = ct.simulate_tree(8, 0)
    process = ct.Brownian([1.0, 0.3], 0.2)
    predictor = Predictor.of_trees([tree], np.ones(1), process.simulate(tree, 1), process)
    row = np.array([0.4, -0.3])

    def density(a, b):
        return float(np.exp(predictor.log_density(np.array([[a, b]]))[0]))

    first = quad(lambda a: density(a, row[1]), -12, 12, limit=200)[0]
    second = quad(lambda b: density(row[0], b), -12, 12, limit=200)[0]
    expected = 2 * np.log(density(*row)) - np.log(first) - np.log(second)
    assert cell_log_scores(predictor, row[None])[0] == pytest.approx(expected, abs=1e-5)


def test_rows_are_dealt_out_whatever_their_order_and_units():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    X[rng.random(X.shape) < 0.1] = np.nan
    parts = _parts(X, 4)
    assert sum(len(left_out) for _, left_out in parts) >= 30
    for kept, left_out in parts:
        assert sorted([*kept, *left_out]) == list(range(60))
    order = rng.permutation(60)
    changed = (X * [1e6, -1.0, 1e-9, 3.0] + [5.0, 0.0, 1.0, -2.0])[order][:, [2, 0, 3, 1]]
    for (_, left_out), (_, moved) in zip(parts, _parts(changed, 4), strict=True):
        assert set(order[moved]) == set(left_out)


def test_of_a_large_table_some_rows_of_all_kinds_take_part():
    X = np.random.default_rng(0).normal(size=(5000, 3))
    ((kept, left_out),) = _parts(X, 3)
    assert len(kept) + len(left_out) == len({*kept, *left_out}) == MOST_ROWS
    lengths = np.sort((X**2).sum(axis=1))
    chosen = np.sort((X[left_out] ** 2).sum(axis=1))
    assert chosen[len(chosen) // 2] == pytest.approx(lengths[2500], rel=0.1)


def test_few_rows_say_nothing_of_noise():
    process = ct.Brownian(1.0, 0.1)
    assert predictive_noise(process, np.arange(FEWEST_ROWS - 1.0)[:, None], 1) is process


@pytest.mark.parametrize("n", [5, 9, 31])
def test_small_tables_with_holes_and_constant_parts(n):
    """A column that varies in one row only is constant in what is kept when that row is left out."""
    X = np.random.default_rng(n).normal(size=(n, 3))
    X[:, 1] = 0.0
    X[2, 1] = 5.0
    X[: n // 2, 2] = np.nan
    found = predictive_noise(ct.Brownian(np.ones(3), 0.1), X, 3).noise_share(X)
    assert 0 < found < 1
