"""Averages of greedy trees: agreement with brute force, average linkage, invariance, threads, edge cases."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.cluster.hierarchy import cophenet, linkage
from scipy.spatial.distance import squareform
from scipy.stats import rankdata, spearmanr

import coaltree as ct
from coaltree.inference import averaging
from coaltree.inference.averaging import average_linkage, average_trees
from coaltree.process.layout import read_messages

OU = ct.OrnsteinUhlenbeck(0.5, 0.0, 0.5, 1.0)
PROCESSES = {
    "stationary": OU,
    "stationary, noise of columns": ct.OrnsteinUhlenbeck(0.5, 0.0, 0.5, [0.5, 1.0, 2.0, 1.0]),
    "brownian": ct.Brownian(1.0, 0.5),
    "brownian, noise of columns": ct.Brownian(1.0, [0.5, 0.3, 0.2, 0.4]),
    "multinomial": ct.Multinomial(1.0, noise=0.2),
    "mixed": ct.Mixed((OU, [0, 1]), (ct.Multinomial([1.0, 0.7], noise=0.2), [2, 3])),
    "mixed, one part without noise": ct.Mixed((OU, [0, 1]), (ct.Multinomial(1.0), [2, 3])),
    "three kinds": ct.Mixed((OU, [0]), (ct.Multinomial(1.0, noise=0.2), [2, 3]), (ct.Brownian(1.0, 0.5), [1])),
}


# Where cells of Brownian columns are missing many pairs count as equally alike, and the greedy search takes the first of them.
IN_ORDER = ("brownian", "brownian, noise of columns", "three kinds")


def table(kind="stationary", n=60, missing=False, seed=0):
    """Return rows of four groups, and the greedy tree."""
    rng = np.random.default_rng(seed)
    X = 1.5 * rng.normal(size=(4, 4))[rng.integers(0, 4, n)] + rng.normal(size=(n, 4))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    if kind == "multinomial":
        X = np.clip(np.round(X) + 2, 0, 4)
    elif kind.startswith("mixed") or kind == "three kinds":
        X[:, 2:] = np.clip(np.round(X[:, 2:]) + 1, 0, 2)
    if missing:
        X[rng.random(X.shape) < 0.15] = np.nan
    return X, ct.greedy(X, PROCESSES[kind])


def meeting_heights(tree):
    return squareform(cophenet(tree.to_linkage()))


@pytest.mark.parametrize(("most", "missing"), [(12, False), (12, True), (60, False), (300, True)])
@pytest.mark.parametrize("kind", PROCESSES)
def test_averaged_tree_keeps_lower_merges(kind, most, missing):
    X, result = table(kind, missing=missing)
    tree = average_trees(result.tree, X, result.process, max_lineages=most)
    remaining = max(len(X) - most, 0)
    assert np.array_equal(tree.children[:remaining], result.tree.children[:remaining])
    assert np.array_equal(tree.merge_heights[:remaining], result.tree.merge_heights[:remaining])
    assert np.all(np.diff(tree.merge_heights) >= 0)
    assert tree.n_leaves == len(X)
    assert tree != result.tree
    assert tree == average_trees(result.tree, X, result.process, max_lineages=most)
    # all replicates are like the table: the trees have much in common
    assert np.corrcoef(cophenet(tree.to_linkage()), cophenet(result.tree.to_linkage()))[0, 1] > 0.4


@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])
@pytest.mark.parametrize("most", [2, 12, 60])
@pytest.mark.parametrize("kind", PROCESSES)
def test_unperturbed_average_equals_greedy_tree(kind, most, missing):
    X, result = table(kind, missing=missing and kind not in IN_ORDER)
    tree = average_trees(result.tree, X, result.process, n_trees=2, max_lineages=most, jitter=0.0, drop=0.0)
    assert tree.merge_heights == pytest.approx(result.tree.merge_heights, abs=1e-7)
    assert meeting_heights(tree) == pytest.approx(meeting_heights(result.tree), abs=1e-7)
    if kind not in ("multinomial", "mixed, one part without noise"):  # of equal rows, any may be the first
        assert ct.robinson_foulds(tree, result.tree) == 0


def test_average_matches_brute_force():
    """Plain means over trees of tables that were moved by hand, with the same random numbers."""
    X, result = table(n=25)
    n, seed = len(X), int(np.random.default_rng(7).integers(2**63))
    # by columns in the order of their cubes, rows in the order of the last of those columns; all turned to a positive skewness
    cubes = np.argsort((np.abs(X) ** 3).sum(axis=0))
    signs = np.sign((X**3).sum(axis=0))
    rows = np.argsort((signs * X)[:, cubes[-1]])
    total = np.zeros(n * (n - 1) // 2)
    for k in range(4):
        moves = np.empty_like(X)
        moves[np.ix_(rows, cubes)] = np.random.default_rng([seed, k]).standard_normal(X.shape)
        moves *= signs
        # the noise's variance is 1.0 times that of the equilibrium, 0.5
        total += np.exp(-cophenet(ct.greedy(X + 0.6 * math.sqrt(0.5) * moves, OU).tree.to_linkage()))
    expected = ct.Tree.from_linkage(linkage(1 - total / 4, "average"))
    tree = average_trees(result.tree, X, result.process, n_trees=4, jitter=0.6, random_state=7)
    assert np.exp(-meeting_heights(tree)) == pytest.approx(1 - meeting_heights(expected), abs=1e-7)
    assert np.unique(np.round(tree.merge_heights, 6)).size > n // 2, "the comparison is one of different heights"


def test_dropped_cells_are_treated_as_missing():
    """Every replicate of a table of states lacks some of its cells."""
    X, result = table("multinomial", n=25)
    lineages = averaging._last_lineages(result.tree, result.process.forest(X, len(X)), len(X))
    forest = averaging._copy_forest(lineages.forest, slice(len(X)), len(X))
    averaging._perturb(forest, lineages, np.random.default_rng(0), 1.0, 1.0)
    message = read_messages(forest, slice(len(X)))[0].message
    start = read_messages(forest, slice(len(X)))[0].start
    holes = np.array([np.ptp(message[:, a:b], axis=1) == 0 for a, b in pairwise(start)]).T
    assert 0.05 < holes.mean() < 0.4  # of 100 cells, each with probability 0.2: a false alarm in a hundred thousand
    with_holes = np.where(holes, np.nan, X[lineages.nodes])
    assert message == pytest.approx(read_messages(result.process.forest(with_holes, len(X)), slice(len(X)))[0].message)


@pytest.mark.parametrize("kind", ["stationary", "brownian", "stationary, noise of columns"])
@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])
def test_perturbed_means_match_perturbed_leaves(kind, missing):
    """Leaves that merged at height 0: the variance of a moved mean is that of the mean of moved leaves.

    The standard error of a variance of 2,000 normal numbers is 3.2 %: six of them are a false alarm in 10^8, in 200 comparisons.
    """
    X, result = table(kind, missing=missing)
    n, at_zero = len(X), int(np.sum(result.tree.merge_heights == 0))
    assert at_zero > 10
    m, runs, jitter = n - at_zero, 2_000, 0.5
    lineages = averaging._last_lineages(result.tree, result.process.forest(X, n), m)
    rng, moved = np.random.default_rng(1), []
    for _ in range(runs):
        forest = averaging._copy_forest(lineages.forest, slice(m), m)
        averaging._perturb(forest, lineages, rng, jitter, 1.0)
        moved.append(np.asarray(forest.mean).copy())
    noise = np.broadcast_to(PROCESSES[kind].noise, X.shape[1])
    for slot, node in enumerate(lineages.nodes):
        known = (~np.isnan(X[result.tree.leaves_below(node)])).sum(axis=0)
        with np.errstate(divide="ignore"):
            variance = noise / known  # of the mean of the leaves, in units of the process
        if kind.startswith("stationary"):
            variance = np.where(known > 0, variance / (1 + variance), 0.0)
        variance = np.where(known > 0, variance, 0.0)
        assert np.var(moved, axis=0)[slot] == pytest.approx(jitter**2 * variance, rel=0.2)


@pytest.mark.parametrize("kind", ["stationary", "mixed"])
def test_averaging_is_independent_of_threads(kind):
    X, result = table(kind)
    alone = average_trees(result.tree, X, result.process)
    assert average_trees(result.tree, X, result.process, n_jobs=3) == alone
    assert average_trees(result.tree, X, result.process, random_state=1) != alone


@pytest.mark.parametrize("most", [20, 300])
@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])
@pytest.mark.parametrize("kind", ["stationary", "brownian", "mixed", "three kinds"])
def test_averaging_is_invariant_to_order_units_and_codes(kind, missing, most):
    # lower merges are those of the greedy tree
    X, result = table(kind, missing=missing and (most > 60 or kind not in IN_ORDER))
    tree = average_trees(result.tree, X, result.process, max_lineages=most)
    rng = np.random.default_rng(5)
    rows = rng.permutation(len(X))
    changed = X[rows]
    if kind == "mixed":
        changed[:, [0, 1]], changed[:, 2] = changed[:, [1, 0]], 2 - changed[:, 2]
    elif kind == "three kinds":
        changed[:, 3] = (changed[:, 3] + 1) % 3
    else:
        changed = (1e3 * changed)[:, rng.permutation(X.shape[1])] / 1e3
    again = ct.greedy(changed, PROCESSES[kind])
    other = average_trees(again.tree, changed, again.process, max_lineages=most)
    assert meeting_heights(other) == pytest.approx(meeting_heights(tree)[np.ix_(rows, rows)], abs=1e-6)


def test_averaging_of_categories_is_invariant_to_row_order():
    """Equal rows may change places, so only the rows' kinds are compared."""
    X, result = table("multinomial", n=100)
    tree = average_trees(result.tree, X, result.process)
    rows = np.random.default_rng(5).permutation(len(X))
    again = ct.greedy(X[rows], PROCESSES["multinomial"])
    other = average_trees(again.tree, X[rows], again.process)
    assert len(np.unique(X, axis=0)) < len(X)
    assert other.merge_heights == pytest.approx(tree.merge_heights, abs=1e-6)


