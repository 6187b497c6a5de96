"""What the command line refuses before any work is done."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

from ..errors import InputError
from .options import STANDARD_STREAM, Inference


def column_names(given: Sequence[str] | None, option: str) -> list[str]:
    """Split what was given at commas; a name that has one stands in double quotes."""
    names = [name.strip() for line in csv.reader(given or [], skipinitialspace=True) for name in line]
    if "" in names or "" in (given or []):
        raise InputError(f"{option} was given an empty column name; name columns as in the table's header.")
    return list(dict.fromkeys(names))


def id_setting(id_column: str | None, no_id: bool) -> str | None:
    """Return the column of row names as `read_file` takes it."""
    if no_id and id_column is not None:
        raise InputError("--no-id and --id-column were both given; give one of them, or neither.")
    if id_column == "":
        raise InputError("--id-column was given an empty column name; give --no-id to take no column as row names.")
    return "" if no_id else id_column


def given_only(options: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out what was not given, so that the estimators' own defaults hold."""
    return {
        name: value.value if isinstance(value, StrEnum) else value
        for name, value in options.items()
        if value is not None
    }


def check_whole(option: str, value: int | None, least: int) -> None:
    """Refuse a number that is too small."""
    if value is not None and value < least:
        raise InputError(f"{option} is {value}; it must be a whole number of at least {least}.")


def check_number(option: str, value: float | None) -> None:
    """Refuse a number that is negative or not finite."""
    if value is not None and not (math.isfinite(value) and value >= 0):
        raise InputError(f"{option} is {value:g}; it must be a number of at least 0.")


def check_jobs(n_jobs: int | None) -> None:
    """Refuse no threads."""
    if n_jobs == 0:
        raise InputError("--n-jobs is 0; it must be a number of threads, or -1 for all processors.")


def check_dask(address: str | None) -> None:
    """Refuse what names no cluster."""
    from ..inference.addresses import names_a_cluster

    if address is not None and not names_a_cluster(address):
        raise InputError(
            f"--dask is {address}; it must be the address of a scheduler such as tcp://host:8786, or local:2 for two worker "
            "processes on this machine."
        )


def check_belonging(inference: Inference | None, owners: Sequence[Inference], options: Mapping[str, Any]) -> None:
    """Refuse options of some kinds of inference where another was asked for; greedy inference is the default."""
    if (inference or Inference.greedy) in owners:
        return
    for option, value in options.items():
        if value is not None:
            which = "that" if len(owners) == 1 else "one of them"
            advice = "leave it out" if Inference.greedy in owners else f"add {which}, or leave {option} out"
            raise InputError(f"{option} is an option of --inference {' or '.join(owners)}; {advice}.")


def check_cut(
    n_clusters: int | None,
    height_threshold: float | None,
    resolution: float | None = None,
    min_cluster_size: float | None = None,
) -> None:
    """Refuse ways to cut a tree that make no sense, before any work is done."""
    given = {"--resolution": resolution, "--n-clusters": n_clusters, "--height-threshold": height_threshold}
    ways = [option for option, value in given.items() if value is not None]
    if len(ways) > 1:
        raise InputError(
            f"{' and '.join(ways)} were given, which are ways to cut the same tree; give one of them, or none."
        )
    if resolution is not None and not 0 <= resolution <= 1:
        raise InputError(f"--resolution is {resolution:g}; it must be a number from 0 to 1.")
    check_number("--min-cluster-size", min_cluster_size)
    if min_cluster_size is not None and min_cluster_size > 1 and min_cluster_size != int(min_cluster_size):
        raise InputError(
            f"--min-cluster-size is {min_cluster_size:g}; it must be a whole number of rows, or a share of them below 1."
        )
    check_whole("--n-clusters", n_clusters, 1)
    check_number("--height-threshold", height_threshold)


def check_one_reader(sources: Mapping[str, Path | None]) -> None:
    """Refuse to read two things from standard input, by what they are called."""
    given = [what for what, path in sources.items() if path == STANDARD_STREAM]
    if len(given) > 1:
        raise InputError(f"{' and '.join(given)} are both -, and standard input is one: name a file for one of them.")


def check_one_writer(as_json: bool, targets: Mapping[str, Path | None]) -> None:
    """Refuse to write two things to standard output, by the options that name them."""
    given = [what for what, path in targets.items() if path == STANDARD_STREAM] + ["--json"] * as_json
    if len(given) > 1:
        raise InputError(
            f"{' and '.join(given)} both write to standard output, which is one: name a file, or leave one of them out."
        )
