"""Expected heights of merges, against quadrature and the prior: order, ties and the closed form."""

import math

import numpy as np
import pytest

import coaltree as ct
import exact_posterior
from coaltree.inference.kernels.history import slots_of
from coaltree.inference.refine import expected_heights, mean_heights, spread_heights

RUNS, SWEEPS = 30, 400
BOUND = 7  # standard errors of the mean of 30 runs: a false alarm in about ten million comparisons, and there are some hundred

OU = ct.OrnsteinUhlenbeck(0.7, 0.0, 1.0, 0.5)
SITES = ct.Multinomial([0.5, 1.0], [[0.3, 0.7], [0.2, 0.3, 0.5]], noise=0.1)
PROCESSES = {
    "brownian": ct.Brownian([1.0, 2.0], 0.3),
    "stationary": OU,
    "stationary, noise of columns": ct.OrnsteinUhlenbeck(0.7, 0.0, 1.0, [0.2, 0.8]),
    "multinomial": SITES,
    "mixed": ct.Mixed((OU, [0]), (ct.Multinomial([0.5], [[0.2, 0.3, 0.5]], noise=0.2), [1])),
    "mixed, one part without noise": ct.Mixed((OU, [0]), (ct.Multinomial([0.5], [[0.2, 0.3, 0.5]]), [1])),
}
TOPOLOGIES = {
    "three": [(0, 1), (2, 3)],
    "caterpillar": [(0, 1), (2, 4), (3, 5)],
    "balanced": [(0, 1), (2, 3), (4, 5)],
}


def table(kind, n, missing=False):
    process = PROCESSES[kind]
    X = process.simulate(ct.simulate_tree(n, 1), 2, n_columns=2)
    if missing:
        X[0, 0] = X[2, 1] = np.nan
    return X, process.resolve(X)


def flat_tree(children):
    return ct.Tree(children, np.zeros(2 * len(children) + 1))


def by_clade(children, heights):
    n = len(children) + 1
    below = [frozenset([leaf]) for leaf in range(n)]
    for left, right in np.asarray(children).tolist():
        below.append(below[left] | below[right])
    return dict(zip(below[n:], heights, strict=True))


def true_means(children, X, process, points=34):
    """Integrate the heights of all histories with these clades over a grid of the logarithms of the waits."""
    n = len(X)
    axis = np.linspace(-13.0, 3.4, points)
    logs = np.stack(np.meshgrid(*[axis] * (n - 1), indexing="ij"), axis=-1).reshape(-1, n - 1)
    live = np.arange(n, 1, -1)
    log_mass = logs.sum(axis=1) - (np.exp(logs) * (live * (live - 1) / 2)).sum(axis=1)
    heights = np.cumsum(np.exp(logs), axis=1)
    total, moments = 0.0, dict.fromkeys(by_clade(children, range(n - 1)), 0.0)
    for history in exact_posterior.histories(n):
        if exact_posterior.clades(history) == frozenset(moments):
            mass = np.exp(exact_posterior.log_likelihoods(history, heights, X, process) + log_mass)
            total += mass.sum()
            for clade, moment in by_clade(history, mass @ heights).items():
                moments[clade] += moment
    return {clade: moment / total for clade, moment in moments.items()}


@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])
@pytest.mark.parametrize("shape", TOPOLOGIES)
@pytest.mark.parametrize("kind", PROCESSES)
def test_expected_heights_match_quadrature(kind, shape, missing):
    children = TOPOLOGIES[shape]
    n = len(children) + 1
    X, process = table(kind, n, missing)
    start = spread_heights(flat_tree(children))
    runs = [mean_heights(start, process.forest(X, slots_of(n)), SWEEPS, seed=seed) for seed in range(RUNS)]
    truth = true_means(children, X, process)
    error = by_clade(children, np.std(runs, axis=0, ddof=1) / math.sqrt(RUNS))
    for clade, mean in by_clade(children, np.mean(runs, axis=0)).items():
        assert abs(mean - truth[clade]) < BOUND * error[clade], clade
        assert error[clade] < 0.03 * truth[clade], "the runs are long enough to tell"
    actual = expected_heights(flat_tree(children), X, process)
    for clade, mean in by_clade(actual.children, actual.merge_heights).items():
        # a single run of the default length is ten times as long as one of those
        assert abs(mean - truth[clade]) < BOUND * math.sqrt(RUNS / 10) * error[clade]


