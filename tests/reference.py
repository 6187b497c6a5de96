"""Slow, readable reference computations for the tests, written from the model's definitions alone.

Nothing here uses the library's own numerical code. A process is read only for its public parameters, a tree only for
`children` and `heights`. There are two independent ways to a likelihood: brute force (whole covariance matrices,
enumeration of all interior states) and the recursion of messages; `test_likelihood.py` checks one against the other.
"""

from functools import cache
from itertools import combinations, product
from typing import NamedTuple

import numpy as np
from scipy.linalg import expm
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import norm

LOG_2PI = np.log(2 * np.pi)


# -- reading a process ---------------------------------------------------------------------------------------------


def kind(process):
    return type(process).__name__


def parts_of(process, X):
    """Return ``(process, its columns of X)`` for every part; a process that is not mixed is its own only part."""
    X = np.asarray(X, dtype=float)
    if kind(process) == "Mixed":
        return [(part, X[:, list(columns)]) for part, columns in process.parts]
    return [(process, X)]


def equilibria_of(process, X):
    """Return the given equilibria, or the shares of the states with one more count for every state."""
    if process.equilibrium is not None:
        return [np.array(q) for q in process.equilibrium]
    equilibria = []
    for column in X.T:
        observed = [int(code) for code in column if not np.isnan(code)]
        counts = np.array([1.0 + observed.count(state) for state in range(1 + max(observed, default=0))])
        equilibria.append(counts / counts.sum())
    return equilibria


# -- likelihood by brute force -------------------------------------------------------------------------------------


def leaves_below(tree):
    """Return the set of leaves below every node."""
    below = [{leaf} for leaf in range(tree.n_leaves)]
    for left, right in tree.children.tolist():
        below.append(below[left] | below[right])
    return below


def common_heights(tree):
    """Return the height of the last common ancestor of every pair of leaves; 0 on the diagonal."""
    n = tree.n_leaves
    below = leaves_below(tree)
    heights = np.zeros((n, n))
    for k, (left, right) in enumerate(tree.children.tolist()):
        for i in below[left]:
            for j in below[right]:
                heights[i, j] = heights[j, i] = tree.heights[n + k]
    return heights


def flat_mean_log_density(x, covariance, design):
    """Return log of the integral of ``N(x; design @ mu, covariance)`` over all mu.

    With ``A = design' C^-1 design`` and ``m = A^-1 design' C^-1 x`` the exponent is
    ``(x - design m)' C^-1 (x - design m) + (mu - m)' A (mu - m)``, and the integral over mu of the second Gaussian is
    ``(2 pi)^(p/2) |A|^(-1/2)``.
    """
    inverse = np.linalg.inv(covariance)
    information = design.T @ inverse @ design
    mean = np.linalg.solve(information, design.T @ inverse @ x)
    residual = x - design @ mean
    n, p = design.shape
    return (
        -0.5 * (n - p) * LOG_2PI
        - 0.5 * np.linalg.slogdet(covariance)[1]
        - 0.5 * np.linalg.slogdet(information)[1]
        - 0.5 * residual @ inverse @ residual
    )


def columns_with(X, *parameters):
    """Yield every column with its own number of each parameter, which is one for all columns or one per column."""
    return zip(X.T, *(np.broadcast_to(parameter, X.shape[1]) for parameter in parameters), strict=True)


def brownian_log_likelihood(tree, X, variance, noise):
    """`noise` is one number, or one per column unless the variance is a matrix."""
    X = np.asarray(X, dtype=float)
    n, n_columns = X.shape
    shared_path = tree.heights[-1] - common_heights(tree)
    if tree.n_leaves == 1:
        return 0.0
    if np.ndim(variance) == 2:
        design = np.kron(np.ones((n, 1)), np.eye(n_columns))
        return flat_mean_log_density(X.ravel(), np.kron(shared_path + noise * np.eye(n), variance), design)
    total = 0.0
    for x, one_variance, one_noise in columns_with(X, variance, noise):
        observed = np.flatnonzero(~np.isnan(x))
        if len(observed):
            covariance = shared_path + one_noise * np.eye(n)
            block = one_variance * covariance[np.ix_(observed, observed)]
            total += flat_mean_log_density(x[observed], block, np.ones((len(observed), 1)))
    return total


