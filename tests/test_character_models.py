"""Characters of taxa get the models of their field: alphabets, partitions, ascertainment, rates; the same from everywhere."""

import functools
import itertools
import json
import math
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.optimize import minimize
from scipy.stats import chisquare, kstest

import coaltree as ct
from coaltree.errors import InputError, InputWarning
from coaltree.process.base import Process, WeightedTrees
from coaltree.process.characters import first_rate
from coaltree.process.site_rates import category_rates
from coaltree.table.partition_file import parse_partitions
from command_line import check_sentence, command_in
from named import refused

pytestmark = [
    pytest.mark.usefixtures("short_chains", "blank_pictures"),
    pytest.mark.filterwarnings("ignore:The chains have not converged"),
]

EXAMPLES = Path(__file__).parent.parent / "examples"
PRIMATES, INSECTS = EXAMPLES / "primates.nex", EXAMPLES / "insects.nex"
BATCHES = 40
BOUND = 6  # standard errors of means of batches: less than one false alarm in a million


def characters(datatype, *columns):
    """Return a frame as `read_characters` makes it: columns are texts with a letter for each row."""
    frame = pd.DataFrame({f"c{j + 1}": pd.Categorical(list(column)) for j, column in enumerate(columns)})
    frame = frame.map(lambda cell: None if cell == "?" else cell).astype("category")
    frame.attrs["datatypes"] = dict.fromkeys(frame.columns, datatype)
    return frame


def fit(frame, **parameters):
    return ct.CoalescentClustering(**parameters).fit(frame)


# -- the process -------------------------------------------------------------------------------------------------------

RELATIVE = np.array([1.0, 1.5, 0.5, 2.0])
EQUAL = [[0.5, 0.5], [1 / 3] * 3, [0.5, 0.5], [0.25] * 4]


def held(rate=1.0, ascertainment=None):
    return ct.Multinomial(rate, EQUAL, ascertainment=ascertainment, hold_equilibrium=True, relative_rate=RELATIVE)


def small_table(seed=1, n=5):
    tree = ct.simulate_tree(n, seed)
    X = held(0.8, "variable").simulate(tree, seed)
    X[0, 0] = np.nan
    return tree, X


@pytest.mark.parametrize("ascertainment", [None, "variable"])
def test_relative_rates_multiply_the_rate_of_each_column(ascertainment):
    tree, X = small_table()
    each = ct.Multinomial(0.7 * RELATIVE, EQUAL, ascertainment=ascertainment)
    process = held(0.7, ascertainment)
    assert process.log_likelihood(tree, X) == pytest.approx(each.log_likelihood(tree, X), abs=1e-12)
    np.testing.assert_array_equal(process.simulate(tree, 3), each.simulate(tree, 3))
    assert process.parameter_names(range(4)) == ["rate"]
    assert process.with_parameter_values(np.array([2.0])).equilibrium[1].tolist() == [1 / 3] * 3
    again = Process.from_dict(json.loads(json.dumps(process.to_dict())))
    assert again.hold_equilibrium
    assert again.log_likelihood(tree, X) == process.log_likelihood(tree, X)


@pytest.mark.parametrize("ascertainment", [None, "variable"])
def test_fit_with_relative_rates_is_optimal(ascertainment):
    tree, X = small_table(n=7)
    result = held(1.0, ascertainment).fit(WeightedTrees([tree], np.ones(1), X), hold_noise=True)
    assert [q.tolist() for q in result.equilibrium] == EQUAL

    def loss(x):
        candidate = held(float(np.exp(x[0])), ascertainment)
        return -candidate.log_likelihood(tree, X) - candidate.log_parameter_prior(X)

    best = minimize(loss, np.zeros(1), method="Nelder-Mead", options={"xatol": 1e-5})
    assert float(result.rate) == pytest.approx(float(np.exp(best.x[0])), rel=1e-2)


@pytest.mark.parametrize("ascertainment", [None, "variable"])
def test_draws_with_relative_rates_match_grid(ascertainment):
    tree, X = small_table()
    start = held(1.0, ascertainment).resolve(X)
    sampler, rng, process, logs = start.sampler(X, True), np.random.default_rng(0), start, []
    for _ in range(400):
        process = sampler.draw(process, tree, rng)
        logs.append(math.log(process.rate))
    assert [q.tolist() for q in process.equilibrium] == EQUAL
    grid = np.linspace(math.log(1e-2), math.log(1e2), 40)
    candidates = [held(math.exp(log_rate), ascertainment) for log_rate in grid]
    density = np.array([c.log_likelihood(tree, X) + c.log_parameter_prior(X) for c in candidates]) + grid
    mass = np.exp(density - density.max())
    means = np.reshape(logs, (BATCHES, -1)).mean(axis=1)
    assert abs(means.mean() - mass @ grid / mass.sum()) < BOUND * means.std(ddof=1) / math.sqrt(BATCHES) + 1e-3


def test_invalid_relative_rates_are_refused():
    with refused("relative_rate positive"):
        ct.Multinomial(relative_rate=[1.0, 0.0])
    with refused("relative_rate positive"):
        ct.Multinomial(relative_rate="fast")
    with refused("hold_equilibrium True"):
        ct.Multinomial(hold_equilibrium="yes")
    with pytest.raises(InputError, match="relative_rate"):
        ct.Multinomial(relative_rate=[1.0]).resolve(np.zeros((2, 3)))


def test_first_rate_is_that_of_the_coalescent():
    """The mean over many trees of a rate of a half, whose standard error is below a tenth of it."""
    truth = ct.Multinomial(0.5, [0.25] * 4, share_equilibrium=True)
    rates = []
    for seed in range(60):
        X = truth.simulate(ct.simulate_tree(30, seed), seed, n_columns=200)
        rates.append(first_rate(X, truth.resolve(X)))
    error = np.std(rates) / math.sqrt(len(rates))
    assert error < 0.05
    assert abs(np.mean(rates) - 0.5) < 5 * error + 0.05  # the estimate is of a convex function


