"""How a Dask cluster is named in text."""

from __future__ import annotations

import re


def names_a_cluster(text: str) -> bool:
    """Say whether a text is the address of a scheduler, or asks for workers on this machine.

    Examples
    --------
    >>> [names_a_cluster(text) for text in ("tcp://host:8786", "local:2", "local:0", "local:1000", "host")]
    [True, True, False, False, False]
    """
    return re.fullmatch(r"local:[1-9]\d{0,2}|[a-z]+://\S+", text) is not None
