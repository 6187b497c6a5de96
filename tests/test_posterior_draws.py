"""Predictions averaged over draws, each with a tree, parameters and a completed table of its own, against brute force.

Brute force is the Gaussian of all cells of the table and of the new row together, at each place of a fine grid.
"""

import pickle
from functools import cache
from itertools import product

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

import coaltree as ct
import reference
from coaltree.inference import posterior_draws
from coaltree.predict import groups as groups_module
from coaltree.predict.predictor import Draw, Predictor
from coaltree.process.normal_scores import Marginal, NormalScores
from test_predictor import OTHER, TREE, grid

nan = np.nan
RNG = np.random.default_rng(8)
COVARIANCE = np.array([[1.0, -0.6, 0.2], [-0.6, 0.8, 0.1], [0.2, 0.1, 0.5]])
NOISE = np.array([[0.2, 0.05, 0.0], [0.05, 0.1, -0.04], [0.0, -0.04, 0.3]])
MEAN = np.array([0.2, -0.4, 1.0])
MUTATION = ct.Multinomial([0.5, 2.0], [[0.5, 0.3, 0.2], [0.4, 0.6]])
SCALAR = ct.OrnsteinUhlenbeck(0.7, MEAN, COVARIANCE, 0.2)
MATRIX = ct.OrnsteinUhlenbeck(0.4, 0.5 * MEAN, COVARIANCE[::-1, ::-1], NOISE)
DIAGONAL = ct.OrnsteinUhlenbeck(0.9, MEAN, [0.7, 1.2, 0.4], 0.1)
MIXED = ct.Mixed((MATRIX, [3, 0, 1]), (MUTATION, [4, 2]))
REAL = {SCALAR: [0, 1, 2], MATRIX: [0, 1, 2], DIAGONAL: [0, 1, 2], MIXED: [3, 0, 1]}
TABLE = SCALAR.simulate(TREE, 1)
MIXED_TABLE = MIXED.simulate(TREE, 2)
PATTERNS = [[], [0], [2], [0, 1], [1, 2], [0, 1, 2]]


def rows_with_missing_cells(X, patterns):
    """One row for each pattern, its real columns as in the pattern."""
    rows = X[[0, 2, 1, 4, 3, 0]] + 0.3 * np.round(RNG.normal(size=X.shape[1]), 1) * (X[[0, 2, 1, 4, 3, 0]] % 1 != 0)
    for row, pattern in zip(rows, patterns, strict=True):
        row[pattern] = nan
    return rows


CASES = {
    "noise": (SCALAR, TABLE, rows_with_missing_cells(TABLE, PATTERNS)),
    "matrix of noise": (MATRIX, TABLE, rows_with_missing_cells(TABLE, PATTERNS)),
    "mixed": (
        MIXED,
        MIXED_TABLE,
        rows_with_missing_cells(MIXED_TABLE, [[0], [3, 2], [1], [0, 3], [0, 1, 3, 4], [1, 3]]),
    ),
}


@cache
def meeting_heights(tree):
    """The height at which each two leaves meet; 0 for a leaf and itself."""
    below = reference.leaves_below(tree)
    n = tree.n_leaves
    return np.array(
        [
            [min(h for h, value in zip(tree.heights, below, strict=True) if {i, j} <= value) for j in range(n)]
            for i in range(n)
        ]
    )


@cache
def covariance_of(process, tree):
    """Covariance of all cells of a table, row by row."""
    variance = np.diag(process.variance) if process.variance.ndim < 2 else process.variance
    noise = process.noise if process.noise.ndim == 2 else process.noise * variance
    between = np.exp(-2 * process.rate * meeting_heights(tree))
    return np.kron(between, variance) + np.kron(np.eye(tree.n_leaves), noise)


