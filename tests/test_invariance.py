"""Trees are invariant to the order of rows and columns, to units, to names of categories and to empty columns."""

import numpy as np
import pytest

import coaltree as ct

RULES = ["rate1", "max-prob", "min-duration"]
N = 14
N_STATES = (2, 3, 4, 3, 2, 3, 2, 3)  # enough columns for pairs of rows not to tie


def real_table(rng, n_columns=3, missing=0.0):
    X = rng.normal(size=(N, n_columns)) + 3.0 * rng.integers(0, 3, size=(N, 1))
    X[rng.random(X.shape) < missing] = np.nan
    return X


def code_table(rng, n_states=N_STATES, missing=0.0):
    """Every state of every column occurs, so that an estimated equilibrium has them all."""
    X = np.column_stack([rng.permutation(np.arange(N) % k) for k in n_states]).astype(float)
    X[rng.random(X.shape) < missing] = np.nan
    X[:4] = np.array([np.minimum(row, np.array(n_states) - 1) for row in range(4)])
    return X


def brownian(rng):
    return ct.Brownian([0.3, 1.0, 5.0], noise=0.002), real_table(rng)


def brownian_missing(rng):
    """Any two rows have a cell in common: pairs that have none would all tie at height 0."""
    X = real_table(rng, missing=0.4)
    X[:, 1] = real_table(rng)[:, 1]
    return ct.Brownian([0.3, 1.0, 5.0]), X


def brownian_full(rng):
    a = rng.normal(size=(3, 3))
    return ct.Brownian(a @ a.T + np.eye(3)), real_table(rng)


def multinomial(rng):
    rates = rng.lognormal(sigma=1.5, size=8)
    return ct.Multinomial(rates, [rng.dirichlet(np.full(k, 4.0)) for k in N_STATES]), code_table(rng, missing=0.2)


def multinomial_estimated(rng):
    return ct.Multinomial([0.3, 0.7, 1.1, 2.3, 0.4, 0.1, 3.0, 0.9]), code_table(rng)


def mixed(rng):
    X = np.column_stack([real_table(rng, 2), code_table(rng, (2, 3), 0.1)])
    return ct.Mixed((ct.Brownian([0.4, 2.0], noise=0.002), [0, 1]), (ct.Multinomial([0.2, 3.0]), [2, 3])), X


SETUPS = [brownian, brownian_missing, brownian_full, multinomial, multinomial_estimated, mixed]
REAL = [brownian, brownian_missing, brownian_full]


def clades(tree):
    """Return the height of every set of leaf names that is a subtree."""
    names = np.array(tree.leaf_names)
    return {
        frozenset(names[tree.leaves_below(node)].tolist()): tree.heights[node]
        for node in range(tree.n_leaves, tree.n_nodes)
    }


def assert_same(first, second, log_jacobian=0.0):
    """Same clades, heights, log ratios by clade and log joint, but for rounding."""
    one, other = clades(first.tree), clades(second.tree)
    assert one.keys() == other.keys()
    for clade, height in one.items():
        assert other[clade] == pytest.approx(height, rel=1e-7, abs=1e-10)
    ratios = dict(zip(one, first.log_ratios, strict=True))
    for clade, ratio in zip(other, second.log_ratios, strict=True):
        assert ratio == pytest.approx(ratios[clade], rel=1e-6, abs=1e-7)
    assert second.log_joint == pytest.approx(first.log_joint - log_jacobian, rel=1e-9, abs=1e-7)


every_rule = pytest.mark.parametrize("rule", RULES)
# With these seeds no two pairs ever tie in any of the tables (rounding or row numbers would decide then).
every_seed = pytest.mark.parametrize("seed", [0, 2, 4])
every_setup = pytest.mark.parametrize("setup", SETUPS)


@every_rule
@every_setup
@every_seed
def test_greedy_is_invariant_to_row_order(setup, rule, seed):
    rng = np.random.default_rng(seed)
    process, X = setup(rng)
    names = [f"row {i}" for i in range(N)]
    order = rng.permutation(N)
    first = ct.greedy(X, process, rule=rule, leaf_names=names)
    second = ct.greedy(X[order], process, rule=rule, leaf_names=[names[i] for i in order])
    assert_same(first, second)


def with_columns(process, order):
    """Return the process for the columns ``X[:, order]``."""
    if isinstance(process, ct.Mixed):
        place = {column: new for new, column in enumerate(order)}
        return ct.Mixed(*((part, [place[column] for column in columns]) for part, columns in process.parts))
    if isinstance(process, ct.Brownian):
        variance = process.variance[np.ix_(order, order)] if process.variance.ndim == 2 else process.variance[order]
        return ct.Brownian(variance, process.noise)
    equilibrium = process.equilibrium and [process.equilibrium[d] for d in order]
    return ct.Multinomial(process.rate[order], equilibrium)


@every_rule
@every_setup
def test_greedy_is_invariant_to_column_order(setup, rule):
    rng = np.random.default_rng(3)
    process, X = setup(rng)
    order = rng.permutation(X.shape[1])
    assert not np.array_equal(order, np.arange(X.shape[1]))
    first = ct.greedy(X, process, rule=rule)
    assert_same(first, ct.greedy(X[:, order], with_columns(process, order), rule=rule))