def test_expected_height_of_two_rows():
    X, process = table("stationary", 2)
    actual = expected_heights(flat_tree([(0, 1)]), X, process, n_sweeps=100_000)
    truth = true_means([(0, 1)], X, process, 400)
    # draws from a one-dimensional density follow on each other with little correlation, and have a deviation of about 1
    assert actual.merge_heights[0] == pytest.approx(truth[frozenset([0, 1])], abs=0.02)


def test_expected_heights_without_data_match_prior():
    """A caterpillar has one history, with exponential waiting times; only one cell is observed."""
    n = 30
    tree = flat_tree([(0, 1)] + [(k + 2, n + k) for k in range(n - 2)])
    X = np.full((n, 1), np.nan)
    X[0] = 0.5
    live = np.arange(n, 1, -1)
    expected = np.cumsum(2 / (live * (live - 1)))
    runs = [mean_heights(spread_heights(tree), OU.forest(X, slots_of(n)), 400, seed=seed) for seed in range(RUNS)]
    error = np.std(runs, axis=0, ddof=1) / math.sqrt(RUNS)
    assert np.all(np.abs(np.mean(runs, axis=0) - expected) < BOUND * error)
    assert np.all(error < 0.05 * expected)


def test_expected_heights_are_calibrated():
    """Over trees and tables from the model, heights are on average as large as their posterior means.

    So are sums of heights over merges that clades alone pick out; the order of merges, which is averaged over, must not.
    """
    n, gaps = 25, {"all": [], "of two leaves": [], "of three leaves": [], "root": []}
    for seed in range(200):
        tree = ct.simulate_tree(n, seed)
        X = OU.simulate(tree, 1000 + seed, n_columns=3)
        gap = mean_heights(tree, OU.forest(X, slots_of(n)), 100) - tree.merge_heights
        sizes = tree.leaf_counts[n:]
        gaps["all"].append(gap.sum())
        gaps["of two leaves"].append(gap[sizes == 2].sum())
        gaps["of three leaves"].append(gap[sizes == 3].sum())
        gaps["root"].append(gap[-1])
    for which, values in gaps.items():
        error = np.std(values, ddof=1) / math.sqrt(len(values))
        assert abs(np.mean(values)) < 5 * error, which  # a false alarm in a million


def noisy_table(n=60, columns=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(4, columns))[rng.integers(0, 4, n)] + 0.7 * rng.normal(size=(n, columns))
    return (X - X.mean(axis=0)) / X.std(axis=0)


@pytest.mark.parametrize("kind", ["stationary", "missing", "brownian", "multinomial", "mixed", "equal rows"])
def test_expected_heights_increase_and_keep_clades(kind):
    X = noisy_table()
    process = ct.OrnsteinUhlenbeck(0.5, 0.0, 0.7, 0.43)
    if kind == "missing":
        X[np.random.default_rng(1).random(X.shape) < 0.2] = np.nan
    elif kind == "brownian":
        process = ct.Brownian(1.0, 0.5)
    elif kind == "multinomial":
        X, process = np.round(X - X.min()), ct.Multinomial(0.5, noise=0.2)
    elif kind == "mixed":
        X[:, 2:] = X[:, 2:] > 0
        process = ct.Mixed((process, [0, 1]), (ct.Multinomial(0.5, noise=0.2), [2, 3]))
    elif kind == "equal rows":
        X = np.repeat(X[:12], 5, axis=0)
    names = [f"row {k}" for k in range(len(X))]
    result = ct.greedy(X, process, leaf_names=names)
    assert np.any(np.diff(result.tree.heights[len(X) - 1 :]) == 0)
    actual = expected_heights(result.tree, X, result.process)
    assert np.all(np.diff(actual.heights[len(X) - 1 :]) > 0)
    assert actual.leaf_names == result.tree.leaf_names
    assert ct.robinson_foulds(actual, result.tree) == 0
    assert actual == expected_heights(result.tree, X, result.process)
    # where heights are drawn from does not depend on how the search ordered what it cut off
    assert expected_heights(actual, X, result.process).heights[-1] == pytest.approx(actual.heights[-1], rel=0.3)


@pytest.mark.filterwarnings("ignore:.*identical in every real cell:coaltree.errors.InputWarning")
@pytest.mark.parametrize(
    "process",
    [
        ct.Brownian(),
        ct.OrnsteinUhlenbeck(0.5),
        ct.Multinomial(0.5),
        ct.Mixed((ct.Brownian(), [0]), (ct.Multinomial(0.5), [1, 2])),
    ],
    ids=["brownian", "stationary", "multinomial", "mixed"],
)
def test_expected_heights_without_noise_keep_tree(process):
    X = np.random.default_rng(0).integers(0, 3, (30, 3)).astype(float)
    result = ct.greedy(X, process)
    assert np.any(result.tree.merge_heights == 0)
    assert expected_heights(result.tree, X, result.process) is result.tree
    assert expected_heights(result.tree, X, result.process, max_sampled_rows=10) is result.tree


