"""Attachment points in groups, of which rows evaluate only some: the same results as with all points."""

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm

import coaltree as ct
from coaltree.predict import groups as groups_module
from coaltree.predict.predictor import Predictor
from coaltree.tree.coalescent import attachment_points
from coaltree.tree.cut import cut_by_count

nan = np.nan
N_LEAVES, N_ROWS = 3000, 12
MUTATION = ct.Multinomial([0.5, 2.0, 1.0, 0.2], [[0.5, 0.3, 0.2], [0.4, 0.6], [0.1, 0.2, 0.7], [0.5, 0.5]])
MIXED = ct.Mixed((ct.OrnsteinUhlenbeck(0.4, [0.5, 0.0], [1.5, 0.4], 0.001), [3, 1]), (MUTATION, [0, 2, 4, 5]))
PROCESSES = {
    "brownian": (ct.Brownian([1.0, 0.5, 2.0], 0.001), 0.0),
    "brownian without noise": (ct.Brownian([1.0, 0.5, 2.0]), 0.0),
    "stationary, holes": (ct.OrnsteinUhlenbeck(0.7, [0.2, -0.4, 0.0], [1.5, 0.8, 1.0], 0.001), 0.3),
    "categorical": (MUTATION, 0.1),
    "mixed": (MIXED, 0.2),
}


class Dense:
    """All places of a tree against all rows."""

    def __init__(self, tree, X, process, rows):
        self.at = attachment_points(tree, process.min_attachment_height, min(1.1, 3 / np.sqrt(X.shape[1])))
        blocks = list(ct.Beliefs(tree, X, process).new_leaves(self.at.nodes, self.at.heights))
        self.mean, self.sd, self.probability = (
            np.concatenate([getattr(block, name) for block in blocks]) for name in ("mean", "sd", "probability")
        )
        like = blocks[0]
        self.logs = np.tile(self.at.log_masses, (len(rows), 1))
        for row, logs in zip(rows, self.logs, strict=True):
            for k, d in enumerate(like.real):
                if not np.isnan(row[d]):
                    known = self.sd[:, k] < np.inf
                    logs[known] += norm.logpdf(row[d], self.mean[known, k], self.sd[known, k])
            for k, d in enumerate(like.categorical):
                if not np.isnan(row[d]):
                    logs += np.log(self.probability[:, like.start[k] + int(row[d])])
        self.log_density = logsumexp(self.logs, axis=1)
        self.shares = np.exp(self.logs - self.log_density[:, None])

    def below(self, row, height):
        """How much is below a height, where a place stands for its stretch of the branch."""
        lengths = np.maximum(self.at.high - self.at.low, 1e-9 * self.at.high.max())
        return self.shares[row] @ np.clip((height - self.at.low) / lengths, 0, 1)

    def merge_heights(self, tree, row):
        """Expected heights of the merges with all leaves: on the way down from the root, clade by clade."""
        n = tree.n_leaves
        below = np.bincount(self.at.nodes, self.shares[row], minlength=tree.n_nodes)
        node_heights = np.bincount(self.at.nodes, self.shares[row] * self.at.heights, minlength=tree.n_nodes)
        for k, (a, b) in enumerate(tree.children):
            below[n + k] += below[a] + below[b]
        expected = node_heights.copy()
        for k, (a, b) in reversed(list(enumerate(tree.children))):
            expected[a] += expected[n + k] + below[b] * tree.heights[n + k]
            expected[b] += expected[n + k] + below[a] * tree.heights[n + k]
        return expected[:n]


@pytest.fixture
def prunes(monkeypatch):
    """Bounds decide, though there are few places."""
    monkeypatch.setattr(groups_module, "MIN_POINTS_TO_PRUNE", 0)
    monkeypatch.setattr(groups_module, "GROUP_SIZE", 100)