def condition(mean, covariance, values):
    """Log density of what is known of a Gaussian vector, mean and covariance of the rest given that."""
    known = ~np.isnan(values)
    log_density = multivariate_normal(mean[known], covariance[np.ix_(known, known)]).logpdf(values[known])
    gain = np.linalg.solve(covariance[np.ix_(known, known)], covariance[np.ix_(known, ~known)]).T
    rest = mean[~known] + gain @ (values - mean)[known]
    return log_density, rest, covariance[np.ix_(~known, ~known)] - gain @ covariance[np.ix_(known, ~known)]


class BruteForce:
    """A new row at all places of a tree, its missing real cells integrated out of one large Gaussian."""

    def __init__(self, tree, X, process, row):
        gaussian = process.parts[0][0] if isinstance(process, ct.Mixed) else process
        real = REAL[process]
        at = grid(tree)
        whole = condition(np.tile(gaussian.mean, len(X)), covariance_of(gaussian, tree), X[:, real].ravel())[0]
        logs, self.means, self.variances = at.log_masses.copy(), [], []
        codes = None
        if isinstance(process, ct.Mixed):
            mutation, columns = process.parts[1]
            columns = list(columns)
            codes = np.vstack([X[:, columns], row[columns]])
            logs -= mutation.log_likelihood(tree, X[:, columns])
            logs += [mutation.log_likelihood(grown, codes) for grown in at.grown]
        values = np.concatenate([X[:, real].ravel(), row[real]])
        for k, grown in enumerate(at.grown):
            joint, mean, covariance = condition(
                np.tile(gaussian.mean, len(X) + 1), covariance_of(gaussian, grown), values
            )
            logs[k] += joint - whole
            self.means.append(mean)
            self.variances.append(np.diag(covariance))
        self.log_density = logsumexp(logs)
        self.shares = np.exp(logs - self.log_density)
        self.nodes, self.heights = at.nodes, at.heights

    def moments(self):
        """Mean and sd of the missing real cells."""
        mean = self.shares @ np.array(self.means)
        square = self.shares @ (np.array(self.variances) + np.array(self.means) ** 2)
        return mean, np.sqrt(square - mean**2)


@pytest.fixture(scope="module", params=CASES, ids=CASES.keys())
def case(request):
    process, X, rows = CASES[request.param]
    return process, X, rows, [BruteForce(TREE, X, process, row) for row in rows]


def single(process, X, tree=TREE, completed=None, **options):
    return Predictor([Draw(tree, process, X if completed is None else completed)], np.ones(1), X, **options)


