"""Limits of tables and files, checked before any work. The page "A messy table" of the documentation lists them."""

from __future__ import annotations

from ..errors import InputError

MAX_ROWS = 100_000_000
MAX_COLUMNS = 100_000
MAX_CELLS = 2_000_000_000
"""Most rows, columns and cells of a table."""

MAX_FILE_BYTES = 16 * 2**30
"""Most bytes of a file, after decompression."""

MAX_CATEGORIES = 1000
"""Most categories of a column of numbers or of a category type."""

MAX_TEXT_CATEGORIES = 100
"""Most categories of a text column. If there are more, the rarest are pooled."""

MAX_RAW_NUMBER = 1e100
"""Largest number in a real column without standardisation; the inverse is the smallest range of a column that varies."""

BYTES_PER_CELL = 8


def check_table_size(n_rows: float, n_columns: float) -> None:
    """Refuse a table that is too large.

    Parameters
    ----------
    n_rows, n_columns : int, or NaN if unknown

    Raises
    ------
    InputError
        With the memory that the numbers alone would take.
    """
    n_cells = n_rows * n_columns
    for n, limit, noun in (
        (n_rows, MAX_ROWS, "rows"),
        (n_columns, MAX_COLUMNS, "columns"),
        (n_cells, MAX_CELLS, "cells"),
    ):
        if n > limit:
            raise InputError(
                f"The table has {int(n):,} {noun}, and at most {limit:,} are supported. Its numbers alone would take "
                f"{n_cells * BYTES_PER_CELL / 2**30:,.0f} GiB: use a sample of the rows, or fewer columns."
            )


def check_file_size(n_bytes: int, source: str) -> None:
    """Refuse a file that is too large."""
    if n_bytes > MAX_FILE_BYTES:
        raise InputError(
            f"{source} has more than {MAX_FILE_BYTES / 2**30:,.3g} GiB, the largest size that is read: split it, or use a "
            "sample of the rows."
        )
