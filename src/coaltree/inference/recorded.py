"""What Markov chains have recorded so far, and a file from which they go on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .chain import Chain, Sample, State
from .checkpoints import CheckpointFile

FloatArray = NDArray[np.float64]


class Recorded(NamedTuple):
    """Samples of all chains."""

    children: NDArray[np.int32]  # (chains, samples, merges, 2)
    heights: FloatArray  # (chains, samples, merges)
    log_joints: FloatArray  # (chains, samples)
    log_ratios: FloatArray  # (chains, samples, merges)
    parameters: FloatArray  # (chains, samples, parameters), none where they stay as they are
    log_parameter_priors: FloatArray  # (chains, samples)
    missing_cells: FloatArray  # (chains, samples, cells), those that are drawn
    done: NDArray[np.intp]  # (1,), samples that there are

    @classmethod
    def empty(cls, n_chains: int, n_samples: int, n_leaves: int, n_parameters: int, n_missing: int) -> Recorded:
        """Return room for samples."""
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


class Checkpoint:
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

    def write(self, recorded: Recorded, chains: Sequence[Chain]) -> None:
        """Write what there is, and what the chains go on from."""
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

    def take_up(self, recorded: Recorded, chains: Sequence[Chain]) -> int:
        """Go on from the file, if there is one; return during how many samples moves are tuned, or were."""
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
            chain.go_on_from(
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
