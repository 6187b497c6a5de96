"""The parameters of a process as a row of numbers, each with a name: to record them, and to make the process again."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .base import Process
from .brownian import Brownian
from .mixed import Mixed
from .multinomial import Multinomial
from .ornstein_uhlenbeck import OrnsteinUhlenbeck

FloatArray = NDArray[np.float64]


def named_parameters(process: Process, columns: list[int]) -> dict[str, float]:
    """Return all parameters of a resolved process by name, for example ``variance[2]`` of the table's column 2.

    Parameters
    ----------
    process : Process
    columns : list of int
        The numbers of the columns that it describes.
    """
    if isinstance(process, Mixed):
        parts = [named_parameters(part, [columns[d] for d in own]) for part, own in process.parts]
        repeated = {name for one in parts for name in one if sum(name in other for other in parts) > 1}
        return {
            f"{name}[{','.join(str(columns[d]) for d in own)}]" if name in repeated else name: value
            for part, (_, own) in zip(parts, process.parts, strict=True)
            for name, value in part.items()
        }
    if isinstance(process, Brownian):
        return _by_column("variance", process.variance, columns) | _by_column("noise", process.noise, columns)
    if isinstance(process, OrnsteinUhlenbeck):
        return (
            {"rate": process.rate}
            | _by_column("mean", np.asarray(process.mean), columns)
            | _by_column("variance", process.variance, columns)
            | _by_column("noise", process.noise, columns)
        )
    if isinstance(process, Multinomial):
        assert process.equilibrium is not None, "a resolved process has equilibria"
        shares = {
            f"equilibrium[{column},{k}]": float(share)
            for column, q in zip(columns, process.equilibrium, strict=True)
            for k, share in enumerate(q)
        }
        noise = _by_column("noise", process.noise, columns) if process.noise.any() else {}
        return _by_column("rate", process.rate, columns) | shares | noise
    raise InputError(
        f"The parameters of {process!r} are not known by name; only those of coaltree's own processes are."
    )


def parameter_values(process: Process) -> FloatArray:
    """Return the values of `named_parameters`, in its order."""
    if isinstance(process, Mixed):
        return np.concatenate([parameter_values(part) for part, _ in process.parts])
    if isinstance(process, Brownian):
        return np.concatenate([process.variance.ravel(), process.noise.ravel()])
    if isinstance(process, OrnsteinUhlenbeck):
        own = (process.mean, process.variance, process.noise)
        return np.concatenate([[process.rate], *(np.ravel(values) for values in own)])
    assert isinstance(process, Multinomial)
    assert process.equilibrium is not None
    noise = process.noise.ravel() if process.noise.any() else np.zeros(0)
    return np.concatenate([process.rate.ravel(), *process.equilibrium, noise])


def with_parameters(process: Process, values: FloatArray) -> Process:
    """Return a process of the same kind and shape with other parameters, in the order of `named_parameters`."""
    made, used = _made(process, values)
    assert used == len(values)
    return made


def _made(process: Process, values: FloatArray) -> tuple[Process, int]:
    """Return the process with the first of the values as its parameters, and how many those are."""
    if isinstance(process, Mixed):
        parts, used = [], 0
        for part, own in process.parts:
            made, count = _made(part, values[used:])
            parts.append((made, own))
            used += count
        return Mixed(*parts), used
    if isinstance(process, Brownian):
        size, noises = process.variance.size, process.noise.size
        variance, noise = values[:size].reshape(process.variance.shape), values[size : size + noises]
        return Brownian(variance, noise.reshape(process.noise.shape)), size + noises
    if isinstance(process, OrnsteinUhlenbeck):
        means, size = np.size(process.mean), process.variance.size
        mean = values[1 : 1 + means].reshape(np.shape(process.mean))
        variance = values[1 + means : 1 + means + size].reshape(process.variance.shape)
        noise = values[1 + means + size :][: process.noise.size].reshape(process.noise.shape)
        return OrnsteinUhlenbeck(float(values[0]), mean, variance, noise), 1 + means + size + process.noise.size
    assert isinstance(process, Multinomial)
    assert process.equilibrium is not None
    size = process.rate.size
    bounds = size + np.cumsum([len(q) for q in process.equilibrium])
    shares = np.split(values[size : bounds[-1]], bounds[:-1] - size)
    used = int(bounds[-1])
    noise = process.noise
    if noise.any():
        noise = values[used : used + noise.size].reshape(noise.shape)
        used += noise.size
    made = Multinomial(values[:size].reshape(process.rate.shape), shares, noise)
    made.equilibrium = tuple(shares)  # as they are: dividing by their sum again may change the last digit
    return made, used


def _by_column(name: str, values: FloatArray, columns: list[int]) -> dict[str, float]:
    if values.ndim == 0:
        return {name: float(values)}
    if values.ndim == 1:
        return {f"{name}[{column}]": float(value) for column, value in zip(columns, values, strict=True)}
    return {f"{name}[{a},{b}]": float(values[i, j]) for i, a in enumerate(columns) for j, b in enumerate(columns)}


def slowed(process: Process, factor: float) -> Process:
    """Return the process by another clock: on trees `factor` times as high it says what it said before."""
    if isinstance(process, Mixed):
        return Mixed(*((slowed(part, factor), columns) for part, columns in process.parts))
    if isinstance(process, Brownian):
        return Brownian(process.variance / factor, process.noise * factor)
    if isinstance(process, OrnsteinUhlenbeck):
        return OrnsteinUhlenbeck(process.rate / factor, process.mean, process.variance, process.noise)
    if isinstance(process, Multinomial):
        return Multinomial(process.rate / factor, process.equilibrium, process.noise)
    raise InputError(f"{process!r} has no clock that can be set; only coaltree's own processes have.")