def normal_log_density(x, covariance):
    """Return ``log N(x; 0, covariance)``."""
    return -0.5 * (len(x) * LOG_2PI + np.linalg.slogdet(covariance)[1] + x @ np.linalg.solve(covariance, x))


def stationary_log_likelihood(tree, X, rate, mean, variance, noise):
    """Rows whose lineages meet at height h have the correlation ``exp(-2 rate h)`` at equilibrium."""
    X = np.asarray(X, dtype=float) - mean
    n = len(X)
    correlation = np.exp(-2 * rate * common_heights(tree))
    if np.ndim(variance) == 2:
        return normal_log_density(X.ravel(), np.kron(correlation + noise * np.eye(n), variance))
    total = 0.0
    for x, one_variance, one_noise in columns_with(X, variance, noise):
        observed = np.flatnonzero(~np.isnan(x))
        covariance = correlation + one_noise * np.eye(n)
        total += normal_log_density(x[observed], one_variance * covariance[np.ix_(observed, observed)])
    return total


def transition(q, rate, time):
    """Return the matrix of ``P(state after time | state before)``, a row for each state before."""
    stay = np.exp(-rate * time)
    return stay * np.eye(len(q)) + (1 - stay) * np.outer(np.ones(len(q)), q)


def exchange_rates(q):
    """Return the generator of ordered levels at rate 1: what goes up and down along the scores flows as a diffusion would."""
    ends = np.concatenate([[-np.inf], norm.ppf(np.cumsum(q)[:-1]), [np.inf]])
    scores = -np.diff(norm.pdf(ends)) / q  # the mean of each stretch of the normal distribution
    rates = np.zeros((len(q), len(q)))
    for k in range(len(q) - 1):
        flow = norm.pdf(ends[k + 1]) / (scores[k + 1] - scores[k])
        rates[k, k + 1], rates[k + 1, k] = flow / q[k], flow / q[k + 1]
    return rates - np.diag(rates.sum(axis=1))


def ordered_transition(q, rate, time):
    """Do what `transition` does for ordered levels, by a matrix exponential."""
    return _exponential(tuple(q), rate * time)


@cache
def _exponential(q, time):
    return expm(exchange_rates(np.array(q)) * time)


def cell_probabilities(codes, q, noise=0.0):
    """Return the probability that a leaf shows what it does, a row a leaf and a column for each state of its lineage.

    With probability `noise` it shows a draw from q, otherwise its state. A missing cell says nothing of it.
    """
    chances = np.ones((len(codes), len(q)))
    for leaf, code in enumerate(codes):
        if not np.isnan(code):
            for state in range(len(q)):
                chances[leaf, state] = (1 - noise) * (state == code) + noise * q[int(code)]
    return chances


def probability_of_chances(tree, chances, rate, q, transition=transition):
    """Sum the probability of one column over the states of all nodes, those of the leaves among them."""
    n, n_states = tree.n_leaves, len(q)
    if n == 1:
        return q @ chances[0]
    # One row for every way to give states to the interior nodes; interior node n + k is column k.
    states = np.indices((n_states,) * (n - 1)).reshape(n - 1, -1).T
    probability = q[states[:, -1]].copy()
    for k, pair in enumerate(tree.children.tolist()):
        for child in pair:
            step = transition(q, rate, tree.heights[n + k] - tree.heights[child])
            above = states[:, k]
            if child >= n:
                probability *= step[above, states[:, child - n]]
            else:
                probability *= sum(step[above, state] * chances[child, state] for state in range(n_states))
    return probability.sum()


def column_probability(tree, codes, rate, q, noise=0.0):
    """Return the probability of one column; a missing leaf has any state."""
    return probability_of_chances(tree, cell_probabilities(codes, q, noise), rate, q)


def ordered_log_likelihood(tree, X, rate, equilibria, noise=0.0):
    """An observed level has moved along a path on which a score keeps ``1 - noise``."""
    total = 0.0
    for (codes, own_rate, own_noise), q in zip(columns_with(X, rate, noise), equilibria, strict=True):
        shown = ordered_transition(q, 1.0, -np.log1p(-own_noise))
        chances = np.array([np.ones(len(q)) if np.isnan(code) else shown[:, int(code)] for code in codes])
        total += np.log(probability_of_chances(tree, chances, own_rate, q, ordered_transition))
    return total


