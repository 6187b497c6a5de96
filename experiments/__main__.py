"""``python -m experiments NAME ...``: run experiments, or write what they found into docs/experiments.md."""

from __future__ import annotations

import argparse
import importlib
import signal
import sys
import time
from pathlib import Path

from coaltree.errors import InputError, MissingDependencyError

from .outcome import RESULTS, Setting, as_read, csv_texts, texts_in, write

EXPERIMENTS = ("figure1", "figure2", "table1", "wals_tree", "wals_restoration", "nips")
QUICK_RESULTS = Path("build") / "experiments"  # numbers of a quick run mean nothing, and are not committed


def main(arguments: list[str] | None = None) -> int:
    """Do what the command line asks for."""
    options = _options(arguments)
    for ended in (signal.SIGINT, signal.SIGTERM):  # what is done by then is kept
        signal.signal(ended, signal.default_int_handler)  # shells have jobs in the background ignore SIGINT
    folder = options.output or (QUICK_RESULTS if options.quick else RESULTS)
    try:
        for name in EXPERIMENTS:
            if name in options.names or "all" in options.names:
                begun = time.monotonic()
                files = run(name, folder, Setting(options.quick, options.jobs, options.repeats), redraw=options.redraw)
                print(f"{name}: {time.monotonic() - begun:.0f} s, {', '.join(files)} in {folder}")
        if "page" in options.names:
            from .page import write_page

            write_page(folder)
    except (InputError, MissingDependencyError) as error:
        print(f"experiments: {error}", file=sys.stderr)
        return 1
    return 0


def run(name: str, folder: Path, setting: Setting, *, redraw: bool = False) -> list[str]:
    """Run an experiment, or only draw its figures again, and return the names of the files that it wrote."""
    experiment = importlib.import_module(f".{name}", __package__)
    texts = texts_in(folder, experiment.TABLES) if redraw else csv_texts(experiment.run(setting))
    return write(texts, experiment.draw(as_read(texts)), folder)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m experiments", description="Run the experiments of the paper anew.")
    parser.add_argument(
        "names",
        nargs="+",
        choices=[*EXPERIMENTS, "all", "page"],
        metavar="NAME",
        help=f"{', '.join(EXPERIMENTS)}; all of them; or page, which writes what was found into docs/experiments.md",
    )
    parser.add_argument("--quick", action="store_true", help="few repeats of small sizes, to see that everything runs")
    parser.add_argument("--redraw", action="store_true", help="only draw the figures, from tables that are there")
    parser.add_argument("--repeats", type=int, help="fewer repeats than usual; each csv says how many there were")
    parser.add_argument("--output", type=Path, help="folder for results; experiments/results by default")
    parser.add_argument("--jobs", type=int, default=2, help="processes; 2 by default, and no result depends on it")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
