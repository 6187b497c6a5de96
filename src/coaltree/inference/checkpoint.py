"""Checkpoint files, from which long computations resume. They are replaced atomically, so they are always complete."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._atomic import check_path, write_atomic
from ..errors import ExecutorError, InputError
from ..process.kernels.messages import Forest
from ..tree.arrays import Merges
from .chain import Chain, Sample, State
from .kernels.neighbors import Lists


def fingerprint(subject: Any, *settings: object) -> str:
    """Return a digest of arrays and numbers, in nested tuples, lists and dataclasses, and of settings."""
    digest = hashlib.sha256(repr(settings).encode())

    def add(part: Any) -> None:
        if isinstance(part, tuple | list):
            for item in part:
                add(item)
        elif is_dataclass(part):
            add([getattr(part, field.name) for field in fields(part)])
        elif part is not None:
            digest.update(np.asarray(part).tobytes())

    add(subject)
    return digest.hexdigest()


_DIGEST_BYTES = hashlib.sha256().digest_size
_CHUNK = 1 << 20


class _DigestWriter(io.RawIOBase):
    """Writes to a file and computes the digest on the way; it cannot seek, so that no byte is written twice."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._digest = hashlib.sha256()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._digest.update(data)
        return self._file.write(data)

    def append_digest(self) -> None:
        """Write the digest of what has been written."""
        self._file.write(self._digest.digest())


def _has_valid_digest(file: BinaryIO) -> bool:
    """Return whether a file ends with the digest of all bytes before it; rewind the file to its beginning."""
    n_bytes = file.seek(0, 2) - _DIGEST_BYTES
    file.seek(0)
    digest = hashlib.sha256()
    while n_bytes > 0:
        piece = file.read(min(_CHUNK, n_bytes))
        if not piece:
            return False
        digest.update(piece)
        n_bytes -= len(piece)
    valid = file.read(_DIGEST_BYTES) == digest.digest()
    file.seek(0)
    return valid


