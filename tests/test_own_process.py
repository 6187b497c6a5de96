"""A process defined by a user works in inference, prediction, estimators, model files and reports."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal, norm

import coaltree as ct
from coaltree.errors import InputError
from coaltree.process.base import ParameterSampler
from coaltree.process.predictions import Predictions
from coaltree.process.slice_sampling import positive_slice_step
from command_line import command_in

pytestmark = pytest.mark.usefixtures("short_chains")

ROUNDING = 1 / 12  # variance of a score within its state


class OrderedStates(ct.Process):
    """Ordered states 0, 1, 2, ...: a hidden score diffuses around the middle, and a cell shows the nearest state."""

    kind = "test-ordered-states"

    def __init__(self, n_states=None, rate=0.5, noise=0.3):
        self.n_states, self.rate, self.noise = n_states, rate, noise

    def _scores(self, rounding=0.0):
        """Return the process of the scores: at equilibrium they are as wide as states that are equally frequent."""
        n_states = np.array(self.n_states)
        variance = (n_states**2 - 1) / 12
        return ct.OrnsteinUhlenbeck(self.rate, (n_states - 1) / 2, variance, self.noise + rounding / variance)

    def _show(self, scores):
        return np.clip(np.round(scores), 0, np.array(self.n_states) - 1)

    def resolve(self, X):
        if self.n_states is not None:
            return self
        return self.replace(n_states=[max(2, int(np.nanmax(codes)) + 1) for codes in X.T])

    def columns(self, X):
        return self._scores(ROUNDING).columns(X)

    def leaf_log_likelihoods(self, X):
        return self._scores(ROUNDING).leaf_log_likelihoods(X)

    def simulate(self, tree, random_state=None, *, n_columns=None):
        return self._show(self._scores().simulate(tree, random_state))

    def states(self, messages, distance, observed):
        scores = self._scores().states(messages, distance, observed)
        blocks = []
        for d, k in enumerate(self.n_states):
            ends = np.concatenate([[-np.inf], np.arange(k - 1) + 0.5, [np.inf]])
            below = norm.cdf(ends, scores.mean[:, [d]], scores.sd[:, [d]])
            blocks.append(np.diff(below, axis=1))
        return Predictions.from_categorical(np.cumsum([0, *self.n_states]), np.hstack(blocks))

    def draw(self, messages, tree, size, rng):
        return self._show(self._scores().draw(messages, tree, size, rng))

    def coordinates(self, messages, height):
        return self._scores(ROUNDING).coordinates(messages, height)

    # what follows is optional

    def parameter_names(self, columns):
        return ["rate"]

    def parameter_values(self):
        return np.array([self.rate])

    def with_parameter_values(self, values):
        return self.replace(rate=float(values[0]))

    def rescale_clock(self, factor):
        return self.replace(rate=self.rate / factor)

    def sampler(self, X, hold_noise):
        return RateSampler(X)


class RateSampler(ParameterSampler):
    """Draws the rate, whose prior is exponential, by slices."""

    def log_prior(self, process):
        return -process.rate

    def draw(self, process, tree, rng):
        def log_density(rate):
            trial = process.replace(rate=rate)
            return trial.log_likelihood(tree, self.table) + self.log_prior(trial)

        return process.replace(rate=positive_slice_step(log_density, process.rate, (1e-3, 1e3), rng))

    def clock_exponent(self, process):
        return -1.0


class Minimal(OrderedStates):
    """The same without anything optional."""

    kind = "minimal-states"
    parameter_names = ct.Process.parameter_names
    parameter_values = ct.Process.parameter_values
    with_parameter_values = ct.Process.with_parameter_values
    rescale_clock = ct.Process.rescale_clock
    sampler = ct.Process.sampler


TREE = ct.Tree.from_newick("((a:0.4,b:0.4):0.9,c:1.3);")
CLASSES = pytest.mark.parametrize("kind", [OrderedStates, Minimal])
GRADES = ["poor", "fair", "good", "great", "best"]


@pytest.fixture(scope="module")
def codes():
    tree = ct.simulate_tree(24, random_state=3)
    return OrderedStates([5, 5, 3, 4], rate=0.3, noise=0.1).simulate(tree, random_state=1)


@pytest.fixture(scope="module")
def frame(codes):
    """Four ordered columns, two of them named by words in order, and a real one; some cells are missing."""
    frame = pd.DataFrame(codes[:, 2:].astype(int), columns=["steps", "level"]).astype("category")
    for name, value in (("price", codes[:, 0]), ("taste", codes[:, 1])):
        frame[name] = pd.Categorical.from_codes(value.astype(int), GRADES, ordered=True)
    frame["size"] = codes[:, 0] + np.random.default_rng(0).normal(size=len(codes))
    frame.loc[frame.index[::7], "taste"] = None
    return frame


def joint(process, column):
    """Return mean and covariance of the scores of one column at the leaves of TREE, without rounding and noise."""
    k = process.n_states[column]
    heights = np.array([[0, 0.4, 1.3], [0.4, 0, 1.3], [1.3, 1.3, 0]])
    variance = (k**2 - 1) / 12
    return np.full(3, (k - 1) / 2), variance * np.exp(-2 * process.rate * heights), variance


def test_custom_process_likelihood_and_predictions_match_gaussian():
    process, X = OrderedStates([4, 3], 0.6, 0.2), np.array([[0.0, 1.0], [1.0, 2.0], [3.0, np.nan]])
    mean, covariance, variance = joint(process, 0)
    observed = covariance + np.eye(3) * (0.2 * variance + ROUNDING)
    expected = multivariate_normal(mean, observed).logpdf(X[:, 0])
    assert process.log_likelihood(TREE, X) == pytest.approx(
        expected + multivariate_normal(*_two(joint(process, 1))).logpdf(X[:2, 1])
    )
    mean, covariance, variance = joint(process, 1)
    gain = covariance[2, :2] @ np.linalg.inv(covariance[:2, :2] + np.eye(2) * (0.2 * variance + ROUNDING))
    centre = mean[2] + gain @ (X[:2, 1] - mean[:2])
    sd = np.sqrt(covariance[2, 2] - gain @ covariance[:2, 2] + 0.2 * variance)
    cell = ct.Beliefs(TREE, X, process).leaves().probability[2, 4:]
    np.testing.assert_allclose(cell, np.diff(norm.cdf([-np.inf, 0.5, 1.5, np.inf], centre, sd)), rtol=1e-9)


def _two(of_column):
    mean, covariance, variance = of_column
    return mean[:2], covariance[:2, :2] + np.eye(2) * (0.2 * variance + ROUNDING)


@CLASSES
@pytest.mark.filterwarnings("ignore:The chains have not converged")
def test_custom_process_in_all_inference_methods(kind, codes):
    greedy = ct.greedy(codes, kind())
    assert greedy.process.n_states == (codes.max(axis=0) + 1).tolist()
    assert greedy.log_joint == pytest.approx(ct.log_joint(greedy.tree, codes, kind()))
    assert ct.refine(greedy.tree, codes, kind()).log_joint >= greedy.log_joint
    sample = ct.smc(codes[:8], kind(), n_particles=20, random_state=0)
    assert np.isfinite(sample.log_evidence)
    chains = ct.mcmc(codes[:8], kind(), 40, 2, draw_parameters=True, random_state=0)
    assert list(chains.parameters) == (["rate"] if kind is OrderedStates else [])
    assert ct.calibrate(kind(), greedy.tree, codes).rate == 0.5
    by_neighbors = ct.greedy(codes, kind(), search="neighbors")
    assert by_neighbors.tree.n_leaves == len(codes)


def test_custom_sampler_matches_posterior():
    """The mean of 300 draws, worth at least 100, against quadrature: 5 standard errors, less than 1 in 10**6."""
    X = np.array([[0.0, 1.0], [1.0, 2.0], [3.0, 0.0]])
    process = OrderedStates([4, 3])
    rates = np.linspace(0.02, 12, 300)
    logs = np.array([OrderedStates([4, 3], rate).log_likelihood(TREE, X) - rate for rate in rates])
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    mean = weights @ rates
    sd = np.sqrt(weights @ (rates - mean) ** 2)
    sampler, rng, draws = process.sampler(X, False), np.random.default_rng(0), []
    for _ in range(300):
        process = sampler.draw(process, TREE, rng)
        draws.append(process.rate)
    assert np.mean(draws) == pytest.approx(mean, abs=5 * sd / np.sqrt(100))


@pytest.mark.parametrize(
    ("kind", "inference"), [(OrderedStates, "greedy"), (Minimal, "greedy"), (Minimal, "smc"), (OrderedStates, "mcmc")]
)
@pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning")
def test_custom_process_in_estimators_files_and_reports(kind, inference, frame, tmp_path, monkeypatch, capsys):
    model = ct.CoalescentClustering(
        inference=inference, categorical_process=kind(), n_particles=10, n_samples=30, n_chains=2, random_state=0
    ).fit(frame)
    assert model.parameters_["price"]["process"] == kind.kind
    assert model.parameters_["size"]["process"] == "ornstein-uhlenbeck"
    assert set(model.predict(frame)) <= set(model.labels_)
    assert model.place(frame.iloc[:3]) is not None
    report, path = tmp_path / "report.html", tmp_path / "model.coaltree"
    model.report(report)
    assert "price" in report.read_text()
    model.save(path)
    run = command_in(tmp_path, monkeypatch, capsys)
    if kind is Minimal and inference == "greedy":
        assert run("report", path, "-o", "by_command.html")[0] == 0
    assert run("cut", path, "--n-clusters", 3)[0] == 0
    again = ct.load_model(path)
    assert isinstance(again.categorical_process, kind)
    assert again.process_.to_dict() == model.process_.to_dict()
    np.testing.assert_array_equal(again.score_samples(frame[:5]), model.score_samples(frame[:5]))


@pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning")
def test_custom_process_in_imputation(frame):
    imputer = ct.CoalescentImputer(categorical_process=Minimal(), random_state=0)
    filled = imputer.fit_transform(frame)
    assert not filled.isna().any().any()
    missing = frame["taste"].isna()
    assert filled["taste"][missing].isin(GRADES).all()
    assert filled["taste"][~missing].tolist() == frame["taste"][~missing].tolist()


@pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning")
def test_estimator_accepts_process_for_real_columns(frame):
    template = ct.Brownian(0.4, 0.3)
    model = ct.CoalescentClustering(real_process=template, random_state=0).fit(frame[["size", "price"]])
    assert model.parameters_["size"]["process"] == "brownian"
    assert model.process_.parts[0][0].variance == 0.4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"real_process": "jumps"}, "real_process is 'jumps'.*or a process"),
        ({"categorical_process": "multinomial"}, "categorical_process is 'multinomial'"),
    ],
)
def test_invalid_processes_are_rejected(arguments, message, frame):
    with pytest.raises(InputError, match=message):
        ct.CoalescentClustering(**arguments).fit(frame)


@pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning")
def test_unknown_process_in_model_file_names_import(frame, tmp_path):
    path = tmp_path / "model.coaltree"
    ct.CoalescentClustering(categorical_process=OrderedStates(), random_state=0).fit(frame[["price"]]).save(path)
    program = f"import coaltree as ct; ct.load_model({str(path)!r})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "'test-ordered-states'" in done.stderr
    assert "import the module" in done.stderr


def test_builtin_process_names_are_reserved():
    with pytest.raises(TypeError, match="Brownian"):

        class Mine(ct.Process):
            kind = "brownian"


def test_process_without_kind_cannot_be_saved():
    class Nameless(OrderedStates):
        pass

    with pytest.raises(InputError, match="has no `kind`"):
        Nameless([2]).to_dict()
