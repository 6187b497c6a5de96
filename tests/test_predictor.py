"""New rows against given trees: densities, places and cells by brute force.

Brute force is the definition: the likelihood of the tree with one leaf more, wherever that leaf may be, times the prior of that
place, over the likelihood of the tree as it is. Trees are given, not found.
"""

import pickle
import tracemalloc
from functools import cache
from itertools import pairwise, product
from typing import NamedTuple

import numpy as np
import pytest
from scipy.special import logsumexp

import coaltree as ct
import reference
from coaltree.inference.posterior_draws import Draw
from coaltree.predict import groups as groups_module
from coaltree.predict import predictor as predictor_module
from coaltree.predict.predictor import Predictor
from coaltree.tree.edit import with_leaves, without_leaves

nan = np.nan
TREE = ct.Tree.from_newick("(((a:0.2,b:0.2):0.5,(c:0.4,d:0.4):0.3):0.6,e:1.3);")
OTHER = ct.Tree.from_newick("((a:0.3,(b:0.1,e:0.1):0.2):0.8,(c:0.9,d:0.9):0.2);")
REAL = np.array([[0.1, 2.0], [0.4, 1.2], [-1.0, 0.3], [-1.4, -0.2], [2.0, -1.1]])
HOLES = np.array([[0.1, 2.0], [nan, 1.2], [-1.0, nan], [-1.4, -0.2], [2.0, nan]])
CODES = np.array([[0.0, 1.0], [0.0, nan], [1.0, 0.0], [nan, 0.0], [2.0, 1.0]])
MUTATION = ct.Multinomial([0.5, 2.0], [[0.5, 0.3, 0.2], [0.4, 0.6]])
MIXED = ct.Mixed((ct.OrnsteinUhlenbeck(0.4, [0.5, 0.0], [1.5, 0.4], 0.1), [3, 1]), (MUTATION, [0, 2]))
FULL = [[1.0, -0.6], [-0.6, 0.8]]
GAUSS = np.polynomial.legendre.leggauss(6)


def mixed_table(real, codes):
    return np.column_stack([codes[:, 0], real[:, 1], codes[:, 1], real[:, 0]])


class Grid(NamedTuple):
    """Places all over a tree, by Gauss's rule on pieces that are the shorter the nearer to the branch's lower end."""

    nodes: np.ndarray
    heights: np.ndarray
    log_masses: np.ndarray  # of the prior
    grown: list  # the tree with a leaf at each place


@cache
def grid(tree):
    nodes, heights, log_masses = [], [], []
    tops = np.append(tree.heights[tree.parents[:-1]], np.inf)
    for node in range(tree.n_nodes):
        low = float(tree.heights[node])
        high = min(float(tops[node]), low + 30.0)
        if high <= low:
            continue
        pieces = low + (high - low) * np.geomspace(1e-3, 1.0, 3 if tree.n_leaves <= node < tree.root else 7)
        edges = np.unique([low, *pieces, *(h for h in tree.merge_heights if low < h < high)])
        ends = np.array(list(pairwise(edges)))
        half = 0.5 * np.diff(ends, axis=1)
        at = (ends.mean(axis=1, keepdims=True) + half * GAUSS[0]).ravel()
        # the density is exp(-(length of all branches below))
        passed = np.clip(tops, 0, at[:, None]) - np.clip(tree.heights, 0, at[:, None])
        nodes.append(np.full(len(at), node))
        heights.append(at)
        log_masses.append(np.log((half * GAUSS[1]).ravel()) - passed.sum(axis=1))
    nodes, heights, log_masses = (np.concatenate(parts) for parts in (nodes, heights, log_masses))
    new = np.array([tree.n_leaves])
    grown = [with_leaves(tree, nodes[[k]], heights[[k]], new) for k in range(len(nodes))]
    return Grid(nodes, heights, log_masses, grown)


