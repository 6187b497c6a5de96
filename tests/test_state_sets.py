"""Cells that are one of several states: everywhere a cell is used.

The probability of a set is the sum of those of its states, so what is expected comes from tables in which a set is replaced by
each of its states in turn. Such tables without sets are checked by `reference.py` elsewhere, and here once more.
"""

import warnings
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.linalg import expm
from scipy.special import logsumexp

import coaltree as ct
import exact_posterior
import reference
from coaltree.errors import InputError, InputWarning
from coaltree.inference.posterior_draws import Draw
from coaltree.persist.schema import process_from_json, process_to_json
from coaltree.predict.predictor import Predictor
from coaltree.process import multinomial
from coaltree.process.base import WeightedTrees
from coaltree.process.categorical_columns import smoothed_shares
from coaltree.process.multinomial import MultinomialSampler, gradients
from coaltree.table.cells import decode_set, set_members
from coaltree.table.columns import read_columns
from test_mcmc import chain_of, check_mean, samples_of

nan = np.nan
THREE = ct.Tree.from_newick("((a:0.3,b:0.3):0.9,c:1.2);")
FOUR = ct.Tree.from_newick("((a:0.3,b:0.3):0.9,(c:0.7,d:0.7):0.5);")
AC, AG, CT = ct.state_set(0, 1), ct.state_set(0, 2), ct.state_set(1, 3)
SHARES = [[0.1, 0.2, 0.3, 0.4], [0.2, 0.5, 0.3], [0.4, 0.1, 0.2, 0.3]]
# Rows of three columns: sets, holes and plain states; the first three rows are a table of three leaves.
X = np.array([[AG, 0.0, 1.0], [0.0, ct.state_set(1, 2), nan], [nan, AG, ct.state_set(0, 1, 2)], [3.0, 1.0, CT]])
PROCESSES = {
    "exact cells": ct.Multinomial(0.8, SHARES),
    "noise": ct.Multinomial([0.7, 1.6, 0.4], SHARES, 0.25),
    "noise of each column": ct.Multinomial([0.7, 1.6, 0.4], SHARES, [0.3, 0.0, 0.15]),
}
each_process = pytest.mark.parametrize("name", PROCESSES)


def close(value):
    return pytest.approx(value, rel=1e-9, abs=1e-9)


def completions(table):
    """Yield the tables in which every set is replaced by one of its states."""
    cells = np.argwhere(table < 0)
    for states in product(*(decode_set(table[row, column]) for row, column in cells)):
        filled = table.copy()
        filled[tuple(cells.T)] = states
        yield filled


def cell_probabilities(codes, q, noise):
    """Return the probability that each leaf shows a state of its set, for each state of its lineage."""
    chances = np.ones((len(codes), len(q)))
    for leaf, code in enumerate(codes):
        if not np.isnan(code):
            values = decode_set(code) if code < 0 else [int(code)]
            for state in range(len(q)):
                chances[leaf, state] = (1 - noise) * (state in values) + noise * q[values].sum()
    return chances


