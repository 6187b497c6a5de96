"""Data sets of the paper's experiments, downloaded once and checked."""

from .mnist import Mnist, load_mnist
from .nips import Nips, load_nips
from .preparation import balanced_rows, principal_components
from .spambase import Spambase, binary_attributes, load_spambase
from .wals import Wals, densest, indo_european, load_wals

__all__ = [
    "Mnist",
    "Nips",
    "Spambase",
    "Wals",
    "balanced_rows",
    "binary_attributes",
    "densest",
    "indo_european",
    "load_mnist",
    "load_nips",
    "load_spambase",
    "load_wals",
    "principal_components",
]
