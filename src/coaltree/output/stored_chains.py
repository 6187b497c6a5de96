"""How Markov chains went, in the file of a model: the traces of every chain, its warm-up too."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InputError
from ..inference.mcmc_result import MCMCResult
from ..process.interface import Process
from ..tree.sample import TreeSample
from .archive import Archive, array_bytes
from .checked_json import member, read_number, read_object, read_whole, written_number

_TRACES = ("log_joint", "root_height", "tree_length")


def chain_members(sample: MCMCResult) -> dict[str, bytes]:
    """Return the traces of a sample as members of an archive."""
    return {f"trace_{name}.npy": array_bytes(sample.traces[name], "<f8") for name in _TRACES}


def written_chains(sample: MCMCResult) -> dict[str, Any]:
    """Return what else there is to know of the chains, for JSON."""
    return {
        "n_chains": sample.n_chains,
        "warmup": sample.warmup,
        "acceptance": {move: written_number(share) for move, share in sample.acceptance.items()},
    }


def read_chains(archive: Archive, sample: TreeSample, written: Any, process: Process) -> MCMCResult:
    """Return a sample with the traces and facts that `chain_members` and `written_chains` have written."""
    n_chains = read_whole(member(written, "n_chains", "chains"), "n_chains", 1)
    warmup = read_whole(member(written, "warmup", "chains"), "warmup")
    acceptance = {
        move: read_number(share, "acceptance")
        for move, share in read_object(member(written, "acceptance", "chains"), "acceptance").items()
    }
    length, left = divmod(len(sample), n_chains)
    if left:
        raise InputError(f"its {len(sample)} trees are not as many of each of {n_chains} chains")
    traces = {name: archive.read_array(f"trace_{name}.npy", "<f8", (n_chains, warmup + length)) for name in _TRACES}
    for name, trace in traces.items():
        if not np.isfinite(trace).all():
            raise InputError(f"its trace_{name}.npy holds NaN or infinite numbers")
    log_joints, log_ratios = sample.log_joints, sample.log_ratios
    if log_joints is None or log_ratios is None:
        raise InputError("its sample has no log joints or no log ratios")
    if not np.array_equal(traces["log_joint"][:, warmup:].ravel(), log_joints):
        raise InputError("its trace_log_joint.npy does not end with the log joints of its trees")
    trees = [sample.trees[c * length : (c + 1) * length] for c in range(n_chains)]
    return MCMCResult(trees, traces, log_ratios, warmup, acceptance, process)
