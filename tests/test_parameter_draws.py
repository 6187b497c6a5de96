"""Parameters drawn given a tree, or together with it, against posteriors that are computed on grids.

The likelihoods of the grids are written down here: normal densities with the covariance of the leaves, sums over the states at
the nodes. Means of long chains are compared by the standard error of 40 batches; with 4.5 of them a sound chain fails once in
about 16,000 comparisons (Student's t with 39 degrees of freedom).
"""

import numpy as np
import pytest
from scipy.special import logsumexp

import coaltree as ct
from coaltree.process.slice_sampling import positive_slice_step, slice_step

TREE = ct.Tree.from_newick("((a:0.3,b:0.3):0.9,(c:0.7,d:0.7):0.5);")
BATCHES, MOST_ERRORS = 40, 4.5


def assert_mean(draws, mean, what):
    """Compare the mean of a chain with what it should be."""
    draws = np.asarray(draws)
    batches = draws[: len(draws) // BATCHES * BATCHES].reshape(BATCHES, -1).mean(axis=1)
    error = batches.std(ddof=1) / np.sqrt(BATCHES)
    assert abs(batches.mean() - mean) < MOST_ERRORS * error, f"{what}: {batches.mean()} +- {error}, not {mean}"
    assert error < 0.1, f"{what}: a chain whose mean is so uncertain shows nothing"


def chain_of(process, X, size, seed, hold_noise=False):
    """Draw parameters given the tree, again and again."""
    draws = process.sampler(X, hold_noise)
    rng = np.random.default_rng(seed)
    process = draws.initial_process(process)
    results = []
    for _ in range(size):
        process = draws.draw(process, TREE, rng)
        results.append(process.parameter_values())
    return dict(zip(process.parameter_names(range(X.shape[1])), np.array(results).T, strict=True))


def mean_on_grid(log_density, values):
    """Return the mean of some values over the cells of a grid."""
    weights = np.exp(log_density - logsumexp(log_density))
    return float(np.sum(weights * values))


def shared_time(tree):
    """Return the height of each pair's last common ancestor."""
    n = tree.n_leaves
    heights = np.zeros((n, n))
    for node in range(n, tree.n_nodes):
        below = tree.leaves_below(node)
        for i in below:
            for j in below:
                if i != j and heights[i, j] == 0:
                    heights[i, j] = tree.heights[node]
    return heights


def normal_log_density(x, covariance):
    """Log density of x, one of many covariances at a time (the last two axes)."""
    _, log_determinant = np.linalg.slogdet(covariance)
    solved = np.linalg.solve(covariance, np.broadcast_to(x, covariance.shape[:-1])[..., None])[..., 0]
    return -0.5 * (log_determinant + np.sum(x * solved, axis=-1) + len(x) * np.log(2 * np.pi))


X1 = np.array([[0.3], [0.9], [-1.1], [-0.4]])


@pytest.mark.slow
def test_brownian_variance_and_noise_draws_match_quadrature():
    """The contrasts of a flat root are the rows less the first one: three numbers with a known covariance."""
    sample = chain_of(ct.Brownian(0.5, 0.3), X1, 3_000, 1)
    precision, noise = np.exp(np.linspace(-7, 6, 131)), np.exp(np.linspace(np.log(1e-6), np.log(1e4), 171))
    shared = 1.2 - shared_time(TREE)
    np.fill_diagonal(shared, 1.2)
    contrasts = np.array([[-1.0, 1, 0, 0], [-1, 0, 1, 0], [-1, 0, 0, 1]])
    covariance = shared[None, None] + noise[None, :, None, None] * np.eye(4)
    known = normal_log_density(
        contrasts @ X1[:, 0], contrasts @ covariance @ contrasts.T / precision[:, None, None, None]
    )
    in_units = precision[:, None] * X1.var()
    prior = 0.1 * np.log(in_units) - in_units / 1.1 - 2 * np.log(noise) - 0.05 / noise
    rounding = min(0.6**2 / 12, 0.2 * X1.var())  # the values' smallest step is 0.6; noise is at least what it gives
    prior = np.where(noise / precision[:, None] >= rounding, prior, -np.inf)
    log_density = known + prior + np.log(precision)[:, None] + np.log(noise)  # the grid is one of logarithms
    assert_mean(-np.log(sample["variance"]), mean_on_grid(log_density, np.log(precision)[:, None]), "precision")
    assert_mean(np.log(sample["noise"]), mean_on_grid(log_density, np.log(noise)), "noise")


X2 = np.array([[0.3, 5.0], [0.9, 4.0], [-1.1, np.nan], [-0.4, 6.0]])  # the second column in steps of 1
LOG_NOISE = np.linspace(np.log(1e-6), np.log(1e4), 171)


def brownian_column(x, precision):
    """Log density of one column by precision and noise, with the prior of the noise, on a grid of its logarithm."""
    observed = np.flatnonzero(~np.isnan(x))
    x, noise = x[observed], np.exp(LOG_NOISE)
    shared = 1.2 - shared_time(TREE)
    np.fill_diagonal(shared, 1.2)
    contrasts = np.eye(len(x))[1:] - np.eye(len(x))[0]
    covariance = contrasts @ (shared[np.ix_(observed, observed)] + noise[:, None, None] * np.eye(len(x))) @ contrasts.T
    known = normal_log_density(contrasts @ x, covariance / precision[:, None, None, None])
    rounding = min(np.diff(np.sort(x)).min() ** 2 / 12, 0.2 * x.var())
    possible = noise / precision[:, None] >= rounding
    return np.where(possible, known - 2 * LOG_NOISE - 0.05 / noise + LOG_NOISE, -np.inf)


@pytest.mark.slow
def test_brownian_column_noise_draws_match_quadrature():
    """With a variance for each column, columns are independent."""
    sample = chain_of(ct.Brownian([0.5, 0.8], [0.3, 0.6]), X2, 2_500, 11)
    precision = np.exp(np.linspace(-7, 6, 131))
    for d, x in enumerate(X2.T):
        in_units = precision * np.nanvar(x)
        of_precision = 0.1 * np.log(in_units) - in_units / 1.1 + np.log(precision)
        log_density = brownian_column(x, precision) + of_precision[:, None]
        draws = -np.log(sample[f"variance[{d}]"])
        assert_mean(draws, mean_on_grid(log_density, np.log(precision)[:, None]), f"precision of column {d}")
        assert_mean(np.log(sample[f"noise[{d}]"]), mean_on_grid(log_density, LOG_NOISE), f"noise of column {d}")


def test_column_noise_with_one_variance_draws_match_quadrature():
    """Noise is at least that of rounding in every column, also in one whose cells have wide steps."""
    sample = chain_of(ct.Brownian(0.5, [0.3, 0.6]), X2, 600, 12)
    precision = np.exp(np.linspace(-7, 6, 131))
    in_units = precision * np.nanvar(X2, axis=0).mean()
    of_precision = 0.1 * np.log(in_units) - in_units / 1.1 + np.log(precision)
    by_column = [brownian_column(x, precision) for x in X2.T]
    summed = [logsumexp(log_density_of_column, axis=1) for log_density_of_column in by_column]
    assert_mean(-np.log(sample["variance"]), mean_on_grid(of_precision + sum(summed), np.log(precision)), "precision")
    for d, log_density_of_column in enumerate(by_column):
        log_density = log_density_of_column + (of_precision + summed[1 - d])[:, None]
        assert_mean(np.log(sample[f"noise[{d}]"]), mean_on_grid(log_density, LOG_NOISE), f"noise of column {d}")


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.2, [0.2]], ids=["one noise", "a noise a column"])
def test_stationary_rate_variance_and_noise_draws_match_quadrature(noise):
    """The mean, with a normal prior, is integrated out by hand: what is left has its variance in all cells' covariances."""
    sample = chain_of(ct.OrnsteinUhlenbeck(1.0, 0.0, [1.0], noise), X1, 2_500, 13)
    log_rate, log_precision = np.linspace(np.log(1e-4), np.log(40), 41), np.linspace(-12, 6, 73)
    log_noise = np.linspace(np.log(1e-6), np.log(1e4), 93)
    rate, precision, noises = np.exp(log_rate)[:, None, None], np.exp(log_precision)[:, None], np.exp(log_noise)
    x = X1[:, 0]
    log_density = np.empty((len(log_rate), len(log_precision), len(log_noise)))
    for k, correlation in enumerate(np.exp(-2 * rate * shared_time(TREE))):
        covariance = (correlation + noises[:, None, None] * np.eye(4)) / precision[..., None, None]
        log_density[k] = normal_log_density(x - x.mean(), covariance + 100 * x.var())
    in_units = precision * x.var()
    log_density += 0.1 * np.log(in_units) - in_units / 1.1 + np.log(precision)  # the grid is one of logarithms
    log_density += 1.1 * np.log(rate) - rate / 1.1 - 2 * log_noise - 0.05 / noises + log_noise
    log_density[:, noises / precision < min(0.6**2 / 12, 0.2 * x.var())] = -np.inf
    draws = sample["noise"] if np.ndim(noise) == 0 else sample["noise[0]"]
    assert_mean(np.log(sample["rate"]), mean_on_grid(log_density, log_rate[:, None, None]), "rate")
    assert_mean(-np.log(sample["variance[0]"]), mean_on_grid(log_density, log_precision[:, None]), "precision")
    assert_mean(np.log(draws), mean_on_grid(log_density, log_noise), "noise")


