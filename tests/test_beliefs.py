"""What a table says of states anywhere in a tree, against conditionals of whole covariance matrices and sums over all states.

A place in a tree is a pair (node, height): a point of the branch above the node. It is put into the dense computations as one
more variable, whose path to any leaf is read off the tree.
"""

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coaltree as ct
import reference
from coaltree.errors import InputError
from coaltree.process import likelihood
from coaltree.process.kernels.passes import meet
from tables import code_table

# -- dense computations --------------------------------------------------------------------------------------------


def ancestors(tree, node):
    """Return the node and all above it."""
    values = [node]
    while values[-1] != tree.n_nodes - 1:
        values.append(int(np.flatnonzero((tree.children == values[-1]).any(axis=1))[0]) + tree.n_leaves)
    return values


def meeting_height(tree, place, other):
    """Return the height at which the paths upwards from two places become one."""
    (node, h), (other_node, other_h) = place, other
    up, other_up = ancestors(tree, node), ancestors(tree, other_node)
    first = next(each for each in up if each in other_up)
    return max([h] * (first == node) + [other_h] * (first == other_node) + [tree.heights[first]])


def meeting_heights(tree, places):
    return np.array([[meeting_height(tree, place, other) for other in places] for place in places])


def leaf_places(tree):
    return [(leaf, 0.0) for leaf in range(tree.n_leaves)]


def brownian_state(tree, X, process, place):
    """Mean and variance by kriging with an unknown mean: all that a flat root leaves is what the rows have in common."""
    n, n_columns = X.shape
    meet = meeting_heights(tree, [*leaf_places(tree), place])
    covariance = meet.max() + 1 - meet  # where the flat state is does not matter, as long as it is above all else
    C, c, values = covariance[:n, :n] + process.noise * np.eye(n), covariance[:n, n], covariance[n, n]
    if process.variance.ndim == 2:
        observed, x = np.arange(n * n_columns), X.ravel()
        C, c, values = np.kron(C, process.variance), np.kron(c[:, None], process.variance), values * process.variance
        return kriging(x, C, c, values, np.kron(np.ones((n, 1)), np.eye(n_columns)), np.eye(n_columns))
    means, variances = np.zeros(n_columns), np.full(n_columns, np.inf)
    for d, scale in enumerate(np.broadcast_to(process.variance, n_columns)):
        observed = np.flatnonzero(~np.isnan(X[:, d]))
        if len(observed):
            one = np.ones((len(observed), 1))
            mean, variance = kriging(
                X[observed, d], scale * C[np.ix_(observed, observed)], scale * c[observed, None], scale * values, one, 1
            )
            means[d], variances[d] = mean[0], variance[0]
    return means, variances


def kriging(x, C, c, point_variance, design, design_of_point):
    """Condition on ``x = design mu + N(0, C)`` with a flat prior for mu; c is the covariance of x with what is asked for."""
    inverse = np.linalg.inv(C)
    information = design.T @ inverse @ design
    mu = np.linalg.solve(information, design.T @ inverse @ x)
    rest = design_of_point - c.T @ inverse @ design
    mean = np.atleast_1d(design_of_point @ mu if np.ndim(design_of_point) else design_of_point * mu) + c.T @ inverse @ (
        x - design @ mu
    )
    variance = point_variance - c.T @ inverse @ c + rest @ np.linalg.solve(information, rest.T)
    return mean, np.diag(np.atleast_2d(variance))


def stationary_state(tree, X, process, place):
    """Mean and variance by conditioning of the joint Gaussian of leaves and place."""
    n, n_columns = X.shape
    places = [*leaf_places(tree), place]
    h = np.array([height for _, height in places])
    retention = np.exp(-process.rate * (2 * meeting_heights(tree, places) - h[:, None] - h))
    C, c = retention[:n, :n] + process.noise * np.eye(n), retention[:n, n]
    Y, mean = X - process.mean, np.broadcast_to(process.mean, n_columns)
    if process.variance.ndim == 2:
        cross = np.kron(c[:, None], process.variance)
        solved = np.linalg.solve(np.kron(C, process.variance), np.column_stack([Y.ravel(), cross]))
        return mean + cross.T @ solved[:, 0], np.diag(process.variance - cross.T @ solved[:, 1:])
    means, variances = np.empty(n_columns), np.empty(n_columns)
    for d, scale in enumerate(np.broadcast_to(process.variance, n_columns)):
        observed = np.flatnonzero(~np.isnan(Y[:, d]))
        weights = np.linalg.solve(C[np.ix_(observed, observed)], c[observed])
        means[d], variances[d] = mean[d] + weights @ Y[observed, d], scale * (1 - weights @ c[observed])
    return means, variances


