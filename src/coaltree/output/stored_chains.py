"""How Markov chains went, in the file of a model: the traces of every chain, its warm-up too."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InputError
from ..inference.mcmc_result import MCMCResult
from ..process.interface import Process
from ..tree.sample import TreeSample
from .archive import Archive, array_bytes
from .checked_json import member, read_list, read_number, read_object, read_text, read_whole, written_number

_TRACES = ("log_joint", "root_height", "tree_length")
_PARAMETER_PRIOR = "log_parameter_prior"  # of chains that draw parameters as well


def chain_members(sample: MCMCResult) -> dict[str, bytes]:
    """Return the traces of a sample as members of an archive, and those of its parameters where these were drawn."""
    members = {f"trace_{name}.npy": array_bytes(trace, "<f8") for name, trace in sample.traces.items()}
    if sample.parameters:
        members["trace_parameters.npy"] = array_bytes(np.stack(list(sample.parameters.values()), axis=2), "<f8")
    return members


def written_chains(sample: MCMCResult) -> dict[str, Any]:
    """Return what else there is to know of the chains, for JSON."""
    return {
        "n_chains": sample.n_chains,
        "warmup": sample.warmup,
        "parameters": list(sample.parameters),
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
    names = [
        read_text(name, "a parameter's name")
        for name in read_list(member(written, "parameters", "chains"), "parameters")
    ]
    shape = n_chains, warmup + length
    known = (*_TRACES, _PARAMETER_PRIOR) if names else _TRACES
    traces = {name: archive.read_array(f"trace_{name}.npy", "<f8", shape) for name in known}
    drawn = archive.read_array("trace_parameters.npy", "<f8", (*shape, len(names))) if names else np.empty((*shape, 0))
    for name, trace in (traces | {"parameters": drawn}).items():
        if not np.isfinite(trace).all():
            raise InputError(f"its trace_{name}.npy holds NaN or infinite numbers")
    log_joints, log_ratios = sample.log_joints, sample.log_ratios
    if log_joints is None or log_ratios is None:
        raise InputError("its sample has no log joints or no log ratios")
    if not np.array_equal(traces["log_joint"][:, warmup:].ravel(), log_joints):
        raise InputError("its trace_log_joint.npy does not end with the log joints of its trees")
    trees = [sample.trees[c * length : (c + 1) * length] for c in range(n_chains)]
    parameters = {name: drawn[:, :, p] for p, name in enumerate(names)}
    return MCMCResult(trees, traces, log_ratios, warmup, acceptance, process, parameters)