class TestLikelihood:
    @each_process
    @pytest.mark.parametrize("tree", [THREE, FOUR], ids=["3 leaves", "4 leaves"])
    def test_set_likelihood_matches_brute_force(self, name, tree):
        process, table = PROCESSES[name], X[: tree.n_leaves]
        total = 0.0
        rates, noises = (np.broadcast_to(value, 3) for value in (process.rate, process.noise))
        for d, q in enumerate(process.equilibrium):
            chances = cell_probabilities(table[:, d], q, noises[d])
            total += np.log(reference.probability_of_chances(tree, chances, rates[d], q))
        assert process.log_likelihood(tree, table) == close(total)

    @each_process
    def test_set_likelihood_is_sum_over_states(self, name):
        process = PROCESSES[name]
        each = [process.log_likelihood(FOUR, filled) for filled in completions(X)]
        assert process.log_likelihood(FOUR, X) == close(logsumexp(each))

    @each_process
    def test_full_set_equals_missing_cell(self, name):
        process, table, full = PROCESSES[name], X.copy(), X.copy()
        table[1, 0] = table[0, 1] = nan
        full[1, 0], full[0, 1] = ct.state_set(0, 1, 2, 3), ct.state_set(0, 1, 2)
        assert process.log_likelihood(FOUR, full) == process.log_likelihood(FOUR, table)
        assert process.leaf_log_likelihoods(full).tolist() == process.leaf_log_likelihoods(table).tolist()
        message, other = (process.columns(value)[0].message for value in (full, table))
        assert np.array_equal(message, other)
        one, two = (ct.greedy(value, process) for value in (full, table))
        assert np.array_equal(one.tree.heights, two.tree.heights)

    def test_equal_columns_are_one_pattern(self):
        table = np.hstack([X[:, :1]] * 3)
        process = ct.Multinomial(0.8, [SHARES[0]] * 3, 0.1)
        forest = process.forest(table, 7)
        assert forest.n_sites == 1
        alone = ct.Multinomial(0.8, [SHARES[0]], 0.1).log_likelihood(FOUR, X[:, :1])
        assert process.log_likelihood(FOUR, table) == close(3 * alone)

    def test_set_likelihood_in_mixed_tables(self):
        table = np.column_stack([[0.1, 0.6, nan, -1.4], X])
        process = ct.Mixed((ct.OrnsteinUhlenbeck(0.7), [0]), (PROCESSES["noise"], [1, 2, 3]))
        both = ct.OrnsteinUhlenbeck(0.7).log_likelihood(FOUR, table[:, :1])
        assert process.log_likelihood(FOUR, table) == close(both + PROCESSES["noise"].log_likelihood(FOUR, X))

    def test_estimated_equilibria_share_sets(self):
        resolved = ct.Multinomial().resolve(X)
        assert [len(q) for q in resolved.equilibrium] == [4, 3, 4]
        # 0, 3 and half of 0 and 2 each, and one more of every state
        assert smoothed_shares(X[:, 0]) == pytest.approx(np.array([2.5, 1, 1.5, 2]) / 7)
        everything = np.append(X[:, 0], ct.state_set(0, 1, 2, 3))
        assert smoothed_shares(everything) == pytest.approx(smoothed_shares(X[:, 0]))

    @pytest.mark.parametrize("code", [-1, -2, -4, -3.5, -(2.0**60)])
    def test_invalid_set_codes_are_rejected(self, code):
        with pytest.raises(InputError, match=r"Row 1, column 0"):
            ct.Multinomial().log_likelihood(THREE, [[0], [code], [1]])

    def test_states_beyond_equilibrium_are_rejected(self):
        with pytest.raises(InputError, match=r"Row 2, column 0 holds code 3"):
            ct.Multinomial(equilibrium=[[0.5, 0.25, 0.25]]).log_likelihood(THREE, [[0], [AG], [CT]])

    @pytest.mark.parametrize("states", [(), (-1,), (0, 53), (True, 1), (0.5,), ("A",)])
    def test_state_set_rejects_invalid_states(self, states):
        with pytest.raises(InputError):
            ct.state_set(*states)

    def test_large_sets_are_encoded(self):
        code = ct.state_set(*range(0, 53, 2))
        assert decode_set(code) == list(range(0, 53, 2))
        assert np.flatnonzero(set_members(np.array([code]), 70)[0]).tolist() == list(range(0, 53, 2))


def test_alignment_likelihood_matches_felsenstein_pruning():
    """The model of Felsenstein (1981) with matrix exponentials and vectors of 0 and 1 at the tips, site by site."""
    frame = ct.read_characters(Path(__file__).parent.parent / "examples" / "primates.nex")
    states, q, rate = "ACGT", np.array([0.3, 0.2, 0.15, 0.35]), 1.7
    tree = ct.simulate_tree(len(frame), random_state=3)
    generator = rate * (np.tile(q, (4, 1)) - np.eye(4))
    total, n = 0.0, len(frame)
    lengths = {
        child: tree.heights[n + k] - tree.heights[child] for k, pair in enumerate(tree.children) for child in pair
    }
    transition = {child: expm(generator * length) for child, length in lengths.items()}
    for column in frame:
        partial = [[float(isinstance(c, float) or c is None or state in c) for state in states] for c in frame[column]]
        for a, b in tree.children.tolist():
            partial.append((transition[a] @ partial[a]) * (transition[b] @ partial[b]))
        total += np.log(q @ partial[-1])
    codes = [
        [nan if isinstance(c, float) or c is None else ct.state_set(*map(states.index, c)) for c in row]
        for row in frame.itertuples(index=False)
    ]
    process = ct.Multinomial(rate, [q] * frame.shape[1])
    assert sum(code < 0 for row in codes for code in row) == 3
    assert process.log_likelihood(tree, codes) == close(total)