class TestBruteForce:
    def test_density_matches_brute_force(self, case):
        process, X, rows, brute = case
        predicted = single(process, X).log_density(rows)
        np.testing.assert_allclose(predicted, [each.log_density for each in brute], atol=2e-3)
        np.testing.assert_array_equal(single(process, X).place(rows, TREE, 1).log_density, predicted)

    def test_missing_cells_match_brute_force(self, case):
        process, X, rows, brute = case
        predicted = single(process, X).cells(rows)
        assert predicted.real.tolist() == REAL[process]
        for k, (row, each) in enumerate(zip(rows, brute, strict=True)):
            missing = np.isnan(row[REAL[process]])
            mean, sd = each.moments()
            np.testing.assert_allclose(predicted.mean[k, missing], mean, atol=3e-3)
            np.testing.assert_allclose(predicted.sd[k, missing], sd, rtol=5e-3)

    def test_observed_cells_have_leaf_predictions(self, case):
        process, X, rows, brute = case
        predicted = single(process, X).cells(rows)
        gaussian = process.parts[0][0] if isinstance(process, ct.Mixed) else process
        for k, each in enumerate(brute[:3]):
            empty = np.full(3, nan)
            alone = [
                condition(
                    np.tile(gaussian.mean, 6),
                    covariance_of(gaussian, grown),
                    np.concatenate([X[:, REAL[process]].ravel(), empty]),
                )[1]
                for grown in grid(TREE).grown
            ]
            observed = ~np.isnan(rows[k][REAL[process]])
            np.testing.assert_allclose(predicted.mean[k, observed], (each.shares @ alone)[observed], atol=3e-3)

    def test_placements_match_brute_force(self, case):
        process, X, rows, brute = case
        placed = single(process, X).place(rows, TREE, 1)
        for k, each in enumerate(brute):
            branches = np.bincount(each.nodes, each.shares)
            assert placed.probability[k] == pytest.approx(branches.max(), abs=3e-3)
            assert placed.height[k] == pytest.approx(each.shares @ each.heights, rel=1e-2)

    def test_cluster_shares_match_brute_force(self, case):
        process, X, rows, brute = case
        labels = np.array([0, 0, 1, 2, 1])
        parts = [np.bincount(labels[list(value)], minlength=3) / len(value) for value in reference.leaves_below(TREE)]
        expected = [np.bincount(each.nodes, each.shares) @ np.array(parts) for each in brute]
        np.testing.assert_allclose(single(process, X).cluster_shares(rows, labels), expected, atol=3e-3)

    def test_drawn_cells_match_brute_force_moments(self, case):
        """20,000 draws for each row: mean and mean square of a missing cell are within 5 standard errors."""
        process, X, rows, _ = case
        predictor = single(process, X)
        draws = predictor.draw(rows, 20_000, np.random.default_rng(0))[:, :, REAL[process]]
        assert np.all(np.isfinite(draws))
        predicted = predictor.cells(rows)
        z = (draws - predicted.mean) / predicted.sd
        missing = np.isnan(rows[:, REAL[process]])
        assert np.all(np.abs(z.mean(axis=0)[missing]) < 5 / np.sqrt(20_000))
        errors = (z**2).std(axis=0) / np.sqrt(20_000)
        assert np.all(np.abs((z**2).mean(axis=0) - 1)[missing] < 5 * errors[missing])


def test_missing_cells_of_row_are_drawn_jointly():
    """Two missing cells with correlation -0.67 at every place; 20,000 draws, within 5 standard errors of brute force."""
    row = TABLE[[0]].copy()
    row[0, :2] = nan
    brute = BruteForce(TREE, TABLE, SCALAR, row[0])
    at = grid(TREE)
    values = np.concatenate([TABLE.ravel(), row[0]])
    within = [condition(np.tile(MEAN, 6), covariance_of(SCALAR, grown), values)[2][0, 1] for grown in at.grown]
    means = np.array(brute.means) - brute.shares @ np.array(brute.means)
    expected = brute.shares @ (within + means[:, 0] * means[:, 1])
    draws = single(SCALAR, TABLE).draw(row, 20_000, np.random.default_rng(0))[:, 0, :2]
    products = np.prod(draws - draws.mean(axis=0), axis=1)
    assert products.mean() == pytest.approx(expected, abs=5 * products.std() / np.sqrt(20_000) + 3e-3)


# -- several draws ---------------------------------------------------------------------------------------------------


def other_table(seed):
    """The table with other cells in some places, as another draw might have completed it."""
    X = TABLE.copy()
    X[[1, 3], [0, 2]] += np.random.default_rng(seed).normal(size=2)
    return X


SCORES = NormalScores(
    (
        Marginal(np.array([-3.0, -1.0, 0.0, 0.5, 2.0]), np.array([-2.5, -1.5, 0.2, 0.5, 2.0])),
        Marginal(np.array([-1.0, 1.0]), np.array([-1.2, 0.9])),
        Marginal(np.array([-2.0, 0.0, 0.1, 3.0]), np.array([-1.5, -0.5, 0.6, 1.5])),
    )
)

ENSEMBLES = {
    "full": [(TREE, SCALAR, other_table(0)), (OTHER, MATRIX, other_table(1))],
    "full and diagonal": [(TREE, DIAGONAL, other_table(0)), (OTHER, MATRIX, other_table(1))],
    "diagonal": [(TREE, DIAGONAL, TABLE), (OTHER, ct.OrnsteinUhlenbeck(0.3, 0.0, 1.0, 0.3), TABLE)],
    "same process": [(TREE, SCALAR, other_table(0)), (OTHER, SCALAR, other_table(1))],
    "full and scores": [(TREE, SCALAR, other_table(0)), (OTHER, MATRIX, SCORES.apply(other_table(1)), SCORES)],
    "diagonal and scores": [(TREE, DIAGONAL, TABLE), (OTHER, DIAGONAL, SCORES.apply(TABLE), SCORES)],
}
ROWS = rows_with_missing_cells(TABLE, PATTERNS)


