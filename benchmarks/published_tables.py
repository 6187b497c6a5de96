"""Published tables for benchmarks: labelled ones, and two for densities.

Four tables come with scikit-learn. The others are read from the folder COALTREE_DATA, if there is such a variable, or downloaded
from a fixed commit; either way their checksum must be that of the file that was published.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import os
import urllib.request
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn import datasets

GAGOLEWSKI = (
    "https://raw.githubusercontent.com/gagolews/clustering-data-v1/27ac73a6fd331fb18181419838d2e753dd1b5f80/uci/"
)
NEAL = "https://raw.githubusercontent.com/radfordneal/fbm/dfa68c05d9f60175218dc64b0abd980f37e9c2fc/ex-mixdft/"
# by the path in the folder of the data: address, and checksum of the unpacked content
SOURCES = {
    "tables/ecoli.data": (
        GAGOLEWSKI + "ecoli.data.gz",
        "6a5f731092c04e6a7e04e6fb21a0dba714881857ab32f64e3078dd2e096a9b57",
    ),
    "tables/ecoli.labels": (
        GAGOLEWSKI + "ecoli.labels0.gz",
        "7d6cbfda67cb20942cafe51d3f98403a564e03a9bcc418d218ec50ab33af77e4",
    ),
    "tables/glass.data": (
        GAGOLEWSKI + "glass.data.gz",
        "ff0df47911e82b92da63c21dbd9c0825d3944c8c4748360c04bd65d3a2630cff",
    ),
    "tables/glass.labels": (
        GAGOLEWSKI + "glass.labels0.gz",
        "b4af227b39d04f669501dfe2f54ebb0a6c18cb63b49de95ccfbc3a7be56c4efb",
    ),
    "tables/ionosphere.data": (
        GAGOLEWSKI + "ionosphere.data.gz",
        "933b9662b3b89a4fd5fcc791c4c0140bead4744daea9bc5df98838538e45cf06",
    ),
    "tables/ionosphere.labels": (
        GAGOLEWSKI + "ionosphere.labels0.gz",
        "b49b9727c03cfe190693e00d6b62a36006b6d07546461e2d43684bc5a7010d3d",
    ),
    "tables/yeast.data": (
        GAGOLEWSKI + "yeast.data.gz",
        "b5b1d03627872e9710393a606f78888c995c85216583563728c9a3c6852b4597",
    ),
    "tables/yeast.labels": (
        GAGOLEWSKI + "yeast.labels0.gz",
        "06d6e8594116f63a70e5a7bdede2c687c9a92080cfe9298d3bda42a13c57b1d4",
    ),
    "tables/statlog.data": (
        GAGOLEWSKI + "statlog.data.gz",
        "175ab7900a449c10c2cf0acc6e1e93e7dc740abaeddff5b2216618b488feae72",
    ),
    "tables/statlog.labels": (
        GAGOLEWSKI + "statlog.labels0.gz",
        "6099707e6565b812317e8a2a6487ec39e8a7cbf3499a74cd83f1c7689d6d1981",
    ),
    "tables/votes.data": (
        "https://raw.githubusercontent.com/1013mbar/KNN/4d03705d4b2dccd1bea9a335e9ddf1492c634ecb/house-votes-84.data",
        "a95567216788606c4a46e8aad9e177f826cefa0447078a2c5c86e76c7c4eb6b6",
    ),
    "tables/hepatitis.data": (
        "https://raw.githubusercontent.com/superleader13/Clusterisasi-Hepatitis/68d723b1601f4327666f608790d35628bc6f6251/hepatitis.data",
        "9c6ad7ac2b657e0a81b613ec542cb3a23c8fd2f349db38b591a410af7af2aa1b",
    ),
    "density/rdata": (
        NEAL + "rdata",
        "ad722c750c0ea448348221f97242b3a69b54ead4316aaf9f35fbe5798ecd41d1",
    ),
    "density/bdata": (
        NEAL + "bdata",
        "294eb72feff309e3d81c35938eb1267ba40db86c2e89532bcbcb7964caa3ab9f",
    ),
}

IN_SCIKIT_LEARN = {
    "iris": datasets.load_iris,
    "wine": datasets.load_wine,
    "breast cancer": datasets.load_breast_cancer,
    "digits": datasets.load_digits,
}
REAL = ("ecoli", "glass", "ionosphere", "yeast", "statlog")
WITH_CATEGORIES = ("votes", "hepatitis")
LABELLED = (*IN_SCIKIT_LEARN, *REAL, *WITH_CATEGORIES)
DENSITY = ("rdata", "bdata")  # the first 500 of their 1,000 rows are for training


def content(path):
    """Return the text of a file: from the folder of the data, or downloaded; checked."""
    address, checksum = SOURCES[path]
    folder = os.environ.get("COALTREE_DATA")
    local = None if folder is None else Path(folder) / path
    if local is not None and local.is_file():
        data = local.read_bytes()
    else:
        with urllib.request.urlopen(address) as answer:
            data = answer.read()
        data = gzip.decompress(data) if address.endswith(".gz") else data
    if hashlib.sha256(data).hexdigest() != checksum:
        raise ValueError(f"{path} is not the file that was published: its checksum differs.")
    return data.decode()


def split_rows(text, separator=None):
    """Return the cells of a text, a list for each line."""
    return [[cell.strip() for cell in line.split(separator)] for line in text.splitlines() if line.strip()]


def labelled_table(name):
    """Return a table as a frame, and the classes of its rows."""
    if name in IN_SCIKIT_LEARN:
        dataset = IN_SCIKIT_LEARN[name]()
        return pd.DataFrame(dataset.data.astype(float)), dataset.target
    if name in REAL:
        cells = np.array(split_rows(content(f"tables/{name}.data")), dtype=float)
        return pd.DataFrame(cells), np.array(split_rows(content(f"tables/{name}.labels")))[:, 0]
    header, *rows = split_rows(content(f"tables/{name}.data"), ",")
    frame = pd.DataFrame(rows, columns=header).replace(["?", "N/A", "NA", ""], None)
    classes = pd.factorize(frame.pop(header[0]))[0]
    for column in frame:
        if frame[column].nunique() == 2:
            frame[column] = frame[column].astype("category")
        else:
            frame[column] = pd.to_numeric(frame[column]).astype(float)
    return frame, classes


def folder_table(path, max_rows):
    """Return the table of a csv file without header, whose last column is the class, and the classes of its rows.

    Text columns are categorical, "?" is a missing cell, and `max_rows` of the rows of larger tables are chosen at random.
    """
    frame = pd.read_csv(path, header=None, na_values="?", skipinitialspace=True)
    if len(frame) > max_rows:
        chosen = np.random.default_rng(0).choice(len(frame), max_rows, replace=False)
        frame = frame.iloc[np.sort(chosen)].reset_index(drop=True)
    classes = pd.factorize(frame.pop(frame.columns[-1]))[0]
    for column in frame:
        is_number = pd.api.types.is_numeric_dtype(frame[column])
        frame[column] = frame[column].astype(float if is_number else "category")
    return frame, classes


def names_in(text, known):
    """Return the names in a text, divided by commas, for `argparse`."""
    names = tuple(name.strip() for name in text.split(","))
    for name in names:
        if name not in known:
            raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(known)}")
    return names


def density_table(name):
    """Return one of the tables of Neal's diffusion trees as a frame: two real columns, or ten binary ones."""
    cells = np.array(split_rows(content(f"density/{name}")), dtype=float)
    if name == "rdata":
        return pd.DataFrame(cells[:, :2])  # the third column is the component that made the row
    return pd.DataFrame(cells.astype(int)).astype("category")