def categorical_state(tree, codes, rate, q, place):
    """Probabilities by the sum over the states of all nodes that are not known, with the place as one more node."""
    n, K, extra = tree.n_leaves, len(q), tree.n_nodes
    heights = np.append(tree.heights, place[1])
    parent = {int(child): n + k for k, pair in enumerate(tree.children) for child in pair}
    top = tree.n_nodes - 1
    if place[0] == top:
        top = extra  # above the root, where the state is at equilibrium too
    else:
        parent[extra] = parent[place[0]]
    parent[place[0]] = extra
    known = {leaf: int(codes[leaf]) for leaf in range(n) if not np.isnan(codes[leaf])}
    hidden = [node for node in range(extra + 1) if node not in known]
    ways = np.indices((K,) * len(hidden)).reshape(len(hidden), -1)
    state = dict(zip(hidden, ways, strict=True)) | {leaf: np.full(ways.shape[1], code) for leaf, code in known.items()}
    probability = q[state[top]].copy()
    for child, above in parent.items():
        probability *= reference.transition(q, rate, heights[above] - heights[child])[state[above], state[child]]
    shares = np.array([probability[state[extra] == k].sum() for k in range(K)])
    return shares / shares.sum()


def multinomial_state(tree, X, process, place):
    rates, equilibria = np.broadcast_to(process.rate, X.shape[1]), reference.equilibria_of(process, X)
    return np.concatenate(
        [categorical_state(tree, *column, place) for column in zip(X.T, rates, equilibria, strict=True)]
    )


DENSE = {"Brownian": brownian_state, "OrnsteinUhlenbeck": stationary_state}


def assert_states(tree, X, process, places, predictions, noise=False):
    """Compare predictions, a row for each place, with dense computations."""
    assert predictions.n_rows == len(places)
    for row, place in enumerate(places):
        n_seen = 0
        for part, columns in process.parts if isinstance(process, ct.Mixed) else [(process, range(X.shape[1]))]:
            values = X[:, list(columns)]
            if isinstance(part, ct.Multinomial):
                expected = multinomial_state(tree, values, part, place)
                where = [predictions.categorical.tolist().index(column) for column in columns]
                predicted = [
                    predictions.probability[row, predictions.start[c] : predictions.start[c + 1]] for c in where
                ]
                assert np.concatenate(predicted) == pytest.approx(expected, abs=1e-9), place
            else:
                mean, variance = DENSE[reference.kind(part)](tree, values, part, place)
                if noise:
                    scale = np.diag(part.variance) if part.variance.ndim == 2 else part.variance
                    variance = variance + part.noise * scale
                where = [predictions.real.tolist().index(column) for column in columns]
                assert predictions.mean[row, where] == pytest.approx(mean, rel=1e-8, abs=1e-8), place
                assert predictions.sd[row, where] ** 2 == pytest.approx(variance, rel=1e-8, abs=1e-9), place
            n_seen += len(columns)
        assert n_seen == len(predictions.real) + len(predictions.categorical)


# -- tables --------------------------------------------------------------------------------------------------------


def real_table(rng, n, n_columns, missing):
    X = rng.normal(size=(n, n_columns)) + 2 * rng.normal(size=n_columns)
    if missing:
        X[rng.random(X.shape) < missing] = np.nan
        X[rng.integers(n), rng.integers(n_columns)] = np.nan
    return X


def matrix(rng):
    a = rng.normal(size=(3, 3))
    return a @ a.T + 0.2 * np.eye(3)


