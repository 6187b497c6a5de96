"""Estimates of the time and memory of a fit, from the size of its table, before work starts.

The formulas are fits by hand to measurements on one core, of tables from 100 to 100,000 rows and from 10 to 20,000 columns. They
are rough: half as much or three times as much is common, since pairs of rows that are far apart are ruled out early.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from ..process.base import MAX_EXACT_ROWS
from ..table.columns import Table, missing_cells
from ..table.messages import count

LARGE_SECONDS, LARGE_BYTES = 60.0, 2e9  # above which a fit is announced

# Seconds per row, per cell of complete and incomplete real columns, per state of a row, and per state of a pair of rows.
_ROW, _REAL_CELL, _HOLE_CELL, _DISTANT_HOLE_CELL = 7e-5, 1.7e-6, 4e-6, 1.8e-5
_STATE, _STATE_OF_PAIR = 2e-6, 3e-9
# Bytes of the program, per row, per real cell and per state of a row.
_PROGRAM_BYTES, _ROW_BYTES, _REAL_CELL_BYTES, _STATE_BYTES = 200e6, 500.0, 70.0, 36.0


class Estimate(NamedTuple):
    """Processor time and memory of a greedy fit."""

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


def estimate_fit(table: Table) -> Estimate:
    """Estimate the processor time and the memory of a greedy fit with default settings.

    Parameters
    ----------
    table : Table

    Returns
    -------
    Estimate
    """
    complete = not any(missing_cells(column).any() for column in table.real)
    n_states = sum(len(column.categories) for column in table.categorical)
    return _estimate(table.n_rows, len(table.real), n_states, complete)


def _estimate(n_rows: int, n_real: int, n_states: int, complete: bool) -> Estimate:
    cells, states = float(n_rows * n_real), float(n_rows * n_states)
    exact = n_rows <= MAX_EXACT_ROWS
    per_cell = _REAL_CELL if complete and not n_states else _HOLE_CELL if exact else _DISTANT_HOLE_CELL
    seconds = _ROW * n_rows + per_cell * cells + (n_rows * _STATE_OF_PAIR * states if exact else _STATE * states)
    return Estimate(seconds, _PROGRAM_BYTES + _ROW_BYTES * n_rows + _REAL_CELL_BYTES * cells + _STATE_BYTES * states)


def physical_memory() -> float | None:
    """Return the memory of this computer in bytes; None where it is not known."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):  # on Windows
        return None


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
