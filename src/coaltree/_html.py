"""What notebooks show of results: a title with some facts, or the first rows of a table. Sizes are bounded, text is escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from itertools import islice

import numpy as np

_CHARACTERS, _SENTENCE = 80, 400
_ENTRIES = 5
_FACTS = 20
_ROWS, _COLUMNS = 10, 12
_LEFT = ' style="text-align:left"'


def brief(value: object, most: int = _CHARACTERS) -> str:
    """Say a value in a few characters: numbers to six digits, few of them one by one, more by their shape, text up to a length.

    Examples
    --------
    >>> brief(1 / 3), brief(np.array([1.0, 2.5])), brief(np.zeros((3, 3)))
    ('0.333333', '[1, 2.5]', '<(3, 3) array>')
    """
    if isinstance(value, np.ndarray):
        if value.ndim > 1 or value.size > _ENTRIES:
            return f"<{value.shape} array>"
        value = value.tolist()
    if isinstance(value, list | tuple):
        return f"<{len(value)} values>" if len(value) > _ENTRIES else f"[{', '.join(map(brief, value))}]"
    if isinstance(value, float | np.floating):
        return f"{value:.6g}"
    text = str(value)
    return text if len(text) <= most else text[: most - 1] + "…"


def facts_html(title: str, facts: Mapping[str, object], below: str = "") -> str:
    """Return a title and facts by their names as HTML, at most twenty of them, and what is to stand below.

    Parameters
    ----------
    title : str
    facts : mapping of str to object
        Each is said in a few characters.
    below : str, default ""
        HTML.

    Returns
    -------
    str
    """
    rows = "".join(
        f"<tr><th{_LEFT}>{escape(brief(name))}</th><td{_LEFT}>{escape(brief(value, _SENTENCE))}</td></tr>"
        for name, value in islice(facts.items(), _FACTS)
    )
    if len(facts) > _FACTS:
        rows += f"<tr><td{_LEFT}>… and {len(facts) - _FACTS} more</td></tr>"
    return f"<div><div>{escape(brief(title))}</div><table>{rows}</table>{below}</div>"


def rows_html(title: str, columns: Mapping[str, Sequence[object]], n_rows: int) -> str:
    """Return the first ten rows of a table as HTML, of twelve columns at most.

    Parameters
    ----------
    title : str
    columns : mapping of str to sequence
        The cells of the first rows, by the names of their columns.
    n_rows : int
        How many rows there are in all.

    Returns
    -------
    str
    """
    shown = dict(islice(columns.items(), _COLUMNS))
    head = "".join(f"<th>{escape(brief(name))}</th>" for name in shown)
    cells = islice(zip(*shown.values(), strict=True), _ROWS)
    body = "".join("<tr>" + "".join(f"<td>{escape(brief(cell))}</td>" for cell in row) + "</tr>" for row in cells)
    left_out = [
        f"{count:,} more {what}"
        for count, what in ((n_rows - _ROWS, "rows"), (len(columns) - _COLUMNS, "columns"))
        if count > 0
    ]
    more = f"<div>… and {' and '.join(left_out)}</div>" if left_out else ""
    return f"<div><div>{escape(brief(title))}</div><table><tr>{head}</tr>{body}</table>{more}</div>"


def first_rows(n_rows: int) -> slice:
    """Return which rows of a table of so many are shown."""
    return slice(0, min(n_rows, _ROWS))
