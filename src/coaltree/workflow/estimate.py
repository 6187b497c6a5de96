"""Estimates of the time and memory of a fit, from the size of its table and its settings, before work starts.

The formulas were fitted by hand to measurements on one core: of greedy fits of tables from 100 to 100,000 rows and 10 to 20,000
columns, and of samples of tables from 50 to 300 rows and 5 to 120 columns and states. They are rough: half as much or three
times as much is common, because pairs of rows that are far apart are ruled out early.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ..process.base import MAX_EXACT_ROWS
from ..table.columns import Table, missing_cells
from ..table.labels import count
from .settings import Settings

LARGE_SECONDS, LARGE_BYTES = 60.0, 2e9  # above these, the estimate is printed before the fit

# Seconds per row, per cell of complete and incomplete real columns, per state of a row, and per state of a pair of rows.
_ROW, _REAL_CELL, _HOLE_CELL, _DISTANT_HOLE_CELL = 7e-5, 1.7e-6, 4e-6, 1.8e-5
_STATE, _STATE_OF_PAIR = 2e-6, 3e-9
# Bytes of the program, per row, per real cell and per state of a row.
_PROGRAM_BYTES, _ROW_BYTES, _REAL_CELL_BYTES, _STATE_BYTES = 200e6, 500.0, 70.0, 36.0


# Seconds per move of a chain, and per number in a message and doubling of the rows; the same per pair of a particle.
_MOVE, _REAL_OF_MOVE, _STATE_OF_MOVE = 7e-6, 6e-8, 2e-8
_PARTICLE_PAIR, _REAL_OF_PARTICLE, _STATE_OF_PARTICLE = 8e-7, 2.5e-8, 8e-9
_NUMBER_BYTES = 8.0


class Estimate(NamedTuple):
    """Processor time and memory of a fit."""

    seconds: float
    n_bytes: float

    @property
    def is_large(self) -> bool:
        """Whether a user should know before the fit begins."""
        return self.seconds > LARGE_SECONDS or self.n_bytes > LARGE_BYTES

    def describe(self) -> str:
        """Return the estimate in words."""
        return f"about {_duration(self.seconds)} of processor time and {_size(self.n_bytes)} of memory"

    def remark(self, physical_bytes: float | None = None) -> str:
        """Return a sentence for a large fit.

        Parameters
        ----------
        physical_bytes : float, optional
            The memory of this computer.
        """
        words = f"The fit is expected to take {self.describe()}, as a rough estimate."
        if physical_bytes is not None and self.n_bytes > physical_bytes:
            words += f" This computer has {_size(physical_bytes)}: use a sample of the rows, or fewer columns."
        return words


def estimate_fit(table: Table, settings: Settings | None = None) -> Estimate:
    """Estimate the processor time and the memory of a fit.

    Parameters
    ----------
    table : Table
    settings : Settings, optional
        By default those of a greedy fit.

    Returns
    -------
    Estimate
    """
    complete = not any(missing_cells(column).any() for column in table.real)
    n_states = sum(len(column.categories) for column in table.categorical)
    greedy = _estimate(table.n_rows, len(table.real), n_states, complete)
    if settings is None or settings.inference == "greedy" or table.n_rows < 2:
        return greedy
    # A message has a mean, and a variance where cells are missing.
    n_numbers = len(table.real) * (1 if complete and not n_states else 2)
    add = _estimate_chains if settings.inference == "mcmc" else _estimate_particles
    return add(greedy, settings, table.n_rows, n_numbers, n_states)


def _estimate_chains(greedy: Estimate, settings: Settings, n_rows: int, n_numbers: int, n_states: int) -> Estimate:
    """Add the cost of Markov chains to that of the greedy fit from which they start."""
    from ..inference.mcmc import MAX_SECONDS, MOVES_PER_ROW, sample_bytes  # not needed for a greedy fit's dry run

    move = _MOVE + math.log2(n_rows) * (_REAL_OF_MOVE * n_numbers + _STATE_OF_MOVE * n_states)
    per_sample = MOVES_PER_ROW * n_rows * move * (1 + settings.n_heated)
    if isinstance(settings.n_samples, str):  # until they have converged, or the time limit is reached
        seconds = MAX_SECONDS if settings.max_seconds is None else float(settings.max_seconds)
        n_samples = max(seconds / (settings.n_chains * per_sample), 1.0)
    else:
        n_samples, seconds = settings.n_samples, settings.n_chains * settings.n_samples * per_sample
    n_bytes = settings.n_chains * (n_samples * sample_bytes(n_rows) + n_rows * _NUMBER_BYTES * (n_numbers + n_states))
    return Estimate(greedy.seconds + seconds, greedy.n_bytes + n_bytes)


def _estimate_particles(greedy: Estimate, settings: Settings, n_rows: int, n_numbers: int, n_states: int) -> Estimate:
    """Return the time and memory of sequential Monte Carlo."""
    from ..inference.mcmc import sample_bytes
    from ..inference.smc import particle_bytes

    pairs = {"prior-prior": n_rows, "race": 1.5 * n_rows**2}.get(settings.proposal, n_rows**3 / 6)
    pair = _PARTICLE_PAIR + _REAL_OF_PARTICLE * n_numbers + _STATE_OF_PARTICLE * n_states
    n_bytes = particle_bytes(n_rows, n_numbers + n_states, settings.proposal) * settings.n_particles
    n_bytes += settings.n_runs * settings.n_particles * sample_bytes(n_rows)
    return Estimate(settings.n_runs * settings.n_particles * pairs * pair, _PROGRAM_BYTES + n_bytes)


def _estimate(n_rows: int, n_real: int, n_states: int, complete: bool) -> Estimate:
    cells, states = float(n_rows * n_real), float(n_rows * n_states)
    exact = n_rows <= MAX_EXACT_ROWS
    per_cell = _REAL_CELL if complete and not n_states else _HOLE_CELL if exact else _DISTANT_HOLE_CELL
    seconds = _ROW * n_rows + per_cell * cells + (n_rows * _STATE_OF_PAIR * states if exact else _STATE * states)
    return Estimate(seconds, _PROGRAM_BYTES + _ROW_BYTES * n_rows + _REAL_CELL_BYTES * cells + _STATE_BYTES * states)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return count(max(1, round(seconds)), "second")
    if seconds < 90 * 60:
        return count(round(seconds / 60), "minute")
    if seconds < 48 * 3600:
        return count(round(seconds / 3600), "hour")
    return f"{seconds / 86400:,.0f} days"


def _size(n_bytes: float) -> str:
    return f"{n_bytes / 1e6:,.0f} MB" if n_bytes < 1e9 else f"{n_bytes / 1e9:,.1f} GB"
