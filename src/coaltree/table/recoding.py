"""Categories of new rows, found among those of the fit."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from .cells import Category, IntArray
from .wording import count

Meaning: TypeAlias = float | str | None


def category_finder(known: Sequence[Category]) -> Callable[[Category], int]:
    """Find out which known category a value is, of whatever type it comes.

    The same column of a file is text in one file and numbers, or truth values, in another that happens to hold
    nothing else. Text and text are the same only letter by letter: 7 and 007 may be two categories.

    Parameters
    ----------
    known : sequence
        The categories.

    Returns
    -------
    callable
        Gives the position in `known` of a value; -1 if it is not among them.
    """
    by_value = {value: code for code, value in enumerate(known)}
    by_text = {str(value): code for code, value in enumerate(known)}
    by_meaning: dict[tuple[bool, Meaning], int] = {}
    for code, value in enumerate(known):
        by_meaning.setdefault((isinstance(value, str), _meaning(value)), code)

    def find(value: Category) -> int:
        code = by_value.get(value, by_text.get(str(value), -1))
        meaning = _meaning(value)
        if code >= 0 or meaning is None:
            return code
        return by_meaning.get((not isinstance(value, str), meaning), -1)

    return find


def _meaning(value: Category) -> Meaning:
    """Bring a number and its text, or a truth value and its text, to the same thing; None for other text."""
    text = str(value).lower()
    if text in ("true", "false"):
        return text
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    # Python reads 1_0 as ten, and people do not.
    return number if math.isfinite(number) and "_" not in text else None


def recode(
    codes: IntArray, categories: Sequence[Category], known: Sequence[Category]
) -> tuple[IntArray, IntArray, list[str]]:
    """Encode a column by the categories of the fit.

    Parameters
    ----------
    codes : ndarray of int, shape (n_rows,)
        Codes of the cells; -1 is missing.
    categories : sequence
        What the codes stand for.
    known : sequence
        The categories of the fit.

    Returns
    -------
    codes : ndarray of int, shape (n_rows,)
        Positions in `known`; -1 is missing or not among them.
    unseen : ndarray of int
        Rows of the cells that are not missing and hold none of the known categories.
    found : list of str
        The categories that are not known, each with the number of its rows.
    """
    new_codes = list(map(category_finder(known), categories))
    # The last entry is what the code -1 of a missing cell picks.
    recoded = np.array([*new_codes, -1], dtype=np.intp)[codes]
    unseen = np.flatnonzero((codes >= 0) & (recoded < 0))
    counts = np.bincount(codes[unseen], minlength=len(categories))
    found = [f"{value!r} ({count(int(n), 'row')})" for value, n in zip(categories, counts, strict=True) if n]
    return recoded, unseen, found
