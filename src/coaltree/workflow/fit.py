"""Fit a model: encode a table, choose a process, search for the tree or sample trees, and cut flat clusters."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._progress import Progress
from .._random import as_generator
from ..errors import InputWarning
from ..inference.averaging import average_trees
from ..inference.executors import open_client
from ..inference.greedy import GreedyResult, explain, greedy
from ..inference.mcmc import mcmc
from ..inference.preparation import (
    MAX_CELLS,
    arrange,
    fill_from_neighbors,
    round_cells,
    sort_rows,
)
from ..inference.refine import refine
from ..inference.results import MCMCResult, SMCResult
from ..inference.signals import Signals
from ..inference.smc import smc
from ..process.base import MAX_EXACT_ROWS, Process
from ..table.character_columns import (
    CharacterTable,
    declare_characters,
    has_characters,
    put_absence_first,
    spell_characters,
)
from ..table.columns import Table, find_constant, missing_cells
from ..table.encoding import EncodedTable, Encoding, describe, encode, fit_encoding
from ..table.labels import count, listing
from ..table.partition_file import read_partitions
from ..tree.coalescent import spread_heights
from ..tree.edit import renumber_leaves
from ..tree.sample import TreeSample
from .model import FittedModel, FloatArray, IntArray
from .processes import (
    Templates,
    chooses_scale,
    draws_parameters,
    find_tree_table,
    fit_characters,
    sampling_process,
    structure_process,
    to_matrix,
)
from .settings import CHARACTER_PARAMETERS, ClusterSettings, Settings, check_settings, refuse_resolution

MAX_SHOWN_SHARE = 0.999  # largest share before the end, because the number of passes is not known


class Run(NamedTuple):
    """One fit: its settings, processes of the columns, row names, progress reports, cluster and checkpoint."""

    settings: Settings
    templates: Templates
    draw_parameters: bool  # together with the trees of Markov chains
    row_names: Sequence[str] | None
    progress: Progress | None
    client: Any  # an open client of Dask, or None
    checkpoint: Path | None

    def report(self, share: float, words: str) -> None:
        """Report the share of the work that is done."""
        if self.progress:
            self.progress(min(share, MAX_SHOWN_SHARE), words)


def fit_model(
    table: Table, settings: Settings, progress: Progress | None = None, checkpoint: Path | None = None
) -> FittedModel:
    """Fit a tree, or a sample of trees, to a table.

    Parameters
    ----------
    table : Table
        As `coaltree.table.columns.read_columns` returns it.
    settings : Settings
        `ClusterSettings` for flat clusters.
    progress : callable, optional
        Called with the share of the work that is done and a few words.
    checkpoint : Path, optional
        File that keeps the last and longest search, so that it can be resumed.

    Returns
    -------
    FittedModel

    Raises
    ------
    InputError
        If a parameter is not allowed.
    """
    check_settings(settings, table.n_rows)
    # Without a random state a greedy fit is the same each time, and so are its predictions.
    seed = 0 if settings.random_state is None else int(as_generator(settings.random_state).integers(2**63))
    characters, encoding = prepare_table(table, settings)
    table = characters.table
    encoded = encode(table, encoding)
    matrix = to_matrix(encoded)
    own_table = find_tree_table(matrix, encoding, settings)
    tree_matrix, shortened, levels, signals = own_table
    tree_table = replace(encoded, real=tree_matrix[:, : encoded.real.shape[1]])
    templates = Templates(settings.real_process, settings.categorical_process)
    templates.check_shared(encoded, encoding)
    templates.check_constant([name for name, labels in encoding.categories_by_name.items() if len(labels) == 1])
    templates = templates._replace(characters=fit_characters(encoded, characters.partitions, settings))
    runs_chains = settings.inference == "mcmc" and table.n_rows > 1  # one row has one tree
    draw_parameters = draws_parameters(settings, encoding)
    if draw_parameters and isinstance(settings, ClusterSettings):
        refuse_resolution(settings)
    result: GreedyResult | SMCResult | MCMCResult
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)  # the remarks below say the same
        with open_client(settings.client) as client:
            run = Run(settings, templates, draw_parameters, table.row_names, progress, client, checkpoint)
            process = _make_process(shortened, tree_table, run, samples=runs_chains and draw_parameters)
            process.check_ascertainment(matrix, [*encoded.real_names, *encoded.categorical_names])
            if runs_chains:
                result = _run_mcmc(process, matrix, run)
            elif settings.inference == "smc":
                result = _run_smc(process, matrix, run)
            else:
                result = _run_greedy(process, tree_matrix, tree_table, run)
    if progress:
        progress(1.0, "")
    model = FittedModel(
        settings=replace(settings, client=None),  # a connection cannot be copied or stored
        encoding=encoding,
        process=result.process,
        matrix=matrix,
        result=summarize(result, tree_matrix, result.process, settings),
        sample=result if isinstance(result, TreeSample) else None,
        log_evidence=result.log_evidence if isinstance(result, SMCResult) else None,
        search=result.search if isinstance(result, GreedyResult) else None,
        neighbor_recall=result.neighbor_recall if isinstance(result, GreedyResult) else None,
        remarks=[
            *characters.remarks,
            *describe(table, encoding, _find_moved_rows(levels, encoded)),
            *describe_idle([*encoded.real_names, *encoded.categorical_names], signals),
            *(result.process.remarks(result.tree, tree_matrix) if isinstance(result, GreedyResult) else result.remarks),
        ],
        constants=[find_constant(column) for column in table.columns],
        incomplete_columns=tuple(j for j, column in enumerate(table.columns) if missing_cells(column).any()),
        id_column=table.id_column,
        feature_names=encoding.column_names,
        prediction_seed=seed,
    )
    model.tree_table = own_table
    if isinstance(settings, ClusterSettings):
        model.labels = model.cut(settings)
        model.remarks += model.describe_small_groups(settings, model.labels)
    return model


def summarize(
    result: GreedyResult | TreeSample, matrix: FloatArray, process: Process, settings: Settings
) -> GreedyResult:
    """Return the tree of greedy inference, or the summary of a sample, with its log joint and log ratios."""
    if isinstance(result, GreedyResult):
        return result
    return explain(result.summarize(settings.summary, settings.summary_heights), matrix, process)


def share_progress(progress: Progress | None, low: float, high: float) -> Progress | None:
    """Return the progress of a part of the work, from one share of it to another."""
    return progress and (lambda share, words: progress(low + (high - low) * share, words))


def describe_idle(names: Sequence[str], signals: Signals) -> list[str]:
    """Return a remark about columns that are left out of the tree; none if there are none."""
    idle = [name for name, is_idle in zip(names, signals.is_idle.tolist(), strict=False) if is_idle]
    if not idle:
        return []
    return [
        f"{count(len(idle), 'column depends', 'columns depend')} on no other column and so "
        f"{'says' if len(idle) == 1 else 'say'} nothing about groups of rows: {listing(idle)}. The tree was found without "
        f"{'it' if len(idle) == 1 else 'them'}."
    ]


def _find_moved_rows(levels: IntArray, encoded: EncodedTable) -> dict[str, IntArray]:
    """Return rows that are extreme in one or two columns, for each column with extreme cells.

    Of rows that are extreme in more columns, no single cell is to blame.
    """
    is_named = np.count_nonzero(levels, axis=1) <= 2
    columns = np.flatnonzero(levels.any(axis=0)).tolist()
    return {encoded.real_names[j]: np.flatnonzero(is_named & (levels[:, j] != 0)) for j in columns}


def read_characters_as_asked(table: Table, settings: Settings) -> Table:
    """Return the table with columns of states as characters, if it has no characters and a parameter for them is given."""
    given = [name for name in CHARACTER_PARAMETERS if getattr(settings, name) is not None]
    return declare_characters(table, given[0]) if given and not has_characters(table) else table


def prepare_table(table: Table, settings: Settings) -> tuple[CharacterTable, Encoding]:
    """Return the table with the alphabets of its characters and their partitions, and its encoding."""
    table = read_characters_as_asked(table, settings)
    partitions = settings.partitions
    if isinstance(partitions, str | PathLike):
        partitions = read_partitions(partitions, [column.name for column in table.columns])
    characters = spell_characters(table, partitions, settings.ascertainment, settings.model == "f81")
    if settings.categorical_process is not None:
        characters = characters._replace(partitions=[])
        if settings.categorical_process.ascertainment == "present":
            characters = characters._replace(table=put_absence_first(characters.table, characters.remarks))
    partition_of = {name: partition.name for partition in characters.partitions for name in partition.columns}
    return characters, fit_encoding(characters.table, settings.standardize, partition_of, characters.unused)


def _make_process(matrix: FloatArray, encoded: EncodedTable, run: Run, samples: bool = False) -> Process:
    """Return the process for the search, or the one from which chains start if they sample its parameters."""
    make_process = sampling_process if samples else structure_process
    settings = run.settings
    noise = None if settings.noise is None else float(settings.noise)  # in double precision, as files keep it
    return make_process(matrix, encoded, run.templates, settings.covariance, noise)


def _run_greedy(process: Process, matrix: FloatArray, encoded: EncodedTable, run: Run) -> GreedyResult:
    """Search for a tree, and refine it or average it over replicates of the noise."""
    settings = run.settings
    process = process.resolve(matrix)
    used = ~np.isnan(matrix).all(axis=0)
    is_part = used.any() and not used.all()  # columns are left out
    table = _take_columns(encoded, np.flatnonzero(used), matrix[:, used]) if is_part else encoded
    cells = matrix[:, used] if is_part else matrix
    rows, sorted_matrix, search_process = _sort_table(
        _make_process(cells, table, run).resolve(cells) if is_part else process, cells, table, run
    )
    n_real = table.real.shape[1]
    has_columns = not np.isnan(sorted_matrix).all()  # otherwise all rows merge at height 0
    should_average = settings.rule == "rate1" and not settings.refine and has_columns
    search_matrix = sorted_matrix
    if should_average and settings.noise != 0 and len(matrix) <= MAX_EXACT_ROWS:
        search_matrix = fill_from_neighbors(sorted_matrix, n_real)
    result = greedy(
        search_matrix,
        search_process,
        settings.rule,
        settings.search,
        n_jobs=settings.n_jobs,
        client=run.client,
        checkpoint=run.checkpoint,
        progress=lambda share, live: run.report(share, f"{live:,} lineages"),
    )
    tree = result.tree
    if settings.refine:
        tree = refine(
            tree,
            sorted_matrix,
            result.process,
            progress=lambda moved, log_joint: run.report(1.0, f"refining, log joint {log_joint:.1f}"),
        ).tree
    elif should_average:
        tree = average_trees(
            tree,
            search_matrix,
            result.process,
            rescale=chooses_scale(run.templates, settings.covariance, settings.noise),
            filled=search_matrix is not sorted_matrix,
            n_jobs=settings.n_jobs,
        )
        if any(
            part.noisy for part in result.process.columns(sorted_matrix[:1])
        ):  # which puts many merges at one height
            tree = spread_heights(tree)
    tree = renumber_leaves(tree, rows, run.row_names)
    return replace(explain(tree, matrix, process), search=result.search, neighbor_recall=result.neighbor_recall)


def _sort_table(
    process: Process, matrix: FloatArray, encoded: EncodedTable, run: Run
) -> tuple[IntArray, FloatArray, Process]:
    """Return rows in an order set by their content, the table in that order, and its process.

    So ties do not depend on the order of the table.
    """
    n_real, settings = encoded.real.shape[1], run.settings
    n_columns = n_real + encoded.codes.shape[1]
    # The search of larger tables sorts the rows itself, and is approximate.
    if n_columns == 0 or matrix.size > MAX_CELLS or len(matrix) > process.max_exact_rows(matrix):
        return np.arange(len(matrix)), matrix, process
    rounded = round_cells(matrix, n_real)
    if isinstance(run.templates.real, str) and run.templates.categorical is None and not run.templates.characters:
        order = arrange(rounded, encoded.n_states)
        # Without noise, heights may be in proportion to the smallest differences.
        sorted_matrix = order.apply(matrix if settings.noise == 0 else rounded)
        sorted_process = _make_process(sorted_matrix, _take_columns(encoded, order.columns, sorted_matrix), run)
        return order.rows, sorted_matrix, sorted_process
    rows = sort_rows(rounded)  # the columns stay: the user's process may have parameters for each of them
    return rows, matrix[rows], process


def _take_columns(encoded: EncodedTable, columns: IntArray, cells: FloatArray) -> EncodedTable:
    """Return an encoded table with some of its columns, real ones first, and these cells."""
    n_real = encoded.real.shape[1]
    real, categorical = columns[columns < n_real].tolist(), (columns[columns >= n_real] - n_real).tolist()
    return EncodedTable(
        cells[:, : len(real)],
        np.nan_to_num(cells[:, len(real) :], nan=-1).astype(np.intp),
        tuple(encoded.real_names[j] for j in real),
        tuple(encoded.categorical_names[j] for j in categorical),
        tuple(encoded.n_states[j] for j in categorical),
        tuple(encoded.partitions[j] for j in categorical),
    )


def _run_smc(process: Process, matrix: FloatArray, run: Run) -> SMCResult:
    """Sample trees by sequential Monte Carlo."""
    settings = run.settings
    return smc(
        matrix,
        process,
        settings.proposal,
        settings.n_particles,
        n_runs=settings.n_runs,
        leaf_names=run.row_names,
        n_jobs=settings.n_jobs,
        client=run.client,
        random_state=settings.random_state,
        progress=lambda share, ess, evidence: run.report(share, f"ESS {ess:.0f}, log evidence {evidence:.1f}"),
    )


def _run_mcmc(process: Process, matrix: FloatArray, run: Run) -> MCMCResult:
    """Sample trees by Markov chains, together with parameters if the settings say so."""
    settings = run.settings

    def report(share: float, r_hat: float, effective: float) -> None:
        known = not math.isnan(r_hat + effective)
        run.report(share, f"R-hat {r_hat:.2f}, {effective:,.0f} effective samples" if known else "first samples")

    return mcmc(
        matrix,
        process,
        settings.n_samples,
        settings.n_chains,
        n_heated=settings.n_heated,
        max_seconds=settings.max_seconds,
        draw_parameters=run.draw_parameters,
        hold_noise=settings.noise is not None,
        leaf_names=run.row_names,
        n_jobs=settings.n_jobs,
        client=run.client,
        random_state=settings.random_state,
        checkpoint=run.checkpoint,
        progress=report,
    )
