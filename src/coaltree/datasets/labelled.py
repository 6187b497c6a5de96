"""Data sets with known classes, MNIST digits and SPAMBASE mails, and how the paper samples and projects them."""

from __future__ import annotations

import gzip
import math
import zlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._random import RandomState, as_generator
from .._validation import check_count
from ..errors import InputError
from .download import damage_error, fetch_file, read_text_lines

SIDE = 28
_UNSIGNED_BYTES = 8  # the code of the type in an IDX file

N_ATTRIBUTES = 57
N_RUN_LENGTHS = 3  # the last attributes, which are never 0


@dataclass(frozen=True, eq=False)
class Mnist:
    """Images of digits.

    Attributes
    ----------
    images : ndarray of uint8, shape (n_images, 28, 28)
        Grey levels, 0 is paper.
    digits : ndarray of int, shape (n_images,)
        What was written.
    """

    images: NDArray[np.uint8]
    digits: NDArray[np.intp]

    @property
    def pixels(self) -> NDArray[np.float64]:
        """The images as rows of a table, shape ``(n_images, 784)``."""
        return self.images.reshape(len(self.images), -1).astype(np.float64)


def load_mnist(part: str = "test") -> Mnist:
    """Load a part of the MNIST handwritten digits.

    Parameters
    ----------
    part : {"test", "sample"}, default "test"
        The 10,000 test images, or 5,000 others, 500 of each digit.

    Returns
    -------
    Mnist

    Notes
    -----
    LeCun, Cortes and Burges, The MNIST database of handwritten digits.

    Examples
    --------
    >>> import coaltree as ct
    >>> mnist = ct.datasets.load_mnist()  # doctest: +SKIP
    >>> rows = ct.datasets.sample_balanced_rows(mnist.digits, 20, random_state=0)  # doctest: +SKIP
    >>> X = ct.datasets.principal_components(mnist.pixels[rows], 20)  # doctest: +SKIP
    """
    if part == "test":
        images = _read_idx("mnist/t10k-images-idx3-ubyte.gz", 3)
        digits = _read_idx("mnist/t10k-labels-idx1-ubyte.gz", 1)
        name = "mnist/t10k-labels-idx1-ubyte.gz"
    elif part == "sample":
        name = "mnist/mnist_5k.csv.gz"
        images, digits = _read_csv(name)
    else:
        raise InputError(f"part is {part!r}; it must be 'test' or 'sample'.")
    if len(images) != len(digits):
        raise damage_error(name, f"it has {len(digits)} labels for {len(images)} images")
    if len(digits) and digits.max() > 9:
        raise damage_error(name, f"it has the label {digits.max()}, and digits go from 0 to 9")
    return Mnist(images, digits.astype(np.intp))


def _decompress(name: str) -> bytes:
    content = fetch_file(name)
    try:
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise damage_error(name, f"it cannot be decompressed ({error})") from None


def _read_idx(name: str, n_dimensions: int) -> NDArray[np.uint8]:
    """Read an IDX file: two zeros, the type, the number of dimensions, their sizes, the numbers."""
    content = _decompress(name)
    start = 4 + 4 * n_dimensions
    if len(content) < start or content[:4] != bytes([0, 0, _UNSIGNED_BYTES, n_dimensions]):
        raise damage_error(name, "it does not begin as such a file does")
    shape = tuple(np.frombuffer(content, ">u4", n_dimensions, 4).tolist())
    if len(content) != start + math.prod(shape):
        raise damage_error(name, f"it should hold {math.prod(shape)} numbers and holds {len(content) - start}")
    if shape[1:] not in ((), (SIDE, SIDE)):
        raise damage_error(name, f"its images have the shape {shape[1:]}")
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)


