"""Make the pictures of the README and of docs/: ``python docs/make_figures.py`` writes them into docs/images.

Names of functions, ``python docs/make_figures.py pages``, make those pictures only. One comes from elsewhere: scale.png is what
``python benchmarks/scale.py --picture docs/images/scale.png`` draws.
"""

import sys
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from sklearn.datasets import load_iris

import coaltree as ct

matplotlib.use("Agg")
import matplotlib.pyplot as plt

DOCS = Path(__file__).parent
IMAGES = DOCS / "images"
EXAMPLES = DOCS.parent / "examples"


def iris(step: int) -> pd.DataFrame:
    """Return some of the flowers, named by their kind."""
    data = load_iris(as_frame=True)
    table = data.data.rename(columns=lambda name: name.removesuffix(" (cm)"))
    kinds = data.target_names[data.target]
    return table.set_axis([f"{kind} {i}" for i, kind in enumerate(kinds)])[::step]


def save(figure: Figure, name: str) -> None:
    """Write a picture, the same file for the same picture."""
    figure.savefig(IMAGES / name, dpi=110, metadata={"Software": None})
    plt.close(figure)


def draw_tree(tree: ct.Tree, labels: np.ndarray, name: str, height: float, **options: object) -> None:
    """Draw a tree coloured by clusters."""
    figure, axes = plt.subplots(figsize=(7.5, height), layout="constrained")
    ct.plot_dendrogram(tree, labels=labels, ax=axes, **options)
    save(figure, name)


def animals() -> None:
    """Draw the tree of the animals, coloured by its flat clusters, and their table beside it."""
    table = pd.read_csv(EXAMPLES / "animals.csv", index_col="name")
    model = ct.CoalescentClustering().fit(table)
    draw_tree(model.tree_, model.labels_, "animals.png", 6.5)
    save(ct.plot_heatmap(model)["table"].figure, "heatmap.png")
    save(ct.plot_dendrogram(model.tree_, labels=model.labels_, layout="circular").figure, "circular.png")
    body = ct.CoalescentClustering().fit(table.drop(columns=["blood", "cover", "backbone", "eggs", "milk"]))
    titles = "all columns", "five columns less"
    axes = ct.plot_tanglegram(model.tree_, body.tree_, labels=model.labels_, titles=titles)
    save(axes["links"].figure, "tanglegram.png")


def partition() -> None:
    """Draw clusters at different heights: three narrow blobs and a wide one, and their tree."""
    rng = np.random.default_rng(0)
    classes = np.repeat(np.arange(4), [60, 60, 60, 120])
    centres, widths = np.array([[0, 0], [4, 0], [0, 4], [14, 4]]), np.array([0.5, 0.5, 0.5, 2.0])
    points = centres[classes] + rng.normal(size=(300, 2)) * widths[classes, None]
    model = ct.CoalescentClustering().fit(points)
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.5, 4), layout="constrained")
    colors = ["tab:blue", "tab:orange", "tab:green", "tab:purple"]
    left.scatter(*points.T, s=12, c=[colors[label] for label in model.labels_])
    left.set(xlabel="x", ylabel="y")
    ct.plot_dendrogram(model.tree_, labels=model.labels_, colors=colors, ax=right, leaf_names=False)
    save(figure, "partition.png")


def flowers() -> None:
    """Draw the density of two measures of flowers, and the lineages of their tree."""
    model = ct.CoalescentClustering().fit(iris(2)[["sepal length", "petal length"]])
    save(ct.plot_density(model).figure, "density.png")
    save(ct.plot_lineages(model.tree_).figure, "lineages.png")


def samples() -> None:
    """Draw how sure a sample of trees is of the clusters of flowers, and how it was found."""
    model = ct.CoalescentClustering(
        inference="smc", n_particles=300, n_runs=4, n_clusters=3, proposal="race", random_state=0
    ).fit(iris(5))
    draw_tree(model.tree_, model.labels_, "support.png", 6)
    save(ct.plot_co_clustering(model)["matrix"].figure, "co_clustering.png")
    save(ct.plot_evidence(model)["ess"].figure, "evidence.png")


def chains() -> None:
    """Draw how Markov chains went over trees of flowers."""
    model = ct.CoalescentClustering(inference="mcmc", random_state=0).fit(iris(5))
    save(ct.plot_traces(model)["log_joint"].figure, "traces.png")


def pages() -> None:
    """Draw what the code of some pages makes, by running that code."""
    for page, picture, height in (("documents", "documents.png", 3.5), ("languages", "languages.png", 4.5)):
        model = names_of(page, "plot_dendrogram")["model"]
        draw_tree(model.tree_, model.labels_, picture, height)
    model = names_of("million_rows", "near = ")["model"]
    draw_tree(model.tree_, model.labels_, "collapsed.png", 5, collapse=20)
    save(ct.plot_trees(names_of("characters", "ccd0")["sample"]).figure, "trees.png")
    intervals(**{name: value for name, value in names_of("missing_data", "inside = ").items() if name in INTERVALS})


INTERVALS = ("complete", "petals", "low", "high")


def intervals(complete: pd.DataFrame, petals: object, low: np.ndarray, high: np.ndarray) -> None:
    """Draw the intervals of hidden cells, in the order of their means."""
    hidden = np.flatnonzero(petals.missing)
    hidden = hidden[np.argsort(petals.mean[hidden])]
    at = np.arange(len(hidden))
    figure, axes = plt.subplots(figsize=(7.5, 3.2), layout="constrained")
    axes.vlines(at, low[hidden], high[hidden], color="tab:cyan", linewidth=4, alpha=0.6, label="90 % interval")
    axes.plot(at, petals.mean[hidden], "o", color="tab:blue", label="mean")
    axes.plot(at, complete["petal length (cm)"].to_numpy()[hidden], "x", color="black", label="truth")
    axes.set_xticks(at, [f"row {row}" for row in hidden], rotation=60, ha="right")
    axes.set_ylabel("petal length (cm)")
    axes.legend(frameon=False)
    save(figure, "missing.png")


def names_of(page: str, last: str) -> dict[str, object]:
    """Run the code of a page, up to the block that has some text in it, and return what it defines."""
    names: dict[str, object] = {}
    for block in (DOCS / f"{page}.md").read_text().split("```python\n")[1:]:
        exec(block.split("```")[0], names)
        plt.close("all")
        if last in block:
            return names
    raise ValueError(f"{page}.md has no code with {last!r}.")


if __name__ == "__main__":
    IMAGES.mkdir(exist_ok=True)
    for name in sys.argv[1:] or ("animals", "partition", "flowers", "samples", "chains", "pages"):
        globals()[name]()
