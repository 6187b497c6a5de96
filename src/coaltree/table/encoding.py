"""Encode columns as arrays for a process: `fit_encoding` and `encode` for a fit, `read_new_rows` for new rows."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .._validation import quote
from ..errors import InputError, InputWarning
from .cells import Category, FloatArray, IntArray, is_set
from .column_warnings import describe_copies, describe_numbers, describe_tails
from .columns import RealColumn, Table, read_with_categories
from .inputs import Source, array_names, find_datatypes, open_source
from .labels import count, listing, row_label
from .limits import MAX_RAW_NUMBER
from .notation import Notation
from .scaling import ColumnScale, PowerTransform
from .symbols import MOLECULES, datatype_of_states

Kind: TypeAlias = Literal["real", "categorical"]

# Values that differ by less than this share of their size may differ by rounding only.
_ROUNDING = 1e-14


@dataclass(frozen=True, eq=False)
class Encoding:
    """The encoding of a fit, which also encodes new rows.

    Parameters
    ----------
    column_names : tuple of str
        Names of all columns.
    kinds : tuple of {"real", "categorical"}
        Kind of each column.
    center, scale : ndarray of float64, shape (n_real,)
        Mean and standard deviation of each real column, in the order of the table and after its power transform; 0 and 1
        without standardisation.
    categories : tuple of tuple
        Categories of each categorical column, in the table's order.
    informative : ndarray of bool, shape (n_columns,)
        Whether a column has at least two distinct values; only such columns are encoded.
    times : tuple of str
        Names of the real columns that hold points in time, as days since 1970-01-01.
    powers : tuple of PowerTransform or None
        The power transform of each real column or None; empty if no column has one.
    partitions : mapping of str to str
        The partition of each column in use that is a character with the model of its partition.
    notations : mapping of str to Notation
        How numbers were written in the file of the fit, for real columns whose numbers were not plain.
    """

    column_names: tuple[str, ...]
    kinds: tuple[Kind, ...]
    center: FloatArray
    scale: FloatArray
    categories: tuple[tuple[Category, ...], ...]
    informative: NDArray[np.bool_]
    times: tuple[str, ...] = ()
    powers: tuple[PowerTransform | None, ...] = ()
    partitions: Mapping[str, str] = field(default_factory=dict)
    notations: Mapping[str, Notation] = field(default_factory=dict)

    @property
    def column_scales(self) -> list[ColumnScale]:
        """The scale of each real column, in the order of the table."""
        powers = self.powers or (None,) * len(self.center)
        return [ColumnScale(*parts) for parts in zip(self.center.tolist(), self.scale.tolist(), powers, strict=True)]

    @property
    def formats(self) -> dict[str, Notation | None]:
        """How text in real columns is read: by a notation, as times where it is None, and as plain numbers for other columns."""
        return {**self.notations, **dict.fromkeys(self.times)}

    def incomplete_cells(self, matrix: FloatArray) -> NDArray[np.bool_]:
        """Return which cells of encoded rows, real columns first, are missing or one of several categories."""
        n_real = sum(kind == "real" and bool(used) for kind, used in zip(self.kinds, self.informative, strict=True))
        incomplete = np.isnan(matrix)
        incomplete[:, n_real:] |= is_set(matrix[:, n_real:])
        return incomplete

    def check_datatypes(self, datatypes: Mapping[str, str]) -> None:
        """Raise if columns of new rows hold other molecules than those of the fit, whose letters mean other things."""
        for name, categories in self.categories_by_name.items():
            known, new = datatype_of_states([*map(str, categories)]), datatypes.get(name)
            if new is not None and name in self.partitions and new != known and {new, known} & {*MOLECULES}:
                raise InputError(
                    f"Column {quote(name)} is {new}, but was {known if known in MOLECULES else 'no molecule'} when the model was "
                    "fit: pass an alignment of the same datatype, with the same sites."
                )

    @cached_property
    def categories_by_name(self) -> Mapping[str, tuple[Category, ...]]:
        """The categories as ``read_columns(..., categories=...)`` takes them for new rows."""
        names = [name for name, kind in zip(self.column_names, self.kinds, strict=True) if kind == "categorical"]
        return dict(zip(names, self.categories, strict=True))


@dataclass(frozen=True, eq=False)
class EncodedTable:
    """The informative columns of a table, as arrays.

    Parameters
    ----------
    real : ndarray of float64, shape (n_rows, n_real)
        Real columns, standardised; NaN is missing.
    codes : ndarray of int, shape (n_rows, n_categorical)
        Codes of the categorical columns; -1 is missing, less than -1 a set of categories.
    real_names, categorical_names : tuple of str
        Names of the columns of `real` and `codes`.
    n_states : tuple of int
        Number of categories of each column of `codes`.
    partitions : tuple of (str or None)
        The partition of each column of `codes`; None for those that are no characters.
    """

    real: FloatArray
    codes: IntArray
    real_names: tuple[str, ...]
    categorical_names: tuple[str, ...]
    n_states: tuple[int, ...]
    partitions: tuple[str | None, ...]


class EncodedColumn(NamedTuple):
    """A column in use, with its place in the encoded table."""

    name: str
    position: int  # in the matrix of the encoded table
    categories: tuple[Any, ...]  # none for a real column
    scale: ColumnScale
    time: bool  # whether values are times, as days since 1970-01-01

    @property
    def real(self) -> bool:
        """Whether the column is real."""
        return not self.categories


def encoded_columns(encoding: Encoding) -> list[EncodedColumn]:
    """Return the columns in use, in the order of the table."""
    kinds = list(zip(encoding.column_names, encoding.kinds, encoding.informative.tolist(), strict=True))
    real, categorical = 0, sum(kind == "real" and used for _, kind, used in kinds)
    scales = iter(encoding.column_scales)
    categories = iter(encoding.categories)
    columns = []
    for name, kind, used in kinds:
        if kind == "real":
            column = EncodedColumn(name, real, (), next(scales), name in encoding.times)
            real += used
        else:
            column = EncodedColumn(name, categorical, next(categories), ColumnScale(0.0, 1.0), False)
            categorical += used
        if used:
            columns.append(column)
    return columns


def fit_encoding(
    table: Table,
    standardize: bool | str = True,
    partitions: Mapping[str, str] | None = None,
    unused: Collection[str] = (),
) -> Encoding:
    """Learn the encoding of a table.

    Parameters
    ----------
    table : Table
        The rows of the fit.
    standardize : bool or "power", default=True
        Whether real columns are standardised to mean 0 and standard deviation 1 over their observed cells; "power" applies
        the Yeo-Johnson transform that makes each most Gaussian first.
    partitions : mapping of str to str, optional
        The partition of each column that is a character with the model of its partition.
    unused : collection of str, optional
        Columns that are left out.

    Returns
    -------
    Encoding
    """
    unused = frozenset(unused)
    informative = np.zeros(len(table.columns), dtype=bool)
    kinds: list[Kind] = []
    scales: list[ColumnScale] = []
    categories: list[tuple[Category, ...]] = []
    for j, column in enumerate(table.columns):
        if isinstance(column, RealColumn):
            if not standardize:
                _check_size(column, table.row_names)
            scale, informative[j] = ColumnScale.fit(column.values, standardize)
            kinds.append("real")
            scales.append(scale)
        else:
            kinds.append("categorical")
            categories.append(column.categories)
            # A constant character says something about the rate of its partition.
            is_known = column.datatype is None or bool((column.codes != -1).any())
            informative[j] = len(column.categories) >= 2 and is_known and column.name not in unused
    return Encoding(
        table.column_names,
        tuple(kinds),
        np.array([scale.center for scale in scales]),
        np.array([scale.scale for scale in scales]),
        tuple(categories),
        informative,
        tuple(column.name for column in table.real if column.time),
        tuple(scale.power for scale in scales) if any(scale.power for scale in scales) else (),
        dict(partitions or {}),
        {column.name: column.notation for column in table.real if column.notation is not None},
    )


def _check_size(column: RealColumn, row_names: Sequence[str] | None) -> None:
    """Refuse numbers that are too large for their squares to be floats, and columns whose range is too small for that."""
    sizes = np.abs(np.nan_to_num(column.values))
    row = int(np.argmax(sizes))
    advice = "rescale the column, or use standardize=True."
    if sizes[row] > MAX_RAW_NUMBER:
        raise InputError(
            f"Column {quote(column.name)} holds {column.values[row]:g} in {row_label(row, row_names)}. With standardize=False "
            f"numbers may be at most {MAX_RAW_NUMBER:g} in size: {advice}"
        )
    observed = column.values[~np.isnan(column.values)]
    spread = float(np.ptp(observed)) if len(observed) else 0.0
    if 0 < spread < 1 / MAX_RAW_NUMBER:
        raise InputError(
            f"The numbers of column {quote(column.name)} differ by at most {spread:g}. With standardize=False the range of a "
            f"column that varies must be at least {1 / MAX_RAW_NUMBER:g}: {advice}"
        )


def encode(table: Table, encoding: Encoding) -> EncodedTable:
    """Encode the informative columns of a table.

    Parameters
    ----------
    table : Table
        The rows of the fit, or new rows as `read_new_rows` reads them.
    encoding : Encoding
        The result of `fit_encoding`.

    Returns
    -------
    EncodedTable

    Raises
    ------
    InputError
        If the columns differ from those of the encoding.
    """
    _check_same_columns(table, encoding)
    used = list(zip(table.columns, encoding.informative.tolist(), strict=True))
    real_names = [column.name for column, informative in used if informative and isinstance(column, RealColumn)]
    categorical_names = [
        column.name for column, informative in used if informative and not isinstance(column, RealColumn)
    ]
    # Filled column by column, to save memory.
    real = np.empty((table.n_rows, len(real_names)))
    codes = np.empty((table.n_rows, len(categorical_names)), dtype=np.intp)
    scales = iter(encoding.column_scales)
    to_real, to_codes = iter(real.T), iter(codes.T)
    for column, informative in used:
        if isinstance(column, RealColumn):
            scale = next(scales)
            if informative:
                next(to_real)[:] = scale.encode(column.values)
        elif informative:
            next(to_codes)[:] = column.codes
    by_name = encoding.categories_by_name
    return EncodedTable(
        real,
        codes,
        tuple(real_names),
        tuple(categorical_names),
        tuple(len(by_name[name]) for name in categorical_names),
        tuple(encoding.partitions.get(name) for name in categorical_names),
    )


def describe(
    table: Table,
    encoding: Encoding,
    shortened: Mapping[str, IntArray] | None = None,
) -> list[str]:
    """Return notes on a table, one sentence each: above all, which columns are ignored.

    Parameters
    ----------
    table : Table
        The rows of the fit.
    encoding : Encoding
        Its encoding.
    shortened : mapping of str to ndarray of int, optional
        For a column name, rows whose extreme cells were moved nearer to the others before the search for a tree.

    Returns
    -------
    list of str
        The notes; empty if there are none.
    """
    if table.n_rows == 1:
        return [*table.remarks, "The table has one row: its tree is a single leaf."]
    if not encoding.informative.any():
        return [*table.remarks, "No column has two different values, so the rows cannot be distinguished."]
    observed = [~np.isnan(c.values) if isinstance(c, RealColumn) else c.codes != -1 for c in table.columns]
    missing = [
        c.name
        for c, cells in zip(table.columns, observed, strict=True)
        if not cells.any() and (isinstance(c, RealColumn) or not len(c.unseen))
    ]
    constant = [
        c.name
        for c, cells, informative in zip(table.columns, observed, encoding.informative, strict=True)
        if cells.any() and not informative and (isinstance(c, RealColumn) or c.datatype is None)
    ]
    sentences = list(table.remarks)
    if constant:
        sentences.append(
            f"{count(len(constant), 'column is', 'columns are')} constant and ignored: {listing(constant)}."
        )
    for column, informative in zip(table.columns, encoding.informative, strict=True):
        if informative and isinstance(column, RealColumn):
            sentences += describe_numbers(column)
        if informative and isinstance(column, RealColumn) and _differs_by_rounding(column.values):
            sentences.append(
                f"The values of column {quote(column.name)} differ by less than {_ROUNDING:g} of their size, which may be "
                "rounding: the column is used; drop it if it is constant."
            )
    used = [
        column
        for column, informative in zip(table.columns, encoding.informative, strict=True)
        if informative and column.name not in encoding.partitions  # sites of an alignment are often equal
    ]
    sentences += describe_copies(used)
    sentences += describe_tails(table, _real_values(table, encoding), shortened or {})
    if missing:
        sentences.append(
            f"{count(len(missing), 'column has', 'columns have')} no observed cell and "
            f"{'is' if len(missing) == 1 else 'are'} ignored: {listing(missing)}."
        )
    useful = [cells for cells, informative in zip(observed, encoding.informative, strict=True) if informative]
    empty = np.flatnonzero(~np.logical_or.reduce(useful))
    if len(empty):
        names = [table.row_names[i] if table.row_names else int(i) for i in empty[:6]]
        more = f" and {len(empty) - 5} more" if len(empty) > 5 else ""
        sentences.append(
            f"{count(len(empty), 'row has', 'rows have')} no observed cell in the columns used "
            f"({'row' if len(empty) == 1 else 'rows'} {', '.join(map(repr, names[:5]))}{more}): "
            f"{'its' if len(empty) == 1 else 'their'} place in the tree is arbitrary."
        )
    return sentences


def _real_values(table: Table, encoding: Encoding) -> dict[str, FloatArray]:
    """Return the real columns in use, by name, after their power transform if there is one."""
    used = dict(zip(encoding.column_names, encoding.informative.tolist(), strict=True))
    return {
        column.name: column.values if scale.power is None else scale.encode(column.values)
        for column, scale in zip(table.real, encoding.column_scales, strict=True)
        if used[column.name]
    }


def _differs_by_rounding(values: FloatArray) -> bool:
    """Return whether values differ only in their last digits, as computed constants do."""
    observed = values[~np.isnan(values)]
    size = np.max(np.abs(observed))
    # Halves, because the difference of two finite numbers may be infinite.
    close = bool(np.ptp(observed / 2) <= _ROUNDING * (size / 2))
    return close and not bool(np.all(observed == np.floor(observed)))


def _check_same_columns(table: Table, encoding: Encoding) -> None:
    if table.column_names != encoding.column_names:
        absent = [name for name in encoding.column_names if name not in table.column_names]
        extra = [name for name in table.column_names if name not in encoding.column_names]
        differences = [f"{verb} {listing(names)}" for verb, names in (("lacks", absent), ("adds", extra)) if names]
        raise InputError(
            "The columns must be those of the fit, in the same order: the table "
            f"{' and '.join(differences) if differences else 'has them in another order'}."
        )
    categories = iter(encoding.categories)
    for column, kind in zip(table.columns, encoding.kinds, strict=True):
        if (kind == "real") != isinstance(column, RealColumn):
            raise InputError(f"Column {quote(column.name)} was {kind} when the model was fit, and is not now.")
        if not isinstance(column, RealColumn) and column.categories != next(categories):
            raise InputError(
                f"Column {quote(column.name)} has different categories than in the fit: "
                "read new rows with categories=encoding.categories_by_name."
            )


def read_new_rows(
    X: Any,
    encoding: Encoding,
    *,
    unseen: Literal["missing", "error"] = "missing",
    estimator: str = "CoalescentClustering",
) -> Table:
    """Read new rows with the encoding of a fit.

    Columns of a frame are matched by name, in any order, and other columns are ignored. Columns of an array, of a list of lists
    and of a frame whose labels are not text are matched by position. So are those of a frame if the fit was on an array.

    Parameters
    ----------
    X : frame, 2-D array or list of lists
        The new rows, of any kind that `read_columns` reads.
    encoding : Encoding
        The encoding of the fit.
    unseen : {"missing", "error"}, default="missing"
        How to treat a cell with a category that did not occur in the fit: read it as missing, with a warning, and
        keep its row in the column's `unseen`; or raise an error.
    estimator : str, default="CoalescentClustering"
        The estimator that expects the columns, for messages.

    Returns
    -------
    Table
        The columns of the fit, in its order, as `encode` takes them. Their `index` says where they stand in `X`.

    Raises
    ------
    InputError
        If columns of the fit are absent, or a cell cannot be read as in the fit.

    Warns
    -----
    InputWarning
        For columns and categories that did not occur in the fit.
    """
    if unseen not in ("missing", "error"):
        raise InputError(f"unseen is {unseen!r}; it must be 'missing' or 'error'.")
    source = open_source(X)
    encoding.check_datatypes(find_datatypes(X))
    if _match_by_name(source, encoding):
        position = dict(zip(source.names, source.positions, strict=True))
        positions = tuple(position[name] for name in encoding.column_names)
        extra = [name for name in source.names if name not in set(encoding.column_names)]
        if extra:
            one = len(extra) == 1
            warnings.warn(
                f"{'Column' if one else 'Columns'} {listing(extra)} did not occur when the model was fit and "
                f"{'is' if one else 'are'} ignored.",
                InputWarning,
                stacklevel=4,  # the line that calls an estimator
            )
    else:
        expected, n_columns = len(encoding.column_names), len(source.names)
        if n_columns != expected:
            # The wording of scikit-learn, which its checks expect.
            raise InputError(
                f"X has {n_columns} features, but {estimator} is expecting {expected} features as input: columns without "
                f"names are those of the fit in the same order, which are {listing(encoding.column_names, limit=10)}."
            )
        positions = source.positions
    known = replace(source, names=encoding.column_names, positions=positions)
    return read_with_categories(known, encoding.categories_by_name, unseen, encoding.formats)


def _match_by_name(source: Source, encoding: Encoding) -> bool:
    """Return whether columns are matched by name; refuse a frame that lacks some of the names."""
    if source.labels is None:
        return False
    absent = [name for name in encoding.column_names if name not in set(source.names)]
    if not absent:
        return True
    n_columns = len(encoding.column_names)
    # The columns of an array, or of a pandas frame made from one, have no names.
    unnamed = encoding.column_names in (array_names(n_columns), tuple(map(str, range(n_columns))))
    if not all(isinstance(label, str) for label in source.labels) or (unnamed and len(absent) == n_columns):
        return False
    extra = [name for name in source.names if name not in set(encoding.column_names)]
    one = len(absent) == 1
    raise InputError(
        f"The table lacks the {'column' if one else 'columns'} {listing(absent)} that it had when the model was fit"
        f"{f' (and has {listing(extra)} instead)' if extra else ''}: add the {'column' if one else 'columns'}, "
        f"with missing cells if {'it is' if one else 'they are'} unknown."
    )