@pytest.mark.slow
def test_stationary_rate_mean_and_variance_draws_match_quadrature():
    sample = chain_of(ct.OrnsteinUhlenbeck(1.0, 0.0, 1.0, 0.2), X1, 3_000, 2, hold_noise=True)
    assert np.all(sample["noise"] == 0.2)
    rate = np.exp(np.linspace(np.log(1e-4), np.log(40), 61))
    mean = np.linspace(-40, 40, 161)
    precision = np.exp(np.linspace(-12, 4, 81))
    correlation = np.exp(-2 * rate[:, None, None] * shared_time(TREE)) + 0.2 * np.eye(4)
    x = X1[:, 0]
    log_density = np.empty((len(rate), len(mean), len(precision)))
    for m, centre in enumerate(mean):
        known = normal_log_density(x - centre, correlation[:, None] / precision[None, :, None, None])
        log_density[:, m] = known - 0.5 * (centre - x.mean()) ** 2 / (100 * x.var())
    in_units = precision * x.var()
    log_density += 0.1 * np.log(in_units) - in_units / 1.1 + np.log(precision)  # the grid is one of logarithms
    log_density += (1.1 * np.log(rate) - rate / 1.1)[:, None, None]
    assert_mean(np.log(sample["rate"]), mean_on_grid(log_density, np.log(rate)[:, None, None]), "rate")
    assert_mean(sample["mean[0]"], mean_on_grid(log_density, mean[:, None]), "mean")
    assert_mean(-np.log(sample["variance"]), mean_on_grid(log_density, np.log(precision)), "precision")