def test_average_is_more_stable_than_greedy_tree():
    """Two averages of the same rows with different small noise agree better than two greedy trees."""
    greedy, averaged = [], []
    for seed in range(4):
        X, result = table(n=80, seed=seed)
        moved = X + 0.1 * np.random.default_rng(100 + seed).normal(size=X.shape)
        again = ct.greedy(moved, OU)
        trees = [average_trees(value.tree, data, value.process) for value, data in ((result, X), (again, moved))]
        greedy.append(np.abs(np.exp(-meeting_heights(result.tree)) - np.exp(-meeting_heights(again.tree))).mean())
        averaged.append(np.abs(np.exp(-meeting_heights(trees[0])) - np.exp(-meeting_heights(trees[1]))).mean())
    assert np.mean(averaged) < np.mean(greedy)


@pytest.mark.parametrize("seed", range(3))
def test_weighted_average_linkage_equals_repeated_rows(seed):
    rng = np.random.default_rng(seed)
    m = 12
    counts = rng.integers(1, 5, m)
    similarity = rng.uniform(0.1, 0.9, (m, m))
    similarity = (similarity + similarity.T) / 2
    children, joined = average_linkage(similarity, counts)
    repeated = np.repeat(np.arange(m), counts)
    distances = 1 - similarity[np.ix_(repeated, repeated)]
    distances[repeated[:, None] == repeated] = 0.0
    Z = linkage(squareform(distances), "average")
    assert 1 - joined == pytest.approx(Z[-(m - 1) :, 2], rel=1e-12)
    result = meeting_heights(ct.Tree(children, np.append(np.zeros(m), 1 - joined)))
    assert result[np.ix_(repeated, repeated)] == pytest.approx(squareform(cophenet(Z)), rel=1e-12)


