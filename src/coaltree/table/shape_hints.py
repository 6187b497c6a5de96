"""Hints that a table has another shape than the one it is read in: long, or with rows and columns exchanged.

A name alone or a pattern of cells alone is common among tables that are right, so a hint needs both.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import quote
from .labels import count
from .notation import is_number

# Names of columns with the things that a long table describes, and with what it says of them. IDs and plurals count, too.
_THINGS = {
    *("language", "doculect", "lect", "variety", "dialect", "glottocode", "taxon", "species", "organism", "strain"),
    *("isolate", "sample", "specimen", "individual", "subject", "patient", "participant", "accession"),
}
_PROPERTIES = {
    *("concept", "parameter", "feature", "character", "meaning", "gloss", "trait", "variable", "attribute", "property"),
    *("cognateset", "measure", "measurement", "metric", "question", "marker", "locus", "gene", "key"),
}
# A table may well have a row for each gene, question or key.
_ROWS_OF_PROPERTIES = _PROPERTIES - {"gene", "locus", "marker", "question", "key", "metric", "cognateset"}


def describe_long_table(columns: Iterable[tuple[str, NDArray[Any]]], n_rows: int) -> list[str]:
    """Return a hint if a table has a row for each combination of a thing and a property, such as language and concept.

    Parameters
    ----------
    columns : iterable of (str, ndarray)
        Names, and numbers for the cells.
    n_rows : int

    Returns
    -------
    list of str
        At most one sentence.
    """
    named = [(name, _base_name(name), cells) for name, cells in columns]
    things = [(name, cells) for name, word, cells in named if word in _THINGS]
    properties = [(name, cells) for name, word, cells in named if word in _PROPERTIES]
    for thing, thing_cells in things:
        for other, other_cells in properties:
            first, second = (np.unique(cells, return_inverse=True)[1] for cells in (thing_cells, other_cells))
            n_first, n_second = int(first.max(initial=0)) + 1, int(second.max(initial=0)) + 1
            n_pairs = len(np.unique(first * n_second + second))
            # Each occurs in several rows, and together they nearly identify a row.
            if min(n_first, n_second) < 2 or 2 * max(n_first, n_second) > n_rows or 2 * n_pairs < n_rows:
                continue
            return [
                f"The table looks long: {count(n_rows, 'row')} for {n_first:,} values of {quote(thing)} and {n_second:,} of "
                f"{quote(other)}. Rows are what is compared, so make a table with one row for each {quote(thing)} and "
                f"one column for each {quote(other)}, for example with pivot of pandas or polars; of a CLDF data set, give "
                "the folder."
            ]
    return []


def describe_transposed_table(row_title: str | None, texts: Sequence[Sequence[str | None]]) -> list[str]:
    """Return a hint if a table has a column for each thing and a row for each of its properties.

    Parameters
    ----------
    row_title : str or None
        The name of the column with the names of the rows.
    texts : sequence of sequence of str
        The cells of the columns, if all of them are text.

    Returns
    -------
    list of str
        At most one sentence.
    """
    reason = ""
    if row_title is not None and _base_name(row_title) in _ROWS_OF_PROPERTIES:
        reason = f"each row is named by {quote(row_title)}"
    elif len(texts) > 2:
        # In a row of a property, either all cells are numbers or none is.
        kinds = [{is_number(cell) for cell in cells if cell} for cells in zip(*texts, strict=True)]
        if all(len(kind) < 2 for kind in kinds) and {True} in kinds and {False} in kinds:
            reason = "its columns mix numbers and words, while each row has only numbers or only words"
    if not reason:
        return []
    return [
        f"The table looks transposed: {reason}. Rows are what is compared; if the columns are, exchange rows and columns, for "
        "example with frame.set_index(...).T of pandas."
    ]


def _base_name(name: str) -> str:
    """Return a name in lower case, without an ending such as _ID or a plural."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    words = re.sub(r"[\W_]+", "", re.sub(r"[\W_]+(id|name|code|number|no)s?$", "", words))
    return words if words in _THINGS or words in _PROPERTIES else re.sub(r"ies$", "y", words).removesuffix("s")