def multinomial_log_likelihood(tree, X, rate, equilibria, noise=0.0):
    X = np.asarray(X, dtype=float)
    columns = zip(columns_with(X, rate, noise), equilibria, strict=True)
    with np.errstate(divide="ignore"):
        return sum(
            np.log(column_probability(tree, codes, own_rate, q, own_noise))
            for (codes, own_rate, own_noise), q in columns
        )


def log_likelihood(tree, X, process):
    """Return ``log p(x | tree)`` by brute force; for small trees."""
    total = 0.0
    for part, columns in parts_of(process, X):
        if kind(part) == "Brownian":
            total += brownian_log_likelihood(tree, columns, part.variance, part.noise)
        elif kind(part) == "OrnsteinUhlenbeck":
            total += stationary_log_likelihood(tree, columns, part.rate, part.mean, part.variance, part.noise)
        elif kind(part) == "Ordered":
            total += ordered_log_likelihood(tree, columns, part.rate, equilibria_of(part, columns), part.noise)
        else:
            equilibria = equilibria_of(part, columns)
            total += multinomial_log_likelihood(tree, columns, part.rate, equilibria, part.noise)
            total -= log_recorded(tree, columns, part, equilibria)
    return total


def is_recorded(states, ascertainment):
    """Return whether a column with these known cells is recorded."""
    return len(set(states)) > 1 if ascertainment == "variable" else any(state > 0 for state in states)


def log_recorded(tree, X, process, equilibria):
    """Return the log probability that all columns are recorded: the sum over what their known cells may show."""
    if process.ascertainment is None:
        return 0.0
    total = 0.0
    for (codes, rate, noise), q in zip(columns_with(X, process.rate, process.noise), equilibria, strict=True):
        known, chance = np.flatnonzero(codes >= 0), 0.0
        for states in product(range(len(q)), repeat=len(known)):
            if is_recorded(states, process.ascertainment):
                column = np.full(len(codes), np.nan)
                column[known] = states
                chance += column_probability(tree, column, rate, q, noise)
        total += np.log(chance)
    return total


def log_prior(tree):
    """Return ``- sum_i c_i delta_i``."""
    total, clock, live = 0.0, 0.0, tree.n_leaves
    for height in tree.heights[tree.n_leaves :]:
        total -= live * (live - 1) / 2 * (height - clock)
        clock, live = height, live - 1
    return total


# -- messages ------------------------------------------------------------------------------------------------------


class RealColumns:
    """Gaussian messages ``(y, v)``: mean y and variance ``v Lambda``, v infinite in a column not observed below."""

    def __init__(self, process, X):
        self.full = np.ndim(process.variance) == 2
        n_columns = X.shape[1]
        self.noise = np.broadcast_to(process.noise, n_columns)
        self.variance = np.array(process.variance) if self.full else np.broadcast_to(process.variance, n_columns)
        observed = [column[~np.isnan(column)] for column in X.T]
        self.root_mean = np.array([x.mean() if len(x) else 0.0 for x in observed])
        if self.full:
            white = np.linalg.solve(np.linalg.cholesky(self.variance), X.T).T
            self.root_variance = white.var(axis=0).mean()
        else:
            shares = [x.var() / v for x, v in zip(observed, self.variance, strict=True) if len(x)]
            self.root_variance = np.mean(shares) if shares else 0.0

    def leaf(self, x):
        return x.copy(), np.where(np.isnan(x), np.inf, self.noise)

    def leaf_log_z(self, x):
        return 0.0

    def log_z(self, left, right, climb):
        """`climb` is ``t_l + t_r - 2 t``: a number or an array of them, possibly complex."""
        (y_l, v_l), (y_r, v_r) = left, right
        climb = np.asarray(climb)
        if self.full:
            s = v_l[0] + v_r[0] + climb
            gap = y_l - y_r
            d2 = gap @ np.linalg.solve(self.variance, gap)
            log_det = np.linalg.slogdet(self.variance)[1]
            return -0.5 * len(gap) * np.log(2 * np.pi * s) - 0.5 * log_det - d2 / (2 * s)
        both = np.isfinite(v_l) & np.isfinite(v_r)
        variance = self.variance[both] * (v_l[both] + v_r[both] + climb[..., None])
        return np.sum(-0.5 * np.log(2 * np.pi * variance) - (y_l - y_r)[both] ** 2 / (2 * variance), axis=-1)

    def merge(self, left, right, climb_l, climb_r):
        (y_l, v_l), (y_r, v_r) = left, right
        y, v = np.full_like(y_l, np.nan), np.full_like(v_l, np.inf)
        for d in range(len(y)):
            w_l, w_r = v_l[d] + climb_l, v_r[d] + climb_r
            if np.isinf(w_l):
                y[d], v[d] = y_r[d], w_r
            elif np.isinf(w_r):
                y[d], v[d] = y_l[d], w_l
            else:
                v[d] = 1 / (1 / w_l + 1 / w_r)
                y[d] = v[d] * (y_l[d] / w_l + y_r[d] / w_r)
        return y, v

    def root_log_density(self, message):
        y, v = message
        if self.full:
            gap = y - self.root_mean
            covariance = (v[0] + self.root_variance) * self.variance
            return -0.5 * (len(y) * LOG_2PI + np.linalg.slogdet(covariance)[1] + gap @ np.linalg.solve(covariance, gap))
        observed = np.isfinite(v)
        variance = (v[observed] + self.root_variance) * self.variance[observed]
        gap = (y - self.root_mean)[observed]
        return -0.5 * np.sum(LOG_2PI + np.log(variance) + gap**2 / variance)