class BruteForce:
    """The posterior over the places of a new row."""

    def __init__(self, tree, X, process, row):
        at = grid(tree)
        together = np.vstack([X, row])
        likelihoods = np.array([process.log_likelihood(grown, together) for grown in at.grown])
        logs = at.log_masses + likelihoods - process.log_likelihood(tree, X)
        self.nodes, self.heights = at.nodes, at.heights
        self.log_density = logsumexp(logs)
        self.shares = np.exp(logs - self.log_density)
        self.branches = np.bincount(self.nodes, self.shares, minlength=tree.n_nodes)
        self.mean_height = self.shares @ self.heights

    def quantile(self, tail):
        order = np.argsort(self.heights)
        middles = np.cumsum(self.shares[order]) - 0.5 * self.shares[order]
        return np.interp(tail, middles, self.heights[order])

    def below(self, height):
        order = np.argsort(self.heights)
        middles = np.cumsum(self.shares[order]) - 0.5 * self.shares[order]
        return np.interp(height, self.heights[order], middles)


def single(X, process, tree=TREE, n_jobs=None):
    return Predictor.from_trees([tree], np.ones(1), np.asarray(X, dtype=float), process, n_jobs)


CASES = {
    "brownian": (REAL, ct.Brownian([1.0, 2.0]), [[0.2, 1.7], [0.1, nan]]),
    "brownian, noise, holes": (HOLES, ct.Brownian([1.0, 2.0], 0.3), [[5.0, -4.0], [nan, 0.0]]),
    "brownian, full": (REAL, ct.Brownian(FULL, 0.2), [[0.2, 1.7], [2.0, -3.0]]),
    "stationary, noise": (REAL, ct.OrnsteinUhlenbeck(0.7, [0.2, -0.4], [1.5, 0.8], 0.2), [[0.2, 1.7], [4.0, nan]]),
    "stationary, holes": (HOLES, ct.OrnsteinUhlenbeck(0.7, 0.2, 1.5), [[0.2, 1.7]]),
    "stationary, full": (REAL, ct.OrnsteinUhlenbeck(0.7, [0.2, -0.4], FULL, 0.2), [[0.2, 1.7]]),
    "categorical": (CODES, MUTATION, [[0.0, 1.0], [2.0, 0.0], [nan, 1.0]]),
    "mixed": (mixed_table(HOLES, CODES), MIXED, [[0.0, 0.2, 1.0, 1.7], [2.0, -3.0, nan, nan]]),
}


@pytest.fixture(scope="module", params=CASES, ids=CASES.keys())
def case(request):
    X, process, rows = CASES[request.param]
    rows = np.array(rows)
    return single(X, process), rows, [BruteForce(TREE, X, process, row) for row in rows]


class TestBruteForce:
    def test_density_matches_brute_force(self, case):
        predictor, rows, brute = case
        expected = [each.log_density for each in brute]
        np.testing.assert_allclose(predictor.log_density(rows), expected, atol=1.5e-3)

    def test_placement_branch_and_height_match_brute_force(self, case):
        predictor, rows, brute = case
        placed = predictor.place(rows, TREE, 2)
        for k, each in enumerate(brute):
            assert placed.node[k] == each.branches.argmax()
            assert placed.probability[k] == pytest.approx(each.branches.max(), abs=2e-3)
            assert placed.height[k] == pytest.approx(each.mean_height, rel=5e-3, abs=1e-3)
        np.testing.assert_array_equal(placed.log_density, predictor.log_density(rows))

    @pytest.mark.parametrize("level", [0.5, 0.9])
    def test_height_interval_has_stated_probability(self, case, level):
        predictor, rows, brute = case
        placed = predictor.place(rows, TREE, 0, level)
        for k, each in enumerate(brute):
            tails = each.below(placed.height_low[k]), 1 - each.below(placed.height_high[k])
            # along the stretch that a place stands for, the distribution of heights is taken to be linear
            np.testing.assert_allclose(tails, 0.5 * (1 - level), atol=0.05)

    def test_nearest_leaves_match_brute_force(self, case):
        """A row on a branch merges with a leaf where the branch does, or where the row attaches if the leaf is below it."""
        predictor, rows, brute = case
        placed = predictor.place(rows, TREE, 5)
        below = reference.leaves_below(TREE)
        for k, each in enumerate(brute):
            expected = np.zeros(5)
            for leaf in range(5):
                meets = np.array([common_height(below, leaves_of_node | {leaf}) for leaves_of_node in below])
                expected[leaf] = each.shares @ np.maximum(each.heights, meets[each.nodes])
            np.testing.assert_allclose(placed.nearest_height[k], expected[placed.nearest[k]], rtol=5e-3, atol=1e-3)
            assert sorted(placed.nearest[k].tolist()) == [0, 1, 2, 3, 4]
            assert np.all(np.diff(placed.nearest_height[k]) >= 0)
            np.testing.assert_array_equal(predictor.place(rows, TREE, 2).nearest[k], placed.nearest[k, :2])

    def test_cluster_shares_match_brute_force(self, case):
        """An attachment point counts in equal parts for the clusters of the leaves below it."""
        predictor, rows, brute = case
        labels = np.array([0, 0, 1, 2, 1])
        predicted = predictor.cluster_shares(rows, labels)
        parts = [
            np.bincount(labels[list(leaves_of_node)], minlength=3) / len(leaves_of_node)
            for leaves_of_node in reference.leaves_below(TREE)
        ]
        np.testing.assert_allclose(predicted, [each.branches @ np.array(parts) for each in brute], atol=2e-3)


