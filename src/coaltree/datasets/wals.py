"""The World Atlas of Language Structures: languages by features, most cells unknown."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InputError
from .download import damage_error, read_text_lines

EDITIONS = ("2008", "2020")
NEWEST_CLASSIFICATION = "2020.4"
_FAMILY = ("Family", "Subfamily", "Genus")


@dataclass(frozen=True, eq=False)
class Wals:
    """Languages of the atlas and what is known of their features.

    Attributes
    ----------
    states : ndarray of float, shape (n_languages, n_features)
        Codes 0, 1, ..., the positions in `values`, as `coaltree.Multinomial` takes them; NaN is unknown.
    languages : ndarray of str, shape (n_languages,)
        Distinct names.
    features : ndarray of str, shape (n_features,)
        Names of the features.
    values : tuple of tuple of str
        What the codes of each feature mean.
    language_ids, feature_ids : ndarray of str
        The atlas's own codes, such as ``"ger"`` and ``"81"``.
    families, subfamilies, genera : ndarray of str, shape (n_languages,)
        The classification; "" where none is recorded, as of isolates.
    latitudes, longitudes : ndarray of float, shape (n_languages,)
        Degrees; NaN where they are not recorded.
    """

    states: NDArray[np.float64]
    languages: NDArray[np.str_]
    features: NDArray[np.str_]
    values: tuple[tuple[str, ...], ...]
    language_ids: NDArray[np.str_]
    feature_ids: NDArray[np.str_]
    families: NDArray[np.str_]
    subfamilies: NDArray[np.str_]
    genera: NDArray[np.str_]
    latitudes: NDArray[np.float64]
    longitudes: NDArray[np.float64]

    def select(self, languages: ArrayLike | None = None, features: ArrayLike | None = None) -> Wals:
        """Return a part of the table.

        Parameters
        ----------
        languages, features : array-like of bool or int, optional
            Which to keep, by a mask or by positions; all by default.

        Returns
        -------
        Wals
        """
        rows = np.arange(len(self.languages))[slice(None) if languages is None else np.asarray(languages)]
        columns = np.arange(len(self.features))[slice(None) if features is None else np.asarray(features)]
        of_languages = ("languages", "language_ids", "families", "subfamilies", "genera", "latitudes", "longitudes")
        parts: dict[str, Any] = {name: getattr(self, name)[rows] for name in of_languages}
        return replace(
            self,
            states=self.states[np.ix_(rows, columns)],
            features=self.features[columns],
            feature_ids=self.feature_ids[columns],
            values=tuple(self.values[j] for j in columns),
            **parts,
        )


def load_wals(edition: str = "2008", *, classification: str | None = None) -> Wals:
    """Load the World Atlas of Language Structures.

    Parameters
    ----------
    edition : {"2008", "2020"}, default "2008"
        The first edition online, the nearest to the book that the paper used (2,561 languages, 142 features), or that of 2020
        (2,660 languages, 192 features).
    classification : {"2020.4"}, optional
        Take families, subfamilies and genera from the newest table of languages, which leaves none empty, for the languages
        that it has. By default they are the edition's own.

    Returns
    -------
    Wals
        Languages of which at least one feature is known, and features that are known of at least one language.

    Notes
    -----
    Dryer and Haspelmath (eds.), The World Atlas of Language Structures Online, https://wals.info, CC-BY-4.0.

    Examples
    --------
    >>> import coaltree as ct
    >>> atlas = ct.datasets.load_wals()  # doctest: +SKIP
    >>> atlas.states.shape  # doctest: +SKIP
    (2561, 142)
    """
    if edition not in EDITIONS:
        raise InputError(f"edition is {edition!r}; it must be {' or '.join(map(repr, EDITIONS))}.")
    if classification not in (None, NEWEST_CLASSIFICATION):
        raise InputError(f"classification is {classification!r}; it must be None or {NEWEST_CLASSIFICATION!r}.")
    folder = f"wals/v{edition}"
    languages = _read_records(f"{folder}/languages.csv", ("ID", "Name", "Latitude", "Longitude", *_FAMILY))
    features = _read_records(f"{folder}/parameters.csv", ("ID", "Name"))
    codes = _read_records(f"{folder}/codes.csv", ("ID", "Parameter_ID", "Name"))
    cells = _read_records(f"{folder}/values.csv", ("Language_ID", "Parameter_ID", "Code_ID"))
    if classification is not None:
        languages = _reclassify(languages, f"wals/v{classification}/languages.csv")
    states, values = _read_states(languages, features, codes, cells, f"{folder}/values.csv")
    observed = ~np.isnan(states)
    families, subfamilies, genera = (_to_texts(languages, level) for level in _FAMILY)
    atlas = Wals(
        states=states,
        languages=_to_texts(languages, "Name"),
        features=_to_texts(features, "Name"),
        values=values,
        language_ids=_to_texts(languages, "ID"),
        feature_ids=_to_texts(features, "ID"),
        families=families,
        subfamilies=subfamilies,
        genera=genera,
        latitudes=_to_degrees(languages, "Latitude", f"{folder}/languages.csv"),
        longitudes=_to_degrees(languages, "Longitude", f"{folder}/languages.csv"),
    )
    return atlas.select(observed.any(axis=1), observed.any(axis=0))


def select_indo_european(atlas: Wals, min_known: int = 26) -> Wals:
    """Return the Indo-European languages with enough known features, as in the paper's tree of languages.

    Of the 2008 edition these are 48 languages and 139 features, the paper's numbers.

    Parameters
    ----------
    atlas : Wals
    min_known : int, default 26
        Least number of known features of a language.

    Returns
    -------
    Wals
        With the features that are known of at least one of the languages.
    """
    known = ~np.isnan(atlas.states)
    chosen = (atlas.families == "Indo-European") & (known.sum(axis=1) >= min_known)
    if not chosen.any():
        raise InputError(f"No Indo-European language has {min_known} known features; ask for fewer.")
    part = atlas.select(chosen)
    return part.select(features=(~np.isnan(part.states)).any(axis=0))


def select_densest(atlas: Wals, share: float) -> Wals:
    """Return the languages and features with the most known cells, as in the paper's restoration of hidden cells.

    Both are ranked by the number of their known cells in the whole table; ties are in the order of the atlas.

    Parameters
    ----------
    atlas : Wals
    share : float
        Share of the languages, and of the features, to keep: above 0, at most 1.

    Returns
    -------
    Wals
        In the order of the atlas.
    """
    if not (isinstance(share, (int, float, np.number)) and 0 < share <= 1):
        raise InputError(f"share is {share!r}; it must be a number above 0 and at most 1.")
    observed = ~np.isnan(atlas.states)

    def find_best_known(counts: NDArray[np.intp]) -> NDArray[np.intp]:
        keep = max(round(share * len(counts)), 1)
        return np.sort(np.argsort(-counts, kind="stable")[:keep])

    return atlas.select(find_best_known(observed.sum(axis=1)), find_best_known(observed.sum(axis=0)))


Record = dict[str, str]


def _read_records(name: str, columns: Iterable[str]) -> list[Record]:
    """Read a csv file with a header that has at least some columns."""
    # Line ends inside quotes belong to the text, so the reader gets them too.
    reader = csv.DictReader((line + "\n" for line in read_text_lines(name, "utf-8")), strict=True)
    try:
        rows = list(reader)
    except csv.Error as error:
        raise damage_error(name, f"line {reader.line_num}: {error}") from None
    absent = [column for column in columns if column not in (reader.fieldnames or ())]
    if absent:
        raise damage_error(name, f"it has no column {absent[0]!r}")
    for i, row in enumerate(rows):
        if None in row or None in row.values():
            raise damage_error(name, f"row {i + 1} has another number of cells than the header")
    return rows


def _read_states(
    languages: list[Record], features: list[Record], codes: list[Record], cells: list[Record], name: str
) -> tuple[NDArray[np.float64], tuple[tuple[str, ...], ...]]:
    """Return the table of known cells as codes, and what the codes of every feature mean."""
    row = {language["ID"]: i for i, language in enumerate(languages)}
    column = {feature["ID"]: j for j, feature in enumerate(features)}
    values: list[list[str]] = [[] for _ in features]
    state: dict[tuple[str, str], int] = {}
    for code in codes:
        feature = code["Parameter_ID"]
        if feature in column:
            state[feature, code["ID"]] = len(values[column[feature]])
            values[column[feature]].append(code["Name"])
    states = np.full((len(languages), len(features)), np.nan)
    for cell in cells:
        feature, language = cell["Parameter_ID"], cell["Language_ID"]
        if language not in row or (feature, cell["Code_ID"]) not in state:
            raise damage_error(
                name, f"value {cell['Code_ID']!r} of feature {feature!r} for {language!r} is not in the other files"
            )
        place = row[language], column[feature]
        if not math.isnan(states[place]):
            raise damage_error(name, f"feature {feature!r} of {language!r} has two values")
        states[place] = state[feature, cell["Code_ID"]]
    return states, tuple(map(tuple, values))


def _reclassify(languages: list[Record], name: str) -> list[Record]:
    newest = {record["ID"]: record for record in _read_records(name, ("ID", *_FAMILY))}
    return [
        language | {level: newest.get(language["ID"], language)[level] for level in _FAMILY} for language in languages
    ]


def _to_texts(records: list[Record], column: str) -> NDArray[np.str_]:
    return np.array([record[column] for record in records], dtype=np.str_)


def _to_degrees(records: list[Record], column: str, name: str) -> NDArray[np.float64]:
    try:
        return np.array([float(record[column] or "nan") for record in records])
    except ValueError as error:
        raise damage_error(name, f"column {column!r}: {error}") from None
