"""Optional packages."""

from __future__ import annotations

from .errors import MissingDependencyError


def need(package: str, purpose: str, extra: str) -> None:
    """Raise, with a word on how to get it, unless a package is installed.

    Parameters
    ----------
    package : str
        Its name, for ``import`` and for pip.
    purpose : str
        What is made with it, as the beginning of a sentence.
    extra : str
        The extra of coaltree that brings it.

    Raises
    ------
    MissingDependencyError

    Examples
    --------
    >>> need("telepathy", "Minds need", "mind")
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
