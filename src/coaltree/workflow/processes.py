"""The processes of a fit: one for the tree and its clusters, one for predictions, one for chains that draw parameters.

The tree is found with fixed parameters. Predictions draw their parameters, starting from the values here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._extensions import are_compiled
from .._validation import quote
from ..errors import InputError
from ..inference.clock import fit_clock
from ..inference.greedy import greedy
from ..inference.preparation import shorten_gaps
from ..inference.signals import Signals, column_signals
from ..predict.tails import Tails
from ..process.base import Process
from ..process.brownian import Brownian
from ..process.categorical_columns import smoothed_shares
from ..process.characters import character_process, with_shares
from ..process.gaussian_columns import column_moments, scale_to_range
from ..process.mixed import Mixed
from ..process.multinomial import MAX_NAMED, Multinomial
from ..process.normal_scores import NormalScores
from ..process.ornstein_uhlenbeck import OrnsteinUhlenbeck
from ..table.cells import Category
from ..table.character_columns import Partition
from ..table.encoding import EncodedTable, Encoding
from ..table.scaling import ColumnScale
from .settings import Settings

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

FIRST_SITE_RATE, FIRST_SITE_NOISE = 0.5, 0.4  # starting values of draws for categorical columns
# The process of trees and clusters. Nothing is fitted, because the parameters that predict best have too little noise for
# clusters. On the tables of `python benchmarks/clusters.py`, values that were best on one half were no better than these on the
# other half.
RATE, NOISE = (
    0.5,
    0.5,
)  # of real columns: the rate of the stationary process, and the share of the variance that is noise
SITE_RATE, SITE_NOISE = 1.0, 0.2  # of categorical columns
MAX_CORRELATED = 100  # real columns with covariance matrices in predictions: the work grows as the cube of their number


class Templates(NamedTuple):
    """The processes of the columns, as the user chose them, or as characters of taxa have them."""

    real: str | Process  # a name (its parameters are chosen here), or a process that is used unchanged
    categorical: Process | None  # None for `Multinomial`
    characters: tuple[Process, ...] = ()  # of each partition, in the order of their first columns

    def resolve(self, process: Process, encoded: EncodedTable) -> Templates:
        """Return the templates with open parameters set as in a process that was made from them for a whole table.

        A part of the rows may lack categories.
        """
        n_real, n_categorical = encoded.real.shape[1], encoded.codes.shape[1]
        n_partitions = len(partition_columns(encoded))
        if n_real + n_categorical == 0:
            return self
        if not n_real and not n_partitions:  # which may have parts itself
            return self if self.categorical is None else self._replace(categorical=process)
        parts = [part for part, _ in process.subprocesses(n_real + n_categorical)]
        real = parts.pop(0) if n_real else None
        characters = tuple(parts[len(parts) - n_partitions :])
        ordinary = parts[0] if len(parts) > n_partitions else None
        return Templates(
            real if real is not None and not isinstance(self.real, str) else self.real,
            ordinary if ordinary is not None and self.categorical is not None else self.categorical,
            characters,
        )

    def without_ascertainment(self) -> Templates:
        """Return the templates for some of the rows: columns that were recorded may be constant in them."""
        return self._replace(
            categorical=self.categorical and self.categorical.without_ascertainment(),
            characters=tuple(part.without_ascertainment() for part in self.characters),
        )

    def check_shared(self, encoded: EncodedTable, encoding: Encoding) -> None:
        """Raise if categorical columns are to share one equilibrium although they have different categories."""
        if self.categorical is None or not self.categorical.share_equilibrium:
            return
        alphabets = {encoding.categories_by_name[name] for name in encoded.categorical_names}
        if len(alphabets) > 1:
            raise InputError(
                "categorical_process has share_equilibrium=True, but columns have different categories, so they cannot share "
                "one equilibrium. Use it with characters that have one alphabet, such as an alignment from ct.read_characters."
            )

    def check_constant(self, constant: Sequence[str]) -> None:
        """Raise if columns have a single category, of which it is not known whether it is the one for absent things."""
        if self.categorical is None or self.categorical.ascertainment != "present" or not constant:
            return
        names = ", ".join(map(quote, constant[:MAX_NAMED]))
        more = f" and {len(constant) - MAX_NAMED} more" if len(constant) > MAX_NAMED else ""
        raise InputError(
            f"{len(constant)} column(s) have a single category: {names}{more}. A categorical_process with "
            "ascertainment='present' cannot tell whether it means that something is present. Give the parameter "
            "ascertainment='present' instead, with which all columns have the same categories."
        )


def partition_columns(encoded: EncodedTable) -> dict[str, list[int]]:
    """Return the positions of the columns of each partition of characters among the categorical columns."""
    columns: dict[str, list[int]] = {}
    for d, partition in enumerate(encoded.partitions):
        if partition is not None:
            columns.setdefault(partition, []).append(d)
    return columns


def fit_characters(encoded: EncodedTable, partitions: Sequence[Partition], settings: Settings) -> tuple[Process, ...]:
    """Return the processes of the partitions of characters, with rates that were fitted to a greedy tree of the characters."""
    columns = partition_columns(encoded)
    if not columns:
        return ()
    used = [d for positions in columns.values() for d in positions]
    codes = np.where(encoded.codes == -1, np.nan, encoded.codes)[:, used]
    names, n_states = [encoded.categorical_names[d] for d in used], [encoded.n_states[d] for d in used]
    by_name = {partition.name: partition for partition in partitions}
    process = character_process(
        codes, names, n_states, [by_name[name] for name in columns], settings.model, settings.rates
    )
    fitted = fit_clock(process, codes, partial(greedy, n_jobs=settings.n_jobs))
    parts = zip(process.subprocesses(len(used)), fitted.subprocesses(len(used)), strict=True)
    # Rates are fitted to some of the rows of a large table, in which recorded columns may be constant.
    return tuple(part.with_parameter_values(own.parameter_values()) for (part, _), (own, _) in parts)


def to_matrix(encoded: EncodedTable) -> FloatArray:
    """Put the encoded columns side by side, real ones first, NaN for missing."""
    n_real, n_categorical = encoded.real.shape[1], encoded.codes.shape[1]
    if n_real + n_categorical == 0:
        # The rows cannot be distinguished: use one column without any observed cell.
        return np.full((len(encoded.codes), 1), np.nan)
    matrix = np.empty((len(encoded.codes), n_real + n_categorical))
    matrix[:, :n_real] = encoded.real
    matrix[:, n_real:] = encoded.codes
    matrix[:, n_real:][encoded.codes == -1] = np.nan
    return matrix


def to_encoded_table(encoding: Encoding, matrix: FloatArray) -> EncodedTable:
    """Return the encoded table from which `to_matrix` made a matrix."""
    used = [
        [
            name
            for name, column_kind, informative in zip(
                encoding.column_names, encoding.kinds, encoding.informative, strict=True
            )
            if column_kind == kind and informative
        ]
        for kind in ("real", "categorical")
    ]
    n_real, n_categorical = len(used[0]), len(used[1])
    codes = matrix[:, n_real : n_real + n_categorical]
    return EncodedTable(
        matrix[:, :n_real],
        np.where(np.isnan(codes), -1, codes).astype(np.intp),
        tuple(used[0]),
        tuple(used[1]),
        tuple(len(encoding.categories_by_name[name]) for name in used[1]),
        tuple(encoding.partitions.get(name) for name in used[1]),
    )


def draws_parameters(settings: Settings, encoding: Encoding) -> bool:
    """Return whether Markov chains draw parameters together with trees: if asked to, and by default those of characters."""
    if settings.draw_parameters is None:
        return settings.inference == "mcmc" and bool(encoding.partitions)
    return bool(settings.draw_parameters)


def chooses_scale(templates: Templates, covariance: str | None, noise: float | None) -> bool:
    """Return whether real columns have the default scale, because no parameter determines it."""
    return isinstance(templates.real, str) and noise is None and covariance != "spherical"


class TreeTable(NamedTuple):
    """The encoded table that a tree and its clusters are found in."""

    matrix: FloatArray  # the same without the cells of idle columns
    shortened: FloatArray  # extreme cells are nearer to the others
    levels: IntArray  # of extreme cells, see `shorten_gaps`
    signals: Signals  # of all columns; none is idle if all are in the tree


def find_tree_table(matrix: FloatArray, encoding: Encoding, settings: Settings) -> TreeTable:
    """Return the encoded table that a tree and its clusters are found in.

    If columns have the default scale, extreme cells of real columns are nearer to the others, and columns that are independent
    of all others are left out. Otherwise, and for samples of trees, this is the table itself.
    """
    templates = Templates(settings.real_process, settings.categorical_process)
    n_real = to_encoded_table(encoding, matrix).real.shape[1]
    is_free = settings.inference == "greedy" and chooses_scale(templates, settings.covariance, settings.noise)
    real, levels = shorten_gaps(matrix[:, : n_real if is_free else 0])
    shortened = np.hstack([real, matrix[:, real.shape[1] :]]) if levels.any() else matrix
    signals = column_signals(matrix, n_real)
    if not is_free or templates.categorical is not None or encoding.partitions:
        signals = signals._replace(is_idle=np.zeros_like(signals.is_idle))
    tree_matrix = np.where(signals.is_idle, np.nan, shortened) if signals.is_idle.any() else shortened
    return TreeTable(tree_matrix, shortened, levels, signals)


def find_tails(matrix: FloatArray, encoding: Encoding, settings: Settings) -> Tails | None:
    """Return the maps that predictions move extreme cells with; None if there are none, or columns have a scale that was given.

    Samples with parameters of their own were drawn over the table itself.
    """
    templates = Templates(settings.real_process, settings.categorical_process)
    if draws_parameters(settings, encoding) or not chooses_scale(templates, settings.covariance, settings.noise):
        return None
    return Tails.from_table(to_encoded_table(encoding, matrix).real)


def structure_process(
    matrix: FloatArray, encoded: EncodedTable, templates: Templates, covariance: str | None, noise: float | None
) -> Process:
    """Return the process for trees and clusters: every column has its own variance, part of it noise.

    By default variances are the same share of every column's squared range, see `scale_to_range`. If the noise is given, it is a
    share of the variance of the column's cells. Brownian motion has the variance that makes close rows differ as under the
    stationary process.
    """
    scales_to_range = chooses_scale(templates, covariance, noise)
    share = NOISE if noise is None else noise
    odds = share / (1 - share)
    # Correlations of columns are not fitted.
    covariance = "diagonal" if covariance == "full" else covariance
    states = 0.0 if noise == 0 else SITE_NOISE

    def real(middle: FloatArray, spread: FloatArray) -> Process:
        rest = (1 - share) * (scale_to_range(encoded.real, spread) if scales_to_range else spread)
        if templates.real == "brownian":
            return Brownian(_to_shape(2 * RATE * rest, covariance), odds / (2 * RATE))
        return OrnsteinUhlenbeck(RATE, middle, _to_shape(rest, covariance), odds)

    return _make_process(matrix, encoded, templates, real, SITE_RATE, states)


def prediction_process(
    matrix: FloatArray, encoded: EncodedTable, templates: Templates, covariance: str | None, noise: float | None
) -> Process:
    """Return the process from which draws for predictions start, with parameters for each column.

    Up to `MAX_CORRELATED` stationary real columns have a covariance matrix of their diffusion and another of their noise. Where
    kernels are not compiled, such predictions take minutes: then they need an explicit ``covariance="full"``.
    """
    is_full = covariance == "full" or (covariance is None and are_compiled())
    correlated = is_full and encoded.real.shape[1] <= MAX_CORRELATED and noise is None
    shape = None if covariance == "full" else covariance
    share = NOISE if noise is None else noise
    ratio = share / (1 - share)

    def real(middle: FloatArray, spread: FloatArray) -> Process:
        rest = (1 - share) * spread
        if templates.real == "brownian":
            return Brownian(
                _to_shape(2 * RATE * rest, None if covariance == "full" else covariance),
                share / (1 - share) / (2 * RATE),
            )
        if correlated:
            return OrnsteinUhlenbeck(RATE, middle, np.diag(rest), np.diag(share * spread))
        return OrnsteinUhlenbeck(RATE, middle, _to_shape(rest, shape), ratio)

    # Given noise is held. Categorical columns then have the same noise as in the search for the tree.
    states = FIRST_SITE_NOISE if noise is None else SITE_NOISE if noise else 0.0
    return _make_process(matrix, encoded, templates, real, FIRST_SITE_RATE, np.full(encoded.codes.shape[1], states))


def has_scores(templates: Templates, covariance: str | None, noise: float | None) -> bool:
    """Return whether half of the draws for predictions are over normal scores of the real columns.

    If all columns share one variance, or the noise is given, the units of the columns matter.
    """
    return templates.real == "ornstein-uhlenbeck" and covariance != "spherical" and noise is None


def sampling_process(
    matrix: FloatArray, encoded: EncodedTable, templates: Templates, covariance: str | None, noise: float | None
) -> Process:
    """Return the process from which Markov chains with sampled parameters start: as for predictions, without matrices.

    The summary of the chains is one tree over all rows. With a covariance matrix, its messages would need a complete table.
    """
    covariance = "diagonal" if covariance in (None, "full") else covariance
    return prediction_process(matrix, encoded, templates, covariance, noise)


def _make_process(
    matrix: FloatArray,
    encoded: EncodedTable,
    templates: Templates,
    real: Callable[[FloatArray, FloatArray], Process],
    site_rate: float,
    site_noise: float | FloatArray,
) -> Process:
    """Return a process for all columns: real ones by their means and variances, and categorical ones."""
    n_real, n_categorical = encoded.real.shape[1], encoded.codes.shape[1]
    if n_real + n_categorical == 0:
        return real(np.zeros(1), np.ones(1))
    parts: list[tuple[Process, NDArray[np.intp]]] = []
    if n_real:
        cells = matrix[:, :n_real]
        part = real(*column_moments(cells)) if isinstance(templates.real, str) else templates.real.resolve(cells)
        parts.append((part, np.arange(n_real)))
    codes = matrix[:, n_real:]
    ordinary = [d for d, partition in enumerate(encoded.partitions) if partition is None]
    if ordinary:
        n_states = [encoded.n_states[d] for d in ordinary]
        template = templates.categorical
        if template is None:
            shares = [smoothed_shares(codes[:, d], k) for d, k in zip(ordinary, n_states, strict=True)]
            noise = site_noise if np.ndim(site_noise) == 0 else np.asarray(site_noise)[ordinary]
            part = Multinomial(np.full(len(ordinary), site_rate), shares, noise)
        else:
            if not template.takes_state_sets and np.any(codes[:, ordinary] < 0):
                column = encoded.categorical_names[ordinary[int(np.argmax((codes[:, ordinary] < 0).any(axis=0)))]]
                raise InputError(
                    f"Column {quote(column)} has a cell that is one of several categories, which "
                    f"{type(template).__name__} does not take: use Multinomial, or mark such cells as missing."
                )
            part = with_shares(template, codes[:, ordinary], n_states).resolve(codes[:, ordinary])
        parts.append((part, n_real + np.array(ordinary)))
    for part, columns in zip(templates.characters, partition_columns(encoded).values(), strict=True):
        parts.append((part, n_real + np.array(columns)))
    return parts[0][0] if len(parts) == 1 else Mixed(*parts)


def _to_shape(variances: FloatArray, covariance: str | None) -> FloatArray:
    if covariance == "spherical":
        return np.asarray(variances.mean())
    return np.diag(variances) if covariance == "full" else variances


def mean_process(processes: Sequence[Process]) -> Process:
    """Return a process with the means of the parameters of several processes."""
    if len(processes) == 1:
        return processes[0]
    return processes[0].with_parameter_values(np.mean([process.parameter_values() for process in processes], axis=0))


def means_of_scored(
    process: Process, scores: NormalScores, encoded: EncodedTable, encoding: Encoding
) -> dict[str, float]:
    """Return the value of each real column whose normal score is the mean under a process for the scores."""
    scales, means = _scales_by_name(encoding), {}
    described = parameters_by_name(process, encoded, encoding)
    for name, marginal in zip(encoded.real_names, scores.marginals, strict=True):
        score = scales[name].encode(np.array([described[name]["mean"]]))  # it was decoded as if it were a value
        means[name] = float(scales[name].decode(marginal.invert(score))[0])
    return means


def _scales_by_name(encoding: Encoding) -> dict[str, ColumnScale]:
    real = (n for n, k in zip(encoding.column_names, encoding.kinds, strict=True) if k == "real")
    return dict(zip(real, encoding.column_scales, strict=True))


def parameters_by_name(process: Process, encoded: EncodedTable, encoding: Encoding) -> dict[str, dict[str, Any]]:
    """Return the parameters of every column in use, by name and in the column's units; see `Process.describe_columns`."""
    scales = _scales_by_name(encoding)
    columns: dict[str, ColumnScale | Sequence[Category]] = {name: scales[name] for name in encoded.real_names}
    columns |= {name: encoding.categories_by_name[name] for name in encoded.categorical_names}
    return dict(zip(columns, process.describe_columns(list(columns.values())), strict=True))
