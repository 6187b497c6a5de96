"""How sequential Monte Carlo went, in the file of a model: evidence and effective size of every run, merge by merge."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..errors import InputError
from ..inference.smc_result import SMCResult
from ..process.interface import Process
from ..tree.sample import TreeSample
from .archive import Archive, array_bytes

# The type of each array, and what its axes go along.
_ARRAYS = {
    "run_log_evidences": ("<f8", ("run",)),
    "log_evidence_traces": ("<f8", ("run", "merge")),
    "run_ess": ("<f8", ("run", "merge")),
    "resampled": ("|b1", ("run", "merge")),
    "n_ancestors": ("<i4", ("run",)),
    "runs": ("<i4", ("tree",)),
}


def run_members(sample: SMCResult) -> dict[str, bytes]:
    """Return the diagnostics of a sample as members of an archive."""
    return {f"{name}.npy": array_bytes(getattr(sample, name), dtype) for name, (dtype, _) in _ARRAYS.items()}


def read_runs(archive: Archive, sample: TreeSample, n_runs: int, log_evidence: float, process: Process) -> SMCResult:
    """Return a sample with the diagnostics that `run_members` has written."""
    lengths = {"run": n_runs, "merge": sample.n_leaves - 1, "tree": len(sample)}
    found: dict[str, Any] = {
        name: archive.read_array(f"{name}.npy", dtype, tuple(lengths[axis] for axis in axes))
        for name, (dtype, axes) in _ARRAYS.items()
    }
    for name in ("run_log_evidences", "log_evidence_traces", "run_ess"):
        if np.isnan(found[name]).any():
            raise InputError(f"its {name}.npy holds NaN")
    for name in ("n_ancestors", "runs"):
        found[name] = found[name].astype(np.intp)
    if found["runs"].min() < 0 or found["runs"].max() >= n_runs:
        raise InputError("its runs.npy names a run that is not there")
    spread = float(np.std(found["run_log_evidences"], ddof=1)) if n_runs > 1 else math.nan
    found |= {
        "log_evidence": log_evidence,
        "log_evidence_se": spread / math.sqrt(n_runs),
        "ess": found["run_ess"].sum(axis=0),
        "process": process,
        "remarks": [],
    }
    result = SMCResult.__new__(SMCResult)  # it is made of particles, which are gone
    result.__setstate__(sample.__getstate__() | found)
    result.remarks.extend(result._judgement())
    return result
