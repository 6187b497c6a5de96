"""Published alignments compared with MrBayes, the evidence of DS1 to DS8, and the effect of ascertainment.

Run with ``python benchmarks/phylogenetics.py``, or name some of the parts; ``--quick`` for a smoke run. Times are processor time
of all threads and processes together. The alignments are read from the folder ``phylogenetics`` of the one that COALTREE_DATA
names. The model is that of Sidrow and others (VIPR, arXiv 2502.15110): Kingman's coalescent with population size 5, a clock of
rate 1 and Jukes-Cantor's sites, which is ``Multinomial(20 / 3, [0.25] * 4, share_equilibrium=True)``.

*chains.* DS1, DS5 and the 48 languages of ``posterior.py``: effective samples a second (ArviZ, bulk) of four chains each, what
our chains say of their convergence, and clade probabilities of both programs. The first quarter is left out, and its time is not.
On the alignments MrBayes begins at our greedy tree: from random trees its chains on DS5 did not arrive. Needs ``mb``.

*clades.* The same for DS1 and DS5 with chains that are long enough to compare clade probabilities, and the clades in which the
programs differ most. With ``--folder`` the files of MrBayes stay there, and what has run does not run again.

*speed.* How often a second a chain computes the likelihood of a whole tree, and how many moves it makes.

*evidence.* The log evidence of DS1 to DS8, and how long that took.

*beast.* The same by BEAST with stepping-stone sampling, one short run each. Needs ``beast-mcmc``.

*ascertainment.* Binary columns drawn from trees of known heights, constant ones left out: rates and heights that are sampled with
and without the condition.

*tempering.* DS1 and DS5 without and with heated chains that exchange trees with the one that is recorded (MC3), in the same
processor time: effective samples a second of the log joint, and of the clades that are neither rare nor certain.

*shares.* Languages, DS5 and DS1 with the usual shares of the kinds of moves, and with shares that are adapted to what each kind
earns in some time; with one heated chain on the alignments. Means of three chains.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np

import beast
import coaltree as ct
import mrbayes
from coaltree.inference.chain import EXCHANGE, MOVES, Chain, move_shares, without_ties
from coaltree.inference.kernels.history import log_likelihood_of
from coaltree.inference.results import describe_evidence, effective_samples, r_hat
from coaltree.inference.tempering import TemperedChain
from coaltree.tree.clades import clade_masks
from posterior import RATE, binary_features, processor_seconds

POPULATION_SIZE = 5
JUKES_CANTOR = 20 / 3  # in units of the population size
BEAST_MOVES = 15_000  # at each power
N_CHAINS = 4
AIM = 3.0  # times as many effective samples a second as MrBayes
PUBLISHED = {"DS1": -7154.7}  # log evidence: VIPR
REPORTED = 0.01  # probability of clades that are compared
SHOWN = 5  # clades in which the programs differ most
TOLERANCE = 1.0  # of a log likelihood of MrBayes, whose heights are rounded


class Lengths(NamedTuple):
    """How long the chains of both programs run."""

    n_samples: int  # of each chain
    n_heated: int
    sweeps: float  # moves from one sample to the next, over the number of rows
    of_peer: int  # samples of each chain of MrBayes
    peer_thin: int  # its moves from one to the next
    peer_heated: int


SHORT = {
    "languages": Lengths(1600, 0, 0.5, 700, 400, 0),
    "DS5": Lengths(2000, 0, 0.5, 800, 400, 0),
    "DS1": Lengths(1600, 0, 0.5, 700, 250, 0),
}
LONG = {"DS1": Lengths(6000, 1, 2, 4000, 500, 2), "DS5": Lengths(10000, 1, 2, 4000, 2000, 1)}
# (runs, chains, samples) of the evidence of each data set
SIZES = {"DS1": (20, 8, 8), "DS4": (3, 4, 8), "DS5": (3, 4, 8)}
OTHER_SIZE = (8, 4, 8)
WARMUP = 60  # rounds of moves


def read_data(name):
    """Return the table and the process of an alignment or of the languages."""
    if name == "languages":
        return binary_features(), ct.Multinomial(RATE, [0.5, 0.5], share_equilibrium=True)
    return read_alignment(name)


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


def chains(quick, names, folder):
    """Print effective samples a second of both programs, and how far apart they are."""
    compare(SHORT, quick, names, folder and folder / "short")


def clades(quick, names, folder):
    """Do the same with long chains."""
    compare(LONG, quick, names, folder and folder / "long")


def compare(lengths, quick, names, folder):
    """Compare the chains of both programs on some data sets."""
    for name in names or lengths:
        own = lengths[name]
        if quick:
            own = own._replace(n_samples=60, of_peer=60)
        with tempfile.TemporaryDirectory() as temporary:
            compare_on(name, own, Path(folder or temporary, name))


def compare_on(name, lengths, folder):
    """Compare the chains of both programs on a data set."""
    n_samples, n_heated, sweeps, of_peer, peer_thin, peer_heated = lengths
    X, process = read_data(name)
    rate, bases = (RATE, False) if name == "languages" else (JUKES_CANTOR, True)
    print(f"\n### {name}: {len(X)} rows, {X.shape[1]} columns\n", flush=True)
    ct.mcmc(X[:5], process, 10, 1, random_state=0)  # what is imported late is there then
    thin, warmup = int(sweeps * len(X)), n_samples // 4
    start, used = time.perf_counter(), time.process_time()
    sample = ct.mcmc(
        X, process, n_samples, N_CHAINS, n_heated=n_heated, warmup=warmup, thin=thin, n_jobs=2, random_state=0
    )
    used, took = time.process_time() - used, time.perf_counter() - start
    print(f"heated chains: {n_heated} of coaltree, {peer_heated} of MrBayes\n")
    print(
        "| | moves | time (s) | log joint | root height | tree length | root height is |\n|---|---|---|---|---|---|---|"
    )
    found = [sample.traces[key] for key in ("log_joint", "root_height", "tree_length")]
    ours = print_row("coaltree", thin * (n_heated + 1), used, found)
    largest = max(r_hat(own[:, warmup:]) for own in found)
    if mrbayes.PROGRAM is None:
        print("| MrBayes | not there: left out | | | | | |")
    else:
        tree = ct.greedy(X, process).tree if bases else None
        peer = mrbayes.run(X, rate, of_peer, peer_thin, range(N_CHAINS), folder, bases, tree, peer_heated)
        theirs = [
            np.array([getattr(chain, key) for chain in peer.chains])
            for key in ("log_joints", "root_heights", "tree_lengths")
        ]
        ratio = ours / print_row("MrBayes", peer_thin * (peer_heated + 1), peer.processor_seconds, theirs)
        verdict = "ok" if ratio.min() >= AIM else "MISSED"
        print(f"\ncoaltree / MrBayes: {', '.join(f'{own:.1f}' for own in ratio)}; at least {AIM:g}: {verdict}")
        visited = read_trees(X, process, rate, peer)
        n_kept = len(sample.trees) // N_CHAINS
        own = [list(map(clade_masks, sample.trees[k * n_kept : (k + 1) * n_kept])) for k in range(N_CHAINS)]
        print_clades([own, visited])
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


def read_trees(X, process, rate, peer):
    """Return the clades of the trees of MrBayes' chains, the first quarter left out; make sure that its likelihoods are right."""
    visited = []
    for chain in peer.chains:
        trees = ct.TreeSample.from_nexus(chain.trees, tolerance=1e-3).trees
        rows = [int(name.removeprefix("row")) for name in trees[0].leaf_names]
        last = ct.Tree(trees[-1].children, trees[-1].heights / (mrbayes.SEEN * rate))
        gap = process.log_likelihood(last, X[rows]) - chain.log_likelihoods[-1]
        if abs(gap) > TOLERANCE:
            raise RuntimeError(f"MrBayes' last log likelihood differs by {gap:.1f} from that of its last tree.")
        renumbered = {}
        for tree in trees[len(trees) // 4 :]:
            for mask in clade_masks(tree):
                if mask not in renumbered:
                    renumbered[mask] = sum(1 << row for leaf, row in enumerate(rows) if mask >> leaf & 1)
        visited.append([[renumbered[mask] for mask in clade_masks(tree)] for tree in trees[len(trees) // 4 :]])
    return visited


def print_clades(programs):
    """Print the clades of whose probabilities two programs differ most, with standard errors.

    For each program there is a list of the clades of each tree, of each chain.
    """
    frequencies = [Counter(mask for chain in visited for tree in chain for mask in tree) for visited in programs]
    n_trees = [sum(map(len, visited)) for visited in programs]
    masks = [
        mask
        for mask in set().union(*frequencies)
        if max(own[mask] / n for own, n in zip(frequencies, n_trees, strict=True)) >= REPORTED
    ]
    tables = []
    for visited in programs:
        where = {mask: k for k, mask in enumerate(masks)}
        seen = np.zeros((len(masks), len(visited), len(visited[0])), dtype=bool)
        for c, chain in enumerate(visited):
            for t, tree in enumerate(chain):
                seen[[where[mask] for mask in tree if mask in where], c, t] = True
        means = seen.mean(axis=(1, 2))
        worth = np.array([effective_samples(own.astype(float)) for own in seen])
        tables.append((means, np.sqrt(means * (1 - means) / worth)))
    (ours, our_error), (theirs, their_error) = tables
    gaps = np.abs(ours - theirs)
    print(
        f"\n{len(masks)} clades of probability {REPORTED:g} and more: they differ by at most {gaps.max():.3f}; the largest "
        f"standard errors are {our_error.max():.3f} in coaltree and {their_error.max():.3f} in MrBayes\n"
    )
    print("| clade | coaltree | MrBayes | difference |\n|---|---|---|---|")
    for k in np.argsort(-gaps)[:SHOWN]:
        rows = [row for row in range(masks[k].bit_length()) if masks[k] >> row & 1]
        cells = [" ".join(map(str, rows)), f"{ours[k]:.3f} ± {our_error[k]:.3f}"]
        print(f"| {' | '.join(cells)} | {theirs[k]:.3f} ± {their_error[k]:.3f} | {ours[k] - theirs[k]:+.3f} |")
    print(flush=True)


def speed(quick, names, _):
    """Print likelihoods and moves a second of one chain, where it has arrived."""
    print("| | columns | patterns | likelihoods a second | moves a second |\n|---|---|---|---|---|")
    for name in names or ("DS1", "DS5"):
        X, process = read_data(name)
        rng = np.random.default_rng(0)
        chain = Chain(X, process.resolve(X), without_ties(ct.greedy(X, process).tree, rng), rng)
        chain.move(3_000)
        count = 100 if quick else 2_000
        seconds = processor_seconds(
            lambda chain=chain, count=count: [log_likelihood_of(chain._forest, chain._history) for _ in range(count)]
        )
        of_moves = processor_seconds(lambda chain=chain, count=count: chain.move(10 * count))
        cells = [name, X.shape[1], chain._forest.n_sites, f"{count / seconds:,.0f}", f"{10 * count / of_moves:,.0f}"]
        print(f"| {' | '.join(map(str, cells))} |", flush=True)


def evidence(quick, names, _):
    """Print the log evidence of the alignments."""
    print(
        "| | rows | columns | runs x chains x samples | powers | log evidence | published | processor time (s) | clock (s) |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for name in names or [f"DS{k}" for k in range(1, 9)]:
        X, process = read_alignment(name)
        size = (2, 2, 2) if quick else SIZES.get(name, OTHER_SIZE)
        start, used = time.perf_counter(), time.process_time()
        found = ct.evidence(X, process, size[0], n_chains=size[1], n_samples=size[2], n_jobs=2, random_state=0)
        used, took = time.process_time() - used, time.perf_counter() - start
        known = f"{PUBLISHED[name]:.1f}" if name in PUBLISHED else ""
        cells = [name, len(X), X.shape[1], " x ".join(map(str, size)), len(found.powers) - 1]
        cells += [
            describe_evidence(found.log_evidence, found.standard_error, found.run_range),
            known,
            f"{used:.0f}",
            f"{took:.0f}",
        ]
        print(f"| {' | '.join(map(str, cells))} |", flush=True)


def peer_evidence(quick, names, folder):
    """Print the log evidence of the alignments by BEAST."""
    if beast.PROGRAM is None:
        print("BEAST is not there: left out")
        return
    print("| | moves at each of 51 powers | log evidence |\n|---|---|---|")
    for name in names or [f"DS{k}" for k in range(1, 9)]:
        moves = 500 if quick else BEAST_MOVES
        with tempfile.TemporaryDirectory() as temporary:
            X, _ = read_alignment(name)
            found = beast.run(X, POPULATION_SIZE, moves, 50, 1, Path(folder or temporary, f"beast-{name}"))
        print(f"| {name} | {moves:,} | {found.log_evidence:.1f} ± {found.standard_error:.1f} |", flush=True)


def ascertainment(quick, *_):
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


def tempering(quick, names, _):
    """Print how well clades mix with and without heated chains, in the same time."""
    seconds = 3 if quick else 20
    print("| | heated chains | samples | exchanges accepted | log joint | clades, harmonic mean | clades, least |")
    print("|---|---|---|---|---|---|---|")
    for name in names or ("DS1", "DS5"):
        X, process = read_alignment(name)
        process = process.resolve(X)
        start = ct.greedy(X, process).tree
        for n_heated in (0, 1, 2):
            for seed in range(1 if quick else 2):
                log_joints, trees, exchanged = run_tempered(X, process, start, n_heated, seed, seconds)
                worth = worth_of_clades(trees, seconds)
                cells = [name, n_heated, len(trees), f"{exchanged:.0%}" if n_heated else ""]
                cells += [f"{effective_samples(log_joints[None]) / seconds:.1f} a second"]
                cells += [f"{1 / np.mean(1 / worth):.1f} a second", f"{worth.min():.1f} a second"]
                print(f"| {' | '.join(map(str, cells))} |", flush=True)


def run_tempered(X, process, start, n_heated, seed, seconds, shares=None):
    """Run a chain with heated companions for some time; return its log joints and trees, and the share of exchanges."""
    rngs = [np.random.default_rng([seed, k]) for k in range(n_heated + 1)]
    chain = TemperedChain(X, process, without_ties(start, rngs[0]), rngs)
    for own in chain.members() if shares is not None else []:
        own._shares = np.cumsum(shares)
    for _ in range(WARMUP):
        chain.move(len(X))
        chain.tune()
    log_joints, trees, begin = [], [], time.process_time()
    while time.process_time() - begin < seconds:
        chain.move(len(X))
        log_joints.append(chain.log_joint)
        trees.append(chain.tree())
    return np.array(log_joints), trees, chain.accepted[EXCHANGE] / max(chain.tried[EXCHANGE], 1)


def worth_of_clades(trees, seconds):
    """Return effective samples a second of the clades that are neither rare nor certain."""
    masks, worth = [set(clade_masks(tree)) for tree in trees], []
    for mask in set().union(*masks):
        seen = np.array([mask in own for own in masks], dtype=float)
        if 0.03 < seen.mean() < 0.97:
            worth.append(effective_samples(seen[None]) / seconds)
    return np.array(worth)


def shares(quick, names, _):
    """Print how well chains mix with their shares of the moves, and with shares that are adapted to what moves earn."""
    seconds = 2 if quick else 20
    print(f"| | shares of {', '.join(MOVES)} | log joint | tree length | clades, median | clades, harmonic mean |")
    print("|---|---|---|---|---|---|")
    for name in names or ("languages", "DS5", "DS1"):
        X, process = read_data(name)
        process = process.resolve(X)
        start, n_heated = ct.greedy(X, process).tree, int(name != "languages")
        for own in (move_shares(len(X)), adapted_shares(X, process, start, 3 if quick else 60)):
            rows = []
            for seed in range(1 if quick else 3):
                log_joints, trees, _ = run_tempered(X, process, start, n_heated, seed, seconds, own)
                lengths = np.array([tree.branch_lengths.sum() for tree in trees])
                clades = worth_of_clades(trees, seconds)
                joint, length = (effective_samples(trace[None]) / seconds for trace in (log_joints, lengths))
                rows.append([joint, length, np.median(clades), 1 / np.mean(1 / clades)])
            cells = [
                name,
                ", ".join(f"{share:.0%}" for share in own),
                *(f"{cell:.0f}" for cell in np.mean(rows, axis=0)),
            ]
            print(f"| {' | '.join(cells)} |", flush=True)


def adapted_shares(X, process, start, rounds):
    """Return shares of moves by what each kind earns in some time, where the chain has arrived.

    A move earns the squares of what it changes of the log joint and of the logarithm of the root's height, and the number of
    clades that it exchanges. Shares of the time maximise the product of what is earned of these three.
    """
    rng, n = np.random.default_rng(0), len(X)
    chain = Chain(X, process, without_ties(start, rng), rng)
    for _ in range(WARMUP):
        chain.move(n)
        chain.tune()
    usual = move_shares(n)
    earned, spent = np.zeros((len(MOVES), 3)), np.zeros(len(MOVES))
    for _ in range(rounds):
        for kind in range(len(MOVES)):
            chain._shares = np.cumsum(np.eye(len(MOVES))[kind])
            for _ in range(6):
                before, clades = chain.sample(), set(clade_masks(chain.tree()))
                begin = time.process_time()
                chain._make_moves(1)
                spent[kind] += time.process_time() - begin
                chain._update_log_joint()
                after = chain.sample()
                root = np.log(after.heights[-1] / before.heights[-1])
                exchanged = len(clades - set(clade_masks(chain.tree())))
                earned[kind] += (after.log_joint - before.log_joint) ** 2, root**2, exchanged
        chain._shares = np.cumsum(usual)
        chain.move(n)
    rate = earned / spent[:, None]
    times = np.full(len(MOVES), 1 / len(MOVES))
    for _ in range(2000):
        times = times * np.mean(rate / (times @ rate), axis=1)
    best = times / spent
    return 0.9 * best / best.sum() + 0.1 * usual  # all places stay within reach


PARTS = {part.__name__: part for part in (chains, clades, speed, evidence, ascertainment, tempering, shares)}
PARTS["beast"] = peer_evidence


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("parts", nargs="*", help=f"some of {', '.join(PARTS)}; all by default")
    parser.add_argument("--data", nargs="*", help="names of the data sets; all by default")
    parser.add_argument("--folder", type=Path, help="where the files of MrBayes stay")
    parser.add_argument("--quick", action="store_true", help="short chains, to see that all runs")
    options = parser.parse_args()
    for name in options.parts:
        if name not in PARTS:
            parser.error(f"there is no part {name!r}; parts are {', '.join(PARTS)}")
    warnings.simplefilter("ignore", ct.errors.InputWarning)  # of short chains
    for name in options.parts or PARTS:
        print(f"\n## {name}\n", flush=True)
        PARTS[name](options.quick, options.data, options.folder)


if __name__ == "__main__":
    main()