def test_greedy_is_invariant_to_part_order():
    process, X = mixed(np.random.default_rng(4))
    assert_same(ct.greedy(X, process), ct.greedy(X, ct.Mixed(*process.parts[::-1])))


@every_rule
@pytest.mark.parametrize("setup", REAL)
def test_greedy_is_invariant_to_origin(setup, rule):
    process, X = setup(np.random.default_rng(5))
    assert_same(ct.greedy(X, process, rule=rule), ct.greedy(X + np.array([30.0, -7.0, 0.1]), process, rule=rule))


# Under max-prob densities of pairs compete. Where pairs differ in the columns they have in common, units do matter.
UNITS = [(setup, rule) for setup in REAL for rule in RULES if (setup, rule) != (brownian_missing, "max-prob")]


@pytest.mark.parametrize(("setup", "rule"), UNITS)
@every_seed
def test_greedy_is_invariant_to_units(setup, rule, seed):
    process, X = setup(np.random.default_rng(seed))
    a = np.array([1e-3, 12.0, 500.0])
    scales = np.outer(a, a) if process.variance.ndim == 2 else a**2
    rescaled = ct.Brownian(process.variance * scales, process.noise)
    log_jacobian = np.sum((np.sum(~np.isnan(X), axis=0) - 1) * np.log(a))
    assert_same(ct.greedy(X, process, rule=rule), ct.greedy(X * a, rescaled, rule=rule), log_jacobian)


def relabel(X, columns, n_states, rng):
    """Return X with the codes of some columns permuted, and the permutations: new code of every old one."""
    X = X.copy()
    permutations = [rng.permutation(k) for k in n_states]
    for d, new_code in zip(columns, permutations, strict=True):
        observed = ~np.isnan(X[:, d])
        X[observed, d] = new_code[X[observed, d].astype(int)]
    return X, permutations


@every_rule
@every_seed
def test_greedy_is_invariant_to_category_codes(rule, seed):
    rng = np.random.default_rng(seed)
    process, X = multinomial(rng)
    Y, permutations = relabel(X, range(8), N_STATES, rng)
    moved = [q[np.argsort(new_code)] for q, new_code in zip(process.equilibrium, permutations, strict=True)]
    assert not np.array_equal(X, Y, equal_nan=True)
    assert_same(ct.greedy(X, process, rule=rule), ct.greedy(Y, ct.Multinomial(process.rate, moved), rule=rule))


@every_rule
@every_seed
def test_greedy_is_invariant_to_category_codes_with_estimated_equilibria(rule, seed):
    rng = np.random.default_rng(seed)
    process, X = multinomial_estimated(rng)
    Y, _ = relabel(X, range(8), N_STATES, rng)
    assert_same(ct.greedy(X, process, rule=rule), ct.greedy(Y, process, rule=rule))
    process, X = mixed(rng)
    Y, _ = relabel(X, [2, 3], (2, 3), rng)
    assert_same(ct.greedy(X, process, rule=rule), ct.greedy(Y, process, rule=rule))


@every_rule
@pytest.mark.parametrize("noise", [0.0, 0.002])
def test_greedy_ignores_empty_real_column(rule, noise):
    """The empty column makes a complete table one with missing cells: other code, the same tree."""
    rng = np.random.default_rng(6)
    X = real_table(rng)
    wider = np.column_stack([X[:, :1], np.full(N, np.nan), X[:, 1:]])
    first = ct.greedy(X, ct.Brownian([0.3, 1.0, 5.0], noise), rule=rule)
    assert_same(first, ct.greedy(wider, ct.Brownian([0.3, 9.0, 1.0, 5.0], noise), rule=rule))


@every_rule
def test_greedy_ignores_empty_categorical_column(rule):
    rng = np.random.default_rng(7)
    process, X = multinomial(rng)
    wider = np.column_stack([X, np.full(N, np.nan)])
    rates, equilibria = [*process.rate, 20.0], [*process.equilibrium, [0.2, 0.8]]
    assert_same(ct.greedy(X, process, rule=rule), ct.greedy(wider, ct.Multinomial(rates, equilibria), rule=rule))
    process, X = multinomial_estimated(rng)
    wider = np.column_stack([X, np.full(N, np.nan)])
    first = ct.greedy(X, process, rule=rule)
    assert_same(first, ct.greedy(wider, ct.Multinomial([*process.rate, 20.0]), rule=rule))


@every_rule
def test_greedy_is_invariant_to_split_into_parts(rule):
    """One Brownian process over four columns equals two over two columns each."""
    X = real_table(np.random.default_rng(8), 4, missing=0.2)
    whole = ct.greedy(X, ct.Brownian([0.3, 1.0, 5.0, 2.0]), rule=rule)
    parts = ct.Mixed((ct.Brownian([0.3, 5.0]), [0, 2]), (ct.Brownian([1.0, 2.0]), [1, 3]))
    halves = ct.greedy(X, parts, rule=rule)
    assert clades(whole.tree) == pytest.approx(clades(halves.tree), rel=1e-7)
    assert whole.log_joint == pytest.approx(halves.log_joint, rel=1e-9)
