"""Declared columns: what kernels would read past, or misread, is rejected where it is declared."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import coaltree as ct
import reference
from coaltree.errors import InputError
from coaltree.predict.draws import Draw
from coaltree.predict.predictor import Predictor
from coaltree.process.declarations import GaussianColumns, SiteColumns
from coaltree.process.predictions import Predictions

X = np.random.default_rng(0).normal(size=(12, 3))
SPREAD = np.full(X.shape, 0.1)
REAL = {"mean": X, "spread": SPREAD, "complete": False, "noisy": True, "log_scale": np.zeros(3)}
PAST = REAL | {"rate": 0.5, "log_scale": None}  # Ornstein-Uhlenbeck
Q = (np.array([0.2, 0.8]), np.array([0.5, 0.25, 0.25]))
SITES = {"message": np.ones((4, 5)), "equilibrium": Q, "rate": np.ones(2), "noisy": True}


def changed(values, at, value):
    values = np.array(values, dtype=float)
    values[at] = value
    return values


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"log_scale": None}, ["log_scale", "missing", "rate=0"]),
        ({"log_scale": np.zeros(2)}, ["log_scale", "(2,)", "(3,)"]),
        ({"log_scale": 0.0}, ["log_scale", "()", "(3,)"]),
        ({"log_scale": [0.0, np.inf, 0.0]}, ["log_scale[1]", "inf", "finite"]),
        ({"mean": X[0]}, ["mean", "(3,)", "(any, any)"]),
        ({"mean": changed(X, (4, 1), np.nan)}, ["mean[4, 1]", "nan", "finite"]),
        ({"mean": "many"}, ["mean", "'many'", "numbers"]),
        ({"mean": [[0.0], [0.0, 1.0]]}, ["mean", "numbers"]),
        ({"spread": SPREAD[:, :1]}, ["spread", "(12, 1)", "(12, 3)", "mean"]),
        ({"spread": SPREAD[:7]}, ["spread", "(7, 3)", "(12, 3)"]),
        ({"spread": changed(SPREAD, (2, 0), -1.0)}, ["spread[2, 0]", "-1", "0 or more"]),
        ({"complete": True}, ["spread", "(12, 3)", "(12, 1)", "complete"]),
        ({"complete": True, "spread": changed(SPREAD[:, :1], 3, np.inf)}, ["spread", "inf", "complete"]),
        ({"rate": -1.0}, ["rate", "-1", "0 or more"]),
        ({"rate": np.ones(3)}, ["rate", "one number"]),
        ({"root_variance": 0.0}, ["root_variance", "0.0", "positive"]),
        ({"center": np.zeros((12, 3))}, ["center", "(12, 3)", "(3,)"]),
        ({"weight": np.ones(1)}, ["weight", "(1,)", "(3,)"]),
        ({"weight": [1.0, -1.0, 1.0]}, ["weight[1]", "-1", "0 or more"]),
        (PAST | {"spread": changed(SPREAD, (2, 0), 1.5)}, ["spread[2, 0]", "1.5", "0 to 1"]),
        (PAST | {"rate": np.inf}, ["rate", "inf", "finite"]),
    ],
)
def test_wrong_real_columns_are_rejected(changes, words):
    with pytest.raises(InputError) as caught:
        GaussianColumns(**REAL | changes)
    assert all(word in str(caught.value) for word in ["GaussianColumns", *words]), caught.value


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"message": np.ones((4, 4))}, ["message", "(4, 4)", "(any, 5)", "equilibrium"]),
        ({"message": np.ones(5)}, ["message", "(5,)"]),
        ({"message": changed(np.ones((4, 5)), (1, 2), np.nan)}, ["message[1, 2]", "nan"]),
        ({"message": changed(np.ones((4, 5)), (1, 2), -1.0)}, ["message[1, 2]", "-1", "0 or more"]),
        ({"message": changed(np.ones((4, 5)), (3, 2), 2.0)}, ["row 3, column 1", "1.5", "add up to 1"]),
        ({"equilibrium": [Q[0], [0.5, 0.5, 0.5]]}, ["equilibrium[1]", "0.5", "add up to 1"]),
        ({"equilibrium": [Q[0], [0.5, 0.5, 0.0]]}, ["equilibrium[1]", "positive"]),
        ({"equilibrium": [Q[0], []]}, ["equilibrium[1]"]),
        ({"rate": np.ones(3)}, ["rate", "(3,)", "(2,)"]),
        ({"rate": 1.0}, ["rate", "()", "(2,)"]),
        ({"rate": [1.0, np.nan]}, ["rate[1]", "nan"]),
        ({"weight": np.ones(5)}, ["weight", "(5,)", "(2,)"]),
    ],
)
def test_wrong_site_columns_are_rejected(changes, words):
    with pytest.raises(InputError) as caught:
        SiteColumns(**SITES | changes)
    assert all(word in str(caught.value) for word in ["SiteColumns", *words]), caught.value


class Diffusion(ct.Brownian):
    """Brownian motion whose declaration is whatever a test says."""

    declared = None

    def columns(self, X):
        return type(self).declared


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        ([GaussianColumns(**REAL | {"mean": X[:5], "spread": SPREAD[:5]})], ["5 row(s)", "12"]),
        ([GaussianColumns(**REAL), GaussianColumns(**REAL)], ["2 declaration(s)", "n_declarations is 1"]),
        (GaussianColumns(**REAL), ["list"]),
        ([X], ["list"]),
    ],
)
def test_declarations_of_another_table_are_rejected(declared, words, monkeypatch):
    monkeypatch.setattr(Diffusion, "declared", declared)
    with pytest.raises(InputError) as caught:
        Diffusion().log_likelihood(ct.simulate_tree(12, random_state=0), X)
    assert all(word in str(caught.value) for word in ["Diffusion.columns", *words]), caught.value


class Transposed(ct.Brownian):
    """Coordinates as rows, where lineages must be columns."""

    def coordinates(self, messages, height):
        return super().coordinates(messages, height).T


class Short(ct.Brownian):
    """No prediction for the last row."""

    def states(self, messages, distance, observed):
        return super().states(messages, distance, observed).take(slice(0, -1))


class Forgetful(ct.Multinomial):
    """One state less in the predictions than in the messages."""

    def states(self, messages, distance, observed):
        states = super().states(messages, distance, observed)
        start = states.start - np.arange(len(states.start))
        return Predictions.from_categorical(start, states.probability[:, : start[-1]])


def test_other_arrays_of_a_process_are_checked():
    tree, rows = ct.simulate_tree(12, random_state=0), np.random.default_rng(0).normal(size=(2000, 3))
    with pytest.raises(InputError, match=r"Transposed.coordinates.*\(\d+, 3\).*lineage"):
        ct.greedy(rows, Transposed(1.0, [0.1, 0.2, 0.3]), search="neighbors")
    with pytest.raises(InputError, match=r"Short.states.*\(22, 3\).*23 row"):
        ct.Beliefs(tree, X, Short(1.0, 0.1)).nodes()
    codes = np.arange(24.0).reshape(12, 2) % 3
    draws = [Draw(tree, Forgetful(1.0, [[0.2, 0.3, 0.5]] * 2), codes)]
    with pytest.raises(InputError, match=r"Row 0, column 1 has state 2.*only 2 states"):
        Predictor(draws, np.ones(1), codes).log_density(np.array([[0.0, 2.0]]))


@pytest.mark.parametrize("as_declared", [np.asarray, np.asfortranarray, lambda values: values.tolist()])
@pytest.mark.parametrize("complete", [False, True])
def test_declaration_takes_any_numbers(as_declared, complete, monkeypatch):
    """Lists and arrays of any layout, against the likelihood of a whole covariance matrix."""
    tree = ct.simulate_tree(12, random_state=0)
    spread = SPREAD[:, :1] if complete else SPREAD
    declared = GaussianColumns(as_declared(X), as_declared(spread), complete, True, 0, [0, 0, 0])
    monkeypatch.setattr(Diffusion, "declared", [declared])
    process = Diffusion(1.0, 0.1)
    assert process.log_likelihood(tree, X) == pytest.approx(reference.log_likelihood(tree, X, ct.Brownian(1.0, 0.1)))


class Unconvertible:
    """An object whose conversions raise what they like, as those of other libraries do."""

    def __float__(self):
        raise RuntimeError("no number")

    def __repr__(self):  # without an address: workers must agree about the names of tests
        return "Unconvertible()"


TREE = ct.simulate_tree(4, 0)
TABLE = np.arange(8.0).reshape(4, 2) ** 2
ODD_CALLS = {
    "n_samples": lambda odd: ct.mcmc(TABLE, ct.Brownian(), odd),
    "row": lambda odd: ct.TreeSample([TREE]).merge_heights(0, odd),
    "state": ct.state_set,
    "number of leaves": ct.simulate_tree,
    "collapse": lambda odd: ct.plot_dendrogram(TREE, collapse=odd),
    "support": lambda odd: ct.plot_dendrogram(TREE, support=[odd] * 3),
    "variance": ct.Brownian,
    "noise": lambda odd: ct.Brownian(noise=odd),
    "mean": lambda odd: ct.OrnsteinUhlenbeck(mean=odd),
    "rate": ct.OrnsteinUhlenbeck,
    "mutation rate": lambda odd: ct.Multinomial(rate=odd),
    "equilibrium": lambda odd: ct.Multinomial(equilibrium=np.array([odd, odd], dtype=object)),
    "relative_rate": lambda odd: ct.Multinomial(relative_rate=[odd]),
    "root": lambda odd: ct.Brownian().simulate(TREE, n_columns=2, root=odd),
    "powers": lambda odd: ct.evidence(TABLE, ct.Brownian(), powers=[odd, odd]),
    "weights": lambda odd: ct.TreeSample([TREE], [odd]),
    "nodes": lambda odd: ct.Beliefs(TREE, TABLE, ct.Brownian()).at([odd], [1.0]),
    "hold_noise": lambda odd: ct.calibrate(ct.Brownian(), TREE, TABLE, hold_noise=odd),
    "verbose": lambda odd: ct.CoalescentClustering(verbose=odd).fit(TABLE),
}


@pytest.mark.parametrize("name", ODD_CALLS)
@pytest.mark.parametrize(
    "odd", [Unconvertible(), np.timedelta64(1, "s"), np.timedelta64(1), pd.NA, np.array([True, False]), "1.5"], ids=repr
)
def test_odd_objects_are_refused_by_name(name, odd):
    """As numbers and flags; a text is never a number, and spans of time, which NumPy counts as integers, neither."""
    with pytest.raises(InputError, match=name.split()[-1]):
        ODD_CALLS[name](odd)


@pytest.mark.parametrize("size", [1e-310, 1e-160, 1e160, 1.7e308])
@pytest.mark.parametrize(
    "process", [ct.Brownian(), ct.Brownian([1, 1]), ct.Brownian(np.eye(2)), ct.OrnsteinUhlenbeck()]
)
def test_cells_whose_squares_are_no_floats_are_refused_by_column(process, size):
    """Not with a warning of NumPy, which is an error in tests."""
    table = TABLE / 49 * size
    if size > 1e300:
        table = np.array([[1, -1], [1, -1], [-1, 1], [-1, 1]]) * size  # sums of several infinities
    with pytest.raises(InputError, match="column 0"):
        ct.calibrate(process, TREE, table)
    if size > 1:
        with pytest.raises(InputError, match="column 0"):
            process.log_likelihood(TREE, table)


def test_square_symmetric_table_is_no_matrix_of_distances(recwarn):
    """SciPy warns of tables that look like one."""
    assert ct.baselines.linkage_tree(1 - np.eye(3)).heights.tolist() == pytest.approx([0, 0, 0, 2**0.5, 2**0.5])
    assert not recwarn.list


@pytest.mark.filterwarnings("ignore::coaltree.errors.InputWarning")
def test_minimum_size_beyond_integers_is_that_of_all_rows():
    assert ct.CoalescentClustering(n_clusters=2, min_cluster_size=1e300).fit(TABLE).n_clusters_ == 2


def test_lazy_frame_is_refused_before_its_columns_are_read(recwarn):
    with pytest.raises(TypeError, match="collect"):
        ct.CoalescentClustering().fit(pl.LazyFrame({"a": [1.0, 2.0]}))
    with pytest.raises(InputError):
        ct.greedy(pl.LazyFrame({"a": [1.0, 2.0]}), ct.Brownian())
    assert not recwarn.list