def test_weighted_ranks_equal_repeated_values():
    """Mid-ranks of SciPy, over values as often as their weights say, scaled to the moments of the values."""
    rng = np.random.default_rng(0)
    values = np.round(rng.normal(size=(30, 4)), 1)  # with ties
    values[:, 3] = 2.5  # constant
    weights = rng.integers(0, 4, values.shape)
    result = averaging._to_ranks(values, weights)
    for x, w, value in zip(values.T, weights.T, result.T, strict=True):
        repeated = np.repeat(x, w)
        ranks = rankdata(repeated)
        ranks -= ranks.mean()
        scale = repeated.std() / ranks.std() if ranks.any() else 0.0
        assert np.repeat(value, w) == pytest.approx(repeated.mean() + scale * ranks)
        assert np.all(value[w == 0] == 0)


@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])
@pytest.mark.parametrize("kind", ["stationary", "stationary, noise of columns", "brownian"])
def test_rescaled_lineages_equal_rescaled_table(kind, missing):
    """Dividing the means of lineages equals dividing the cells of their leaves."""
    X, result = table(kind, missing=missing)
    X = X * [1.0, 2.0, 0.5, 1.0]
    n, m = len(X), 20
    forest = result.process.forest(X, n)
    deviation = averaging._leaf_deviations(forest, n)
    lineages = averaging._last_lineages(result.tree, forest, m)
    scaled, ranks, again, equal = averaging._with_scales(
        lineages, deviation, result.tree.leaf_counts[lineages.nodes]
    ).scales
    assert np.array_equal(scaled.mean, np.asarray(lineages.forest.mean)[:m])
    assert scaled.variance == pytest.approx(deviation**2)
    assert again is scaled
    assert equal.variance == pytest.approx(np.mean(deviation**2))
    divided = result.process.forest(X / np.nanstd(X, axis=0), n)
    size = np.sqrt(np.mean(deviation**2)) / averaging._leaf_deviations(divided, n)
    other = averaging._last_lineages(result.tree, divided, m)
    slots = np.argsort(other.nodes)[np.argsort(np.argsort(lineages.nodes))]
    assert equal.mean == pytest.approx(size * np.asarray(other.forest.mean)[slots], abs=1e-9)
    for a, b in zip(scaled.mean.T, ranks.mean.T, strict=True):
        assert spearmanr(a[b != 0], b[b != 0])[0] == pytest.approx(1.0)


