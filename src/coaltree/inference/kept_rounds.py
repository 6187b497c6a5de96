"""Rounds of the search by neighbours, kept in a file from which the search goes on."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..process.kernels.messages import Forest
from .checkpoints import CheckpointFile, fingerprint
from .kernels.neighbours import Lists
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
    forest : Forest
        As it is before the first round.
    nodes : ndarray of shape (n,)
        Numbers in the tree of its lineages.
    settings : object
        All else that decides what the search finds.
    """

    def __init__(self, path: str | Path, forest: Forest, nodes: NDArray[np.intp], *settings: object) -> None:
        messages = tuple(_messages(forest, len(nodes)).values())
        mark = fingerprint((messages, _parameters(forest), nodes), *settings)
        self._file = CheckpointFile(path, mark, "a search by neighbours")

    def write(self, forest: Forest, lists: Lists, merges: Merges, done: int, rounds: list[Round]) -> None:
        """Keep what a round has left: the live lineages, in the first slots, and the merges."""
        live, n = int(lists.counts[1]), len(merges.children) + 1
        self._file.write(
            {"done": done, "rounds": rounds},
            _messages(forest, live)
            | {
                "nodes": np.asarray(lists.node)[:live],
                "children": merges.children[:done],
                "heights": merges.heights[n : n + done],
            },
        )

    def take_up(self, forest: Forest, lists: Lists, merges: Merges) -> tuple[int, list[Round]] | None:
        """Put things as they were after the last round that was kept; return the merges done, and the rounds."""
        stored = self._file.read()
        if stored is None:
            return None
        facts, arrays = stored
        live, n, done = len(arrays["nodes"]), len(merges.children) + 1, facts["done"]
        for name, own in _messages(forest, live).items():
            own[...] = arrays[name]
        np.asarray(lists.node)[:live] = arrays["nodes"]
        np.asarray(lists.counts)[:2] = live
        merges.children[:done], merges.heights[n : n + done] = arrays["children"], arrays["heights"]
        return done, [Round(*own) for own in facts["rounds"]]


def _messages(forest: Forest, n: int) -> dict[str, NDArray[np.float64]]:
    """Return what the first n slots of a forest hold, by name, in the same memory."""
    names = ("height", "mean", "spread", "least", "state", "growth", "log_norm")
    return {name: np.asarray(getattr(forest, name))[:n] for name in names}


def _parameters(forest: Forest) -> tuple[object, ...]:
    """Return what all messages of a forest have in common."""
    names = ("complete", "noisy", "log_scale", "root_variance", "group", "rate", "site_rate", "rank", "root_q")
    return tuple(np.asarray(getattr(forest, name)) for name in names)
