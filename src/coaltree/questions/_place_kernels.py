"""Many new rows against many places in a tree."""

from __future__ import annotations

from ..compiled import kernel

CHUNK = 512  # places whose numbers stay in the processor's cache while rows pass by


@kernel
def add_gaussian_logs(x, observed, means, half_precisions, log_constants, logs):
    """Add to logs[row, place] the log density of a row's observed real cells there.

    x and observed are (rows, columns), the three tables of the places are (columns, places).
    """
    n_places = means.shape[1]
    for first in range(0, n_places, CHUNK):
        last = min(first + CHUNK, n_places)
        n = last - first
        for row in range(x.shape[0]):
            out = logs[row, first:last]
            for d in range(x.shape[1]):
                if observed[row, d]:
                    value, mean = x[row, d], means[d, first:last]
                    half, constant = half_precisions[d, first:last], log_constants[d, first:last]
                    for k in range(n):
                        gap = value - mean[k]
                        out[k] += constant[k] - half[k] * gap * gap


@kernel
def spread_over_leaves(shares, nodes, heights, children, tree_heights, scratch, leaf_shares, merge_heights):
    """Add for each row its share of each leaf, and its expected merge height with each leaf.

    shares is (rows, places), of places on the tree's branches, whose node and height is given. A place counts for all leaves
    below it in equal parts. Above a place all leaves below it are as near; with others the row merges where
    they do. scratch is (6, nodes).
    """
    n = len(children) + 1
    root = 2 * n - 2
    own, own_height, below, share, expected = scratch[0], scratch[1], scratch[2], scratch[3], scratch[4]
    sizes = scratch[5]
    sizes[:n] = 1.0
    for k in range(n - 1):
        sizes[n + k] = sizes[children[k, 0]] + sizes[children[k, 1]]
    for row in range(shares.shape[0]):
        own[:] = 0.0
        own_height[:] = 0.0
        for p in range(len(nodes)):
            own[nodes[p]] += shares[row, p]
            own_height[nodes[p]] += shares[row, p] * heights[p]
        for node in range(n):
            below[node] = own[node]
        for k in range(n - 1):
            below[n + k] = own[n + k] + below[children[k, 0]] + below[children[k, 1]]
        share[root] = own[root] / sizes[root]
        expected[root] = own_height[root]
        for k in range(n - 2, -1, -1):
            for side in range(2):
                node, sibling = children[k, side], children[k, 1 - side]
                share[node] = share[n + k] + own[node] / sizes[node]
                expected[node] = expected[n + k] + own_height[node] + below[sibling] * tree_heights[n + k]
        for leaf in range(n):
            leaf_shares[row, leaf] += share[leaf]
            merge_heights[row, leaf] += expected[leaf]