def test_rescaling_is_invariant_to_order_and_units():
    X = np.exp(table(n=80)[0] / 2)
    rng = np.random.default_rng(5)
    rows, columns = rng.permutation(len(X)), rng.permutation(X.shape[1])
    trees = []
    for value in (X, 7.0 - 1e3 * X[np.ix_(rows, columns)]):
        process = ct.OrnsteinUhlenbeck(0.5, value.mean(axis=0), value.var(axis=0) / 2, 1.0)
        result = ct.greedy(value, process)
        trees.append(average_trees(result.tree, value, process, rescale=True))
        assert trees[-1] != average_trees(result.tree, value, process)
        assert trees[-1] == average_trees(result.tree, value, process, rescale=True, n_jobs=3)
    assert meeting_heights(trees[1]) == pytest.approx(meeting_heights(trees[0])[np.ix_(rows, rows)], abs=1e-6)


@pytest.mark.parametrize("kind", PROCESSES)
def test_rescaling_of_degenerate_tables_stays_finite(kind):
    """Columns that are constant or have one cell, equal rows and rows without a cell have no scale."""
    X = table(kind, n=10)[0]
    holes, constant = X.copy(), X.copy()
    holes[::2, 0], holes[1:, 1] = np.nan, np.nan
    constant[:, :3] = 1.0
    for rows in (holes, constant, np.repeat(X[:1], 12, axis=0), np.vstack([X, np.full((3, 4), np.nan)])):
        result = ct.greedy(rows, PROCESSES[kind])
        for most in (5, 300):
            tree = average_trees(result.tree, rows, result.process, max_lineages=most, rescale=True)
            assert np.all(np.isfinite(tree.heights))


