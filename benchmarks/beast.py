"""BEAST with coaltree's model of DNA, for the evidence: Kingman's coalescent, a strict clock of rate 1, equally likely bases.

A chain climbs down from the posterior to the prior in steps, and stepping-stone sampling (Xie and others 2011) turns its samples
into the evidence, as ``ct.evidence`` does on its way up. Two lineages of a population of size N meet at rate 1 / N.
"""

from __future__ import annotations

import shutil
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from coaltree.inference.results import effective_samples

PROGRAM = shutil.which("beast-mcmc") or shutil.which("beast")  # Debian and Ubuntu: apt install beast-mcmc
LETTERS = "-ACMGRSVTWYHKDBN"  # letters of sets of bases, by the sum of their powers of two

XML = """<?xml version="1.0" standalone="yes"?>
<beast>
<taxa id="taxa">{taxa}</taxa>
<alignment id="alignment" dataType="nucleotide">{sequences}</alignment>
<patterns id="patterns" from="1" strip="false"><alignment idref="alignment"/></patterns>
<constantSize id="constant" units="years">
<populationSize><parameter id="popSize" value="{size}"/></populationSize></constantSize>
<coalescentSimulator id="start"><taxa idref="taxa"/><constantSize idref="constant"/></coalescentSimulator>
<treeModel id="treeModel"><coalescentTree idref="start"/><rootHeight><parameter id="rootHeight"/></rootHeight>
<nodeHeights internalNodes="true"><parameter id="heights"/></nodeHeights>
<nodeHeights internalNodes="true" rootNode="true"><parameter id="allHeights"/></nodeHeights></treeModel>
<coalescentLikelihood id="coalescent"><model><constantSize idref="constant"/></model>
<populationTree><treeModel idref="treeModel"/></populationTree></coalescentLikelihood>
<strictClockBranchRates id="clock"><rate><parameter value="1.0"/></rate></strictClockBranchRates>
<HKYModel id="hky"><frequencies><frequencyModel dataType="nucleotide"><frequencies>
<parameter value="0.25 0.25 0.25 0.25"/></frequencies></frequencyModel></frequencies>
<kappa><parameter value="1.0"/></kappa></HKYModel>
<siteModel id="siteModel"><substitutionModel><HKYModel idref="hky"/></substitutionModel></siteModel>
<treeDataLikelihood id="sites" useAmbiguities="true"><partition><patterns idref="patterns"/>
<siteModel idref="siteModel"/></partition><treeModel idref="treeModel"/><strictClockBranchRates idref="clock"/>
</treeDataLikelihood>
<operators id="operators">
<subtreeLeap size="0.1" weight="20"><treeModel idref="treeModel"/></subtreeLeap>
<subtreeSlide size="0.02" gaussian="true" weight="10"><treeModel idref="treeModel"/></subtreeSlide>
<narrowExchange weight="10"><treeModel idref="treeModel"/></narrowExchange>
<wideExchange weight="3"><treeModel idref="treeModel"/></wideExchange>
<wilsonBalding weight="3"><treeModel idref="treeModel"/></wilsonBalding>
<scaleOperator scaleFactor="0.75" weight="2"><parameter idref="rootHeight"/></scaleOperator>
<uniformOperator weight="20"><parameter idref="heights"/></uniformOperator>
<scaleOperator scaleFactor="0.9" scaleAll="true" ignoreBounds="true" weight="3"><parameter idref="allHeights"/></scaleOperator>
</operators>
<mcmc id="mcmc" chainLength="{warmup}"><posterior id="posterior">
<prior id="prior"><coalescentLikelihood idref="coalescent"/></prior>
<likelihood id="likelihood"><treeDataLikelihood idref="sites"/></likelihood></posterior>
<operators idref="operators"/>
<log logEvery="{warmup}"><column label="posterior" width="12"><posterior idref="posterior"/></column></log></mcmc>
<marginalLikelihoodEstimator chainLength="{moves}" pathSteps="{steps}" pathScheme="betaquantile" alpha="0.30">
<samplers><mcmc idref="mcmc"/></samplers>
<pathLikelihood id="pathLikelihood"><source><posterior idref="posterior"/></source>
<destination><prior idref="prior"/></destination></pathLikelihood>
<log logEvery="{thin}" fileName="{log}"><pathLikelihood idref="pathLikelihood"/></log>
</marginalLikelihoodEstimator>
</beast>
"""
LOG = "path.log"


class Evidence(NamedTuple):
    """The log evidence of one run, and the standard error of its samples, which does not know of chains that lag behind."""

    log_evidence: float
    standard_error: float


def run(X, population_size, moves, steps, seed, folder, warmup=200_000):
    """Run BEAST on a table of bases, 0 to 3 or sets of them, and return its evidence."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    sequences = ["".join(map(_letter, row)) for row in X.tolist()]
    xml = XML.format(
        taxa="".join(f'<taxon id="row{k}"/>' for k in range(len(sequences))),
        sequences="".join(f'<sequence><taxon idref="row{k}"/>{bases}</sequence>' for k, bases in enumerate(sequences)),
        size=population_size,
        warmup=warmup,
        moves=moves,
        steps=steps,
        thin=max(moves // 500, 1),
        log=LOG,
    )
    (folder / "run.xml").write_text(xml)
    command = [PROGRAM, "-overwrite", "-threads", "1", "-seed", str(seed), "run.xml"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"BEAST stopped: {(done.stdout + done.stderr)[-600:]}")
    return read_evidence(folder / LOG)


def _letter(cell):
    """Return the letter of a base, of a set of bases, coded as minus the sum of their powers of two, or of a missing cell."""
    if np.isnan(cell):
        return "?"
    return LETTERS[1 << int(cell)] if cell >= 0 else LETTERS[int(-cell)]


def read_evidence(path):
    """Return the evidence by stepping-stone sampling from the samples at each power."""
    rows = np.array([line.split("\t") for line in path.read_text().splitlines() if line[:1].isdigit()], dtype=float)
    powers = np.unique(rows[:, 4])
    log_evidence, variance = 0.0, 0.0
    for low, high in pairwise(powers):
        log_weights = (high - low) * rows[rows[:, 4] == low, 1]
        weights = np.exp(log_weights - log_weights.max())
        log_evidence += log_weights.max() + np.log(weights.mean())
        variance += weights.var() / weights.mean() ** 2 / effective_samples(weights[None])
    return Evidence(float(log_evidence), float(np.sqrt(variance)))
