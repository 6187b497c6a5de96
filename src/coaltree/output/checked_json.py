"""Values of a JSON text that somebody else may have written, checked as they are taken."""

from __future__ import annotations

import json
import math
from typing import Any

from ..errors import InputError

_NOT_FINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


def to_json(value: Any) -> bytes:
    """Write plain values as strict JSON, in their order; lone surrogates, which file names may have, are kept."""
    return (json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode(errors="surrogatepass")


def from_json(data: bytes, what: str = "its model.json") -> Any:
    """Read strict JSON."""
    try:
        return json.loads(data.decode(errors="surrogatepass"), parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise InputError(f"{what} is not JSON") from None


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def written_number(value: float) -> float | str:
    """Return a float as JSON can say it, all digits kept; infinities and NaN as text."""
    value = float(value)
    return value if math.isfinite(value) else str(value)


def read_number(value: Any, what: str) -> float:
    """Take what `written_number` wrote."""
    if isinstance(value, str) and value in _NOT_FINITE:
        return _NOT_FINITE[value]
    return read_finite(value, what)


def read_finite(value: Any, what: str) -> float:
    """Take a finite number."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            pass
    raise _wrong(value, what, "a number")


def read_whole(value: Any, what: str, least: int = 0) -> int:
    """Take a whole number that is not too small."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= least:
        return value
    raise _wrong(value, what, f"a whole number of at least {least}")


def read_flag(value: Any, what: str) -> bool:
    """Take a truth value."""
    if isinstance(value, bool):
        return value
    raise _wrong(value, what, "true or false")


def read_text(value: Any, what: str) -> str:
    """Take a text."""
    if isinstance(value, str):
        return value
    raise _wrong(value, what, "text")


def read_list(value: Any, what: str) -> list[Any]:
    """Take a list."""
    if isinstance(value, list):
        return value
    raise _wrong(value, what, "a list")


def read_object(value: Any, what: str) -> dict[str, Any]:
    """Take an object, whose keys are text."""
    if isinstance(value, dict):
        return value
    raise _wrong(value, what, "an object")


def member(value: Any, name: str, what: str) -> Any:
    """Take a member of an object, which must be there."""
    found = read_object(value, what)
    if name not in found:
        raise InputError(f"{what} has no {name!r}")
    return found[name]


def _wrong(value: Any, what: str, wanted: str) -> InputError:
    text = repr(value)
    return InputError(f"{what} is {text if len(text) <= 40 else text[:37] + '...'}, and not {wanted}")
