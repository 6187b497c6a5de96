"""Bayesian hierarchical clustering with Kingman's coalescent."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import baselines, datasets, errors, metrics
    from .estimators.clustering import CoalescentClustering
    from .estimators.imputer import CoalescentImputer
    from .estimators.load import load_model
    from .estimators.outliers import CoalescentOutlierDetector
    from .inference.evidence import evidence
    from .inference.greedy import GreedyResult, greedy
    from .inference.mcmc import mcmc
    from .inference.refine import refine
    from .inference.results import EvidenceResult, MCMCResult, SMCResult
    from .inference.smc import smc
    from .plot.dendrogram import plot_dendrogram
    from .plot.density import plot_density
    from .plot.diagnostics import plot_evidence, plot_traces
    from .plot.heatmap import plot_co_clustering, plot_heatmap
    from .plot.trees import plot_lineages, plot_tanglegram, plot_trees
    from .process.base import Process
    from .process.brownian import Brownian
    from .process.likelihood import Beliefs, calibrate, log_joint
    from .process.mixed import Mixed
    from .process.multinomial import Multinomial
    from .process.ordered import Ordered
    from .process.ornstein_uhlenbeck import OrnsteinUhlenbeck
    from .table.cells import state_set
    from .table.characters import read_characters
    from .tree.clades import robinson_foulds
    from .tree.coalescent import log_prior, simulate_tree
    from .tree.sample import TreeSample
    from .tree.tree import SummaryTree, Tree

__version__ = "0.1.0"

# Public names and their modules. They are imported when first used: scikit-learn takes longer to import
# than many trees take to build.
_HOMES = {
    "Beliefs": "process.likelihood",
    "Brownian": "process.brownian",
    "CoalescentClustering": "estimators.clustering",
    "CoalescentImputer": "estimators.imputer",
    "CoalescentOutlierDetector": "estimators.outliers",
    "EvidenceResult": "inference.results",
    "GreedyResult": "inference.greedy",
    "MCMCResult": "inference.results",
    "Mixed": "process.mixed",
    "Multinomial": "process.multinomial",
    "Ordered": "process.ordered",
    "OrnsteinUhlenbeck": "process.ornstein_uhlenbeck",
    "Process": "process.base",
    "SMCResult": "inference.results",
    "SummaryTree": "tree.tree",
    "Tree": "tree.tree",
    "TreeSample": "tree.sample",
    "calibrate": "process.likelihood",
    "datasets": "",
    "errors": "",
    "evidence": "inference.evidence",
    "greedy": "inference.greedy",
    "load_model": "estimators.load",
    "log_joint": "process.likelihood",
    "log_prior": "tree.coalescent",
    "mcmc": "inference.mcmc",
    "metrics": "",
    "plot_co_clustering": "plot.heatmap",
    "plot_dendrogram": "plot.dendrogram",
    "plot_density": "plot.density",
    "plot_evidence": "plot.diagnostics",
    "plot_heatmap": "plot.heatmap",
    "plot_lineages": "plot.trees",
    "plot_tanglegram": "plot.trees",
    "plot_traces": "plot.diagnostics",
    "plot_trees": "plot.trees",
    "read_characters": "table.characters",
    "refine": "inference.refine",
    "baselines": "",
    "robinson_foulds": "tree.clades",
    "simulate_tree": "tree.coalescent",
    "smc": "inference.smc",
    "state_set": "table.cells",
}

__all__ = [
    "Beliefs",
    "Brownian",
    "CoalescentClustering",
    "CoalescentImputer",
    "CoalescentOutlierDetector",
    "EvidenceResult",
    "GreedyResult",
    "MCMCResult",
    "Mixed",
    "Multinomial",
    "Ordered",
    "OrnsteinUhlenbeck",
    "Process",
    "SMCResult",
    "SummaryTree",
    "Tree",
    "TreeSample",
    "baselines",
    "calibrate",
    "datasets",
    "errors",
    "evidence",
    "greedy",
    "load_model",
    "log_joint",
    "log_prior",
    "mcmc",
    "metrics",
    "plot_co_clustering",
    "plot_dendrogram",
    "plot_density",
    "plot_evidence",
    "plot_heatmap",
    "plot_lineages",
    "plot_tanglegram",
    "plot_traces",
    "plot_trees",
    "read_characters",
    "refine",
    "robinson_foulds",
    "simulate_tree",
    "smc",
    "state_set",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'coaltree' has no attribute {name!r}")
    home = _HOMES[name]
    if home:
        value = getattr(importlib.import_module(f".{home}", __name__), name)
    else:
        value = importlib.import_module(f".{name}", __name__)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
