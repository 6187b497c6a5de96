"""New rows of which a model can say little: without any cell that is known, or far from all that it was fitted to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..table.wording import count, listing

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ..estimators.clustering import CoalescentClustering

_FAR = 1000.0  # below the log density of the rows of the fit
_COMPARED = 1000  # rows of the fit, taken evenly


def remarks_on_rows(
    model: CoalescentClustering, frame: Any, names: Sequence[str], log_density: ArrayLike, instead: str
) -> list[str]:
    """Name rows that nothing is known of, and rows that are far from the table.

    Parameters
    ----------
    model : CoalescentClustering, fitted
    frame : frame
        The new rows.
    names : sequence of str
        Their names.
    log_density : array-like of shape (n_rows,)
        As the model has it for each of them.
    instead : str
        What is said of a row of which nothing is known.

    Returns
    -------
    list of str
    """
    import numpy as np

    rows = model._new_rows(frame)
    fitted = model._predictor.X
    some = fitted[np.linspace(0, len(fitted) - 1, min(len(fitted), _COMPARED)).astype(np.intp)]
    # By standard deviations of the columns: in their units it would matter which cells a row has.
    standard = np.asarray(log_density) - model._log_slopes(rows.table)
    far = np.flatnonzero(standard < model._predictor.log_density(some).min() - _FAR)
    unknown = np.flatnonzero(np.isnan(rows.matrix).all(axis=1))
    found = []
    if len(unknown):
        found.append(
            f"{count(len(unknown), 'row has', 'rows have')} no cell that is known ({_named(names, unknown)}): "
            f"{'its' if len(unknown) == 1 else 'for each, the'} {instead}."
        )
    if len(far):
        found.append(
            f"{count(len(far), 'row is', 'rows are')} far outside the table of the fit ({_named(names, far)}), with a log "
            f"density more than {_FAR:,.0f} below that of the rows of the fit: check units and cells."
        )
    return found


def _named(names: Sequence[str], rows: Any) -> str:
    return listing([names[row] for row in rows])
