"""JSON values that are checked when they are read: a file may come from anywhere."""

from __future__ import annotations

import json
import math
from typing import Any

from ..errors import InputError

_NOT_FINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


def to_json(value: Any) -> bytes:
    """Write plain values as strict JSON; lone surrogates, which file names may have, are preserved."""
    return (json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode(errors="surrogatepass")


def from_json(data: bytes, what: str = "its model.json") -> Any:
    """Read strict JSON."""
    try:
        return json.loads(data.decode(errors="surrogatepass"), parse_constant=_reject_constant)
    except (ValueError, RecursionError):
        raise InputError(f"{what} is not JSON") from None


def _reject_constant(constant: str) -> None:
    raise ValueError(constant)


def number_to_json(value: float) -> float | str:
    """Return a float for JSON with all its digits; infinities and NaN become text."""
    value = float(value)
    return value if math.isfinite(value) else str(value)


def read_number(value: Any, what: str) -> float:
    """Return a number that `number_to_json` wrote."""
    if isinstance(value, str) and value in _NOT_FINITE:
        return _NOT_FINITE[value]
    return read_finite(value, what)


def read_finite(value: Any, what: str) -> float:
    """Return a finite number."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            pass
    raise _type_error(value, what, "a number")


def read_integer(value: Any, what: str, minimum: int = 0) -> int:
    """Return an integer of at least `minimum` that fits into 64 bits."""
    if isinstance(value, int) and not isinstance(value, bool) and minimum <= value < 2**63:
        return value
    raise _type_error(value, what, f"a whole number of at least {minimum}")


def read_bool(value: Any, what: str) -> bool:
    """Return a boolean."""
    if isinstance(value, bool):
        return value
    raise _type_error(value, what, "true or false")


def read_text(value: Any, what: str) -> str:
    """Return a string."""
    if isinstance(value, str):
        return value
    raise _type_error(value, what, "text")


def read_list(value: Any, what: str) -> list[Any]:
    """Return a list."""
    if isinstance(value, list):
        return value
    raise _type_error(value, what, "a list")


def read_object(value: Any, what: str) -> dict[str, Any]:
    """Return an object, a dict with strings as keys."""
    if isinstance(value, dict):
        return value
    raise _type_error(value, what, "an object")


def read_field(value: Any, name: str, what: str) -> Any:
    """Return a required field of an object."""
    fields = read_object(value, what)
    if name not in fields:
        raise InputError(f"{what} has no {name!r}")
    return fields[name]


def _type_error(value: Any, what: str, expected: str) -> InputError:
    text = repr(value)
    return InputError(f"{what} is {text if len(text) <= 40 else text[:37] + '...'}, not {expected}")
