"""The schema of ``model.json``: parameters, columns and processes as JSON values, and back, to the last bit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._validation import quote
from ..errors import InputError
from ..process import brownian, mixed, multinomial, ornstein_uhlenbeck  # noqa: F401  whose classes files may name
from ..process.base import Process
from ..table.cells import Category
from ..table.encoding import Encoding, Kind
from ..table.scaling import PowerTransform
from .fields import (
    number_to_json,
    read_bool,
    read_field,
    read_finite,
    read_integer,
    read_list,
    read_number,
    read_object,
    read_text,
)

FloatArray = NDArray[np.float64]


# -- parameters -------------------------------------------------------------------------------------


def parameters_to_json(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters for JSON; a random generator, which cannot be stored, becomes None."""
    return {name: _written(value, name) for name, value in parameters.items()}


def _written(value: Any, name: str) -> Any:
    if isinstance(value, (np.random.Generator, np.random.RandomState)):
        return None
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        # An object, because a string could be the value of a parameter.
        return value if math.isfinite(value) else {"number": number_to_json(value)}
    if isinstance(value, Process):
        return {"process": process_to_json(value)}
    if hasattr(value, "tolist"):  # arrays, and the columns and indices of pandas
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [_written(entry, name) for entry in value]
    raise InputError(
        f"{name} is {quote(value)}, which cannot be stored; parameters must be numbers, strings, booleans, processes or lists."
    )


def parameters_from_json(value: Any) -> dict[str, Any]:
    """Return the parameters that `parameters_to_json` wrote."""
    return {name: _read(entry, name) for name, entry in read_object(value, "parameters").items()}


def _read(value: Any, name: str, depth: int = 1) -> Any:
    if isinstance(value, dict) and "process" in value:
        return process_from_json(value["process"])
    if isinstance(value, dict):
        return read_number(read_field(value, "number", name), name)
    if isinstance(value, list):
        if not depth:
            raise InputError(f"{name} is a list of lists")
        return [_read(entry, name, depth - 1) for entry in value]
    return value


# -- encodings --------------------------------------------------------------------------------------


def encoding_to_json(encoding: Encoding) -> list[dict[str, Any]]:
    """Return an encoding for JSON, one object per column."""
    columns: list[dict[str, Any]] = []
    real = iter(encoding.column_scales)
    categories = iter(encoding.categories)
    for name, kind, used in zip(encoding.column_names, encoding.kinds, encoding.informative.tolist(), strict=True):
        column: dict[str, Any] = {"name": name, "kind": kind, "used": used}
        if kind == "real":
            scale = next(real)
            column |= {"center": scale.center, "scale": scale.scale, "time": name in encoding.times}
            if scale.power is not None:
                column["power"] = scale.power._asdict()
        else:
            own = next(categories)
            column |= {"categories": list(own), "types": [type(category).__name__ for category in own]}
        columns.append(column)
    return columns


def encoding_from_json(value: Any) -> Encoding:
    """Return the encoding that `encoding_to_json` wrote."""
    names: list[str] = []
    kinds: list[Kind] = []
    used: list[bool] = []
    moments: list[tuple[float, float]] = []
    powers: list[PowerTransform | None] = []
    times: list[str] = []
    categories: list[tuple[Category, ...]] = []
    for column in read_list(value, "columns"):
        name = read_text(read_field(column, "name", "a column"), "the name of a column")
        what = f"column {name!r}"
        kind = read_field(column, "kind", what)
        used.append(read_bool(read_field(column, "used", what), f"'used' of {what}"))
        if kind == "real":
            center, scale = (
                read_finite(read_field(column, part, what), f"{part} of {what}") for part in ("center", "scale")
            )
            if scale <= 0:
                raise InputError(f"scale of {what} is {scale:g}, not positive")
            moments.append((center, scale))
            powers.append(_read_power(column["power"], what) if "power" in column else None)
            if read_bool(read_field(column, "time", what), f"'time' of {what}"):
                times.append(name)
        elif kind == "categorical":
            own = read_list(read_field(column, "categories", what), f"categories of {what}")
            types = read_list(read_field(column, "types", what), f"types of {what}")
            if len(types) != len(own):
                raise InputError(f"{what} has {len(own)} categories and {len(types)} types")
            categories.append(tuple(_category(*pair, what) for pair in zip(own, types, strict=True)))
            if len({(type(category), category) for category in categories[-1]}) < len(own) or (
                used[-1] and len(own) < 2
            ):
                raise InputError(f"{what} has too few categories, or categories that are not distinct")
        else:
            raise InputError(f"{what} is of the kind {kind!r}, which is neither real nor categorical")
        names.append(name)
        kinds.append(kind)
    if not names or len(set(names)) < len(names):
        raise InputError("columns must have at least one column, and distinct names")
    centers, scales = np.array(moments, dtype=np.float64).reshape(-1, 2).T.copy()
    return Encoding(
        tuple(names),
        tuple(kinds),
        centers,
        scales,
        tuple(categories),
        np.array(used),
        tuple(times),
        tuple(powers) if any(powers) else (),
    )


