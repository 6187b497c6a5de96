"""The models of characters: sites of an alignment, morphological characters, cognate sets.

A partition has one rate, around which those of its sites may vary (Yang, 1994). Its states are equally likely (Jukes and Cantor,
1969; Lewis's Mk, 2001), or have frequencies that are fitted or sampled (Felsenstein, 1981). There is no noise: a cell shows the
state of its taxon.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..table.character_columns import Partition
from .base import Process
from .categorical_columns import smoothed_shares
from .mixed import Mixed
from .multinomial import Multinomial
from .site_rates import N_CATEGORIES

FloatArray = NDArray[np.float64]

FIRST_SHAPE = 1.0  # of the rates of sites, the mean of its prior
EQUAL_SHARES = ("jc", "mk")
"""The models whose states are equally likely."""


def has_equal_shares(model: str | None, datatype: str) -> bool:
    """Return whether states are equally likely: as the model says, by default for standard characters only.

    What state 0 of a standard character is differs from one character to the next.
    """
    return datatype == "standard" if model is None else model in EQUAL_SHARES


def with_shares(process: Process, codes: FloatArray, n_states: Sequence[int]) -> Process:
    """Return a process whose open equilibria have all states of the columns, also those that do not occur.

    Parameters
    ----------
    process : Process
    codes : ndarray of shape (n, D)
    n_states : sequence of int
        Of each column; 0 for real columns.
    """
    if isinstance(process, Mixed) and process.n_columns == len(n_states):
        parts = (
            (with_shares(part, codes[:, columns], [n_states[d] for d in columns]), columns)
            for part, columns in process.parts
        )
        return Mixed(*parts)
    if not isinstance(process, Multinomial) or process.equilibrium is not None or not all(n_states):
        return process
    if process.share_equilibrium:
        return process.replace(equilibrium=[smoothed_shares(codes.ravel(), max(n_states))] * len(n_states))
    return process.replace(equilibrium=[smoothed_shares(codes[:, d], k) for d, k in enumerate(n_states)])


def partition_process(
    codes: FloatArray, n_states: Sequence[int], partition: Partition, model: str | None, rates: str | None
) -> Multinomial:
    """Return the process of a partition, with a first estimate of its rate.

    Parameters
    ----------
    codes : ndarray of shape (n, D)
    n_states : sequence of int
        Number of states of each column. Where columns differ, as standard characters do, they have the same rate of changes.
    partition : Partition
    model : {"jc", "f81", "mk"} or None
        By default "mk" for standard characters and "f81" for all others.
    rates : {"equal", "gamma"} or None
        How rates vary across sites; by default they are equal.
    """
    if has_equal_shares(model, partition.datatype):
        flat = {k: np.full(k, 1 / k) for k in set(n_states)}
        changes = np.array([k / (k - 1) for k in n_states])
        relative = changes / changes.min() if len(flat) > 1 else None
        process = Multinomial(
            1.0,
            [flat[k] for k in n_states],
            ascertainment=partition.ascertainment,
            share_equilibrium=relative is None,
            hold_equilibrium=True,
            relative_rate=relative,
        )
    else:
        shares = smoothed_shares(codes.ravel(), n_states[0])
        process = Multinomial(1.0, [shares] * len(n_states), 0.0, partition.ascertainment, True)
    process = process.replace(rate=first_rate(codes, process), partition=partition.name)
    if rates != "gamma":
        return process
    return process.replace(gamma_shape=FIRST_SHAPE, site_rate=np.ones(len(n_states)))


def first_rate(codes: FloatArray, process: Multinomial) -> float:
    """Estimate the rate from the share of the pairs of cells that differ.

    Two rows meet at an exponential height, so their cells differ with probability ``h 2 r / (1 + 2 r)``, where h is that of two
    draws from the equilibrium.
    """
    assert process.equilibrium is not None
    counts = np.stack([(codes == k).sum(axis=0) for k in range(max(map(len, process.equilibrium)))])
    total = counts.sum(axis=0)
    differing = float(np.sum(total**2 - np.sum(counts**2, axis=0)))
    diversity = np.array([1 - float(q @ q) for q in process.equilibrium])
    # One more pair that differs and one that does not: the estimate is never 0.
    share = (differing + 1) / (float(np.sum(diversity * total * (total - 1))) + 2)
    return share / (2 * max(1 - share, 0.05))


def character_process(
    codes: FloatArray,
    names: Sequence[str],
    n_states: Sequence[int],
    partitions: Sequence[Partition],
    model: str | None = None,
    rates: str | None = None,
) -> Process:
    """Return the process of a table of characters; see `partition_process`.

    Parameters
    ----------
    codes : ndarray of shape (n, D)
    names : sequence of str
        Of the columns, each of which is in one partition.
    n_states : sequence of int
        Of the columns.
    partitions : sequence of Partition
    model : {"jc", "f81", "mk"} or None
    rates : {"equal", "gamma"} or None
    """
    position = {name: d for d, name in enumerate(names)}
    parts = []
    for partition in partitions:
        columns = [position[name] for name in partition.columns]
        widths = [n_states[d] for d in columns]
        parts.append((partition_process(codes[:, columns], widths, partition, model, rates), columns))
    return parts[0][0] if len(parts) == 1 else Mixed(*parts)


def model_name(process: Process) -> str:
    """Return the usual name of the model of a partition, such as F81+G4."""
    n_states = {len(q) for q in getattr(process, "equilibrium", None) or ()}
    name = "F81" if not process.hold_equilibrium else "JC" if n_states == {4} else "Mk"
    return name if process.gamma_shape is None else f"{name}+G{N_CATEGORIES}"