class StationaryColumns:
    """Gaussian messages ``(y, f, v)`` in units of the equilibrium: ``y = f z + N(0, v)`` for the state z at the top.

    A column not observed below has ``f = 0``: its y says nothing of z.
    """

    def __init__(self, process, X):
        self.rate = process.rate
        self.mean, self.noise = (np.broadcast_to(value, X.shape[1]) for value in (process.mean, process.noise))
        full = np.ndim(process.variance) == 2
        variance = process.variance if full else np.diag(np.broadcast_to(process.variance, X.shape[1]))
        self.factor = np.linalg.cholesky(variance)
        self.deviations = np.sqrt(np.diag(variance))
        self.full = full

    def white(self, x):
        gap = x - self.mean
        return np.linalg.solve(self.factor, gap) if self.full else gap / self.deviations

    def leaf(self, x):
        observed = ~np.isnan(x)
        return np.where(observed, self.white(x), 0.0), observed * 1.0, np.where(observed, self.noise, 1.0)

    def leaf_log_z(self, x):
        white = self.white(x)
        logs = -0.5 * (LOG_2PI + np.log1p(self.noise) + white**2 / (1 + self.noise)) - np.log(np.diag(self.factor))
        return np.where(np.isnan(x), 0.0, logs).sum()

    def log_z(self, left, right, climb):
        """The density of both y's with one z at the merge, over that of each with a z of its own."""
        (y_l, f_l, v_l), (y_r, f_r, v_r) = left, right
        path = self.rate * np.asarray(climb)[..., None]
        retention = np.exp(-path)
        A, B, C = f_l**2 + v_l, f_r**2 + v_r, f_l * f_r * retention
        # A B - C^2, A - C and B - C, written so that nothing cancels where the y's are all but the same
        det = -((f_l * f_r) ** 2) * np.expm1(-2 * path) + f_l**2 * v_r + v_l * f_r**2 + v_l * v_r
        a = v_l + f_l * ((f_l - f_r) - f_r * np.expm1(-path))
        b = v_r + f_r * ((f_r - f_l) - f_l * np.expm1(-path))
        together = -0.5 * (np.log(det) + (C * (y_l - y_r) ** 2 + b * y_l**2 + a * y_r**2) / det)
        apart = -0.5 * (np.log(A * B) + y_l**2 / A + y_r**2 / B)
        return np.sum(together - apart, axis=-1)

    def merge(self, left, right, climb_l, climb_r):
        y, f, v = np.zeros_like(left[0]), np.zeros_like(left[0]), np.ones_like(left[0])
        for d in range(len(y)):
            results = []  # what each side says of the state: a value and its variance
            for message, climb in ((left, climb_l), (right, climb_r)):
                own_y, own_f, own_v = (part[d] for part in message)
                up_f = own_f * np.exp(-self.rate * climb)
                up_v = own_v - own_f**2 * np.expm1(-2 * self.rate * climb)
                if up_f > 1e-60 * np.sqrt(1 + up_v):  # of less nothing is left
                    results.append((own_y / up_f, up_v / up_f**2))
            if len(results) == 2:
                (y_l, v_l), (y_r, v_r) = results
                y[d], f[d], v[d] = (v_r * y_l + v_l * y_r) / (v_l + v_r), 1.0, v_l * v_r / (v_l + v_r)
            elif results:
                y[d], f[d], v[d] = results[0][0], 1.0, results[0][1]
        return y, f, v

    def root_log_density(self, message):
        return 0.0  # messages are likelihood ratios already


