"""Analyses of several drawn tables, pooled by Rubin's rules: eq. (9.11).

References
----------
Rubin (1987), Multiple Imputation for Nonresponse in Surveys. Barnard and Rubin (1999), Small-sample degrees of freedom with
multiple imputation, Biometrika 86.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._html import rows_html
from .._parameters import check_parameter
from .._validation import quote
from ..errors import InputError, MissingDependencyError
from ..table.labels import count

FloatArray = NDArray[np.float64]

_HINT = (
    "it must return estimates with their variances (two numbers, arrays or mappings of names), or a fitted model of "
    "statsmodels or scikit-learn"
)


class Analysis(NamedTuple):
    """What an analysis says of one table."""

    names: tuple[str, ...]
    estimate: FloatArray
    variance: FloatArray | None
    df: float  # degrees of freedom that the table would give if it were complete


@dataclass(frozen=True, eq=False, repr=False)
class PooledEstimates:
    """Estimates from several drawn tables, with what the missing cells add to their uncertainty.

    Attributes
    ----------
    names : tuple of str
    estimate : ndarray of float
        Means over the tables.
    std_error : ndarray of float or None
        Within and between tables. None if the analysis gave no variances.
    between_sd : ndarray of float
        Standard deviations between tables, from the missing cells alone.
    df : ndarray of float or None
        Degrees of freedom of Student's t distribution, of Barnard and Rubin if the analysis knows its own.
    fraction_missing : ndarray of float or None
        Share of the information about the estimate that is lost with the missing cells.
    n_tables : int
    """

    names: tuple[str, ...]
    estimate: FloatArray
    std_error: FloatArray | None
    between_sd: FloatArray
    df: FloatArray | None
    fraction_missing: FloatArray | None
    n_tables: int

    def __len__(self) -> int:
        return len(self.names)

    def interval(self, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Return the lower and upper ends of confidence intervals."""
        check_parameter("level", level)
        from scipy.stats import t  # slow to import, and only intervals need it

        std_error, df = self._require_variances()
        half = t.ppf(0.5 + 0.5 * level, df) * std_error
        return self.estimate - half, self.estimate + half

    @property
    def p_value(self) -> FloatArray:
        """Two-sided p values of the hypotheses that the estimates are 0."""
        from scipy.stats import t  # slow to import

        std_error, df = self._require_variances()
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(self.estimate == 0, 0.0, np.abs(self.estimate) / std_error)
        return np.asarray(2 * t.sf(ratio, df))

    def _require_variances(self) -> tuple[FloatArray, FloatArray]:
        if self.std_error is None or self.df is None:
            raise InputError(
                "The analysis gave estimates without variances, so there are no standard errors, intervals or p values, only "
                "between_sd. Return (estimates, variances), or a fitted model of statsmodels."
            )
        return self.std_error, self.df

    def columns(self) -> dict[str, list[Any]]:
        """Return the table as a dict of columns."""
        table: dict[str, list[Any]] = {"name": list(self.names), "estimate": self.estimate.tolist()}
        if self.std_error is not None and self.df is not None and self.fraction_missing is not None:
            low, high = self.interval()
            table |= {"std_error": self.std_error.tolist(), "low": low.tolist(), "high": high.tolist()}
            table |= {"df": self.df.tolist(), "p_value": self.p_value.tolist()}
            table["fraction_missing"] = self.fraction_missing.tolist()
        return table | {"between_sd": self.between_sd.tolist()}

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame with the names as index, and 95 % intervals."""
        try:
            import pandas as pd
        except ImportError as error:
            raise MissingDependencyError("pandas is not installed: use columns(), or pip install pandas.") from error
        return pd.DataFrame(self.columns()).set_index("name")

    def __repr__(self) -> str:
        errors = self.between_sd if self.std_error is None else self.std_error
        shown = [
            f"{name} {value:.4g} +- {error:.2g}"
            for name, value, error in zip(self.names[:3], self.estimate, errors, strict=False)
        ]
        return f"<PooledEstimates of {self.n_tables} tables: {', '.join(shown)}{', ...' if len(self) > 3 else ''}>"

    def _repr_html_(self) -> str:
        return rows_html(f"Estimates pooled over {count(self.n_tables, 'drawn table')}", self.columns(), len(self))


def pool_analyses(analysis: Callable[[Any], Any], tables: Iterable[Any], n_tables: int) -> PooledEstimates:
    """Run an analysis on every table and pool what it returns.

    Parameters
    ----------
    analysis : callable
    tables : iterable
    n_tables : int
        Their number.

    Raises
    ------
    InputError
        If the analysis fails on a table, or returns something else on it.
    """
    found: list[Analysis] = []
    for number, table in enumerate(tables, start=1):
        where = f"drawn table {number} of {n_tables}"
        try:
            answer = analysis(table)
        except Exception as error:
            raise InputError(f"The analysis failed on {where}: {type(error).__name__}: {error}") from error
        found.append(_read_answer(answer, where))
        if found[-1].names != found[0].names or (found[-1].variance is None) != (found[0].variance is None):
            raise InputError(
                f"The analysis returned {count(len(found[-1].names), 'estimate')} ({_listed(found[-1].names)}) on {where}, and "
                f"{count(len(found[0].names), 'estimate')} ({_listed(found[0].names)}) on the first; they must be the same."
            )
    return _pool(found)


def _pool(found: list[Analysis]) -> PooledEstimates:
    m = len(found)
    estimates = np.array([one.estimate for one in found])
    mean, between = estimates.mean(axis=0), estimates.var(axis=0, ddof=1)
    variances = [one.variance for one in found if one.variance is not None]
    if not variances:
        return PooledEstimates(found[0].names, mean, None, np.sqrt(between), None, None, m)
    added = (1 + 1 / m) * between
    total = np.mean(variances, axis=0) + added
    share = np.divide(
        added, total, out=np.zeros_like(total), where=total > 0
    )  # of the variance, from the missing cells
    complete = min(one.df for one in found)
    with np.errstate(divide="ignore"):
        df = (m - 1) / share**2
        if math.isfinite(complete):
            df = 1 / (1 / df + 1 / ((complete + 1) / (complete + 3) * complete * (1 - share)))
    ratio = np.divide(share, 1 - share, out=np.full_like(share, np.inf), where=share < 1)
    with np.errstate(invalid="ignore"):
        fraction = np.where(np.isinf(ratio), 1.0, (ratio + 2 / (df + 3)) / (ratio + 1))
    fraction[share == 0] = 0.0
    return PooledEstimates(found[0].names, mean, np.sqrt(total), np.sqrt(between), df, fraction, m)


def _read_answer(answer: Any, where: str) -> Analysis:
    """Return the estimates in what an analysis returned."""
    df = math.inf
    if hasattr(answer, "params") and hasattr(answer, "bse"):  # statsmodels
        names, estimate = _read_numbers(answer.params, where)
        errors, df = _read_numbers(answer.bse, where)[1], float(getattr(answer, "df_resid", math.inf))
        if isinstance(getattr(getattr(answer, "model", None), "exog_names", None), list) and not _has_names(
            answer.params
        ):
            names = tuple(map(str, answer.model.exog_names))
        return _checked(Analysis(names, estimate, errors**2, df), where)
    if hasattr(answer, "coef_"):  # scikit-learn
        return _checked(Analysis(*_read_coefficients(answer, where), None, df), where)
    if isinstance(answer, tuple) and len(answer) == 2:
        names, estimate = _read_numbers(answer[0], where)
        variance_names, variance = _read_numbers(answer[1], where)
        if _has_names(answer[0]) and _has_names(answer[1]) and set(names) == set(variance_names):
            variance = variance[[variance_names.index(name) for name in names]]
        return _checked(Analysis(names, estimate, variance, df), where)
    return _checked(Analysis(*_read_numbers(answer, where), None, df), where)


def _read_coefficients(model: Any, where: str) -> tuple[tuple[str, ...], FloatArray]:
    """Return the names and values of the coefficients of a linear model of scikit-learn, its intercepts last."""
    rows = np.atleast_2d(np.asarray(model.coef_, dtype=np.float64))
    features = [str(name) for name in getattr(model, "feature_names_in_", [f"x{j}" for j in range(rows.shape[1])])]
    of_row = [""] if len(rows) == 1 else [f" of {k}" for k in range(len(rows))]
    intercepts = np.atleast_1d(np.asarray(getattr(model, "intercept_", 0.0), dtype=np.float64))
    names = [name + row for row in of_row for name in features] + [
        "intercept" + row for row in of_row[: len(intercepts)]
    ]
    return _read_numbers(dict(zip(names, [*rows.ravel(), *intercepts], strict=True)), where)


def _has_names(numbers: Any) -> bool:
    return isinstance(numbers, Mapping) or (hasattr(numbers, "index") and hasattr(numbers, "to_numpy"))


def _read_numbers(numbers: Any, where: str) -> tuple[tuple[str, ...], FloatArray]:
    """Return the names and values of numbers in a scalar, an array, a mapping or a Series; of a matrix its diagonal."""
    if isinstance(numbers, Mapping):
        names, values = list(numbers), list(numbers.values())
    else:
        names, values = (list(numbers.index), numbers.to_numpy()) if _has_names(numbers) else ([], numbers)
    try:
        array = np.atleast_1d(np.asarray(values, dtype=np.float64))
    except (TypeError, ValueError):
        raise InputError(f"The analysis returned {quote(numbers)} on {where}; {_HINT}.") from None
    if array.ndim == 2 and array.shape[0] == array.shape[1]:  # a covariance matrix
        array = np.diag(array)
    array = array.ravel()
    return tuple(map(str, names)) if len(names) == len(array) else tuple(
        f"estimate {k}" for k in range(len(array))
    ), array


def _checked(one: Analysis, where: str) -> Analysis:
    for what, values in (("estimates", one.estimate), ("variances", one.variance)):
        if values is None:
            continue
        if len(values) != len(one.names) or not len(values):
            raise InputError(
                f"The analysis returned {count(len(one.names), 'estimate')} and {count(len(values), 'variance')} on {where}; "
                f"{_HINT}."
            )
        bad = ~np.isfinite(values) | ((values < 0) & (what == "variances"))
        if bad.any():
            k = int(bad.argmax())
            raise InputError(
                f"Among the {what} of the analysis on {where}, that of {quote(one.names[k])} is {values[k]:g}."
            )
    return one


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
