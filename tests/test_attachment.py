"""Attachment points of a new leaf under the prior, against quadrature and simulated coalescents."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import quad

from coaltree.tree.coalescent import Survival, attachment_points, simulate_tree
from coaltree.tree.edit import without_leaves
from coaltree.tree.tree import Tree


@st.composite
def trees(draw, most=12):
    """Trees from the coalescent of all sizes, some of their first merges at height 0."""
    n = draw(st.integers(1, most))
    tree = simulate_tree(n, draw(st.integers(0, 2**32 - 1)))
    heights = tree.heights * draw(st.sampled_from([1.0, 1e-6, 50.0]))
    heights[: n + draw(st.integers(0, n - 1))] = 0.0
    return Tree(tree.children, heights)


def exposure(tree, h):
    """The integral of the number of lineages from 0 to h: the length of all branches and the stem below h."""
    tops = np.append(tree.heights[tree.parents[:-1]], np.inf)
    return float(np.sum(np.clip(tops, 0, h) - np.clip(tree.heights, 0, h)))


def quad_mass(tree, low, high, power=0):
    """The integral of ``h**power exp(-exposure)`` by quadrature, from merge to merge."""
    # where 40 units of exposure have passed, exp(-40) is left
    end = min(high, low + 40.0)
    knots = [low, *(float(h) for h in tree.merge_heights if low < h < end), end]
    total = 0.0
    for a, b in pairwise(knots):
        # the density may fall off within a tiny part of the piece
        edges = np.unique([a, *(a + np.array([0.01, 0.1, 1.0, 4.0]) / tree.n_leaves), b])
        edges = edges[(edges >= a) & (edges <= b)]
        total += sum(quad(lambda h: h**power * np.exp(-exposure(tree, h)), *ends)[0] for ends in pairwise(edges))
    return total


def branch_masses(tree, points):
    return np.bincount(points.nodes, np.exp(points.log_masses), minlength=tree.n_nodes)


@given(trees(), st.sampled_from([0.0, 1e-3, 1.0, 100.0]), st.sampled_from([0.3, 1.1]))
def test_attachment_point_masses_sum_to_one(tree, shift, width):
    points = attachment_points(tree, shift, width)
    assert np.exp(points.log_masses).sum() == pytest.approx(1.0, abs=1e-9)
    tops = np.append(tree.heights[tree.parents[:-1]], np.inf)
    assert np.all(np.diff(points.nodes) >= 0)
    assert np.all((points.heights >= tree.heights[points.nodes]) & (points.heights <= tops[points.nodes]))


@given(trees(most=6))
def test_branch_masses_match_quadrature(tree):
    masses = branch_masses(tree, attachment_points(tree))
    tops = np.append(tree.heights[tree.parents[:-1]], np.inf)
    for node in range(tree.n_nodes):
        expected = quad_mass(tree, tree.heights[node], tops[node])
        assert masses[node] == pytest.approx(expected, rel=1e-6, abs=1e-10), node


@given(trees(most=6), st.floats(0, 3), st.floats(0, 3))
def test_interval_masses_match_quadrature(tree, a, b):
    scale = tree.heights[-1] if tree.heights[-1] > 0 else 1.0
    low, high = sorted([a * scale, b * scale])
    survival = Survival(tree)
    assert survival.log_survival(np.array([low]))[0] == pytest.approx(-exposure(tree, low), rel=1e-9, abs=1e-12)
    actual = survival.log_mass(np.array([low, low]), np.array([high, np.inf]))
    assert np.exp(actual[0]) == pytest.approx(quad_mass(tree, low, high), rel=1e-6, abs=1e-10)
    assert np.exp(actual[1]) == pytest.approx(quad_mass(tree, low, np.inf), rel=1e-6, abs=1e-10)


@pytest.mark.parametrize("n", [1, 2, 5, 30])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 50.0])
def test_attachment_point_moments_match_quadrature(n, scale):
    """The points represent their cells: they give the means of h and of 1 / (h + shift) under the prior."""
    simulated = simulate_tree(n, n)
    tree = Tree(simulated.children, scale * simulated.heights)
    # the integral of k h exp(-exposure) is that of exp(-exposure)
    expected = quad_mass(tree, 0.0, np.inf)
    points = attachment_points(tree)
    assert np.sum(np.exp(points.log_masses) * points.heights) == pytest.approx(expected, rel=2e-3)


def test_attachment_points_of_one_and_two_leaves():
    one = attachment_points(Tree([], [0.0]))
    assert np.all(one.nodes == 0)
    assert np.sum(np.exp(one.log_masses) * one.heights) == pytest.approx(1.0, rel=1e-4)  # an exponential of rate 1
    for h in (0.0, 1e-8, 0.3, 20.0):
        tree = Tree([[0, 1]], [0.0, 0.0, h])
        side = -np.expm1(-2 * h) / 2
        np.testing.assert_allclose(
            branch_masses(tree, attachment_points(tree)), [side, side, np.exp(-2 * h)], rtol=1e-9
        )


def test_attachment_prior_matches_simulated_coalescent():
    """The prior is what Kingman's coalescent says of one leaf given all others.

    Put all places in a row, branch by branch: the probability of those before the one where the leaf is has a uniform
    distribution, whatever the tree of the others, and so has the probability of all places higher up. Chi-squared with p > 1e-6
    each. Then how often the leaf is on each branch against the sum of its masses; every draw has masses of its own, which
    makes the statistic smaller than chi-squared, if anything: p > 1e-6 is a false alarm at most once in a million.
    """
    rng = np.random.default_rng(0)
    n, count = 4, 1000
    before, above = [], []
    counts, expected = np.zeros(2 * n - 1), np.zeros(2 * n - 1)
    for _ in range(count):
        whole = simulate_tree(n + 1, rng)
        merge = int(whole.parents[n])
        sibling = int(whole.children[merge - n - 1].sum()) - n
        h = whole.heights[[merge]]
        clade = set(whole.leaves_below(sibling).tolist())
        rest = without_leaves(whole, [n])
        node = [set(rest.leaves_below(k).tolist()) for k in range(rest.n_nodes)].index(clade)
        masses, survival = branch_masses(rest, attachment_points(rest)), Survival(rest)
        counts[node] += 1
        expected += masses
        before.append(masses[:node].sum() + np.exp(survival.log_mass(rest.heights[[node]], h)[0]))
        above.append(np.exp(survival.log_survival(h)[0]))
    for values in (before, above):
        shares = np.histogram(values, bins=20, range=(0, 1))[0]
        assert shares.sum() == count
        assert stats.chisquare(shares).pvalue > 1e-6
    assert stats.chisquare(counts, expected).pvalue > 1e-6
