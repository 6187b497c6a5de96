"""Independent stationary components of a complete table on a tree: their density, their states, and missing cells.

Every component has mean 0 and variance 1 at equilibrium, and its own noise; all have the same rate. A message about a state z
is, up to a constant, ``exp(b z - p z^2 / 2)``: `p` is its precision, and ``b / p`` its mean. Messages are in an array of shape
(6, nodes, components): p and b of the upward message at each node, of the same message at its parent, and of the downward
message, which includes the equilibrium.
"""

from __future__ import annotations

try:
    import cython
except ImportError:
    from ..._nocython import cython

from ... import _math as math
from ... import _stop as stop

P, B, UP_P, UP_B, DOWN_P, DOWN_B = 0, 1, 2, 3, 4, 5


def contrasts(children, heights, rate, Z, noise, room, gaps, spans):
    """Write the contrast of every merge, and last the state at the root, into `gaps`, and their variances into `spans`.

    A diffusion with an equilibrium is Brownian motion in the transformed height ``1 - exp(-2 rate h)``; the rest up to 1 at the
    root is the variance of its start. The contrasts are Felsenstein's, independent with mean 0. `gaps` and `spans` have the
    shape of Z; `room` (2, nodes, components) is scratch memory.
    """
    with cython.nogil:
        _contrasts(children, heights, rate, Z, noise, room, gaps, spans)


def _contrasts(children, heights, rate, Z, noise, room, gaps, spans):
    n, width = Z.shape[0], Z.shape[1]
    for i in range(n):
        for d in range(width):
            room[0, i, d] = Z[i, d]
            room[1, i, d] = noise[d]
    for k in range(n - 1):
        if k % stop.STRIDE == 0:
            stop.poll()
        left, right, node = children[k, 0], children[k, 1], n + k
        top = math.expm1(-2 * rate * heights[node])
        first, second = math.expm1(-2 * rate * heights[left]) - top, math.expm1(-2 * rate * heights[right]) - top
        for d in range(width):
            v, w = room[1, left, d] + first, room[1, right, d] + second
            spans[k, d] = v + w
            gaps[k, d] = room[0, left, d] - room[0, right, d]
            room[0, node, d] = room[0, left, d] - v / (v + w) * gaps[k, d]
            room[1, node, d] = v * w / (v + w)
    top = math.exp(-2 * rate * heights[2 * n - 2])
    for d in range(width):
        gaps[n - 1, d] = room[0, 2 * n - 2, d]
        spans[n - 1, d] = room[1, 2 * n - 2, d] + top


def send_up(children, heights, rate, Z, noise, messages):
    """Make the upward messages of all nodes, at the node and at its parent."""
    with cython.nogil:
        _send_up(children, heights, rate, Z, noise, messages)


def _send_up(children, heights, rate, Z, noise, messages):
    n, width = Z.shape[0], Z.shape[1]
    for i in range(n):
        for d in range(width):
            messages[P, i, d] = 1 / noise[d]
            messages[B, i, d] = Z[i, d] / noise[d]
    for k in range(n - 1):
        if k % stop.STRIDE == 0:
            stop.poll()
        _rise(children, heights, rate, n + k, 0, messages)
        _rise(children, heights, rate, n + k, 1, messages)
        _merge(children, n + k, messages)


def _rise(children, heights, rate, node, side, messages):
    """Send the message of one child of a node up to the node."""
    child = children[node - children.shape[0] - 1, side]
    survival, fresh = (
        math.exp(-rate * (heights[node] - heights[child])),
        -math.expm1(-2 * rate * (heights[node] - heights[child])),
    )
    for d in range(messages.shape[2]):
        share = survival / (1 + fresh * messages[P, child, d])
        messages[UP_P, child, d] = survival * share * messages[P, child, d]
        messages[UP_B, child, d] = share * messages[B, child, d]


def _merge(children, node, messages):
    k = node - children.shape[0] - 1
    left, right = children[k, 0], children[k, 1]
    for d in range(messages.shape[2]):
        messages[P, node, d] = messages[UP_P, left, d] + messages[UP_P, right, d]
        messages[B, node, d] = messages[UP_B, left, d] + messages[UP_B, right, d]


def _descend(children, heights, rate, node, side, messages):
    """Send the messages from above and from its sibling down to one child of a node."""
    k = node - children.shape[0] - 1
    child, sibling = children[k, side], children[k, 1 - side]
    survival, fresh = (
        math.exp(-rate * (heights[node] - heights[child])),
        -math.expm1(-2 * rate * (heights[node] - heights[child])),
    )
    for d in range(messages.shape[2]):
        total = messages[DOWN_P, node, d] + messages[UP_P, sibling, d]
        variance = survival * survival / total + fresh
        messages[DOWN_P, child, d] = 1 / variance
        messages[DOWN_B, child, d] = (
            survival * (messages[DOWN_B, node, d] + messages[UP_B, sibling, d]) / total / variance
        )


def send_down(children, heights, rate, messages):
    """Make the downward messages of all nodes, after `send_up`."""
    with cython.nogil:
        _begin_at_root(children, messages)
        for k in range(children.shape[0] - 1, -1, -1):
            if k % stop.STRIDE == 0:
                stop.poll()
            _descend(children, heights, rate, children.shape[0] + 1 + k, 0, messages)
            _descend(children, heights, rate, children.shape[0] + 1 + k, 1, messages)


