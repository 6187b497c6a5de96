"""The parameters of a fit, their defaults, and checks of their values and combinations."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from os import PathLike
from typing import Any, ClassVar, Literal

from .._cut import Cut, check_cut
from .._parameters import (
    ASCERTAINMENTS,
    PARAMETERS,
    AnyOf,
    Choices,
    Constraint,
    Instance,
    check_parameter,
    check_time_limit,
    join_words,
    optional,
)
from .._random import as_generator
from .._validation import quote
from ..errors import InputError
from ..inference.executors import check_client, thread_count
from ..process.base import Process

_PROCESS = Instance(Process, "a process")
ASCERTAINMENT = Choices(ASCERTAINMENTS)
CONSTRAINTS: dict[str, Constraint] = PARAMETERS | {
    "real_process": AnyOf((PARAMETERS["real_process"], _PROCESS)),
    "categorical_process": optional(_PROCESS),
    "ascertainment": AnyOf(
        (Choices((None,)), ASCERTAINMENT, Instance(Mapping, "a mapping of partitions to one of these"))
    ),
}
CHARACTER_PARAMETERS = ("model", "rates", "partitions", "ascertainment")
"""Parameters that are for characters of taxa."""


_OTHER_NAMES = {"k": "n_clusters", "distance_threshold": "height_threshold", "seed": "random_state"}
"""Names that other libraries have for some parameters."""


@dataclass(kw_only=True, eq=False, repr=False)
class Settings:
    """Settings of the search for a tree and of predictions; see `coaltree.CoalescentClustering`."""

    _estimator: ClassVar[str]  # the name of the estimator that has these parameters

    inference: str = "greedy"
    rule: str = "rate1"
    proposal: str = "post-post"
    n_particles: int = 50
    n_runs: int = 1
    n_chains: int = 4
    n_heated: int = 0
    n_samples: int | Literal["auto"] = 1000
    max_seconds: float | None = None
    summary: str = "ccd0"
    summary_heights: Literal["mean", "median"] = "mean"
    draw_parameters: bool | None = None
    model: str | None = None
    rates: str | None = None
    partitions: Mapping[str, Sequence[str]] | str | PathLike[str] | None = None
    ascertainment: str | Mapping[str, str] | None = None
    real_process: str | Process = "ornstein-uhlenbeck"
    categorical_process: Process | None = None
    covariance: str | None = None
    noise: float | None = None
    categorical_features: Any = "from_dtype"
    unseen_categories: str = "missing"
    standardize: bool | Literal["power"] = True
    search: str = "auto"
    refine: bool = False
    n_jobs: int | None = None
    client: Any = None
    random_state: Any = None
    verbose: int = 0


@dataclass(kw_only=True, eq=False, repr=False)
class ClusterSettings(Settings, Cut):
    """Settings of a tree with flat clusters."""

    _estimator = "CoalescentClustering"


@dataclass(kw_only=True, eq=False, repr=False)
class ImputationSettings(Settings):
    """Settings of a tree from which missing cells are filled."""

    _estimator = "CoalescentImputer"

    add_indicator: bool = False
    n_draws: int = 50


@dataclass(kw_only=True, eq=False, repr=False)
class OutlierSettings(Settings):
    """Settings of a tree from which rows are scored."""

    _estimator = "CoalescentOutlierDetector"

    contamination: float | Literal["auto"] = "auto"


SETTINGS: dict[str, type[Settings]] = {
    kind._estimator: kind for kind in (ClusterSettings, ImputationSettings, OutlierSettings)
}


def parameter_values(settings: Settings) -> dict[str, Any]:
    """Return the parameters by name, in alphabetical order as in scikit-learn."""
    return {name: getattr(settings, name) for name in parameter_names(type(settings))}


def parameter_names(kind: type[Settings]) -> list[str]:
    """Return the names of all parameters, in alphabetical order."""
    return sorted(field.name for field in fields(kind))


def _name_unknown_parameters(kind: type[Settings]) -> None:
    """Let the constructor name the estimator and the nearest parameter, instead of the class that declares parameters."""
    initialise, known, owner = kind.__init__, parameter_names(kind), kind._estimator

    @functools.wraps(initialise)
    def checked(self: Settings, *arguments: Any, **parameters: Any) -> None:
        if arguments:
            raise TypeError(f"{owner} takes named parameters only: write {owner}({known[0]}=...), for example.")
        unknown = [name for name in parameters if name not in known]
        if unknown:
            close = [_OTHER_NAMES[unknown[0]]] if _OTHER_NAMES.get(unknown[0]) in known else []
            close = close or difflib.get_close_matches(unknown[0], known, n=3, cutoff=0.6)
            hint = f"did you mean {join_words(close)}?" if close else f"its parameters are {', '.join(known)}."
            raise TypeError(f"{owner} has no parameter {quote(unknown[0])}: {hint}")
        initialise(self, **parameters)

    kind.__init__ = checked  # type: ignore[method-assign]


for _kind in SETTINGS.values():
    _name_unknown_parameters(_kind)


def check_settings(settings: Settings, n_rows: int) -> None:
    """Raise unless every parameter and their combination are allowed for a table of this number of rows."""
    for name, value in parameter_values(settings).items():
        if name in CONSTRAINTS:
            check_parameter(name, value, CONSTRAINTS[name])
    for name, owner, purpose in (
        ("refine", "greedy", "the tree can be refined"),
        ("draw_parameters", "mcmc", "parameters can be drawn together with trees"),
        ("n_heated", "mcmc", "chains can be heated"),
    ):
        value = getattr(settings, name)
        if value and settings.inference != owner:
            raise InputError(
                f"{name} is {value}, and inference is {quote(settings.inference)}; {purpose} only with inference {owner!r}."
            )
    _check_characters(settings)
    check_time_limit(settings.n_samples, settings.max_seconds)
    if isinstance(settings, ClusterSettings):
        check_cut(settings, n_rows)
    if settings.client is not None:
        check_client(settings.client)
    as_generator(settings.random_state)
    thread_count(settings.n_jobs)


def _check_characters(settings: Settings) -> None:
    """Raise unless parameters for characters are allowed together."""
    for name in CHARACTER_PARAMETERS:
        if getattr(settings, name) is not None and settings.categorical_process is not None:
            raise InputError(
                f"{name} and categorical_process are both given, and each chooses the process of the characters; leave one out."
            )
    partitions, ascertainment = settings.partitions, settings.ascertainment
    if isinstance(ascertainment, Mapping):
        for name, value in ascertainment.items():
            check_parameter(f"ascertainment of {name}", value, ASCERTAINMENT)
    if partitions is not None and not isinstance(partitions, str | PathLike):
        for name, columns in partitions.items() if isinstance(partitions, Mapping) else [("", "")]:
            if isinstance(columns, str) or not isinstance(columns, Sequence) or not isinstance(name, str):
                raise InputError(
                    f"partitions is {quote(partitions)}; it must be a file, or a mapping of names to lists of columns, such as "
                    "{'coding': ['site1', 'site2']}."
                )


def refuse_resolution(cut: Cut) -> None:
    """Raise if a sample of trees with drawn parameters is to be cut at a resolution."""
    if cut.resolution is not None:
        raise InputError(
            f"resolution is {cut.resolution:g}, but draw_parameters=True gives every tree its own rate, so a resolution has "
            "another height in each tree; give n_clusters or height_threshold, or no rule."
        )
