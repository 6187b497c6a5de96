"""Make the pictures of the README: ``python docs/make_figures.py`` writes them into docs/images."""

from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd

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
    return table.astype({"legs": "string"})


def dendrogram() -> None:
    """Draw the tree of the animals, coloured by the flat clusters that the model chooses."""
    model = ct.CoalescentClustering().fit(zoo())
    figure, axes = plt.subplots(figsize=(7.5, 6), layout="constrained")
    ct.plot_dendrogram(model.tree_, labels=model.labels_, ax=axes)
    figure.savefig(IMAGES / "animals.png", dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    IMAGES.mkdir(exist_ok=True)
    dendrogram()