class CheckpointFile:
    """A file with numeric arrays and JSON facts, without pickles, that ends with a digest of all its bytes.

    Parameters
    ----------
    path : str or Path
    mark : str
        `fingerprint` of the input of the computation.
    subject : str
        The computation, for messages.
    """

    def __init__(self, path: str | Path, mark: str, subject: str) -> None:
        self.path = check_path(path)
        self._mark = mark
        self._subject = subject

    def write(self, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Replace the file."""
        text = np.frombuffer(json.dumps({**facts, "mark": self._mark}).encode(), dtype=np.uint8)

        def save(file: BinaryIO) -> None:
            writer = _DigestWriter(file)
            np.savez(writer, allow_pickle=False, facts=text, **arrays)
            writer.append_digest()

        write_atomic(self.path, save)

    def read(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]] | None:
        """Return facts and arrays, or None if the file does not exist."""
        if not self.path.exists():
            return None
        try:
            with self.path.open("rb") as opened:
                if not _has_valid_digest(opened):
                    raise ValueError
                with np.load(opened, allow_pickle=False) as file:
                    arrays = {name: file[name] for name in file.files}
            facts = json.loads(arrays.pop("facts").tobytes())
        except (OSError, ValueError, TypeError, KeyError, EOFError, MemoryError, zipfile.BadZipFile):
            raise InputError(
                f"{self.path} is not a checkpoint of {self._subject}, or it is damaged; choose another name, or remove the file."
            ) from None
        if facts.get("mark") != self._mark:
            raise InputError(
                f"{self.path} is the checkpoint of another table, process or settings; choose another name, or remove the file."
            )
        return facts, arrays


@contextlib.contextmanager
def add_resume_hint(path: str | Path | None = None, *, has_checkpoint: bool = True) -> Iterator[None]:
    """If a Dask cluster is lost, add to the error message how to resume from the checkpoint."""
    try:
        yield
    except ExecutorError as error:
        if path is not None and Path(path).exists():
            hint = f"the completed part is in {path}; repeat the same call or command to resume from it."
        elif path is not None:
            hint = f"nothing has been saved in {path} yet; start again."
        elif not has_checkpoint:
            hint = "nothing was saved; start again when the cluster is available, or without one."
        else:
            hint = "nothing was saved; with checkpoint=, coaltree.greedy and coaltree.mcmc can resume after an interruption."
        raise ExecutorError(f"{error}; {hint}") from None


class Round(NamedTuple):
    """Statistics of one round of the neighbour search."""

    live: int  # lineages at the beginning
    recall: float  # share of tested lineages whose best partner is on their list


class SearchCheckpoint:
    """A checkpoint of the neighbour search, written after each round.

    Parameters
    ----------
    path : str or Path
    forest : Forest
        Before the first round.
    nodes : ndarray of shape (n,)
        Node numbers of its lineages.
    settings : object
        Everything else that the result depends on.
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
        """Restore the state after the last saved round; return the number of merges and the rounds, or None."""
        stored = self._file.read()
        if stored is None:
            return None
        facts, arrays = stored
        live, n, done = len(arrays["nodes"]), len(merges.children) + 1, facts["done"]
        for name, array in _messages(forest, live).items():
            array[...] = arrays[name]
        np.asarray(lists.node)[:live] = arrays["nodes"]
        np.asarray(lists.counts)[:2] = live
        merges.children[:done], merges.heights[n : n + done] = arrays["children"], arrays["heights"]
        return done, [Round(*entry) for entry in facts["rounds"]]


def _messages(forest: Forest, n: int) -> dict[str, NDArray[np.float64]]:
    """Return views of the messages in the first n slots of a forest, by name."""
    names = ("height", "mean", "spread", "least", "state", "growth", "log_norm", *["chain"] * (forest.n_chains > 0))
    return {name: np.asarray(getattr(forest, name))[:n] for name in names}


def _parameters(forest: Forest) -> tuple[object, ...]:
    """Return the parameters that all messages of a forest share."""
    names = ["complete", "noisy", "log_scale", "root_variance", "group", "rate", "site_rate", "rank", "root_q"]
    names += ["chain_rate", "basis"] * (forest.n_chains > 0)
    return tuple(np.asarray(getattr(forest, name)) for name in names)


FloatArray = NDArray[np.float64]


class ChainRecord(NamedTuple):
    """The samples of all chains."""

    children: NDArray[np.int32]  # (chains, samples, merges, 2)
    heights: FloatArray  # (chains, samples, merges)
    log_joints: FloatArray  # (chains, samples)
    log_ratios: FloatArray  # (chains, samples, merges)
    parameters: FloatArray  # (chains, samples, parameters), only those that are sampled
    log_parameter_priors: FloatArray  # (chains, samples)
    missing_cells: FloatArray  # (chains, samples, cells), only those that are sampled
    done: NDArray[np.intp]  # (1,), number of samples so far

    @classmethod
    def empty(cls, n_chains: int, n_samples: int, n_leaves: int, n_parameters: int, n_missing: int) -> ChainRecord:
        """Allocate arrays for samples."""
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

    def add(self, chain: int, number: int, sample: Sample) -> None:
        """Record a sample of a chain."""
        self.children[chain, number], self.heights[chain, number] = sample.children, sample.heights
        self.log_joints[chain, number], self.log_ratios[chain, number] = sample.log_joint, sample.log_ratios
        self.parameters[chain, number] = sample.parameters
        self.log_parameter_priors[chain, number] = sample.log_parameter_prior
        self.missing_cells[chain, number] = sample.missing_cells

    def with_room(self, n_samples: int) -> ChainRecord:
        """Return a record with the same samples, and space for more."""
        larger = ChainRecord.empty(
            len(self.log_joints),
            n_samples,
            self.heights.shape[2] + 1,
            self.parameters.shape[2],
            self.missing_cells.shape[2],
        )
        done = int(self.done[0])
        for name, array in larger.by_sample().items():
            array[:, :done] = self.by_sample()[name][:, :done]
        larger.done[0] = done
        return larger

    def until(self, n_samples: int) -> ChainRecord:
        """Return the first samples."""
        return ChainRecord(**{name: array[:, :n_samples] for name, array in self.by_sample().items()}, done=self.done)

    def by_sample(self) -> dict[str, NDArray[Any]]:
        """Return the arrays with an entry for each sample of each chain, by name."""
        return {name: array for name, array in self._asdict().items() if name != "done"}


class ChainCheckpoint:
    """A checkpoint of Markov chains: their samples and states.

    Parameters
    ----------
    path : str or Path
    mark : str
        `fingerprint` of table, process and settings.
    n_tuning : int
        Samples during which moves are tuned.
    """

    def __init__(self, path: str | Path, mark: str, n_tuning: int) -> None:
        self._file = CheckpointFile(path, mark, "Markov chains")
        self._n_tuning = n_tuning

    def write(self, record: ChainRecord, chains: Sequence[Chain]) -> None:
        """Write the samples so far, and the states of the chains."""
        members = [member for chain in chains for member in chain.members()]
        states = [member.state() for member in members]
        done = int(record.done[0])
        facts = {
            "tuned": self._n_tuning,
            "roots": [state.root for state in states],
            "stretches": [state.stretch for state in states],
            "generators": [state.generator for state in states],
        }
        arrays: dict[str, Any] = {
            **{name: array[:, :done] for name, array in record.by_sample().items()},
            "state_children": np.stack([state.children for state in states]),
            "state_heights": np.stack([state.heights for state in states]),
            "state_parameters": np.stack([state.parameters for state in states]),
            "state_draws": np.stack([state.draws for state in states]),
            "counts": np.stack([[member.tried, member.accepted] for member in members]),
        }
        self._file.write(facts, arrays)

    def n_stored(self) -> int:
        """Return the number of samples in the file; 0 if there is none."""
        contents = self._file.read()
        return 0 if contents is None else int(contents[1]["log_joints"].shape[1])

    def resume(self, record: ChainRecord, chains: Sequence[Chain]) -> int:
        """Restore samples and states if the file exists; return the number of samples during which moves are tuned."""
        contents = self._file.read()
        if contents is None:
            return self._n_tuning
        facts, stored = contents
        done, n_samples = stored["log_joints"].shape[1], record.log_joints.shape[1]
        if done > n_samples:
            raise InputError(
                f"{self._file.path} already has {done} samples of each chain, but n_samples is {n_samples}; set n_samples to at "
                f"least {done}."
            )
        self._n_tuning = int(facts["tuned"])
        for name, array in record.by_sample().items():
            array[:, :done] = stored[name]
        record.done[0] = done
        for c, member in enumerate(member for chain in chains for member in chain.members()):
            member.restore(
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
            member.tried[:], member.accepted[:] = stored["counts"][c]
        return self._n_tuning