class TestInference:
    SETS = np.array([[AC, 0.0], [1.0, ct.state_set(0, 2)], [0.0, 2.0]])
    PROCESS = ct.Multinomial([0.9, 1.4], [SHARES[0], SHARES[1]], [0.1, 0.2])

    @pytest.fixture(scope="class")
    @classmethod
    def truth(cls):
        """Add up the enumerated histories of all completions."""
        parts = [exact_posterior.integrals(filled, cls.PROCESS) for filled in completions(cls.SETS)]
        histories = [
            value[0]._replace(mass=sum(h.mass for h in value), moment=sum(h.moment for h in value))
            for value in zip(*(part.histories for part in parts), strict=True)
        ]
        return exact_posterior.Truth(histories)

    @pytest.mark.parametrize("proposal", ["post-post", "race"])
    def test_smc_evidence_with_sets_is_exact(self, proposal, truth):
        """Means over 20 runs are within 7 standard errors, a level of 1.2e-6 with 19 degrees of freedom."""
        actual = exact_posterior.sampled(self.SETS, self.PROCESS, proposal, truth, n_runs=20)
        for what, (mean, error, value) in actual.items():
            assert abs(mean - value) < 7 * error + 1e-3 * truth.evidence, what

    def test_mcmc_clades_with_sets_match_enumeration(self, truth):
        result = samples_of(chain_of(self.SETS, self.PROCESS), 6000)
        check_mean([s.heights[-1] for s in result], sum(h.moment for h in truth.histories) / truth.evidence, "root")
        for history in truth.histories:
            pair = frozenset(history.children[0])
            matches = [frozenset(sample.children[0].tolist()) == pair for sample in result]
            check_mean(matches, history.mass / truth.evidence, pair)

    def test_greedy_merges_compatible_sets(self):
        # Rows 0 and 1 may be equal in all columns, row 2 differs from both.
        table = np.array([[AG, AC, 1.0], [2.0, 1.0, AC], [3.0, 3.0, 3.0]])
        tree = ct.greedy(table, ct.Multinomial(1.0, [SHARES[0]] * 3)).tree
        assert sorted(tree.children[0].tolist()) == [0, 1]


class TestParameters:
    @each_process
    def test_set_gradients_match_finite_differences(self, name):
        """By differences of the likelihood, with a little less of one state and more of another."""
        process = PROCESSES[name]
        by_rate, by_equilibrium = gradients(process, FOUR, X)
        rates, noises = (np.broadcast_to(value, 3) for value in (process.rate, process.noise))

        def log_column(d, rate, q):
            chances = cell_probabilities(X[:, d], q, noises[d])
            return np.log(reference.probability_of_chances(FOUR, chances, rate, q))

        for d, q in enumerate(process.equilibrium):
            step = 1e-6 * rates[d]
            slope = (log_column(d, rates[d] + step, q) - log_column(d, rates[d] - step, q)) / (2 * step)
            assert by_rate[d] == pytest.approx(slope, rel=1e-4)
            for k in range(1, len(q)):
                way = 1e-6 * (np.eye(len(q))[k] - np.eye(len(q))[0])
                slope = (log_column(d, rates[d], q + way) - log_column(d, rates[d], q - way)) / 2e-6
                assert by_equilibrium[d][k] - by_equilibrium[d][0] == pytest.approx(slope, rel=1e-5, abs=1e-7)

    @each_process
    def test_calibrate_with_sets_never_lowers_density(self, name):
        process = PROCESSES[name]

        def log_density(candidate):
            return candidate.log_likelihood(FOUR, X) + candidate.log_parameter_prior(X)

        fitted = process.fit(WeightedTrees([FOUR], np.ones(1), X), hold_noise=False)
        assert log_density(fitted) > log_density(process)

    def test_parameter_draws_with_sets_match_completed_tables(self, monkeypatch):
        """Compare what parameters are drawn from with that of completed tables, each as often as it is probable.

        These are the numbers of draws of each state from the equilibrium, of cells that are noise, and of branches with
        redraws. Means of 600 draws each differ by less than 5 standard errors, for five numbers.
        """
        table, process = X[:, 1:2], ct.Multinomial([1.6], SHARES[1:2], [0.3])
        rng, calls = np.random.default_rng(0), []

        def note(which, function):
            def noting(*arguments):
                calls.append(which(*arguments))
                return function(*arguments)

            return noting

        for name, which in (
            ("_draw_noise", lambda *arguments: arguments[1]),
            ("_draw_rates", lambda *arguments: [arguments[2].sum()]),
        ):
            monkeypatch.setattr(multinomial, name, note(which, getattr(multinomial, name)))
        draw = note(lambda *arguments: arguments[2], MultinomialSampler._draw_equilibria)
        monkeypatch.setattr(MultinomialSampler, "_draw_equilibria", draw)

        def numbers(samplers):
            results = []
            for sampler in samplers:
                calls.clear()
                sampler.draw(process, FOUR, rng)
                results.append(np.concatenate(calls))
            return np.array(results, dtype=float)

        direct = numbers([MultinomialSampler(process, table, False)] * 600)
        tables = list(completions(table))
        logs = np.array([process.log_likelihood(FOUR, table) for table in tables])
        samplers = [MultinomialSampler(process, table, False) for table in tables]
        chosen = rng.choice(len(tables), 600, p=np.exp(logs - logsumexp(logs)))
        completed = numbers([samplers[k] for k in chosen])
        error = np.sqrt((direct.var(axis=0) + completed.var(axis=0)) / 600)
        assert np.all(np.abs(direct.mean(axis=0) - completed.mean(axis=0)) < 5 * error)
        assert np.all(error < 0.15), "the test would see nothing"

    def test_state_draws_from_sets_follow_probabilities(self):
        sampler = MultinomialSampler(PROCESSES["noise"], X, False)
        sets, q = sampler._sets, np.concatenate([np.array(value) for value in SHARES])
        which = np.repeat(np.arange(len(sets.rows)), 20_000)
        draws = sets.choose(q, which, np.random.default_rng(0))
        for k in range(len(sets.rows)):
            selected = sets.state[sets.cell == k]
            actual = np.bincount(draws[which == k], minlength=len(q)) / 20_000
            assert actual[selected] == pytest.approx(q[selected] / q[selected].sum(), abs=0.02)
            assert actual.sum() == pytest.approx(actual[selected].sum())


