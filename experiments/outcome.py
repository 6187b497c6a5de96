"""The settings of an experiment and its result tables: csv files, from which figures and the page are made."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from coaltree._atomic import OutputFolder
from coaltree.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Row: TypeAlias = Mapping[str, object]
ResultTables: TypeAlias = Mapping[str, Sequence[Row]]  # tables by name, as an experiment returns them
Tables: TypeAlias = Mapping[str, Sequence[Mapping[str, str]]]  # the same, as they are read from files
Figures: TypeAlias = "Mapping[str, Figure]"

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Setting:
    """How an experiment is run."""

    quick: bool = False
    jobs: int = 2
    repeats: int | None = None  # overrides the default number of repeats
    interrupted: Event = field(default_factory=Event)  # set by Ctrl-C; finished repeats are used

    def n_repeats(self, repeats: int, quick: int) -> int:
        """Return the number of repeats, at most the default."""
        return quick if self.quick else repeats if self.repeats is None else min(self.repeats, repeats)


class Estimate(NamedTuple):
    """A mean with its standard error, which is NaN for a single number."""

    mean: float
    error: float
    repeats: int

    @classmethod
    def from_values(cls, values: Iterable[float]) -> Estimate:
        """Return the mean of independent repeats."""
        array = np.array(list(values), dtype=np.float64)
        error = float(np.std(array, ddof=1) / math.sqrt(len(array))) if len(array) > 1 else math.nan
        return cls(float(array.mean()), error, len(array))

    def __str__(self) -> str:
        return f"{self.mean:.3f}" if math.isnan(self.error) else f"{self.mean:.3f} ± {self.error:.3f}"


def format_tables(tables: ResultTables) -> dict[str, str]:
    """Return tables as the text of csv files, numbers with six digits."""
    return {name: _csv(rows) for name, rows in tables.items()}


def parse_tables(texts: Mapping[str, str]) -> Tables:
    """Parse tables from the text of csv files."""
    return {name: list(csv.DictReader(io.StringIO(text))) for name, text in texts.items()}


def read_texts(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """Read the text of csv files of an earlier run."""
    try:
        return {name: (folder / f"{name}.csv").read_text(encoding="utf-8") for name in names}
    except OSError as error:
        raise InputError(f"{error.filename} cannot be read: run the experiment first, into this folder.") from None


def write(texts: Mapping[str, str], figures: Figures, folder: Path) -> list[str]:
    """Write all tables and figures of an experiment, or none, and return the names of the files."""
    with OutputFolder(folder) as output:
        for name, text in texts.items():
            output.add(f"{name}.csv", text)
        for name, figure in figures.items():
            output.add(f"{name}.png", _png(figure))
        return output.names


def group_numbers(
    rows: Iterable[Mapping[str, str]], keys: Sequence[str], column: str
) -> dict[tuple[str, ...], list[float]]:
    """Return the numbers of a column, grouped by the key columns, in order of appearance."""
    groups: dict[tuple[str, ...], list[float]] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(float(row[column]))
    return groups


def _csv(rows: Sequence[Row]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
    return text.getvalue()


def _cell(value: object) -> object:
    return f"{value:.6g}" if isinstance(value, (float, np.floating)) else value


def _png(figure: Figure) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110, metadata={"Software": None})
    return buffer.getvalue()
