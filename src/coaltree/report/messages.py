"""Sentences about a fit that the report shares with warnings, result files and the command line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..tree.traversal import count_zero_heights
from ..tree.tree import Tree

MIN_ROWS = 3  # fewer rows cannot be clustered
MIN_RECALL = 0.5  # share of neighbour lists with the best partner, below which users are warned
LOW_RECALL_ADVICE = (
    "many partners are about equally good, as with much noise, or the lists are too short; for up to some 50,000 rows try "
    "--search exact"
)
# In a smaller tree merges at height 0 are easy to see.
_MIN_LEAVES = 21


def describe_few_rows(n_rows: int) -> str:
    """Say why one or two rows cannot be clustered.

    Examples
    --------
    >>> describe_few_rows(1)
    'one row is too few to cluster: there is nothing to compare it with'
    """
    if n_rows == 1:
        return "one row is too few to cluster: there is nothing to compare it with"
    return "two rows are too few to cluster: they have one merge, and there is nothing to compare it with"


def describe_low_recall(recall: float | None) -> list[str]:
    """Warn if few neighbour lists contained the best partner.

    Parameters
    ----------
    recall : float or None
        The share of lists that did; None if unknown.

    Returns
    -------
    list of str
        One sentence, or none.

    Examples
    --------
    >>> describe_low_recall(0.9), describe_low_recall(None)
    ([], [])
    >>> describe_low_recall(0.02)[0][:54]
    'Only 2 % of the neighbour lists had the best partner: '
    """
    if recall is None or recall >= MIN_RECALL:
        return []
    return [f"Only {100 * recall:.0f} % of the neighbour lists had the best partner: {LOW_RECALL_ADVICE}."]


def describe_zero_heights(tree: Tree) -> str | None:
    """Say how many merges are at height 0, if most of them are.

    Examples
    --------
    >>> from coaltree import Tree
    >>> describe_zero_heights(Tree([[0, 1], [2, 3]], [0.0, 0.0, 0.0, 0.0, 1.0]))  # a small tree
    >>> merges = [[0, 1], *([k, 19 + k] for k in range(2, 21))]
    >>> describe_zero_heights(Tree(merges, [0.0] * 40 + [1.0]))
    '19 of 20 merges are at height 0: these rows are equal or differ by less than the noise'
    """
    at_zero, n_merges = count_zero_heights(tree.merge_heights), tree.n_leaves - 1
    if tree.n_leaves < _MIN_LEAVES or 2 * at_zero < n_merges:
        return None
    return f"{at_zero:,} of {n_merges:,} merges are at height 0: these rows are equal or differ by less than the noise"


def suggest_finer_tree(parameters: Mapping[str, Mapping[str, Any]], sampled: bool, noise: str, sampling: str) -> str:
    """Suggest how to separate rows that merge at height 0; an empty string if nothing helps.

    Parameters
    ----------
    parameters : mapping
        Parameters of every column, as ``parameters_`` of the estimators.
    sampled : bool
        Whether trees were sampled already.
    noise, sampling : str
        The options for less noise and for a sample of trees, as the user would write them.

    Examples
    --------
    >>> suggest_finer_tree({"x": {"noise_sd": 0.1}}, False, "noise=0.001", 'inference="smc"')
    'to separate them, try less noise (noise=0.001), or a sample of trees (inference="smc", for a few hundred rows)'
    >>> suggest_finer_tree({"x": {"noise_sd": 0.0}}, True, "noise=0.001", 'inference="smc"')
    ''
    """
    has_noise = any(own.get("noise_sd", 0.0) > 0 for own in parameters.values())
    options = [f"less noise ({noise})"] * has_noise
    options += [f"a sample of trees ({sampling}, for a few hundred rows)"] * (not sampled)
    return f"to separate them, try {', or '.join(options)}" if options else ""
