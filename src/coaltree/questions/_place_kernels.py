"""Many new rows against many places in a tree.

Places come in groups, a row looks at some of them: pair p is a row and a group, its numbers stand in row p of an array that
is as wide as a group may be. Places of group g are those from starts[g] to stops[g].
"""

from __future__ import annotations

import math

import numpy as np

from ..compiled import jit, kernel

BINS_A_NAT, BINS = 8, 1024  # of the logarithms of bounds


@kernel
def add_logs(
    chosen, slots, pair_rows, x, observed, states, masses, means, halves, constants, log_probabilities, least, logs
):
    """Fill logs[p] for chosen pairs with the log of prior times likelihood, not below `least`, at the places of a slot each."""
    for k in range(len(chosen)):
        p, slot = chosen[k], slots[k]
        row, out, mass = pair_rows[p], logs[p], masses[slot]
        n = len(out)
        for i in range(n):
            out[i] = mass[i]
        for d in range(x.shape[1]):
            if observed[row, d]:
                value, mean, half, constant = x[row, d], means[slot, d], halves[slot, d], constants[slot, d]
                for i in range(n):
                    gap = value - mean[i]
                    out[i] += constant[i] - half[i] * gap * gap
        for d in range(states.shape[1]):
            if states[row, d] >= 0:
                own = log_probabilities[slot, states[row, d]]
                for i in range(n):
                    out[i] += own[i]
        for i in range(n):
            if out[i] < least and mass[i] > -np.inf:
                out[i] = least


@kernel
def summarise(
    masses, means, halves, log_probabilities, log_mass, low, high, least_sd, largest_sd, unknown, largest, first
):
    """Fill the summaries of groups from `first` on."""
    for slot in range(len(masses)):
        g = first + slot
        top = masses[slot].max()
        total = 0.0
        for i in range(masses.shape[1]):
            total += math.exp(masses[slot, i] - top)
        log_mass[g] = top + math.log(total)
        for d in range(means.shape[1]):
            least_half, largest_half = np.inf, 0.0
            low[d, g], high[d, g], unknown[d, g] = np.inf, -np.inf, False
            for i in range(means.shape[2]):
                half = halves[slot, d, i]
                if half == 0:
                    unknown[d, g] = True
                    continue
                low[d, g] = min(low[d, g], means[slot, d, i])
                high[d, g] = max(high[d, g], means[slot, d, i])
                least_half, largest_half = min(least_half, half), max(largest_half, half)
            if largest_half == 0:  # nothing is known at any place; a gap without end makes what is known impossible
                least_half = largest_half = 0.5
            least_sd[d, g], largest_sd[d, g] = math.sqrt(0.5 / largest_half), math.sqrt(0.5 / least_half)
        for s in range(log_probabilities.shape[1]):
            largest[s, g] = log_probabilities[slot, s].max()


@kernel
def bound_groups(x, observed, states, log_mass, low, high, least_sd, largest_sd, unknown, largest, least, out):
    """Fill out[row, group] with what the log of prior times likelihood, added up over the group, cannot exceed."""
    constant = -0.5 * math.log(2 * math.pi)
    for row in range(x.shape[0]):
        own = out[row]
        own[:] = log_mass
        for d in range(x.shape[1]):
            if not observed[row, d]:
                continue
            value = x[row, d]
            for g in range(len(own)):
                gap = max(low[d, g] - value, value - high[d, g], 0.0)
                sd = min(max(gap, least_sd[d, g]), largest_sd[d, g])  # the one that makes the gap most likely
                z = gap / sd
                density = constant - math.log(sd) - 0.5 * z * z
                own[g] += max(density, 0.0) if unknown[d, g] else density
        for d in range(states.shape[1]):
            if states[row, d] >= 0:
                own += largest[states[row, d]]
        for g in range(len(own)):
            own[g] = max(own[g], least)


