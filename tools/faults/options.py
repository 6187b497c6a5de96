"""Public functions and methods, called with odd values for one or two of their parameters: arrays as flags, unknown names."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import coaltree as ct

from .outcome import REJECTED, Outcome, check, try_call
from .python_inputs import VALUES

Rng = np.random.Generator

# Arrays that stand where a number, a text or a flag is expected.
ARRAYS: tuple[Any, ...] = (
    np.array([True, False]), np.array([True]), np.array([], dtype=bool), np.zeros((2, 2)), np.array(["mean", "exact"]),
    np.array([0.5, np.nan]), np.array([None, 1], dtype=object), [[1, 2], [3]], [True, False], {"a": 1}, float("nan"), -1,
    10**30, 1e300, "unknown", b"mean", ..., np.float64(0.5), np.bool_(True), np.int8(3),
)  # fmt: skip
ROWS = 8
# Names of classes that users do not know.
_INTERNAL = re.compile(r"Settings\b|FittedModel|NewRows|ChainPlan")


@cache
def _objects() -> Mapping[str, Any]:
    """Return small objects with the methods to call."""
    rng = np.random.default_rng(0)
    table = rng.normal(size=(ROWS, 2))
    process = ct.Brownian()
    tree = ct.greedy(table, process).tree
    sample = ct.smc(table, process, n_particles=4, random_state=0)
    model = ct.CoalescentClustering(random_state=0).fit(table)
    chains = ct.mcmc(table, process, 8, 2, random_state=0)
    return {
        "table": table, "process": process, "tree": tree, "sample": sample, "model": model, "chains": chains,
        "beliefs": ct.Beliefs(tree, table, process), "codes": rng.integers(0, 2, size=(ROWS, 2)).astype(float),
        "names": [f"row {i}" for i in range(ROWS)],
    }  # fmt: skip


@cache
def _calls() -> tuple[tuple[str, Callable[..., Any], Mapping[str, Any]], ...]:
    """Return functions with arguments that they accept."""
    o = _objects()
    table, process, tree, sample, model = o["table"], o["process"], o["tree"], o["sample"], o["model"]
    chains, fit = o["chains"], {"X": table}
    clustering, imputer = ct.CoalescentClustering, ct.CoalescentImputer

    def fit_with(estimator: Any) -> Callable[..., Any]:
        return lambda **parameters: estimator(**parameters).fit(table)

    return (
        ("CoalescentClustering", fit_with(clustering), {"inference": "greedy", "n_clusters": 2, "standardize": True,
         "refine": False, "noise": 0.1, "min_cluster_size": 1, "assign_outliers": True, "verbose": 0, "n_jobs": 1}),
        ("CoalescentClustering", fit_with(clustering), {"inference": "smc", "n_particles": 4, "n_runs": 1,
         "proposal": "race", "summary": "mcc", "summary_heights": "mean", "random_state": 0}),
        ("CoalescentClustering", fit_with(clustering), {"inference": "mcmc", "n_samples": 8, "n_chains": 2,
         "draw_parameters": False, "n_heated": 0, "max_seconds": None, "random_state": 0}),
        ("CoalescentImputer", fit_with(imputer), {"add_indicator": False, "covariance": "full", "search": "auto",
         "rule": "rate1", "real_process": "brownian", "categorical_features": None}),
        ("greedy", ct.greedy, {**fit, "process": process, "rule": "rate1", "search": "auto", "n_jobs": 1}),
        ("smc", ct.smc, {**fit, "process": process, "proposal": "race", "n_particles": 4, "n_runs": 1, "threshold": 0.5,
         "regrafts": 0, "leaf_names": o["names"], "random_state": 0}),
        ("mcmc", ct.mcmc, {**fit, "process": process, "n_samples": 8, "n_chains": 2, "n_heated": 0,
         "draw_parameters": False, "hold_noise": False, "leaf_names": o["names"], "random_state": 0}),
        ("evidence", ct.evidence, {**fit, "process": process, "n_runs": 2, "n_chains": 3, "n_samples": 2,
         "powers": None, "random_state": 0}),
        ("refine", ct.refine, {**fit, "process": process, "tree": tree}),
        ("calibrate", ct.calibrate, {**fit, "process": process, "trees": tree, "weights": None, "hold_noise": False}),
        ("log_joint", ct.log_joint, {**fit, "process": process, "tree": tree}),
        ("log_likelihood", process.log_likelihood, {"tree": tree, "X": table}),
        ("Beliefs", ct.Beliefs, {"tree": tree, "X": table, "process": process}),
        ("Beliefs.at", o["beliefs"].at, {"nodes": [0, 1], "heights": [0.0, 0.0]}),
        ("log_prior", ct.log_prior, {"tree": tree}),
        ("simulate_tree", ct.simulate_tree, {"n": 4, "random_state": 0}),
        ("simulate", process.simulate, {"tree": tree, "n_columns": 2, "random_state": 0}),
        ("Brownian", ct.Brownian, {"variance": 1.0, "noise": 0.0}),
        ("OrnsteinUhlenbeck", ct.OrnsteinUhlenbeck, {"variance": 1.0, "mean": 0.0, "noise": 0.0}),
        ("Multinomial", ct.Multinomial, {"rate": 1.0, "equilibrium": None, "noise": 0.0, "ascertainment": None}),
        ("robinson_foulds", ct.robinson_foulds, {"a": tree, "b": tree, "normalized": False}),
        ("Tree", ct.Tree, {"children": [[0, 1]], "heights": [0, 0, 1], "leaf_names": ["a", "b"]}),
        ("Tree.leaves_below", tree.leaves_below, {"node": 3}),
        ("Tree.rename", tree.rename, {"leaf_names": o["names"]}),
        ("Tree.reorder", tree.reorder, {"leaf_names": list(tree.leaf_names)}),
        ("Tree.from_newick", ct.Tree.from_newick, {"text": "(a:1,b:1);", "tolerance": 1e-6}),
        ("Tree.from_linkage", ct.Tree.from_linkage, {"Z": tree.to_linkage(), "leaf_names": None}),
        ("TreeSample", ct.TreeSample, {"trees": [tree, tree], "weights": None}),
        ("TreeSample.merge_heights", sample.merge_heights, {"a": 0, "b": 1}),
        ("TreeSample.co_clustering", sample.co_clustering, {"n_clusters": 2, "height": None}),
        ("TreeSample.consensus", sample.consensus, {"threshold": 0.5, "heights": "mean"}),
        ("TreeSample.mcc", sample.mcc, {"heights": "mean"}),
        ("TreeSample.ccd0", sample.ccd0, {"heights": "mean"}),
        ("TreeSample.summarize", chains.summarize, {"summary": "ccd0", "heights": "mean"}),
        ("TreeSample.distances", sample.distances, {"normalized": False}),
        ("TreeSample.from_nexus", ct.TreeSample.from_nexus, {"text": sample.to_nexus(), "tolerance": 1e-6}),
        ("SummaryTree.to_newick", sample.mcc().to_newick, {"support": True}),
        ("cut", model.cut, {"n_clusters": 2, "min_cluster_size": 1, "assign_outliers": True}),
        ("cut", model.cut, {"resolution": 0.5}),
        ("cut", model.cut, {"height_threshold": 0.5}),
        ("predict", model.predict, {"X": table[:2]}),
        ("state_set", lambda state=0: ct.state_set(state), {"state": 1}),
        ("linkage_tree", ct.baselines.linkage_tree, {"X": table, "method": "average"}),
        ("BayesianHierarchicalClustering", lambda **parameters: ct.baselines.BayesianHierarchicalClustering(
            **parameters).fit(table), {"model": "auto"}),
        ("dendrogram_purity", ct.metrics.dendrogram_purity, {"tree": tree, "labels": [0, 1] * (ROWS // 2)}),
        ("subtree_score", ct.metrics.subtree_score, {"tree": tree, "labels": [0, 1] * (ROWS // 2)}),
        ("leave_one_out", ct.metrics.leave_one_out_accuracy, {"tree": tree, "labels": [0, 1] * (ROWS // 2)}),
    )  # fmt: skip


def case(rng: Rng, folder: Path) -> Outcome:
    """Call a function with odd values for one or two of its parameters, or with a parameter that it does not have."""
    calls = _calls()
    name, function, arguments = calls[int(rng.integers(len(calls)))]
    odd = dict(arguments)
    if rng.random() < 0.05 or not arguments:
        odd[str(rng.choice(["k", "unknown", "n_cluster", "random"]))] = 1
    else:
        for parameter in rng.choice(
            list(arguments), size=min(len(arguments), int(rng.choice([1, 1, 2]))), replace=False
        ):
            values = ARRAYS if rng.random() < 0.5 else VALUES
            value = values[int(rng.integers(len(values)))]
            # Large numbers of samples are allowed, and take as long as they take.
            if not (isinstance(value, int) and value > ROWS):
                odd[str(parameter)] = value
    try:
        outcome = try_call(lambda: function(**odd))
    except TypeError as error:
        if not re.search(r"unexpected keyword argument|missing \d+ required", str(error)):
            raise
        outcome = Outcome(REJECTED, str(error))
    check(_INTERNAL.search(outcome.words) is None, f"{name}({', '.join(odd)}): internal name in {outcome.words!r}")
    check("truth value" not in outcome.words, f"{name}: {outcome.words!r}")
    return outcome