def brownian(rng, n):
    return ct.Brownian([0.3, 1.0, 4.0], rng.choice([0.0, 0.3])), real_table(rng, n, 3, 0)


def brownian_full(rng, n):
    return ct.Brownian(matrix(rng), rng.choice([0.0, 0.3])), real_table(rng, n, 3, 0)


def brownian_missing(rng, n):
    X = real_table(rng, n, 4, 0.4)
    X[:, 3] = np.nan
    return ct.Brownian([0.3, 1.0, 4.0, 2.0], rng.choice([0.0, 0.3])), X


def stationary(rng, n):
    return ct.OrnsteinUhlenbeck(
        rng.lognormal(), rng.normal(size=3), [0.3, 1.0, 4.0], rng.choice([0.0, 0.3])
    ), real_table(rng, n, 3, 0)


def stationary_full(rng, n):
    process = ct.OrnsteinUhlenbeck(rng.lognormal(), 0.5, matrix(rng), rng.choice([0.0, 0.3]))
    return process, real_table(rng, n, 3, 0)


def stationary_missing(rng, n):
    X = real_table(rng, n, 4, 0.4)
    X[:, 3] = np.nan
    return ct.OrnsteinUhlenbeck(rng.lognormal(), rng.normal(size=4), 2.0, rng.choice([0.0, 0.3])), X


def multinomial(rng, n):
    equilibria = [rng.dirichlet(np.full(k, 3.0)) for k in (2, 3, 1)]
    return ct.Multinomial(rng.lognormal(size=3), equilibria), code_table(rng, n, (2, 3, 1), 0.25)


def multinomial_estimated(rng, n):
    return ct.Multinomial(0.7), code_table(rng, n, (2, 3), 0.25)


def mixed(rng, n):
    """Columns of the two kinds take turns, and those of a part are not in their order."""
    X = np.empty((n, 4))
    X[:, [3, 0]], X[:, [1, 2]] = real_table(rng, n, 2, 0.3), code_table(rng, n, (3, 2), 0.25)
    process = ct.Mixed(
        (ct.OrnsteinUhlenbeck(0.8, [0.3, -0.3], [0.5, 2.0], 0.1), [3, 0]),
        (ct.Multinomial([0.4, 1.5], [[0.5, 0.3, 0.2], [0.7, 0.3]]), [1, 2]),
    )
    return process, X


SETUPS = [
    brownian,
    brownian_full,
    brownian_missing,
    stationary,
    stationary_full,
    stationary_missing,
    multinomial,
    multinomial_estimated,
    mixed,
]
every_setup = pytest.mark.parametrize("setup", SETUPS)


def largest(setup):
    """The sum over all states takes its time."""
    return 4 if setup in (multinomial, multinomial_estimated, mixed) else 7


def random_places(rng, tree, count):
    """Points of branches, their ends among them, and points above the root."""
    places = []
    for node in rng.integers(tree.n_nodes, size=count).tolist():
        low = tree.heights[node]
        top = tree.heights[ancestors(tree, node)[1]] if node < tree.n_nodes - 1 else low + 2.0
        places.append((node, float(rng.choice([low, top, low + (top - low) * rng.random()]))))
    return places


def at(beliefs, places):
    return beliefs.at(*zip(*places, strict=True))


# -- agreement -----------------------------------------------------------------------------------------------------


@every_setup
def test_beliefs_at_nodes_and_leaves_match_brute_force(setup):
    for n in range(1, largest(setup) + 1):
        for seed in range(2):
            rng = np.random.default_rng([n, seed])
            process, X = setup(rng, n)
            tree = ct.simulate_tree(n, rng)
            beliefs = ct.Beliefs(tree, X, process)
            places = list(enumerate(tree.heights.tolist()))
            assert_states(tree, X, beliefs.process, places, beliefs.nodes())
            assert_states(tree, X, beliefs.process, leaf_places(tree), beliefs.leaves(), noise=True)