# -- rates of sites ----------------------------------------------------------------------------------------------------


def varying(shape=0.5, rate=1.0):
    return ct.Multinomial(rate, [0.1, 0.2, 0.3, 0.4], share_equilibrium=True, gamma_shape=shape)


def test_mixture_sums_over_all_assignments_of_categories():
    tree = ct.simulate_tree(4, 0)
    process = varying(0.3, 0.7)
    X = process.simulate(tree, 1, n_columns=3)
    X[1, 2] = np.nan
    rates = category_rates(0.3)
    each = [
        process.replace(site_rate=list(assigned)).log_likelihood(tree, X)
        for assigned in itertools.product(rates, repeat=3)
    ]
    assert process.mixture_log_likelihood(tree, X) == pytest.approx(np.logaddexp.reduce(each) - 3 * math.log(4))
    assert process.replace(gamma_shape=None).mixture_log_likelihood(tree, X) == pytest.approx(
        process.replace(gamma_shape=200.0).mixture_log_likelihood(tree, X), abs=0.1
    )


def test_fit_of_gamma_rates_is_optimal_and_recovers_them():
    tree, true = ct.simulate_tree(20, 3), varying().replace(hold_equilibrium=True)
    X = true.simulate(tree, 4, n_columns=600)
    fitted = ct.calibrate(true.replace(rate=3.0, gamma_shape=2.0), tree, X)

    def loss(x):
        candidate = true.replace(rate=math.exp(x[0]), gamma_shape=math.exp(x[1]))
        return -candidate.mixture_log_likelihood(tree, X) - candidate.log_parameter_prior(X)

    best = minimize(loss, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-3}).x
    assert [float(fitted.rate), fitted.gamma_shape] == pytest.approx(np.exp(best), rel=1e-2)
    assert fitted.gamma_shape == pytest.approx(0.5, rel=0.25)  # about four standard errors
    again = Process.from_dict(json.loads(json.dumps(fitted.to_dict())))
    assert again.log_likelihood(tree, X) == fitted.log_likelihood(tree, X)
    assert again.mixture_log_likelihood(tree, X) == fitted.mixture_log_likelihood(tree, X)


def test_gamma_rates_without_data_are_those_of_the_prior():
    """Shapes from an exponential distribution, categories equally likely; one false alarm in a million."""
    tree, X = ct.simulate_tree(3, 0), np.full((3, 5), np.nan)
    process = varying().resolve(X)
    sampler, rng, shapes, counts = process.sampler(X, True), np.random.default_rng(0), [], np.zeros(4)
    for step in range(500):
        process = sampler.draw(process, tree, rng)
        if step % 5 == 4:  # successive shapes are similar
            shapes.append(process.gamma_shape)
            counts += (process.site_rate[:, None] == category_rates(process.gamma_shape)).sum(axis=0)
    assert kstest(shapes, "expon").pvalue > 1e-6
    assert chisquare(counts).pvalue > 1e-6


def test_chains_recover_shape_and_height():
    tree, true = ct.simulate_tree(8, 5), varying(0.5, 0.8)
    X = true.simulate(tree, 6, n_columns=400)
    sample = ct.mcmc(X, varying(2.0), 80, 2, draw_parameters=True, random_state=0)
    shape = sample.parameters["gamma_shape"][:, sample.warmup :]
    assert abs(shape.mean() - 0.5) < 4 * shape.std()
    assert shape.std() < 0.3
    product = (sample.traces["root_height"] * sample.parameters["rate"])[:, sample.warmup :]
    assert abs(product.mean() - 0.8 * tree.heights[-1]) < 4 * product.std()
    equal = ct.mcmc(X, true.replace(gamma_shape=None), 80, 2, draw_parameters=True, random_state=0)
    without = (equal.traces["root_height"] * equal.parameters["rate"])[:, equal.warmup :]
    assert without.mean() < product.mean() - 2 * product.std()  # equal rates find the tree too low
    fourth = sample.processes()[3]
    assert set(fourth.site_rate) <= set(category_rates(shape[0, 3]))
    assert set(sample.parameters) == {"rate", *(f"equilibrium[{k}]" for k in range(4)), "gamma_shape"}


def test_rates_from_everywhere(tmp_path, monkeypatch, capsys):
    frame = ct.read_characters(PRIMATES)
    model = fit(frame, rates="gamma", model="jc")
    assert model.process_.gamma_shape is not None
    assert len(set(model.process_.site_rate)) > 4
    assert fit(frame, rates="equal").process_.to_dict() == fit(frame).process_.to_dict()
    command = command_in(tmp_path, monkeypatch, capsys)
    code, output, error = command("fit", PRIMATES, "--rates", "gamma", "--model", "jc", "-o", "out")
    assert code == 0, error
    assert "JC+G4 (equal frequencies), all recorded, rate " in output
    assert ", gamma shape " in output
    facts = json.loads(Path("out/summary.json").read_text())
    assert facts["partitions"][0]["gamma_shape"] == model.process_.gamma_shape
    assert facts["settings"]["rates"] == "gamma"
    again = ct.load_model(tmp_path / "out" / "model.coaltree")
    assert again.process_.to_dict() == model.process_.to_dict()
    assert again.get_params()["rates"] == "gamma"
    sampled = fit(frame, rates="gamma", inference="mcmc", n_samples=8, n_chains=2, random_state=0)
    assert set(sampled.sample_.parameters) == {"rate", *(f"equilibrium[{k}]" for k in range(4)), "gamma_shape"}
    sampled.save("sampled.coaltree")
    scores = sampled.score_samples(frame[:2])
    assert ct.load_model("sampled.coaltree").score_samples(frame[:2]).tolist() == scores.tolist()
    genes = {gene: frame.attrs["partitions"][gene] for gene in ("first_gene", "second_gene")}
    parts = fit(frame, rates="gamma", partitions=genes).process_.subprocesses(60)
    assert parts[0][0].gamma_shape != parts[1][0].gamma_shape
    insects = fit(ct.read_characters(INSECTS), rates="gamma").process_
    assert (insects.ascertainment, insects.gamma_shape is None) == ("variable", False)


