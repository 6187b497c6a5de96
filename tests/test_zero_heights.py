"""The description of merges at height zero, where there are many."""

import numpy as np
import pytest

import coaltree as ct
from coaltree.report.text import describe_zero_heights
from coaltree.tree.arrays import count_zero_heights


def caterpillar(n, at_zero):
    """A tree whose first merges are at height 0."""
    children = [(0, 1)] + [(n + k, k + 2) for k in range(n - 2)]
    return ct.Tree(children[: n - 1], np.r_[np.zeros(n + at_zero), np.arange(1.0, n - at_zero)])


@pytest.mark.parametrize(
    ("n", "at_zero", "beginning"),
    [
        (21, 10, "10 of 20 merges are at height 0"),
        (21, 20, "20 of 20 merges are at height 0"),
        (20_000, 12_300, "12,300 of 19,999 merges are at height 0"),
        (21, 9, None),
        (20, 19, None),
        (2, 1, None),
    ],
)
def test_describe_zero_heights_reports_ties(n, at_zero, beginning):
    tree = caterpillar(n, at_zero)
    assert count_zero_heights(tree.merge_heights) == at_zero
    assert (describe_zero_heights(tree) or "").startswith(beginning or "")
    assert (describe_zero_heights(tree) is None) == (beginning is None)


def test_describe_zero_heights_of_one_leaf():
    tree = ct.Tree([], [0.0])
    assert count_zero_heights(tree.merge_heights) == 0
    assert describe_zero_heights(tree) is None
