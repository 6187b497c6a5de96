"""Files for the user: what goes into them, and writing them whole or not at all."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import math
import os
import secrets
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import __version__
from ..errors import InputError, MissingDependencyError
from ..inference.smc_result import SMCResult
from ..table.columns import Column, RealColumn, Table
from ..table.encoding import Encoding
from ..tree.kingman import log_prior
from ..tree.tree import Tree
from .dendrogram import plot_dendrogram
from .fonts import any_script


class FittedClustering(Protocol):
    """What a summary asks of a fitted estimator, which is made later in the flow of data than its outputs."""

    inference: str
    rule: str
    n_clusters: int | None
    height_threshold: float | None
    encoding_: Encoding
    tree_: Tree
    labels_: NDArray[np.intp]
    n_clusters_: int
    log_joint_: float
    log_likelihood_: float
    sample_: SMCResult  # only where the inference is "smc"


# Up to this many leaves are named in a picture, and above it the picture grows no more.
MAX_NAMED_LEAVES = 300
_DPI = 150


def write_whole(path: str | Path, data: str | bytes) -> None:
    """Write a file whole or not at all: whatever goes wrong, an earlier file of that name stays as it was.

    Parameters
    ----------
    path : str or Path
        The file; its folder must exist.
    data : str or bytes
        The content; text is written as UTF-8.

    Raises
    ------
    InputError
        When it cannot be written; the message says why.
    """
    path = Path(path)
    if path.is_dir():
        raise InputError(f"{path} cannot be written: it is a folder; choose another name.")
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        _write_synced(part, data)
        os.replace(part, path)
    except OSError as error:
        raise _not_written(path, error) from None
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)


class OutputFolder:
    """A folder into which several files are written, all of them or none.

    Used as a context manager. On entering, the folder is made and tried, so that a long computation does not
    end at a locked door. Files are added in memory; they are written when the block ends well. If anything
    goes wrong, in the block or in writing, earlier files stay as they were, and a folder that was made is
    removed.

    Parameters
    ----------
    path : str or Path
        The folder. Files in it that have the name of a new one are replaced, others are left alone.

    Raises
    ------
    InputError
        When the folder cannot be made or written; the message says why.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._files: dict[str, str | bytes | None] = {}
        self._made: list[Path] = []

    def add(self, name: str, data: str | bytes) -> None:
        """Add a file; text is written as UTF-8."""
        self._files[name] = data

    def leave_out(self, name: str) -> None:
        """Let a file of that name, of an earlier run, go when the others are written: it would not belong to them."""
        self._files[name] = None

    def __enter__(self) -> Self:
        if self.path.exists() and not self.path.is_dir():
            raise InputError(f"{self.path} is a file, and a folder is needed: choose another output folder.")
        try:
            self._make(self.path)
            self._new_stage().rmdir()
        except OSError as error:
            self._unmake()
            raise InputError(
                f"The folder {self.path} cannot be written: {_reason(error)}; choose another output folder, "
                "or change its permissions."
            ) from None
        except BaseException:
            self._unmake()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._write_all()
                self._made.clear()
        finally:
            self._unmake()

    def _make(self, folder: Path) -> None:
        if not folder.is_dir():
            self._make(folder.parent)
            folder.mkdir(exist_ok=True)
            self._made.append(folder)

    def _unmake(self) -> None:
        for folder in reversed(self._made):
            with contextlib.suppress(OSError):  # somebody else has put a file there
                folder.rmdir()
        self._made.clear()

    def _new_stage(self) -> Path:
        stage = self.path / f".coaltree-{secrets.token_hex(4)}.part"
        stage.mkdir()
        return stage

    def _write_all(self) -> None:
        for name in self._files:
            if (self.path / name).is_dir():
                raise InputError(f"{self.path / name} cannot be written: it is a folder; choose another output folder.")
        stage = self.path
        try:
            stage = self._new_stage()
            (stage / "new").mkdir()
            (stage / "old").mkdir()
            for name, data in self._files.items():
                if data is not None:
                    _write_synced(stage / "new" / name, data)
            self._move_in(stage)
        except OSError as error:
            raise _not_written(self.path, error) from None
        finally:
            if stage != self.path:
                shutil.rmtree(stage, ignore_errors=True)

    def _move_in(self, stage: Path) -> None:
        """Put the new files in the place of the old ones, or the old ones back."""
        moved = []
        try:
            for name, data in self._files.items():
                moved.append(name)
                if (self.path / name).exists():
                    os.replace(self.path / name, stage / "old" / name)
                if data is not None:
                    os.replace(stage / "new" / name, self.path / name)
        except BaseException:
            # What has happened is read off the folders: an interrupt may come between any two steps.
            for name in moved:
                if (stage / "old" / name).exists():
                    os.replace(stage / "old" / name, self.path / name)
                elif not (stage / "new" / name).exists():
                    (self.path / name).unlink(missing_ok=True)
            raise


