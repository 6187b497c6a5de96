"""Lines of delimited text without quotes, and where their fields are, many lines at a time."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from .cells import IntArray

_BLOCK = 2**22  # bytes that are looked at together
_NEWLINE = 10
_BLANK, _ASCII = 32, 127  # up to the one and above the other, a byte may begin a blank


class Lines(NamedTuple):
    """Lines that follow each other.

    Parameters
    ----------
    first : int
        Number of the first one, counted from 1.
    begins, ends : ndarray of int, shape (n_lines,)
        Where each line begins, and where its line break or the text ends.
    delimiters : ndarray of int
        Where the delimiters are.
    n_fields : ndarray of int, shape (n_lines,)
        Number of fields of each line, at least 1.
    """

    first: int
    begins: IntArray
    ends: IntArray
    delimiters: IntArray
    n_fields: IntArray


class Counted(NamedTuple):
    """What lines there are.

    Parameters
    ----------
    n_lines : int
        Number of lines that are not blank.
    blank : list of (int, int)
        Where each blank line begins, and where the next one does.
    odd : (int, int) or None
        Number, counted from 1, and number of fields of the first line that has not as many as it should.
    """

    n_lines: int
    blank: list[tuple[int, int]]
    odd: tuple[int, int] | None


def text_lines(data: bytes) -> Iterator[str]:
    """Give the lines of a text one by one, with their line breaks; only a line feed ends a line."""
    return io.TextIOWrapper(io.BytesIO(data), encoding="utf-8", newline="\n")


def blocks(data: bytes, delimiter: str) -> Iterator[Lines]:
    """Find the lines and the delimiters of a text without quotes, block by block."""
    every = np.frombuffer(data, dtype=np.uint8)
    start, first = 0, 1
    while start < len(data):
        stop = len(data)
        if stop - start > _BLOCK:
            # A line that is longer than a block is a block.
            stop = data.rfind(b"\n", start, start + _BLOCK) + 1 or data.find(b"\n", start + _BLOCK) + 1 or stop
        block = every[start:stop]
        ends = start + np.flatnonzero(block == _NEWLINE)
        if block[-1] != _NEWLINE:
            ends = np.append(ends, stop)
        delimiters = start + np.flatnonzero(block == ord(delimiter))
        begins = np.concatenate([[start], ends[:-1] + 1])
        n_fields = np.diff(np.searchsorted(delimiters, ends), prepend=0) + 1
        yield Lines(first, begins, ends, delimiters, n_fields)
        start, first = stop, first + len(ends)


def count_lines(data: bytes, delimiter: str, width: int) -> Counted | None:
    """Count the lines of a text without quotes, and look for one that has not so many fields.

    Parameters
    ----------
    data : bytes
        The text, in UTF-8.
    delimiter : str
        What separates the fields.
    width : int
        How many fields each line should have, unless it is blank.

    Returns
    -------
    Counted or None
        None if there are lines that may have a field longer than Python's csv module reads.
    """
    n_lines = 0
    blank: list[tuple[int, int]] = []
    every = np.frombuffer(data, dtype=np.uint8)
    for lines in blocks(data, delimiter):
        if int((lines.ends - lines.begins).max()) > csv.field_size_limit():
            return None
        suspect = lines.n_fields != width
        if width == 1:
            head = every[np.minimum(lines.begins, len(data) - 1)]
            suspect |= (head <= _BLANK) | (head > _ASCII)
        n_lines += len(lines.ends)
        for i in np.flatnonzero(suspect).tolist():
            begin, end, n_fields = int(lines.begins[i]), int(lines.ends[i]), int(lines.n_fields[i])
            if n_fields == 1 and not data[begin:end].decode().strip():
                blank.append((begin, min(end + 1, len(data))))
            elif n_fields != width:
                return Counted(n_lines, blank, (lines.first + i, n_fields))
    return Counted(n_lines - len(blank), blank, None)


def without(data: bytes, spans: list[tuple[int, int]]) -> bytes:
    """Leave out some stretches, which are in order."""
    view = memoryview(data)
    starts = [0, *(end for _, end in spans)]
    ends = [*(begin for begin, _ in spans), len(data)]
    return b"".join(view[start:end] for start, end in zip(starts, ends, strict=True))