@every_setup
def test_beliefs_on_branches_and_stem_match_brute_force(setup):
    for n in range(1, largest(setup) + 1):
        rng = np.random.default_rng([7, n])
        process, X = setup(rng, n)
        tree = ct.simulate_tree(n, rng)
        places = random_places(rng, tree, 8)
        root = tree.n_nodes - 1
        places += [(root, tree.heights[-1]), (root, tree.heights[-1] + 0.3), (root, tree.heights[-1] + 40.0)]
        beliefs = ct.Beliefs(tree, X, process)
        assert_states(tree, X, beliefs.process, places, at(beliefs, places))


@every_setup
def test_beliefs_at_merges_of_height_zero(setup):
    """Rows 0, 1 and 2 are at one point of the tree: their cells agree, are missing, or differ by noise."""
    rng = np.random.default_rng(3)
    process, X = setup(rng, 4)
    X[1:3] = np.where(np.isnan(X[1:3]), np.nan, X[0])
    if not isinstance(process, ct.Multinomial | ct.Mixed):
        process = type(process)(**({"variance": process.variance, "noise": 0.2} | rates_of(process)))
    tree = ct.Tree([[0, 1], [2, 4], [3, 5]], [0, 0, 0, 0, 0.0, 0.0, 0.7])
    places = [*enumerate(tree.heights.tolist()), (4, 0.0), (5, 0.4), (3, 0.7), (6, 1.5)]
    beliefs = ct.Beliefs(tree, X, process)
    assert_states(tree, X, beliefs.process, places, at(beliefs, places))
    assert_states(tree, X, beliefs.process, leaf_places(tree), beliefs.leaves(), noise=True)


def rates_of(process):
    return {"rate": process.rate, "mean": process.mean} if isinstance(process, ct.OrnsteinUhlenbeck) else {}


