"""Merges at one height are spread as waiting times are expected to be."""

import math

import numpy as np
import pytest

import coaltree as ct
from coaltree.tree.coalescent import spread_heights


def flat_tree(children):
    return ct.Tree(children, np.zeros(2 * len(children) + 1))


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
