"""The command ``cut``: a model or a tree in, a csv with flat clusters out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

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
    MinClusterSizeOption,
    QuietOption,
    ResolutionOption,
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
    resolution: ResolutionOption = None,
    n_clusters: ClusterCountOption = None,
    height_threshold: HeightThresholdOption = None,
    min_cluster_size: MinClusterSizeOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    debug: DebugOption = False,
) -> None:
    """Cut a fitted tree into other flat clusters, without fitting again.

    The csv has the name and the cluster of each row, as clusters.csv of fit. A model can be cut at another --resolution; other
    trees need --n-clusters or --height-threshold. Of a sample of trees each is cut, and rows are together that are together in
    most.
    """
    with reported(debug):
        notes = Notes(quiet, verbose)
        check_cut(n_clusters, height_threshold, resolution, min_cluster_size)
        cut_as = {
            "resolution": resolution,
            "n_clusters": n_clusters,
            "height_threshold": height_threshold,
            "min_cluster_size": min_cluster_size,
        }
        kind = kind_of(tree, from_kind, "--from", READ)
        check_one_writer(as_json, {"--output -": output})
        check_result(output, {"the tree": tree})
        with hushed(quiet):
            names, labels = _labelled(tree, kind, cut_as, notes)
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


def _labelled(path: Path, kind: str, cut_as: dict[str, Any], notes: Notes) -> tuple[Sequence[str], NDArray[np.intp]]:
    """Return the names of the rows, and their clusters."""
    n_clusters = cut_as["n_clusters"]
    if kind != TreeKind.model:
        tree = read_tree_file(path, kind, notes)
        return tree.leaf_names, cut_leaves(tree, n_clusters, cut_as["height_threshold"])
    with notes.timed("loading"):
        model = load_clustering(path)
    names = model.tree_.leaf_names
    if n_clusters is not None and n_clusters > len(names):
        raise InputError(f"--n-clusters is {n_clusters}, but the model has {count(len(names), 'row')}.")
    return names, model.cut(**cut_as)
