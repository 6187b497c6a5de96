"""Normal scores of real columns, and predictions with them."""

import numpy as np
import pytest
from scipy import stats

import coaltree as ct
from coaltree.inference import posterior_draws
from coaltree.process.normal_scores import MAX_KERNELS, MIN_VALUES, Marginal, NormalScores

pytestmark = [
    pytest.mark.usefixtures("short_chains"),
    pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning"),
]

RNG = np.random.default_rng(3)
COLUMNS = {
    "skewed": RNG.lognormal(size=300),
    "two groups": np.concatenate([RNG.normal(-3, 0.1, 150), RNG.normal(2, 1, 150)]),
    "mostly one value": np.concatenate([RNG.normal(0, 1, 100), RNG.normal(0.7, 1e-3, 200)]),
    "few": RNG.exponential(size=60),
    "large": 1e9 + 1e3 * RNG.exponential(size=2_000),
}


@pytest.fixture(params=COLUMNS)
def column(request):
    return COLUMNS[request.param]


def test_maps_are_increasing_and_invertible(column):
    marginal = Marginal.fit(column)
    assert np.all(np.diff(marginal.knots) > 0)
    assert np.all(np.diff(marginal.scores) > 0)
    x = np.concatenate([column, np.linspace(column.min() - 10 * column.std(), column.max() + 10 * column.std(), 200)])
    np.testing.assert_allclose(marginal.invert(marginal.apply(x)), x, rtol=1e-9, atol=1e-9 * column.std())
    assert np.isnan(marginal.apply(np.array([np.nan]))[0])
    assert np.isnan(marginal.invert(np.array([np.nan]))[0])


def test_slopes_are_derivatives(column):
    marginal = Marginal.fit(column)
    middles = 0.5 * (marginal.knots[1:] + marginal.knots[:-1])
    step = 0.1 * np.diff(marginal.knots)
    slope = (marginal.apply(middles + step) - marginal.apply(middles - step)) / (2 * step)
    np.testing.assert_allclose(np.exp(marginal.log_slope(middles)), slope, rtol=1e-3)


def test_normal_scores_are_standard_gaussian(column):
    """Kolmogorov's distance is that of a good fit: values were seen, so it is below the 5 % point of a test of new ones."""
    scores = Marginal.fit(column).apply(column)
    assert stats.kstest(scores, "norm").statistic < 1.36 / np.sqrt(len(scores))


def test_density_of_new_values_exceeds_gaussian(column):
    train, test = column[::2], column[1::2]
    marginal = Marginal.fit(train)
    ours = stats.norm.logpdf(marginal.apply(test)) + marginal.log_slope(test)
    assert ours.mean() > stats.norm.logpdf(test, train.mean(), train.std()).mean()


def test_normal_scores_cost_little_for_gaussian_columns():
    for seed in range(5):
        x = np.random.default_rng(seed).normal(size=1_000)
        marginal = Marginal.fit(x[:500])
        if marginal is not None:
            actual = stats.norm.logpdf(marginal.apply(x[500:])) + marginal.log_slope(x[500:])
            assert actual.mean() > stats.norm.logpdf(x[500:]).mean() - 0.05


def test_decoded_moments_match_quadrature(column):
    marginal = Marginal.fit(column)
    scores = NormalScores((marginal,))
    unit = column.std()
    for mean, sd in [(-1.0, 0.2), (0.3, 1.0), (2.5, 0.5), (0.0, 0.05), (-0.2, 2.0)]:
        z = mean + sd * stats.norm.ppf((np.arange(100_000) + 0.5) / 100_000)
        x = marginal.invert(z)
        actual, variance = scores.moments(np.array([[mean]]), np.array([[sd**2]]))
        assert abs(actual[0, 0] - x.mean()) < 0.01 * unit
        assert abs(np.sqrt(variance[0, 0]) - x.std()) < 0.03 * unit


def test_decoded_moments_outside_grid_are_linear():
    scores = NormalScores((Marginal.standardising(3.0, 2.0),))
    mean, sd = np.array([[0.5], [0.5], [0.5], [20.0], [0.5]]), np.array([[0.4], [1e-4], [9.0], [0.4], [np.inf]])
    actual, variance = scores.moments(mean, sd**2)
    np.testing.assert_allclose(actual, 3 + 2 * mean, rtol=1e-6)
    np.testing.assert_allclose(variance, (2 * sd) ** 2, rtol=1e-3)


@pytest.mark.parametrize(
    "values", [np.zeros(0), np.ones(50), np.arange(MIN_VALUES - 1.0), 1e200 * np.arange(-30.0, 30.0)]
)
def test_uninformative_columns_are_only_standardised(values):
    assert Marginal.fit(values) is None
    table = np.full((max(len(values), 60), 2), np.nan)
    table[: len(values), 0] = values
    table[:, 1] = COLUMNS["skewed"][: len(table)] if len(table) <= 300 else 0.0
    scores = NormalScores.fit(table, 2)
    np.testing.assert_allclose(scores.invert(scores.apply(table))[:, 1], table[:, 1])
    assert NormalScores.fit(table[:, :1], 1) is None


