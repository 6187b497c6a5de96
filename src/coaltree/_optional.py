"""Checks for optional packages."""

from __future__ import annotations

from .errors import MissingDependencyError


def require_package(package: str, purpose: str, extra: str) -> None:
    """Raise unless an optional package is installed, and say how to install it.

    Parameters
    ----------
    package : str
        Its name for ``import`` and pip.
    purpose : str
        What needs it, as the beginning of a sentence.
    extra : str
        The extra of coaltree that installs it.

    Raises
    ------
    MissingDependencyError

    Examples
    --------
    >>> require_package("telepathy", "Minds need", "mind")
    Traceback (most recent call last):
        ...
    coaltree.errors.MissingDependencyError: Minds need telepathy, which is not installed; run: pip install "coaltree[mind]"
    """
    try:
        __import__(package)
    except ImportError as error:
        raise MissingDependencyError(
            f'{purpose} {package}, which is not installed; run: pip install "coaltree[{extra}]"'
        ) from error
