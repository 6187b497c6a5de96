"""HTML for notebooks: a title with facts, or the first rows of a table. Sizes are bounded and text is escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from itertools import islice

import numpy as np

from ._validation import escape_controls

_MAX_CHARACTERS, _MAX_SENTENCE = 80, 400
_MAX_ENTRIES = 5
_MAX_FACTS = 20
_MAX_ROWS, _MAX_COLUMNS = 10, 12
_LEFT = ' style="text-align:left"'


def shorten_value(value: object, max_length: int = _MAX_CHARACTERS) -> str:
    """Return a short text for a value: numbers with six digits, long sequences by their shape, text up to a length.

    Examples
    --------
    >>> shorten_value(1 / 3), shorten_value(np.array([1.0, 2.5])), shorten_value(np.zeros((3, 3)))
    ('0.333333', '[1, 2.5]', '<(3, 3) array>')
    """
    if isinstance(value, np.ndarray):
        if value.ndim > 1 or value.size > _MAX_ENTRIES:
            return f"<{value.shape} array>"
        value = value.tolist()
    if isinstance(value, list | tuple):
        return f"<{len(value)} values>" if len(value) > _MAX_ENTRIES else f"[{', '.join(map(shorten_value, value))}]"
    if isinstance(value, float | np.floating):
        return f"{value:.6g}"
    text = escape_controls(str(value))
    return text if len(text) <= max_length else text[: max_length - 1] + "…"


def facts_html(title: str, facts: Mapping[str, object], below: str = "") -> str:
    """Return a title and at most twenty facts as HTML, with more HTML below.

    Parameters
    ----------
    title : str
    facts : mapping of str to object
        Values by name; each is shortened.
    below : str, default ""
        More HTML.

    Returns
    -------
    str
    """
    rows = "".join(
        f"<tr><th{_LEFT}>{escape(shorten_value(name))}</th><td{_LEFT}>{escape(shorten_value(value, _MAX_SENTENCE))}</td></tr>"
        for name, value in islice(facts.items(), _MAX_FACTS)
    )
    if len(facts) > _MAX_FACTS:
        rows += f"<tr><td{_LEFT}>… and {len(facts) - _MAX_FACTS} more</td></tr>"
    return f"<div><div>{escape(shorten_value(title))}</div><table>{rows}</table>{below}</div>"


def rows_html(title: str, columns: Mapping[str, Sequence[object]], n_rows: int) -> str:
    """Return the first ten rows and twelve columns of a table as HTML.

    Parameters
    ----------
    title : str
    columns : mapping of str to sequence
        The cells of the first rows, by column name.
    n_rows : int
        Number of rows of the table.

    Returns
    -------
    str
    """
    visible = dict(islice(columns.items(), _MAX_COLUMNS))
    head = "".join(f"<th>{escape(shorten_value(name))}</th>" for name in visible)
    cells = islice(zip(*visible.values(), strict=True), _MAX_ROWS)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(shorten_value(cell))}</td>" for cell in row) + "</tr>" for row in cells
    )
    omitted = [
        f"{count:,} more {what}"
        for count, what in ((n_rows - _MAX_ROWS, "rows"), (len(columns) - _MAX_COLUMNS, "columns"))
        if count > 0
    ]
    more = f"<div>… and {' and '.join(omitted)}</div>" if omitted else ""
    return f"<div><div>{escape(shorten_value(title))}</div><table><tr>{head}</tr>{body}</table>{more}</div>"


def first_rows(n_rows: int) -> slice:
    """Return the rows of a table that `rows_html` shows."""
    return slice(0, min(n_rows, _MAX_ROWS))