def states_log_likelihood(rate, share, states, noise=0.0):
    """Log probability of four cells on the tree, summed over the states of the three inner nodes."""
    total = 0.0

    def step(a, b, length):
        retention = np.exp(-rate * length)
        to = share if b == 0 else 1 - share
        return retention * (a == b) + (1 - retention) * to

    for root in (0, 1):
        for left in (0, 1):
            for right in (0, 1):
                term = share if root == 0 else 1 - share
                term = term * step(root, left, 0.9) * step(root, right, 0.5)
                for above, length, state in zip((left, left, right, right), (0.3, 0.3, 0.7, 0.7), states, strict=True):
                    if not np.isnan(state):
                        fresh = share if state == 0 else 1 - share
                        term = term * (noise * fresh + (1 - noise) * step(above, state, length))
                total = total + term
    return np.log(total)


@pytest.mark.parametrize("pooled", [True, False], ids=["one rate", "a rate a column"])
def test_mutation_rate_and_equilibrium_draws_match_quadrature(pooled):
    states = np.array([[0, 1], [0, 0], [1, np.nan], [0, 1]], dtype=float)
    process = ct.Multinomial(0.7 if pooled else [0.7, 1.3], [[0.5, 0.5], [0.4, 0.6]])
    sample = chain_of(process, states, 1_600, 3)
    rate, share = np.exp(np.linspace(np.log(1e-4), 3.5, 150))[:, None], np.linspace(0.0025, 0.9975, 200)
    by_column = [
        states_log_likelihood(rate, share, states[:, d]) + 0.5 * np.log(share) + 0.5 * np.log(1 - share)
        for d in range(2)
    ]
    of_rate = (1.1 - 1) * np.log(rate[:, 0]) - rate[:, 0] / 1.1 + np.log(rate[:, 0])
    summed = [logsumexp(log_density_of_column, axis=1) for log_density_of_column in by_column]
    for d in range(2):
        others = summed[1 - d] if pooled else 0.0
        log_density = by_column[d] + (of_rate + others)[:, None]
        draws = sample["rate"] if pooled else sample[f"rate[{d}]"]
        assert_mean(np.log(draws), mean_on_grid(log_density, np.log(rate)), f"rate of column {d}")
        assert_mean(sample[f"equilibrium[{d},0]"], mean_on_grid(log_density, share), f"equilibrium of column {d}")


