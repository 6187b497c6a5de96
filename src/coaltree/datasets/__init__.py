"""Data sets of the paper's experiments, downloaded once and checked."""

from .components import principal_components
from .mnist import Mnist, load_mnist
from .nips import Nips, load_nips
from .samples import balanced_rows
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