def ensemble(name, weights=(1.0, 3.0), **options):
    X = TABLE.copy()
    X[[1, 3], [0, 2]] = nan
    draws = [Draw(*arguments) for arguments in ENSEMBLES[name]]
    both = Predictor(draws, np.array(weights), X, **options)
    return both, [Predictor([draw], np.ones(1), X) for draw in draws]


@pytest.mark.parametrize("name", ENSEMBLES)
def test_ensemble_is_mixture_of_draws(name):
    both, parts = ensemble(name)
    logs = np.array([part.log_density(ROWS) for part in parts]) + np.log([[0.25], [0.75]])
    total = logsumexp(logs, axis=0)
    np.testing.assert_allclose(both.log_density(ROWS), total, atol=1e-10)
    shares = np.exp(logs - total)[:, :, None]
    cells = [part.cells(ROWS) for part in parts]
    predicted = both.cells(ROWS)
    mean = sum(share * cell.mean for share, cell in zip(shares, cells, strict=True))
    square = sum(share * (cell.sd**2 + cell.mean**2) for share, cell in zip(shares, cells, strict=True))
    np.testing.assert_allclose(predicted.mean, mean, rtol=1e-8)
    np.testing.assert_allclose(predicted.sd, np.sqrt(square - mean**2), rtol=1e-8)
    labels = np.array([0, 0, 1, 2, 1])
    clusters = [part.cluster_shares(ROWS, labels) for part in parts]
    expected = sum(share * cluster for share, cluster in zip(shares, clusters, strict=True))
    np.testing.assert_allclose(both.cluster_shares(ROWS, labels), expected, rtol=1e-8)
    heights = [part.place(ROWS, tree, 1).height for part, (tree, *_) in zip(parts, ENSEMBLES[name], strict=True)]
    expected = sum(share[:, 0] * height for share, height in zip(shares, heights, strict=True))
    np.testing.assert_allclose(both.place(ROWS, TREE, 1).height, expected, rtol=1e-8)


def test_normal_scores_add_jacobian():
    X, rows = SCORES.apply(TABLE), SCORES.apply(ROWS)
    for process in (MATRIX, DIAGONAL):
        scored = Predictor([Draw(OTHER, process, X, SCORES)], np.ones(1), TABLE)
        plain = Predictor([Draw(OTHER, process, X)], np.ones(1), X)
        np.testing.assert_allclose(
            scored.log_density(ROWS), plain.log_density(rows) + SCORES.log_slopes(ROWS), atol=1e-10
        )
        draws = SCORES.invert(plain.draw(rows, 5, np.random.default_rng(0)))
        np.testing.assert_allclose(scored.draw(ROWS, 5, np.random.default_rng(0)), draws, atol=1e-9)


def test_predicted_cells_with_scores_match_draws():
    """Means of 20,000 draws, with four standard errors of play: the chance of a false alarm is below 1e-3 for all 18."""
    for process in (MATRIX, DIAGONAL):
        scored = Predictor([Draw(OTHER, process, SCORES.apply(TABLE), SCORES)], np.ones(1), TABLE)
        rows = np.array([[nan, nan, nan], TABLE[0]])
        draws = scored.draw(rows[:1], 20_000, np.random.default_rng(1))[:, 0]
        # a row of which nothing is known is at no particular place, so that its cells are a mixture over all of them
        predicted = scored.cells(rows)
        error = draws.std(axis=0) / np.sqrt(20_000)
        assert np.all(np.abs(predicted.mean[0] - draws.mean(axis=0)) < 4 * error + 0.01)
        np.testing.assert_allclose(predicted.sd[0], draws.std(axis=0), rtol=0.03)