@pytest.mark.parametrize("pooled", [True, False], ids=["one noise", "a noise a column"])
def test_categorical_noise_draws_match_quadrature(pooled):
    """Beta(1, 5) is its prior; rate and equilibrium are drawn with it, of each column its own."""
    states = np.array([[0, 1], [0, 0], [1, np.nan], [0, 1]], dtype=float)
    process = ct.Multinomial([0.7, 1.3], [[0.5, 0.5], [0.4, 0.6]], 0.2 if pooled else [0.2, 0.4])
    sample = chain_of(process, states, 1_600, 14)
    rate = np.exp(np.linspace(np.log(1e-4), 3.5, 60))[:, None, None]
    share, noise = ((np.arange(60) + 0.5) / 60)[:, None], (np.arange(50) + 0.5) / 50
    by_column = [
        states_log_likelihood(rate, share, states[:, d], noise)
        + (0.5 * np.log(share) + 0.5 * np.log(1 - share))
        + (1.1 * np.log(rate) - rate / 1.1)
        for d in range(2)
    ]
    of_noise = 4 * np.log(1 - noise)
    summed = [logsumexp(log_density_of_column, axis=(0, 1)) for log_density_of_column in by_column]
    for d in range(2):
        log_density = by_column[d] + of_noise + (summed[1 - d] if pooled else 0.0)
        draws = sample["noise"] if pooled else sample[f"noise[{d}]"]
        assert_mean(draws, mean_on_grid(log_density, noise), f"noise of column {d}")
        assert_mean(draws**2, mean_on_grid(log_density, noise**2), f"squared noise of column {d}")
        assert_mean(np.log(sample[f"rate[{d}]"]), mean_on_grid(log_density, np.log(rate)), f"rate of column {d}")
        assert_mean(sample[f"equilibrium[{d},0]"], mean_on_grid(log_density, share), f"equilibrium of column {d}")


def test_equilibrium_draws_with_high_noise_match_quadrature():
    """Noise of .7 is held: nearly all that is known of the equilibria comes from cells that were drawn from them."""
    states = np.array([[0, 1], [0, 1], [0, np.nan], [0, 1]], dtype=float)
    sample = chain_of(ct.Multinomial([0.7, 1.3], [[0.5, 0.5]] * 2, 0.7), states, 1_600, 17, hold_noise=True)
    assert np.all(sample["noise"] == 0.7)
    rate, share = np.exp(np.linspace(np.log(1e-4), 3.5, 150))[:, None], np.linspace(0.0025, 0.9975, 200)
    for d in range(2):
        log_density = states_log_likelihood(rate, share, states[:, d], 0.7)
        log_density = log_density + 0.5 * np.log(share) + 0.5 * np.log(1 - share) + 1.1 * np.log(rate) - rate / 1.1
        assert_mean(np.log(sample[f"rate[{d}]"]), mean_on_grid(log_density, np.log(rate)), f"rate of column {d}")
        assert_mean(sample[f"equilibrium[{d},0]"], mean_on_grid(log_density, share), f"equilibrium of column {d}")


