"""New rows, read the way the rows of the fit were."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, Literal

from ..errors import InputError, InputWarning
from .columns import Table, read_known
from .encoding import Encoding
from .sources import Source, array_names, open_source
from .wording import listing


def read_new_rows(
    X: Any,
    encoding: Encoding,
    *,
    unseen: Literal["missing", "error"] = "missing",
    estimator: str = "CoalescentClustering",
) -> Table:
    """Read new rows the way the rows of the fit were.

    The columns of a frame are found by their names, in any order; other columns are not looked at. The columns of an
    array, of a list of lists and of a frame whose labels are not text are found by their positions. So are those of a
    frame with names of its own if the fit was on an array, which has none.

    Parameters
    ----------
    X : frame, 2-D array or list of lists
        The new rows, of any kind that `read_columns` reads.
    encoding : Encoding
        The encoding of the fit.
    unseen : {"missing", "error"}, default="missing"
        What becomes of a cell with a category that did not occur in the fit: it is read as missing, with a warning, and
        its row is kept in the column's `unseen`; or an error.
    estimator : str, default="CoalescentClustering"
        What is expecting the columns, for messages.

    Returns
    -------
    Table
        The columns of the fit, in its order, as `encode` takes them. Their `index` says where they stand in `X`.

    Raises
    ------
    InputError
        When columns of the fit are absent, or a cell cannot be read as in the fit.

    Warns
    -----
    InputWarning
        For columns that the fit did not have, and for categories that it did not know.
    """
    if unseen not in ("missing", "error"):
        raise InputError(f"unseen is {unseen!r}; it must be 'missing' or 'error'.")
    source = open_source(X)
    if _by_name(source, encoding):
        position = dict(zip(source.names, source.positions, strict=True))
        positions = tuple(position[name] for name in encoding.column_names)
        extra = [name for name in source.names if name not in set(encoding.column_names)]
        if extra:
            one = len(extra) == 1
            warnings.warn(
                f"{'Column' if one else 'Columns'} {listing(extra)} did not occur when the model was fit and "
                f"{'is' if one else 'are'} ignored.",
                InputWarning,
                stacklevel=4,  # the line that asks an estimator
            )
    else:
        expected, found = len(encoding.column_names), len(source.names)
        if found != expected:
            # The words of scikit-learn, which its users and its checks know.
            raise InputError(
                f"X has {found} features, but {estimator} is expecting {expected} features as input: columns without "
                f"names are those of the fit in the same order, which are {listing(encoding.column_names, limit=10)}."
            )
        positions = source.positions
    known = replace(source, names=encoding.column_names, positions=positions)
    return read_known(known, encoding.categories_by_name, unseen)


def _by_name(source: Source, encoding: Encoding) -> bool:
    """Say whether the columns are found by name and not by position; refuse a frame that lacks some of the names."""
    if source.labels is None:
        return False
    absent = [name for name in encoding.column_names if name not in set(source.names)]
    if not absent:
        return True
    n_columns = len(encoding.column_names)
    # What the columns of an array are called, or of a pandas frame that was made from one, is no name.
    nameless = encoding.column_names in (array_names(n_columns), tuple(map(str, range(n_columns))))
    if not all(isinstance(label, str) for label in source.labels) or (nameless and len(absent) == n_columns):
        return False
    extra = [name for name in source.names if name not in set(encoding.column_names)]
    one = len(absent) == 1
    raise InputError(
        f"The table lacks the {'column' if one else 'columns'} {listing(absent)} that it had when the model was fit"
        f"{f' (and has {listing(extra)}, which it had not)' if extra else ''}: add the {'column' if one else 'columns'}, "
        f"with missing cells if {'it is' if one else 'they are'} not known."
    )