@pytest.mark.parametrize("ascertainment", ["variable", "present"])
def test_recorded_columns_at_gamma_rates_have_probabilities_that_add_up(ascertainment):
    tree = ct.simulate_tree(4, 1)
    process = ct.Multinomial(0.7, [[0.2, 0.3, 0.5]], ascertainment=ascertainment, gamma_shape=0.4)
    columns = np.array(list(itertools.product(range(3), repeat=4)), dtype=float)
    recorded = [column for column in columns if column.max() > (column.min() if ascertainment == "variable" else 0)]
    logs = [process.mixture_log_likelihood(tree, column[:, None]) for column in recorded]
    assert np.exp(logs).sum() == pytest.approx(1.0)


def recorded_table():
    """Return a small tree and variable columns of two and three states with their process, at gamma rates."""
    tree = ct.simulate_tree(5, 1)
    process = ct.Multinomial(1.0, EQUAL * 2, ascertainment="variable", hold_equilibrium=True, gamma_shape=0.5)
    process = process.replace(relative_rate=np.tile(RELATIVE, 2))
    X = process.simulate(tree, 3)
    X[0, 0] = np.nan
    return tree, X, process


def test_fit_of_gamma_rates_with_ascertainment_is_optimal():
    tree, X, process = recorded_table()
    fitted = ct.calibrate(process, tree, X)

    def loss(x):
        candidate = process.replace(rate=math.exp(x[0]), gamma_shape=math.exp(x[1]))
        return -candidate.mixture_log_likelihood(tree, X) - candidate.log_parameter_prior(X)

    best = minimize(loss, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-3}, bounds=[(-9, 9), (-6.9, 5.2)])
    found = np.log([float(fitted.rate), fitted.gamma_shape])
    assert loss(found) < best.fun + 1e-3


def test_draws_of_gamma_rates_with_ascertainment_match_grid():
    """Rate and shape together, with the categories and the columns that were not recorded."""
    tree, X, start = recorded_table()
    process, logs = start.resolve(X), []
    sampler, rng = process.sampler(X, True), np.random.default_rng(0)
    for _ in range(400):
        process = sampler.draw(process, tree, rng)
        logs.append([math.log(process.rate), math.log(process.gamma_shape)])
    grid = list(itertools.product(np.linspace(-4, 4, 14), np.linspace(-6, 2.5, 14)))
    candidates = [start.replace(rate=math.exp(a), gamma_shape=math.exp(b)) for a, b in grid]
    density = [
        c.mixture_log_likelihood(tree, X) + c.log_parameter_prior(X) + a + b
        for c, (a, b) in zip(candidates, grid, strict=True)
    ]
    mass = np.exp(density - np.max(density))
    batches = np.reshape(logs, (BATCHES, -1, 2)).mean(axis=1)
    errors = batches.std(axis=0, ddof=1) / math.sqrt(BATCHES)
    assert np.all(np.abs(batches.mean(axis=0) - mass @ np.array(grid) / mass.sum()) < BOUND * errors + 1e-2)


def test_invalid_gamma_rates_are_refused():
    frame = ct.read_characters(INSECTS)
    with refused("rates 'fast' 'equal' 'gamma'"):
        fit(frame, rates="fast")
    for wrong in (0.0, -1.0, math.nan, "flat", 1e9):
        with refused("gamma_shape number 0.001 200"):
            ct.Multinomial(gamma_shape=wrong)
    with refused("gamma_shape one rate"):
        ct.Multinomial([1.0, 2.0], gamma_shape=1.0)
    with refused("site_rate gamma_shape"):
        ct.Multinomial(site_rate=[1.0])


# -- alphabets and defaults --------------------------------------------------------------------------------------------


def test_sites_share_alphabet_and_equilibrium_and_constant_ones_stay():
    frame = characters("dna", "AAAA", "CCTT", "GGG?", "AATT")
    model = fit(frame)
    assert model.process_.share_equilibrium
    assert not model.process_.hold_equilibrium
    assert [len(q) for q in model.process_.equilibrium] == [4] * 4
    assert not model.process_.noise.any()
    assert model.encoding_.categories == (("A", "C", "G", "T"),) * 4
    assert not any("constant" in remark for remark in model.remarks_)
    assert list(model.parameters_) == ["c1", "c2", "c3", "c4"]


@pytest.mark.parametrize(
    ("datatype", "columns", "states"),
    [
        ("rna", ["AACC", "GGGG"], ["A", "C", "G", "U"]),
        ("protein", ["MMKK", "LLLL"], list("ACDEFGHIKLMNPQRSTVWY")),
        ("dna", ["A-CC", "GGGG"], ["A", "C", "G", "T", "-"]),
        ("cognates", ["0011", "1111"], ["0", "1"]),
    ],
)
def test_alphabets(datatype, columns, states):
    model = fit(characters(datatype, *columns))
    assert model.encoding_.categories == (tuple(states),) * 2


def test_ambiguous_cells_exclude_states_that_no_other_cell_has():
    """R is information among A, C, G and T, also where all other cells are A or G."""
    column = pd.DataFrame({"site": pd.Series(["A", "G", frozenset("AG"), "A"], dtype=object)})
    column.attrs["datatypes"] = {"site": "dna"}
    model = fit(column)
    assert model._model.matrix[:, 0].tolist() == [0, 2, ct.state_set(0, 2), 0]


