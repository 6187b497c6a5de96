"""MrBayes with coaltree's models: Kingman's coalescent with a strict clock.

`run` has a fixed clock and equally likely states, the four bases or two. `run_characters` has the default models of characters.

MrBayes takes a fixed population size for DNA only, so states are written as bases that leave something open: 0 is A or C, 1 is G
or T. A base that mutates at rate r to one of the four at random mutates between the two halves as a binary column of rate r does,
and what is open is summed over: the likelihoods are the same. MrBayes counts only the three quarters of the mutations that change
the base, so its clock has the rate 0.75 r. Two lineages of a haploid population of size 1 meet at rate 1, as here.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import numpy as np

PROGRAM = shutil.which("mb")  # Debian and Ubuntu: apt install mrbayes
SEEN = 0.75  # share of the mutations that change a base
SECONDS = "seconds"  # the file with the processor time of a chain
SETS = "-ACMGRSVTWYHKDBN"  # letters of sets of bases, by the sum of their powers of two

SCRIPT = """#NEXUS
begin data;
dimensions ntax={n_rows} nchar={n_columns};
format datatype=dna missing=?;
matrix
{matrix}
;
end;
{start}begin mrbayes;
set beagleprecision=double autoclose=yes nowarnings=yes seed={seed} swapseed={seed} quitonerror=yes;
lset nst=1 rates=equal ploidy=haploid;
prset statefreqpr=fixed(equal) brlenspr=clock:coalescence popsizepr=fixed(1) clockvarpr=strict clockratepr=fixed({clock});
{begin}mcmc nruns=1 nchains={n_chains} ngen={moves} samplefreq={thin} printfreq={moves} diagnfreq={moves};
end;
"""


CHARACTERS = """#NEXUS
begin data;
dimensions ntax={n_rows} nchar={n_columns};
format datatype={datatype} missing=?;
matrix
{matrix}
;
end;
begin mrbayes;
set beagleprecision=double autoclose=yes nowarnings=yes seed={seed} swapseed={seed} quitonerror=yes;
{model}
mcmc nruns=1 nchains=1 ngen={moves} samplefreq={thin} printfreq={moves} diagnfreq={moves};
end;
"""
# Our priors: frequencies have the distribution of Dirichlet with one more count, spread evenly, and the rate of redraws has the
# Gamma distribution of `coaltree.process.base`. Here it is the population size, in expected changes, which are fewer than
# redraws. (With a clock of that rate and a fixed population size, MrBayes 3.2.7a has lower trees, though the model is the same.)
FELSENSTEIN = """lset nst=1 rates={rates} ngammacat=4 ploidy=haploid;
prset statefreqpr=dirichlet(1.25,1.25,1.25,1.25) brlenspr=clock:coalescence popsizepr=gamma({shape},{rate});
prset clockvarpr=strict clockratepr=fixed(1);"""
# MrBayes lets nobody choose the prior of the population size N of standard characters, which is exponential. Two lineages of a
# diploid population meet at rate 1 / (2 N).
MKV = """lset coding=variable rates=equal;
prset brlenspr=clock:coalescence clockvarpr=strict clockratepr=fixed(1);"""
POPULATION_RATE = 10.0


class Chain(NamedTuple):
    """What one chain visited, the warm-up too."""

    root_heights: np.ndarray
    tree_lengths: np.ndarray
    log_likelihoods: np.ndarray
    log_joints: np.ndarray  # but for a constant
    trees: str  # NEXUS, with heights in units of expected changes of a base


class Chains(NamedTuple):
    """Chains that ran at the same time, each in a process of its own."""

    chains: list[Chain]
    processor_seconds: float


def run(X, rate, n_samples, thin, seeds, folder, bases=False, start=None, n_heated=0):
    """Sample trees for a table of states and missing cells, with a chain for each seed.

    Parameters
    ----------
    X : ndarray of shape (n, D)
    rate : float
        At which columns mutate.
    n_samples, thin : int
        Trees that each chain records, and moves from one to the next.
    seeds : sequence of int
    folder : Path
        For the files of MrBayes. A chain whose files are there does not run again.
    bases : bool, default False
        Whether states are the four bases, or sets of them; if not, there are two states.
    start : Tree, optional
        Where chains begin; by default at random trees.
    n_heated : int, default 0
        Heated chains next to each of them.

    Returns
    -------
    Chains
    """
    return _run_scripts(
        lambda seed: script(X, rate, n_samples, thin, seed, bases, start, n_heated), seeds, folder, SEEN * rate
    )


def run_characters(frame, model, n_samples, thin, seeds, folder):
    """Sample trees for a frame of `coaltree.read_characters` with MrBayes' own models, with a chain for each seed.

    Parameters
    ----------
    frame : DataFrame
        DNA or standard characters.
    model : str
        The settings of MrBayes, such as `MKV`.
    n_samples, thin, seeds, folder
        As in `run`.

    Returns
    -------
    Chains
        With heights in expected changes of a character.
    """
    (datatype,) = {frame.attrs["datatypes"][name] for name in frame.columns}

    def letter(cell):
        return (
            "{" + "".join(sorted(cell)) + "}" if isinstance(cell, frozenset) else cell if isinstance(cell, str) else "?"
        )

    rows = [f"row{i} {''.join(map(letter, row))}" for i, row in enumerate(frame.itertuples(index=False))]

    def make_script(seed):
        return CHARACTERS.format(
            n_rows=len(frame),
            n_columns=frame.shape[1],
            datatype=datatype,
            matrix="\n".join(rows),
            seed=seed + 1,
            model=model,
            moves=n_samples * thin,
            thin=thin,
        )

    return _run_scripts(make_script, seeds, folder, 1.0)


def _run_scripts(make_script, seeds, folder, clock):
    folders = [Path(folder) / str(seed) for seed in seeds]
    missing = [(own, seed) for own, seed in zip(folders, seeds, strict=True) if not (own / SECONDS).exists()]
    for own, seed in missing:
        own.mkdir(parents=True, exist_ok=True)
        (own / "table.nex").write_text(make_script(seed))
    before = children_seconds()
    running = [_started(own) for own, _ in missing]
    outputs = [process.communicate()[0] for process in running]
    seconds = children_seconds() - before
    for process, output in zip(running, outputs, strict=True):
        if process.returncode:
            raise RuntimeError(f"MrBayes stopped: {output[-1000:]}")
    for own, _ in missing:
        (own / SECONDS).write_text(f"{seconds / len(missing)}\n")
    return Chains([_read(own, clock) for own in folders], sum(float((own / SECONDS).read_text()) for own in folders))


def script(X, rate, n_samples, thin, seed, bases=False, start=None, n_heated=0):
    """Return the input of MrBayes."""
    matrix = "\n".join(f"row{i} {row}" for i, row in enumerate(letters(X, bases)))
    tree = None
    if start is not None:
        names = [f"row{i}" for i in range(start.n_leaves)]
        tree = type(start)(start.children, SEEN * rate * start.heights, names).to_newick()
    return SCRIPT.format(
        start="" if tree is None else f"begin trees;\ntree start = [&R] {tree}\nend;\n",
        begin="" if tree is None else "startvals tau=start V=start;\n",
        n_rows=len(X),
        n_columns=X.shape[1],
        matrix=matrix,
        seed=seed + 1,  # 0 is not allowed
        clock=SEEN * rate,
        moves=n_samples * thin,
        thin=thin,
        n_chains=n_heated + 1,
    )


def letters(X, bases):
    """Return the rows of a table as MrBayes reads them."""
    if not bases:
        return ["".join(row) for row in np.where(np.isnan(X), "?", np.where(X == 0, "M", "K"))]

    def letter(code):
        return "?" if np.isnan(code) else "ACGT"[int(code)] if code >= 0 else SETS[int(-code)]

    return ["".join(map(letter, row)) for row in X]


def children_seconds():
    """Processor time of all processes that were started from here and have ended."""
    times = os.times()
    return times.children_user + times.children_system


def _started(folder):
    return subprocess.Popen(
        [PROGRAM, "table.nex"],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _read(folder, clock):
    _, header, *lines = (folder / "table.nex.p").read_text().splitlines()
    columns = np.array([line.split("\t") for line in lines[1:]], dtype=float).T  # without where it began
    found = dict(zip(header.split("\t"), columns, strict=True))
    return Chain(
        found["TH"] / clock,
        found["TL"] / clock,
        found["LnL"],
        found["LnL"] + found["LnPr"],
        (folder / "table.nex.t").read_text(),
    )
