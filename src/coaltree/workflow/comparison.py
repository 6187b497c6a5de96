"""Comparison of models by their evidence: stationary or Brownian numbers, one rate or a rate per column of categories.

Models of characters have equal or fitted frequencies of states, and equal rates, too, where the fit has gamma rates.
If the user has said which columns were recorded, models with and without that condition are compared too.

Parameters are set to their posterior means, estimated by short Markov chains, and then held while the evidence is averaged over
trees. More fitted parameters alone would make a model win, so each fitted parameter costs half the logarithm of the
number of rows, as in the Bayesian information criterion.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from .._progress import Progress
from .._random import RandomState, as_generator
from ..errors import InputError, InputWarning
from ..inference.evidence import evidence
from ..inference.posterior_draws import posterior_draws
from ..process.base import Process
from ..process.brownian import Brownian
from ..process.gaussian_columns import column_moments
from ..process.mixed import Mixed
from ..process.multinomial import Multinomial
from ..process.ornstein_uhlenbeck import OrnsteinUhlenbeck
from ..table.encoding import EncodedTable
from ..table.labels import count
from .model import FittedModel
from .processes import Templates, partition_columns, sampling_process, to_encoded_table

FloatArray = NDArray[np.float64]

N_RUNS, N_CHAINS, N_SAMPLES = 4, 8, 8  # of the evidence of each model
MIN_EVIDENCE_ROWS, MAX_EVIDENCE_ROWS = 3, 300
ROOT_WIDTH = 10.0  # variance of the root of Brownian motion, relative to what accumulates from the root to the leaves
STATIONARY, BROWNIAN = "stationary diffusion", "Brownian motion"
ONE_RATE, RATES = "one rate", "a rate per column"
EQUAL, FITTED = "equal frequencies", "fitted frequencies"
EQUAL_RATES, GAMMA_RATES = "equal rates", "gamma rates"
CONDITIONS = {"variable": "only variable columns recorded", "present": "only present columns recorded"}
UNCONDITIONAL = "all columns recorded"


class Candidate(NamedTuple):
    """A model with its parameters."""

    name: str
    process: Process
    n_fitted: int


@dataclass(frozen=True)
class ComparedModel:
    """One model of a comparison.

    Attributes
    ----------
    name : str
    process : Process
        With its parameters.
    n_fitted : int
        Number of fitted parameters.
    log_evidence, standard_error : float
        For these parameters, averaged over all trees. The standard error is NaN if the runs contradict it.
    run_range : float
        By how much the log evidences of the runs differ.
    penalty : float
        What the fitted parameters cost: half the logarithm of the number of rows each.
    log_bayes_factor : float
        Log evidence less penalty, minus that of the best model: 0 for the best one, negative for the others.
    bayes_factor_error : float
        Its standard error; 0 for the best model, NaN if either model has none.
    words : str
        What the Bayes factor says.
    """

    name: str
    process: Process
    n_fitted: int
    log_evidence: float
    standard_error: float
    run_range: float
    penalty: float
    log_bayes_factor: float
    bayes_factor_error: float
    words: str

    def facts(self) -> dict[str, Any]:
        """Return the numbers and words of the model, for tables and files."""
        return {
            "model": self.name,
            "log_evidence": self.log_evidence,
            "standard_error": _none_if_nan(self.standard_error),
            "run_range": self.run_range,
            "fitted_parameters": self.n_fitted,
            "penalty": self.penalty,
            "log_bayes_factor": self.log_bayes_factor,
            "bayes_factor_error": _none_if_nan(self.bayes_factor_error),
            "words": self.words,
        }


def check_rows_for_evidence(n_rows: int, name: str) -> None:
    """Raise unless models of this number of rows can be compared; `name` is the name of the option, for the message."""
    if not MIN_EVIDENCE_ROWS <= n_rows <= MAX_EVIDENCE_ROWS:
        raise InputError(
            f"{name} compares models of {MIN_EVIDENCE_ROWS} to {MAX_EVIDENCE_ROWS} rows, and the table has "
            f"{count(n_rows, 'row')}; leave it out, or use some of the rows."
        )


def compare_models(
    model: FittedModel, random_state: RandomState = 0, progress: Progress | None = None, client: Any = None
) -> list[ComparedModel]:
    """Compare models of the table of a fit by their evidence.

    Parameters
    ----------
    model : FittedModel
    random_state : int, Generator, RandomState or None, default 0
    progress : callable, optional
        Called regularly with the share of the work done, and a few words.
    client : distributed.Client, optional
        Runs the chains on the workers of a Dask cluster; the model does not keep that of its fit.

    Returns
    -------
    list of ComparedModel
        The best first; empty if no column varies.
    """
    encoded = to_encoded_table(model.encoding, model.matrix)
    if encoded.real.shape[1] + encoded.codes.shape[1] == 0:
        return []
    check_rows_for_evidence(len(model.matrix), "The evidence")
    rng = as_generator(random_state)
    candidates = [make(rng) for make in _candidates(model, encoded)]
    results = []
    for k, candidate in enumerate(candidates):

        def report(share: float, done: int, log_evidence: float, k: int = k, name: str = candidate.name) -> None:
            if progress:
                progress((k + share) / len(candidates), f"evidence of {name}")

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InputWarning)  # the missing standard errors say the same
            result = evidence(
                model.matrix,
                candidate.process,
                N_RUNS,
                n_chains=N_CHAINS,
                n_samples=N_SAMPLES,
                n_jobs=model.settings.n_jobs,
                client=client,
                random_state=rng,
                progress=report,
            )
        results.append((candidate, result.log_evidence, result.standard_error, result.run_range))
    return rank(results, len(model.matrix))


def rank(results: list[tuple[Candidate, float, float, float]], n_rows: int) -> list[ComparedModel]:
    """Order models by log evidence less penalty, given log evidences, standard errors and ranges of runs; the best first."""
    scored = [(result[1] - _penalty(result[0], n_rows), *result) for result in results]
    scored.sort(key=lambda item: -item[0])
    best, _, _, best_error, best_range = scored[0]
    models = []
    for place, (score, candidate, value, error, run_range) in enumerate(scored):
        factor_error = math.hypot(error, best_error) if place else 0.0
        # Without a standard error, models must be farther apart than their runs.
        doubt = run_range + best_range if math.isnan(factor_error) else factor_error
        models.append(
            ComparedModel(
                candidate.name,
                candidate.process,
                candidate.n_fitted,
                value,
                error,
                run_range,
                _penalty(candidate, n_rows),
                score - best,
                factor_error,
                describe_factor(score - best, doubt) if place else "best",
            )
        )
    return models


def _none_if_nan(value: float) -> float | None:
    return None if math.isnan(value) else value


def _penalty(candidate: Candidate, n_rows: int) -> float:
    return 0.5 * candidate.n_fitted * math.log(n_rows)


def describe_factor(log_factor: float, error: float) -> str:
    """Say how much worse a model is than the best one; the steps are those of Kass and Raftery (1995)."""
    size = abs(log_factor)
    if size < max(1.0, 2 * error):
        return "cannot be distinguished from the best"
    return "slightly worse" if size < 3 else "clearly worse" if size < 5 else "far worse"


def describe_comparison(models: Sequence[ComparedModel]) -> str:
    """Return a comparison in one sentence, and which parameters were fitted or held."""
    if not models:
        return "No column varies, so there are no models to compare."
    best, *others = models
    close = [model.name for model in others if model.words.startswith("cannot")]
    sentence = f"The table is best described by: {best.name}."
    if close:
        sentence = f"{sentence[:-1]}; these cannot be distinguished from it: {'; '.join(close)}."
    return (
        f"{sentence} Parameters were set to their posterior means and then held; each fitted one costs half the logarithm of the "
        "number of rows."
    )


def _candidates(model: FittedModel, encoded: EncodedTable) -> list[Callable[[np.random.Generator], Candidate]]:
    """Return functions that make the models that are sensible for the columns of the table."""
    settings = model.settings
    n_real, n_categorical = encoded.real.shape[1], encoded.codes.shape[1]
    is_custom_real, categorical_process = not isinstance(settings.real_process, str), settings.categorical_process
    parts = model.process.subprocesses(n_real + n_categorical)
    characters = [part for part, _ in parts[len(parts) - len(partition_columns(encoded)) :]]
    if characters:
        return _character_candidates(model, encoded, cast("list[Multinomial]", characters))
    condition = None if categorical_process is None else categorical_process.ascertainment
    # A process that only declares which columns were recorded does not count as the user's own process.
    is_custom_categorical = categorical_process is not None and repr(categorical_process) != repr(
        Multinomial(ascertainment=condition)
    )
    conditions = [condition, None] if n_categorical and condition and not is_custom_categorical else [None]
    real_names = [None] if not n_real else ["numbers as given"] if is_custom_real else [STATIONARY, BROWNIAN]
    rate_names = (
        [None] if not n_categorical else ["categories as given"] if is_custom_categorical else [ONE_RATE, RATES]
    )

    def maker(real: str | None, rates: str | None, condition: str | None) -> Callable[[np.random.Generator], Candidate]:
        def make(rng: np.random.Generator) -> Candidate:
            numbers = settings.real_process
            kind = (
                numbers if real is None or is_custom_real else "brownian" if real == BROWNIAN else "ornstein-uhlenbeck"
            )
            templates = Templates(kind, categorical_process if is_custom_categorical else None)
            noise = None if settings.noise is None else float(settings.noise)
            first = sampling_process(model.matrix, encoded, templates, settings.covariance, noise)
            if rates in (ONE_RATE, RATES):
                first = _with_rates(first, n_real, n_categorical, rates == ONE_RATE, condition)
            condition_name = CONDITIONS.get(condition or "", UNCONDITIONAL) if len(conditions) > 1 else None
            name = " and ".join(filter(None, (real, rates, condition_name)))
            return _fit_candidate(model, name, first, n_real, noise is not None, real == BROWNIAN, rng)

        return make

    return [
        maker(real, rates, condition_kind)
        for real, rates, condition_kind in product(real_names, rate_names, conditions)
    ]


def _character_candidates(
    model: FittedModel, encoded: EncodedTable, characters: Sequence[Multinomial]
) -> list[Callable[[np.random.Generator], Candidate]]:
    """Return functions that make models of a table of characters, whose other columns are as in the fit."""
    settings, n_real = model.settings, encoded.real.shape[1]
    can_share = all(len({len(q) for q in part.equilibrium or ()}) == 1 for part in characters)
    conditions = [True, False] if any(part.ascertainment for part in characters) else [True]
    rates = [GAMMA_RATES, EQUAL_RATES] if any(part.gamma_shape is not None for part in characters) else [None]

    def maker(frequencies: str, rate_name: str | None, conditioned: bool) -> Callable[[np.random.Generator], Candidate]:
        def make(rng: np.random.Generator) -> Candidate:
            changed = [_with_frequencies(part, frequencies == EQUAL) for part in characters]
            if rate_name == EQUAL_RATES:
                changed = [part.replace(gamma_shape=None, site_rate=None) for part in changed]
            templates = model.templates(encoded)._replace(characters=tuple(changed))
            noise = None if settings.noise is None else float(settings.noise)
            first = sampling_process(
                model.matrix,
                encoded,
                templates if conditioned else templates.without_ascertainment(),
                settings.covariance,
                noise,
            )
            names = [frequencies, *filter(None, [rate_name])]
            if len(conditions) > 1:
                kinds = dict.fromkeys(CONDITIONS[part.ascertainment] for part in characters if part.ascertainment)
                names += kinds if conditioned else [UNCONDITIONAL]
            name = " and ".join(names)
            return _fit_candidate(model, name, first, n_real, noise is not None, False, rng)

        return make

    return [maker(*choice) for choice in product([EQUAL, FITTED] if can_share else [EQUAL], rates, conditions)]


def _with_frequencies(process: Multinomial, equal: bool) -> Multinomial:
    """Return the process of a partition with equally likely states, or with frequencies that are fitted."""
    assert process.equilibrium is not None, "the process was fitted"
    if not equal:
        return process.replace(share_equilibrium=True, hold_equilibrium=False)
    flat = [np.full(len(q), 1 / len(q)) for q in process.equilibrium]
    return process.replace(equilibrium=flat, hold_equilibrium=True)


def _with_rates(
    process: Process, n_real: int, n_categorical: int, one_rate: bool, ascertainment: str | None
) -> Process:
    """Return the process with one rate for all category columns or one each, and one noise for all of them."""
    parts = list(process.subprocesses(n_real + n_categorical))
    categorical, columns = cast("tuple[Multinomial, tuple[int, ...]]", parts[-1])
    rate = categorical.rate.mean() if one_rate else np.broadcast_to(categorical.rate, n_categorical)
    parts[-1] = Multinomial(rate, categorical.equilibrium, categorical.noise.mean(), ascertainment), columns
    return parts[0][0] if len(parts) == 1 else Mixed(*parts)


def _fit_candidate(
    model: FittedModel,
    name: str,
    first: Process,
    n_real: int,
    hold_noise: bool,
    brownian: bool,
    rng: np.random.Generator,
) -> Candidate:
    """Set the parameters of a model to their posterior means."""
    matrix = model.matrix
    draws = posterior_draws(
        matrix,
        first.resolve(matrix),
        model.tree,
        hold_noise=hold_noise,
        n_jobs=model.settings.n_jobs,
        random_state=rng,
    )
    values = np.mean([draw.process.parameter_values() for draw in draws], axis=0)
    process = draws[0].process.with_parameter_values(values) if len(values) else draws[0].process
    n_columns = matrix.shape[1]
    n_fitted = len(values) - process.n_constraints
    if brownian:
        height = float(np.mean([draw.tree.heights[-1] for draw in draws]))
        parts = list(process.subprocesses(n_columns))
        diffusion, columns = cast("tuple[Brownian, tuple[int, ...]]", parts[0])
        parts[0] = with_proper_root(diffusion, column_moments(matrix[:, :n_real])[0], height), columns
        process = parts[0][0] if len(parts) == 1 else Mixed(*parts)
        n_fitted += n_real  # the means of the root
    return Candidate(name, process, n_fitted)


def with_proper_root(process: Brownian, mean: FloatArray, height: float) -> OrnsteinUhlenbeck:
    """Return Brownian motion with a wide proper root, so that its evidence can be compared with that of other processes.

    A diffusion that returns very slowly is Brownian motion from a root with mean `mean` and a variance of `ROOT_WIDTH` times what
    accumulates over `height`.
    """
    rate = 1 / (2 * ROOT_WIDTH * height)
    return OrnsteinUhlenbeck(rate, mean, process.variance / (2 * rate), 2 * rate * process.noise)