def test_equal_draws_are_combined():
    draws = [Draw(*arguments) for arguments in ENSEMBLES["full"]]
    both, _ = ensemble("full")
    again = Predictor([draws[1], draws[0], draws[1], draws[1]], np.ones(4), both.X)
    assert len(again.trees) == 2
    np.testing.assert_allclose(again.log_density(ROWS), both.log_density(ROWS), rtol=1e-12)


def test_empty_row_attaches_by_prior():
    both, _ = ensemble("full and diagonal")
    assert both.log_density(np.full((1, 3), nan))[0] == pytest.approx(0.0, abs=1e-9)


def test_density_of_partial_rows_integrates_to_one():
    x = np.arange(-30, 30, 0.01) + 0.005  # middles of intervals that knots do not cut
    for column, name in product(range(3), ["full", "full and scores", "diagonal and scores"]):
        rows = np.full((len(x), 3), nan)
        rows[:, column] = x
        total = np.exp(ensemble(name)[0].log_density(rows)).sum() * 0.01
        assert total == pytest.approx(1.0, abs=3e-4)


def many(name, n_rows=60):
    """Draws of a table of 60 rows, and new rows with all patterns of holes."""
    rng = np.random.default_rng(4)
    trees = [ct.simulate_tree(60, rng) for _ in range(3)]
    processes = {"full": [SCALAR, MATRIX, SCALAR]}.get(name, [SCALAR, DIAGONAL, MATRIX])
    X = SCALAR.simulate(trees[0], rng)
    rows = X[rng.integers(60, size=n_rows)] + 0.2 * rng.normal(size=(n_rows, 3))
    patterns = np.array(list(product([False, True], repeat=3)))
    rows[patterns[np.arange(n_rows) % 8]] = nan
    draws = [Draw(tree, process, X) for tree, process in zip(trees, processes, strict=True)]
    if name == "scores":
        draws[1:] = [draw._replace(X=SCORES.apply(X), scores=SCORES) for draw in draws[1:]]
    return draws, X, rows


def answers(predictor, rows):
    cells = predictor.cells(rows)
    return [
        predictor.log_density(rows),
        *predictor.place(rows, predictor.trees[0], 2),
        predictor.cluster_shares(rows, np.arange(60) % 3),
        cells.mean,
        cells.sd,
        predictor.draw(rows, 2, np.random.default_rng(1)),
    ]


