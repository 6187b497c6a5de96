"""Probabilistic principal components, against scikit-learn and a brute-force Gaussian."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError

from coaltree.baselines import ProbabilisticPCA
from coaltree.errors import InputError
from named import refused


def low_rank(rng, n, d, q, noise=0.5):
    return rng.normal(size=(n, q)) @ rng.normal(size=(q, d)) + noise * rng.normal(size=(n, d)) + rng.normal(size=d)


def with_holes(rng, X, share=0.3):
    return np.where(rng.random(X.shape) < share, np.nan, X)


def covariance(model):
    return model.weights_ @ model.weights_.T + model.noise_ * np.eye(len(model.mean_))


def brute_force_log_likelihood(model, X):
    total, C = 0.0, covariance(model)
    for x in X:
        observed = ~np.isnan(x)
        if observed.any():
            total += multivariate_normal(model.mean_[observed], C[np.ix_(observed, observed)]).logpdf(x[observed])
    return total


@pytest.mark.parametrize("q", [1, 3])
def test_ppca_of_complete_table_matches_closed_form(q):
    X = low_rank(np.random.default_rng(0), 80, 6, 3)
    model = ProbabilisticPCA(q, max_rounds=5000, tolerance=1e-13).fit(X)
    theirs = PCA(q).fit(X)
    np.testing.assert_allclose(covariance(model), theirs.get_covariance() * 79 / 80, atol=1e-4)
    np.testing.assert_allclose(model.mean_, X.mean(axis=0), atol=1e-8)


@pytest.mark.parametrize("q", [1, 2, 7])
def test_ppca_log_likelihood_matches_brute_force_and_increases(q):
    rng = np.random.default_rng(q)
    X = with_holes(rng, low_rank(rng, 40, 5, 2))
    X[7] = np.nan
    X[:, 3][:38] = np.nan
    model = ProbabilisticPCA(q, max_rounds=60, tolerance=0).fit(X)
    gains = np.diff(model.log_likelihoods_)
    assert np.all(gains > -1e-8)
    assert gains.sum() > 1
    assert model.log_likelihoods_[-1] == pytest.approx(brute_force_log_likelihood(model, X), rel=1e-10)


def test_ppca_fills_conditional_expectations():
    rng = np.random.default_rng(3)
    X = with_holes(rng, low_rank(rng, 30, 5, 2))
    model = ProbabilisticPCA(2).fit(X)
    C, filled = covariance(model), model.filled()
    for x, y in zip(X, filled, strict=True):
        observed = ~np.isnan(x)
        np.testing.assert_array_equal(y[observed], x[observed])
        weights = np.linalg.solve(C[np.ix_(observed, observed)], (x - model.mean_)[observed])
        np.testing.assert_allclose(
            y[~observed], model.mean_[~observed] + C[np.ix_(~observed, observed)] @ weights, atol=1e-9
        )


def test_ppca_recovers_hidden_cells_of_plane():
    rng = np.random.default_rng(4)
    truth = low_rank(rng, 60, 8, 2, noise=0.01)
    X = with_holes(rng, truth)
    error = (ProbabilisticPCA(2).fit(X).filled() - truth)[np.isnan(X)]
    assert np.sqrt(np.mean(error**2)) < 0.1


def test_ppca_stops_at_convergence():
    X = low_rank(np.random.default_rng(5), 50, 4, 1)
    model = ProbabilisticPCA(1).fit(X)
    assert len(model.log_likelihoods_) < 500
    assert model.log_likelihoods_[-1] == pytest.approx(brute_force_log_likelihood(model, X))


@pytest.mark.parametrize(
    "X",
    [
        [[1.0, 2.0]],
        [[1.0], [2.0]],
        [[np.nan, np.nan], [np.nan, np.nan]],
        [[3.0, 1.0], [3.0, 1.0], [3.0, np.nan]],
        [[np.nan, 1.0], [np.nan, 2.0], [np.nan, 4.0]],
    ],
)
def test_ppca_of_small_and_constant_tables(X):
    model = ProbabilisticPCA(2).fit(X)
    assert np.isfinite(model.filled()).all()
    assert np.isfinite(model.log_likelihoods_).all()
    assert model.noise_ > 0


@pytest.mark.parametrize("n", [0, -1, 1.5, True, "two"])
def test_invalid_numbers_of_components(n):
    with refused("n_components 1"):
        ProbabilisticPCA(n)


def test_more_components_fit_no_worse():
    """With one component less than columns any covariance is possible, so the fit equals an unrestricted Gaussian."""
    rng = np.random.default_rng(8)
    X = with_holes(rng, low_rank(rng, 150, 5, 2), 0.2)
    values = [ProbabilisticPCA(q).fit(X).log_likelihoods_[-1] for q in (2, 4, 5, 50)]
    assert values[0] < values[1] + 0.1
    assert values[1] == values[2] == values[3]


def test_ppca_warns_without_convergence():
    rng = np.random.default_rng(3)
    X = with_holes(rng, low_rank(rng, 60, 4, 2))
    assert ProbabilisticPCA(2, tolerance=1e-3).fit(X).converged_
    assert not ProbabilisticPCA(2, max_rounds=2, tolerance=0.0).fit(X).converged_


def test_ppca_noise_of_equal_rows_is_minimum():
    model = ProbabilisticPCA(1).fit(np.repeat([[5.1, -2.7, 0.3]], 10, axis=0))
    assert model.noise_ == pytest.approx(1e-6)


@pytest.mark.parametrize("unit", [1e-150, 1e150])
def test_overflowing_units_are_rejected(unit):
    with pytest.raises(InputError, match=r"The largest cell is .* rescale the table"):
        ProbabilisticPCA(1).fit(np.array([[1.0, 2.0], [2.0, 1.0]]) * unit)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_rounds": 2.5}, "max_rounds is 2.5"),
        ({"max_rounds": -1}, "max_rounds is -1"),
        ({"tolerance": np.nan}, "tolerance is nan"),
    ],
)
def test_invalid_ppca_options_are_rejected(options, message):
    with pytest.raises(InputError, match=message):
        ProbabilisticPCA(1, **options)


def test_unfitted_ppca_is_rejected():
    with pytest.raises(NotFittedError, match="call fit first"):
        ProbabilisticPCA(1).filled()
