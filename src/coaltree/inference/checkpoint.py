"""Checkpoint files, from which a long computation resumes; complete at any time."""

from __future__ import annotations

import contextlib
import hashlib
import json
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._atomic import check_path, write_atomic
from ..errors import ExecutorError, InputError
from ..process.kernels.messages import Forest
from .chain import Chain, Sample, State
from .kernels.neighbours import Lists
from .merges import Merges


def fingerprint(subject: Any, *settings: object) -> str:
    """Return a digest of a table, a process and settings; the subject is arrays and numbers in tuples and lists."""
    digest = hashlib.sha256(repr(settings).encode())

    def add(part: Any) -> None:
        if isinstance(part, tuple | list):
            for own in part:
                add(own)
        elif part is not None:
            digest.update(np.asarray(part).tobytes())

    add(subject)
    return digest.hexdigest()


class CheckpointFile:
    """A file with arrays of numbers and some facts; nothing in it is pickled.

    Parameters
    ----------
    path : str or Path
    mark : str
        `fingerprint` of what is computed.
    subject : str
        What it is the checkpoint of, for messages.
    """

    def __init__(self, path: str | Path, mark: str, subject: str) -> None:
        self.path = check_path(path)
        self._mark = mark
        self._subject = subject

    def write(self, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Write it anew."""
        text = np.frombuffer(json.dumps({**facts, "mark": self._mark}).encode(), dtype=np.uint8)
        write_atomic(self.path, lambda file: np.savez(file, allow_pickle=False, facts=text, **arrays))

    def read(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]] | None:
        """Return facts and arrays, or None if there is no such file."""
        if not self.path.exists():
            return None
        try:
            with self.path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            facts = json.loads(arrays.pop("facts").tobytes())
        except (OSError, ValueError, TypeError, KeyError, EOFError, zipfile.BadZipFile):
            raise InputError(
                f"{self.path} is not a checkpoint of {self._subject}; choose another name, or remove it."
            ) from None
        if facts.get("mark") != self._mark:
            raise InputError(
                f"{self.path} is the checkpoint of another table, process or settings; choose another name, or remove it."
            )
        return facts, arrays


@contextlib.contextmanager
def add_resume_hint(path: str | Path | None = None, *, has_checkpoint: bool = True) -> Iterator[None]:
    """Add to the message that a cluster was lost where the last checkpoint is, if there is or can be one."""
    try:
        yield
    except ExecutorError as error:
        if path is not None and Path(path).exists():
            rest = f"what was completed is in {path}, and the same call or command goes on from there."
        elif path is not None:
            rest = f"nothing was completed that {path} could hold; start again."
        elif not has_checkpoint:
            rest = "nothing was kept; start again when there is a cluster, or without one."
        else:
            rest = (
                "nothing was kept; coaltree.greedy and coaltree.mcmc go on where they were if they have a checkpoint."
            )
        raise ExecutorError(f"{error}; {rest}") from None


class Round(NamedTuple):
    """How one round began."""

    live: int
    held: float  # share of the lineages looked at whose list had a partner as good as the best of all


class SearchCheckpoint:
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
        """Save the state after a round: the live lineages, in the first slots, and the merges."""
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

    def resume(self, forest: Forest, lists: Lists, merges: Merges) -> tuple[int, list[Round]] | None:
        """Restore the state after the last saved round; return the number of merges, and the rounds."""
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


FloatArray = NDArray[np.float64]


class ChainRecord(NamedTuple):
    """The samples of all chains."""

    children: NDArray[np.int32]  # (chains, samples, merges, 2)
    heights: FloatArray  # (chains, samples, merges)
    log_joints: FloatArray  # (chains, samples)
    log_ratios: FloatArray  # (chains, samples, merges)
    parameters: FloatArray  # (chains, samples, parameters), none where they stay as they are
    log_parameter_priors: FloatArray  # (chains, samples)
    missing_cells: FloatArray  # (chains, samples, cells), those that are drawn
    done: NDArray[np.intp]  # (1,), samples that there are

    @classmethod
    def empty(cls, n_chains: int, n_samples: int, n_leaves: int, n_parameters: int, n_missing: int) -> ChainRecord:
        """Return empty arrays for samples."""
        shape = n_chains, n_samples, n_leaves - 1
        return cls(
            np.zeros((*shape, 2), dtype=np.int32),
            np.zeros(shape),
            np.zeros(shape[:2]),
            np.zeros(shape),
            np.zeros((*shape[:2], n_parameters)),
            np.zeros(shape[:2]),
            np.zeros((*shape[:2], n_missing)),
            np.zeros(1, dtype=np.intp),
        )

    def record(self, chain: int, number: int, found: Sample) -> None:
        """Add a tree of a chain."""
        self.children[chain, number], self.heights[chain, number] = found.children, found.heights
        self.log_joints[chain, number], self.log_ratios[chain, number] = found.log_joint, found.log_ratios
        self.parameters[chain, number] = found.parameters
        self.log_parameter_priors[chain, number] = found.log_parameter_prior
        self.missing_cells[chain, number] = found.missing_cells

    def by_sample(self) -> dict[str, NDArray[Any]]:
        """Return all that there is a row of for each sample of each chain."""
        return {name: array for name, array in self._asdict().items() if name != "done"}


class ChainCheckpoint:
    """A file with what has been recorded, whole at any time.

    Parameters
    ----------
    path : str or Path
    mark : str
        `fingerprint` of what is sampled.
    tuned : int
        Samples during which moves are tuned.
    """

    def __init__(self, path: str | Path, mark: str, tuned: int) -> None:
        self._file = CheckpointFile(path, mark, "Markov chains")
        self._tuned = tuned

    def write(self, recorded: ChainRecord, chains: Sequence[Chain]) -> None:
        """Write the samples so far, and the states of the chains."""
        states = [chain.state() for chain in chains]
        done = int(recorded.done[0])
        facts = {
            "tuned": self._tuned,
            "roots": [state.root for state in states],
            "stretches": [state.stretch for state in states],
            "generators": [state.generator for state in states],
        }
        arrays: dict[str, Any] = {
            **{name: array[:, :done] for name, array in recorded.by_sample().items()},
            "state_children": np.stack([state.children for state in states]),
            "state_heights": np.stack([state.heights for state in states]),
            "state_parameters": np.stack([state.parameters for state in states]),
            "state_draws": np.stack([state.draws for state in states]),
            "counts": np.stack([[chain.tried, chain.accepted] for chain in chains]),
        }
        self._file.write(facts, arrays)

    def resume(self, recorded: ChainRecord, chains: Sequence[Chain]) -> int:
        """Resume from the file, if there is one; return the number of samples during which moves are tuned."""
        found = self._file.read()
        if found is None:
            return self._tuned
        facts, stored = found
        done, most = stored["log_joints"].shape[1], recorded.log_joints.shape[1]
        if done > most:
            raise InputError(
                f"{self._file.path} has {done} samples of each chain already, and n_samples is {most}; ask for at least as many."
            )
        self._tuned = int(facts["tuned"])
        for name, array in recorded.by_sample().items():
            array[:, :done] = stored[name]
        recorded.done[0] = done
        for c, chain in enumerate(chains):
            chain.restore(
                State(
                    stored["state_children"][c],
                    stored["state_heights"][c],
                    facts["roots"][c],
                    facts["stretches"][c],
                    facts["generators"][c],
                    stored["state_parameters"][c],
                    stored["state_draws"][c],
                )
            )
            chain.tried[:], chain.accepted[:] = stored["counts"][c]
        return self._tuned
