"""The posterior over trees of three or four leaves by enumeration of all histories and quadrature over their heights.

Written from the model's definitions, without messages: whole covariance matrices (of contrasts, where the root is flat) for
real columns, all states of the interior nodes for categorical ones. The tests check it against the likelihoods of
`reference.py`. Only `sampled` runs the library, to be compared with the truth.
"""

import math
from itertools import combinations, product
from typing import NamedTuple

import numpy as np

import reference
from coaltree.inference.results import normalize
from coaltree.inference.smc import Settings, sample_histories

POINTS = 28  # a dimension; evenly spread logarithms of the waiting times: masses of histories are right to 3e-5
LOWEST, HIGHEST = -13.0, 3.2


def histories(n):
    """Yield the children of every labelled history of n leaves."""

    def extend(live, merges):
        if len(live) == 1:
            yield merges
            return
        for a, b in combinations(live, 2):
            rest = [node for node in live if node not in (a, b)]
            yield from extend([*rest, n + len(merges)], [*merges, (a, b)])

    yield from extend(list(range(n)), [])


def common_heights(children, heights):
    """Return the heights of all pairs' common ancestors, shape (points, n, n); `heights` has a column a merge."""
    n = len(children) + 1
    below = [{leaf} for leaf in range(n)]
    common = np.zeros((len(heights), n, n))
    for k, (left, right) in enumerate(children):
        for i, j in product(below[left], below[right]):
            common[:, i, j] = common[:, j, i] = heights[:, k]
        below.append(below[left] | below[right])
    return common


def real_column(x, variance, noise, common):
    """Log density of the contrasts with the first observed row: the flat root takes the rest away."""
    rows = np.flatnonzero(~np.isnan(x))
    if len(rows) < 2:
        return np.zeros(len(common))
    first, others = rows[0], rows[1:]
    z = x[others] - x[first]
    to_first = common[:, others, first]
    covariance = to_first[:, :, None] + to_first[:, None, :] - common[:, others[:, None], others[None, :]]
    covariance = variance * (covariance + noise * (1 + np.eye(len(others))))
    _, log_det = np.linalg.slogdet(covariance)
    solved = np.linalg.solve(covariance, np.broadcast_to(z[:, None], (len(common), len(z), 1)))[:, :, 0]
    return -0.5 * (len(z) * reference.LOG_2PI + log_det + solved @ z)


def stationary_column(x, rate, mean, variance, noise, common):
    """Log density of the observed rows, which have a common equilibrium and are correlated by ``exp(-2 rate h)``."""
    rows = np.flatnonzero(~np.isnan(x))
    z = x[rows] - mean
    covariance = variance * (np.exp(-2 * rate * common[:, rows[:, None], rows[None, :]]) + noise * np.eye(len(rows)))
    _, log_det = np.linalg.slogdet(covariance)
    solved = np.linalg.solve(covariance, np.broadcast_to(z[:, None], (len(common), len(z), 1)))[:, :, 0]
    return -0.5 * (len(z) * reference.LOG_2PI + log_det + solved @ z)


def categorical_column(codes, rate, q, noise, children, heights):
    """Log probability of a column: the sum over all states of the interior nodes, and of leaves not observed.

    A cell is either a draw of the noise, whatever is above it, or the state that its lineage has come to.
    """
    n, K = len(codes), len(q)
    node_heights = np.hstack([np.zeros((len(heights), n)), heights])
    parent = {child: n + k for k, pair in enumerate(children) for child in pair}
    stay = {c: np.exp(-rate * (node_heights[:, p] - node_heights[:, c])) for c, p in parent.items()}
    free = [node for node in range(2 * n - 1) if node >= n or np.isnan(codes[node])]
    steps = {}  # by node, its state, and whether its parent has the same
    for c, state in product(parent, range(K)):
        for same in (True, False):
            step = stay[c] * same + (1 - stay[c]) * q[state]
            steps[c, state, same] = step if c in free else noise * q[state] + (1 - noise) * step

    def add_up(node, state, probability):
        """Sum over the states of this node and all below it in the order of nodes, given those above."""
        if node < 0:
            return probability
        above = state[parent[node]]
        total = 0.0
        for code in range(K) if node in free else [int(codes[node])]:
            total = total + add_up(node - 1, state | {node: code}, probability * steps[node, code, code == above])
        return total

    root = 2 * n - 2
    total = sum(add_up(root - 1, {root: state}, q[state]) for state in range(K))
    return np.log(total)