@settings(deadline=None, max_examples=30, derandomize=True)
@given(st.sampled_from(SETUPS), st.integers(0, 2**32 - 1), st.floats(-2, 2))
def test_beliefs_at_random_points_of_extreme_trees(setup, seed, log_scale):
    """Trees far flatter and far taller than those of the coalescent."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, largest(setup) + 1))
    process, X = setup(rng, n)
    simulated = ct.simulate_tree(n, rng)
    tree = ct.Tree(simulated.children, 10.0**log_scale * simulated.heights)
    places = random_places(rng, tree, 5)
    beliefs = ct.Beliefs(tree, X, process)
    assert_states(tree, X, beliefs.process, places, at(beliefs, places))


def test_beliefs_agree_at_both_branch_ends():
    """The beliefs at the end of a branch equal those at the beginning of the next."""
    rng = np.random.default_rng(4)
    for setup in SETUPS:
        process, X = setup(rng, 30)
        tree = ct.simulate_tree(30, rng)
        beliefs = ct.Beliefs(tree, X, process)
        below = beliefs.at(np.arange(58), tree.heights[tree.parents[:-1]])
        above = beliefs.nodes().take(tree.parents[:-1])
        for one, other in zip(below[:6], above[:6], strict=True):  # no quantiles were asked for
            assert np.allclose(one, other, rtol=1e-9, atol=1e-9)


# -- large trees: by the likelihood of what is asked for -----------------------------------------------------------


@pytest.mark.parametrize("setup", [setup for setup in SETUPS if setup not in (brownian_full, stationary_full)])
def test_beliefs_of_missing_cells_equal_likelihood_ratios(setup):
    rng = np.random.default_rng(5)
    process, X = setup(rng, 40)
    tree = ct.simulate_tree(40, rng)
    X[3, 0] = X[17, 1] = np.nan
    beliefs = ct.Beliefs(tree, X, process)
    process, actual = beliefs.process, beliefs.leaves()
    without = process.log_likelihood(tree, X)
    for row, column in [(3, 0), (17, 1)]:
        filled = X.copy()
        if column in actual.real:
            k = actual.real.tolist().index(column)
            mean, sd = actual.mean[row, k], actual.sd[row, k]
            for filled[row, column] in (mean, mean + sd, mean - 3 * sd):
                log_density = -0.5 * (np.log(2 * np.pi * sd**2) + ((filled[row, column] - mean) / sd) ** 2)
                assert process.log_likelihood(tree, filled) - without == pytest.approx(log_density, rel=1e-7, abs=1e-7)
        else:
            k = actual.categorical.tolist().index(column)
            shares = actual.probability[row, actual.start[k] : actual.start[k + 1]]
            for filled[row, column], share in enumerate(shares):
                assert np.exp(process.log_likelihood(tree, filled) - without) == pytest.approx(share, abs=1e-9)


def attach_leaf(tree, place):
    """Return the tree with one more leaf, the last, that hangs from a place; ties are not looked after."""
    n, (node, height) = tree.n_leaves, place
    merges = [(h, [int(c) for c in pair]) for pair, h in zip(tree.children, tree.merge_heights, strict=True)]
    names = {**{leaf: leaf for leaf in range(n)}, **{n + k: f"merge {k}" for k in range(n - 1)}}
    merges = [(h, [names[c] for c in pair], f"merge {k}") for k, (h, pair) in enumerate(merges)]
    for _, pair, _ in merges:
        if names[node] in pair:
            pair[pair.index(names[node])] = "new merge"
    merges.append((height, [names[node], n], "new merge"))
    merges.sort(key=lambda merge: merge[0])
    number = {leaf: leaf for leaf in range(n + 1)} | {name: n + 1 + k for k, (_, _, name) in enumerate(merges)}
    return ct.Tree(
        [[number[c] for c in pair] for _, pair, _ in merges], [0.0] * (n + 1) + [height for height, _, _ in merges]
    )


@every_setup
def test_beliefs_of_new_leaf_equal_likelihood_ratios(setup):
    """The beliefs of `new_leaves` against the likelihood on the tree with that leaf."""
    rng = np.random.default_rng(6)
    process, X = setup(rng, 12)
    tree = ct.simulate_tree(12, rng)
    nodes = np.array([0, 7, 14, 20, 22])
    tops = np.append(tree.heights[tree.parents[:-1]], tree.heights[-1] + 1.0)
    heights = tree.heights[nodes] + 0.4 * (tops[nodes] - tree.heights[nodes])
    beliefs = ct.Beliefs(tree, X, process)
    process = beliefs.process
    (actual,) = beliefs.new_leaves(nodes, heights)
    before = process.log_likelihood(tree, X)
    codes_or_values = X[4]
    for k, place in enumerate(zip(nodes.tolist(), heights.tolist(), strict=True)):
        taller = np.vstack([X, codes_or_values])
        expected = process.log_likelihood(attach_leaf(tree, place), taller) - before
        total = 0.0
        if process.__class__ in (ct.Brownian, ct.OrnsteinUhlenbeck) and process.variance.ndim == 2:
            # the columns' own distributions are given, and of one state all of them are uncorrelated once whitened
            deviations = np.sqrt(np.diag(process.variance))
            factor = np.linalg.cholesky(process.variance) * (actual.sd[k, 0] / deviations[0])
            white = np.linalg.solve(factor, codes_or_values - actual.mean[k])
            total = -0.5 * (white @ white + 3 * np.log(2 * np.pi)) - np.log(np.diag(factor)).sum()
        else:
            for c, column in enumerate(actual.real):
                z = (codes_or_values[column] - actual.mean[k, c]) / actual.sd[k, c]
                if not np.isnan(z) and np.isfinite(actual.sd[k, c]):
                    total -= 0.5 * (np.log(2 * np.pi * actual.sd[k, c] ** 2) + z**2)
            for c, column in enumerate(actual.categorical):
                if not np.isnan(codes_or_values[column]):
                    total += np.log(actual.probability[k, actual.start[c] + int(codes_or_values[column])])
        assert total == pytest.approx(expected, rel=1e-7, abs=1e-7), place


def test_beliefs_are_independent_of_blocks():
    """More points than fit into one block, in any order."""
    rng = np.random.default_rng(7)
    process, X = mixed(rng, 3)
    tree = ct.simulate_tree(3, rng)
    beliefs = ct.Beliefs(tree, X, process)
    places = random_places(rng, tree, 3 * beliefs._block + 1)
    together = at(beliefs, places)
    for row, place in enumerate(places):
        alone = at(beliefs, [place])
        assert np.array_equal(alone.mean[0], together.mean[row])
        assert np.array_equal(alone.sd[0], together.sd[row])
        assert np.array_equal(alone.probability[0], together.probability[row])


# -- edges ---------------------------------------------------------------------------------------------------------


def test_beliefs_sum_to_one_and_observed_states_are_certain():
    rng = np.random.default_rng(8)
    process, X = multinomial(rng, 60)
    tree = ct.simulate_tree(60, rng)
    beliefs = ct.Beliefs(tree, X, process)
    for predictions in (beliefs.nodes(), beliefs.leaves()):
        assert predictions.probability.min() >= 0
        for first, last in zip(predictions.start, predictions.start[1:], strict=False):
            assert predictions.probability[:, first:last].sum(axis=1) == pytest.approx(1.0)
    shares = beliefs.leaves().probability
    for d, first in enumerate(predictions.start[:-1]):
        observed = np.flatnonzero(~np.isnan(X[:, d]))
        assert shares[observed, first + X[observed, d].astype(int)] == pytest.approx(1.0)


def test_beliefs_of_empty_column_equal_prior():
    """Without cells, the beliefs are those of the process alone."""
    tree = ct.simulate_tree(4, 0)
    empty = np.full((4, 1), np.nan)
    states = ct.Beliefs(tree, empty, ct.Brownian(2.0)).nodes()
    assert np.all(np.isinf(states.sd))
    assert np.all(np.isfinite(states.mean))
    states = ct.Beliefs(tree, empty, ct.OrnsteinUhlenbeck(0.5, 3.0, 4.0, 0.5)).nodes()
    assert np.allclose(states.mean, 3.0)
    assert np.allclose(states.sd, 2.0)
    cells = ct.Beliefs(tree, empty, ct.OrnsteinUhlenbeck(0.5, 3.0, 4.0, 0.5)).leaves()
    assert np.allclose(cells.sd, np.sqrt(6.0))
    states = ct.Beliefs(tree, empty, ct.Multinomial(1.0, [[0.2, 0.5, 0.3]])).nodes()
    assert np.allclose(states.probability, [0.2, 0.5, 0.3])


def test_beliefs_of_deep_trees_match_brute_force():
    """High above the leaves only the equilibrium is left, and the two halves of the tree are independent."""
    tree = ct.Tree([[0, 1], [2, 3], [4, 5]], [0, 0, 0, 0, 0.1, 0.2, 600.0])
    X = np.array([[1.0], [1.2], [-2.0], [-1.5]])
    process = ct.OrnsteinUhlenbeck(1.0, 0.5, 2.0, 0.1)
    beliefs = ct.Beliefs(tree, X, process)
    far = beliefs.at([4, 6, 6], [300.0, 600.0, 1000.0])
    assert far.mean == pytest.approx(0.5)
    assert far.sd == pytest.approx(np.sqrt(2.0))
    places = [*enumerate(tree.heights.tolist()), (4, 3.0)]
    assert_states(tree, X, process, places, at(beliefs, places))


def test_beliefs_of_one_leaf():
    tree = ct.simulate_tree(1, 0)
    beliefs = ct.Beliefs(tree, [[2.0]], ct.OrnsteinUhlenbeck(1.0, 0.0, 1.0, 0.5))

    def moments(states):
        return states.mean.item(), states.sd.item()

    retention = np.exp(-0.7)
    assert moments(beliefs.nodes()) == pytest.approx((2.0 / 1.5, np.sqrt(1 - 1 / 1.5)))
    assert moments(beliefs.leaves()) == pytest.approx((2.0 / 1.5, np.sqrt(1 - 1 / 1.5 + 0.5)))
    assert moments(beliefs.at([0], [0.7])) == pytest.approx((retention * 2.0 / 1.5, np.sqrt(1 - retention**2 / 1.5)))
    flat = ct.Beliefs(tree, [[2.0]], ct.Brownian(4.0, 0.5)).at([0], [0.7])
    assert moments(flat) == pytest.approx((2.0, np.sqrt(4 * 1.2)))


def test_beliefs_at_no_points_are_empty():
    actual = ct.Beliefs(ct.simulate_tree(3, 0), np.zeros((3, 2)), ct.Brownian(noise=1.0)).at([], [])
    assert actual.n_rows == 0
    assert actual.mean.shape == (0, 2)


TREE = ct.Tree.from_newick("((a:1,b:1):1,c:2);")


@pytest.mark.parametrize(
    ("nodes", "heights", "message"),
    [
        ([0], [1.5], r"Height 1\.5 is not on the branch above node 0, which goes from 0 to 1"),
        ([3], [0.5], r"Height 0\.5 is not on the branch above node 3, which goes from 1 to 2"),
        ([0, 4], [0.5, 1.9], r"Height 1\.9 is not on the branch above node 4, which goes from 2 to inf"),
        ([0], [-0.1], r"Height -0\.1 is not on the branch"),
        ([0], [np.nan], "Height nan is not on the branch"),
        ([4], [np.inf], "Height inf is not on the branch"),
        ([5], [0.0], "nodes must be from 0 to 4, the root"),
        ([-1], [2.0], "nodes must be from 0 to 4, the root"),
        ([0, 1], [0.0], "2 nodes and 1 heights"),
        ([0.5], [0.0], "nodes"),
        ([np.nan], [0.0], "nodes"),
        (["a"], [0.0], "nodes"),
        ([0], ["low"], "heights"),
    ],
)
def test_invalid_points_are_rejected(nodes, heights, message):
    beliefs = ct.Beliefs(TREE, [[0.0], [1.0], [2.0]], ct.Brownian())
    with pytest.raises(InputError, match=message):
        beliefs.at(nodes, heights)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tree": "((a,b),c);"}, "tree is of type str and not a Tree"),
        ({"tree": None}, "tree is of type NoneType and not a Tree"),
        ({"X": [[0.0], [1.0]]}, r"2 row\(s\) and the tree 3 leaves"),
        ({"X": [[0.0], [1.0], [np.inf]]}, "infinite"),
        ({"process": "brownian"}, "process is 'brownian'"),
        ({"process": ct.Brownian([1.0, 2.0])}, r"1 column\(s\).*describes 2"),
        ({"process": ct.Multinomial(), "X": [[0.0], [0.5], [1.0]]}, r"Row 1, column 0 holds 0\.5"),
    ],
)
def test_incompatible_arguments_are_rejected(arguments, message):
    with pytest.raises(InputError, match=message):
        ct.Beliefs(**({"tree": TREE, "X": [[0.0], [1.0], [2.0]], "process": ct.Brownian()} | arguments))


def test_beliefs_do_not_modify_table():
    process, X = mixed(np.random.default_rng(9), 4)
    before = X.copy()
    ct.Beliefs(ct.simulate_tree(4, 0), X, process).leaves()
    assert np.array_equal(X, before, equal_nan=True)


def test_threads_may_share_beliefs(monkeypatch):
    """A second thread asks for other points between the two steps of the first: it has to wait, or changes their answer."""
    X = code_table(np.random.default_rng(0), 12, [2, 3])
    beliefs = ct.Beliefs(ct.simulate_tree(12, random_state=0), X, ct.Multinomial())
    tops = beliefs.tree.heights[beliefs.tree.parents[:-1]]
    here, there = (np.arange(22), beliefs.tree.heights[:22]), (np.arange(22)[::-1], tops[::-1])
    expected = beliefs.at(*here).probability
    first_is_between, second_is_done = Event(), Event()

    def meet_and_wait(*arguments):
        meet(*arguments)
        if not first_is_between.is_set():
            first_is_between.set()
            second_is_done.wait(0.2)

    monkeypatch.setattr(likelihood, "meet", meet_and_wait)
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(beliefs.at, *here)
        assert first_is_between.wait(60)
        beliefs.at(*there)
        second_is_done.set()
        np.testing.assert_array_equal(found.result().probability, expected)
