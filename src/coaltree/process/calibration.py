"""The parameters of a process, fitted to trees: each has a weak prior, and no step lowers the posterior."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError
from ..tree.sample import TreeSample, check_trees, check_weights
from ..tree.tree import Tree
from .base import Evidence, Noise, Process, as_matrix, check_process
from .brownian import Brownian
from .gaussian import Gaussian
from .gaussian_calibration import GaussianPrior, fit_brownian, fit_stationary
from .mixed import Mixed
from .multinomial import Multinomial
from .multinomial_calibration import fit_multinomial, multinomial_log_prior
from .ornstein_uhlenbeck import OrnsteinUhlenbeck

FloatArray = NDArray[np.float64]


def calibrate(
    process: Process,
    trees: Tree | TreeSample | Sequence[Tree],
    X: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    hold_noise: bool = False,
) -> Process:
    """Fit the parameters of a process to a table on one tree, or on a weighted sample of trees.

    Parameters
    ----------
    process : Process
        Where the search begins. Whether a variance or a rate is one number, one a column or a matrix stays as it is.
    trees : Tree, TreeSample or sequence of Tree
    X : array-like of shape (n_leaves, n_columns)
        Row i belongs to leaf i; NaN is a missing cell.
    weights : array-like of shape (n_trees,), optional
        Weights of the trees; by default all the same, or those of the sample.
    hold_noise : bool, default False
        Leave the noise as it is. Noise of 0 in columns with states always stays.

    Returns
    -------
    Process
        Of the same kind. The mean over the trees of ``log p(x | tree)``, with `log_parameter_prior`, is at least what it was.

    Examples
    --------
    >>> import coaltree as ct
    >>> tree = ct.simulate_tree(500, random_state=0)
    >>> X = ct.Brownian(4.0, noise=0.5).simulate(tree, random_state=1, n_columns=5)
    >>> fitted = ct.calibrate(ct.Brownian(), tree, X)
    >>> bool(3 < fitted.variance < 5 and 0.4 < fitted.noise < 0.7)
    True
    """
    check_process(process)
    matrix = as_matrix(X)
    if isinstance(trees, TreeSample):
        weights = trees.weights if weights is None else weights
        trees = trees.trees
    drawn = check_trees([trees] if isinstance(trees, Tree) else trees)
    if drawn[0].n_leaves != len(matrix):
        raise InputError(
            f"The table has {len(matrix)} row(s) and the trees have {drawn[0].n_leaves} leaves; row i is leaf i."
        )
    shares = check_weights(np.ones(len(drawn)) if weights is None else weights, len(drawn))
    return fitted(process.resolve(matrix), drawn, shares, matrix, "held" if hold_noise else "fitted")


def fitted(process: Process, trees: Sequence[Tree], weights: FloatArray, X: FloatArray, noise: Noise) -> Process:
    """Fit the parameters of a resolved process; see `calibrate`, which looks at its arguments first."""
    if len(X) == 1:
        return process
    known = weights > 0
    return _fitted(process, Evidence([t for t, k in zip(trees, known, strict=True) if k], weights[known], X), noise)


def _fitted(process: Process, evidence: Evidence, noise: Noise) -> Process:
    if isinstance(process, Mixed):
        parts = [(_fitted(part, evidence.columns(columns), noise), columns) for part, columns in process.parts]
        return Mixed(*parts)
    if isinstance(process, Brownian):
        return fit_brownian(process, evidence, noise)
    if isinstance(process, OrnsteinUhlenbeck):
        return fit_stationary(process, evidence, noise)
    if isinstance(process, Multinomial):
        return fit_multinomial(process, evidence, noise)
    raise InputError(f"The parameters of {process!r} cannot be fitted; only those of coaltree's own processes can.")


def log_parameter_prior(process: Process, X: FloatArray, hold_noise: bool = False) -> float:
    """Return the log density of a process's parameters under their weak priors, up to a constant.

    With `hold_noise` the noise of real columns is given: it has no prior, and may be below that of rounding.
    """
    if isinstance(process, Mixed):
        return sum(log_parameter_prior(part, X[:, columns], hold_noise) for part, columns in process.parts)
    if isinstance(process, Gaussian):
        noise: Noise = "held" if hold_noise else "fitted"
        return GaussianPrior.of(X, noise).log_density(process)
    if isinstance(process, Multinomial):
        return multinomial_log_prior(process, X)
    raise InputError(f"The parameters of {process!r} have no prior; only those of coaltree's own processes have.")