def common_height(below, leaves):
    return min(h for h, leaves_of_node in zip(TREE.heights, below, strict=True) if leaves_of_node >= leaves)


@pytest.mark.parametrize("process", [ct.Brownian(1.3), ct.Brownian(1.3, 0.4), ct.OrnsteinUhlenbeck(0.7, 0.5, 2.0, 0.1)])
@pytest.mark.parametrize("holes", [False, True])
def test_density_of_one_real_column_integrates_to_one(process, holes):
    X = REAL[:, :1].copy()
    X[1 if holes else [], 0] = nan
    x = np.linspace(-60, 60, 60_001)
    density = np.exp(single(X, process).log_density(x[:, None]))
    assert np.trapezoid(density, x) == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize(
    "process", [ct.Brownian([1.0, 0.5], 0.2), ct.OrnsteinUhlenbeck(0.7, 0.0, 1.0, 0.2), ct.Brownian(FULL, 0.2)]
)
def test_density_of_two_real_columns_integrates_to_one(process):
    x = np.linspace(-16, 16, 321)
    rows = np.array(list(product(x, x)))
    total = np.exp(single(REAL, process).log_density(rows)).sum() * (x[1] - x[0]) ** 2
    assert total == pytest.approx(1.0, abs=2e-3)  # what lies further out


def test_probabilities_of_categorical_rows_sum_to_one():
    rows = np.array(list(product(range(3), range(2))), dtype=float)
    assert np.exp(single(CODES, MUTATION).log_density(rows)).sum() == pytest.approx(1.0, abs=1e-12)


def test_density_of_mixed_rows_integrates_to_one():
    x = np.linspace(-40, 40, 8001)
    predictor = single(mixed_table(HOLES, CODES), MIXED)
    for column in (1, 3):
        total = 0.0
        for a, b in product(range(3), range(2)):
            rows = np.full((len(x), 4), nan)
            rows[:, [0, 2]] = a, b
            rows[:, column] = x
            total += np.trapezoid(np.exp(predictor.log_density(rows)), x)
        assert total == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("name", ["brownian", "stationary, holes", "categorical", "mixed"])
def test_predictor_of_sample_is_mixture(name):
    X, process, rows = CASES[name]
    rows = np.array(rows)
    weights = np.array([0.5, 3.0, 0.0, 1.5])  # the first and the last are the same tree
    both = Predictor.from_trees([TREE, OTHER, ct.simulate_tree(5, 9), TREE], weights, X, process)
    assert len(both.trees) == 2
    logs = [single(X, process, tree).log_density(rows) for tree in (TREE, OTHER)]
    np.testing.assert_allclose(both.log_density(rows), np.logaddexp(logs[0] + np.log(0.4), logs[1] + np.log(0.6)))
    cells = [single(X, process, tree).cells(rows) for tree in (TREE, OTHER)]
    predicted = both.cells(rows)
    shares = 0.4 * np.exp(logs[0] - both.log_density(rows))[:, None]
    np.testing.assert_allclose(
        predicted.probability, shares * cells[0].probability + (1 - shares) * cells[1].probability
    )
    np.testing.assert_allclose(predicted.mean, shares * cells[0].mean + (1 - shares) * cells[1].mean)
    squares = [each.sd**2 + each.mean**2 for each in cells]
    np.testing.assert_allclose(predicted.sd**2 + predicted.mean**2, shares * squares[0] + (1 - shares) * squares[1])


