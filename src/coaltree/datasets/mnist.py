"""Handwritten digits."""

from __future__ import annotations

import gzip
import math
import zlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .download import damage_error, fetch_file

SIDE = 28
_UNSIGNED_BYTES = 8  # the code of the type in an IDX file


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
