"""Checks that all packages share: counts, memory and optional packages; and how values and names are shown."""

from __future__ import annotations

import operator
import os
import unicodedata
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from .errors import InputError, MissingDependencyError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_QUOTE_LENGTH = 80
"""Characters of a value that a message quotes."""

UNKNOWN_MEMORY = 2.0**44
"""Assumed memory in bytes of a computer where it is not known: more than any has."""

# Control characters and escapes, formats (among them those that reverse the direction of text), surrogates, line separators.
_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_SHOWN = frozenset("\n\t\u200c\u200d")  # the two joiners belong to the spelling of some languages


def quote(value: object) -> str:
    """Return the repr of a value, shortened to `MAX_QUOTE_LENGTH` characters.

    Examples
    --------
    >>> quote("a")
    "'a'"
    >>> len(quote("a" * 1000))
    80
    """
    if isinstance(value, str) and len(value) > MAX_QUOTE_LENGTH:
        value = value[:MAX_QUOTE_LENGTH]  # repr of a long text is slow
    try:
        return shorten(repr(value))
    except Exception:  # a class of the user's
        return f"a {type(value).__name__}"


def shorten(text: str) -> str:
    """Shorten a text to `MAX_QUOTE_LENGTH` characters."""
    return text if len(text) <= MAX_QUOTE_LENGTH else text[: MAX_QUOTE_LENGTH - 3] + "..."


def escape_controls(text: str) -> str:
    r"""Return a text in which characters that control a terminal or the direction of text are written as JSON writes them.

    Examples
    --------
    >>> print(escape_controls("\x1b[31mred\u202e"))
    \u001b[31mred\u202e
    """
    if text.isascii() and text.isprintable():
        return text
    text = text.replace("\r\n", "\n")
    return "".join(_escape(character) if _is_hidden(character) else character for character in text)


def _is_hidden(character: str) -> bool:
    return unicodedata.category(character) in _HIDDEN_CATEGORIES and character not in _SHOWN


def _escape(character: str) -> str:
    units = character.encode("utf-16-be", errors="surrogatepass").hex()
    return "".join(f"\\u{units[k : k + 4]}" for k in range(0, len(units), 4))


def physical_memory() -> float | None:
    """Return the memory of this computer in bytes; None where it is not known."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):  # on Windows
        return None


def check_memory(n_bytes: float, work: str, advice: str) -> None:
    """Refuse work if its arrays alone are larger than the memory of this computer.

    Parameters
    ----------
    n_bytes : float
        Their size.
    work : str
        What they are for, as the beginning of a sentence.
    advice : str
        What to do.

    Raises
    ------
    InputError
    """
    limit = physical_memory() or UNKNOWN_MEMORY
    if n_bytes > limit:
        raise InputError(
            f"{work} would take at least {n_bytes / 1e9:,.3g} GB, and this computer has {limit / 1e9:,.3g} GB of memory: "
            f"{advice}."
        )


def to_whole_number(value: Any) -> int | None:
    """Return a whole number as an int, None for anything else: truth values, NumPy's spans of time, numbers that raise.

    Examples
    --------
    >>> import numpy as np
    >>> [to_whole_number(value) for value in (np.int8(3), 3.0, True, np.timedelta64(3))]
    [3, None, None, None]
    """
    try:
        return None if isinstance(value, bool) or not isinstance(value, Integral) else operator.index(value)
    except Exception:  # a class of the user's may raise anything
        return None


def to_float(value: Any) -> float | None:
    """Return a number as a float, None for anything else: truth values, texts, numbers beyond floats or that raise."""
    try:
        is_number = isinstance(value, Real) and type(value).__name__ not in ("bool", "timedelta64")
        return float(value) if is_number else None
    except Exception:  # a class of the user's may raise anything
        return None


def to_floats(values: Any) -> NDArray[np.float64] | None:
    """Return numbers as a new array of floats, None for anything else: texts, truth values, times, objects that raise.

    Examples
    --------
    >>> to_floats([1, 2.5]), to_floats(["1", "2.5"]), to_floats([[1], [2, 3]])
    (array([1. , 2.5]), None, None)
    """
    import numpy as np

    try:
        array = np.asarray(values)
        with np.errstate(over="ignore"):  # longer floats become infinite
            return np.array(array, dtype=np.float64, order="C") if array.dtype.kind in "iufO" else None
    except Exception:  # a class of the user's may raise anything
        return None


def check_count(value: object, name: str, minimum: int = 1) -> int:
    """Return a whole number of at least `minimum` as an int.

    Parameters
    ----------
    value : object
        The argument.
    name : str
        Its name, for the message.
    minimum : int, default 1
        The smallest allowed value.

    Raises
    ------
    InputError
        If it is not a whole number, or too small.

    Examples
    --------
    >>> check_count(3, "n_draws")
    3
    >>> check_count(2.5, "n_draws")
    Traceback (most recent call last):
        ...
    coaltree.errors.InputError: n_draws is 2.5; it must be a whole number of at least 1.
    """
    count = to_whole_number(value)
    if count is None or count < minimum:
        raise InputError(f"{name} is {quote(value)}; it must be a whole number of at least {minimum}.")
    return count


def check_index(value: object, name: str, length: int) -> int:
    """Return a whole number from 0 to ``length - 1`` as an int; a negative one does not count from the end.

    Examples
    --------
    >>> check_index(-1, "node", 5)
    Traceback (most recent call last):
        ...
    coaltree.errors.InputError: node is -1; it must be a whole number from 0 to 4.
    """
    index = to_whole_number(value)
    if index is None or not 0 <= index < length:
        raise InputError(f"{name} is {quote(value)}; it must be a whole number from 0 to {length - 1}.")
    return index


def check_column_count(n_columns: object) -> int | None:
    """Return the number of columns to simulate; None stays None."""
    if n_columns is None:
        return None
    count = to_whole_number(n_columns)
    if count is None or count < 1:
        raise InputError(
            f"n_columns is {quote(n_columns)}; it must be a whole number of columns of at least 1, or None."
        )
    return count


def check_width(n_columns: int, expected: int, source: str) -> None:
    """Raise unless a table has as many columns as a process describes."""
    if n_columns != expected:
        raise InputError(
            f"The table has {n_columns} column(s), but {source} describes {expected}; the numbers must match."
        )


def require_package(package: str, purpose: str, extra: str) -> None:
    """Raise unless an optional package is installed, and say how to install it.

    Parameters
    ----------
    package : str
        Its name for ``import`` and pip.
    purpose : str
        What needs it, as the beginning of a sentence.
    extra : str
        The extra of coaltree that installs it.

    Raises
    ------
    MissingDependencyError

    Examples
    --------
    >>> require_package("telepathy", "Minds need", "mind")
    Traceback (most recent call last):
        ...
    coaltree.errors.MissingDependencyError: Minds need telepathy, which is not installed; run: pip install "coaltree[mind]"
    """
    try:
        __import__(package)
    except ImportError as error:
        raise MissingDependencyError(
            f'{purpose} {package}, which is not installed; run: pip install "coaltree[{extra}]"'
        ) from error
