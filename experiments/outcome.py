"""What an experiment is asked for, and its tables: csv files, from which figures are drawn and the page is made."""

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
Found: TypeAlias = Mapping[str, Sequence[Row]]  # tables by name, as an experiment returns them
Tables: TypeAlias = Mapping[str, Sequence[Mapping[str, str]]]  # the same, as they are read from files
Figures: TypeAlias = "Mapping[str, Figure]"

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Setting:
    """How an experiment is run."""

    quick: bool = False
    jobs: int = 2
    repeats: int | None = None  # fewer than there usually are
    interrupted: Event = field(default_factory=Event)  # what is done by then counts

    def at_most(self, repeats: int, quick: int) -> int:
        """Return how many repeats there are to be, of so many that there usually are."""
        return quick if self.quick else repeats if self.repeats is None else min(self.repeats, repeats)


class Estimate(NamedTuple):
    """A mean with its standard error, which one number alone does not have."""

    mean: float
    error: float
    repeats: int

    @classmethod
    def of(cls, values: Iterable[float]) -> Estimate:
        """Return the mean of independent repeats."""
        given = np.array(list(values), dtype=np.float64)
        error = float(np.std(given, ddof=1) / math.sqrt(len(given))) if len(given) > 1 else math.nan
        return cls(float(given.mean()), error, len(given))

    def __str__(self) -> str:
        return f"{self.mean:.3f}" if math.isnan(self.error) else f"{self.mean:.3f} ± {self.error:.3f}"


def csv_texts(found: Found) -> dict[str, str]:
    """Return tables as the text of csv files, numbers with six digits."""
    return {name: _csv(rows) for name, rows in found.items()}


def as_read(texts: Mapping[str, str]) -> Tables:
    """Return tables as they are read from the text of csv files."""
    return {name: list(csv.DictReader(io.StringIO(text))) for name, text in texts.items()}


def texts_in(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """Return the text of csv files that were written before."""
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


def numbers_by(
    rows: Iterable[Mapping[str, str]], keys: Sequence[str], column: str
) -> dict[tuple[str, ...], list[float]]:
    """Return the numbers of a column, those together that agree in the key columns, in order of appearance."""
    found: dict[tuple[str, ...], list[float]] = {}
    for row in rows:
        found.setdefault(tuple(row[key] for key in keys), []).append(float(row[column]))
    return found


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
