"""Baselines to compare with: other trees, and other ways to fill in missing cells."""

from .bhc import BayesianHierarchicalClustering
from .imputation import ColumnMode, NearestInTree, NearestRow, PrincipalComponentCells, ProbabilisticPCA
from .linkage import linkage_tree

__all__ = [
    "BayesianHierarchicalClustering",
    "ColumnMode",
    "NearestInTree",
    "NearestRow",
    "PrincipalComponentCells",
    "ProbabilisticPCA",
    "linkage_tree",
]