def test_placements_in_sample_are_joined_by_clade():
    X, process, rows = CASES["brownian, noise, holes"]
    rows = np.array(rows)[:1]
    both = Predictor.from_trees([TREE, OTHER], np.array([0.4, 0.6]), X, process)
    logs = [single(X, process, tree).log_density(rows) for tree in (TREE, OTHER)]
    placed = both.place(rows, TREE, 5)
    below = reference.leaves_below(TREE)
    for k, row in enumerate(rows):
        brute = [BruteForce(tree, X, process, row) for tree in (TREE, OTHER)]
        share = 0.4 * np.exp(logs[0][k] - both.log_density(rows)[k])
        expected = share * brute[0].branches
        for node, leaves_of_node in enumerate(reference.leaves_below(OTHER)):
            if leaves_of_node in below:
                expected[below.index(leaves_of_node)] += (1 - share) * brute[1].branches[node]
        assert placed.node[k] == expected.argmax()
        assert placed.probability[k] == pytest.approx(expected.max(), abs=2e-3)
        mean = share * brute[0].mean_height + (1 - share) * brute[1].mean_height
        assert placed.height[k] == pytest.approx(mean, rel=5e-3)
    assert np.all(both.cluster_shares(rows, np.arange(5)) >= 0)
    np.testing.assert_allclose(both.cluster_shares(rows, np.array([0, 1, 0, 1, 2])).sum(axis=1), 1.0)


@pytest.mark.parametrize("name", [name for name in CASES if "full" not in name])
def test_empty_row_attaches_by_prior(name):
    X, process, _ = CASES[name]
    predictor = single(X, process)
    empty = np.full((1, X.shape[1]), nan)
    assert predictor.log_density(empty)[0] == pytest.approx(0.0, abs=1e-9)
    at = grid(TREE)
    prior = np.bincount(at.nodes, np.exp(at.log_masses))
    placed = predictor.place(empty, TREE, 1)
    assert placed.node[0] == prior.argmax()
    assert placed.probability[0] == pytest.approx(prior.max(), abs=1e-9)
    assert placed.height[0] == pytest.approx(np.exp(at.log_masses) @ at.heights, rel=2e-3)
    parts = [predictor.cluster_shares(empty, np.arange(5) == leaf)[0, 1] for leaf in range(5)]
    below = reference.leaves_below(TREE)
    expected = [
        sum(prior[k] / len(leaves_of_node) for k, leaves_of_node in enumerate(below) if leaf in leaves_of_node)
        for leaf in range(5)
    ]
    np.testing.assert_allclose(parts, expected, atol=1e-9)


def test_empty_column_is_ignored():
    X = np.column_stack([REAL[:, 0], np.full(5, nan)])
    rows = np.array([[0.3, 7.0], [0.3, nan]])
    alone = single(REAL[:, :1], ct.Brownian(1.0, 0.1))
    predicted = single(X, ct.Brownian(1.0, 0.1)).log_density(rows)
    np.testing.assert_allclose(
        predicted, alone.log_density(rows[:, :1]), atol=2e-3
    )  # other points stand for the places
    assert predicted[0] == pytest.approx(predicted[1], abs=1e-12)


def test_predictor_of_one_leaf():
    """A new leaf beside one other: the difference is N(0, 2 h) with h exponential."""
    alone = ct.Tree([], [0.0])
    predictor = single([[1.0]], ct.Brownian(1.0, 0.5), alone)
    rows = np.array([[1.0], [2.5], [-4.0]])
    h = np.linspace(0, 40, 400_001)
    s = 2 * h + 1.0
    for row, value in zip(rows[:, 0], predictor.log_density(rows), strict=True):
        density = np.exp(-h - (row - 1.0) ** 2 / (2 * s)) / np.sqrt(2 * np.pi * s)
        assert value == pytest.approx(np.log(np.trapezoid(density, h)), abs=1.5e-3)
    assert predictor.place(rows, alone, 3).node.tolist() == [0, 0, 0]
    assert predictor.training_cells(np.array([0])).sd[0, 0] > 0


