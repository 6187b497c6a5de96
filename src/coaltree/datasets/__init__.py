"""Data sets of the paper's experiments, downloaded once and checked."""

from .labelled import (
    Mnist,
    Spambase,
    binarize_attributes,
    load_mnist,
    load_spambase,
    principal_components,
    sample_balanced_rows,
)
from .nips import Nips, load_nips
from .wals import Wals, load_wals, select_densest, select_indo_european

__all__ = [
    "Mnist",
    "Nips",
    "Spambase",
    "Wals",
    "binarize_attributes",
    "load_mnist",
    "load_nips",
    "load_spambase",
    "load_wals",
    "principal_components",
    "sample_balanced_rows",
    "select_densest",
    "select_indo_european",
]