def _begin_at_root(children, messages):
    """Set the downward message of the root to the equilibrium."""
    for d in range(messages.shape[2]):
        messages[DOWN_P, 2 * children.shape[0], d] = 1.0
        messages[DOWN_B, 2 * children.shape[0], d] = 0.0


def draw_states(children, heights, rate, messages, normals, states):
    """Draw the states of all nodes after `send_up`, from the root on; `normals` and `states` are (nodes, components)."""
    with cython.nogil:
        _draw_states(children, heights, rate, messages, normals, states)


def _draw_states(children, heights, rate, messages, normals, states):
    n, width = children.shape[0] + 1, messages.shape[2]
    node = 2 * n - 2
    for d in range(width):
        total = 1 + messages[P, node, d]
        states[node, d] = messages[B, node, d] / total + normals[node, d] / math.sqrt(total)
    for k in range(n - 2, -1, -1):
        if k % stop.STRIDE == 0:
            stop.poll()
        for side in range(2):
            child = children[k, side]
            survival, fresh = (
                math.exp(-rate * (heights[n + k] - heights[child])),
                -math.expm1(-2 * rate * (heights[n + k] - heights[child])),
            )
            for d in range(width):
                total = 1 + fresh * messages[P, child, d]
                middle = (survival * states[n + k, d] + fresh * messages[B, child, d]) / total
                states[child, d] = middle + math.sqrt(fresh / total) * normals[child, d]


def draw_missing(children, heights, rate, noise, basis, first, missing, normals, messages, X, Z, stack, stage, work):
    """Draw the missing cells of each row in turn, given its observed cells and all other rows, as the draws before left them.

    The messages are as `send_up` left them, and are so again for the new cells.

    Parameters
    ----------
    basis : (columns, components)
        ``Z = X @ basis``; X has mean 0.
    first : (rows + 1,)
        Where the missing cells of each row begin in `missing`, which holds their columns, and in `normals`.
    stack, stage : (nodes,)
        Room for the walk through the tree.
    work : (columns + 3, max(columns, components))
        Room for a triangular matrix and vectors.
    """
    with cython.nogil:
        _draw_missing(
            children, heights, rate, noise, basis, first, missing, normals, messages, X, Z, stack, stage, work
        )


def _draw_missing(children, heights, rate, noise, basis, first, missing, normals, messages, X, Z, stack, stage, work):
    n = children.shape[0] + 1
    _begin_at_root(children, messages)
    for node in range(2 * n - 1):
        stage[node] = 0
    depth = 0
    stack[0] = 2 * n - 2
    while depth >= 0:
        stop.poll()
        node = stack[depth]
        if node < n:
            if first[node + 1] > first[node]:
                _draw_row(node, noise, basis, first, missing, normals, messages, X, Z, work)
            depth -= 1
        elif stage[node] < 2:
            if stage[node] == 1:  # what the first child says is new
                _rise(children, heights, rate, node, 0, messages)
            _descend(children, heights, rate, node, stage[node], messages)
            stack[depth + 1] = children[node - n, stage[node]]
            stage[node] += 1
            depth += 1
        else:
            _rise(children, heights, rate, node, 1, messages)
            _merge(children, node, messages)
            depth -= 1


def _draw_row(row, noise, basis, first, missing, normals, messages, X, Z, work):
    """Draw the missing cells of a row, given its downward message; `work` holds the Cholesky factor of their precision."""
    start, count, width = first[row], first[row + 1] - first[row], noise.shape[0]
    gaps, weights, pull = work.shape[0] - 3, work.shape[0] - 2, work.shape[0] - 1
    for k in range(width):
        z = Z[row, k]
        for i in range(count):
            z -= X[row, missing[start + i]] * basis[missing[start + i], k]
        variance = 1 / messages[DOWN_P, row, k]
        work[gaps, k] = z - messages[DOWN_B, row, k] * variance
        work[weights, k] = 1 / (variance + noise[k])
        Z[row, k] = z
    for i in range(count):
        column = missing[start + i]
        total = 0.0
        for k in range(width):
            total -= basis[column, k] * work[weights, k] * work[gaps, k]
        work[pull, i] = total
        for j in range(i + 1):
            other = missing[start + j]
            total = 0.0
            for k in range(width):
                total += basis[column, k] * work[weights, k] * basis[other, k]
            for k in range(j):
                total -= work[i, k] * work[j, k]
            work[i, j] = math.sqrt(total) if i == j else total / work[j, j]
    for i in range(count):
        total = work[pull, i]
        for k in range(i):
            total -= work[i, k] * work[pull, k]
        work[pull, i] = total / work[i, i]
    for i in range(count - 1, -1, -1):
        total = work[pull, i] + normals[start + i]
        for k in range(i + 1, count):
            total -= work[k, i] * X[row, missing[start + k]]
        X[row, missing[start + i]] = total / work[i, i]
    for k in range(width):
        for i in range(count):
            Z[row, k] += X[row, missing[start + i]] * basis[missing[start + i], k]
        messages[B, row, k] = Z[row, k] / noise[k]