class TestPredictions:
    ROWS = np.array([[AG, 2.0, nan], [1.0, ct.state_set(0, 2), ct.state_set(0, 1, 3)], [nan, nan, CT]])

    def predictor(self, name, trees=(FOUR,)):
        process = PROCESSES[name]
        return Predictor([Draw(tree, process, X) for tree in trees], np.ones(len(trees)), X)

    @each_process
    def test_density_with_sets_is_sum_over_states(self, name):
        predictor = self.predictor(name, (FOUR, ct.Tree(FOUR.children, 1.5 * FOUR.heights)))
        predicted = predictor.log_density(self.ROWS)
        for k in range(3):
            each = [predictor.log_density(completion)[0] for completion in completions(self.ROWS[k : k + 1])]
            assert predicted[k] == close(logsumexp(each))
        placed = predictor.place(self.ROWS, FOUR, 1)
        assert placed.log_density == close(predicted)

    @each_process
    def test_predicted_cells_with_sets_are_weighted_over_states(self, name):
        predictor = self.predictor(name)
        predicted = predictor.cells(self.ROWS)
        for k in range(3):
            tables = list(completions(self.ROWS[k : k + 1]))
            logs = np.array([predictor.log_density(table)[0] for table in tables])
            weights = np.exp(logs - logsumexp(logs))
            for d in range(3):
                values = predicted.probability[k, predicted.start[d] : predicted.start[d + 1]]
                assert values.sum() == close(1)
                if self.ROWS[k, d] < 0:
                    expected = np.bincount([int(t[0, d]) for t in tables], weights, len(values))
                    assert values == close(expected)
                elif np.isnan(self.ROWS[k, d]):
                    each = [
                        predictor.cells(t).probability[0, predicted.start[d] : predicted.start[d + 1]] for t in tables
                    ]
                    assert values == close(weights @ np.array(each))

    @each_process
    def test_training_cells_with_sets_match_brute_force(self, name):
        predictor, process = self.predictor(name), PROCESSES[name]
        predicted = predictor._predict_leaves(np.arange(4), quantiles=False)
        for row, d in np.argwhere(X < 0).tolist():
            each = []
            for state in range(len(SHARES[d])):
                filled = X.copy()
                filled[row, d] = state
                each.append(process.log_likelihood(FOUR, filled) if state in decode_set(X[row, d]) else -np.inf)
            expected = np.exp(np.array(each) - logsumexp(each))
            assert predicted.probability[row, predicted.start[d] : predicted.start[d + 1]] == close(expected)

    @each_process
    def test_training_draws_with_sets_follow_predictions(self, name):
        """Shares of 20,000 draws have a standard error of at most .0036."""
        process = PROCESSES[name]
        draws = ct.Beliefs(FOUR, X, process).draw(20_000, np.random.default_rng(0))
        predicted = self.predictor(name)._predict_leaves(np.arange(4), quantiles=False)
        for row, d in np.argwhere(X < 0).tolist():
            shares = np.bincount(draws[:, row, d].astype(int), minlength=len(SHARES[d])) / len(draws)
            assert shares == pytest.approx(
                predicted.probability[row, predicted.start[d] : predicted.start[d + 1]], abs=0.018
            )

    @each_process
    def test_new_row_draws_with_sets_follow_predictions(self, name):
        predictor = self.predictor(name)
        draws, predicted = predictor.draw(self.ROWS, 20_000, np.random.default_rng(0)), predictor.cells(self.ROWS)
        for row, d in np.argwhere(self.ROWS < 0).tolist():
            shares = np.bincount(draws[:, row, d].astype(int), minlength=len(SHARES[d])) / len(draws)
            assert shares == pytest.approx(
                predicted.probability[row, predicted.start[d] : predicted.start[d + 1]], abs=0.018
            )

    def test_prediction_of_single_row_with_set(self):
        predictor = Predictor.from_trees([ct.Tree([], [0.0])], np.ones(1), X[:1], PROCESSES["noise"])
        values = predictor.training_cells(np.array([0])).probability[0, :4]
        assert values == close([0.25, 0, 0.75, 0])


