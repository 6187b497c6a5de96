"""Refinement: never a worse tree, and in the end none that a single regraft would improve."""

import numpy as np
import pytest

import coaltree as ct
from named import refused

PROCESS = ct.Brownian(1.0, 0.05)


def table(n, seed=0):
    return PROCESS.simulate(ct.simulate_tree(n, seed), seed, n_columns=3)


def regraft(tree, subtree, branch, height):
    """Return the tree with a subtree hung from the branch above a node at some height, worked out on lists."""
    n, parent = tree.n_leaves, {}
    children = {n + k: pair for k, pair in enumerate(tree.children.tolist())}
    heights = dict(enumerate(tree.heights.tolist()))
    for node, pair in children.items():
        parent |= dict.fromkeys(pair, node)
    cut = parent[subtree]
    (sibling,) = (node for node in children[cut] if node != subtree)
    if cut in parent:
        above = parent[cut]
        children[above] = [sibling if node == cut else node for node in children[above]]
        parent[sibling] = above
    else:
        del parent[sibling]
    if branch in parent:
        above = parent[branch]
        children[above] = [cut if node == branch else node for node in children[above]]
    children[cut], heights[cut] = [branch, subtree], height
    order = sorted(children, key=lambda node: heights[node])
    number = {leaf: leaf for leaf in range(n)} | {node: n + k for k, node in enumerate(order)}
    return ct.Tree(
        [[number[child] for child in children[node]] for node in order],
        [0.0] * n + [heights[node] for node in order],
    )


def places(tree, subtree):
    """Yield branches and heights at which a subtree might hang, from 25 heights on each branch."""
    n, parent = tree.n_leaves, {}
    for k, pair in enumerate(tree.children.tolist()):
        parent |= dict.fromkeys(pair, n + k)
    below, waiting = set(), [subtree]
    while waiting:
        node = waiting.pop()
        below.add(node)
        if node >= n:
            waiting += tree.children[node - n].tolist()
    cut = parent[subtree]
    root = tree.n_nodes - 1
    for branch in set(range(tree.n_nodes)) - below - {cut}:
        above = parent.get(branch, None)
        if above == cut:
            above = parent.get(cut, None)
        low = max(tree.heights[branch], tree.heights[subtree])
        high = tree.heights[above] if above is not None else tree.heights[root] + 3
        if low < high:
            for height in np.linspace(low, high, 27)[1:-1]:
                yield branch, height


@pytest.mark.parametrize("seed", range(3))
def test_refined_tree_is_local_maximum(seed):
    X = table(7, seed)
    start = ct.simulate_tree(7, seed + 100)
    assert ct.log_joint(regraft(start, 0, start.n_nodes - 2, start.heights[-1] * 0.999), X, PROCESS) < 0
    better = ct.refine(start, X, PROCESS)
    assert better.log_joint > ct.log_joint(start, X, PROCESS) + 1
    assert better.log_joint == pytest.approx(ct.log_joint(better.tree, X, PROCESS))
    tried = 0
    for subtree in range(better.tree.n_nodes - 1):
        for branch, height in places(better.tree, subtree):
            tried += 1
            other = regraft(better.tree, subtree, branch, height)
            assert ct.log_joint(other, X, PROCESS) < better.log_joint + 1e-5
    assert tried > 1000


def test_refine_improves_greedy_tree_reproducibly():
    X = table(60)
    result = ct.greedy(X, PROCESS)
    passes = []
    better = ct.refine(result.tree, X, PROCESS, progress=lambda moved, log_joint: passes.append(log_joint))
    assert better.log_joint > result.log_joint + 1
    assert passes == sorted(passes)
    assert passes[-1] == pytest.approx(better.log_joint)
    assert ct.refine(result.tree, X, PROCESS).tree == better.tree
    again = ct.refine(better.tree, X, PROCESS)
    assert again.log_joint == pytest.approx(better.log_joint, abs=1e-4)


def test_refine_keeps_optimal_tree():
    one = ct.Tree(np.zeros((0, 2), dtype=int), [0.0])
    assert ct.refine(one, [[1.0]], PROCESS).tree == one
    X = [[0.0, 1.0], [3.0, 1.0]]
    two = ct.greedy(X, ct.Brownian()).tree
    assert ct.refine(two, X, ct.Brownian()).tree.heights[-1] == pytest.approx(two.heights[-1], rel=1e-3)


def test_refine_of_equal_rows():
    X = np.repeat(table(4), 5, axis=0)
    result = ct.greedy(X, PROCESS)
    better = ct.refine(result.tree, X, PROCESS)
    assert better.log_joint >= result.log_joint
    assert np.all(np.diff(better.tree.merge_heights) >= 0)


def test_refine_keeps_leaf_names():
    tree = ct.simulate_tree(5, 0, leaf_names=list("vwxyz"))
    assert ct.refine(tree, table(5), PROCESS).tree.leaf_names == tuple("vwxyz")


def test_refine_rejects_wrong_shapes():
    with refused("X 4 rows tree 5 leaves"):
        ct.refine(ct.simulate_tree(5, 0), table(4), PROCESS)
