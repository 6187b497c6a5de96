"""Moves of a chain update its densities, order and messages as if everything were computed anew."""

from __future__ import annotations

import numpy as np
import pytest

import coaltree as ct
from coaltree.inference.chain import LOG_STAY, MOVES, UNIFORMS, VALLEY, Chain, without_ties
from coaltree.inference.kernels.height_draws import UNIFORMS as SWEEP_UNIFORMS
from coaltree.inference.kernels.moves import make_moves

N = 40
PROCESSES = {
    "general": ct.OrnsteinUhlenbeck(1.0, 0.0, 1.0, [0.01, 0.1, 0.2, 0.5, 1.0]),
    "complete": ct.OrnsteinUhlenbeck(1.0, 0.0, 1.0, 0.1),
    "brownian": ct.Brownian(variance=1.0, noise=[0.01, 0.1, 0.2, 0.5, 1.0]),
    "sites": ct.Multinomial(1.0, [[0.25] * 4] * 5),
    "sites of several rates": ct.Multinomial([0.5, 1.0, 1.5, 2.0, 2.5], [[0.2, 0.3, 0.5]] * 5),
}
VALLEYS = (0.2, VALLEY, np.inf)


@pytest.mark.parametrize("kind", PROCESSES)
@pytest.mark.parametrize(
    ("move", "valley"), [*((move, VALLEY) for move in MOVES), *(("all", value) for value in VALLEYS)]
)
def test_moves_keep_density_order_and_messages_up_to_date(kind, move, valley):
    rng = np.random.default_rng(0)
    tree = ct.simulate_tree(N, random_state=1)
    process = PROCESSES[kind].resolve(PROCESSES[kind].simulate(tree, 2, n_columns=5))
    X = process.simulate(tree, 2, n_columns=5)
    if kind in ("general", "sites"):
        X[rng.random(X.shape) < 0.1] = np.nan
    chain = Chain(X, process, without_ties(tree, rng))
    forest, history = chain._forest, chain._history
    before = np.array(history.ladder)
    shares = np.cumsum([float(value == move) for value in MOVES]) if move != "all" else np.linspace(0.2, 1.0, 5)
    tried, accepted = np.zeros(len(MOVES), dtype=np.intp), np.zeros(len(MOVES), dtype=np.intp)
    log_joint = make_moves(
        forest,
        history,
        chain._segments,
        shares,
        LOG_STAY,
        valley,
        0.3,
        rng.random((300, UNIFORMS)),
        rng.random((300, 2 * (N - 1), SWEEP_UNIFORMS)),
        chain._log_joint,
        tried,
        accepted,
    )
    assert accepted.sum() > 10
    assert np.any(before != history.ladder)
    ladder, live = np.array(history.ladder), np.arange(N, 1, -1)
    assert ladder == pytest.approx(np.sort(np.asarray(forest.height)[N : 2 * N - 1]), rel=1e-12)
    area = np.cumsum(live * np.diff(ladder, prepend=0.0))
    assert np.asarray(history.area) == pytest.approx(area, rel=1e-11)
    nodes = slice(N, 2 * N - 1)
    mean, spread, least, state = (
        np.array(value)[nodes] for value in (forest.mean, forest.spread, forest.least, forest.state)
    )
    chain._update_log_joint()
    assert log_joint == pytest.approx(chain._log_joint, rel=1e-9, abs=1e-9)
    assert mean == pytest.approx(np.asarray(forest.mean)[nodes], rel=1e-9, abs=1e-9)
    assert spread == pytest.approx(np.asarray(forest.spread)[nodes], rel=1e-9)
    assert least == pytest.approx(np.asarray(forest.least)[nodes], rel=1e-9)
    assert state == pytest.approx(np.asarray(forest.state)[nodes], rel=1e-9, abs=1e-9)