def test_standard_characters_have_their_own_numbers_of_states():
    model = fit(characters("standard", "0011", "0122", "0101", "00?2"))
    assert [len(q) for q in model.process_.equilibrium] == [2, 3, 2, 3]
    assert model.process_.hold_equilibrium
    # Rates of changes are equal: that of redraws is k / (k - 1) times as high.
    assert model.process_.relative_rate * [1 / 2, 2 / 3, 1 / 2, 2 / 3] == pytest.approx(
        model.process_.relative_rate[0] / 2
    )
    assert model.process_.ascertainment == "variable"
    shared = fit(characters("standard", "0011", "0122"), model="f81")
    assert shared.process_.share_equilibrium
    assert [len(q) for q in shared.process_.equilibrium] == [3, 3]


@pytest.mark.parametrize(("model", "held"), [("jc", True), ("mk", True), ("f81", False), (None, False)])
def test_model_parameter(model, held):
    process = fit(characters("dna", "AACC", "GGGT"), model=model).process_
    assert process.hold_equilibrium == held
    assert (process.equilibrium[0].tolist() == [0.25] * 4) == held


def test_ordinary_tables_become_characters_by_a_parameter():
    table = pd.DataFrame({"a": list("xxyy"), "b": list("xyxy"), "size": [1.5, 2.0, 3.0, 5.0]})
    ordinary, declared = fit(table), fit(table, model="mk")
    assert [type(part).__name__ for part, _ in declared.process_.subprocesses(3)] == [
        "OrnsteinUhlenbeck",
        "Multinomial",
    ]
    part = declared.process_.subprocesses(3)[1][0]
    assert part.hold_equilibrium
    assert part.ascertainment == "variable"
    assert ordinary.process_.subprocesses(3)[1][0].noise.any()
    assert fit(pd.DataFrame({"a": list("ACGT"), "b": list("AACC")}), model="jc").encoding_.categories[1] == tuple(
        "ACGT"
    )
    with refused("model characters categorical column"):
        fit([[1.0], [2.5]], model="jc")


def test_small_whole_numbers_become_characters_by_a_parameter(tmp_path, monkeypatch, capsys):
    columns = {"legs": [0, 0, 1, 1], "eyes": [0, 2, np.nan, 1], "size": [1.5, 2.0, 3.0, 5.0], "cells": [1, 2, 3, 12]}
    table = pd.DataFrame(columns, index=list("wxyz"))
    with pytest.warns(
        InputWarning, match="2 columns of whole numbers from 0 to 9 are read as characters.*: 'legs', 'eyes'"
    ):
        model = fit(table, model="mk")
    assert model.encoding_.kinds == ("categorical", "categorical", "real", "real")
    assert model.encoding_.categories == ((0, 1), (0, 1, 2))
    assert model.score_samples(table).shape == (4,)
    assert fit(table).encoding_.kinds == ("real",) * 4
    with pytest.warns(InputWarning, match="2 columns of whole numbers"):
        assert fit(table.assign(cells=list("abcd")), rates="equal").encoding_.partitions.keys() == {
            "legs",
            "eyes",
            "cells",
        }
    assert fit(table, model="jc", categorical_features=["legs"]).encoding_.kinds[1] == "real"  # the user has said so
    command = command_in(tmp_path, monkeypatch, capsys)
    table.to_csv("table.csv", index_label="name")
    code, _, error = command("fit", "table.csv", "-o", "out", "--model", "mk", "--real", "ey*")
    assert code == 0, error
    assert "columns: 3 real (eyes, size, cells), 1 character (standard)" in error
    assert command("score", "out/model.coaltree", "table.csv")[0] == 0


# -- ascertainment -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("datatype", "columns", "expected", "remark"),
    [
        ("standard", ["0011", "0122"], "variable", None),
        ("standard", ["0011", "2222", "0122"], None, "1 column of partition 'standard' show one state only ('c2')"),
        ("standard", ["0011", "1111"], "present", "conditioned on columns in which some row shows state 1"),
        ("standard", ["0011", "0000"], None, "not conditioned"),
        ("restriction", ["0011", "1111"], "present", None),
        ("cognates", ["0011", "1111", "0001"], "present", None),
        ("cognates", ["0011", "0000"], None, "show state 0 only ('c2')"),
        ("dna", ["AACC", "GGGG"], None, None),
        ("dna", ["AACC", "GGTT"], None, None),
    ],
)
def test_default_ascertainment(datatype, columns, expected, remark):
    frame = characters(datatype, *columns)
    model = ct.CoalescentClustering()
    if remark is None:
        model.fit(frame)
    else:
        with pytest.warns(InputWarning):
            model.fit(frame)
        assert remark in model.remarks_[0]
    assert model.process_.ascertainment == expected
    assert model.process_.check_columns([len(c) for c in model.encoding_.categories]) is None


def test_variable_sites_of_an_alignment_are_conditioned_on_without_the_constant_ones(tmp_path, monkeypatch, capsys):
    frame = ct.read_characters(PRIMATES)
    with pytest.warns(InputWarning, match="13 columns of partition 'dna' show one state only, and are left out"):
        model = fit(frame, ascertainment="variable")
    assert model.process_.ascertainment == "variable"
    assert len(model.process_.equilibrium) == 47
    command = command_in(tmp_path, monkeypatch, capsys)
    code, _, error = command("fit", PRIMATES, "--ascertainment", "variable", "-o", "out")
    assert code == 0
    assert "13 columns of partition 'dna'" in error
    again = ct.load_model(tmp_path / "out" / "model.coaltree")
    assert again.tree_.to_newick() == model.tree_.to_newick()
    assert again.process_.ascertainment == "variable"


