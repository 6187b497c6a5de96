"""Alignments as other programs write them: equal to what was written, or one message if they are damaged."""

from __future__ import annotations

import gzip
import io
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import coaltree as ct

from .damage import BYTE_DAMAGES, choose
from .outcome import ACCEPTED, REJECTED, Outcome, check, classify, run_command, try_call

Rng = np.random.Generator
Names = Callable[[str], str]

AMBIGUITIES = {"R": "AG", "Y": "CT", "M": "AC", "K": "GT", "S": "CG", "W": "AT"}
AMBIGUITIES |= {"H": "ACT", "B": "CGT", "V": "ACG", "D": "AGT"}
SYMBOLS = {"dna": "ACGT", "protein": "ACDEFGHIKLMNPQRSTVWY", "standard": "0123456789"}
COMMANDS_SHARE = 0.03


@dataclass
class Alignment:
    """Taxa, the symbols of their cells, and the cells that symbols stand for."""

    datatype: str
    taxa: list[str]
    rows: list[list[str]]
    partitions: dict[str, list[int]] = field(default_factory=dict)  # positions, counted from 0
    labels: list[str] = field(default_factory=list)
    is_quoted: bool = False  # whether all names are in quotes

    @property
    def width(self) -> int:
        """The number of characters."""
        return len(self.rows[0])

    def cell(self, symbol: str) -> object:
        """Return what a symbol stands for."""
        if (
            symbol in "?-"
            or (symbol == "N" and self.datatype == "dna")
            or (symbol == "X" and self.datatype == "protein")
        ):
            return None
        if len(symbol) > 1:
            return frozenset(symbol[1:-1])
        return frozenset(AMBIGUITIES[symbol]) if self.datatype == "dna" and symbol in AMBIGUITIES else symbol


def draw_alignment(rng: Rng, datatype: str, strict: bool, sets: bool) -> Alignment:
    """Draw an alignment; `strict` names have ten characters at most, and no blanks or punctuation."""
    n, width = int(rng.integers(2, 8)), int(rng.choice([1, 2, 5, 9, 10, 11, 23, 61, 75, 130]))
    states = SYMBOLS[datatype][: int(rng.integers(2, 5))] if datatype == "standard" else SYMBOLS[datatype]
    symbols = [
        *states,
        *(["N", *AMBIGUITIES] if datatype == "dna" else ["X"] if datatype == "protein" else []),
        "?",
        "-",
    ]
    shares = np.array([12.0] * len(states) + [1.0] * (len(symbols) - len(states)))
    if width < 10 and datatype == "dna":  # so few cells with codes for several bases may be amino acids
        symbols = [*states, "?", "-"]
        shares = shares[: len(symbols)]
    if sets:
        symbols += [f"{{{states[:2]}}}", f"({states[1]}{states[0]})"]
        shares = np.append(shares, [1.0, 1.0])
    rows = [[str(symbol) for symbol in rng.choice(symbols, size=width, p=shares / shares.sum())] for _ in range(n)]
    if datatype != "standard":  # so that the symbols of a short alignment do not say something else
        rows[0] = [states[j % len(states)] for j in range(width)]
        rows[0][0] = "L" if datatype == "protein" else rows[0][0]
    return Alignment(datatype, _draw_names(rng, n, strict), rows)


def _draw_names(rng: Rng, n: int, strict: bool) -> list[str]:
    kinds: list[list[str]] = [
        [f"t{i}" for i in range(n)],
        [f"{i + 1}" for i in range(n)],
        [f"No30{i}" for i in range(n)],
        ["ACGT", "ACGA", "CGTA", "N", "A", "C", "T"][:n],
        [f"Seq{i}.{i}/{i}" for i in range(n)],
    ]
    if not strict:
        kinds += [
            [f"Homo_sapiens_{i}" for i in range(n)],
            [f"NC_0012{i}.1|chr{i}|{'x' * 30}" for i in range(n)],
            [f"Pan_troglodytes_(nov)_{i}".replace("(", "").replace(")", "") for i in range(n)],
            ["begin", "end", "matrix", "Müller", "data", "x-y", "a#b"][:n],
        ]
    return kinds[int(rng.integers(len(kinds)))]


