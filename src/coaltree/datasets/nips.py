"""Papers of the conferences NIPS 0 to 12: which words occur in which abstract, and who wrote it."""

from __future__ import annotations

import io
import zipfile
import zlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .._validation import check_count
from ..errors import InputError
from .download import damage_error, fetch_file, read_text_lines

FIRST_YEAR = 1987
_ARCHIVE = "nips/nips-corpus-20111211.zip"
_COUNTS = "corpus-example/nips.corpus"
_MAX_BYTES = 10**8  # far more than there are; a damaged archive might declare any number


@dataclass(frozen=True, eq=False)
class Nips:
    """Documents and the words in them.

    Attributes
    ----------
    occurs : ndarray of float, shape (n_documents, n_words)
        1 where a word occurs in a document, else 0.
    words : ndarray of str, shape (n_words,)
        In alphabetical order.
    names : ndarray of str, shape (n_documents,)
        Distinct names, such as ``"nips00/0001"``: volume and first page.
    titles : ndarray of str, shape (n_documents,)
    authors : tuple of tuple of str
        Of each document its authors, such as ``"Sejnowski_T"``.
    years : ndarray of int, shape (n_documents,)
        Of the conference, 1987 to 1999.
    sections : ndarray of str, shape (n_documents,)
        Of the proceedings, such as ``"Theory"``.
    """

    occurs: NDArray[np.float64]
    words: NDArray[np.str_]
    names: NDArray[np.str_]
    titles: NDArray[np.str_]
    authors: tuple[tuple[str, ...], ...]
    years: NDArray[np.intp]
    sections: NDArray[np.str_]


def load_nips(min_documents: int = 100, *, text: str = "abstracts", keep_stop_words: bool = False) -> Nips:
    """Load the words of NIPS 0 to 12, as binary columns.

    Parameters
    ----------
    min_documents : int, default 100
        Words that occur in fewer documents are left out; the default is the paper's.
    text : {"abstracts", "papers"}, default "abstracts"
        Where words are searched for. Those of whole papers are counts, from a vocabulary without common words.
    keep_stop_words : bool, default False
        Keep the English stop words of scikit-learn; the paper's lists of words contain none.

    Returns
    -------
    Nips
        1,740 documents.

    Notes
    -----
    The NIPS 0-12 collection of Gregor Heinrich, after Sam Roweis and Gal Chechik. A word of an abstract is a run of at least two
    letters, in small letters. The abstracts were read by machine; 29 of them are whole papers.

    Examples
    --------
    >>> import coaltree as ct
    >>> nips = ct.datasets.load_nips()  # doctest: +SKIP
    >>> nips.titles[0], nips.authors[0]  # doctest: +SKIP
    ('Connectivity Versus Entropy', ('Abu-Mostafa_Y',))
    """
    min_documents = check_count(min_documents, "min_documents")
    titles = _read_lines("nips.docs")
    n = len(titles)
    if text == "abstracts":
        occurs, words = _read_abstract_words(_read_lines("nips.abstracts", n), min_documents, keep_stop_words)
    elif text == "papers":
        occurs, words = _read_paper_words(n, min_documents)
    else:
        raise InputError(f"text is {text!r}; it must be 'abstracts' or 'papers'.")
    section_names = _read_lines("nips.labels.key")
    sections = [section_names[i] for i in _read_numbers("nips.labels", n, len(section_names))]
    author_names = _read_lines("nips.authors.key")
    authors = [
        tuple(author_names[i] for i in _parse_numbers("nips.authors", line.split(), len(author_names)))
        for line in _read_lines("nips.authors", n)
    ]
    return Nips(
        occurs,
        words,
        np.array([name.removesuffix(".txt") for name in _read_lines("nips.docnames", n)], dtype=np.str_),
        np.array(titles, dtype=np.str_),
        tuple(authors),
        FIRST_YEAR + np.array(_read_numbers("nips.vols", n, 100), dtype=np.intp),
        np.array(sections, dtype=np.str_),
    )


def _read_abstract_words(
    abstracts: list[str], min_documents: int, keep_stop_words: bool
) -> tuple[NDArray[np.float64], NDArray[np.str_]]:
    from sklearn.feature_extraction.text import CountVectorizer

    count = CountVectorizer(
        binary=True,
        min_df=min(min_documents, len(abstracts)),
        token_pattern="[a-z]{2,}",
        stop_words=None if keep_stop_words else "english",
        dtype=np.float64,
    )
    try:
        occurs = count.fit_transform(abstracts).toarray()
    except ValueError:
        raise InputError(f"No word occurs in {min_documents} abstracts; set min_documents lower.") from None
    return occurs, np.array(count.get_feature_names_out(), dtype=np.str_)


def _read_paper_words(n: int, min_documents: int) -> tuple[NDArray[np.float64], NDArray[np.str_]]:
    """Read lines of ``word = number = count documents``, and of how many words and ``number:count`` of each."""
    vocabulary = np.array([line.split(" ", 1)[0] for line in _read_lines("nips.vocab")], dtype=np.str_)
    lines = _read_archive_lines()
    if len(lines) != n:
        raise damage_error(_ARCHIVE, f"{_COUNTS} has {len(lines)} lines for {n} documents")
    occurs = np.zeros((n, len(vocabulary)), dtype=bool)
    for i, line in enumerate(lines):
        _, *entries = line.split() or [""]
        occurs[i, _parse_numbers(_ARCHIVE, [entry.partition(":")[0] for entry in entries], len(vocabulary))] = True
    frequent = np.flatnonzero(occurs.sum(axis=0) >= min_documents)
    if len(frequent) == 0:
        raise InputError(f"No word occurs in {min_documents} papers; set min_documents lower.")
    frequent = frequent[np.argsort(vocabulary[frequent])]
    return occurs[:, frequent].astype(np.float64), vocabulary[frequent]


def _read_archive_lines() -> list[str]:
    content = fetch_file(_ARCHIVE)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive, archive.open(_COUNTS) as member:
            return member.read(_MAX_BYTES).decode("ascii").rstrip().split("\n")
    except (zipfile.BadZipFile, zlib.error, KeyError, EOFError, OSError, ValueError) as error:
        raise damage_error(_ARCHIVE, f"{_COUNTS} cannot be read from it ({error})") from None


def _read_lines(name: str, n: int | None = None) -> list[str]:
    """Read the lines of a file, one per document if their number is given."""
    lines = [line.strip() for line in read_text_lines(f"nips/{name}", "latin-1")]
    if n is not None and len(lines) != n:
        raise damage_error(f"nips/{name}", f"it has {len(lines)} lines for {n} documents")
    return lines


def _read_numbers(name: str, n: int, limit: int) -> list[int]:
    return _parse_numbers(name, _read_lines(name, n), limit)


def _parse_numbers(name: str, texts: list[str], limit: int) -> list[int]:
    """Read numbers from 0 up to a limit."""
    for text in texts:
        if not (text.isascii() and text.isdigit() and int(text) < limit):
            raise damage_error(
                name if "/" in name else f"nips/{name}", f"{text!r} is not a number from 0 to {limit - 1}"
            )
    return list(map(int, texts))
