"""Speed of Markov chains over trees, and the effect of refinement.

Run with ``python benchmarks/posterior.py``, or name some of the parts; ``--quick`` for a smoke run. Times are processor time of
all threads and processes together, so that what else the machine does matters less.

*moves.* Moves a second of one chain, on tables of 20 real columns drawn from the model, and the exponent of the number of rows.

*costs.* What each kind of move costs on 48 Indo-European languages of WALS and 139 features, each made binary: has a language the
value that most have? The data is downloaded, or read from the folder that COALTREE_DATA names. `phylogenetics.py` sets the chains
beside those of MrBayes.

*refinement.* 10 x 20 MNIST digits, 20 principal components of unit variance: the tree of the rule rate1, with a fitted process,
and that tree refined. Errors are standard errors over draws of the digits.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np

import coaltree as ct
from coaltree import metrics
from coaltree.inference import chain as chains

RATE = 0.5  # at which features mutate
COSTED = 2_000  # moves of each kind, to see what they cost
SIZES = (50, 100, 200, 400, 800)
SLOWEST = -1.0  # exponent of moves a second that we hold ourselves to


def moves(quick):
    """Print moves a second against the number of rows."""
    print("| rows | moves a second |\n|---|---|")
    sizes = SIZES[:3] if quick else SIZES
    speeds = []
    for n in sizes:
        tree = ct.simulate_tree(n, random_state=0)
        process = ct.Brownian()
        X = process.simulate(tree, random_state=1, n_columns=20)
        chain = chains.Chain(X, process.resolve(X), tree, np.random.default_rng(2))
        chain.move(n)
        seconds = processor_seconds(lambda chain=chain: chain.move(1_000 if quick else 20_000))
        speeds.append((1_000 if quick else 20_000) / seconds)
        print(f"| {n} | {speeds[-1]:,.0f} |", flush=True)
    exponent = np.polyfit(np.log(sizes), np.log(speeds), 1)[0]
    print(f"\nexponent {exponent:.2f}, at least {SLOWEST:g}: {'ok' if exponent >= SLOWEST else 'MISSED'}")


def processor_seconds(work):
    start = time.process_time()
    work()
    return time.process_time() - start


def costs(quick):
    """Print what each kind of move costs on the languages, and its share of the time."""
    X = binary_features()
    process = ct.Multinomial(RATE, [0.5, 0.5], share_equilibrium=True)
    sample = ct.mcmc(X, process, 100 if quick else 400, 2, random_state=0)
    where_time_goes(X, sample)


def binary_features():
    """Return a column a feature: 1 for the value that most of the languages have, 0 for any other, NaN where it is not known."""
    states = ct.datasets.select_indo_european(ct.datasets.load_wals()).states
    known = ~np.isnan(states)
    commonest = [
        np.bincount(column[observed].astype(int)).argmax() for column, observed in zip(states.T, known.T, strict=True)
    ]
    return np.where(known, (states == commonest).astype(float), np.nan)


def where_time_goes(X, sample):
    """Print what each kind of move costs where the chains ended, and its share of the time of all moves."""
    all_kinds = dict(chains.SHARES)
    shares = dict(zip(chains.MOVES, chains.move_shares(len(X)), strict=True))
    cost = {}
    for kind in shares:
        chains.SHARES.update(dict.fromkeys(shares, 0.0) | {kind: 1.0})
        chain = chains.Chain(X, sample.process, sample.trees[-1], np.random.default_rng(0))
        cost[kind] = processor_seconds(lambda chain=chain: chain.move(COSTED)) / COSTED
    chains.SHARES.update(all_kinds)
    each = sum(shares[kind] * cost[kind] for kind in shares)
    print("\n| move | share of the moves | accepted | microseconds | share of the time |\n|---|---|---|---|---|")
    for kind, share in shares.items():
        text = f"{1e6 * cost[kind]:.0f} | {share * cost[kind] / each:.0%}"
        print(f"| {kind} | {share:.0%} | {sample.acceptance[kind]:.0%} | {text} |", flush=True)


def refinement(quick):
    """Print scores of trees against the digits, before and after refinement."""
    mnist = ct.datasets.load_mnist()
    before, after = [], []
    for seed in range(2 if quick else 20):
        rows = ct.datasets.sample_balanced_rows(mnist.digits, 20, random_state=seed)
        X = ct.datasets.principal_components(mnist.pixels[rows], 20, unit_variance=True)
        process = ct.CoalescentClustering(real_process="brownian", standardize=False).fit(X).process_
        result = ct.greedy(X, process, rule="rate1")
        refined = ct.refine(result.tree, X, process)
        before.append(scores(result, mnist.digits[rows]))
        after.append(scores(refined, mnist.digits[rows]))
    print(f"{len(before)} draws\n\n| | rate1 | refined | difference |\n|---|---|---|---|")
    for name in before[0]:
        one, other = (np.array([run[name] for run in runs]) for runs in (before, after))
        gain = other - one
        error = gain.std(ddof=1) / np.sqrt(len(gain))
        print(f"| {name} | {one.mean():.4g} | {other.mean():.4g} | {gain.mean():+.4f} ± {error:.4f} |")


def scores(result, digits):
    return {
        "subtree score": metrics.subtree_score(result.tree, digits),
        "leave-one-out accuracy": metrics.leave_one_out_accuracy(result.tree, digits),
        "purity": metrics.dendrogram_purity(result.tree, digits),
        "log joint": result.log_joint,
    }


PARTS = {part.__name__: part for part in (moves, costs, refinement)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("parts", nargs="*", help=f"some of {', '.join(PARTS)}; all by default")
    parser.add_argument("--quick", action="store_true", help="short chains and few draws, to see that all runs")
    options = parser.parse_args()
    for name in options.parts:
        if name not in PARTS:
            parser.error(f"there is no part {name!r}; parts are {', '.join(PARTS)}")
    warnings.simplefilter("ignore", ct.errors.InputWarning)  # of short chains
    for name in options.parts or PARTS:
        print(f"\n## {name}\n", flush=True)
        PARTS[name](options.quick)


if __name__ == "__main__":
    main()