# -- FASTA and PHYLIP ------------------------------------------------------------------------------------------------------


def _wrap(text: str, size: int) -> list[str]:
    return [text[k : k + size] for k in range(0, len(text), size)]


def fasta(rng: Rng, data: Alignment) -> str:
    """As IQ-TREE, MEGA, Mesquite and RAxML write it: on one line, or wrapped, with or without descriptions."""
    size = int(rng.choice([60, 70, 80, 10_000]))
    description = str(rng.choice(["", " [organism=x] y", " 1 75 bp"]))
    blank = "\n" * int(rng.integers(2))
    return "".join(
        f">{taxon}{description}\n" + "\n".join(_wrap("".join(row), size)) + "\n" + blank
        for taxon, row in zip(data.taxa, data.rows, strict=True)
    )


def relaxed_phylip(rng: Rng, data: Alignment) -> str:
    """As IQ-TREE, RAxML and PhyML write it: names of any length."""
    pad = max(map(len, data.taxa)) + 2 if rng.random() < 0.5 else 0
    between = str(rng.choice([" ", "  ", "\t"])) if pad == 0 else ""
    end = str(rng.choice(["", " "]))
    lines = [f"{taxon.ljust(pad)}{between}{''.join(row)}{end}" for taxon, row in zip(data.taxa, data.rows, strict=True)]
    return f"{rng.choice(['', ' '])}{len(data.taxa)} {data.width}\n" + "\n".join(lines) + "\n"


def strict_phylip(rng: Rng, data: Alignment) -> str:
    """As programs of PHYLIP and ``ape::write.dna`` write it: names of ten characters, symbols in groups of ten."""
    size, gap = int(rng.choice([60, 10_000])), str(rng.choice(["", " "]))
    indent = " " * int(rng.choice([0, 10]))
    groups = [[gap.join(_wrap(part, 10)) for part in _wrap("".join(row), size)] for row in data.rows]
    names = [taxon[:10].ljust(10) for taxon in data.taxa]
    header = f"{len(data.taxa):6}{data.width:7}"
    if rng.random() < 0.5:  # interleaved
        blocks = ["\n".join(name + parts[0] for name, parts in zip(names, groups, strict=True))]
        blocks += ["\n".join(indent + parts[k] for parts in groups) for k in range(1, len(groups[0]))]
        return header + "\n" + "\n\n".join(blocks) + "\n"
    return (
        header
        + "\n"
        + "".join(name + ("\n" + indent).join(parts) + "\n" for name, parts in zip(names, groups, strict=True))
    )


def paml(rng: Rng, data: Alignment) -> str:
    """As files for PAML: the name on a line of its own, or two blanks after it."""
    between = str(rng.choice(["\n", "  "]))
    blank = str(rng.choice(["", "\n"]))
    return f"  {len(data.taxa)}   {data.width}\n{blank}" + blank.join(
        f"{taxon}{between}" + "\n".join(_wrap("".join(row), 60)) + "\n"
        for taxon, row in zip(data.taxa, data.rows, strict=True)
    )


def biopython(rng: Rng, data: Alignment) -> tuple[str, str]:
    """Return a file of Biopython, with its ending."""
    from Bio import AlignIO
    from Bio.Align import MultipleSeqAlignment
    from Bio.Seq import Seq
    from Bio.SeqRecord import SeqRecord

    kinds = {"fasta": "fas", "fasta-2line": "fa", "phylip-relaxed": "phy", "phylip-sequential": "phy", "nexus": "nex"}
    kind = str(rng.choice(list(kinds)))
    records = [
        SeqRecord(
            Seq("".join(row)), id=taxon, annotations={"molecule_type": {"dna": "DNA"}.get(data.datatype, data.datatype)}
        )
        for taxon, row in zip(data.taxa, data.rows, strict=True)
    ]
    text = io.StringIO()
    AlignIO.write(MultipleSeqAlignment(records), text, kind)
    return text.getvalue(), kinds[kind]


