"""Make the pictures of the README and of docs/pictures.md: ``python docs/make_figures.py`` writes them into docs/images."""

from pathlib import Path

import matplotlib
import pandas as pd
from matplotlib.figure import Figure
from sklearn.datasets import load_iris

import coaltree as ct

matplotlib.use("Agg")
import matplotlib.pyplot as plt

IMAGES = Path(__file__).parent / "images"
EXAMPLES = Path(__file__).parents[1] / "examples"


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


def animals() -> None:
    """Draw the tree of the animals, coloured by the flat clusters that the model chooses, and their table beside it."""
    table = pd.read_csv(EXAMPLES / "animals.csv", index_col="name", dtype={"legs": "category"})
    model = ct.CoalescentClustering().fit(table)
    figure, axes = plt.subplots(figsize=(7.5, 6), layout="constrained")
    ct.plot_dendrogram(model.tree_, labels=model.labels_, ax=axes)
    save(figure, "animals.png")
    save(ct.plot_heatmap(model)["table"].figure, "heatmap.png")


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
    save(ct.plot_co_clustering(model)["matrix"].figure, "co_clustering.png")
    save(ct.plot_evidence(model)["ess"].figure, "evidence.png")


if __name__ == "__main__":
    IMAGES.mkdir(exist_ok=True)
    animals()
    flowers()
    samples()