def cluster_table(names: Iterable[str], labels: Iterable[int]) -> str:
    """Write the cluster of each row as csv, in the order of the rows.

    Parameters
    ----------
    names : iterable of str
        Row names.
    labels : iterable of int
        Clusters, as many.

    Returns
    -------
    str
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["name", "cluster"])
    writer.writerows((name, int(label)) for name, label in zip(names, labels, strict=True))
    return text.getvalue()


def facts_of(
    model: FittedClustering,
    table: Table,
    *,
    source: str,
    id_column: str | None = None,
    remarks: Sequence[str] = (),
    settings: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Gather the facts about a fit.

    Parameters
    ----------
    model : CoalescentClustering, fitted
        Fitted.
    table : Table
        What it was fitted to.
    source : str
        Name of the file that the table came from.
    id_column : str, optional
        The column that gave the row names.
    remarks : sequence of str, optional
        What was noticed on the way.
    settings : mapping, optional
        How the fit was asked for.

    Returns
    -------
    dict
        Of what JSON knows; a number that is not finite is None.
    """
    used = model.encoding_.informative.tolist()
    columns = [_column_facts(column, bool(use)) for column, use in zip(table.columns, used, strict=True)]
    n_missing = sum(facts["n_missing"] for facts in columns)
    facts = {
        "coaltree_version": __version__,
        "input": source,
        "n_rows": table.n_rows,
        "n_columns": len(columns),
        "id_column": id_column,
        "n_missing": n_missing,
        "missing_share": n_missing / (table.n_rows * len(columns)),
        "columns": columns,
        "inference": model.inference,
        "rule": model.rule if model.inference == "greedy" else None,
        "log_joint": model.log_joint_,
        "log_likelihood": model.log_likelihood_,
        "log_prior": log_prior(model.tree_),
        "tree_height": model.tree_.heights[-1],
        "n_clusters": model.n_clusters_,
        "clusters_chosen_by": clusters_chosen_by(model),
        "cluster_sizes": np.bincount(model.labels_, minlength=model.n_clusters_).tolist(),
        "remarks": list(remarks),
        "settings": dict(settings or {}),
    }
    if model.inference == "smc":
        facts |= _sample_facts(model.sample_)
    plain: dict[str, Any] = _plain(facts)
    return plain


def _sample_facts(sample: SMCResult) -> dict[str, Any]:
    return {
        "log_evidence": sample.log_evidence,
        "log_evidence_se": sample.log_evidence_se,
        "n_trees": len(sample),
        "n_distinct_trees": sample.n_distinct,
        "effective_size": sample.effective_size,
        "distinct_ancestors": sample.n_ancestors.tolist(),
        "resamplings": sample.resampled.sum(axis=1).tolist(),
        "ess": sample.ess.tolist(),
    }


def clusters_chosen_by(model: FittedClustering) -> str:
    """Say what decided on the clusters: "n_clusters", "height" or "likelihood ratio"."""
    if model.n_clusters is not None:
        return "n_clusters"
    return "likelihood ratio" if model.height_threshold is None else "height"


def json_text(facts: Mapping[str, Any]) -> str:
    """Write facts as strict JSON, in their order."""
    return json.dumps(facts, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def dendrogram_png(tree: Tree, labels: ArrayLike, title: str) -> bytes:
    """Draw a tree into a PNG, without a display and without a change to pyplot.

    Parameters
    ----------
    tree : Tree
    labels : array-like of int, shape (n_leaves,)
        Cluster of each leaf.
    title : str
        Written above the tree.

    Returns
    -------
    bytes
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingDependencyError(
            'Dendrograms are drawn with matplotlib, which is not installed: pip install "coaltree[cli]".'
        ) from error
    n = tree.n_leaves
    named = n <= MAX_NAMED_LEAVES
    # Names move closer together as they become many, from 12 points a name to 8.
    pitch = float(np.interp(n, [60, 150], [0.165, 0.11]))
    figure = Figure(figsize=(6.0, max(pitch * n, 1.1) if named else 8.0), dpi=_DPI)
    FigureCanvasAgg(figure)
    picture = io.BytesIO()
    with any_script():
        # The axes fill the figure, so that names find their size; the picture is cut around all that is drawn.
        ax = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        clusters = [f"cluster {label}" for label in np.asarray(labels).tolist()]
        plot_dendrogram(tree, labels=clusters, ax=ax, max_leaf_names=MAX_NAMED_LEAVES)
        legend = ax.get_legend()
        box = ax.get_window_extent()
        top = legend.get_window_extent().y1 - box.y1 if legend else 0.0
        heading = ax.set_title(title, loc="left", fontsize=11, pad=72 * top / _DPI + 5)
        heading.set_parse_math(False)
        figure.savefig(picture, format="png", dpi=_DPI, bbox_inches="tight", pad_inches=0.2)
    return picture.getvalue()


def _column_facts(column: Column, used: bool) -> dict[str, Any]:
    if isinstance(column, RealColumn):
        kind, n_categories, missing = "real", None, np.isnan(column.values)
    else:
        kind, n_categories, missing = "categorical", len(column.categories), column.codes < 0
    return {
        "name": column.name,
        "kind": kind,
        "n_categories": n_categories,
        "n_missing": int(missing.sum()),
        "used": used,
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _write_synced(path: Path, data: str | bytes) -> None:
    with path.open("xb") as file:
        file.write(data.encode(errors="replace") if isinstance(data, str) else data)
        file.flush()
        os.fsync(file.fileno())


def _not_written(path: Path, error: OSError) -> InputError:
    return InputError(f"{path} cannot be written: {_reason(error)}; nothing was changed, choose another place.")


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
