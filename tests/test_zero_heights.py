"""Rows that a tree does not tell apart are said to be so, where there are many."""

import numpy as np
import pytest

import coaltree as ct
from coaltree.tree.traversal import merges_at_zero, zero_heights


def caterpillar(n, at_zero):
    """A tree whose first merges are at height 0."""
    children = [(0, 1)] + [(n + k, k + 2) for k in range(n - 2)]
    return ct.Tree(children[: n - 1], np.r_[np.zeros(n + at_zero), np.arange(1.0, n - at_zero)])


@pytest.mark.parametrize(
    ("n", "at_zero", "told"),
    [
        (21, 10, "10 of 20 merges are at height 0"),
        (21, 20, "20 of 20 merges are at height 0"),
        (20_000, 12_300, "12,300 of 19,999 merges are at height 0"),
        (21, 9, None),
        (20, 19, None),
        (2, 1, None),
    ],
)
def test_when_it_is_told(n, at_zero, told):
    tree = caterpillar(n, at_zero)
    assert merges_at_zero(tree) == at_zero
    assert zero_heights(tree) == (told and f"{told}: those rows are the same or differ no more than the noise")


def test_one_leaf():
    tree = ct.Tree([], [0.0])
    assert merges_at_zero(tree) == 0
    assert zero_heights(tree) is None