def dendropy(rng: Rng, data: Alignment) -> tuple[str, str]:
    """Return a file of DendroPy, with its ending."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import dendropy as library

        classes = {
            "dna": library.DnaCharacterMatrix,
            "protein": library.ProteinCharacterMatrix,
            "standard": library.StandardCharacterMatrix,
        }
        rows = {taxon: "".join(row) for taxon, row in zip(data.taxa, data.rows, strict=True)}
        matrix = classes[data.datatype].from_dict(rows)
        kinds = {"nexus": "nex", "phylip": "phy", "fasta": "fasta"}
        kind = str(rng.choice(list(kinds)))
        return matrix.as_string(kind), kinds[kind]


# -- NEXUS -----------------------------------------------------------------------------------------------------------------


def quote(name: str) -> str:
    """Return a name as NEXUS files have it."""
    return name if name.replace("_", "").replace(".", "").isalnum() else "'" + name.replace("'", "''") + "'"


def _interleave(rng: Rng, data: Alignment, size: int, spell: Names, comments: bool = False) -> str:
    blocks = []
    for k in range(0, data.width, size):
        lines = []
        for taxon, row in zip(data.taxa, data.rows, strict=True):
            part = row[k : k + size]
            note = f"   [{k + len(part)}]" if comments else ""
            lines.append(f"{spell(taxon):12} {''.join(part)}{note}")
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def _with_points(data: Alignment) -> Alignment:
    """Write a point where a row is like the first one."""
    first = data.rows[0]
    rows = [first, *([("." if a == b else b) for a, b in zip(first, row, strict=True)] for row in data.rows[1:])]
    return Alignment(data.datatype, data.taxa, rows)


def _states(data: Alignment) -> str:
    return "".join(sorted({symbol for row in data.rows for symbol in row if symbol.isdigit()} | {"0", "1"}))


def ape(rng: Rng, data: Alignment) -> str:
    """As ``ape::write.nexus.data`` and ``phangorn::write.phyDat`` write it."""
    interleaved = rng.random() < 0.5
    kind = data.datatype.upper()
    symbols = f' SYMBOLS="{_states(data)}"' if kind == "STANDARD" else ""
    lower = Alignment(kind, data.taxa, [[symbol.lower() for symbol in row] for row in data.rows])
    written = lower if kind == "DNA" else data
    matrix = _interleave(rng, written, 80 if interleaved else 10_000, lambda name: f"    {quote(name)}")
    return (
        "#NEXUS\n[Data written by write.nexus.data.R, Thu Nov 19 12:00:00 2026]\nBEGIN DATA;\n"
        f"  DIMENSIONS NTAX={len(data.taxa)} NCHAR={data.width};\n"
        f"  FORMAT DATATYPE={kind} MISSING=? GAP=- INTERLEAVE={'YES' if interleaved else 'NO'}{symbols};\n  MATRIX\n"
        f"{matrix}\n  ;\nEND;\n"
    )


def mrbayes(rng: Rng, data: Alignment) -> str:
    """As files for MrBayes, with charsets and a partition."""
    middle = max(1, data.width // 2)
    data.partitions = {"first": list(range(middle))}
    parts = f"charset first = 1-{middle};\n"
    if middle < data.width:
        data.partitions["second"] = list(range(middle, data.width))
        parts += f"charset second = {middle + 1} - .;\npartition both = 2: first, second;\nset partition=both;\n"
    kind = {"dna": "dna", "protein": "protein", "standard": "standard"}[data.datatype]
    if data.datatype == "standard" and set(_states(data)) == {"0", "1"}:
        kind = "restriction"
    matrix = _interleave(rng, data, 40, quote)
    return (
        f"#NEXUS\nbegin data;\ndimensions ntax={len(data.taxa)} nchar={data.width};\n"
        f"format datatype={kind} interleave=yes gap=- missing=?;\nmatrix\n{matrix}\n;\nend;\n"
        f"begin mrbayes;\nset autoclose=yes;\n{parts}mcmc ngen=100;\nend;\n"
    )


def mesquite(rng: Rng, data: Alignment) -> str:
    """As Mesquite writes it: blocks with titles, names of characters, a partition."""
    middle = max(1, data.width // 2)
    data.labels = [f"c{j + 1}" for j in range(data.width)]
    data.partitions = {"Skull": list(range(middle))}
    rest = ""
    if middle < data.width:
        data.partitions["rest"] = list(range(middle, data.width))
        rest = str(rng.choice([", rest: REMAINDER", f", rest :  {middle + 1} -  {data.width}"]))
    states = f' SYMBOLS = "  {" ".join(_states(data))}"' if data.datatype == "standard" else ""
    names = ", ".join(f"{j} {label}" for j, label in enumerate(data.labels, 1))
    rows = "\n".join(f"\t{quote(taxon)}  {''.join(row)}" for taxon, row in zip(data.taxa, data.rows, strict=True))
    return (
        "#NEXUS\n[written Sat Jan 01 by Mesquite  version 3.81]\n\nBEGIN TAXA;\n\tTITLE Taxa;\n"
        f"\tDIMENSIONS NTAX={len(data.taxa)};\n\tTAXLABELS\n\t\t{' '.join(map(quote, data.taxa))} \n\t;\n\nEND;\n\n\n"
        f"BEGIN CHARACTERS;\n\tTITLE  Matrix;\n\tLINK TAXA = Taxa;\n\tDIMENSIONS  NCHAR={data.width};\n"
        f"\tFORMAT DATATYPE = {data.datatype.upper()} GAP = - MISSING = ?{states};\n\tCHARSTATELABELS \n\t\t{names} ; \n"
        f"\tMATRIX\n{rows}\n\n;\n\nEND;\nBEGIN ASSUMPTIONS;\n\tTYPESET * UNTITLED   =  unord:  1 -  {data.width};\nEND;\n"
        f"BEGIN SETS;\n\tCHARPARTITION * UNTITLED  (CHARACTERS = Matrix)  =  Skull :  1 -  {middle}{rest};\nEND;\n"
    )


def paup(rng: Rng, data: Alignment) -> str:
    """As PAUP* and MacClade write it: interleaved, with numbers in comments and points."""
    points = _with_points(data)
    matrix = _interleave(rng, points, 50, quote, comments=True)
    datatype = "" if data.datatype == "standard" else f"datatype={data.datatype} "
    symbols = f'symbols="{_states(data)}" ' if data.datatype == "standard" else ""
    return (
        f"#NEXUS \n\nBegin data;\n\tDimensions ntax={len(data.taxa)} nchar={data.width};\n"
        f"\tFormat {datatype}{symbols}missing=? gap=- matchchar=. interleave;\n\tOptions gapmode=missing;\n\tMatrix\n"
        f"[                  10        20 ]\n[                  .         . ]\n{matrix}\n\t;\nEnd;\n"
        "begin paup;\n\tset criterion=likelihood;\n\texclude 1;\nend;\n"
    )


def splitstree(rng: Rng, data: Alignment) -> str:
    """As SplitsTree writes it: all names quoted, with the options in lower case, one to a line."""
    data.is_quoted = True
    spell = lambda name: "'" + name + "'"  # noqa: E731
    symbols = (
        _states(data)
        if data.datatype == "standard"
        else {"dna": "atgc", "protein": "arndcqeghilkmfpstwyvz"}[data.datatype]
    )
    labels = "\n".join(f"[{k}] {spell(taxon)}" for k, taxon in enumerate(data.taxa, 1))
    matrix = _interleave(rng, data, 60, spell)
    return (
        f"#nexus\n\nBEGIN Taxa;\nDIMENSIONS ntax={len(data.taxa)};\nTAXLABELS\n{labels}\n;\nEND; [Taxa]\n\nBEGIN Characters;\n"
        f"DIMENSIONS nchar={data.width};\nFORMAT\n\tdatatype='{data.datatype}'\n\tmissing=?\n\tgap=-\n\tsymbols=\"{symbols}\"\n"
        f"\tlabels=left\n\ttranspose=no\n\tinterleave=yes\n;\nMATRIX\n{matrix}\n;\nEND; [Characters]\n\n"
        "BEGIN st_Assumptions;\nuptodate;\ndisttransform=NJ;\nEND; [st_Assumptions]\n"
    )


def mega(rng: Rng, data: Alignment) -> str:
    """As MEGA exports it: a block of taxa, points, interleaved."""
    matrix = _interleave(rng, _with_points(data), 60, quote)
    kind = {"dna": "nucleotide"}.get(data.datatype, data.datatype)
    return (
        "#NEXUS\n[ Title x]\nbegin taxa;\n"
        f"dimensions ntax= {len(data.taxa)};\ntaxlabels\n" + "\n".join(map(quote, data.taxa)) + "\n;\nend;\n"
        f"begin characters;\ndimensions nchar= {data.width};\n"
        f"format missing=? gap=- matchchar=. datatype={kind} interleave=yes;\nmatrix\n\n{matrix}\n;\nend;\n"
    )


def beast(rng: Rng, data: Alignment) -> str:
    """As BEAUti and BEASTling read and write it: BINARY or STANDARD, with names of characters."""
    data.labels = [f"word:{j}" for j in range(data.width)]
    kind = "BINARY" if set(_states(data)) == {"0", "1"} and rng.random() < 0.5 else "STANDARD"
    names = ",\n".join(f"\t\t{j} 'word:{j - 1}'" for j in range(1, data.width + 1))
    rows = "\n".join(f"{quote(taxon)}\t{''.join(row)}" for taxon, row in zip(data.taxa, data.rows, strict=True))
    return (
        f"#NEXUS\n\nBEGIN DATA;\n\tDIMENSIONS NTAX={len(data.taxa)} NCHAR={data.width};\n"
        f'\tFORMAT DATATYPE={kind} MISSING=? GAP=- SYMBOLS="{_states(data)}";\n\tCHARSTATELABELS\n{names}\n;\nMATRIX\n{rows}\n;\n'
        "END;\n"
    )


def one_line(rng: Rng, data: Alignment) -> str:
    """The whole file on one line, or the matrix."""
    rows = " ".join(f"{quote(taxon)} {''.join(row)}" for taxon, row in zip(data.taxa, data.rows, strict=True))
    text = (
        f"#NEXUS\nbegin data;\ndimensions ntax={len(data.taxa)} nchar={data.width};\n"
        f"format datatype={data.datatype} gap=- missing=?;\nmatrix {rows};\nend;\n"
    )
    return text.replace("\n", " ") if rng.random() < 0.5 else text


TEXTS: dict[str, tuple[Callable[[Rng, Alignment], str], str, tuple[str, ...], bool, bool]] = {
    # writer, ending, datatypes, whether names are strict, whether there are sets in braces
    "fasta": (fasta, "fasta", ("dna", "protein", "standard"), False, False),
    "relaxed phylip": (relaxed_phylip, "phy", ("dna", "protein", "standard"), False, False),
    "strict phylip": (strict_phylip, "phy", ("dna", "protein"), True, False),
    "paml": (paml, "phy", ("dna", "protein"), False, False),
    "ape": (ape, "nex", ("dna", "protein", "standard"), False, True),
    "mrbayes": (mrbayes, "nex", ("dna", "protein", "standard"), False, True),
    "mesquite": (mesquite, "nex", ("dna", "protein", "standard"), False, True),
    "paup": (paup, "nex", ("dna", "protein", "standard"), False, False),
    "splitstree": (splitstree, "nex", ("dna", "protein", "standard"), False, False),
    "mega": (mega, "nex", ("dna", "protein", "standard"), False, False),
    "beast": (beast, "nex", ("standard",), False, True),
    "one line": (one_line, "nex", ("dna", "protein", "standard"), False, True),
}
LIBRARIES = {"biopython": (biopython, ("dna", "protein")), "dendropy": (dendropy, ("dna", "protein", "standard"))}


# -- changes of a file that mean nothing -----------------------------------------------------------------------------------


def _reword(rng: Rng, text: str, is_nexus: bool) -> str:
    """Change what has no meaning: line ends, blanks at ends of lines, lines at the end."""
    how = int(rng.integers(7))
    if how == 1:
        return text.replace("\n", "\r\n")
    if how == 2:
        return text.replace("\n", "\r")
    if how == 3:
        return "\ufeff" + text
    if how == 4:
        return text.replace("\n", " \t\n") + "\n\n"
    if how == 5:
        return text.rstrip("\n")
    if how == 6 and is_nexus:
        return text.replace(";\n", "; [! a 'comment' \"of; it]\n")
    return text


def case(rng: Rng, folder: Path) -> Outcome:
    """Read a file of some program: it is equal to what was written. A file that is damaged may be rejected."""
    name = str(rng.choice([*TEXTS, *LIBRARIES]))
    if name in TEXTS:
        writer, ending, datatypes, strict, sets = TEXTS[name]
        data = draw_alignment(rng, str(rng.choice(datatypes)), strict, sets and rng.random() < 0.5)
        text = writer(rng, data)
    else:
        library, datatypes = LIBRARIES[name]
        data = draw_alignment(rng, str(rng.choice(datatypes)), True, False)
        text, ending = library(rng, data)
    is_nexus = ending == "nex"
    is_damaged = rng.random() < 0.4
    content = _reword(rng, text, is_nexus).encode()
    for _ in range(int(rng.integers(1, 3)) if is_damaged else 0):
        if len(content) > 1:  # little may be left by the first damage
            content = choose(rng, BYTE_DAMAGES)(content, rng)
    if rng.random() < 0.1:
        ending, content = f"{ending}.gz", gzip.compress(content, mtime=0)
    if rng.random() < 0.2 and not is_damaged:
        ending = str(rng.choice(["aln", "seq", "txt", "dat", "x.1"])) + ".gz" * ending.endswith(".gz")
    path = folder / f"alignment.{ending}"
    path.write_bytes(content)
    if rng.random() < COMMANDS_SHARE:
        outcome = classify(run_command(["fit", path, "--dry-run"]))
        check(is_damaged or outcome.kind == ACCEPTED, f"{name}: {outcome.words}")
        return outcome
    frames = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outcome = try_call(lambda: frames.append(ct.read_characters(path)))
    if outcome.kind == REJECTED:
        check(is_damaged, f"{name} ({data.datatype}, {path.name}) is refused: {outcome.words}")
        check(path.name in outcome.words, f"the message does not name the file: {outcome.words}")
        return outcome
    if not is_damaged:
        _compare(frames[0], data, is_nexus, f"{name} ({data.datatype}, {path.name})")
    return outcome


def _compare(frame: object, data: Alignment, is_nexus: bool, subject: str) -> None:
    """Fail unless a frame has the cells of an alignment."""
    check(list(frame.index) == [*data.taxa], f"{subject} has the taxa {list(frame.index)}, not {data.taxa}")
    check(frame.shape[1] == data.width, f"{subject} has {frame.shape[1]} characters, not {data.width}")
    for j, (name, column) in enumerate(frame.items()):
        for k, cell in enumerate(column):
            read = None if cell is None or cell != cell else cell
            expected = data.cell(data.rows[k][j])
            check(read == expected, f"{subject}: cell {k}, {j} is {read!r}, not {expected!r}")
        check(not data.labels or not is_nexus or name == data.labels[j], f"{subject}: character {j} is named {name!r}")
    names = list(frame.columns)
    partitions = {key: [names.index(name) for name in part] for key, part in frame.attrs["partitions"].items()}
    check(partitions == data.partitions, f"{subject} has the partitions {partitions}, not {data.partitions}")