def test_number_of_kernels_is_bounded():
    assert len(Marginal.fit(COLUMNS["large"]).knots) <= 3 * MAX_KERNELS + 20


# -- in models -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def skewed():
    rng = np.random.default_rng(0)
    X = np.exp(rng.normal(size=(120, 3)) @ np.array([[1.0, 0.5, 0.0], [0.0, 0.7, 0.2], [0.0, 0.0, 0.6]]))
    return X, ct.CoalescentClustering(random_state=0).fit(X[:80])


def test_density_of_skewed_column_integrates_to_one(skewed):
    x = np.arange(-60, 60, 0.02)
    model = ct.CoalescentClustering(random_state=0).fit(np.minimum(skewed[0][:80, :1], 5))
    assert np.exp(model.score_samples(x[:, None])).sum() * 0.02 == pytest.approx(1.0, abs=0.02)


def test_half_of_draws_use_normal_scores(skewed):
    draws = skewed[1]._model.predictor.ensemble.draws
    assert sum(draw.scores is not None for draw in draws) == len(draws) // 2


@pytest.mark.parametrize("options", [{"covariance": "spherical"}, {"noise": 0.1}, {"real_process": "brownian"}])
def test_normal_scores_are_off_without_standardising(skewed, options):
    model = ct.CoalescentClustering(random_state=0, **options).fit(skewed[0][:40])
    assert all(draw.scores is None for draw in model._model.predictor.ensemble.draws)


def test_normal_scores_raise_held_out_density(skewed):
    X, model = skewed
    draws = model._model.predictor.ensemble.draws
    plain = model._model.predictor.without_rows(np.zeros(0, dtype=int), [d for d in draws if d.scores is None])
    rows = model._model.read_rows(X[80:]).matrix
    assert model._model.predictor.log_density(rows).mean() > plain.log_density(rows).mean() + 0.3


def test_intervals_and_draws_of_skewed_columns_stay_finite(skewed):
    X = skewed[0].copy()
    hidden = np.random.default_rng(1).random(X.shape) < 0.2
    hidden[hidden.all(axis=1)] = False
    holes = np.where(hidden, np.nan, X)
    imputer = ct.CoalescentImputer(random_state=0).fit(holes)
    cells = imputer.predictive(holes)
    assert all(np.isfinite(value.mean).all() and np.isfinite(value.sd).all() for value in cells.values())
    for value in imputer.sample(holes, 3, random_state=0):
        assert np.isfinite(value).all()
        np.testing.assert_array_equal(value[~hidden], X[~hidden])


def test_model_file_keeps_normal_scores(skewed, tmp_path):
    X, model = skewed
    rows = X[80:].copy()
    rows[::3, 1] = np.nan
    before = model.score_samples(rows)
    model.save(tmp_path / "m.coaltree")
    again = ct.load_model(tmp_path / "m.coaltree")
    np.testing.assert_array_equal(again.score_samples(rows), before)


def test_dependent_columns_are_not_transformed():
    """A map of each column would hide that one is a linear function of others."""
    rng = np.random.default_rng(0)
    skewed = rng.gamma(1.0, size=(60, 2))
    assert NormalScores.fit(skewed, 2) is not None
    total = np.column_stack([skewed, skewed.sum(axis=1)])
    total[0, 0] = np.nan
    assert NormalScores.fit(total, 3) is None
    assert NormalScores.fit(np.column_stack([skewed, 1 - 3 * skewed[:, 0]]), 3) is None
    assert NormalScores.fit(total, 2) is not None


def test_heavy_tailed_noise_has_a_mean_among_its_values(monkeypatch):
    monkeypatch.setattr(posterior_draws, "MAX_SWEEPS", 120)
    monkeypatch.setattr(posterior_draws, "DRAWS_PER_CHAIN", 15)
    rng = np.random.default_rng(0)
    groups = np.repeat([0, 1, 2], 40)
    X = np.column_stack([3.0 * groups, -2.0 * groups, 4.0 * (groups == 1), np.full(120, 5.0)])
    X += np.column_stack([rng.normal(size=(120, 3)), rng.standard_cauchy(120)])
    parameters = ct.CoalescentClustering().fit(X).prediction_parameters_
    assert next(reversed(parameters)) == "x3"  # the smallest signal
    low, high = np.quantile(X[:, 3], [0.25, 0.75])
    assert low < parameters["x3"]["mean"] < high


def test_parameter_means_are_decoded_from_scores(skewed):
    model = skewed[1]._model
    scored = [draw for draw in model.predictor.ensemble.draws if draw.scores is not None]
    for d, (name, marginal) in enumerate(zip(("x0", "x1", "x2"), scored[0].scores.marginals, strict=True)):
        code = marginal.invert(np.mean([draw.process.mean[d] for draw in scored]))
        value = model.encoding.column_scales[d].decode(code)
        assert model.prediction_parameters[name]["mean"] == pytest.approx(float(value), rel=1e-9)
