"""Rounds of the search by neighbours, kept in a file from which the search goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..process.layout import first_slots
from ._neighbour_kernels import Lists
from .checkpoints import CheckpointFile, fingerprint
from .steps import Merges


class Round(NamedTuple):
    """How one round began."""

    live: int
    held: float  # share of the lineages looked at whose list had a partner as good as the best of all


class KeptRounds:
    """The state of the search after each round, in a file.

    Parameters
    ----------
    path : str or Path
    forest : forest
        As it is before the first round.
    nodes : ndarray of shape (n,)
        Numbers in the tree of its lineages.
    settings : object
        All else that decides what the search finds.
    """

    def __init__(self, path: str | Path, forest: Any, nodes: NDArray[np.intp], *settings: object) -> None:
        mark = fingerprint((first_slots(forest, len(nodes)), nodes), *settings)
        self._file = CheckpointFile(path, mark, "a search by neighbours")

    def write(self, forest: Any, lists: Lists, merges: Merges, done: int, rounds: list[Round]) -> None:
        """Keep what a round has left: the live lineages, in the first slots, and the merges."""
        live, n = int(lists.counts[1]), len(merges.children) + 1
        messages = {f"message_{k}": own for k, own in enumerate(_arrays(first_slots(forest, live)))}
        self._file.write(
            {"done": done, "rounds": rounds},
            messages
            | {
                "nodes": lists.node[:live],
                "children": merges.children[:done],
                "heights": merges.heights[n : n + done],
            },
        )

    def take_up(self, forest: Any, lists: Lists, merges: Merges) -> tuple[int, list[Round]] | None:
        """Put things as they were after the last round that was kept; return the merges done, and the rounds."""
        stored = self._file.read()
        if stored is None:
            return None
        facts, arrays = stored
        live, n, done = len(arrays["nodes"]), len(merges.children) + 1, facts["done"]
        for k, own in enumerate(_arrays(first_slots(forest, live))):
            own[...] = arrays[f"message_{k}"]
        lists.node[:live] = arrays["nodes"]
        lists.counts[:2] = live
        merges.children[:done], merges.heights[n : n + done] = arrays["children"], arrays["heights"]
        return done, [Round(*own) for own in facts["rounds"]]


def _arrays(forest: Any) -> list[NDArray[Any]]:
    """Return all arrays of a forest and its parts, in order."""
    if isinstance(forest, tuple):
        return [array for field in forest for array in _arrays(field)]
    return [forest] if isinstance(forest, np.ndarray) else []