@pytest.fixture(scope="module", params=PROCESSES)
def table(request):
    process, missing = PROCESSES[request.param]
    rng = np.random.default_rng(3)
    tree = ct.simulate_tree(N_LEAVES, rng)
    X = process.simulate(tree, rng)
    X[rng.random(X.shape) < missing] = nan
    rows = X[rng.integers(N_LEAVES, size=N_ROWS)]
    real = [d for d in range(X.shape[1]) if np.any(X[:, d] % 1 > 0)]
    rows[:, real] += 0.05 * rng.normal(size=(N_ROWS, len(real)))
    rows[1] = nan
    rows[2, real] = 40.0
    rows[3, 0] = nan
    rows[5] = rows[4]
    return tree, X, process, rows, Dense(tree, X, process, rows)


@pytest.mark.parametrize("is_cached", [True, False])
def test_results_match_exhaustive_evaluation(prunes, monkeypatch, table, is_cached):
    if not is_cached:  # tables are made again and again
        monkeypatch.setattr(groups_module, "MAX_CACHED_NUMBERS", 0)
        monkeypatch.setattr(groups_module, "MAX_NEW_NUMBERS", 20_000)
        monkeypatch.setattr(groups_module, "MAX_LARGE_BLOCK_NUMBERS", 50_000)
    tree, X, process, rows, dense = table
    predictor = Predictor.from_trees([tree], np.ones(1), X, process)
    np.testing.assert_allclose(predictor.log_density(rows), dense.log_density, atol=1e-8)
    cells = predictor.cells(rows)
    mean = dense.shares @ dense.mean
    np.testing.assert_allclose(cells.mean, mean, atol=1e-7)
    variance = [share @ (dense.sd**2 + (dense.mean - m) ** 2) for share, m in zip(dense.shares, mean, strict=True)]
    np.testing.assert_allclose(cells.sd**2, variance, atol=1e-6)
    np.testing.assert_allclose(cells.probability, dense.shares @ dense.probability, atol=1e-8)
    placed = predictor.place(rows, tree, 4)
    np.testing.assert_allclose(placed.height, dense.shares @ dense.at.heights, atol=1e-8)
    labels = cut_by_count(tree, 20)
    labels[::50] = 0  # clusters need not be clades
    clusters = predictor.cluster_shares(rows, labels)
    parts = np.array([np.bincount(labels[tree.leaves_below(i)], minlength=20) for i in range(tree.n_nodes)])
    parts = parts / tree.leaf_counts[:, None]
    for k, share in enumerate(dense.shares):
        branches = np.bincount(dense.at.nodes, share, minlength=tree.n_nodes)
        assert branches[placed.node[k]] == pytest.approx(branches.max(), abs=1e-8)
        assert placed.probability[k] == pytest.approx(branches.max(), abs=1e-8)
        assert dense.below(k, placed.height_low[k]) == pytest.approx(0.05, abs=1e-8)
        assert dense.below(k, placed.height_high[k]) == pytest.approx(0.95, abs=1e-8)
        expected = dense.merge_heights(tree, k)
        np.testing.assert_allclose(placed.nearest_height[k], np.sort(expected)[:4], atol=1e-8)
        np.testing.assert_allclose(placed.nearest_height[k], expected[placed.nearest[k]], atol=1e-8)
        assert len(set(placed.nearest[k])) == 4
        np.testing.assert_allclose(clusters[k], branches @ parts, atol=1e-8)


def test_group_bounds_are_upper_bounds(prunes, table):
    tree, X, process, rows, dense = table
    groups = Predictor.from_trees([tree], np.ones(1), X, process).groups
    bounds = groups.bound(groups.make_rows(rows))
    place_of = {
        (node, height): k for k, (node, height) in enumerate(zip(dense.at.nodes, dense.at.heights, strict=True))
    }
    at = [place_of[value] for value in zip(groups.points.nodes, groups.points.heights, strict=True)]
    assert sorted(at) == list(range(len(dense.at.nodes)))
    for g, (start, stop) in enumerate(zip(groups.starts, groups.stops, strict=True)):
        exact = logsumexp(dense.logs[:, at[start:stop]], axis=1)
        assert np.all(bounds[:, g] >= exact - 1e-9 * np.abs(exact))


