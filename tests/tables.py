"""Random tables for tests."""

import numpy as np


def code_table(rng, n, n_states, missing=0.0):
    """Return uniform codes, one column for each number of states, with some cells missing."""
    X = np.column_stack([rng.integers(0, k, n) for k in n_states]).astype(float)
    X[rng.random(X.shape) < missing] = np.nan
    return X
