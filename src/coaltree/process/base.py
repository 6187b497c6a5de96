"""`Process`: the interface of all processes that run along the branches of a tree.

A process declares its columns and the messages of its leaves. Inference, prediction, estimators, model files and reports call
only the methods below. Seven of them are abstract. The others have defaults: a process without parameters to fit or to sample,
without a clock, and stored by the arguments of its constructor. `docs/own_process.md` defines a process from scratch.
"""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._html import facts_html, shorten_value
from .._random import RandomState
from .._validation import quote
from ..errors import InputError
from ..table.cells import Category
from ..table.matrix import as_matrix
from ..table.scaling import ColumnScale
from ..tree.tree import Tree, check_tree
from .ascertainment import UnseenColumns
from .declarations import ChainColumns, Columns, GaussianColumns, SiteColumns
from .kernels.messages import Forest
from .kernels.passes import climb
from .layout import Messages, make_forest, read_messages
from .predictions import Predictions, Whitening
from .site_rates import SiteLikelihoods

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

MERGES_PER_CALL = 50_000  # limits the work in one call of a kernel, so that Ctrl-C is not delayed
MAX_EXACT_ROWS = 3_000  # up to which greedy inference compares all pairs, unless a process knows better

# Precisions, in units of the column's own, and rates have a Gamma prior of this shape and scale.
PRIOR_SHAPE, PRIOR_SCALE = 1.1, 1.1
RATE_RANGE = (1e-4, 1e4)


class WeightedTrees(NamedTuple):
    """The data that parameters are fitted to: weighted trees over the rows of one table."""

    trees: Sequence[Tree]
    weights: FloatArray
    X: FloatArray

    def select_columns(self, columns: Sequence[int]) -> WeightedTrees:
        """Return the same trees with some of the columns."""
        return self._replace(X=self.X[:, list(columns)])


class UnknownProcessError(InputError):
    """A file names a kind of process whose class has not been imported."""


