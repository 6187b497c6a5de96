"""MrBayes, which shares no code with this library, samples the same posterior for binary columns and DNA."""

import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import ttest_1samp, ttest_ind

import coaltree as ct
import exact_posterior
import mrbayes
from coaltree.process.base import PRIOR_SCALE, PRIOR_SHAPE
from coaltree.table.matrix import as_matrix
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


EXAMPLES = Path(__file__).parent.parent / "examples"
ALIGNMENTS = Path(os.environ.get("COALTREE_DATA", "")) / "phylogenetics"
PAGE = Path(__file__).parent.parent / "docs" / "phylogenetics.md"
# Fewer rows of three alignments, with which chains of MrBayes mix in seconds; and how the page calls them.
TABLES = {
    "primates": (EXAMPLES / "primates.nex", slice(None), "`examples/primates.nex`, 9 rows, 60 sites | F81"),
    "primates, gamma rates": (
        EXAMPLES / "primates.nex",
        slice(None),
        "`examples/primates.nex`, 9 rows, 60 sites | F81+G4",
    ),
    "insects": (EXAMPLES / "insects.nex", slice(None), "`examples/insects.nex`, 12 rows, 16 characters | Mkv"),
    "DS1": (ALIGNMENTS / "DS1.nexus", slice(0, None, 3), "every third row of DS1, 9 rows, 1949 sites | F81"),
    "DS4": (ALIGNMENTS / "DS4.nexus", slice(0, None, 5), "every fifth row of DS4, 9 rows, 1137 sites | F81"),
    "DS4, gamma rates": (
        ALIGNMENTS / "DS4.nexus",
        slice(0, None, 5),
        "every fifth row of DS4, 9 rows, 1137 sites | F81+G4",
    ),
    "DS5": (ALIGNMENTS / "DS5.nexus", slice(0, None, 5), "every fifth row of DS5, 10 rows, 378 sites | F81"),
}


def documented_roots(label):
    """Return the root heights of coaltree and MrBayes that the page has for a table and a model."""
    (line,) = (line for line in PAGE.read_text().splitlines() if line.startswith(f"| {label} | "))
    return [float(number) for number in line.split(" | ")[2].split(", ")]


@pytest.mark.parametrize("name", TABLES)
def test_page_has_root_heights_within_two_per_cent(name):
    ours, theirs = documented_roots(TABLES[name][2])
    assert abs(ours - theirs) < 0.02 * theirs


def changes_per_redraw(sample, process):
    """Return the share of changes among the redraws of a character in each sample of each chain."""
    names = [name for name in sample.parameters if name.startswith("equilibrium")]
    if names:
        return 1 - sum(sample.parameters[name] ** 2 for name in names)
    share = 1 - 1 / len(process.equilibrium[0])
    return share if process.relative_rate is None else share * process.relative_rate[0]