def test_covariance_draws_match_weighted_prior():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4, 2)) @ [[1.0, 0.5], [0.0, 0.8]]
    sample = chain_of(ct.Brownian(np.eye(2)), X, 1_200, 4)
    # a Wishart prior of the precision with density |P|^0.1 exp(-tr(P diag(spread)) / 1.1), as sums of outer products
    spread = X.var(axis=0)
    roots = rng.standard_normal((200_000, 2, 2))
    freedom = 2 * 0.1 + 3  # Bartlett's decomposition
    lower = np.zeros_like(roots)
    lower[:, 0, 0] = np.sqrt(rng.chisquare(freedom, size=len(roots)))
    lower[:, 1, 1] = np.sqrt(rng.chisquare(freedom - 1, size=len(roots)))
    lower[:, 1, 0] = roots[:, 0, 1]
    scale = np.diag(np.sqrt(1.1 / 2 / spread))
    precision = scale @ lower @ lower.transpose(0, 2, 1) @ scale
    shared = 1.2 - shared_time(TREE)
    np.fill_diagonal(shared, 1.2)
    contrasts = np.array([[-1.0, 1, 0, 0], [-1, 0, 1, 0], [-1, 0, 0, 1]])
    white = np.linalg.solve(np.linalg.cholesky(contrasts @ shared @ contrasts.T), contrasts @ X)
    log_weight = 1.5 * np.linalg.slogdet(precision)[1] - 0.5 * np.einsum("ki,nij,kj->n", white, precision, white)
    log_determinants = -np.log(
        sample["variance[0,0]"] * sample["variance[1,1]"] - sample["variance[0,1]"] * sample["variance[1,0]"]
    )
    assert_mean(log_determinants, mean_on_grid(log_weight, np.linalg.slogdet(precision)[1]), "log determinant")


# -- together with the tree ------------------------------------------------------------------------


def joint_sample(X, process, seed, n_samples=1_700, **settings):
    sample = ct.mcmc(X, process, n_samples, 2, draw_parameters=True, warmup=200, thin=4, random_state=seed, **settings)
    samples = {name: trace[:, 200:].ravel() for name, trace in sample.parameters.items()}
    return sample, np.log(sample.traces["root_height"][:, 200:].ravel()), samples


HEIGHT = np.exp(np.linspace(-9, 3.5, 251))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The chains have not converged")
def test_rate_and_height_of_two_categorical_rows_match_quadrature():
    """The states of two leaves at distance 2h; the equilibria, with a Beta(1.5, 1.5) prior, are integrated out by hand."""
    X = np.array([[0, 0, 1, 0, 1, 1], [0, 0, 1, 1, 1, 0]], dtype=float)
    _, log_height, sample = joint_sample(X, ct.Multinomial(1.0, [[0.5, 0.5]] * 6), 5)
    rate = np.exp(np.linspace(np.log(1e-4), 3.5, 201))[:, None]
    redrawn = -np.expm1(-2 * rate * HEIGHT)
    same = (1 - redrawn) * 0.5 + redrawn * (1.5 * 2.5) / (3 * 4)
    different = redrawn * 1.5**2 / (3 * 4)
    log_density = 4 * np.log(same) + 2 * np.log(different) - HEIGHT + np.log(HEIGHT)
    log_density += 1.1 * np.log(rate) - rate / 1.1
    assert_mean(np.log(sample["rate"]), mean_on_grid(log_density, np.log(rate)), "rate")
    assert_mean(log_height, mean_on_grid(log_density, np.log(HEIGHT)), "height")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The chains have not converged")