@kernel
def find_needed(bounds, log_totals, log_neglected, needed):
    """Say for each row which groups have to be looked at: the others' bounds add up to a negligible share of its total."""
    sums = np.empty(BINS)
    for row in range(len(bounds)):
        own, cut = bounds[row], log_totals[row] + log_neglected
        sums[:] = 0.0
        for g in range(len(own)):
            if own[g] < cut:
                sums[_bin(own[g] - cut)] += math.exp(own[g] - cut)
        last, total = BINS - 1, 0.0
        while last >= 0 and total + sums[last] < 1.0:
            total += sums[last]
            last -= 1
        for g in range(len(own)):
            needed[row, g] = own[g] >= cut or _bin(own[g] - cut) <= last


@jit
def _bin(below):
    return int(min(-below * BINS_A_NAT, BINS - 1.0))


@kernel
def add_moments(
    chosen, slots, pair_rows, shares, means, halves, probabilities, weight, mean, square, unknown, probability
):
    """Add chosen pairs to mixtures, one for each row: weight, mean, squares about it, share of what is unknown, probabilities."""
    width = shares.shape[1]
    for k in range(len(chosen)):
        p, slot = chosen[k], slots[k]
        row, share = pair_rows[p], shares[p]
        more = share.sum()
        if more == 0:
            continue
        before = weight[row]
        weight[row] = before + more
        for d in range(means.shape[1]):
            own, half = means[slot, d], halves[slot, d]
            center = 0.0
            for i in range(width):
                center += share[i] * own[i]
            center /= more
            squares, missing = 0.0, 0.0
            for i in range(width):
                gap = own[i] - center
                squares += share[i] * (gap * gap + (0.5 / half[i] if half[i] > 0 else 0.0))
                missing += 0.0 if half[i] > 0 else share[i]
            square[row, d] += squares
            unknown[row, d] += missing
            apart = center - mean[row, d]
            mean[row, d] += apart * (more / weight[row])
            square[row, d] += apart * apart * before * (more / weight[row])
        for s in range(probabilities.shape[1]):
            own = probabilities[slot, s]
            total = 0.0
            for i in range(width):
                total += share[i] * own[i]
            probability[row, s] += total


@kernel
def attach(first_pairs, groups, shares, starts, stops, branches, heights, low, high, shortest, tails, sums, found):
    """Fill found[row] with the most probable branch, its probability, the mean height, and quantiles of the height.

    branches says for each place on which branch it counts, -1 on none. sums is 0 for each branch, and is left so.
    """
    for row in range(len(first_pairs) - 1):
        pairs = range(first_pairs[row], first_pairs[row + 1])
        width = shares.shape[1]
        stretches = np.empty((3, len(pairs) * width))
        begins, ends, densities = stretches[0], stretches[1], stretches[2]
        n = 0
        mean = 0.0
        for p in pairs:
            start = starts[groups[p]]
            for at in range(start, stops[groups[p]]):
                share = shares[p, at - start]
                if share == 0:
                    continue
                if branches[at] >= 0:
                    sums[branches[at]] += share
                mean += share * heights[at]
                # a place's share is spread evenly over the stretch that it stands for, and over a hair's breadth at least
                length = max(high[at] - low[at], shortest)
                begins[n], ends[n], densities[n] = low[at], low[at] + length, share / length
                n += 1
        best, most = 0, 0.0
        for p in pairs:
            for at in range(starts[groups[p]], stops[groups[p]]):
                branch = branches[at]
                if branch >= 0 and (sums[branch] > most or (sums[branch] == most and branch < best)):
                    best, most = branch, sums[branch]
        for p in pairs:
            for at in range(starts[groups[p]], stops[groups[p]]):
                if branches[at] >= 0:
                    sums[branches[at]] = 0.0
        found[row, 0], found[row, 1], found[row, 2] = best, min(most, 1.0), mean
        for k in range(len(tails)):
            found[row, 3 + k] = _quantile(tails[k], begins[:n].copy(), ends[:n].copy(), densities[:n].copy())