class CategoricalColumns:
    """Messages over states, a vector M a column with ``q . M = 1``."""

    def __init__(self, process, X):
        self.rates, self.noises = (np.broadcast_to(value, X.shape[1]) for value in (process.rate, process.noise))
        self.equilibria = equilibria_of(process, X)

    def chances(self, x):
        """What each cell of a row says of the state of its lineage, before it is scaled."""
        columns = zip(x, self.equilibria, self.noises, strict=True)
        return [cell_probabilities([code], q, noise)[0] for code, q, noise in columns]

    def leaf(self, x):
        return [chance / (q @ chance) for chance, q in zip(self.chances(x), self.equilibria, strict=True)]

    def leaf_log_z(self, x):
        return sum(np.log(q @ chance) for chance, q in zip(self.chances(x), self.equilibria, strict=True))

    def log_z(self, left, right, climb):
        climb = np.asarray(climb)
        agreement = np.array([np.sum(q * m_l * m_r) for q, m_l, m_r in zip(self.equilibria, left, right, strict=True)])
        exponent = -self.rates * climb[..., None]
        # 1 - e^x (1 - S), written so that nothing cancels where S = 0 and x is small
        return np.sum(np.log(agreement * np.exp(exponent) - np.expm1(exponent)), axis=-1)

    def merge(self, left, right, climb_l, climb_r):
        merged = []
        for q, rate, m_l, m_r in zip(self.equilibria, self.rates, left, right, strict=True):
            up_l = 1 - np.exp(-rate * climb_l) * (1 - m_l)
            up_r = 1 - np.exp(-rate * climb_r) * (1 - m_r)
            z = 1 - np.exp(-rate * (climb_l + climb_r)) * (1 - np.sum(q * m_l * m_r))
            merged.append(up_l * up_r / z)
        return merged

    def root_log_density(self, message):
        return 0.0  # messages are likelihood ratios already


class OrderedColumns(CategoricalColumns):
    """Messages over ordered levels, which climb by right eigenvectors of the generator."""

    def __init__(self, process, X):
        super().__init__(process, X)
        self.modes = []
        for q in self.equilibria:
            values, vectors = np.linalg.eig(exchange_rates(q))
            self.modes.append((values.real, vectors.real, np.linalg.inv(vectors.real)))

    def chances(self, x):
        shown = [ordered_transition(q, 1.0, -np.log1p(-e)) for q, e in zip(self.equilibria, self.noises, strict=True)]
        return [np.ones(len(s)) if np.isnan(code) else s[:, int(code)] for code, s in zip(x, shown, strict=True)]

    def log_z(self, left, right, climb):
        total = 0.0
        for q, rate, m_l, m_r, modes in zip(self.equilibria, self.rates, left, right, self.modes, strict=True):
            values, vectors, inverse = modes
            terms = ((q * m_l) @ vectors) * (inverse @ m_r)
            total = total + np.log(np.exp(rate * np.asarray(climb)[..., None] * values) @ terms)
        return total

    def merge(self, left, right, climb_l, climb_r):
        merged = []
        for q, rate, m_l, m_r, modes in zip(self.equilibria, self.rates, left, right, self.modes, strict=True):
            values, vectors, inverse = modes
            joint = 1.0
            for message, climb in ((m_l, climb_l), (m_r, climb_r)):
                joint = joint * (vectors @ (np.exp(rate * climb * values) * (inverse @ message)))
            merged.append(joint / (q @ joint))
        return merged


class Lineage(NamedTuple):
    height: float
    messages: list  # one for every part


