"""Make the pictures of the README and of docs/pictures.md: ``python docs/make_figures.py`` writes them into docs/images."""

from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from sklearn.datasets import load_iris

import coaltree as ct

matplotlib.use("Agg")
import matplotlib.pyplot as plt

IMAGES = Path(__file__).parent / "images"


def zoo() -> pd.DataFrame:
    """Return a small table of animals, real and categorical columns side by side, with holes."""
    rows = {
        "bat": ("hair", True, 0.02, 25.0, 2),
        "bear": ("hair", False, 250.0, None, 4),
        "cat": ("hair", False, 4.5, 15.0, 4),
        "dolphin": ("skin", False, 180.0, 40.0, 0),
        "horse": ("hair", False, 500.0, 28.0, 4),
        "mouse": ("hair", None, 0.03, 2.5, 4),
        "whale": ("skin", False, 90000.0, 80.0, 0),
        "wolf": ("hair", False, 45.0, 14.0, None),
        "duck": ("feathers", True, 1.1, 10.0, 2),
        "eagle": ("feathers", True, 4.5, 28.0, 2),
        "ostrich": ("feathers", False, 110.0, 45.0, 2),
        "owl": ("feathers", True, 1.5, None, 2),
        "penguin": ("feathers", False, 25.0, 20.0, 2),
        "sparrow": (None, True, 0.03, 3.0, 2),
        "boa": ("scales", False, 18.0, 25.0, 0),
        "crocodile": ("scales", False, 400.0, 70.0, 4),
        "gecko": ("scales", False, 0.05, 7.0, 4),
        "turtle": ("scales", False, None, 90.0, 4),
        "carp": ("scales", False, 5.0, 20.0, 0),
        "cod": ("scales", False, 12.0, 18.0, 0),
        "shark": (None, False, 700.0, 60.0, 0),
        "trout": ("scales", False, 2.0, 8.0, 0),
        "frog": ("skin", False, 0.04, 10.0, 4),
        "newt": ("skin", False, 0.01, None, 4),
        "ant": ("shell", None, 5e-6, 1.0, 6),
        "bee": ("hair", True, 1e-4, 0.2, 6),
        "beetle": ("shell", True, 1e-3, 0.5, 6),
        "moth": ("hair", True, 2e-4, 0.1, 6),
    }
    table = pd.DataFrame.from_dict(rows, orient="index", columns=["cover", "flies", "mass", "years", "legs"])
    table["mass"] = np.log10(table["mass"])
    table["years"] = np.log10(table["years"])
    return table.astype({"legs": "Int64"}).astype({"legs": "string"})


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
    model = ct.CoalescentClustering().fit(zoo())
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
