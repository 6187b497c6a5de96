"""Flat clusters of a table's tree, without scikit-learn."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..inference.flat_clusters import (
    check_min_cluster_size,
    flat_clusters,
    natural_cut,
    passed_over,
    smallest_size,
    stray_rows,
)
from ..inference.greedy import GreedyResult
from ..process.base import Process
from ..table.encoding import EncodedTable
from ..table.messages import count
from ..tree.cut import check_cut, cut_by_agreement
from ..tree.sample import TreeSample
from ..tree.tree import Tree
from .base import CoalescentModel, FloatArray
from .modelling import RESOLUTION, check_resolution, height_of

IntArray = NDArray[np.intp]


class ClusterModel(CoalescentModel):
    """A tree with flat clusters: what `coaltree.CoalescentClustering` fits, whose parameters and attributes it has."""

    _stored_as = "CoalescentClustering"

    def __init__(
        self,
        *,
        inference: str = "greedy",
        rule: str = "rate1",
        proposal: str = "post-post",
        n_particles: int = 50,
        n_runs: int = 1,
        n_chains: int = 4,
        n_samples: int = 1000,
        summary: str = "mcc",
        draw_parameters: bool = False,
        real_process: str | Process = "ornstein-uhlenbeck",
        categorical_process: Process | None = None,
        covariance: str | None = None,
        noise: float | None = None,
        categorical_features: Any = "from_dtype",
        unseen_categories: str = "missing",
        standardize: bool | Literal["power"] = True,
        resolution: float | None = None,
        n_clusters: int | None = None,
        height_threshold: float | None = None,
        min_cluster_size: float = 0.02,
        assign_outliers: bool = True,
        search: str = "auto",
        refine: bool = False,
        n_jobs: int | None = None,
        client: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.inference = inference
        self.rule = rule
        self.proposal = proposal
        self.n_particles = n_particles
        self.n_runs = n_runs
        self.n_chains = n_chains
        self.n_samples = n_samples
        self.summary = summary
        self.draw_parameters = draw_parameters
        self.real_process = real_process
        self.categorical_process = categorical_process
        self.covariance = covariance
        self.noise = noise
        self.categorical_features = categorical_features
        self.unseen_categories = unseen_categories
        self.standardize = standardize
        self.resolution = resolution
        self.n_clusters = n_clusters
        self.height_threshold = height_threshold
        self.min_cluster_size = min_cluster_size
        self.assign_outliers = assign_outliers
        self.search = search
        self.refine = refine
        self.n_jobs = n_jobs
        self.client = client
        self.random_state = random_state
        self.verbose = verbose

    def _set_apart(self, tree: Tree, encoded: EncodedTable) -> dict[str, IntArray]:
        min_size = smallest_size(self.min_cluster_size, tree.n_leaves, self.n_clusters)
        found = stray_rows(tree, encoded.real, min_size)
        return {encoded.real_names[column]: rows for column, rows in found.items()}

    def _settle(
        self,
        found: GreedyResult | TreeSample,
        matrix: FloatArray,
        process: Process,
        labels: IntArray | None = None,
    ) -> None:
        super()._settle(found, matrix, process, labels)
        if labels is None:
            self.remarks_ += self._remarks_on_cut(self.n_clusters, self.min_cluster_size)
            labels = self._cut(self.n_clusters, self.height_threshold, self.resolution, self.min_cluster_size)
        self.labels_ = labels
        self.n_clusters_ = int(labels.max()) + 1
        self.linkage_ = self.tree_.to_linkage()
        self.children_ = self.tree_.children
        self.distances_ = self.tree_.merge_heights

    def _cut(
        self, n_clusters: int | None, height: float | None, resolution: float | None, min_cluster_size: float
    ) -> IntArray:
        """Return the flat clusters: of one tree by a cut, of a sample by what most of its trees agree on."""
        if hasattr(self, "sample_"):
            together = self.sample_.co_clustering(n_clusters=n_clusters, height=height)
            return cut_by_agreement(together, n_clusters)
        if n_clusters is None and height is None and resolution is not None:
            height = height_of(resolution)
        return flat_clusters(
            self.tree_,
            self._matrix,
            self.process_,
            n_clusters=n_clusters,
            height=height,
            otherwise=height_of(RESOLUTION),
            min_cluster_size=min_cluster_size,
            assign_outliers=self.assign_outliers,
        )

    def _remarks_on_cut(self, n_clusters: int | None, min_cluster_size: float) -> list[str]:
        """Say that groups which stand apart are too small to be among the clusters that were asked for."""
        if n_clusters is None or min_cluster_size >= 1 or hasattr(self, "sample_"):
            return []
        min_size = smallest_size(min_cluster_size, self.tree_.n_leaves, n_clusters)
        sizes = passed_over(self.tree_, min_size, n_clusters)
        if not len(sizes):
            return []
        groups = count(len(sizes), "group stands", "groups stand")
        return [
            f"{groups} apart more clearly than the {n_clusters} clusters, and {'has' if len(sizes) == 1 else 'have at most'} "
            f"{sizes[0]} rows: too few for a cluster of at least {min_size}. For clusters of that size, set "
            f"min_cluster_size={sizes[0]}."
        ]

    @property
    def _natural_reason(self) -> str:
        """What decided on the clusters, if nobody has said how to cut the tree."""
        min_size = smallest_size(self.min_cluster_size, self.tree_.n_leaves)
        return natural_cut(self.tree_, min_size, height_of(RESOLUTION), self._matrix.shape[1]).reason

    def _check_parameters(self, n_rows: int) -> None:
        super()._check_parameters(n_rows)
        check_cut(self.n_clusters, self.height_threshold, n_rows, self.resolution)
        check_resolution(self.resolution)
        check_min_cluster_size(self.min_cluster_size)
        if not isinstance(self.assign_outliers, (bool, np.bool_)):
            raise InputError(f"assign_outliers is {self.assign_outliers!r}; it must be True or False.")