def test_cognates_that_every_language_has_are_kept():
    frame = characters("cognates", "0011", "1111", "1110", "??11")
    model = fit(frame, ascertainment="present")
    assert len(model.process_.equilibrium) == 4
    table = frame.astype(str).replace("nan", None)
    assert not table.attrs or table.attrs.pop("datatypes")  # as from any other table
    same = fit(table, ascertainment="present")
    assert same.process_.ascertainment == "present"
    assert same.encoding_.categories == (("0", "1"),) * 4


WORDS = {"w": "11001", "x": "11001", "y": "10101", "z": "10110"}
"""Cognate sets of four languages; all have the first one."""


@pytest.mark.parametrize(
    ("model", "absent", "present"),
    [
        (None, "absent", "present"),
        ("f81", "No", "Yes"),
        ("mk", "no", "yes"),
        (None, 0, 1),
        (None, False, True),
        ("f81", "-", "x"),
    ],
)
def test_absence_is_state_0_whatever_the_order_of_the_columns(model, absent, present):
    expected = fit_words(model)
    assert expected.process_.hold_equilibrium == (model == "mk")
    frame = words(absent, present).iloc[:, ::-1]
    actual = fit(frame, model=model, ascertainment="present", categorical_features=list(frame.columns))
    assert set(actual.encoding_.categories) == {(absent, present)}
    assert actual.remarks_ == expected.remarks_
    assert actual.process_.rate == pytest.approx(expected.process_.rate)
    assert actual.process_.equilibrium[0] == pytest.approx(expected.process_.equilibrium[0])


@pytest.mark.parametrize(
    ("absent", "present", "declared", "first"),
    [
        ("-", "+", None, "-"),
        ("none", "a", None, "none"),
        ("lacks", "has", ["lacks", "has"], "lacks"),
        ("x", "b", None, "b"),
    ],
)
def test_absence_is_state_0_of_a_given_process(absent, present, declared, first):
    frame = words(absent, present).drop(columns="c0")  # which all rows show
    if declared:
        frame = frame.astype(pd.CategoricalDtype(declared))
    is_word = absent in ("-", "none")
    with nullcontext() if is_word else pytest.warns(InputWarning, match="4 columns have no word for absence"):
        model = fit(frame, categorical_process=ct.Multinomial(ascertainment="present"))
    assert {states[0] for states in model.encoding_.categories} == {first}


def words(absent, present):
    rows = [[present if cell == "1" else absent for cell in row] for row in WORDS.values()]
    return pd.DataFrame(rows, index=list(WORDS)).rename(columns="c{}".format)


@functools.cache
def fit_words(model):
    return fit(words("0", "1"), model=model, ascertainment="present")


def test_states_whose_absence_cannot_be_told_are_refused():
    with refused("column 'c2' partition 'standard' 'has', 'lacks': write 0 for absent"):
        fit(pd.DataFrame({"c1": ["has"] * 3, "c2": ["lacks", "has", "has"]}), ascertainment="present")
    with refused("column 'c1' '0', '1', '2': write 0 for absent"):
        fit(characters("standard", "0012", "0110"), ascertainment="present")
    for datatype, cells in (("dna", "AACC"), ("protein", "MMKK")):
        with refused(f"Partition '{datatype}' absent or present leave it out"):
            fit(characters(datatype, cells), ascertainment={datatype: "present"})


def test_remarks_name_the_state_of_absence():
    table = pd.DataFrame({"a": ["no", "no", "no"], "b": ["yes", "no", "yes"]})
    with pytest.warns(InputWarning, match="1 column of partition 'standard' show 'no' only, and is left out"):
        fit(table, ascertainment="present")


def test_models_without_ascertainment_ignore_the_order_of_columns():
    columns = {"a": ["red", "blue", "red", "green"], "b": ["10", "9", "9", "10"], "c": ["blue", "red", "green", "red"]}
    forward = fit(pd.DataFrame(columns), model="f81")
    backward = fit(pd.DataFrame(dict(reversed(columns.items()))), model="f81")
    assert set(forward.encoding_.categories) == set(backward.encoding_.categories)
    assert forward.encoding_.categories[0] == ("9", "10", "blue", "green", "red")


def test_marks_for_beast_are_left_out():
    frame = characters("restriction", "0000", "0011", "1110", "00??").rename(
        columns={"c1": "hand_ascertainment", "c4": "tail_Ascertainment"}
    )
    frame.attrs["datatypes"] = dict.fromkeys(frame.columns, "restriction")
    with pytest.warns(InputWarning, match=r"2 columns hold no data .*: 'hand_ascertainment'.*'tail_Ascertainment'"):
        model = fit(frame)
    assert model.process_.ascertainment == "present"
    assert len(model.process_.equilibrium) == 2
    with pytest.warns(InputWarning, match="2 columns hold no data"):
        assert ct.greedy(frame).process.ascertainment == "present"
    frame.attrs["datatypes"] = dict.fromkeys(frame.columns, "standard")
    with pytest.warns(InputWarning, match="2 columns hold no data"):
        process = fit(frame).process_
    assert process.ascertainment == "present"
    assert not process.hold_equilibrium  # as for cognates


def test_invalid_ascertainment_is_refused(tmp_path, monkeypatch, capsys):
    frame = characters("dna", "AACC", "GGTT")
    with refused("ascertainment 'variable', 'present' 'all'"):
        fit(frame, ascertainment="some")
    with refused("ascertainment names 'genes' partitions 'dna'"):
        fit(frame, ascertainment={"genes": "all"})
    with refused("ascertainment 'some' 'variable'"):
        fit(frame, ascertainment={"dna": "some"})
    with refused("All columns partition 'dna' show one state leave it out"):
        fit(characters("dna", "AAAA", "GGGG"), ascertainment="variable")
    with refused("model categorical_process both"):
        fit(frame, model="jc", categorical_process=ct.Multinomial())
    command = command_in(tmp_path, monkeypatch, capsys)
    check_sentence(command("fit", PRIMATES, "-o", "out", "--ascertainment", "some"), "--ascertainment is some")
    check_sentence(
        command("fit", PRIMATES, "-o", "out", "--ascertainment", "all,dna=variable"), "for all partitions and for some"
    )