def test_expected_heights_of_one_row():
    tree = ct.Tree([], [0.0])
    assert expected_heights(tree, np.zeros((1, 2)), OU) is tree
    assert spread_heights(tree) == tree


def test_expected_heights_of_many_rows_use_closed_form():
    X = noisy_table()
    result = ct.greedy(X, OU)
    assert expected_heights(result.tree, X, result.process, max_sampled_rows=59) == spread_heights(result.tree)


def test_spread_heights_match_prior_expectation():
    """With all merges at height 0, only the prior is left."""
    n = 12
    heights = np.array([ct.simulate_tree(n, seed).merge_heights for seed in range(4000)])
    actual = spread_heights(flat_tree(ct.simulate_tree(n, 0).children)).merge_heights
    error = heights.std(axis=0, ddof=1) / math.sqrt(len(heights))
    assert np.all(np.abs(heights.mean(axis=0) - actual) < 6 * error)  # a false alarm in a hundred million


def test_spread_heights_keep_distinct_heights():
    children = [(0, 1), (2, 6), (3, 7), (4, 8), (5, 9)]
    tree = ct.Tree(children, [0.0] * 6 + [0.0, 0.0, 3.0, 3.0, 9.0])
    actual = spread_heights(tree)
    # waits of 6, 5 and 4 lineages: 2/30, 2/20, 2/12; of 3 and 2: 2/6, 2/2
    total = 2 / 30 + 2 / 20 + 2 / 12
    expected = [3 * (2 / 30) / total, 3 * (2 / 30 + 2 / 20) / total, 3.0, 3 + 6 * (2 / 6) / (2 / 6 + 1), 9.0]
    assert actual.merge_heights == pytest.approx(expected, rel=1e-14)
    assert np.array_equal(actual.children, tree.children)
    tied_at_the_top = ct.Tree(children, [0.0] * 6 + [1.0, 2.0, 3.0, 3.0, 3.0])
    assert spread_heights(tied_at_the_top).merge_heights == pytest.approx([1, 2, 3, 3 + 2 / 6, 3 + 2 / 6 + 1])
    told_apart = ct.simulate_tree(20, 1)
    assert spread_heights(told_apart) == told_apart


def test_spread_heights_between_adjacent_floats():
    """Heights may be adjacent floats; the merges between them stay in order."""
    one = np.nextafter(1.0, 2.0)
    tree = ct.Tree([(0, 1), (2, 5), (3, 6), (4, 7)], [0.0] * 5 + [1.0, 1.0, 1.0, one])
    actual = spread_heights(tree).merge_heights
    assert np.all(np.diff(actual) > 0)
    assert actual == pytest.approx(1.0)


def test_spread_heights_of_many_rows():
    n = 100_000
    tree = ct.simulate_tree(n, 0)
    floor = tree.merge_heights[n // 2]
    actual = spread_heights(ct.Tree(tree.children, np.where(tree.heights < floor, 0.0, tree.heights)))
    assert np.all(np.diff(actual.heights[n - 1 :]) > 0)
    assert np.array_equal(actual.merge_heights[n // 2 :], tree.merge_heights[n // 2 :])
    assert actual.merge_heights[: n // 2] == pytest.approx(tree.merge_heights[: n // 2], rel=0.1, abs=0.02 * floor)


def test_expected_heights_change_only_ties():
    """The tie is below a root that stays: its density is one-dimensional, and integrated here."""
    X, process = table("stationary", 3)
    tree = ct.Tree([(0, 1), (2, 3)], [0.0, 0.0, 0.0, 0.0, 0.8])
    actual = expected_heights(tree, X, process, only_ties=True, n_sweeps=20_000)
    h = np.linspace(1e-6, 0.8, 401)
    trees = [ct.Tree(tree.children, [0.0, 0.0, 0.0, low, 0.8]) for low in h]
    weight = np.exp([ct.log_joint(one, X, process) for one in trees])
    assert actual.merge_heights[1] == 0.8
    # draws have a deviation of about 0.2 and little correlation: 0.01 is more than six standard errors
    assert actual.merge_heights[0] == pytest.approx(np.sum(weight * h) / np.sum(weight), abs=0.01)