def test_densities_of_extreme_rows_are_finite():
    for process in (ct.Brownian(), ct.Brownian(1.0, 0.1), ct.OrnsteinUhlenbeck(1.0, 0.0, 1.0, 0.1)):
        predictor = single(REAL, process)
        rows = np.array([[1e8, 0.0], [1e150, -1e150], [0.0, 0.0]])
        predicted = predictor.log_density(rows)
        assert np.all(np.isfinite(predicted))
        assert predicted[1] < predicted[0] < predicted[2]
        assert np.all(np.isfinite(predictor.place(rows, TREE, 1).height))


# -- many rows -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def many():
    """A mixed table on a tree of 200 leaves, and 100 new rows, all with holes."""
    rng = np.random.default_rng(5)
    tree = ct.simulate_tree(300, rng)
    X = MIXED.simulate(tree, rng)
    X[rng.random(X.shape) < 0.2] = nan
    return without_leaves(tree, range(200, 300)), X[:200], X[200:]


def answers(predictor, rows, tree):
    cells = predictor.cells(rows)
    labels = np.arange(tree.n_leaves) % 3
    return [
        predictor.log_density(rows),
        *predictor.place(rows, tree, 3),
        predictor.cluster_shares(rows, labels),
        cells.mean,
        cells.sd,
        cells.probability,
    ]


def test_predictor_is_independent_of_threads(many):
    tree, X, rows = many
    one, two = (single(X, MIXED, tree, n_jobs) for n_jobs in (1, 2))
    for a, b in zip(answers(one, rows, tree), answers(two, rows, tree), strict=True):
        np.testing.assert_array_equal(a, b)
    draws = [each.draw(rows, 3, np.random.default_rng(0)) for each in (one, two)]
    np.testing.assert_array_equal(*draws)


def test_result_of_row_is_independent_of_other_rows(many):
    tree, X, rows = many
    predictor = single(X, MIXED, tree)
    whole = answers(predictor, rows, tree)
    for some in (np.arange(100)[::-1], np.array([7]), np.arange(0, 100, 9), np.array([3, 3, 50])):
        for a, b in zip(answers(predictor, rows[some], tree), whole, strict=True):
            np.testing.assert_allclose(a, b[some], rtol=1e-9)


def test_predictor_is_independent_of_blocks(many, monkeypatch):
    tree, X, rows = many
    whole = answers(single(X, MIXED, tree), rows, tree)
    monkeypatch.setattr(groups_module, "MAX_BLOCK_NUMBERS", 10_000)
    for a, b in zip(answers(single(X, MIXED, tree), rows, tree), whole, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9)


def test_pickled_predictor_gives_equal_results(many):
    tree, X, rows = many
    predictor = single(X, MIXED, tree)
    whole = answers(predictor, rows, tree)
    stored = pickle.dumps(predictor)
    assert len(stored) < 3 * X.nbytes + 20_000  # what can be computed again is left out
    for a, b in zip(answers(pickle.loads(stored), rows, tree), whole, strict=True):
        np.testing.assert_array_equal(a, b)


def test_predictor_needs_little_memory_for_many_rows():
    rng = np.random.default_rng(0)
    tree = ct.simulate_tree(1000, rng)
    process = ct.Brownian(1.0, 0.1)
    X = process.simulate(tree, rng, n_columns=3)
    rows = X[rng.integers(1000, size=4_000)] + 0.1 * rng.normal(size=(4_000, 3))
    predictor = single(X, process, tree)
    predictor.log_density(rows[:2])  # makes the tables of the places
    tracemalloc.start()
    try:
        density = predictor.log_density(rows)
        placed = predictor.place(rows, tree, 3)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert density.shape == (4_000,)
    np.testing.assert_array_equal(density, placed.log_density)
    assert np.all(np.isfinite(density))
    assert peak < 80e6, f"{peak / 1e6:.0f} MB"