def test_noise_rate_and_height_of_two_categorical_rows_match_quadrature():
    """As above: a column's two cells have nothing in common if its state, or one of the cells, was drawn anew."""
    X = np.array([[0, 0, 1, 0, 1, 1], [0, 0, 1, 1, 1, 0]], dtype=float)
    _, log_height, sample = joint_sample(X, ct.Multinomial(1.0, [[0.5, 0.5]] * 6, 0.2), 15)
    rate = np.exp(np.linspace(np.log(1e-4), 3.5, 101))[:, None, None]
    height, noise = np.exp(np.linspace(-9, 3.5, 101))[:, None], (np.arange(50) + 0.5) / 50
    redrawn = 1 - (1 - noise) ** 2 * np.exp(-2 * rate * height)
    same = (1 - redrawn) * 0.5 + redrawn * (1.5 * 2.5) / (3 * 4)
    different = redrawn * 1.5**2 / (3 * 4)
    log_density = 4 * np.log(same) + 2 * np.log(different) - height + np.log(height)
    log_density += 1.1 * np.log(rate) - rate / 1.1 + 4 * np.log(1 - noise)
    assert_mean(np.log(sample["rate"]), mean_on_grid(log_density, np.log(rate)), "rate")
    assert_mean(log_height, mean_on_grid(log_density, np.log(height)), "height")
    assert_mean(sample["noise"], mean_on_grid(log_density, noise), "noise")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The chains have not converged")
def test_noises_and_height_of_two_real_rows_match_quadrature():
    """Each column's gap is normal with variance ``2 (h + noise) variance``; columns are independent given the height."""
    X = np.array([[0.0, 1.0], [0.3, 0.0]])
    _, log_height, sample = joint_sample(X, ct.Brownian([1.0, 1.0], [0.3, 0.1]), 16)
    height, noise = np.exp(np.linspace(-9, 3.5, 81)), np.exp(np.linspace(np.log(1e-6), np.log(1e4), 121))[:, None]
    of_height = -height + np.log(height)
    by_column = []
    for gap in X[0] - X[1]:
        spread = gap**2 / 4
        precision = np.exp(np.linspace(-9, 5, 101))[:, None, None] / spread
        span = 2 * (height + noise)
        log_density_of_column = 0.5 * np.log(precision / span) - precision * gap**2 / (2 * span)
        log_density_of_column = (
            log_density_of_column + 1.1 * np.log(precision) - precision * spread / 1.1 - np.log(noise) - 0.05 / noise
        )
        possible = noise / precision >= min(gap**2 / 12, 0.2 * spread)
        by_column.append((np.where(possible, log_density_of_column, -np.inf), np.log(precision)))
    summed = [logsumexp(log_density_of_column, axis=(0, 1)) for log_density_of_column, _ in by_column]
    assert_mean(log_height, mean_on_grid(of_height + sum(summed), np.log(height)), "height")
    for d, (log_density_of_column, log_precision) in enumerate(by_column):
        whole = log_density_of_column + of_height + summed[1 - d]
        assert_mean(np.log(sample[f"noise[{d}]"]), mean_on_grid(whole, np.log(noise)), f"noise of column {d}")
        assert_mean(-np.log(sample[f"variance[{d}]"]), mean_on_grid(whole, log_precision), f"precision of column {d}")