A_OR_G = frozenset("AG")


def sites(**columns):
    return pd.DataFrame(columns, index=pd.Index(list("abcdef"), name="taxon"))


TABLE = sites(
    s1=["A", A_OR_G, "C", "G", "A", None],
    s2=[1, {1, 2}, 2, 3, 3, 1],
    s3=["x", "y", "x", "y", "x", "y"],
    x=[0.1, 0.2, 0.15, 3.0, np.nan, 3.2],
)


class TestTables:
    def test_frame_with_sets_is_encoded(self):
        table = read_columns(TABLE)
        first, second = table.columns[:2]
        assert first.categories == ("A", "C", "G")
        assert first.codes.tolist() == [0, AG, 1, 2, 0, -1]
        assert second.categories == (1, 2, 3)
        assert second.codes.tolist() == [0, AC, 1, 2, 2, 0]

    @pytest.mark.parametrize("library", ["polars", "array", "lists"])
    def test_polars_and_lists_with_sets_are_encoded(self, library):
        if library == "polars":
            table = pl.DataFrame({name: pl.Series(list(TABLE[name]), dtype=pl.Object) for name in ("s1", "s2")})
        else:
            table = TABLE[["s1", "s2"]].to_numpy(dtype=object)
            table = table if library == "array" else table.tolist()
        assert read_columns(table).columns[0].codes.tolist() == [0, AG, 1, 2, 0, -1]

    def test_set_of_all_categories_is_missing(self):
        column = read_columns(sites(s=["A", "C", {"A", "C"}, "A", {"C"}, None])).columns[0]
        assert column.codes.tolist() == [0, 1, -1, 0, 1, -1]
        # nobody has G for sure, but it may be there
        column = read_columns(sites(s=["A", "A", {"A", "G"}, "A", "A", None])).columns[0]
        assert column.categories == ("A", "G")
        assert column.codes.tolist() == [0, 0, -1, 0, 0, -1]
        assert read_columns(sites(s=[{"A", "G"}] * 6)).columns[0].categories == ()

    @pytest.mark.parametrize("cell", [set(), {None, "A"}, {"A", ""}, {("A",)}, {np.inf, 1}, {np.nan}])
    def test_invalid_sets_are_rejected_with_row(self, cell):
        with pytest.raises(InputError, match="row 2"):
            read_columns(sites(s=["A", "C", cell, "A", "A", "A"]))

    def test_sets_in_real_columns_are_rejected(self):
        with pytest.raises(InputError, match="row 1"):
            read_columns(TABLE[["s2"]], categorical_features=None)
        with pytest.raises(InputError, match="dates"):
            read_columns(sites(s=[pd.Timestamp("2020-01-01"), {"A", "C"}, None, None, None, None]))

    def test_too_many_categories_for_sets_are_noted(self):
        cells = [f"c{k:02}" for k in range(60)] * 2
        cells[3], cells[4] = {"c00", "c01"}, {"c01", "c59"}
        table = read_columns(pd.DataFrame({"s": cells}))
        assert table.columns[0].codes[3] == AC
        assert table.columns[0].codes[4] == -1
        assert any("53" in remark for remark in table.remarks)

    def test_new_rows_with_sets_are_encoded(self):
        model = ct.CoalescentClustering().fit(TABLE)
        new = TABLE.copy()
        new["s1"] = [frozenset("CG"), frozenset("AGC"), frozenset("AT"), "A", "A", "A"]
        with pytest.warns(InputWarning, match="'T' \\(1 row\\)"):
            rows = model._model.read_rows(new)
        assert rows.table.columns[0].codes.tolist() == [ct.state_set(1, 2), -1, -1, 0, 0, 0]
        assert rows.table.columns[0].unseen.tolist() == [2]
        with pytest.raises(InputError, match="row 2"):
            ct.CoalescentClustering(unseen_categories="error").fit(TABLE).predict(new)


