"""The command ``simulate``: draw a tree from the coalescent, and a table along it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from .._parameters import Integer, Interval, RealProcess, TreeFormat, check_option
from .._validation import check_memory
from ..errors import InputError
from ..table.labels import count
from .app import Notes, app, report_errors
from .io import WRITABLE_KINDS, check_output, find_tree_kind, print_json, to_records, write_results
from .options import (
    MODEL,
    OUTPUT,
    STANDARD_STREAM,
    TABLE,
    CsvOption,
    DebugOption,
    JsonOption,
    QuietOption,
    VerboseOption,
    check_one_writer,
    parse_path,
)

if TYPE_CHECKING:
    import numpy as np

    from ..tree.tree import Tree

_CSV_ENDINGS = (".csv", ".txt", "")
MAX_RATE = 1e6


@app.command(epilog="Example: coaltree simulate 100 -o sim.csv --tree sim.nwk --categorical 3 --missing 0.1")
def simulate(
    n_rows: Annotated[int, typer.Argument(metavar="ROWS", help="Number of rows, the leaves of the tree.")],
    output: CsvOption = None,
    tree_file: Annotated[
        Path | None,
        typer.Option(
            "--tree",
            metavar="TREE",
            help="Also write the tree: .nwk, .nex, .csv or .npy (linkage) or .json.",
            rich_help_panel=OUTPUT,
            parser=parse_path,
        ),
    ] = None,
    tree_kind: Annotated[
        TreeFormat | None,
        typer.Option(
            "--tree-format",
            metavar="KIND",
            help="newick, nexus, linkage, npy or json. By default from the file extension.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    n_real: Annotated[
        int, typer.Option("--real", metavar="N", help="Number of real columns.", rich_help_panel=TABLE)
    ] = 5,
    n_categorical: Annotated[
        int, typer.Option("--categorical", metavar="N", help="Number of categorical columns.", rich_help_panel=TABLE)
    ] = 0,
    n_states: Annotated[
        int,
        typer.Option(
            "--states", metavar="N", help="Number of categories per categorical column.", rich_help_panel=TABLE
        ),
    ] = 3,
    missing: Annotated[
        float, typer.Option(metavar="SHARE", help="Share of cells to remove at random.", rich_help_panel=TABLE)
    ] = 0.0,
    real_process: Annotated[
        RealProcess,
        typer.Option(
            metavar="HOW",
            help="Process of real columns: ornstein-uhlenbeck, with variance 1, or brownian.",
            rich_help_panel=MODEL,
        ),
    ] = "ornstein-uhlenbeck",
    rate: Annotated[
        float,
        typer.Option(
            metavar="X",
            help="Rate at which real columns return to their mean and categories mutate; two lineages merge at rate 1. For "
            "brownian, the variance per unit of time.",
            rich_help_panel=MODEL,
        ),
    ] = 0.5,
    noise: Annotated[
        float,
        typer.Option(
            metavar="X",
            help="Noise variance of real cells, as a share of the column's variance.",
            rich_help_panel=MODEL,
        ),
    ] = 0.1,
    seed: Annotated[int, typer.Option(metavar="N", help="Random seed.", rich_help_panel=MODEL)] = 0,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    debug: DebugOption = False,
) -> None:
    """Simulate a tree from Kingman's coalescent and a table along it.

    The csv has a column of row names, real columns x1, x2, ... and categorical columns c1, c2, ... with the equally frequent
    categories s1, s2, ... The same seed gives the same table.
    """
    with report_errors(debug):
        notes = Notes(quiet, verbose)
        recipe = _Simulation(n_rows, n_real, n_categorical, n_states, missing, real_process, rate, noise, seed)
        recipe.check()
        tree_written_as = _check_files(output, tree_file, tree_kind, as_json)
        with notes.time_step("drawing"):
            tree, columns = recipe.draw()
        from ..persist.result_files import csv_text
        from ..persist.tree_files import tree_bytes

        results: dict[Path | None, str | bytes] = {}
        if tree_file is not None:
            results[tree_file] = tree_bytes(tree, tree_written_as)
        if output is not None or not as_json:
            results[output] = csv_text(columns)
        write_results(results)
        n_missing = sum(column.count(None) for column in columns.values())
        if as_json:
            facts = {
                "n_missing": n_missing,
                "tree_height": float(tree.heights[-1]),
                "newick": tree.to_newick(),
                "rows": to_records(columns) if output is None else None,
                "output": None if output is None else str(output),
                "tree": None if tree_file is None else str(tree_file),
            }
            print_json(recipe._asdict() | facts)
        notes.say(
            f"{count(n_rows, 'row')}, {n_real} real and {n_categorical} categorical columns, "
            f"{count(n_missing, 'cell')} missing; tree of height {tree.heights[-1]:.6g}"
        )


def _check_files(output: Path | None, tree_file: Path | None, tree_kind: TreeFormat | None, as_json: bool) -> str:
    """Refuse files that cannot be written, and return the format of the tree file, if there is one."""
    check_one_writer(as_json, {"--output -": output, "--tree -": tree_file})
    if tree_file == STANDARD_STREAM and output is None:
        raise InputError("--tree is -, where the table goes: name a file with --output, or with --tree.")
    if output is not None and output == tree_file:
        raise InputError(f"--output and --tree are both {output}; they are two files.")
    if output is not None and output.suffix.lower() not in _CSV_ENDINGS:
        raise InputError(f"{output.name} is to hold a csv table: choose a name that ends with .csv.")
    for target in (output, tree_file):
        check_output(target, {})
    return "" if tree_file is None else find_tree_kind(tree_file, tree_kind, "--tree-format", WRITABLE_KINDS)


class _Simulation(NamedTuple):
    """The parameters of a simulation."""

    n_rows: int
    n_real: int
    n_categorical: int
    n_states: int
    missing: float
    real_process: RealProcess
    rate: float
    noise: float
    seed: int

    def check(self) -> None:
        """Refuse numbers out of range."""
        for option, value, constraint in (
            ("ROWS", self.n_rows, Integer(1)),
            ("--real", self.n_real, Integer(0)),
            ("--categorical", self.n_categorical, Integer(0)),
            ("--states", self.n_states, Integer(2)),
            ("--seed", self.seed, Integer(0)),
            ("--missing", self.missing, Interval(0, 1, open_high=True)),
            ("--rate", self.rate, Interval(0, MAX_RATE, open_low=True)),
            ("--noise", self.noise, Interval(0, math.inf, open_high=True)),
        ):
            check_option(option, value, constraint)
        if self.n_real + self.n_categorical == 0:
            raise InputError("--real and --categorical are both 0; a table has at least one column.")

    def draw(self) -> tuple[Tree, dict[str, list[Any]]]:
        """Draw a tree, and the columns of a table along it."""
        import numpy as np

        from ..process.brownian import Brownian
        from ..process.multinomial import Multinomial
        from ..process.ornstein_uhlenbeck import OrnsteinUhlenbeck
        from ..tree.coalescent import simulate_tree

        n_cells = self.n_rows * (
            4 + self.n_real + self.n_categorical
        )  # names and a tree take as much memory as four columns
        check_memory(50.0 * n_cells, f"A table of {self.n_rows:,} rows", "use fewer rows or columns")
        rng = np.random.default_rng(self.seed)
        tree = simulate_tree(self.n_rows, rng, leaf_names=[f"r{i}" for i in range(1, self.n_rows + 1)])
        columns: dict[str, list[Any]] = {"name": list(tree.leaf_names)}
        if self.n_real:
            brownian = self.real_process == "brownian"
            process = Brownian(self.rate, self.noise) if brownian else OrnsteinUhlenbeck(self.rate, noise=self.noise)
            cells = process.simulate(tree, rng, n_columns=self.n_real)
            columns |= {f"x{j + 1}": self._remove_cells(cells[:, j].tolist(), rng) for j in range(self.n_real)}
        if self.n_categorical:
            shares = np.full(self.n_states, 1 / self.n_states)
            codes = Multinomial(self.rate, [shares] * self.n_categorical).simulate(tree, rng).astype(np.intp)
            for j in range(self.n_categorical):
                states = [f"s{code + 1}" for code in codes[:, j].tolist()]
                columns[f"c{j + 1}"] = self._remove_cells(states, rng)
        return tree, columns

    def _remove_cells(self, cells: list[Any], rng: np.random.Generator) -> list[Any]:
        erased = rng.random(len(cells)) < self.missing
        return [None if gone else cell for cell, gone in zip(cells, erased.tolist(), strict=True)]