class Model:
    """A process settled on a table: its parts' messages side by side."""

    def __init__(self, process, X):
        self.tables = parts_of(process, X)
        kinds = {
            "Brownian": RealColumns,
            "OrnsteinUhlenbeck": StationaryColumns,
            "Multinomial": CategoricalColumns,
            "Ordered": OrderedColumns,
        }
        self.parts = [kinds[kind(part)](part, columns) for part, columns in self.tables]
        self.noisy = any(np.any(part.noise > 0) for part, _ in self.tables)
        # of Brownian columns: no cell is missing, and all have the same noise
        self.complete = not np.isnan(X).any() and all(np.ptp(part.noise) == 0 for part, _ in self.tables)
        self.complete &= len(self.tables) == 1

    def leaf(self, row):
        return Lineage(
            0.0, [part.leaf(columns[row]) for part, (_, columns) in zip(self.parts, self.tables, strict=True)]
        )

    def leaf_log_z(self, row):
        return sum(part.leaf_log_z(columns[row]) for part, (_, columns) in zip(self.parts, self.tables, strict=True))

    def log_z(self, a, b, h):
        climb = 2 * h - a.height - b.height
        with np.errstate(divide="ignore", invalid="ignore"):
            return sum(
                part.log_z(left, right, climb)
                for part, left, right in zip(self.parts, a.messages, b.messages, strict=True)
            )

    def log_cosine(self, a, b, h):
        """Return the log of Z over the norms of two messages, by the inner product Z; cells without noise have none."""
        norms = 0.0
        for lineage in (a, b):
            for part, message in zip(self.parts, lineage.messages, strict=True):
                if isinstance(part, StationaryColumns):
                    noisy = message[-1] > 1e-12
                    message = tuple(value[noisy] for value in message)
                if not isinstance(part, RealColumns) or self.complete:
                    norms += 0.5 * part.log_z(message, message, 0.0)
        return float(self.log_z(a, b, h)) - norms

    def slope(self, a, b, h):
        """Return the derivative of log Z, by a step along the imaginary axis: no cancellation, no step size."""
        return np.imag(self.log_z(a, b, h + 1e-30j)) / 1e-30

    def merge(self, a, b, h):
        climbs = h - a.height, h - b.height
        return Lineage(
            h,
            [
                part.merge(left, right, *climbs)
                for part, left, right in zip(self.parts, a.messages, b.messages, strict=True)
            ],
        )

    def root_log_density(self, a):
        return sum(part.root_log_density(message) for part, message in zip(self.parts, a.messages, strict=True))


class Climb(NamedTuple):
    log_likelihood: float
    log_ratios: np.ndarray


def climb(tree, X, process):
    """Return the likelihood and the log ratios of all merges by the recursion of messages; for trees of any size."""
    model = Model(process, X)
    lineages = [model.leaf(row) for row in range(tree.n_leaves)]
    total = sum(model.leaf_log_z(row) for row in range(tree.n_leaves))
    ratios = []
    for (left, right), h in zip(tree.children.tolist(), tree.heights[tree.n_leaves :], strict=True):
        a, b = lineages[left], lineages[right]
        merged = model.merge(a, b, h)
        log_z = float(model.log_z(a, b, h))
        total += log_z
        apart = model.root_log_density(a) + model.root_log_density(b)
        ratios.append(log_z + model.root_log_density(merged) - apart)
        lineages.append(merged)
    return Climb(total, np.array(ratios))


# -- greedy inference ----------------------------------------------------------------------------------------------

GRID = np.concatenate([[0.0], np.logspace(-8, 4, 601)])


class Peak(NamedTuple):
    value: float  # of log Z - c (h - lowest)
    height: float


def peaks(model, a, b, c, lowest):
    """Return all local maxima of ``log Z - c (h - lowest)`` over h >= lowest, the highest first."""
    heights = lowest + GRID
    values = model.log_z(a, b, heights) - c * GRID
    values[np.isnan(values)] = -np.inf  # 0 / 0 where two different values meet at once: the density is 0
    results = []
    if np.isfinite(values[0]) and not model.slope(a, b, lowest) > c:
        results.append(Peak(float(values[0]), lowest))
    for k in range(1, len(heights) - 1):
        if not (values[k] >= values[k - 1] and values[k] > values[k + 1]):
            continue
        answer = minimize_scalar(
            lambda h: c * (h - lowest) - float(model.log_z(a, b, h)),
            bounds=(heights[k - 1], heights[k + 1]),
            method="bounded",
            options={"xatol": 1e-9 * heights[k]},
        )
        h = float(answer.x)
        # A maximum is flat, so its place is known to half the digits only; the zero of the slope has them all.
        reach = min(1e-3 * (h - lowest), h - heights[k - 1], heights[k + 1] - h)
        ends = [model.slope(a, b, h - reach) - c, model.slope(a, b, h + reach) - c]
        if ends[0] > 0 > ends[1]:
            h = brentq(lambda x: model.slope(a, b, x) - c, h - reach, h + reach, xtol=1e-300, rtol=1e-14)
        results.append(Peak(float(model.log_z(a, b, h)) - c * (h - lowest), h))
    return sorted(results, reverse=True)


