"""Models of the command line, from a file or from standard input."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ..console import Notes, progress_bar
from ..errors import InputError
from .options import STANDARD_STREAM
from .tables import STANDARD_INPUT

if TYPE_CHECKING:
    from ..estimators.base import CoalescentModel
    from ..estimators.clustering import CoalescentClustering
    from ..output.model_file import ModelState


def draw_trees(model: CoalescentModel, notes: Notes) -> None:
    """Draw the trees that answer questions about rows, unless the model has them, and show how it goes."""
    with notes.timed("drawing trees"), notes.taken(), progress_bar(not notes.quiet) as report:
        model._draw_trees(report)


def read_model_state(path: Path) -> tuple[ModelState, str]:
    """Return what the file of a model holds, and what the file is called in messages."""
    from ..output.model_file import ModelState, read_state

    if path == STANDARD_STREAM:
        return ModelState.from_bytes(sys.stdin.buffer.read(), STANDARD_INPUT), STANDARD_INPUT
    return read_state(path), str(path)


def load_clustering(path: Path) -> CoalescentClustering:
    """Read a model that has densities and clusters."""
    from ..estimators.clustering import CoalescentClustering
    from ..estimators.stored import model_of

    state, source = read_model_state(path)
    model = model_of(state, source)
    if not isinstance(model, CoalescentClustering):
        raise InputError(
            f"{source} holds a {type(model).__name__}, which fills cells and has neither densities nor clusters: take the "
            "model.coaltree that coaltree fit writes, or a CoalescentClustering's."
        )
    return model
