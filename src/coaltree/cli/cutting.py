"""The command ``cut``: a model or a tree in, a csv with flat clusters out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..console import Notes, hushed, reported
from ..errors import InputError
from ..table.wording import count
from .application import app
from .checks import check_cut, check_one_writer
from .models import load_clustering
from .options import (
    ClusterCountOption,
    CsvOption,
    DebugOption,
    HeightThresholdOption,
    JsonOption,
    QuietOption,
    VerboseOption,
)
from .overview import listed
from .results import check_result, deliver, tell
from .trees import READ, FromOption, TreeArgument, TreeKind, cut_leaves, kind_of, read_tree_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray


@app.command(epilog="Example: coaltree cut results/model.coaltree --n-clusters 5 -o five.csv")
def cut(
    tree: TreeArgument,
    output: CsvOption = None,
    from_kind: FromOption = None,
    n_clusters: ClusterCountOption = None,
    height_threshold: HeightThresholdOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    debug: DebugOption = False,
) -> None:
    """Cut a fitted tree into other flat clusters, without fitting again.

    The csv has the name and the cluster of each row, as clusters.csv of fit. Without --n-clusters and --height-threshold a
    model is cut where its likelihood ratio says; other trees need one of them. Of a sample of trees each is cut, and rows are
    together that are together in most.
    """
    with reported(debug):
        notes = Notes(quiet, verbose)
        check_cut(n_clusters, height_threshold)
        kind = kind_of(tree, from_kind, "--from", READ)
        check_one_writer(as_json, {"--output -": output})
        check_result(output, {"the tree": tree})
        with hushed(quiet):
            names, labels = _labelled(tree, kind, n_clusters, height_threshold, notes)
        from ..output.files import cluster_table

        if output is not None or not as_json:
            deliver({output: cluster_table(names, labels.tolist())})
        sizes = [int((labels == k).sum()) for k in range(int(labels.max()) + 1)]
        if as_json:
            tell(
                {
                    "input": str(tree),
                    "n_rows": len(names),
                    "n_clusters": len(sizes),
                    "cluster_sizes": sizes,
                    "clusters": dict(zip(names, labels.tolist(), strict=True)) if output is None else None,
                    "output": None if output is None else str(output),
                    "remarks": notes.sentences,
                }
            )
        notes.say(f"{count(len(sizes), 'cluster')} of {listed(sizes, 12)} {'row' if sizes == [1] else 'rows'}")


def _labelled(
    path: Path, kind: str, n_clusters: int | None, height_threshold: float | None, notes: Notes
) -> tuple[Sequence[str], NDArray[np.intp]]:
    """Return the names of the rows, and their clusters."""
    if kind != TreeKind.model:
        tree = read_tree_file(path, kind, notes)
        return tree.leaf_names, cut_leaves(tree, n_clusters, height_threshold)
    with notes.timed("loading"):
        model = load_clustering(path)
    names = model.tree_.leaf_names
    if n_clusters is not None and n_clusters > len(names):
        raise InputError(f"--n-clusters is {n_clusters}, but the model has {count(len(names), 'row')}.")
    return names, model.cut(n_clusters=n_clusters, height_threshold=height_threshold)