class Choice(NamedTuple):
    pair: tuple
    height: float
    clear: bool  # no other pair and no other maximum comes within the margin, but for ties that rounding cannot touch
    shortfall: dict  # by how much every pair is worse than the best one
    n_peaks: int  # largest number of distinct maxima of any pair


CUT_OFF = -1e6  # below every height; pairs that are cut off are told apart to nine digits
EQUAL = -2e6  # of equal lineages, which merge first


def are_equal(X, rows, others, noisy):
    """Return whether two lineages have the same message: all rows are equal and, if they have noise and cells, equally many."""
    both = np.asarray(X)[[*rows, *others]]
    same = np.array_equal(both, np.broadcast_to(both[0], both.shape), equal_nan=True)
    return same and (not noisy or len(rows) == len(others) or bool(np.isnan(both).all()))


class GreedyReference:
    """Weighs every live pair before every merge."""

    margin = 1e-9

    def __init__(self, process, X, rule):
        self.model = Model(process, X)
        self.rule = rule
        self.X = X
        self.live = {row: self.model.leaf(row) for row in range(len(X))}
        self.rows = {row: [row] for row in range(len(X))}
        self.next_node = len(X)
        self.clock = 0.0
        self._known = {}

    def _peaks(self, pair):
        a, b = self.live[pair[0]], self.live[pair[1]]
        m = len(self.live)
        c = 1.0 if self.rule == "rate1" else m * (m - 1) / 2
        lowest = self.clock if self.rule == "max-prob" else max(a.height, b.height)
        question = pair, c, lowest
        if question not in self._known:
            self._known[question] = peaks(self.model, a, b, c, lowest)
        return self._known[question]

    def choose(self):
        keys, heights, clear, most = {}, {}, True, 1
        for pair in combinations(sorted(self.live), 2):
            actual = self._peaks(pair)
            best = actual[0]
            # Two grid cells may lead to one and the same maximum.
            others = [peak for peak in actual if abs(peak.height - best.height) > 1e-6 * (1 + best.height)]
            most = max(most, 1 + len(others))
            clear &= all(peak.value < best.value - self.margin for peak in others)
            keys[pair] = -best.value if self.rule == "max-prob" else best.height
            heights[pair] = best.height
            if self.rule == "rate1" and self.model.noisy and self._is_cut_off(pair, best.height):
                # Such pairs merge before all others, those that are most alike first.
                a, b = self.live[pair[0]], self.live[pair[1]]
                keys[pair] = CUT_OFF - self.model.log_cosine(a, b, best.height)
            if self.rule == "rate1" and are_equal(self.X, *(self.rows[node] for node in pair), self.model.noisy):
                assert best.height == 0
                keys[pair] = EQUAL
        pair = min(keys, key=lambda each: (keys[each], each))
        baselines = [each for each in keys if each != pair and keys[each] - keys[pair] < self.margin]
        # Heights cut off at a lineage's own are equal to the last digit, so that the rule for ties decides.
        exact = all(self._is_cut_off(each, heights[each]) for each in [pair, *baselines])
        exact &= self.rule != "max-prob" and all(keys[each] == keys[pair] for each in baselines)
        clear &= not baselines or exact
        shortfall = {each: keys[each] - keys[pair] for each in keys}
        return Choice(pair, max(heights[pair], self.clock), clear, shortfall, most)

    def _is_cut_off(self, pair, height):
        return height == max(self.live[node].height for node in pair)

    def merge(self, pair, height):
        i, j = pair
        self.live[self.next_node] = self.model.merge(self.live.pop(i), self.live.pop(j), height)
        self.rows[self.next_node] = self.rows[i] + self.rows[j]
        self.next_node += 1
        self.clock = height