# -- partitions --------------------------------------------------------------------------------------------------------


def test_partitions_have_their_own_rate_and_equilibrium(tmp_path, monkeypatch, capsys):
    frame = ct.read_characters(PRIMATES)
    genes = {name: frame.attrs["partitions"][name] for name in ("first_gene", "second_gene")}
    model = fit(frame, partitions=genes)
    parts = model.process_.subprocesses(60)
    assert [list(columns) for _, columns in parts] == [list(range(30)), list(range(30, 60))]
    assert parts[0][0].rate != parts[1][0].rate
    assert set(model.encoding_.partitions.values()) == {"first_gene", "second_gene"}
    (tmp_path / "raxml.txt").write_text("DNA, first_gene = 1-30\nDNA, second_gene = 31-60\n")
    (tmp_path / "iqtree.nex").write_text(
        "#nexus\nbegin sets;\n charset first_gene = x.phy: 1-30;\n charset second_gene = 31-.;\n charset both = 1-60;\n"
        " charpartition mine = GTR+G:first_gene, HKY:second_gene;\nend;\n"
    )
    for name in ("raxml.txt", "iqtree.nex"):
        again = fit(frame, partitions=tmp_path / name)
        assert again.process_.to_dict() == model.process_.to_dict()
    command = command_in(tmp_path, monkeypatch, capsys)
    code, output, error = command(
        "fit", PRIMATES, "--partitions", "raxml.txt", "-o", "out", "--ascertainment", "first_gene=variable"
    )
    assert code == 0, error
    loaded = ct.load_model("out/model.coaltree")
    assert [part.ascertainment for part, _ in loaded.process_.subprocesses(60)] == ["variable", None]
    assert command("score", "out/model.coaltree", PRIMATES)[0] == 0
    facts = json.loads(Path("out/summary.json").read_text())
    assert [(part["partition"], part["ascertainment"]) for part in facts["partitions"]] == [
        ("first_gene", "variable"),
        ("second_gene", "all"),
    ]
    assert "second_gene: 30 characters, F81 (fitted frequencies), all recorded, rate " in output
    assert "columns: 60 characters (dna)" in error
    loaded.report("report.html")
    assert "<li>second_gene: 30 characters, F81 (fitted frequencies)" in Path("report.html").read_text(encoding="utf-8")
    assert [(part["model"], part["rate"]) for part in facts["partitions"]] == [
        ("F81", pytest.approx(float(part.rate))) for part, _ in loaded.process_.subprocesses(60)
    ]
    code, _, error = command(
        "fit", PRIMATES, "--partitions", "raxml.txt", "-o", "other", "--drop", "site2,third_positions"
    )
    assert code == 0, error
    assert ct.load_model("other/model.coaltree").encoding_.partitions["site31"] == "second_gene"
    model.save("model.coaltree")
    restored = ct.load_model("model.coaltree")
    assert restored.get_params()["partitions"] == genes
    assert restored.score_samples(frame[:2]).tolist() == model.score_samples(frame[:2]).tolist()


def test_parameters_have_the_names_of_their_partitions(tmp_path, monkeypatch, capsys):
    frame = characters("dna", "AACC", "GGTT", "AAAC").assign(size=[1.5, 2.0, 3.0, 5.0])
    frame.attrs["datatypes"] = dict.fromkeys(["c1", "c2", "c3"], "dna")
    genes = {"one": ["c1", "c3"], "two": ["c2"]}
    options = {"inference": "mcmc", "n_samples": 5, "n_chains": 1, "random_state": 0}
    model = fit(frame, partitions=genes, **options)
    assert {"rate[one]", "rate[two]", "equilibrium[3][two]"} < set(model.sample_.parameters)
    model.save(tmp_path / "model.coaltree")
    again = ct.load_model(tmp_path / "model.coaltree")
    assert list(again.sample_.parameters) == list(model.sample_.parameters)
    assert again.process_.parameter_names(range(4)) == model.process_.parameter_names(range(4))
    command = command_in(tmp_path, monkeypatch, capsys)
    code, _, error = command(
        "fit", PRIMATES, "-o", "out", "--partitions", EXAMPLES / "genes.txt", "--inference", "mcmc", "--samples", 5,
        "--chains", 1,
    )  # fmt: skip
    assert code == 0, error
    header = next(line for line in Path("out/trace_1.log").read_text().splitlines() if "log_joint" in line).split("\t")
    assert {"rate[first_gene]", "rate[second_gene]"} < set(header)
    with refused("partition 7 must be a name"):
        ct.Multinomial(partition=7)


def test_columns_without_partition_are_one_by_themselves():
    frame = characters("dna", "AACC", "GGTT", "AAAC")
    with pytest.warns(InputWarning, match="2 columns of characters are in no partition, .* 'rest': 'c1', 'c3'"):
        model = fit(frame, partitions={"gene": ["c2"]})
    assert model.encoding_.partitions == {"c1": "rest", "c2": "gene", "c3": "rest"}
    mixed = pd.concat([frame, characters("standard", "0011").rename(columns={"c1": "legs"})], axis=1)
    mixed.attrs["datatypes"] = dict.fromkeys(frame.columns, "dna") | {"legs": "standard"}
    model = fit(mixed)
    assert [part.ascertainment for part, _ in model.process_.subprocesses(4)] == [None, "variable"]
    assert set(model.encoding_.partitions.values()) == {"dna", "standard"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("DNA, one = 1-9", "line 1 1-9 not within 4 characters"),
        ("DNA, one = 1-x", "line 1 '1-x' no position"),
        ("one two three", "line 1 no partition DNA, gene1"),
        ("", "has no partitions"),
        ("DNA, a = 1\nDNA, a = 2", "partition 'a' twice"),
        ("#nexus begin sets; charpartition p = GTR:none; end;", "partition 'GTR' 'none' no position"),
        ("DNA, a = 0-2", "line 1 0-2 not within"),
        ("DNA, a = 3-1", "line 1 3-1 not within"),
    ],
)
def test_invalid_partition_files_are_refused(text, words):
    with refused(words):
        parse_partitions(text, "parts.txt", list("abcd"))


