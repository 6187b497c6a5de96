"""Tables with hostile names and cells, whose results go to a terminal: nothing of them may control it."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

import numpy as np

from coaltree.cli import terminal

from .outcome import Outcome, check, classify, run_command

Rng = np.random.Generator

PARTS = (
    "\x1b]0;owned\x07", "\x1b[31m", "\x1b[2J", "\x07", "\x9b2J", "\u202e", "\u2066", "\u200f", "\u2028", "\x7f", "\x08",
    "[red]", "[/]", "[bold", "{0}", "%s", "a", "\u00e9", "\U000e0041", "\ufeff",
)  # fmt: skip
# What a progress bar writes itself.
_PROGRESS_BAR = re.compile(r"\x1b\[[\d;?]*[A-Za-z]|\r")
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\U000e0000-\U000e007f]")


def case(rng: Rng, folder: Path) -> Outcome:
    """Run a command on a terminal, on a table full of control characters."""

    def name(stem: object) -> str:
        return "".join(str(part) for part in rng.choice(PARTS, size=int(rng.integers(1, 4)))) + str(stem)

    path = folder / (name("t").replace("/", "") + ".csv")
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", name("x"), name("y"), name("c")])
        kinds = [name(k) for k in range(3)]
        for i in range(14):
            writer.writerow(
                [name(i), i % 5 + 0.5, "" if i == 2 else i * i % 7, kinds[i % 3] if rng.random() < 0.9 else name(i)]
            )
    outdir = folder / name("out").replace("/", "")
    choices: tuple[list[Any], ...] = (
        ["fit", path, "--dry-run"], ["fit", path, "--dry-run", "--json"], ["fit", path, "-o", outdir, "-v"],
        ["fit", path, "-o", outdir, "--json"], ["impute", path, "-o", "-"], ["fit", name("absent"), "-o", "o"],
        ["fit", path, "-o", "o", "--drop", name("column")], ["fit", path, "--categorical", name("k"), "--dry-run"],
        ["fit", path, "--" + name("option")], ["cut", path], ["score", path, path],
    )  # fmt: skip
    run = run_command(choices[int(rng.integers(len(choices)))], terminal=True)
    shown = run.out.decode() + _PROGRESS_BAR.sub("", run.err)
    found = _CONTROLS.search(shown)
    check(found is None, f"{found and shown[max(0, found.start() - 60) : found.end() + 20]!r}")
    check(terminal.escape_controls(shown) == shown, "not escaped")
    return classify(run)