def log_likelihoods(children, heights, X, process):
    """Return log p(x | tree) for many heights of one history."""
    common = common_heights(children, heights)
    total = np.zeros(len(heights))
    for part, columns in reference.parts_of(process, X):
        if reference.kind(part) == "Brownian":
            for x, variance, noise in reference.columns_with(columns, part.variance, part.noise):
                total += real_column(x, variance, noise, common)
        elif reference.kind(part) == "OrnsteinUhlenbeck":
            for x, mean, variance, noise in reference.columns_with(columns, part.mean, part.variance, part.noise):
                total += stationary_column(x, part.rate, mean, variance, noise, common)
        else:
            equilibria = reference.equilibria_of(part, columns)
            with_parameters = reference.columns_with(columns, part.rate, part.noise)
            for (codes, rate, noise), q in zip(with_parameters, equilibria, strict=True):
                total += categorical_column(codes, rate, q, noise, children, heights)
                if part.ascertainment is not None:
                    left_out = range(len(q)) if part.ascertainment == "variable" else [0]
                    unseen = [np.where(np.isnan(codes), np.nan, state) for state in left_out]
                    logs = [categorical_column(state, rate, q, noise, children, heights) for state in unseen]
                    total -= np.log1p(-np.exp(logs).sum(axis=0))
    return total


class History(NamedTuple):
    children: list
    mass: float  # the integral of p(x, tree) over the heights
    moment: float  # the integral of p(x, tree) times the root's height


class Truth(NamedTuple):
    histories: list

    @property
    def evidence(self):
        return sum(history.mass for history in self.histories)


def integrals(X, process):
    """Integrate p(x, tree) over the heights of every history."""
    n = len(X)
    axis = np.linspace(LOWEST, HIGHEST, POINTS)
    logs = np.stack(np.meshgrid(*[axis] * (n - 1), indexing="ij"), axis=-1).reshape(-1, n - 1)
    waits = np.exp(logs)
    live = np.arange(n, 1, -1)
    log_prior = -(waits * (live * (live - 1) / 2)).sum(axis=1)
    log_cell = logs.sum(axis=1) + (n - 1) * np.log(axis[1] - axis[0])
    heights = np.cumsum(waits, axis=1)
    results = []
    for children in histories(n):
        mass = np.exp(log_likelihoods(children, heights, X, process) + log_prior + log_cell)
        results.append(History(children, mass.sum(), (mass * heights[:, -1]).sum()))
    return Truth(results)


def clades(children):
    n = len(children) + 1
    below = [frozenset([leaf]) for leaf in range(n)]
    for left, right in children:
        below.append(below[left] | below[right])
    return frozenset(below[n:])


def sampled(X, process, proposal, truth, n_runs=30, threshold=0.8, regrafts=0):
    """Return mean, standard error of the mean and true value of what runs of the sampler estimate without bias.

    That is the evidence, and times the evidence: the root's height, the probability of every first merge and topology.
    """
    estimates = {key: np.zeros(n_runs) for key in ["evidence", "root height"]}
    expected = dict.fromkeys(estimates, 0.0)
    settings = Settings(proposal, 1000, threshold, "systematic", regrafts)
    runs = [sample_histories(X, process, settings, seed, 1, None) for seed in range(n_runs)]
    shares = [normalize(run.particles.log_weights)[0] * math.exp(run.log_evidence) for run in runs]
    for seed, (run, share) in enumerate(zip(runs, shares, strict=True)):
        estimates["evidence"][seed] = share.sum()
        estimates["root height"][seed] = share @ run.particles.heights[:, -1]
    for children, mass, moment in truth.histories:
        expected["evidence"] += mass
        expected["root height"] += moment
        results = [
            share @ np.all(run.particles.children == children, axis=(1, 2))
            for run, share in zip(runs, shares, strict=True)
        ]
        for key in (("first", frozenset(children[0])), ("topology", clades(children))):
            expected[key] = expected.get(key, 0.0) + mass
            estimates[key] = estimates.get(key, 0.0) + np.array(results)
    return {
        key: (values.mean(), values.std(ddof=1) / math.sqrt(n_runs), expected[key]) for key, values in estimates.items()
    }
