"""Formats of character files, recognised by how they begin, whatever the file is called."""

from __future__ import annotations

import re

HEAD_BYTES = 2**16
"""How much of a file `recognise_format` looks at."""

_NEXUS = re.compile(r"\s*#NEXUS\b", re.IGNORECASE)
# A header, and a line that could be a part of a sequence.
_FASTA = re.compile(r"\s*(?:;[^\n]*\n\s*)*>[^\n]*\n\s*[A-Za-z0-9*?.~{}()!# \t-]+(?:\n|\Z)")
_PHYLIP = re.compile(
    r"\s*([1-9]\d{0,8})[ \t]+([1-9]\d{0,8})(?:[ \t]+[A-Za-z]+)*[ \t]*\n\s*([^\n]+)(?:\n([^\n]*)|\Z)", re.ASCII
)
_SEQUENCE = re.compile(r"[A-Za-z0-9*?.~{}()!# \t-]+")
_OTHERS = {
    "Clustal": re.compile(r"\s*(?:CLUSTAL|MUSCLE|PROBCONS)\b"),
    "Stockholm": re.compile(r"\s*#\s*STOCKHOLM\b", re.IGNORECASE),
    "MEGA": re.compile(r"\s*#mega\b", re.IGNORECASE),
    "MSF": re.compile(r"\s*(?:!![AN]A_MULTIPLE_ALIGNMENT|PileUp\b)"),
    "XML": re.compile(r"\s*<(?:\?xml|beast)\b"),
}


def decode_head(data: bytes) -> str:
    """Return the beginning of a file as text, with the line ends of Unix."""
    encoding = "utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8"
    text = data[:HEAD_BYTES].decode(encoding, errors="replace").lstrip("\ufeff")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def recognise_format(head: str) -> str | None:
    r"""Return the format of a file of characters.

    Parameters
    ----------
    head : str
        The beginning of the file.

    Returns
    -------
    {"nexus", "fasta", "phylip"} or None
        None if it begins like none of these.

    Examples
    --------
    >>> recognise_format(" 2 4\na  ACGT\nb  ACGA\n"), recognise_format(">a\nACGT\n"), recognise_format("2 4\n0.5 7\n")
    ('phylip', 'fasta', None)
    """
    if _NEXUS.match(head):
        return "nexus"
    if _FASTA.match(head):
        return "fasta"
    header = _PHYLIP.match(head)
    return "phylip" if header and _begins_matrix(header.group(3), header.group(4) or "", int(header.group(2))) else None


def recognise_other_format(head: str) -> str | None:
    """Return the name of an alignment format that is not read; None if the file begins like none of these."""
    return next((name for name, pattern in _OTHERS.items() if pattern.match(head)), None)


def _begins_matrix(line: str, next_line: str, n_characters: int) -> bool:
    """Return whether a line may be the first one of a matrix: a name with all characters, with letters, or alone."""
    for name, rest in (line.strip().partition(" ")[::2], line.strip().partition("\t")[::2], (line[:10], line[10:])):
        symbols = "".join(rest.split())
        if name.strip() and symbols and _SEQUENCE.fullmatch(rest):
            is_complete = len(symbols) == n_characters
            if is_complete or (len(symbols) < n_characters and not re.search(r"[0-9.]", symbols)):
                return True
    is_number = re.fullmatch(r"[-+.0-9eE]+", line.strip())  # a name only if a sequence follows
    return not re.search(r"[\s,;]", line.strip()) and (
        not is_number or re.match(r"\s*[A-Za-z?-]+\s*$", next_line) is not None
    )