def test_invalid_partitions_are_refused(tmp_path):
    frame = characters("dna", "AACC", "GGTT")
    with refused("partitions mapping"):
        fit(frame, partitions={"gene": "c1"})
    with refused("partitions mapping"):
        fit(frame, partitions=["c1"])
    with refused("Partition 'gene' 'c9' no column"):
        fit(frame, partitions={"gene": ["c9"]})
    with refused("'c1' 'a' 'b' belongs to one"):
        fit(frame, partitions={"a": ["c1"], "b": ["c1", "c2"]})
    with refused("is no file"):
        fit(frame, partitions=str(tmp_path / "none.txt"))
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with refused("is no text"):
        fit(frame, partitions=tmp_path / "binary")


# -- the same from everywhere ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [PRIMATES, INSECTS], ids=["primates", "insects"])
def test_shell_estimator_and_functions_agree(path, tmp_path, monkeypatch, capsys):
    frame = ct.read_characters(path)
    options = {"n_samples": 6, "n_chains": 2, "random_state": 0}
    sample = ct.mcmc(frame, **options)
    model = fit(frame, inference="mcmc", **options)
    command = command_in(tmp_path, monkeypatch, capsys)
    code, _, error = command("fit", path, "--inference", "mcmc", "--samples", 6, "--chains", 2, "-o", "out")
    assert code == 0, error
    shell = ct.load_model(tmp_path / "out" / "model.coaltree").sample_
    expected = [tree.to_newick() for tree in sample.trees]
    assert sample.trees[0].leaf_names == tuple(frame.index)
    assert "rate" in sample.parameters
    for other in (model.sample_, shell):
        assert [tree.to_newick() for tree in other.trees] == expected
        assert sorted(other.parameters) == sorted(sample.parameters)
    assert ct.greedy(frame).process.to_dict() == fit(frame).process_.to_dict()


@pytest.mark.parametrize("datatype", ["dna", "protein", "standard", "restriction", "sets"])
def test_frames_of_polars_are_those_of_pandas(datatype, tmp_path):
    """The same process and tree, also after columns were selected."""
    symbols = {"rna": "ACGU", "protein": "ACDE", "standard": "0101", "restriction": "0101"}.get(datatype, "ACGT")
    rows = "\n".join(
        f"row{k} {row.translate(str.maketrans('0123', symbols))}" for k, row in enumerate(["0123", "0133", "1012"])
    )
    kind = "dna" if datatype == "sets" else datatype
    rows = rows.replace("A", "R").replace("T", "Y").replace("C", "M").replace("G", "K") if datatype == "sets" else rows
    symbol_list = 'symbols="01"' if kind == "standard" else ""
    header = f"#NEXUS begin data; dimensions ntax=3 nchar=4; format datatype={kind} {symbol_list};"
    (tmp_path / "x.nex").write_text(f"{header} matrix {rows}; end;")
    pandas, polars = (ct.read_characters(tmp_path / "x.nex", library=library) for library in ("pandas", "polars"))
    for one, other in ((pandas, polars), (pandas.iloc[:, 1:], polars.drop(polars.columns[1]))):
        expected, actual = ct.greedy(one), ct.greedy(other)
        assert actual.process.to_dict() == expected.process.to_dict()
        assert actual.tree == expected.tree


def test_other_frames_of_polars_have_no_characters():
    frame = pl.DataFrame({"taxon": ["a", "b"], "order": pl.Series(["SOV", "SVO"], dtype=pl.Enum(["SOV", "SVO"]))})
    for other in (frame, frame.rename({"taxon": "name"})):
        with refused("process characters read_characters"):
            ct.greedy(other)


def test_functions_take_frames_with_a_process():
    frame = ct.read_characters(PRIMATES)
    genes = [[int(name[4:]) - 1 for name in frame.attrs["partitions"][gene]] for gene in ("first_gene", "second_gene")]
    parts = ct.Mixed(*((ct.Multinomial(share_equilibrium=True), gene) for gene in genes))
    found = ct.greedy(frame, parts)
    assert [len(q) for part, _ in found.process.subprocesses(60) for q in part.equilibrium] == [4] * 60
    jukes_cantor = ct.Multinomial(4 / 3, [0.25] * 4, share_equilibrium=True, hold_equilibrium=True)
    sample = ct.mcmc(frame, jukes_cantor, 5, 1, random_state=0)
    assert not sample.parameters
    tree = sample.trees[0]
    assert sample.log_joints[0] == pytest.approx(ct.log_joint(tree, frame, jukes_cantor))
    assert ct.calibrate(jukes_cantor, tree, frame).rate != jukes_cantor.rate
    with pytest.warns(InputWarning, match="collapsed"):
        particles = ct.smc(frame, jukes_cantor, n_particles=2, random_state=0)
    assert particles.trees[0].leaf_names == tuple(frame.index)
    with pytest.warns(InputWarning):
        evidence = ct.evidence(frame, n_runs=2, n_chains=2, n_samples=2, thin=2, random_state=0)
    assert math.isfinite(evidence.log_evidence)
    assert ct.refine(tree, frame, jukes_cantor).tree.n_leaves == 9


