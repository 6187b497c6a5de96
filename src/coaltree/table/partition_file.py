r"""Files that divide the characters of an alignment into partitions, as RAxML and IQ-TREE have them.

RAxML: a line for each partition, such as ``DNA, gene1 = 1-300, 601-900\3``. IQ-TREE: NEXUS with charsets, and perhaps a
CHARPARTITION that names those to use. Models in the files are not read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from .._atomic import check_path
from .._validation import quote
from ..errors import InputError
from .labels import count
from .read_file import read_bytes

_RANGE = re.compile(r"(\d+)(?:\s*-\s*(\d+|\.)(?:\s*[\\/]\s*(\d+))?)?")
_COMMENT = re.compile(r"\[[^\]]*\]")
_SPACES_IN_RANGE = re.compile(r"\s*([-\\/])\s*")


def read_partitions(path: str | os.PathLike[str], names: Sequence[str]) -> dict[str, list[str]]:
    """Read a file of partitions.

    Parameters
    ----------
    path : str or Path
    names : sequence of str
        Names of the characters, in the order of the alignment.

    Returns
    -------
    dict of str to list of str
        The names of the characters of each partition.

    Raises
    ------
    InputError
        If it is no such file, or names characters that the alignment does not have.
    """
    path = check_path(Path(path))
    if not path.is_file():
        raise InputError(f"{path} is no file; a file of partitions has lines such as DNA, gene1 = 1-300.")
    try:
        text = read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{path} is no text; a file of partitions has lines such as DNA, gene1 = 1-300.") from None
    return parse_partitions(text, path.name, names)


def parse_partitions(text: str, source: str, names: Sequence[str]) -> dict[str, list[str]]:
    r"""Parse the text of a file of partitions; see `read_partitions`.

    Examples
    --------
    >>> parse_partitions("DNA, one = 1-2, 4\nDNA, two = 3\n", "parts.txt", ["a", "b", "c", "d"])
    {'one': ['a', 'b', 'd'], 'two': ['c']}
    >>> sets = "#nexus\nbegin sets; charset one = 1-.\\2; charset two = 2-4\\2; end;"
    >>> parse_partitions(sets, "parts.nex", ["a", "b", "c", "d"])
    {'one': ['a', 'c'], 'two': ['b', 'd']}
    """
    is_nexus = text.lstrip().lower().startswith("#nexus") or re.search(r"\bcharset\b", text, re.IGNORECASE) is not None
    entries = list(_nexus_entries(text, source) if is_nexus else _raxml_entries(text, source))
    partitions: dict[str, list[str]] = {}
    for subject, name, positions in entries:
        if name in partitions:
            raise InputError(f"{source}: the partition {quote(name)} occurs twice.")
        partitions[name] = [names[k] for k in _parse_positions(positions, len(names), subject)]
    if not partitions:
        raise InputError(f"{source} has no partitions; it needs lines such as DNA, gene1 = 1-300, or NEXUS charsets.")
    return partitions


def _raxml_entries(text: str, source: str) -> Iterator[tuple[str, str, str]]:
    """Yield the subject of messages, name and positions of each partition."""
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        before, equals, positions = line.partition("=")
        name = before.rpartition(",")[2].strip()
        subject = f"{source}, line {number}"
        if not equals or not name:
            raise InputError(f"{subject}: {quote(line)} is no partition; write it as DNA, gene1 = 1-300.")
        yield subject, name, positions


def _nexus_entries(text: str, source: str) -> Iterator[tuple[str, str, str]]:
    """Yield the subject of messages, name and positions of each charset, or of those that a CHARPARTITION names."""
    charsets: dict[str, str] = {}
    parts: list[tuple[str, str]] = []
    for statement in _COMMENT.sub(" ", text).split(";"):
        keyword, _, rest = statement.strip().partition(" ")
        name, equals, value = rest.partition("=")
        if not equals or keyword.lower() not in ("charset", "charpartition", "partition"):
            continue
        if keyword.lower() == "charset":
            # IQ-TREE writes the alignment before the positions: part1 = alignment.phy: 1-300
            charsets[name.replace("*", "").strip().strip("'\"")] = value.rpartition(":")[2]
        elif not parts:
            for part in value.split(","):
                left, _, right = part.rpartition(":")
                parts.append((left.strip().strip("'\""), right.strip().strip("'\"")))
    if not parts:
        parts = [("", name) for name in charsets]
    for label, value in parts:
        # The right side names a charset, or has the positions.
        name = value if value in charsets else label
        if not name:
            raise InputError(f"{source}: {quote(value)} is no CHARSET of the file.")
        yield f"{source}, partition {quote(name)}", name, charsets.get(value, value)


def _parse_positions(text: str, n_characters: int, subject: str) -> list[int]:
    r"""Return the positions, from 0, of a text such as ``1-300, 601-900\3``."""
    found: list[int] = []
    for word in re.split(r"[\s,]+", _SPACES_IN_RANGE.sub(r"\1", text).strip(" ,\t\r\n")):
        if word.lower() == "all":
            found += range(n_characters)
            continue
        match = _RANGE.fullmatch(word)
        if match is None:
            raise InputError(f"{subject}: {quote(word)} is no position; write positions as 1-300, 601-900\\3.")
        first = int(match[1])
        last = first if match[2] is None else n_characters if match[2] == "." else int(match[2])
        step = int(match[3] or 1)
        if not 1 <= first <= last <= n_characters or step < 1:
            raise InputError(
                f"{subject}: {word} is not within the {count(n_characters, 'character')} of the alignment, from 1 to "
                f"{n_characters:,}."
            )
        found += range(first - 1, last, step)
    return list(dict.fromkeys(found))