@pytest.mark.parametrize("n", [1, 2])
def test_averaging_keeps_tree_of_fewer_than_three_rows(n):
    X = np.arange(2.0 * n).reshape(n, 2)
    result = ct.greedy(X, OU)
    assert average_trees(result.tree, X, result.process) is result.tree


def test_averaging_of_three_rows():
    X = np.array([[0.0, 0.1], [3.0, 3.0], [0.1, 0.0]])
    result = ct.greedy(X, ct.OrnsteinUhlenbeck(0.5, 0.0, 1.0, 0.3), leaf_names=["a", "b", "c"])
    tree = average_trees(result.tree, X, result.process)
    assert tree.children.tolist() == [[0, 2], [1, 3]]
    assert tree.leaf_names == ("a", "b", "c")


@pytest.mark.filterwarnings("ignore:.*identical in every real cell:coaltree.errors.InputWarning")
@pytest.mark.parametrize(
    "process", [ct.Brownian(), ct.OrnsteinUhlenbeck(0.5), ct.Multinomial(0.5)], ids=["brownian", "stationary", "sites"]
)
def test_averaging_without_noise_keeps_tree(process):
    X = np.random.default_rng(0).integers(0, 3, (30, 3)).astype(float)
    result = ct.greedy(X, process)
    assert average_trees(result.tree, X, result.process) is result.tree


@pytest.mark.parametrize("kind", PROCESSES)
def test_averaging_of_equal_and_empty_rows_stays_finite(kind):
    X = table(kind, n=10)[0]
    for rows in (np.repeat(X, 5, axis=0), np.repeat(X[:1], 12, axis=0), np.vstack([X, np.full((3, 4), np.nan)])):
        result = ct.greedy(rows, PROCESSES[kind])
        for most in (5, 300):
            tree = average_trees(result.tree, rows, result.process, max_lineages=most)
            assert np.all(np.isfinite(tree.heights))


def test_default_averaging_costs_no_more_than_greedy_search():
    """The work is counted in pairs of lineages times the cost of a pair."""
    for n in (3, 10, 150, 200, 1_000, 5_000):
        for width in (1, 10, 100):
            for X in (np.zeros((n, width)), np.full((n, width), np.nan)):
                forest = OU.forest(X, n)
                m, count = averaging._choose_sizes(forest, n)
                assert 2 <= m <= min(n, 200)
                assert 12 <= count <= 20
                assert count * m**2 <= n**2 + 500_000
                if width == 100 and np.isnan(X).any():
                    assert count * m**2 <= n**2 + 40_000
    for n, count in ((900, 20), (1_000, 12)):
        assert averaging._choose_sizes(OU.forest(np.zeros((n, 20)), n), n) == (200, count)


def test_averaging_of_very_tall_trees_keeps_height():
    """Similarities of rows thousands of units apart would underflow."""
    X, _ = table()
    result = ct.greedy(1e4 * X, ct.Brownian(1.0, 0.5))
    assert result.tree.heights[-1] > 1_000
    tree = average_trees(result.tree, 1e4 * X, result.process)
    assert tree.heights[-1] == pytest.approx(result.tree.heights[-1], rel=0.5)


def test_number_of_replicates_of_wide_tables_is_bounded():
    codes = np.random.default_rng(0).integers(0, 3, size=(2, 20_000)).astype(float)
    forest = ct.Multinomial(noise=0.2).resolve(codes).forest(codes, 2, patterns=False)
    (few, trees), (many, _) = averaging._choose_sizes(forest, 500), averaging._choose_sizes(forest, 5_000)
    assert trees == averaging.MIN_TREES
    assert few == many < averaging.MAX_LINEAGES
    assert trees * few**2 * averaging.SITE_COST * 20_000 <= averaging.MAX_PAIRS + averaging.FREE_PAIRS
