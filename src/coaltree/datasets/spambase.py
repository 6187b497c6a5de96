"""E-mails by the words and characters in them, spam or not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError
from .download import damage_error, read_text_lines

N_ATTRIBUTES = 57
N_RUN_LENGTHS = 3  # the last attributes, which are never 0


@dataclass(frozen=True, eq=False)
class Spambase:
    """Attributes and classes of e-mails.

    Attributes
    ----------
    attributes : ndarray of float, shape (n_mails, 57)
        Frequencies of 48 words and 6 characters in per cent, then the average, the longest and the total length of runs of
        capital letters.
    names : ndarray of str, shape (57,)
        Names of the attributes.
    spam : ndarray of bool, shape (n_mails,)
        Which mails are spam.
    """

    attributes: NDArray[np.float64]
    names: NDArray[np.str_]
    spam: NDArray[np.bool_]


def load_spambase() -> Spambase:
    """Load the SPAMBASE e-mails.

    Returns
    -------
    Spambase
        4,601 mails, 1,813 of them spam. 391 rows are copies of others.

    Notes
    -----
    Hopkins, Reeber, Forman and Suermondt, Spambase, UCI Machine Learning Repository.

    Examples
    --------
    >>> import coaltree as ct
    >>> mails = ct.datasets.load_spambase()  # doctest: +SKIP
    >>> rows = ct.datasets.sample_balanced_rows(mails.spam, 50, random_state=0)  # doctest: +SKIP
    >>> X = ct.datasets.binarize_attributes(mails.attributes[rows])  # doctest: +SKIP
    """
    name = "spambase/spambase.data"
    lines = read_text_lines(name, "ascii")
    try:
        table = np.array([line.split(",") for line in lines], dtype=np.float64)
    except ValueError:
        raise damage_error(name, "a line has another number of cells, or one that is no number") from None
    if table.ndim != 2 or table.shape[1] != N_ATTRIBUTES + 1:
        raise damage_error(name, f"its lines do not have {N_ATTRIBUTES} attributes and a class")
    if not np.isin(table[:, -1], (0, 1)).all():
        raise damage_error(name, "it has a class other than 0 and 1")
    if not np.isfinite(table).all():
        raise damage_error(name, "it holds a number that is not finite")
    return Spambase(table[:, :-1], _names(), table[:, -1] == 1)


def binarize_attributes(attributes: ArrayLike, run_lengths: str = "positive") -> NDArray[np.float64]:
    """Make the attributes of SPAMBASE binary.

    Parameters
    ----------
    attributes : array-like of shape (n_mails, 57)
    run_lengths : {"positive", "median"}, default "positive"
        An attribute is 1 where it is above 0. That says nothing of the three run lengths, which always are; ``"median"`` makes
        them 1 where they are above their median over these rows.

    Returns
    -------
    ndarray of shape (n_mails, 57)
        Zeros and ones.

    Examples
    --------
    >>> import numpy as np
    >>> from coaltree.datasets import binarize_attributes
    >>> mails = np.zeros((3, 57))
    >>> mails[:, 0], mails[:, -1] = [0.5, 0.0, 0.1], [10, 20, 30]
    >>> binarize_attributes(mails)[:, [0, -1]].tolist()
    [[1.0, 1.0], [0.0, 1.0], [1.0, 1.0]]
    >>> binarize_attributes(mails, "median")[:, [0, -1]].tolist()
    [[1.0, 0.0], [0.0, 0.0], [1.0, 1.0]]
    """
    if run_lengths not in ("positive", "median"):
        raise InputError(f"run_lengths is {run_lengths!r}; it must be 'positive' or 'median'.")
    table = np.asarray(attributes, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] != N_ATTRIBUTES:
        raise InputError(f"attributes has shape {table.shape}; it must have {N_ATTRIBUTES} columns, those of SPAMBASE.")
    if np.isnan(table).any():
        row, column = np.argwhere(np.isnan(table))[0]
        raise InputError(f"The cell in row {row}, column {column} is missing; it is neither 0 nor 1: fill it in first.")
    thresholds = np.zeros(N_ATTRIBUTES)
    if run_lengths == "median":
        thresholds[-N_RUN_LENGTHS:] = np.median(table[:, -N_RUN_LENGTHS:], axis=0)
    return (table > thresholds).astype(np.float64)


def _names() -> NDArray[np.str_]:
    """Read the names of the attributes, which stand before a colon."""
    name = "spambase/spambase.names"
    entries = [line.split(":") for line in read_text_lines(name, "ascii") if not line.startswith("|") and ":" in line]
    # The colon is not among the characters that are counted, so that the last one ends the name.
    names = [":".join(entry[:-1]) for entry in entries]
    if len(names) != N_ATTRIBUTES:
        raise damage_error(name, f"it names {len(names)} attributes, not {N_ATTRIBUTES}")
    return np.array(names, dtype=np.str_)