def test_most_attachment_groups_are_skipped(prunes, table):
    tree, X, process, rows, _ = table
    groups = Predictor.from_trees([tree], np.ones(1), X, process).groups
    needed = groups._find_needed_groups(groups.make_rows(rows))
    assert np.all(needed[1])  # of the row of which nothing is known
    if isinstance(process, ct.Brownian):  # of the others, rows with holes may be in many places
        assert np.median(needed.mean(axis=1)) < 0.5


@pytest.mark.parametrize("is_cached", [True, False])
def test_grouped_predictions_are_independent_of_threads(prunes, monkeypatch, table, is_cached):
    if not is_cached:
        monkeypatch.setattr(groups_module, "MAX_CACHED_NUMBERS", 0)
    monkeypatch.setattr(groups_module, "BLOCK_ROWS", 7)
    tree, X, process, rows, _ = table
    results = []
    for n_jobs in (1, 3):
        predictor = Predictor.from_trees([tree], np.ones(1), X, process, n_jobs)
        cells = predictor.cells(rows)
        draws = predictor.draw(rows, 2, np.random.default_rng(0))
        results.append([*predictor.place(rows, tree, 3), cells.mean, cells.sd, cells.probability, draws])
    for a, b in zip(*results, strict=True):
        np.testing.assert_array_equal(a, b)


def test_draws_use_likely_attachment_points(prunes, table):
    """40 draws for each row: their mean height is within 5 standard errors of the expected one."""
    tree, X, process, rows, dense = table
    predictor = Predictor.from_trees([tree], np.ones(1), X, process)
    draws = predictor._draw_points(rows, 40, np.random.default_rng(0))
    heights = predictor.groups.points.heights[draws].mean(axis=0)
    mean = dense.shares @ dense.at.heights
    sd = np.sqrt(np.maximum(dense.shares @ dense.at.heights**2 - mean**2, 0))
    assert np.all(np.abs(heights - mean) < 5 * sd / np.sqrt(40) + 1e-12)


def test_grouped_predictions_of_several_trees(prunes):
    rng = np.random.default_rng(0)
    trees = [ct.simulate_tree(700, rng) for _ in range(3)]
    process = ct.Brownian(1.0, 0.01)
    X = process.simulate(trees[0], rng, n_columns=2)
    rows = X[:9] + 0.1
    weights = np.array([0.5, 0.3, 0.2])
    both = Predictor.from_trees(trees, weights, X, process)
    dense = [Dense(tree, X, process, rows) for tree in trees]
    logs = np.array([value.log_density for value in dense]) + np.log(weights)[:, None]
    total = logsumexp(logs, axis=0)
    np.testing.assert_allclose(both.log_density(rows), total, atol=1e-8)
    placed = both.place(rows, trees[0], 2)
    shares = np.exp(logs - total)
    for k in range(9):
        expected = sum(shares[t, k] * dense[t].merge_heights(tree, k) for t, tree in enumerate(trees))
        np.testing.assert_allclose(placed.nearest_height[k], np.sort(expected)[:2], atol=1e-8)


def test_wide_tables_are_evaluated_without_bounds(monkeypatch, table):
    """Wide tables have few attachment points, but so many columns that their tables are recomputed for every block."""
    tree, X, process, rows, _ = table
    expected = Predictor.from_trees([tree], np.ones(1), X, process).log_density(rows)
    monkeypatch.setattr(groups_module, "MAX_CACHED_NUMBERS", 0)
    np.testing.assert_allclose(Predictor.from_trees([tree], np.ones(1), X, process).log_density(rows), expected)
