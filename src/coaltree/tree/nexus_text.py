"""The text of NEXUS files: statements, names, comments and line numbers, which trees and characters share."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..errors import InputError
from .newick import excerpt, find_comment_end

# As in Newick text, a quote inside an unquoted word belongs to the word (O'Brien).
_STOP = re.compile(r"""[;\[\]] | (?<![^\s()\[\],:;=*])['"]""", re.VERBOSE)
_QUOTED = re.compile(r"""'[^']*(?:''[^']*)*'|"[^"]*(?:""[^"]*)*\"""")
_BLANKS = re.compile(r"\s*")
_NAME = re.compile(r"""(?P<quoted>'[^']*(?:''[^']*)*'|"[^"]*(?:""[^"]*)*")|(?P<mark>,)|(?P<word>[^\s\[\],;]+)""")
HEADER = re.compile(r"""(?P<quoted>'[^']*(?:''[^']*)*'|"[^"]*(?:""[^"]*)*")|(?P<mark>[=*])|(?P<word>[^\s\[\];=*]+)""")
"""Tokens of a statement: quoted names, ``=`` and ``*``, words."""


class NexusText:
    """The text of a NEXUS file, read statement by statement without recursion.

    Parameters
    ----------
    text : str
    preserve_underscores : bool
        Keep underscores of unquoted names instead of reading them as blanks.
    """

    def __init__(self, text: str, preserve_underscores: bool) -> None:
        self.text = text
        self.preserve_underscores = preserve_underscores

    def statements(self, hint: str) -> Iterator[tuple[str, int, int]]:
        """Yield the first word of each statement in lower case, the position after it, and that of the semicolon.

        `hint` says what to do with a text that is no NEXUS file.
        """
        start = len(self.text) - len(self.text.lstrip("\ufeff \t\r\n"))
        if self.text[start : start + 6].upper() != "#NEXUS":
            found = excerpt(self.text.strip()[:40])
            raise InputError(
                f"The text begins with {found}, so it is no NEXUS file, which begins with #NEXUS; pass the text of the "
                f"file rather than its name, and {hint}."
            )
        for begin, end in self._statements(start + 6):
            place, _ = self.skip(begin)
            match = HEADER.match(self.text, place)
            yield match.group().lower() if match else "", match.end() if match else place, end

    def _statements(self, place: int) -> Iterator[tuple[int, int]]:
        """Yield the beginning of each statement and the position of its semicolon."""
        begin = place
        while match := _STOP.search(self.text, place):
            place = match.start()
            mark = match.group()
            if mark == ";":
                yield begin, place
                begin = place = place + 1
            elif mark == "[":
                place = self.skip_comment(place)
            elif mark == "]":
                raise InputError(
                    f"The bracket ']' on {self.line(place)} closes no comment; quote names that hold brackets."
                )
            else:
                whole = _QUOTED.match(self.text, place)
                if whole is None:
                    raise InputError(
                        f"The quote opened on {self.line(place)} is never closed; a quote inside a quoted name is "
                        "written twice, as in 'it''s'."
                    )
                place = whole.end()
        rest, _ = self.skip(begin)
        if rest < len(self.text):
            raise InputError(
                f"The file is cut off: the statement that begins with {excerpt(self.text[rest : rest + 30])} on "
                f"{self.line(rest)} has no semicolon; read the whole file."
            )

    def skip(self, place: int) -> tuple[int, list[str]]:
        """Return the position after blanks and comments, and the comments."""
        comments: list[str] = []
        while True:
            blanks = _BLANKS.match(self.text, place)
            place = blanks.end() if blanks else place
            if not self.text.startswith("[", place):
                return place, comments
            end = self.skip_comment(place)
            comments.append(self.text[place:end])
            place = end

    def skip_comment(self, place: int) -> int:
        """Return the position after the comment that opens at ``place``; comments may be nested."""
        end = find_comment_end(self.text, place)
        if end is None:
            raise InputError(f"The comment opened by '[' on {self.line(place)} is never closed; add the missing ']'.")
        return end

    def tokens(self, pattern: re.Pattern[str], place: int, end: int) -> Iterator[tuple[str, str, int]]:
        """Yield kind, text and end of the tokens of a statement."""
        place, _ = self.skip(place)
        while place < end and (match := pattern.match(self.text, place)):
            yield match.lastgroup or "", match.group(), match.end()
            place, _ = self.skip(match.end())

    def names(self, place: int, end: int) -> Iterator[tuple[str, bool]]:
        """Yield the names and commas of a statement; the flag is true for a comma."""
        for kind, token, _ in self.tokens(_NAME, place, end):
            yield (token, True) if kind == "mark" else (self.name(kind, token), False)

    def name(self, kind: str, token: str) -> str:
        """Return the name that a token stands for."""
        if kind == "quoted":
            return token[1:-1].replace(token[0] * 2, token[0])
        return token if self.preserve_underscores else token.replace("_", " ")

    def without_comments(self, place: int, end: int) -> str:
        """Return a part of the text with its comments blanked, so that positions and lines stay where they are."""
        parts: list[str] = []
        while match := _STOP.search(self.text, place, end):
            begin = match.start()
            whole = _QUOTED.match(self.text, begin) if match.group() in "'\"" else None
            after = whole.end() if whole else self.skip_comment(begin) if match.group() == "[" else begin + 1
            kept = self.text[begin:after]
            parts += [self.text[place:begin], re.sub(r"[^\n]", " ", kept) if match.group() == "[" else kept]
            place = after
        return "".join([*parts, self.text[place:end]])

    def line(self, place: int) -> str:
        """Return the line of a position, for messages."""
        return f"line {self.text.count(chr(10), 0, place) + 1}"
