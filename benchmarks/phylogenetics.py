"""Published alignments compared with MrBayes, the evidence of DS1 to DS8, and the effect of ascertainment.

Run with ``python benchmarks/phylogenetics.py``, or name some of the parts; ``--quick`` for a smoke run. Times are processor time
of all threads and processes together. The alignments are read from the folder ``phylogenetics`` of the one that COALTREE_DATA
names. The model is that of Sidrow and others (VIPR, arXiv 2502.15110): Kingman's coalescent with population size 5, a clock of
rate 1 and Jukes-Cantor's sites, which is ``Multinomial(20 / 3, [0.25] * 4, share_equilibrium=True)``.

*chains.* DS1, DS5 and the 48 languages of ``posterior.py``: effective samples a second (ArviZ, bulk) of four chains each, what
our chains say of their convergence, and clade probabilities of both programs. The first quarter is left out, and its time is not.
On the alignments MrBayes begins at our greedy tree: from random trees its chains on DS5 did not arrive. Needs ``mb``.

*evidence.* The log evidence of DS1 to DS8, and how long that took.

*ascertainment.* Binary columns drawn from trees of known heights, constant ones left out: rates and heights that are sampled with
and without the condition.

*tempering.* DS1 and DS5 without and with heated chains that exchange trees with the one that is recorded (MC3), in the same
processor time: effective samples a second of the log joint, and of the clades that are neither rare nor certain.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

import coaltree as ct
import mrbayes
from coaltree.inference.chain import EXCHANGE, without_ties
from coaltree.inference.results import effective_samples, r_hat
from coaltree.inference.tempering import TemperedChain
from coaltree.tree.clades import clade_masks
from posterior import RATE, binary_features

JUKES_CANTOR = 20 / 3  # in units of the population size
N_CHAINS = 4
AIM = 3.0  # times as many effective samples a second as MrBayes
PUBLISHED = {"DS1": -7154.7}  # log evidence: VIPR
# (samples of each chain, MrBayes' samples of each chain, MrBayes' moves from one to the next)
LENGTHS = {"languages": (1600, 700, 400), "DS5": (2000, 800, 400), "DS1": (1600, 700, 250)}
# (runs, chains, samples) of the evidence of each data set
SIZES = {"DS1": (20, 8, 8), "DS4": (3, 4, 8), "DS5": (3, 4, 8)}
OTHER_SIZE = (8, 4, 8)
WARMUP = 60  # rounds of moves


def read_alignment(name):
    """Return the table of an alignment, 0 to 3 for the four bases, and the process."""
    frame = ct.read_characters(Path(os.environ["COALTREE_DATA"]) / "phylogenetics" / f"{name}.nexus")
    bases = {base: code for code, base in enumerate("ACGT")}

    def code(cell):
        if isinstance(cell, str):
            return bases[cell]
        return ct.state_set(*map(bases.get, cell)) if isinstance(cell, frozenset) else np.nan

    X = np.array([[code(cell) for cell in row] for row in frame.itertuples(index=False)])
    return X, ct.Multinomial(JUKES_CANTOR, [0.25] * 4, share_equilibrium=True)


def chains(quick):
    """Print effective samples a second of both programs, and how far apart they are."""
    for name, (n_samples, of_peer, peer_thin) in LENGTHS.items():
        if name == "languages":
            X, rate, bases = binary_features(), RATE, False
            process = ct.Multinomial(RATE, [0.5, 0.5], share_equilibrium=True)
        else:
            (X, process), rate, bases = read_alignment(name), JUKES_CANTOR, True
        if quick:
            n_samples, of_peer = 60, 60
        print(f"\n### {name}: {len(X)} rows, {X.shape[1]} columns\n", flush=True)
        ct.mcmc(X[:5], process, 10, 1, random_state=0)  # what is imported late is there then
        start, used = time.perf_counter(), time.process_time()
        sample = ct.mcmc(
            X, process, n_samples, N_CHAINS, warmup=n_samples // 4, thin=len(X) // 2, n_jobs=2, random_state=0
        )
        used, took = time.process_time() - used, time.perf_counter() - start
        traces = sample.traces
        print(
            "| | moves | time (s) | log joint | root height | tree length | root height is |\n|---|---|---|---|---|---|---|"
        )
        found = [traces[key] for key in ("log_joint", "root_height", "tree_length")]
        ours = print_row("coaltree", len(X) // 2, used, found)
        largest = max(r_hat(own[:, n_samples // 4 :]) for own in found)
        if mrbayes.PROGRAM is None:
            print("| MrBayes | not there: left out | | | | | |")
        else:
            tree = ct.greedy(X, process).tree if bases else None
            with tempfile.TemporaryDirectory() as folder:
                peer = mrbayes.run(X, rate, of_peer, peer_thin, range(N_CHAINS), folder, bases, tree)
            theirs = [
                np.array([getattr(chain, key) for chain in peer.chains])
                for key in ("log_joints", "root_heights", "tree_lengths")
            ]
            ratio = ours / print_row("MrBayes", peer_thin, peer.processor_seconds, theirs)
            verdict = "ok" if ratio.min() >= AIM else "MISSED"
            print(f"\ncoaltree / MrBayes: {', '.join(f'{own:.1f}' for own in ratio)}; at least {AIM:g}: {verdict}")
            print_clades(sample, peer)
        print(
            f"our chains: split-frequency deviation {sample.split_deviation:.4f}, R-hat at most {largest:.4f}, "
            f"{took:.0f} s by the clock"
        )


def print_row(who, thin, seconds, traces):
    """Print what chains did; return effective samples a second of log joint, root height and tree length."""
    kept = [own[:, own.shape[1] // 4 :] for own in traces]
    worth = np.array([effective_samples(own) for own in kept])
    cells = [
        f"{thin * traces[0].size:,}",
        f"{seconds:.1f}",
        *(f"{own:.0f}, {own / seconds:.1f} a second" for own in worth),
    ]
    error = kept[1].std() / np.sqrt(worth[1])
    print(f"| {who} | {' | '.join(cells)} | {kept[1].mean():.5f} ± {error:.5f} |", flush=True)
    return worth / seconds


def print_clades(sample, peer):
    """Print the largest differences of clade probabilities between the two programs, and between chains of each."""
    ours, theirs = {}, {}
    n_kept = len(sample.trees) // N_CHAINS
    for k in range(N_CHAINS):
        count(ours, k, sample.trees[k * n_kept : (k + 1) * n_kept])
        trees = ct.TreeSample.from_nexus(peer.chains[k].trees, tolerance=1e-3).trees
        names = [trees[0].leaf_names.index(f"row{i}") for i in range(trees[0].n_leaves)]
        count(theirs, k, trees[len(trees) // 4 :], np.argsort(names))
    all_clades = ours.keys() | theirs.keys()
    none = np.zeros(N_CHAINS)
    tables = [np.array([own.get(clade, none) for clade in all_clades]) for own in (ours, theirs)]
    gaps = np.abs(tables[0].mean(axis=1) - tables[1].mean(axis=1))
    spread = [own.std(axis=1, ddof=1).max() / np.sqrt(N_CHAINS) for own in tables]
    print(
        f"clade probabilities differ by at most {gaps.max():.3f}; the largest standard error, from the chains, is "
        f"{spread[0]:.3f} in coaltree and {spread[1]:.3f} in MrBayes"
    )


def count(found, chain, trees, number=None):
    """Add the frequencies of the clades of some trees, whose leaves may be numbered otherwise."""
    for tree in trees:
        for mask in clade_masks(tree):
            if number is not None:
                mask = sum(1 << int(number[i]) for i in range(tree.n_leaves) if mask >> i & 1)
            found.setdefault(mask, np.zeros(N_CHAINS))[chain] += 1 / len(trees)


def evidence(quick, names):
    """Print the log evidence of the alignments."""
    print(
        "| | rows | columns | runs x chains x samples | powers | log evidence | published | processor time (s) | clock (s) |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for name in names:
        X, process = read_alignment(name)
        size = (2, 2, 2) if quick else SIZES.get(name, OTHER_SIZE)
        start, used = time.perf_counter(), time.process_time()
        found = ct.evidence(X, process, size[0], n_chains=size[1], n_samples=size[2], n_jobs=2, random_state=0)
        used, took = time.process_time() - used, time.perf_counter() - start
        known = f"{PUBLISHED[name]:.1f}" if name in PUBLISHED else ""
        cells = [name, len(X), X.shape[1], " x ".join(map(str, size)), len(found.powers) - 1]
        cells += [f"{found.log_evidence:.2f} ± {found.standard_error:.2f}", known, f"{used:.0f}", f"{took:.0f}"]
        print(f"| {' | '.join(map(str, cells))} |", flush=True)


def ascertainment(quick):
    """Print rates and heights that are sampled from tables without constant columns."""
    n_tables, n_rows, n_columns, rate = (2 if quick else 10), 10, 120, 0.4
    print(f"{n_tables} tables of {n_rows} rows and {n_columns} binary columns of rate {rate:g} that are not constant\n")
    print(
        "| | log rate, found - true | log root height, found - true | log tree length, found - true |\n|---|---|---|---|"
    )
    truth = ct.Multinomial(rate, [0.5, 0.5], 0.0, "variable", share_equilibrium=True)
    for title, condition in (("conditioned", "variable"), ("not conditioned", None)):
        gaps = []
        for seed in range(n_tables):
            tree = ct.simulate_tree(n_rows, seed)
            X = truth.simulate(tree, 1000 + seed, n_columns=n_columns)
            own = ct.Multinomial(rate, [0.5, 0.5], 0.0, condition, share_equilibrium=True)
            drawn = ct.mcmc(X, own, 60 if quick else 200, 1, draw_parameters=True, random_state=seed)
            # with the rate held, heights are in known units
            held = ct.mcmc(X, own, 60 if quick else 200, 1, random_state=seed)
            gaps.append(
                (
                    np.log(drawn.parameters["rate"][:, drawn.warmup :]).mean() - np.log(rate),
                    np.log(held.traces["root_height"][:, held.warmup :]).mean() - np.log(tree.heights[-1]),
                    np.log(held.traces["tree_length"][:, held.warmup :]).mean() - np.log(tree.branch_lengths.sum()),
                )
            )
        gaps = np.array(gaps)
        cells = [f"{own.mean():+.3f} ± {own.std(ddof=1) / np.sqrt(n_tables):.3f}" for own in gaps.T]
        print(f"| {title} | {' | '.join(cells)} |", flush=True)


def tempering(quick):
    """Print how well clades mix with and without heated chains, in the same time."""
    seconds = 3 if quick else 60
    print("| | heated chains | samples | exchanges accepted | log joint | clades, harmonic mean | clades, least |")
    print("|---|---|---|---|---|---|---|")
    for name in ("DS1", "DS5"):
        X, process = read_alignment(name)
        process = process.resolve(X)
        start = ct.greedy(X, process).tree
        for n_heated in (0, 1, 2):
            for seed in range(1 if quick else 2):
                log_joints, trees, exchanged = run_tempered(X, process, start, n_heated, seed, seconds)
                masks = [set(clade_masks(tree)) for tree in trees]
                worth = []
                for mask in set().union(*masks):
                    found = np.array([mask in own for own in masks], dtype=float)
                    if 0.03 < found.mean() < 0.97:
                        worth.append(effective_samples(found[None]) / seconds)
                cells = [name, n_heated, len(trees), f"{exchanged:.0%}" if n_heated else ""]
                cells += [f"{effective_samples(log_joints[None]) / seconds:.1f} a second"]
                cells += [f"{1 / np.mean(1 / np.array(worth)):.1f} a second", f"{min(worth):.1f} a second"]
                print(f"| {' | '.join(map(str, cells))} |", flush=True)


def run_tempered(X, process, start, n_heated, seed, seconds):
    """Run a chain with heated companions for some time; return its log joints and trees, and the share of exchanges."""
    rngs = [np.random.default_rng([seed, k]) for k in range(n_heated + 1)]
    chain = TemperedChain(X, process, without_ties(start, rngs[0]), rngs)
    for _ in range(WARMUP):
        chain.move(len(X))
        chain.tune()
    log_joints, trees, begin = [], [], time.process_time()
    while time.process_time() - begin < seconds:
        chain.move(len(X))
        log_joints.append(chain.log_joint)
        trees.append(chain.tree())
    return np.array(log_joints), trees, chain.accepted[EXCHANGE] / max(chain.tried[EXCHANGE], 1)


PARTS = {part.__name__: part for part in (chains, evidence, ascertainment, tempering)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("parts", nargs="*", help=f"some of {', '.join(PARTS)}; all by default")
    parser.add_argument("--data", nargs="*", default=[f"DS{k}" for k in range(1, 9)], help="alignments of the evidence")
    parser.add_argument("--quick", action="store_true", help="short chains, to see that all runs")
    options = parser.parse_args()
    for name in options.parts:
        if name not in PARTS:
            parser.error(f"there is no part {name!r}; parts are {', '.join(PARTS)}")
    warnings.simplefilter("ignore", ct.errors.InputWarning)  # of short chains
    for name in options.parts or PARTS:
        print(f"\n## {name}\n", flush=True)
        PARTS[name](options.quick, *([options.data] if name == "evidence" else []))


if __name__ == "__main__":
    main()
