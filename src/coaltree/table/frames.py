"""Results as frames of the kind that a table came in, with its index."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from ..errors import MissingDependencyError


class FrameKind(NamedTuple):
    """The library of a frame, and its index where it has one."""

    library: Any = "pandas"  # for what came in no frame
    index: Any = None

    @classmethod
    def of(cls, X: Any) -> Self:
        """Look at a table of any kind."""
        frame = nw.from_native(X, eager_only=True, pass_through=True)
        if not isinstance(frame, nw.DataFrame):
            return cls()
        return cls(frame.implementation.value, nw.maybe_get_index(frame))

    def frame(self, columns: Mapping[str, NDArray[Any]]) -> Any:
        """Return columns, one entry a row of the table, as a frame of its kind with its index.

        Raises
        ------
        MissingDependencyError
            If the library is not installed, which it is unless the table came in no frame.
        """
        try:
            frame = nw.from_dict(
                {name: _plain(cells) for name, cells in columns.items()}, backend=self.library
            ).to_native()
        except ImportError as error:
            raise MissingDependencyError(
                f"Frames need {self.library}, which is not installed: pip install pandas."
            ) from error
        return frame if self.index is None else frame.set_axis(self.index)


def _plain(cells: NDArray[Any]) -> NDArray[Any]:
    """Return whole numbers as 64 bits on every machine."""
    return cells.astype(np.int64) if cells.dtype.kind == "i" else cells
