"""Numbers and times as text: the notation of a column, found from all its cells, by which they are read and written."""

from __future__ import annotations

import csv
import datetime as dt
import io
import re
import shlex
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from .._validation import quote
from ..errors import InputError
from .labels import count, listing, row_label

_CODES = "USD|EUR|GBP|JPY|CHF|CAD|AUD|NZD|CNY|INR|SEK|NOK|DKK|PLN|CZK|HUF|RUB|TRY|BRL|MXN|ZAR|KRW|SGD|HKD|THB|ILS"
_CURRENCY = rf"(?:(?:US|A|C|HK|NZ|R)?[$€£¥₹₩₽₺₪฿]|(?:{_CODES})\b)"
_SIGN = "[+\u2212-]?"
_NUMBER = re.compile(
    rf"(?P<open>\()?(?P<sign>{_SIGN})(?P<prefix>{_CURRENCY}?\s*)(?P<inner>{_SIGN})"
    r"(?P<body>[.,]?\d(?:[\d.,]|['\u2019 \u00a0\u202f](?=\d{3}))*(?:[eE][+-]?\d+)?)"
    rf"(?P<suffix>\s*(?:{_CURRENCY}|[%‰°]|[^\W\d_][^\d_,;:()]{{0,11}}|°\w+)?)(?P<close>\))?"
)
_UNIT = re.compile(r"[^\W\d_]")
_IS_CURRENCY = re.compile(_CURRENCY)
SEPARATORS = ("", ".", ",", " ", "'")
"""What may stand between groups of digits, or before decimals."""

# (between groups of digits, before decimals), the more common first
_PLAIN = ("", ".")
_SEPARATORS = (_PLAIN, (",", "."), ("", ","), (".", ","), (" ", "."), (" ", ","), ("'", "."), ("'", ","))
# Where commas are decimal, also in cells that do not show it.
_COMMA_SEPARATORS = (("", ","), (".", ","), (" ", ","), ("'", ","), _PLAIN)
_SPACES = str.maketrans("\u2019\u00a0\u202f", "'  ")
MIN_NUMBERS = 0.5
"""A column is one of numbers, or of dates, if at least this share of its cells are; the others are then errors."""
MAX_TEXTS = 10_000
"""Distinct texts of a column, the first ones, that decide on its notation."""
MAX_WORD, MAX_WORDS = 20, 10
"""Characters of a word, and number of words, that advice on missing cells repeats."""
MIN_UNITS = 0.9
"""The same for numbers with a unit, because such texts may also be names."""

LEADING_ZERO = r"^0\d+$"
NO_CODE = r"^[+-]\d|^\d*[.,]\d"
"""A column in which some cell has a leading zero is one of codes, unless a cell has a sign or decimals."""

_TIME = re.compile(
    r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}([.]\d{1,6})?)?(Z|[+-]\d{2}:?\d{2})?)?",
)
_EPOCH = dt.datetime(1970, 1, 1)
_DAY = dt.timedelta(days=1)


class _Parts(NamedTuple):
    """A number as text, in its parts."""

    symbols: tuple[str, str]  # before and after it, as they are written
    negative: bool
    body: str

    @property
    def stripped(self) -> tuple[str, str]:
        """The symbols without blanks."""
        return self.symbols[0].strip(), self.symbols[1].strip()


def _split(text: str) -> _Parts | None:
    match = _NUMBER.fullmatch(text)
    if match is None or bool(match["open"]) != bool(match["close"]) or (match["sign"] and match["inner"]):
        return None
    negative = bool(match["open"]) or (match["sign"] or match["inner"]) in ("-", "\u2212")
    return _Parts((match["prefix"], match["suffix"]), negative, match["body"].translate(_SPACES))


