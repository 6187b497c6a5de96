"""Values for missing cells of a text file, written the way the column is."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from .cells import Category
from .typed_text import TextColumns

Write: TypeAlias = Callable[[Category], str]

_DIGITS = 6
_EPOCH = dt.datetime(1970, 1, 1)
_SECOND = 1_000_000
# One day less than Python's times can say, which leaves room for an offset.
_FIRST_DAY = (dt.datetime.min - _EPOCH).days + 1
_LAST_DAY = (dt.datetime.max - _EPOCH).days - 1


def value_writer(polars: Any, name: str, columns: TextColumns) -> Write:
    """Find out how values are written in a column of a text file.

    Text is written as it is. Numbers are written with as few digits as it takes to read them again: whole ones where
    all numbers of the column are, others after rounding to 6 significant digits.

    Parameters
    ----------
    polars : module
    name : str
        The column's name.
    columns : TextColumns
        The columns of the file.

    Returns
    -------
    callable
        Gives the text of a value.
    """
    dtype = columns.frame[name].dtype
    observed = columns.texts[name].drop_nulls().to_list()
    if dtype == polars.Boolean:
        write = _flag_writer(observed)
    elif dtype == polars.Date:
        write = _date
    elif dtype == polars.Datetime:
        write = _time_writer(observed)
    elif dtype == polars.Int64 or name in columns.local.grouped or (observed and all(map(_is_whole, observed))):
        write = _whole
    elif name in columns.local.decimal or (not observed and columns.local.decimal):
        # A column without any number goes by the others of its file: next to commas, 1.234 is read as a thousand.
        write = _with_comma
    else:
        write = _number
    return lambda value: value if isinstance(value, str) else write(value)


def _is_whole(text: str) -> bool:
    return text.lstrip("+-").isdecimal()


def _whole(value: Category) -> str:
    return str(value if isinstance(value, int) else round(float(value)))


def _number(value: Category) -> str:
    # Adding 0 takes the sign off a zero.
    return repr(float(f"{value:.{_DIGITS}g}") + 0.0) if isinstance(value, float) else str(value)


def _with_comma(value: Category) -> str:
    return _number(value).replace(".", ",")


def _flag_writer(observed: Sequence[str]) -> Write:
    spelled = {text.lower(): text for text in reversed(observed)}

    def write(value: Category) -> str:
        wanted = "true" if float(value) >= 0.5 else "false"
        if wanted in spelled:
            return spelled[wanted]
        other = observed[0]
        return wanted.upper() if other.isupper() else wanted.title() if other.istitle() else wanted

    return write


def _date(value: Category) -> str:
    return (_EPOCH + dt.timedelta(days=round(_within(value)))).date().isoformat()


def _time_writer(observed: Sequence[str]) -> Write:
    """Write times in the zone of the first one, to the finest unit that any of them has."""
    first = observed[0]
    clocks = [text[11:].rstrip("Z").split("+")[0].split("-")[0] for text in observed]
    zone = first[11 + len(clocks[0]) :]
    offset = dt.datetime.fromisoformat(first).utcoffset() or dt.timedelta(0)
    n_decimals = max(len(clock.partition(".")[2]) for clock in clocks)
    with_seconds = any(clock.count(":") == 2 for clock in clocks)
    step = _SECOND // 10**n_decimals if with_seconds else 60 * _SECOND

    def write(value: Category) -> str:
        ticks = round(_within(value) * 86_400 * _SECOND / step)
        time = _EPOCH + dt.timedelta(microseconds=ticks * step) + offset
        clock = f"{time:%H:%M:%S}" if with_seconds else f"{time:%H:%M}"
        decimals = f".{time.microsecond:06}"[: n_decimals + 1] if n_decimals else ""
        return f"{time.date().isoformat()}{first[10]}{clock}{decimals}{zone}"

    return write


def _within(value: Category) -> float:
    return min(max(float(value), _FIRST_DAY), _LAST_DAY)
