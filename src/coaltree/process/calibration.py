"""The parameters of a process, fitted to trees: each has a weak prior, and no step lowers the posterior."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError
from ..tree.tree import Tree, checked_tree
from .brownian import Brownian
from .evidence import Evidence
from .gaussian import Gaussian
from .gaussian_calibration import GaussianPrior, fit_brownian, fit_stationary
from .interface import Process, as_matrix, check_process
from .mixed import Mixed
from .multinomial import Multinomial
from .multinomial_calibration import fit_multinomial, multinomial_log_prior
from .ornstein_uhlenbeck import OrnsteinUhlenbeck

FloatArray = NDArray[np.float64]


def calibrate(
    process: Process,
    trees: Tree | Sequence[Tree],
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
    trees : Tree or sequence of Tree
    X : array-like of shape (n_leaves, n_columns)
        Row i belongs to leaf i; NaN is a missing cell.
    weights : array-like of shape (n_trees,), optional
        Weights of the trees; all the same by default.
    hold_noise : bool, default False
        Leave the noise of real columns as it is.

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
    >>> 3 < fitted.variance < 5 and 0.4 < fitted.noise < 0.7
    True
    """
    check_process(process)
    drawn = [trees] if isinstance(trees, Tree) else list(trees)
    for tree in drawn:
        checked_tree(tree, "trees")
    matrix = as_matrix(X)
    shares = np.full(len(drawn), 1.0) if weights is None else np.asarray(weights, dtype=np.float64)
    if not drawn or shares.shape != (len(drawn),) or not np.all(shares >= 0) or not 0 < shares.sum() < math.inf:
        raise InputError(
            "There must be at least one tree, and weights, if given, one non-negative number for each tree."
        )
    known = shares > 0
    evidence = Evidence([t for t, k in zip(drawn, known, strict=True) if k], shares[known] / shares.sum(), matrix)
    resolved = process.resolve(matrix)
    if len(matrix) == 1:
        return resolved
    return _fitted(resolved, evidence, hold_noise)


def _fitted(process: Process, evidence: Evidence, hold_noise: bool) -> Process:
    if isinstance(process, Mixed):
        parts = [(_fitted(part, evidence.columns(columns), hold_noise), columns) for part, columns in process.parts]
        return Mixed(*parts)
    if isinstance(process, Brownian):
        return fit_brownian(process, evidence, hold_noise)
    if isinstance(process, OrnsteinUhlenbeck):
        return fit_stationary(process, evidence, hold_noise)
    if isinstance(process, Multinomial):
        return fit_multinomial(process, evidence)
    raise InputError(f"The parameters of {process!r} cannot be fitted; only those of coaltree's own processes can.")


def log_parameter_prior(process: Process, X: FloatArray, hold_noise: bool = False) -> float:
    """Return the log density of a process's parameters under their weak priors, up to a constant.

    With `hold_noise` the noise of real columns is given, and has no prior.
    """
    if isinstance(process, Mixed):
        return sum(log_parameter_prior(part, X[:, columns], hold_noise) for part, columns in process.parts)
    if isinstance(process, Gaussian):
        return GaussianPrior.of(X).log_density(process, hold_noise)
    if isinstance(process, Multinomial):
        return multinomial_log_prior(process, X)
    raise InputError(f"The parameters of {process!r} have no prior; only those of coaltree's own processes have.")