@dataclass(frozen=True)
class Notation:
    """How the numbers of a column are written.

    Parameters
    ----------
    prefix, suffix : str
        What stands before and after each number, such as ``$`` or `` EUR``.
    group : str
        What separates groups of three digits; "" for nothing.
    decimal : {".", ",", ""}
        What separates decimals; "" if there are none.
    """

    prefix: str = ""
    suffix: str = ""
    group: str = ""
    decimal: str = "."

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        point, group = re.escape(self.decimal), re.escape(self.group)
        grouped = rf"[1-9]\d{{0,2}}(?:{group}\d{{3}})+|" if group else ""
        if not point:
            return re.compile(rf"{grouped}\d+")
        return re.compile(rf"(?:(?:{grouped}\d+)(?:{point}\d*)?|{point}\d+)(?:[eE][+-]?\d+)?")

    def read(self, text: str) -> float | None:
        """Return the number of a text; None for a text in another notation."""
        parts = _split(text.strip())
        if parts is None or self._pattern.fullmatch(parts.body) is None:
            return None
        plain = parts.body.replace(self.group, "") if self.group else parts.body
        number = float(plain.replace(self.decimal, ".") if self.decimal else plain)
        if parts.stripped != (self.prefix.strip(), self.suffix.strip()) and (number or any(parts.stripped)):
            return None  # 0 is the same in all units
        return -number if parts.negative else number

    def read_new(self, text: str) -> float | None:
        """Return the number of a text in new rows, which may lack the symbols, except those of fractions."""
        bare = self if "%" in self.suffix or "‰" in self.suffix else replace(self, prefix="", suffix="")
        number = self.read(text)
        return bare.read(text) if number is None else number

    def write(self, number: str) -> str:
        """Return a number, which is given with a decimal point, in this notation."""
        sign, digits = ("-", number[1:]) if number.startswith("-") else ("", number)
        whole, point, decimals = digits.partition(".")
        if self.group and whole.isdecimal():
            whole = f"{int(whole):,}".replace(",", self.group)
        return f"{sign}{self.prefix}{whole}{point and self.decimal}{decimals}{self.suffix}"

    @property
    def words(self) -> str:
        """What is special about it, in words."""
        symbols = [repr(symbol.strip()) for symbol in (self.prefix, self.suffix) if symbol.strip()]
        words = [f"values with {' and '.join(symbols)}"] if symbols else []
        names = {".": "points", ",": "commas", " ": "blanks", "'": "apostrophes"}
        if self.decimal == ",":
            words.append("decimal commas")
        elif self.group:
            words.append(f"{names[self.group]} between groups of three digits")
        return " and ".join(words)


PLAIN = Notation()
"""Numbers as programs write them."""


def find_notation(
    texts: Mapping[str, int], comma_decimals: bool = False, prefer_commas: bool = False
) -> Notation | None:
    """Find the notation of most cells of a column.

    Parameters
    ----------
    texts : mapping of str to int
        The distinct texts, and the number of cells that hold each.
    comma_decimals : bool, default False
        Whether numbers with decimal commas stand elsewhere in the table.
    prefer_commas : bool, default False
        Whether 1,250 is one and a quarter, if nothing else decides.

    Returns
    -------
    Notation or None
        None if too few of the cells are numbers.
    """
    texts = dict(islice(texts.items(), MAX_TEXTS))
    parts = {text: split for text in texts if (split := _split(text)) is not None}
    total = sum(texts.values())
    if sum(texts[text] for text in parts) < MIN_NUMBERS * total:
        return None
    weights: Counter[tuple[str, str]] = Counter()
    for text, split in parts.items():
        weights[split.stripped] += texts[text]
    for symbols, weight in weights.most_common():
        is_unit = any(_UNIT.search(symbol) and not _IS_CURRENCY.fullmatch(symbol) for symbol in symbols)
        if weight >= (MIN_UNITS if is_unit else MIN_NUMBERS) * total:
            break
    else:
        return None
    chosen = {text: split for text, split in parts.items() if split.stripped == symbols}
    written: Counter[tuple[str, str]] = Counter()
    for text, split in chosen.items():
        written[split.symbols] += texts[text]
    prefix, suffix = written.most_common(1)[0][0]
    order: tuple[tuple[str, str], ...] = _COMMA_SEPARATORS if comma_decimals else _SEPARATORS
    if prefer_commas and not comma_decimals:
        order = (_PLAIN, ("", ","), *(pair for pair in _SEPARATORS[1:] if pair != ("", ",")))
    best, most = None, 0
    for group, decimal in order:
        notation = Notation(prefix, suffix, group, decimal)
        n_read = sum(texts[text] for text, split in chosen.items() if notation._pattern.fullmatch(split.body))
        if n_read > most:
            best, most = notation, n_read
    return best if most >= MIN_NUMBERS * total else None


def are_codes(texts: Collection[str]) -> bool:
    """Return whether the numbers of a column are codes, such as 01067: leading zeros tell them from numbers."""
    return any(re.search(LEADING_ZERO, text) for text in texts) and not any(re.search(NO_CODE, text) for text in texts)