# -- rows of the fit -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "rows"), [("stationary, holes", [1, 4]), ("mixed", [1, 3])])
def test_training_cells_on_one_tree_match_brute_force(name, rows):
    """Each row with missing cells is removed from the tree and placed anew, by its posterior over all attachment points."""
    X, process, _ = CASES[name]
    predictor = single(X, process)
    predicted = predictor.training_cells(np.array(rows))
    for k, row in enumerate(rows):
        tree, rest = without_leaves(TREE, [row]), np.delete(X, row, axis=0)
        brute = BruteForce(tree, rest, process, X[row])
        at = list(ct.Beliefs(tree, rest, process).new_leaves(brute.nodes, brute.heights))
        mean = brute.shares @ np.concatenate([block.mean for block in at])
        squares = brute.shares @ np.concatenate([block.mean**2 + block.sd**2 for block in at])
        np.testing.assert_allclose(predicted.mean[k], mean, atol=2e-3)
        np.testing.assert_allclose(predicted.sd[k], np.sqrt(squares - mean**2), rtol=5e-3)
        np.testing.assert_allclose(
            predicted.probability[k], brute.shares @ np.concatenate([block.probability for block in at]), atol=2e-3
        )


def test_training_cells_are_independent_of_row_order():
    X, process, _ = CASES["mixed"]
    predictor = single(X, process)
    holed = np.flatnonzero(np.isnan(X).any(axis=1))
    whole = predictor.training_cells(holed)
    order = np.array([2, 0, 2])
    some = predictor.training_cells(holed[order])
    for name in ("mean", "sd", "probability"):
        np.testing.assert_allclose(getattr(some, name), getattr(whole, name)[order], rtol=1e-12)


def test_training_rows_are_left_out_in_groups(many):
    """More rows with holes than there are groups; neighbours go into different ones, and no row is left out."""
    tree, X, _ = many
    rows = np.flatnonzero(np.isnan(X).any(axis=1))
    predictor = single(X, MIXED, tree)
    groups = predictor._split_incomplete_rows(7)
    assert sorted(np.concatenate(groups).tolist()) == rows.tolist()
    assert [len(group) for group in groups] == [len(part) for part in np.array_split(rows, 7)]
    predicted = predictor.training_cells(rows)
    for group in predictor._split_incomplete_rows(predictor_module.N_FOLDS)[:2]:
        held_out = Predictor.from_trees([without_leaves(tree, group)], np.ones(1), np.delete(X, group, axis=0), MIXED)
        np.testing.assert_allclose(predicted.mean[np.isin(rows, group)], held_out.cells(X[group]).mean)


@pytest.mark.parametrize("name", ["brownian, noise, holes", "categorical", "mixed"])
def test_training_cells_of_sample_are_mixture(name):
    """Over several trees: the mixture with the weights of the trees, which already take the rows into account."""
    X, process, _ = CASES[name]
    rows = np.array([4, 1, 3])
    predicted = Predictor.from_trees([TREE, OTHER], np.array([1.0, 3.0]), X, process).training_cells(rows)
    parts = [single(X, process, tree).training_cells(rows) for tree in (TREE, OTHER)]
    mean = 0.25 * parts[0].mean + 0.75 * parts[1].mean
    squares = 0.25 * (parts[0].sd ** 2 + parts[0].mean ** 2) + 0.75 * (parts[1].sd ** 2 + parts[1].mean ** 2)
    np.testing.assert_allclose(predicted.mean, mean)
    np.testing.assert_allclose(predicted.sd, np.sqrt(squares - mean**2), rtol=1e-7)
    np.testing.assert_allclose(predicted.probability, 0.25 * parts[0].probability + 0.75 * parts[1].probability)


def test_correlated_training_rows_use_fewer_draws(monkeypatch):
    monkeypatch.setattr(predictor_module, "MAX_REATTACHMENT_WORK", 300)
    sites = ct.Multinomial(np.ones(4), [[0.4, 0.6]] * 4)
    numbers = ct.OrnsteinUhlenbeck(0.4, np.zeros(4), np.eye(4) + 0.2, np.eye(4))

    def count_draws(process, X):
        draws = [Draw(TREE, process, np.nan_to_num(X) + 0.0) for _ in range(12)]
        return len(Predictor(draws, np.ones(12), X)._choose_reattachment_draws())

    assert count_draws(sites, np.hstack([CODES, CODES])) == 300 // 40  # 2 incomplete rows x 5 rows x 4 columns
    assert count_draws(numbers, np.hstack([HOLES, HOLES])) == 0  # 3 x 5 x 4 x 4 = 240: a single draw, which is too few