def _read_csv(name: str) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Read lines of 784 grey levels and a label."""
    lines = _decompress(name).split()
    try:
        table = np.array([line.split(b",") for line in lines], dtype=np.int64)
    except ValueError:
        raise damage_error(name, "a line has another number of cells, or one that is no number") from None
    if table.ndim != 2 or table.shape[1] != SIDE * SIDE + 1:
        raise damage_error(name, f"its lines do not have {SIDE * SIDE} grey levels and a label")
    if table.min() < 0 or table.max() > 255:
        raise damage_error(name, "it holds a number that is not between 0 and 255")
    return table[:, :-1].astype(np.uint8).reshape(-1, SIDE, SIDE), table[:, -1].astype(np.uint8)


@dataclass(frozen=True, eq=False)
class Spambase:
    """Attributes and classes of e-mails.

    Attributes
    ----------
    attributes : ndarray of float, shape (n_mails, 57)
        Frequencies of 48 words and 6 characters in per cent, then the average, the longest and the total length of runs of
        capital letters.
    names : ndarray of str, shape (57,)
        Names of the attributes.
    spam : ndarray of bool, shape (n_mails,)
        Which mails are spam.
    """

    attributes: NDArray[np.float64]
    names: NDArray[np.str_]
    spam: NDArray[np.bool_]


def load_spambase() -> Spambase:
    """Load the SPAMBASE e-mails.

    Returns
    -------
    Spambase
        4,601 mails, 1,813 of them spam. 391 rows are copies of others.

    Notes
    -----
    Hopkins, Reeber, Forman and Suermondt, Spambase, UCI Machine Learning Repository.

    Examples
    --------
    >>> import coaltree as ct
    >>> mails = ct.datasets.load_spambase()  # doctest: +SKIP
    >>> rows = ct.datasets.sample_balanced_rows(mails.spam, 50, random_state=0)  # doctest: +SKIP
    >>> X = ct.datasets.binarize_attributes(mails.attributes[rows])  # doctest: +SKIP
    """
    name = "spambase/spambase.data"
    lines = read_text_lines(name, "ascii")
    try:
        table = np.array([line.split(",") for line in lines], dtype=np.float64)
    except ValueError:
        raise damage_error(name, "a line has another number of cells, or one that is no number") from None
    if table.ndim != 2 or table.shape[1] != N_ATTRIBUTES + 1:
        raise damage_error(name, f"its lines do not have {N_ATTRIBUTES} attributes and a class")
    if not np.isin(table[:, -1], (0, 1)).all():
        raise damage_error(name, "it has a class other than 0 and 1")
    if not np.isfinite(table).all():
        raise damage_error(name, "it holds a number that is not finite")
    return Spambase(table[:, :-1], _names(), table[:, -1] == 1)


def binarize_attributes(attributes: ArrayLike, run_lengths: str = "positive") -> NDArray[np.float64]:
    """Make the attributes of SPAMBASE binary.

    Parameters
    ----------
    attributes : array-like of shape (n_mails, 57)
    run_lengths : {"positive", "median"}, default "positive"
        Threshold of the last three attributes, the run lengths. All other attributes are 1 where they are above 0. Run lengths
        are always above 0, so ``"median"`` makes them 1 where they are above their median over these rows.

    Returns
    -------
    ndarray of shape (n_mails, 57)
        Zeros and ones.

    Examples
    --------
    >>> import numpy as np
    >>> from coaltree.datasets import binarize_attributes
    >>> mails = np.zeros((3, 57))
    >>> mails[:, 0], mails[:, -1] = [0.5, 0.0, 0.1], [10, 20, 30]
    >>> binarize_attributes(mails)[:, [0, -1]].tolist()
    [[1.0, 1.0], [0.0, 1.0], [1.0, 1.0]]
    >>> binarize_attributes(mails, "median")[:, [0, -1]].tolist()
    [[1.0, 0.0], [0.0, 0.0], [1.0, 1.0]]
    """
    if run_lengths not in ("positive", "median"):
        raise InputError(f"run_lengths is {run_lengths!r}; it must be 'positive' or 'median'.")
    table = np.asarray(attributes, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] != N_ATTRIBUTES:
        raise InputError(f"attributes has shape {table.shape}; it must have {N_ATTRIBUTES} columns, those of SPAMBASE.")
    if np.isnan(table).any():
        row, column = np.argwhere(np.isnan(table))[0]
        raise InputError(f"The cell in row {row}, column {column} is missing; it is neither 0 nor 1: fill it in first.")
    thresholds = np.zeros(N_ATTRIBUTES)
    if run_lengths == "median":
        thresholds[-N_RUN_LENGTHS:] = np.median(table[:, -N_RUN_LENGTHS:], axis=0)
    return (table > thresholds).astype(np.float64)


def _names() -> NDArray[np.str_]:
    """Read the names of the attributes, which stand before a colon."""
    name = "spambase/spambase.names"
    entries = [line.split(":") for line in read_text_lines(name, "ascii") if not line.startswith("|") and ":" in line]
    # No name contains a colon, so the last colon of a line ends the name.
    names = [":".join(entry[:-1]) for entry in entries]
    if len(names) != N_ATTRIBUTES:
        raise damage_error(name, f"it names {len(names)} attributes, not {N_ATTRIBUTES}")
    return np.array(names, dtype=np.str_)


def principal_components(X: ArrayLike, n_components: int = 20, *, unit_variance: bool = False) -> NDArray[np.float64]:
    """Return the rows of a table in the coordinates of its principal components.

    Parameters
    ----------
    X : array-like of shape (n_rows, n_columns)
        Complete real columns.
    n_components : int, default 20
        At most the smaller of the numbers of rows and columns.
    unit_variance : bool, default False
        Scale every component to variance 1 (over ``n_rows``); one that does not vary stays 0.

    Returns
    -------
    ndarray of shape (n_rows, n_components)
        Components in order of their variance. Of the two signs that each might have, the column that weighs most in it has a
        positive one.

    Examples
    --------
    >>> from coaltree.datasets import principal_components
    >>> principal_components([[0.0, 0.0], [3.0, 4.0], [6.0, 8.0]], 1).round(6).tolist()
    [[-5.0], [0.0], [5.0]]
    """
    table = np.asarray(X, dtype=np.float64)
    if table.ndim != 2:
        raise InputError(f"The table has {table.ndim} dimension(s); it must have two: rows and columns.")
    if not np.isfinite(table).all():
        raise InputError(
            "The table has cells that are missing or infinite; principal components need complete columns."
        )
    most = min(table.shape)
    if (
        isinstance(n_components, bool)
        or not isinstance(n_components, (int, np.integer))
        or not 1 <= n_components <= most
    ):
        raise InputError(
            f"n_components is {n_components!r}; of a table of shape {table.shape} it must be a whole number from 1 to {most}."
        )
    centred = table - table.mean(axis=0)
    left, sizes, axes = np.linalg.svd(centred, full_matrices=False)
    heaviest = np.abs(axes).argmax(axis=1)
    signs = np.where(axes[np.arange(len(axes)), heaviest] < 0, -1.0, 1.0)
    scores: NDArray[np.float64] = (left * signs)[:, :n_components]
    if unit_variance:
        varies = sizes[:n_components] > sizes[0] * max(table.shape) * np.finfo(float).eps
        scores[:, ~varies] = 0.0
        return scores * math.sqrt(len(table))
    return np.asarray(scores * sizes[:n_components])


def sample_balanced_rows(classes: ArrayLike, n_each: int, random_state: RandomState = None) -> NDArray[np.intp]:
    """Draw the same number of rows from each class, without replacement.

    Parameters
    ----------
    classes : array-like of shape (n_rows,)
        The class of each row.
    n_each : int
        How many rows of each class.
    random_state : int, Generator, RandomState or None, default None

    Returns
    -------
    ndarray of int, shape (n_classes * n_each,)
        Rows, starting with those of the first class.

    Examples
    --------
    >>> from coaltree.datasets import sample_balanced_rows
    >>> sample_balanced_rows(["a", "b", "b", "a"], 2, random_state=0).tolist()
    [0, 3, 1, 2]
    """
    labels = np.asarray(classes)
    if labels.ndim != 1:
        raise InputError(f"classes has shape {labels.shape}; it must have one entry per row.")
    names, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    n_each = check_count(n_each, "n_each")
    if len(counts) == 0 or counts.min() < n_each:
        scarce = f"class {names[counts.argmin()]!s} has {counts.min()} rows" if len(counts) else "there are no rows"
        raise InputError(f"n_each is {n_each}, but {scarce}; choose a smaller number.")
    rng = as_generator(random_state)
    rows_by_class = [np.sort(rng.choice(np.flatnonzero(codes == c), n_each, replace=False)) for c in range(len(names))]
    return np.concatenate(rows_by_class)