def read_time(text: str) -> dt.datetime | None:
    """Return an ISO 8601 date or time; one with an offset is converted to UTC. None for anything else."""
    if _TIME.fullmatch(text) is None:
        return None
    try:
        time = dt.datetime.fromisoformat(text)
        return time if time.tzinfo is None else time.astimezone(dt.UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return None


def read_days(text: str) -> float | None:
    """Return an ISO 8601 date or time as days since 1970-01-01; None for anything else."""
    time = read_time(text.strip())
    return None if time is None else (time - _EPOCH) / _DAY


# ------------------------------------------------------------------------------------------------- cells that do not fit


class Strays(NamedTuple):
    """The cells of a column that are not what most of its cells are."""

    column: str
    held: str  # what most cells hold
    texts: dict[str, int]  # distinct texts, and the number of cells that hold each; the first is that of `row`
    n_observed: int  # cells that are not missing
    row: int = 0  # the first of them

    def describe(self, row_names: Sequence[str] | None, fitted: bool) -> str:
        """Return the column, and what its cells hold."""
        first, *others = self.texts
        then = f"held {self.held} when the model was fit" if fitted else f"holds {self.held}"
        n_cells = sum(self.texts.values())
        more = f", and others {listing(others)}" if others else ""
        return (
            f"column {quote(self.column)} {then}, but {row_label(self.row, row_names)} holds {quote(first)}{more} "
            f"({n_cells:,} of {count(self.n_observed, 'observed cell')})"
        )

    def found_at(self, row: int, text: str) -> Strays:
        """Return the cells with the row and the text of the first."""
        return self._replace(row=row, texts={text: self.texts[text], **self.texts})


def find_strays(
    column: str, texts: Mapping[str, int], notation: Notation | None, numbers: Mapping[str, float | None]
) -> Strays | None:
    """Return the cells of a column of numbers or dates that are neither; None if there are none, or the column is text.

    With a notation, `numbers` are those of the texts.
    """
    if notation is not None:
        held, others = notation.words or "numbers", {text: n for text, n in texts.items() if numbers[text] is None}
    else:
        held, others = "dates", {text: n for text, n in texts.items() if read_time(text) is None}
    total = sum(texts.values())
    return Strays(column, held, others, total) if 0 < sum(others.values()) <= MIN_NUMBERS * total else None


def strays_error(
    strays: Sequence[Strays], row_names: Sequence[str] | None, *, options: bool, fitted: bool = False
) -> InputError:
    """Return the error that lists the cells of all columns that do not fit, and what to do about each.

    Parameters
    ----------
    strays : sequence of Strays
        At least one.
    row_names : sequence of str or None
        The names of the rows.
    options : bool
        Whether to name options of the command line.
    fitted : bool, default False
        Whether the table is one of new rows, whose columns must be those of the fit.
    """
    distinct = list(dict.fromkeys(text for part in strays for text in part.texts))
    words = [text for text in distinct if not any(map(str.isdigit, text)) and len(text) <= MAX_WORD]
    others = [text for text in distinct if any(map(str.isdigit, text))]
    lines = "; ".join(part.describe(row_names, fitted) for part in strays[:5])
    lines += f"; and {count(len(strays) - 5, 'more column')}" if len(strays) > 5 else ""
    cells = "cell" if len(distinct) == 1 else "cells"
    cures = []
    if words:
        shown = words[:MAX_WORDS]
        marks = (
            " ".join(f"--na-value {shlex.quote(text)}" for text in shown)
            if options
            else f"for example X.replace({shown!r}, None)"
        )
        more = ", ..." if len(words) > MAX_WORDS else ""
        cures.append(f"mark words that stand for missing cells ({marks}{more})")
    cures.append(f"fix {listing(others)}, to be like the other cells" if others else f"fix the {cells}")
    if not fitted:
        names = io.StringIO()
        csv.writer(names, lineterminator="").writerow([part.column for part in strays[:10]])
        declared = f"--categorical {shlex.quote(names.getvalue())}" if options else "categorical_features"
        cures.append(f"declare the {'column' if len(strays) == 1 else 'columns'} categorical ({declared})")
    advice = f"{', '.join(cures[:-1])}, or {cures[-1]}" if len(cures) > 1 else cures[0]
    return InputError(f"{lines[0].upper()}{lines[1:]}: {advice}.")


def describe_notations(notations: Mapping[str, Notation]) -> list[str]:
    """Return a sentence for each notation, with the columns that have it."""
    columns: dict[str, list[str]] = {}
    for name, notation in notations.items():
        columns.setdefault(notation.words, []).append(name)
    return [
        f"Column{'s' if len(names) > 1 else ''} {listing(names)}: {words} were read as numbers."
        for words, names in columns.items()
        if words
    ]


def is_number(text: str) -> bool:
    """Return whether Python reads a text as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True