@pytest.mark.filterwarnings("ignore:The chains have not converged")
def test_variances_and_height_of_two_real_rows_match_quadrature():
    """Each column's gap is normal with variance ``2 h variance``; the precision, a Gamma variable, is integrated out by hand."""
    X = np.array([[0.0, 1.0, 0.0], [0.3, 0.0, 5.0]])
    _, log_height, sample = joint_sample(X, ct.Brownian([1.0, 1.0, 1.0]), 6, 400)
    log_density = -HEIGHT + np.log(HEIGHT)
    log_precisions = []
    for gap, spread in zip(X[0] - X[1], X.var(axis=0), strict=True):
        precision = np.exp(np.linspace(-8, 5, 301))[:, None] / spread
        log_density_of_column = 0.5 * np.log(precision / HEIGHT) - precision * gap**2 / (4 * HEIGHT)
        log_density_of_column = log_density_of_column + 1.1 * np.log(precision) - precision * spread / 1.1
        log_precisions.append((log_density_of_column, np.log(precision)))
        log_density = log_density + logsumexp(log_density_of_column, axis=0)
    assert_mean(log_height, mean_on_grid(log_density, np.log(HEIGHT)), "height")
    for d, (log_density_of_column, log_precision) in enumerate(log_precisions):
        whole = log_density_of_column + (log_density - logsumexp(log_density_of_column, axis=0))
        assert_mean(-np.log(sample[f"variance[{d}]"]), mean_on_grid(whole, log_precision), f"precision of column {d}")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The chains have not converged")
def test_rate_and_height_of_two_stationary_rows_match_quadrature():
    X = np.array([[0.4], [-0.9]])
    _, log_height, sample = joint_sample(X, ct.OrnsteinUhlenbeck(1.0, 0.0, 1.0), 7)
    height = np.exp(np.linspace(-7, 3, 41))[:, None, None, None]
    rate = np.exp(np.linspace(np.log(1e-4), 3, 41))[:, None, None]
    precision, mean = np.exp(np.linspace(-12, 4, 49))[:, None], np.linspace(-35, 35, 141)
    correlation = np.exp(-2 * rate * height)
    # half the sum and half the difference of the two rows are independent
    half_sum, half_gap = X.mean() - mean, (X[0, 0] - X[1, 0]) / 2
    log_density = (
        -0.5 * np.log1p(-(correlation**2))
        + np.log(precision)
        - precision * (half_sum**2 / (1 + correlation) + half_gap**2 / (1 - correlation))
    )
    spread, middle = X.var(), X.mean()
    log_density = (
        log_density + 1.1 * np.log(precision) - precision * spread / 1.1 - 0.5 * (mean - middle) ** 2 / (100 * spread)
    )
    log_density = log_density + 1.1 * np.log(rate) - rate / 1.1 - height + np.log(height)
    assert_mean(log_height, mean_on_grid(log_density, np.log(height)), "height")
    assert_mean(np.log(sample["rate"]), mean_on_grid(log_density, np.log(rate)), "rate")
    assert_mean(-np.log(sample["variance"]), mean_on_grid(log_density, np.log(precision)), "precision")
    assert_mean(sample["mean[0]"], mean_on_grid(log_density, mean), "mean")


# -- what goes with it -----------------------------------------------------------------------------


def test_noise_is_at_least_rounding_noise():
    """The cells have steps of 1, a third of their variance: no noise of less than a twelfth has a density."""
    X = np.array([[0.0], [1.0], [2.0], [1.0]])
    for process in (ct.Brownian(1.0, 1e-3), ct.OrnsteinUhlenbeck(1.0, 0.0, [1.0], 1e-3)):
        draws = process.sampler(X, hold_noise=False)
        assert np.isneginf(draws.log_prior(process))
        assert np.isfinite(draws.log_prior(draws.initial_process(process)))
        assert process.sampler(X, hold_noise=True).initial_process(process).noise == 1e-3


def test_column_noise_is_at_least_rounding_noise():
    """Cells in steps of 1 need a noise of a twelfth; those with many digits need hardly any."""
    X = np.array([[0.0, 0.123], [1.0, 2.456], [2.0, -1.789], [1.0, 0.124]])
    for process in (ct.Brownian(1.0, [1e-3, 1e-3]), ct.OrnsteinUhlenbeck(1.0, 0.0, [1.0, 1.0], [1e-3, 1e-3])):
        draws = process.sampler(X, hold_noise=False)
        assert np.isneginf(draws.log_prior(process))
        lifted = draws.initial_process(process)
        assert np.isfinite(draws.log_prior(lifted))
        assert lifted.noise == pytest.approx([1.01 / 12, 1e-3], rel=1e-9)
        assert process.sampler(X, hold_noise=True).initial_process(process).noise.tolist() == [1e-3, 1e-3]