@pytest.mark.usefixtures("short_chains")
class TestEstimators:
    def test_score_samples_with_sets_is_sum_over_categories(self):
        model = ct.CoalescentClustering(random_state=0).fit(TABLE)
        row = TABLE.iloc[[1]]
        each = [model.score_samples(row.assign(s1=[one], s2=[two]))[0] for one in "AG" for two in (1, 2)]
        assert model.score_samples(row)[0] == pytest.approx(logsumexp(each))

    def test_imputer_fills_sets_from_their_members(self):
        imputer = ct.CoalescentImputer(random_state=0).fit(TABLE)
        filled = imputer.transform(TABLE)
        assert filled["s1"].iloc[1] in A_OR_G
        assert filled["s2"].iloc[1] in {1, 2}
        assert filled["s1"].drop("b").dropna().tolist() == ["A", "C", "G", "A", filled["s1"]["f"]]
        cells = imputer.predictive(TABLE)["s1"]
        assert cells.probability[1] == pytest.approx([*cells.probability[1, :1], 0, *cells.probability[1, 2:]])
        assert cells.probability[1].sum() == pytest.approx(1)
        assert cells.missing.tolist() == [False, True, False, False, False, True]
        for value in imputer.sample(TABLE, 5, random_state=1):
            assert value["s1"].iloc[1] in A_OR_G
        # a set alone makes a row incomplete
        alone = TABLE.iloc[[1]].assign(x=[0.4])
        assert imputer.transform(alone)["s1"].iloc[0] in A_OR_G

    def test_complete_frame_with_state_set(self):
        table = TABLE[["s1", "s3"]].assign(s1=["A", A_OR_G, "C", "G", "A", "C"])
        filled = ct.CoalescentImputer(random_state=0).fit_transform(table)
        assert filled["s1"].iloc[1] in A_OR_G

    @pytest.mark.parametrize("inference", ["mcmc", "smc"])
    def test_samplers_accept_sets(self, inference):
        settings = {"n_samples": 200} if inference == "mcmc" else {"n_particles": 50}
        model = ct.CoalescentClustering(inference=inference, random_state=0, **settings).fit(TABLE)
        assert np.isfinite(model.score_samples(TABLE)).all()

    def test_files_reports_and_plots_accept_sets(self, tmp_path):
        model = ct.CoalescentClustering(random_state=0).fit(TABLE)
        scores = model.score_samples(TABLE)
        model.save(tmp_path / "m.coaltree")
        again = ct.load_model(tmp_path / "m.coaltree")
        assert again.score_samples(TABLE).tolist() == scores.tolist()
        assert np.array_equal(again._model.matrix, model._model.matrix, equal_nan=True)
        model.report(tmp_path / "r.html")
        assert (tmp_path / "r.html").stat().st_size > 1000
        assert ct.plot_heatmap(model)
        process = model.process_
        assert process_to_json(process_from_json(process_to_json(process))) == process_to_json(process)
        assert len(model.place(TABLE).to_pandas()) == 6

    def test_processes_without_state_sets_reject_sets(self):
        class WithoutSets(ct.Multinomial):
            takes_state_sets = False

        with pytest.raises(InputError, match="'s1'"):
            ct.CoalescentClustering(categorical_process=WithoutSets()).fit(TABLE)


def test_category_occurring_only_in_sets_is_known():
    frame = pd.DataFrame({"s": pd.Series(["A", "A", "A", {"A", "G"}], dtype=object), "x": [1.0, 2.0, 3.0, 5.0]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = ct.CoalescentClustering().fit(frame)  # the column is not constant: its last cell may be G
        model.predict(pd.DataFrame({"s": ["G", "A"], "x": [1.0, 2.0]}))
    assert model._model.encoding.categories == (("A", "G"),)
    assert list(model.parameters_) == ["x", "s"]