class Process(ABC):
    """A Markov process that runs from the root of a tree to the leaves, which show the rows of a table.

    A subclass needs no compiled code if its columns are Gaussian, or have states that are redrawn from an equilibrium or change
    by a reversible chain: it declares them in `columns`. Rows of ``X`` are leaves, NaN is a missing cell.

    Attributes
    ----------
    kind : str
        The name of the class in model files and reports, for example ``"brownian"``. A class with its own `kind` can be saved
        and loaded.
    takes_state_sets : bool
        Whether codes of sets of states, see `coaltree.state_set`, may be among the cells of categorical columns.
    ascertainment : str or None
        Which columns are recorded, see `Multinomial`; None if all are.
    """

    kind: ClassVar[str]
    takes_state_sets: ClassVar[bool] = False
    ascertainment: str | None = None
    share_equilibrium: bool = False
    hold_equilibrium: bool = False
    gamma_shape: float | None = None
    _classes: ClassVar[dict[str, type[Process]]] = {}  # by kind

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        kind = cls.__dict__.get("kind")
        if kind is None:
            return
        known = Process._classes.get(kind)
        is_builtin, known_is_builtin = (
            one is not None and one.__module__.startswith("coaltree.") for one in (cls, known)
        )
        if known is not None and known_is_builtin and not is_builtin:
            raise TypeError(
                f"kind is {quote(kind)}, which is that of coaltree's {known.__name__}; choose another name."
            )
        Process._classes[kind] = cls

    # -- the model: what every process defines ---------------------------------------------------------

    @abstractmethod
    def resolve(self, X: FloatArray) -> Self:
        """Return this process with every open parameter set from the data.

        Raises `InputError` if the rows cannot come from this process. Resolving a resolved process changes nothing.
        """

    @abstractmethod
    def columns(self, X: FloatArray) -> list[Columns]:
        """Declare the columns, their parameters and the messages of the rows of X; see `coaltree.process.declarations`.

        Called on a resolved process. Most processes return one declaration; see `n_declarations`.
        """

    @abstractmethod
    def leaf_log_likelihoods(self, X: FloatArray) -> FloatArray:
        """Return the log of the constant ``Z_leaf`` of the message of each row, shape ``(n,)``. Called on a resolved process."""

    @abstractmethod
    def simulate(self, tree: Tree, random_state: RandomState = None, *, n_columns: int | None = None) -> FloatArray:
        """Draw a table from the process on a tree, one row per leaf.

        `n_columns` is for processes whose parameters do not determine the number of columns.
        """

    @abstractmethod
    def states(self, messages: Messages, distance: FloatArray, observed: bool) -> Predictions:
        """Return the distributions of states at the far ends of paths, given the messages at their near ends.

        Parameters
        ----------
        messages : list
            One entry for each declaration of `columns`, with a row for each path. There may be no paths.
        distance : ndarray of shape (rows,)
            Lengths of the paths.
        observed : bool
            Whether to include the noise with which a leaf shows its state.
        """

    @abstractmethod
    def draw(self, messages: Messages, tree: Tree, size: int, rng: np.random.Generator) -> FloatArray:
        """Draw tables from the process on a tree, given all observed cells; shape ``(size, n_leaves, n_columns)``.

        `messages` are the upward ones of all nodes, leaves first. Every cell is a new observation of its leaf, noise included;
        one that is known to be in a set of states is drawn from the set. The cells of one draw belong together.
        """

    @abstractmethod
    def coordinates(self, messages: Messages, height: float) -> NDArray[np.float32]:
        """Return a point for each lineage, such that lineages near each other are likely to merge.

        The squared distance of two points is about the log likelihood that is lost if their lineages merge near `height`, so
        that distances of several processes can be added. NaN where nothing was observed below a lineage. Shape
        ``(coordinates, lineages)``.
        """

    # -- structure of the columns ----------------------------------------------------------------------

    @property
    def n_declarations(self) -> int:
        """Number of declarations that `columns` returns."""
        return 1

    def forest(self, X: FloatArray, capacity: int, *, scan: bool = False, patterns: bool = True) -> Forest:
        """Return a forest of `capacity` slots whose first ones hold the messages of the rows of X; see `make_forest`."""
        return make_forest(self.checked_columns(X), capacity, scan, patterns)

    def checked_columns(self, X: FloatArray) -> list[Columns]:
        """Return what `columns` declares, after a check that it has declared all rows."""
        columns = self.columns(X)
        self._check_declared(columns, len(X))
        return columns

    def _check_declared(self, columns: object, n_rows: int) -> None:
        """Raise unless `columns` has declared all rows of a table, in as many declarations as it says."""
        name = f"{type(self).__name__}.columns"
        if not isinstance(columns, list) or not all(
            isinstance(part, GaussianColumns | SiteColumns | ChainColumns) for part in columns
        ):
            raise InputError(
                f"{name} returned {quote(columns)}; it must return a list of GaussianColumns, SiteColumns and ChainColumns."
            )
        if len(columns) != self.n_declarations:
            raise InputError(
                f"{name} returned {len(columns)} declaration(s), but n_declarations is {self.n_declarations}."
            )
        for part in columns:
            if part.n_rows != n_rows:
                raise InputError(f"{name} declared messages of {part.n_rows} row(s); the table has {n_rows}.")

    def lineage_points(self, forest: Forest, n: int, height: float) -> NDArray[np.float32]:
        """Return `coordinates` of the lineages in the first n slots of a forest, in the layout of the kernels."""
        points = np.asarray(self.coordinates(read_messages(forest, slice(0, n)), height))
        if points.ndim != 2 or points.shape[1] != n:
            raise InputError(
                f"{type(self).__name__}.coordinates returned an array of shape {points.shape}; it must have a row for each "
                f"coordinate and a column for each of the {n} lineage(s)."
            )
        return np.ascontiguousarray(points, dtype=np.float32)

    def subprocesses(self, n_columns: int) -> tuple[tuple[Process, tuple[int, ...]], ...]:
        """Return the independent processes that make up this one, with their columns: by default itself."""
        return ((self, tuple(range(n_columns))),)

    def site_likelihoods(self, X: FloatArray, group_of: IntArray | None = None) -> SiteLikelihoods:
        """Return the likelihoods of the columns of a resolved process whose rates vary, `gamma_shape`, given their categories."""
        raise NotImplementedError

    def check_columns(self, n_states: Sequence[int]) -> None:  # noqa: B027  a default that works
        """Raise `InputError` unless the process can describe columns with these numbers of states, 0 for real columns.

        Model files are checked with it. By default any columns are accepted.
        """

    def decorrelate(self, X: FloatArray) -> tuple[Process, FloatArray, float]:
        """Return an equivalent process with independent columns, X in its units, and the log Jacobian of a row."""
        return self, X, 0.0

    def whitenings(self) -> list[Whitening]:
        """Return the linear maps by which `decorrelate` makes columns independent, one for each covariance matrix."""
        return []

    # -- hints for inference and prediction ------------------------------------------------------------

    def max_exact_rows(self, X: FloatArray) -> int:
        """Return the number of rows up to which greedy inference compares all pairs where the search is "auto"."""
        return MAX_EXACT_ROWS

    @property
    def min_attachment_height(self) -> float:
        """The height below which it does not matter where exactly a new leaf attaches."""
        return 0.0

    def jitter_rounded(self, X: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return a copy of X in which the digits that were lost by rounding are drawn at random.

        Columns whose values repeat, such as counts, could otherwise be explained by states that repeat exactly, whose density
        is unbounded. By default nothing is changed.
        """
        return X.copy()

    def remarks(self, tree: Tree, X: FloatArray) -> list[str]:
        """Return warnings about the tree of X that the user should read."""
        return []

    def with_more_noise(self, ratio: float) -> Self:
        """Return the process with more noise in each cell, which makes its densities wider; by default nothing changes.

        The variance that is added to a real column is `ratio` times its variance at equilibrium, noise included, or without
        an equilibrium after a unit of time. A state is replaced by a draw from the equilibrium with probability
        ``ratio / (1 + ratio)``, the same share of noise.
        """
        return self

    # -- ascertainment ---------------------------------------------------------------------------------

    def check_ascertainment(self, X: FloatArray, names: Sequence[str] | None = None) -> None:  # noqa: B027  a default
        """Raise `InputError` if the table has a column that, according to the process, is never recorded.

        `names` are those of the columns; by default they are numbered. By default all columns are recorded.
        """

    def without_ascertainment(self) -> Self:
        """Return the process that records all columns."""
        return self

    def unseen_columns(self, X: FloatArray) -> UnseenColumns | None:
        """Return the columns that are not recorded, on which a resolved process conditions: by default there are none."""
        return None

    # -- parameters ------------------------------------------------------------------------------------

    def parameter_names(self, columns: Sequence[int]) -> list[str]:
        """Return the names of the parameters of a resolved process that can be fitted or sampled.

        Parameters
        ----------
        columns : sequence of int
            The numbers of the columns that the process describes. A parameter of column 2 is named like ``variance[2]``.
        """
        return []

    def parameter_values(self) -> FloatArray:
        """Return the values of `parameter_names`, in the same order."""
        return np.zeros(0)

    @property
    def n_constraints(self) -> int:
        """Number of constraints on the parameters, each of which fixes one of them given the others."""
        return 0

    def with_parameter_values(self, values: FloatArray) -> Self:
        """Return the process with other values, in the order of `parameter_names`; shapes stay."""
        return self

    def rescale_clock(self, factor: float) -> Self | None:
        """Return the process slowed down by `factor`: it has the same likelihood on trees `factor` times as high.

        None, the default, means that the process has no rate that could be changed; callers then leave heights as they are.
        """
        return None

    def fit(self, trees: WeightedTrees, hold_noise: bool) -> Self:
        """Return the process with parameters that fit weighted trees at least as well; see `coaltree.calibrate`."""
        return self

    def log_parameter_prior(self, X: FloatArray, hold_noise: bool = False) -> float:
        """Return the log density of the parameters under their priors, up to a constant.

        With `hold_noise` the noise of real columns is given: it has no prior, and may be below that of rounding.
        """
        return 0.0

    def sampler(self, X: FloatArray, hold_noise: bool) -> ParameterSampler[Any]:
        """Return the sampler of the parameters of this resolved process in a Markov chain; by default they stay fixed."""
        return ParameterSampler(X)

    # -- reports ---------------------------------------------------------------------------------------

    def describe_columns(self, columns: Sequence[ColumnScale | Sequence[Category]]) -> list[dict[str, Any]]:
        """Return readable parameters of each column, for ``parameters_`` of the estimators and for reports.

        Parameters
        ----------
        columns : sequence
            For each column its scale if it is real, to express parameters in its own units, else its categories.

        Returns
        -------
        list of dict
            By default the kind of the process and its named parameters.
        """
        described: list[dict[str, Any]] = [{"process": getattr(self, "kind", type(self).__name__)} for _ in columns]
        values = self.parameter_values().tolist()
        for name, value in zip(self.parameter_names(range(len(columns))), values, strict=True):
            parameter, _, column = name.partition("[")
            for d, facts in enumerate(described):
                if not column or column == f"{d}]":
                    facts[parameter] = value
        return described

    def _repr_html_(self) -> str:
        return facts_html(type(self).__name__, vars(self))

    def __repr__(self) -> str:
        arguments = (f"{name}={shorten_value(value)}" for name, value in self._arguments().items())
        return f"{type(self).__name__}({', '.join(arguments)})"

    # -- storage ---------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return the process as plain values for a JSON file: its `kind`, and what `from_dict` needs.

        By default those are the arguments of the constructor, each of which must be an attribute of the same name.
        """
        if "kind" not in type(self).__dict__:
            raise InputError(
                f"{self!r} cannot be saved: its class has no `kind`. Add one, for example kind = {type(self).__name__.lower()!r}."
            )
        return {"kind": self.kind, **{name: _to_plain(value) for name, value in self._arguments().items()}}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Process:
        """Return the process that `to_dict` has written.

        ``Process.from_dict`` finds the class by its kind. The file names no code to import: a class that is not part of
        coaltree must be imported first, else `UnknownProcessError` is raised.
        """
        if cls is Process:
            kind = values.get("kind")
            if not isinstance(kind, str) or kind not in Process._classes:
                raise UnknownProcessError(
                    f"its process is of the kind {kind!r}, and only {', '.join(sorted(Process._classes))} are known; import the "
                    "module that defines the process, then load the model"
                )
            return Process._classes[kind].from_dict(values)
        arguments = {name: value for name, value in values.items() if name != "kind"}
        try:
            inspect.signature(cls).bind(**arguments)
        except TypeError as error:
            raise InputError(f"the process does not fit {cls.__name__}: {error}") from None
        return cls(**arguments)

    def replace(self, **arguments: Any) -> Self:
        """Return a process whose constructor had some other arguments."""
        return type(self)(**(self._arguments() | arguments))

    def _arguments(self) -> dict[str, Any]:
        """Return the arguments of the constructor, by name."""
        return {name: getattr(self, name) for name in _argument_names(type(self))}

    # -- likelihood ------------------------------------------------------------------------------------

    def log_likelihood(self, tree: Tree, X: ArrayLike) -> float:
        """Return the log likelihood of a table on a tree, all constants included: eq. (2.1), with ascertainment eq. (5.7).

        Parameters
        ----------
        tree : Tree
        X : array-like of shape (n_leaves, n_columns)
            Row i belongs to leaf i; NaN is a missing cell.

        Returns
        -------
        float
            ``log p(x | tree)``; minus infinity if the process cannot produce these rows on this tree.
        """
        check_tree(tree)
        matrix = as_matrix(X)
        if len(matrix) != tree.n_leaves:
            raise InputError(
                f"The table has {len(matrix)} row(s) and the tree {tree.n_leaves} leaves; row i is leaf i."
            )
        resolved = self.resolve(matrix)
        resolved.check_ascertainment(matrix)
        merges = merge_log_likelihoods(resolved, tree, matrix)
        unconditional = math.fsum(resolved.leaf_log_likelihoods(matrix)) + float(np.sum(merges.log_z))
        return unconditional - log_recorded(resolved, tree, matrix)


@cache
def _argument_names(kind: type[Process]) -> tuple[str, ...]:
    """Return the names of the arguments of a constructor; chains make a process at every step."""
    return tuple(inspect.signature(kind).parameters)


def _to_plain(value: Any) -> Any:
    """Return a value as JSON can hold it."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return [_to_plain(entry) for entry in value] if isinstance(value, list | tuple) else value


AnyProcess = TypeVar("AnyProcess", bound=Process)


class ParameterSampler(Generic[AnyProcess]):
    """Draws the parameters of a process from their posterior, given a tree: one step of a Markov chain.

    This class leaves the parameters as they are; processes that sample theirs return a subclass from `Process.sampler`.

    Parameters
    ----------
    X : ndarray of shape (n, D)

    Attributes
    ----------
    table : ndarray of shape (n, D)
        The table of the messages: X, or X with its missing cells filled by draws.
    """

    def __init__(self, X: FloatArray) -> None:
        self.table = X

    def missing_cells(self) -> FloatArray:
        """Return the missing cells as last drawn, row by row; none if they are integrated out."""
        return np.zeros(0)

    def state(self) -> FloatArray:
        """Return the state of the sampler apart from the process."""
        return np.zeros(0)

    def restore(self, state: FloatArray) -> None:
        """Continue from a state."""

    def draw_cells(self, process: AnyProcess, tree: Tree, rng: np.random.Generator) -> None:
        """Draw the missing cells only, if they are not integrated out."""

    def initial_process(self, process: AnyProcess) -> AnyProcess:
        """Return the process with which a chain starts: all parameters that will be drawn, with possible values."""
        return process

    def draw(self, process: AnyProcess, tree: Tree, rng: np.random.Generator) -> AnyProcess:
        """Return the process with new parameters. The step leaves their posterior given the tree invariant."""
        return process

    def log_prior(self, process: AnyProcess) -> float:
        """Return the log density of the parameters, up to a constant."""
        return 0.0

    def clock_exponent(self, process: AnyProcess) -> float | None:
        """Return the exponent of c in the Jacobian of `Process.rescale_clock` by c; None if the clock must stay."""
        return None

    def log_clock_ratio(self, process: AnyProcess, log_factor: float) -> float:
        """Return the log density of the parameters after rescaling the clock, relative to before: eq. (13.7)."""
        return self.rescale_clock(process, log_factor)[1]

    def rescale_clock(self, process: AnyProcess, log_factor: float) -> tuple[AnyProcess, float]:
        """Return the process with another clock, and `log_clock_ratio`; minus infinity if that is impossible."""
        exponent = self.clock_exponent(process)
        if exponent is None:
            return process, -math.inf
        try:
            rescaled = process.rescale_clock(math.exp(log_factor))
        except InputError:  # beyond the units that a process can have
            return process, -math.inf
        assert rescaled is not None, "a process whose sampler moves the clock has one"
        return rescaled, self.log_prior(rescaled) - self.log_prior(process) + exponent * log_factor


class MergeLogLikelihoods(NamedTuple):
    """The contribution of each merge of a tree, most recent first, each of shape ``(n - 1,)``."""

    log_z: FloatArray  # local likelihoods: with the leaves' constants they add up to the likelihood
    log_ratios: FloatArray  # one tree below the merge against two independent ones


def merge_log_likelihoods(process: Process, tree: Tree, X: FloatArray) -> MergeLogLikelihoods:
    """Climb a tree with a resolved process and return the contribution of each merge."""
    forest = process.forest(X, len(X))
    result = MergeLogLikelihoods(np.empty(len(X) - 1), np.empty(len(X) - 1))
    slot = np.arange(tree.n_nodes)
    for first in range(0, len(X) - 1, MERGES_PER_CALL):
        last = min(first + MERGES_PER_CALL, len(X) - 1)
        climb(forest, tree.children, tree.heights, slot, result.log_z, result.log_ratios, first, last)
    if np.any(np.isnan(result.log_z)):
        merge = int(np.argmax(np.isnan(result.log_z)))
        raise FloatingPointError(
            f"The likelihood of merge {merge}, at height {tree.heights[len(X) + merge]:g}, is not a number: the units of the "
            "table or of the process exceed the range of double precision. Rescale them."
        )
    return result


def log_recorded(process: Process, tree: Tree, X: FloatArray) -> float:
    """Return the log probability that all columns are recorded; 0 unless the resolved process has an ascertainment."""
    unseen = process.unseen_columns(X)
    return 0.0 if unseen is None else unseen.log_recorded(tree)


def check_process(process: object) -> None:
    """Raise unless an argument is a process."""
    if not isinstance(process, Process):
        raise InputError(f"process is {quote(process)}; it must be a process, for example Brownian() or Multinomial().")


def indexed_names(name: str, ndim: int, columns: Sequence[int]) -> list[str]:
    """Return the names of the entries of a parameter: a number, a vector over columns, or a matrix."""
    if ndim == 0:
        return [name]
    if ndim == 1:
        return [f"{name}[{column}]" for column in columns]
    return [f"{name}[{a},{b}]" for a in columns for b in columns]
