"""Names as pictures show them: on one line, not too long, without what cannot be drawn."""

from __future__ import annotations

import unicodedata


def shown_name(name: str, most: int, instead: str) -> str:
    """Shorten a name to so many characters, and replace control characters, lone surrogates and line ends."""
    if len(name) > most:
        name = name[: most - 1] + "…"
    return "".join(instead if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") else c for c in name)


def name_width(name: str, wide: float) -> float:
    """Count characters, wide ones as nearly two."""
    return sum(wide if unicodedata.east_asian_width(c) in "WF" else 1.0 for c in name)
