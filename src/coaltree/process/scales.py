"""The clock that a process goes by."""

from __future__ import annotations

from ..errors import InputError
from .brownian import Brownian
from .interface import Process
from .mixed import Mixed
from .multinomial import Multinomial
from .ornstein_uhlenbeck import OrnsteinUhlenbeck


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
