"""What parameters are fitted to, and what all their priors have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..tree.tree import Tree

FloatArray = NDArray[np.float64]

# Whether noise is to be fitted, or is what the user wants: then it has no prior, and no least value.
Noise: TypeAlias = Literal["fitted", "held"]

# Precisions, in units of the column's own, and rates have a Gamma prior of this shape and scale.
SHAPE, SCALE = 1.1, 1.1
RATE_RANGE = (1e-4, 1e4)


class Evidence(NamedTuple):
    """What parameters are fitted to: weighted trees over the rows of one table."""

    trees: Sequence[Tree]
    weights: FloatArray
    X: FloatArray

    def columns(self, columns: Sequence[int]) -> Evidence:
        """Return the same trees with some of the columns."""
        return self._replace(X=self.X[:, list(columns)])