def log_condition_ratios(sample, frame):
    """Return the log of the condition of MrBayes over ours for each tree of a sample of standard characters.

    Ours is that the known cells of a character differ. MrBayes 3.2.7a demands that of all rows, also where cells are missing,
    and takes the constant columns of two states out of those of three, too: by 1 - 2 p, where p is the chance that all are 0.
    """
    X, absent, ratios = as_matrix(frame), np.zeros((len(frame), 1)), []
    for tree, process in zip(sample.trees, sample.processes(), strict=True):
        free = process.without_ascertainment()
        ours = free.log_likelihood(tree, X) - process.log_likelihood(tree, X)
        kinds = Counter(zip(map(len, free.equilibrium), free.relative_rate.tolist(), strict=True))
        theirs = sum(
            count
            * np.log1p(-2 * np.exp(ct.Multinomial(free.rate * relative, [[1 / k] * k]).log_likelihood(tree, absent)))
            for (k, relative), count in kinds.items()
        )
        ratios.append(theirs - ours)
    return np.array(ratios)


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_default_models_match_mrbayes(name, tmp_path):
    """The numbers of docs/phylogenetics.md: root heights in expected changes, and clades.

    Root heights differ by at most 2 %, clades by 0.03, each with three standard errors in addition.
    """
    path, rows, label = TABLES[name]
    if not path.exists():
        pytest.skip(f"{path.name} is not in the folder phylogenetics of COALTREE_DATA")
    frame = ct.read_characters(path).iloc[rows]
    rates = "gamma" if "gamma" in name else "equal"
    process = ct.Multinomial(share_equilibrium=True, gamma_shape=1.0) if rates == "gamma" else None
    options = {"draw_parameters": True, "n_jobs": 2, "random_state": 0}
    sample = ct.mcmc(frame, process, 3000, n_chains=2, warmup=500, **options)
    rate, warmup = sample.parameters["rate"], sample.warmup
    changes = (rate * changes_per_redraw(sample, sample.process))[:, warmup:].ravel()
    weights, model = np.ones(len(changes)), mrbayes.MKV
    if frame.attrs["datatypes"][frame.columns[0]] == "dna":
        share = changes.mean() / rate[:, warmup:].mean()
        model = mrbayes.FELSENSTEIN.format(shape=PRIOR_SHAPE, rate=1 / (PRIOR_SCALE * share), rates=rates)
    else:  # trees of our sample count as under the prior of MrBayes; two lineages meet at rate 1 / changes
        log_prior = (PRIOR_SHAPE - 1) * np.log(rate[:, warmup:].ravel()) - rate[:, warmup:].ravel() / PRIOR_SCALE
        log_weights = -log_condition_ratios(sample, frame) - mrbayes.POPULATION_RATE * changes / 2 - log_prior
        weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    assert 1 / np.sum(weights**2) > 1000
    roots = sample.traces["root_height"][:, warmup:].ravel() * changes
    root = float(weights @ roots)
    error = np.std(means((weights * len(weights) * (roots - root)).reshape(2, -1))) / np.sqrt(2 * BATCHES)
    clades = {}
    for tree, weight in zip(sample.trees, weights.tolist(), strict=True):
        for mask in clade_masks(tree):
            clades[mask] = clades.get(mask, 0.0) + weight
    theirs = mrbayes.run_characters(frame, model, 6_000, 100, SEEDS, tmp_path)
    their_roots = [chain.root_heights[-5_000:] for chain in theirs.chains]
    their_root = float(np.mean(their_roots))
    error = np.hypot(error, np.std(means(their_roots)) / np.sqrt(len(SEEDS) * BATCHES))
    their_clades = {}
    for chain in theirs.chains:
        kept = ct.TreeSample.from_nexus(chain.trees, tolerance=1e-3).trees[-5_000:]
        for tree in kept:
            for mask in clade_masks(tree):
                their_clades[mask] = their_clades.get(mask, 0.0) + 1 / (len(kept) * len(SEEDS))
    effective = 0.5 / np.sum(weights**2)  # successive trees are similar
    print(f"{name} {frame.shape}: root {root:.4f}, {their_root:.4f} ± {error:.4f}", end="")
    assert abs(root - their_root) < 0.02 * their_root + 3 * error
    for found, documented in zip((root, their_root), documented_roots(label), strict=True):
        assert abs(found - documented) < 0.02 * documented + 3 * error
    largest = 0.0
    for mask in {*clades, *their_clades}:
        one, other = clades.get(mask, 0.0), their_clades.get(mask, 0.0)
        largest = max(largest, abs(one - other))
        assert abs(one - other) < 0.03 + 3 * np.sqrt(max(other * (1 - other), 0.0) / effective)
    print(f", largest difference of clades {largest:.3f}")


def test_mrbayes_errors_are_reported(tmp_path):
    with pytest.raises(RuntimeError, match="MrBayes stopped"):
        mrbayes.run(np.zeros((0, 1)), RATE, 10, 10, [0], tmp_path)