def test_estimator_takes_processes_over_characters():
    frame = ct.read_characters(PRIMATES)
    model = fit(frame, categorical_process=ct.Multinomial(share_equilibrium=True))
    assert len(model.process_.equilibrium) == 60
    assert model.encoding_.partitions == {}
    genes = [[int(name[4:]) - 1 for name in frame.attrs["partitions"][gene]] for gene in ("first_gene", "second_gene")]
    parts = ct.Mixed(
        *((ct.Multinomial(rate, share_equilibrium=True), gene) for rate, gene in zip((1, 2), genes, strict=True))
    )
    model = fit(frame, categorical_process=parts)
    assert model.score_samples(frame).shape == (9,)


def test_functions_need_a_process_for_other_tables():
    with refused("process None read_characters"):
        ct.mcmc([[0.0], [1.0]])
    with refused("process None read_characters"):
        ct.greedy(pd.DataFrame({"a": [0.0, 1.0]}))
    frame = characters("dna", "AACC").assign(size=[1.0, 2.0, 3.0, 4.0])
    with refused("column 'size' no character"):
        ct.greedy(frame)
    unknown = characters("dna", "????")
    with refused("no cell that is known"):
        ct.greedy(unknown)


def test_resolution_is_refused_before_chains_run():
    with refused("resolution"):
        fit(ct.read_characters(PRIMATES), inference="mcmc", resolution=0.5)


def test_parameters_of_characters_can_be_held():
    frame = ct.read_characters(PRIMATES)
    model = fit(frame, inference="mcmc", n_samples=5, n_chains=1, draw_parameters=False, random_state=0)
    assert not model.sample_.parameters


def test_imputation_uses_the_model():
    """Three rows are G, and the nearest relative of the unknown one is one of them: a C was never seen."""
    frame = characters("dna", "AAAACCCC", "GGG?TTTT", "GGGGGGG?", "AAAACCCC", "TTTTAAAA")
    imputer = ct.CoalescentImputer(random_state=0).fit(frame)
    filled = imputer.transform(frame)
    assert filled["c2"][3] == "G"
    assert filled["c3"][7] == "G"
    predicted = imputer.predictive(frame)["c3"]
    assert predicted.categories == tuple("ACGT")
    assert predicted.probability[7].sum() == pytest.approx(1.0)
    assert (predicted.probability[7] > 0).all()


def test_new_rows_may_have_states_that_the_fit_lacks():
    frame = characters("dna", "AACC", "GGGG")
    model = fit(frame)
    new = pd.DataFrame({"c1": ["T", "A"], "c2": ["G", "G"]})
    scores = model.score_samples(new)
    assert np.isfinite(scores).all()
    assert scores[0] < scores[1]


@pytest.mark.parametrize(("fitted", "new"), [("dna", "protein"), ("protein", "dna"), ("standard", "rna")])
def test_new_rows_of_another_datatype_are_refused(fitted, new, tmp_path, monkeypatch, capsys):
    command = command_in(tmp_path, monkeypatch, capsys)
    for datatype, letters in (("dna", "ACGT"), ("rna", "ACGU"), ("protein", "MKLV"), ("standard", "0101")):
        rows = "\n".join(f"{name} {letters}{letters[k]}" for k, name in enumerate("abc"))
        header = f"#NEXUS begin data; dimensions ntax=3 nchar=5; format datatype={datatype}; charlabels s1 s2 s3 s4 s5;"
        Path(f"{datatype}.nex").write_text(f"{header} matrix\n{rows}\n; end;")
    assert command("fit", f"{fitted}.nex", "-o", "out", "--ascertainment", "all")[0] == 0
    check_sentence(
        command("score", "out/model.coaltree", f"{new}.nex"),
        "'s1'",
        new,
        fitted if fitted != "standard" else "no molecule",
    )
    model = ct.load_model("out/model.coaltree")
    for library in ("pandas", "polars"):
        with refused(f"Column s1 {new} alignment datatype"):
            model.score_samples(ct.read_characters(f"{new}.nex", library=library))
        assert np.isfinite(model.score_samples(ct.read_characters(f"{fitted}.nex", library=library))).all()


def test_scores_of_all_new_rows_add_up_to_one():
    """The predictive density of characters is a distribution over all sequences."""
    model = fit(characters("dna", "AACC", "GGGT"))
    rows = pd.DataFrame(list(itertools.product("ACGT", repeat=2)), columns=["c1", "c2"])
    assert np.exp(model.score_samples(rows)).sum() == pytest.approx(1.0)


def test_evidence_compares_frequencies(tmp_path, monkeypatch, capsys):
    from coaltree.workflow import comparison

    for name, value in (("N_RUNS", 2), ("N_CHAINS", 2), ("N_SAMPLES", 2)):
        monkeypatch.setattr(comparison, name, value)
    part = fit(ct.read_characters(PRIMATES).iloc[:4, :20], rates="gamma")
    assert {model.name: model.n_fitted for model in comparison.compare_models(part._model)} == {
        "equal frequencies and gamma rates": 2,
        "equal frequencies and equal rates": 1,
        "fitted frequencies and gamma rates": 5,
        "fitted frequencies and equal rates": 4,
    }
    actual = comparison.compare_models(fit(ct.read_characters(INSECTS).iloc[:, 1:9])._model)
    assert {model.name for model in actual} == {
        "equal frequencies and only variable columns recorded",
        "equal frequencies and all columns recorded",
    }
    assert all(model.n_fitted == 1 for model in actual)


def test_dry_run_reads_characters_as_the_fit_does(tmp_path, monkeypatch, capsys):
    command = command_in(tmp_path, monkeypatch, capsys)
    code, _, error = command("fit", PRIMATES, "--dry-run")
    assert code == 0
    assert "constant" not in error
    assert "cop" not in error  # equal sites are no copies
    assert "13 columns of partition 'dna'" in command("fit", PRIMATES, "--dry-run", "--ascertainment", "variable")[2]