def _read_power(value: Any, what: str) -> PowerTransform:
    """Return the power transform of a column."""
    numbers = (
        read_finite(read_field(value, part, f"power of {what}"), f"{part} of the power of {what}")
        for part in PowerTransform._fields
    )
    power = PowerTransform(*numbers)
    if power.unit <= 0 or power.low >= power.high:
        raise InputError(f"power of {what} has no positive unit, or no values between low and high")
    return power


def _category(value: Any, kind: Any, what: str) -> Category:
    if kind == "float":
        return read_finite(value, f"a category of {what}")
    if kind in ("str", "int", "bool") and type(value).__name__ == kind:
        category: Category = value
        return category
    raise InputError(f"{what} has a category {quote(value)} that is not of the type {kind!r}")


def count_states(encoding: Encoding) -> tuple[int, list[int]]:
    """Return the number of real columns in use, and the number of categories of each categorical column in use."""
    categories = iter(encoding.categories)
    n_real, n_states = 0, []
    for kind, used in zip(encoding.kinds, encoding.informative.tolist(), strict=True):
        own = next(categories) if kind == "categorical" else ()
        if used and kind == "real":
            n_real += 1
        elif used:
            n_states.append(len(own))
    return n_real, n_states


# -- processes --------------------------------------------------------------------------------------


def process_to_json(process: Process) -> dict[str, Any]:
    """Return a process as plain values."""
    return process.to_dict()


def process_from_json(value: Any) -> Process:
    """Return the process that `process_to_json` has written; its class must have been imported."""
    value = read_object(value, "the process")
    if "parts" in value:
        parts = read_list(value["parts"], "parts of the process")
        return Process.from_dict(value | {"parts": [_check_part(part) for part in parts]})
    return Process.from_dict(_check_process_values(value))


def _check_part(part: Any) -> dict[str, Any]:
    """Return a part of a process whose values have been checked."""
    process = read_object(read_field(part, "process", "a part of the process"), "a part of the process")
    columns = read_list(read_field(part, "columns", "a part of the process"), "columns of a part of the process")
    if "parts" in process:
        raise InputError("a part of the process has parts itself")
    return {
        "process": _check_process_values(process),
        "columns": [read_integer(column, "a column of a part of the process") for column in columns],
    }


def _check_process_values(value: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a process: finite numbers, in lists and lists of lists, None, strings and booleans.

    Whether they suit the process is checked by its constructor.
    """
    return {name: _check_value(own, f"{name} of the process") for name, own in value.items()}


def _check_value(value: Any, what: str, depth: int = 2) -> Any:
    if isinstance(value, list) and depth:
        return [_check_value(entry, what, depth - 1) for entry in value]
    if value is not None and not isinstance(value, str | bool):
        read_finite(value, what)
    return value  # whole numbers stay whole


def check_process(process: Process, encoding: Encoding) -> None:
    """Raise unless a process has the columns of an encoding."""
    n_real, n_states = count_states(encoding)
    process.check_columns([0] * n_real + n_states or [0])
