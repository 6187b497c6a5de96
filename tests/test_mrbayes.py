"""MrBayes, which shares no code with this library, samples the same posterior for binary columns and DNA."""

import numpy as np
import pytest
from scipy.stats import ttest_1samp, ttest_ind

import coaltree as ct
import exact_posterior
import mrbayes
from coaltree.tree.clades import clade_masks

pytestmark = pytest.mark.skipif(mrbayes.PROGRAM is None, reason="MrBayes is not here: apt install mrbayes")

RATE = 0.5
SEEDS = range(4)
BATCHES = 10  # of the samples of a seed; each is much longer than what a chain remembers
ALARM = 1e-6  # chance of a false alarm of a test: p-values are multiplied by their number
RARE = 0.05  # what is rarer has means that are far from normal


def table(n, n_columns):
    """Return binary columns drawn from the model, some cells missing."""
    X = ct.Multinomial(RATE, [[0.5, 0.5]] * n_columns).simulate(ct.simulate_tree(n, 1), 2)
    X[0, 0] = X[1, 3] = np.nan
    return X


def means(samples):
    """Return means of batches from an array of shape (seeds, samples)."""
    return np.reshape(samples, (len(samples) * BATCHES, -1)).mean(axis=1)


def bases(n, n_columns):
    """Return sites of DNA drawn from the model, some cells missing."""
    X = ct.Multinomial(RATE, [0.25] * 4, share_equilibrium=True).simulate(
        ct.simulate_tree(n, 1), 2, n_columns=n_columns
    )
    X[0, 0] = X[1, 3] = np.nan
    return X


def sample_clades(X, n_samples, thin, folder, rate=RATE, **options):
    """Return root heights and clades of the trees that MrBayes visits after a warm-up, a quarter more."""
    actual = mrbayes.run(X, rate, n_samples + n_samples // 4, thin, SEEDS, folder, **options).chains
    roots = [chain.root_heights[-n_samples:] for chain in actual]
    trees = [ct.TreeSample.from_nexus(chain.trees, tolerance=1e-4).trees[-n_samples:] for chain in actual]
    return roots, [[set(clade_masks(tree)) for tree in chain] for chain in trees]


@pytest.mark.parametrize("dna", [False, True])
def test_enumeration_matches_mrbayes(dna, tmp_path):
    """MrBayes gets our model, including all constants of time and rate; for DNA it starts from a given tree."""
    X = bases(4, 5) if dna else table(4, 5)
    truth = exact_posterior.integrals(X, ct.Multinomial(RATE, [[0.25] * 4 if dna else [0.5, 0.5]] * 5))
    options = {"bases": True, "start": ct.simulate_tree(4, 7)} if dna else {}
    roots, clades = sample_clades(X, 1000, 25, tmp_path, **options)
    p_values = [ttest_1samp(means(roots), sum(history.moment for history in truth.histories) / truth.evidence).pvalue]
    expected = {}
    for children, mass, _ in truth.histories:
        for clade in exact_posterior.clades(children):
            mask = sum(1 << leaf for leaf in clade)
            expected[mask] = expected.get(mask, 0.0) + mass / truth.evidence
    for mask, probability in expected.items():
        if RARE < probability < 1 - RARE:
            p_values.append(
                ttest_1samp(means([[mask in tree for tree in chain] for chain in clades]), probability).pvalue
            )
    assert len(p_values) > 4
    assert min(p_values) * len(p_values) > ALARM


def test_chains_that_ran_are_read_again(tmp_path, monkeypatch):
    X = bases(4, 5)
    first = mrbayes.run(X, RATE, 20, 10, [0, 1], tmp_path, bases=True, n_heated=1)
    assert "nchains=2" in (tmp_path / "0" / "table.nex").read_text()
    monkeypatch.setattr(mrbayes, "_started", lambda folder: pytest.fail("MrBayes ran again"))
    again = mrbayes.run(X, RATE, 20, 10, [0, 1], tmp_path, bases=True, n_heated=1)
    assert again.processor_seconds == first.processor_seconds
    for one, other in zip(first.chains, again.chains, strict=True):
        np.testing.assert_array_equal(one.log_joints, other.log_joints)
        assert one.trees == other.trees


@pytest.fixture(scope="module")
def ten():
    return table(10, 60)


@pytest.fixture(scope="module")
def ours(ten):
    """Root heights and clades of the trees that our chains visit."""
    process = ct.Multinomial(RATE, [[0.5, 0.5]] * 60)
    sample = ct.mcmc(ten, process, 750, len(SEEDS), warmup=150, n_jobs=2, random_state=0)
    clades = [set(clade_masks(tree)) for tree in sample.trees]
    return sample.traces["root_height"][:, 150:], [clades[k : k + 600] for k in range(0, len(clades), 600)]


def least_p_value(ours, theirs):
    """Compare root heights, and clades that are neither rare nor certain."""
    p_values = [ttest_ind(means(ours[0]), means(theirs[0]), equal_var=False).pvalue]
    for mask in set().union(*(tree for _, clades in (ours, theirs) for chain in clades for tree in chain)):
        one, other = (means([[mask in tree for tree in chain] for chain in clades]) for _, clades in (ours, theirs))
        if RARE < (one.mean() + other.mean()) / 2 < 1 - RARE:
            p_values.append(ttest_ind(one, other, equal_var=False).pvalue)
    assert len(p_values) > 5
    return min(p_values) * len(p_values)


@pytest.mark.slow
def test_clades_of_ten_rows_match_mrbayes(ten, ours, tmp_path):
    """The standard error of the difference is at most 0.03 for any clade, and about six of them raise the alarm."""
    assert least_p_value(ours, sample_clades(ten, 600, 400, tmp_path)) > ALARM


@pytest.mark.slow
def test_different_rate_is_detected(ten, ours, tmp_path):
    """Shows that the test above can fail."""
    assert least_p_value(ours, sample_clades(ten, 200, 200, tmp_path, 1.3 * RATE)) < ALARM


def test_mrbayes_errors_are_reported(tmp_path):
    with pytest.raises(RuntimeError, match="MrBayes stopped"):
        mrbayes.run(np.zeros((0, 1)), RATE, 10, 10, [0], tmp_path)