@pytest.mark.parametrize("name", ["full", "mixture", "scores"])
def test_bounds_do_not_change_results(name, monkeypatch):
    """Groups that the bounds rule out are skipped, and tables are recomputed."""
    draws, X, rows = many(name)
    whole = answers(Predictor(draws, np.ones(3), X), rows)[:-1]
    monkeypatch.setattr(groups_module, "MIN_POINTS_TO_PRUNE", 0)
    monkeypatch.setattr(groups_module, "GROUP_SIZE", 10)
    for value in (40_000_000, 0):
        monkeypatch.setattr(groups_module, "MAX_CACHED_NUMBERS", value)
        monkeypatch.setattr(groups_module, "MAX_NEW_NUMBERS", 5_000 if value == 0 else 2_000_000)
        predictor = Predictor(draws, np.ones(3), X)
        groups = predictor.groups
        laid_out = groups.make_rows(rows)
        needed = groups._find_needed_groups(laid_out)
        assert not needed.all()
        for a, b in zip(answers(predictor, rows)[:-1], whole, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", ["full", "mixture", "scores"])
def test_group_bounds_are_upper_bounds(name, monkeypatch):
    draws, X, rows = many(name)
    monkeypatch.setattr(groups_module, "MIN_POINTS_TO_PRUNE", 0)
    monkeypatch.setattr(groups_module, "GROUP_SIZE", 10)
    groups = Predictor(draws, np.ones(3), X).groups
    laid_out = groups.make_rows(rows)
    bounds = groups.bound(laid_out)
    for g in range(len(groups.starts)):
        needed = np.zeros(bounds.shape, dtype=bool)
        needed[:, g] = True
        assert np.all(bounds[:, g] >= groups._log_densities(laid_out, needed) - 1e-9)


@pytest.mark.parametrize("name", ["mixture", "scores"])
def test_ensemble_is_independent_of_threads_and_pickling(name, monkeypatch):
    monkeypatch.setattr(groups_module, "BLOCK_ROWS", 7)
    draws, X, rows = many(name)
    one, two = (Predictor(draws, np.ones(3), X, n_jobs) for n_jobs in (1, 2))
    whole = answers(one, rows)
    for other in (two, pickle.loads(pickle.dumps(two))):
        for a, b in zip(whole, answers(other, rows), strict=True):
            np.testing.assert_array_equal(a, b)


def test_result_of_row_is_independent_of_other_rows():
    draws, X, rows = many("full")
    predictor = Predictor(draws, np.ones(3), X)
    whole = answers(predictor, rows)[:-1]
    for some in (np.arange(60)[::-1], np.array([7]), np.arange(0, 60, 9), np.array([3, 3, 50])):
        for a, b in zip(answers(predictor, rows[some])[:-1], whole, strict=True):
            np.testing.assert_allclose(a, b[some], rtol=1e-9)


# -- rows of the fit -------------------------------------------------------------------------------------------------


def expected_cells(process, tree, X, rows, table):
    """Missing cells of each row given all other rows as X has them, and the row's own cells as in `table`."""
    results = []
    for row in rows:
        values = X.copy()
        values[row] = table[row]
        width = X.shape[1]
        _, mean, covariance = condition(np.tile(process.mean, len(X)), covariance_of(process, tree), values.ravel())
        selected = np.flatnonzero(np.isnan(values.ravel())) // width == row
        results.append((mean[selected], np.sqrt(np.diag(covariance)[selected])))
    return results


FITTED = {
    "holes": (DIAGONAL, False),
    "filled in, diagonal": (DIAGONAL, True),
    "filled in, noise": (SCALAR, True),
    "filled in, matrix of noise": (MATRIX, True),
}


def fit_table():
    X = TABLE.copy()
    X[[1, 1, 3, 4, 0, 0, 0], [0, 2, 1, 2, 0, 1, 2]] = nan
    return X


@pytest.mark.parametrize("name", FITTED)
def test_training_cells_match_brute_force(name):
    process, filled = FITTED[name]
    X = fit_table()
    completed = np.where(np.isnan(X), np.random.default_rng(3).normal(size=X.shape), X) if filled else X
    rows = np.array([4, 1, 3, 0, 1])
    predicted = single(process, X, completed=completed).training_cells(rows)
    for k, (row, (mean, sd)) in enumerate(zip(rows, expected_cells(process, TREE, completed, rows, X), strict=True)):
        missing = np.isnan(X[row])
        np.testing.assert_allclose(predicted.mean[k, missing], mean, atol=1e-9)
        np.testing.assert_allclose(predicted.sd[k, missing], sd, rtol=1e-9)


def test_categorical_training_cells_match_brute_force():
    X = MIXED_TABLE.copy()
    X[[0, 2], [4, 2]] = nan
    X[1, 3] = nan
    completed = X.copy()
    completed[1, 3] = 0.4
    predicted = single(MIXED, X, completed=completed).training_cells(np.arange(5))
    at_leaves = ct.Beliefs(TREE, X[:, [4, 2]], MUTATION).leaves()
    np.testing.assert_allclose(predicted.probability[0, :3], at_leaves.probability[0, :3])
    np.testing.assert_allclose(predicted.probability[2, 3:], at_leaves.probability[2, 3:])
    real = expected_cells(MATRIX, TREE, completed[:, [3, 0, 1]], [1], X[:, [3, 0, 1]])[0]
    np.testing.assert_allclose([predicted.mean[1, 0], predicted.sd[1, 0]], np.ravel(real))


def test_training_cells_are_mixture_over_draws():
    both, parts = ensemble("full")
    rows = np.array([3, 1])
    cells = [part.training_cells(rows) for part in parts]
    predicted = both.training_cells(rows)
    mean = 0.25 * cells[0].mean + 0.75 * cells[1].mean
    square = 0.25 * (cells[0].sd ** 2 + cells[0].mean ** 2) + 0.75 * (cells[1].sd ** 2 + cells[1].mean ** 2)
    np.testing.assert_allclose(predicted.mean, mean)
    np.testing.assert_allclose(predicted.sd, np.sqrt(square - mean**2))


def test_drawn_training_cells_come_from_draws():
    both, _ = ensemble("full")
    draws = both.draw_training_cells(np.arange(5), 40, np.random.default_rng(0))
    matches = {tuple(table[[1, 3], [0, 2]]) for table in draws}
    assert matches == {tuple(arguments[2][[1, 3], [0, 2]]) for arguments in ENSEMBLES["full"]}


def test_remaining_missing_training_cells_are_drawn():
    """1,000 tables: mean and sd of a missing cell are within 5 standard errors of what the other cells say."""
    X = TABLE.copy()
    X[1, 0] = nan
    predictor = single(DIAGONAL, X)
    predicted = predictor.training_cells(np.array([1]))
    draws = predictor.draw_training_cells(np.array([1]), 1_000, np.random.default_rng(0))[:, 0, 0]
    z = (draws - predicted.mean[0, 0]) / predicted.sd[0, 0]
    assert abs(z.mean()) < 5 / np.sqrt(1_000)
    assert abs((z**2).mean() - 1) < 5 * np.sqrt(2 / 1_000)


def test_ensemble_of_one_row():
    """For a single row, missing cells follow the equilibrium given the observed ones."""
    alone = ct.Tree([], [0.0])
    X = np.array([[0.5, nan, 1.5]])
    predictor = single(SCALAR, X, alone, np.array([[0.5, 0.3, 1.5]]))
    predicted = predictor.training_cells(np.array([0]))
    _, mean, covariance = condition(MEAN, covariance_of(SCALAR, alone), X[0])
    np.testing.assert_allclose([predicted.mean[0, 1], predicted.sd[0, 1] ** 2], [mean[0], covariance[0, 0]])
    np.testing.assert_array_equal(
        predictor.draw_training_cells(np.array([0]), 1, np.random.default_rng(0))[0, 0, 1], 0.3
    )


def test_wide_tables_get_fewer_sweeps_and_rows():
    assert posterior_draws.max_rows(10) == posterior_draws.MAX_ROWS
    assert posterior_draws.MIN_ROWS <= posterior_draws.max_rows(10_000) < 200
    for n, n_columns in ((10, 2), (500, 10), (3_000, 10), (400, 2_000), (124, 10_000)):
        plan = posterior_draws._plan(n, n_columns, None)
        assert plan.n_sweeps >= posterior_draws.MIN_WIDE_SWEEPS
        assert max(plan.kept) < plan.n_sweeps
        time = n * (posterior_draws.MOVE + posterior_draws.COLUMN * n_columns) * plan.n_sweeps
        assert time <= 1.01 * posterior_draws.MAX_TIME


def test_chains_are_short_without_compiled_kernels(monkeypatch):
    matrix = np.random.default_rng(0).normal(size=(178, 13))
    compiled = posterior_draws._plan(*matrix.shape, None)
    monkeypatch.setattr(posterior_draws, "are_compiled", lambda: False)
    plain = posterior_draws._plan(*matrix.shape, None)
    assert plain.n_sweeps == posterior_draws.MIN_WIDE_SWEEPS < compiled.n_sweeps / 5
    assert len(plain.kept) >= 6
    assert min(plain.kept) >= plain.warmup