@jit
def _quantile(tail, begins, ends, densities):
    """Return where stretches of constant densities have so much below them, halving what it may be among.

    Arrays are worn out. Stretches that go over all of the interval left only count by their slope.
    """
    low, high = begins.min(), ends.max()
    below, slope = 0.0, 0.0
    n = len(begins)
    while n > 0:
        middle = n // 2
        edge = begins[middle] if low < begins[middle] < high else ends[middle]
        mass = below + slope * (edge - low)
        for k in range(n):
            mass += densities[k] * max(min(edge, ends[k]) - max(low, begins[k]), 0.0)
        if mass < tail:
            low, below = edge, mass
        else:
            high = edge
        left = 0
        for k in range(n):
            if begins[k] >= high or ends[k] <= low:
                continue
            if begins[k] <= low and ends[k] >= high:
                slope += densities[k]
                continue
            begins[left], ends[left], densities[left] = begins[k], ends[k], densities[k]
            left += 1
        n = left
    return min(low + (tail - below) / slope, high) if slope > 0 else high


@kernel
def add_merge_heights(
    groups, shares, starts, stops, ranks, heights, parent, size, own_heights, first_leaf, leaf_order, scratch, out
):
    """Add for each leaf the expected height at which a row merges with it, over the groups given, which are of one tree.

    Above a place all leaves below it are as near; with others the row merges where they do. Where a clade has no share its
    leaves are all as far. ranks are the nodes' places in depth-first order; parent, size (nodes at and below), own_heights and
    first_leaf are in it. scratch is (3, nodes); its first two rows are 0, and are left so.
    """
    below, height, expected = scratch[0], scratch[1], scratch[2]
    for p in range(len(groups)):
        start = starts[groups[p]]
        for at in range(start, stops[groups[p]]):
            share = shares[p, at - start]
            below[ranks[at]] += share
            height[ranks[at]] += share * heights[at]
    for i in range(len(size) - 1, 0, -1):
        if below[i] > 0:
            below[parent[i]] += below[i]
    expected[0] = height[0]
    i = 0
    while i < len(size):
        if size[i] == 1 or below[i] == 0:
            for k in range(first_leaf[i], first_leaf[i] + (size[i] + 1) // 2):
                out[leaf_order[k]] += expected[i]
            step = size[i]
        else:
            left = i + 1
            right = left + size[left]
            expected[left] = expected[i] + height[left] + below[right] * own_heights[i]
            expected[right] = expected[i] + height[right] + below[left] * own_heights[i]
            step = 1
        below[i] = height[i] = 0.0
        i += step


@kernel
def find_clusters(labels, size, first_leaf, leaf_order, clusters):
    """Fill for each node, in depth-first order, in which cluster all leaves below it are, -1 for none."""
    for i in range(len(size) - 1, -1, -1):
        if size[i] == 1:
            clusters[i] = labels[leaf_order[first_leaf[i]]]
        else:
            left = clusters[i + 1]
            clusters[i] = left if left == clusters[i + 1 + size[i + 1]] else -1


@kernel
def add_to_clusters(
    first_pairs, groups, shares, group_range, starts, stops, ranks, size, clusters, mixed, scratch, out
):
    """Add for each row its share of each cluster: a place counts for all leaves below it in equal parts.

    mixed are the nodes of several clusters; like ranks and clusters it is in depth-first order. scratch is 0 for each node,
    and is left so.
    """
    for row in range(len(first_pairs) - 1):
        for p in range(first_pairs[row], first_pairs[row + 1]):
            if groups[p] < group_range[0] or groups[p] >= group_range[1]:  # of another tree
                continue
            start = starts[groups[p]]
            for at in range(start, stops[groups[p]]):
                i, share = ranks[at], shares[p, at - start]
                if clusters[i] >= 0:
                    out[row, clusters[i]] += share
                else:
                    scratch[i] += share
        for i in mixed:
            if scratch[i] > 0:
                left = i + 1
                for child in (left, left + size[left]):
                    share = scratch[i] * ((size[child] + 1) / (size[i] + 1))  # as their numbers of leaves
                    if clusters[child] >= 0:
                        out[row, clusters[child]] += share
                    else:
                        scratch[child] += share
                scratch[i] = 0.0