def test_slice_sampler_matches_normal_and_gamma():
    rng = np.random.default_rng(0)
    x, y, results = 0.0, 1.0, []
    for _ in range(8_000):
        x = slice_step(lambda value: -0.5 * (value - 2) ** 2, x, (-50.0, 50.0), rng)
        y = positive_slice_step(lambda value: 2 * np.log(value) - value, y, (1e-6, 1e6), rng)
        results.append((x, x**2, y, y**2))
    for draws, mean, what in zip(np.array(results).T, (2, 5, 3, 12), ("x", "x^2", "y", "y^2"), strict=True):
        assert abs(draws.mean() - mean) < 6 * draws.std() / np.sqrt(1_000), what


def test_slice_sampler_stays_in_interval():
    rng = np.random.default_rng(0)
    x = 0.5
    for _ in range(500):
        x = slice_step(lambda value: value, x, (0.0, 1.0), rng)
        assert 0 <= x <= 1


PROCESSES = [
    ct.Brownian(2.0, 0.1),
    ct.Brownian([1.0, 2.0]),
    ct.Brownian([[2.0, 0.5], [0.5, 1.0]], 0.3),
    ct.OrnsteinUhlenbeck(0.5, [0.1, -0.2], [1.0, 2.0], 0.1),
    ct.Multinomial(0.5, [[0.2, 0.8], [0.3, 0.3, 0.4]]),
    ct.Multinomial([0.5, 1.5], [[0.2, 0.8], [0.3, 0.3, 0.4]]),
    ct.Multinomial(0.5, [[0.2, 0.8], [0.3, 0.3, 0.4]], 0.2),
    ct.Multinomial([0.5, 1.5], [[0.2, 0.8], [0.3, 0.3, 0.4]], [0.2, 0.0]),
    ct.Brownian(2.0, [0.1, 0.3]),
    ct.Brownian([1.0, 2.0], [0.1, 0.3]),
    ct.OrnsteinUhlenbeck(0.5, [0.1, -0.2], 1.5, [0.1, 0.3]),
]


@pytest.mark.parametrize("process", PROCESSES, ids=repr)
def test_process_round_trip_through_parameter_names(process):
    values = process.parameter_values()
    again = process.with_parameter_values(values)
    assert repr(again) == repr(process)
    assert again.parameter_values() == pytest.approx(values.tolist(), rel=1e-15)
    assert len(process.parameter_names([4, 7])) == len(values)


def test_parameter_names_of_parts_use_table_columns():
    process = ct.Mixed(
        (ct.Brownian([1.0, 2.0], 0.1), [3, 0]), (ct.Multinomial([0.5], [[0.2, 0.8]]), [1]), (ct.Brownian(5.0), [2])
    )
    named = dict(zip(process.parameter_names([0, 1, 2, 3]), process.parameter_values(), strict=True))
    assert named == {
        "variance[3]": 1.0,
        "variance[0]": 2.0,
        "noise[3,0]": 0.1,
        "rate[1]": 0.5,
        "equilibrium[1,0]": 0.2,
        "equilibrium[1,1]": 0.8,
        "variance": 5.0,
        "noise[2]": 0.0,
    }
    assert repr(process.with_parameter_values(np.array(list(named.values())))) == repr(process)


@pytest.mark.parametrize("rate", [0.7, [0.7, 2.0]], ids=["one rate", "a rate each"])
@pytest.mark.parametrize("log_factor", [-1.0, 0.3, 30.0])
def test_mutation_clock_ratio_matches_rescaled_process(rate, log_factor):
    process = ct.Multinomial(rate, [[0.3, 0.7], [0.2, 0.3, 0.5]], 0.2)
    sampler = process.sampler(np.array([[0.0, 2.0], [1.0, np.nan], [0.0, 1.0]]), hold_noise=False)
    ratio = sampler.log_clock_ratio(process, log_factor)
    assert ratio == pytest.approx(sampler.rescale_clock(process, log_factor)[1])
    assert np.isfinite(ratio) == (log_factor < 10)
