"""The estimators as scikit-learn knows them: tables in, parameters, copies, tags and diagrams."""

from __future__ import annotations

import copy
from typing import Any, Self

from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import validate_data

from .._html import shorten_value
from ..table.columns import read_columns
from ..table.inputs import FrameKind, compute_dask
from .base import CoalescentModel


class ScikitModel(BaseEstimator, CoalescentModel):
    """A model that is one of scikit-learn's estimators."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the tree of a table.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features)
            NaN, None, pd.NA and polars' nulls are missing cells. A Dask array is computed block by block.
        y : ignored

        Returns
        -------
        self
        """
        X = compute_dask(X)
        table = read_columns(X, self.categorical_features)
        validate_data(self, X, skip_check_array=True)
        self._fit(table, self._shown_progress if self.verbose else None)
        self._frame_kind = FrameKind.of(X)
        return self

    def __sklearn_clone__(self) -> Self:
        """Let a copy share the connection to a cluster, which cannot be copied."""
        bare = copy.copy(self)
        bare.client = None
        twin: Self = super(ScikitModel, bare).__sklearn_clone__()
        twin.client = self.client
        return twin

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the connection to a cluster, which is this process's own; an address stays."""
        state: dict[str, Any] = super().__getstate__()
        return state | {"client": self.client if isinstance(self.client, str) else None}

    def _repr_html_inner(self) -> str:
        return str(super()._repr_html_inner()) + self._facts_html()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        return bundle | ({"text/html": bundle["text/html"] + self._facts_html()} if "text/html" in bundle else {})

    def _facts_html(self) -> str:
        if not hasattr(self, "tree_"):
            return ""
        return f"<div>{', '.join(f'{name} {shorten_value(value)}' for name, value in self._facts().items())}</div>"

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags
