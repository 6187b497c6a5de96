"""Character files: NEXUS, FASTA, PHYLIP and CLDF, valid and damaged."""

import gzip
import io
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import coaltree as ct
from coaltree.errors import InputError, InputWarning
from coaltree.table.characters import parse_fasta, parse_file, parse_phylip
from coaltree.table.cldf import parse_cldf
from coaltree.table.nexus_characters import parse_nexus
from coaltree.table.read_file import open_table
from coaltree.table.symbols import make_alphabet
from command_line import check_sentence, command_in

EXAMPLE = Path(__file__).parent.parent / "examples" / "primates.nex"


def nexus(matrix, form="datatype=dna", n_taxa=3, n_characters=4, block="data", before="", after="", statements=""):
    return (
        f"#NEXUS\n{before}begin {block};\n  dimensions ntax={n_taxa} nchar={n_characters};\n  format {form};\n{statements}"
        f"  matrix\n{matrix}\n  ;\nend;\n{after}"
    )


def rows_of(characters):
    """Return the cells of each taxon, sets as sorted text in braces, missing cells as ?."""
    rows = {}
    for k, taxon in enumerate(characters.taxa):
        cells = [column.cells[k] for column in characters.columns]
        rows[taxon] = [
            "?" if cell is None else "{" + "".join(sorted(cell)) + "}" if isinstance(cell, frozenset) else cell
            for cell in cells
        ]
    return rows


def read(text, **options):
    return rows_of(parse_nexus(text, "x.nex", **options))


class TestNexus:
    def test_nexus_dna_symbols_are_read(self):
        rows = read(nexus("a ACGT\nb acgu\nc -?RN", n_taxa=3))
        assert rows == {"a": list("ACGT"), "b": list("ACGT"), "c": ["?", "?", "{AG}", "?"]}

    def test_nucleotide_ambiguity_codes_are_read(self):
        codes = {"R": "AG", "Y": "CT", "M": "AC", "K": "GT", "S": "CG", "W": "AT"}
        codes |= {"H": "ACT", "B": "CGT", "V": "ACG", "D": "AGT"}
        for datatype, thymine in (("dna", "T"), ("rna", "U")):
            alphabet = make_alphabet(datatype)
            for code, states in codes.items():
                assert alphabet.decode(code) == alphabet.decode(code.lower()) == frozenset(states.replace("T", thymine))
            assert alphabet.decode("N") is alphabet.decode("X") is alphabet.decode("?") is None

    def test_nexus_rna_and_protein_symbols_are_read(self):
        assert read(nexus("a ACGU\nb acgt\nc YYYY", "datatype=rna"))["c"] == ["{CU}"] * 4
        assert read(nexus("a ACGU\nb acgt\nc YYYY", "datatype=rna"))["b"] == list("ACGU")
        rows = read(nexus("a MKLV\nb BZJX\nc WY*-", "datatype=protein"))
        assert rows["b"] == ["{DN}", "{EQ}", "{IL}", "?"]
        assert rows["c"] == ["W", "Y", "*", "?"]

    def test_nexus_gaps_can_be_states(self):
        rows = read(nexus("a A-GT\nb {A-}CGN\nc AC?T"), gaps="state")
        assert rows == {"a": list("A-GT"), "b": ["{-A}", "C", "G", "{ACGT}"], "c": ["A", "C", "?", "T"]}
        assert read(nexus("a A-GT\nb {A-}CGT\nc ACGT"))["b"][0] == "?"

    def test_nexus_standard_data_with_state_sets(self):
        form = 'datatype=standard symbols="0 1 2" missing=? gap=-'
        rows = read(nexus("a 01{12}0\nb (0 1)2?-\nc 0{0,2}(2)1", form))
        assert rows["a"] == ["0", "1", "{12}", "0"]
        assert rows["b"] == ["{01}", "2", "?", "?"]
        assert rows["c"] == ["0", "{02}", "2", "1"]

    def test_nexus_symbols_option_is_read(self):
        assert read(nexus("a 0A9a\nb bB10\nc 0000", 'datatype=standard symbols="019AB"'))["b"] == ["B", "B", "1", "0"]
        rows = read(nexus("a aAbB\nb aAbB\nc aaaa", 'datatype=standard respectcase symbols="abAB"'))
        assert rows["a"] == list("aAbB")
        assert read(nexus("a 0123\nb 4567\nc 8900", 'datatype=standard symbols="0~9"'))["b"] == list("4567")
        assert read(nexus("a 0123\nb 4567\nc 8900", "datatype=standard"))["c"] == list("8900")

    def test_nexus_equate_option_is_read(self):
        form = 'datatype=standard symbols="01" equate="x={01} y=1 z=?"'
        assert read(nexus("a 01x1\nb yyz0\nc 0000", form))["a"] == ["0", "1", "{01}", "1"]
        assert read(nexus("a 01x1\nb yyz0\nc 0000", form))["b"] == ["1", "1", "?", "0"]

    def test_nexus_restriction_sites_are_read(self):
        assert read(nexus("a 0110\nb 1{01}?0\nc 0000", "datatype=restriction"))["b"] == ["1", "{01}", "?", "0"]

    def test_nexus_continuous_data_are_read(self):
        text = nexus("a 0.1 2\nb ? 3e-1\nc -1.5 -2", "datatype=continuous", n_characters=2)
        characters = parse_nexus(text, "x.nex")
        assert [column.cells for column in characters.columns] == [[0.1, None, -1.5], [2.0, 0.3, -2.0]]
        assert {column.datatype for column in characters.columns} == {"continuous"}

    def test_nexus_mixed_datatypes_are_read(self):
        text = nexus("a ACR0{01}\nb AGT11\nc TTT0?", "datatype=mixed(DNA:1-3, Standard:4-5)", n_characters=5)
        characters = parse_nexus(text, "x.nex")
        assert rows_of(characters)["a"] == ["A", "C", "{AG}", "0", "{01}"]
        assert [column.datatype for column in characters.columns] == ["dna"] * 3 + ["standard"] * 2
        assert [column.name for column in characters.columns] == ["site1", "site2", "site3", "character4", "character5"]

    def test_nexus_interleaved_matrix_with_match_characters(self):
        matrix = "a AC\nb .G\nc T.\n\na GT\nb ..\nc A?"
        rows = read(nexus(matrix, "datatype=dna interleave=yes matchchar=. gap=-"))
        assert rows == {"a": list("ACGT"), "b": list("AGGT"), "c": list("TCA?")}

    def test_nexus_options_may_lack_blanks(self):
        rows = read(nexus("a A*GT\nb .~~C\nc ACGT", "datatype = dna missing=* gap=~ matchchar=. interleave=no"))
        assert rows["b"] == ["A", "?", "?", "C"]

    def test_nexus_rows_may_span_lines(self):
        assert read(nexus("a\nAC\nGT\nb A CG\n T\nc ACGT")) == {key: list("ACGT") for key in "abc"}

    def test_nexus_taxon_names_are_unquoted(self):
        matrix = "'Homo sapiens' ACGT\n'it''s' ACGT\nPan_paniscus ACGT"
        assert list(read(nexus(matrix))) == ["Homo sapiens", "it's", "Pan_paniscus"]
        assert list(read(nexus(matrix), preserve_underscores=False))[2] == "Pan paniscus"

    def test_nexus_comments_are_skipped(self):
        rows = read(nexus("[x] a A[;]C[nested [x]]GT\nb [ACGT\nACGT] ACGT\n[c] c ACGT", before="[! begin data; ]\n"))
        assert rows == {key: list("ACGT") for key in "abc"}

    def test_nexus_nolabels_uses_taxa_block(self):
        before = "begin taxa;\ndimensions ntax=3;\ntaxlabels a 'b c' d;\nend;\n"
        matrix = "ACGT\nAC\nGT\nTTTT"
        rows = read(nexus(matrix, "datatype=dna nolabels", before=before, block="characters"))
        assert rows == {"a": list("ACGT"), "b c": list("ACGT"), "d": list("TTTT")}
        matrix = "AC\nAC\nTT\n\nGT\nGT\nTT"
        assert rows == read(nexus(matrix, "datatype=dna nolabels interleave", before=before, block="characters"))

    def test_nexus_character_names_are_read(self):
        labels = "charstatelabels 1 colour / red green, 2 'tail length', 4 size;\n"
        characters = parse_nexus(nexus("a 0101\nb 0011\nc 1100", "datatype=standard", statements=labels), "x.nex")
        assert [column.name for column in characters.columns] == ["colour", "tail length", "character3", "size"]
        characters = parse_nexus(
            nexus("a 0101\nb 0011\nc 1100", "datatype=standard", statements="charlabels p q q r;\n"), "x"
        )
        assert [column.name for column in characters.columns] == ["p", "q", "q_2", "r"]

    def test_nexus_tokens_are_read(self):
        rows = read(nexus("a red big\nb {red green} ?\nc green big", "datatype=standard tokens", n_characters=2))
        assert rows == {"a": ["red", "big"], "b": ["{greenred}", "?"], "c": ["green", "big"]}

    def test_nexus_partitions_are_read(self):
        after = (
            "begin sets; charset coding = 1-3; charset 'third ones' (standard) = 3-.\\3; charset both = coding 5 6;\n"
            "charset everything = all; end;\nbegin mrbayes; charset last = 6; partition p = 2: coding, last; end;\n"
            "begin assumptions; charpartition q = front: 1 2, back: 3-6; end;\n"
        )
        characters = parse_nexus(nexus("a ACGTAC\nb ACGTAC\nc ACGTAC", n_characters=6, after=after), "x.nex")
        values = {
            name: [int(name.removeprefix("site")) for name in names] for name, names in characters.partitions.items()
        }
        assert values == {
            "coding": [1, 2, 3],
            "third ones": [3, 6],
            "both": [1, 2, 3, 5, 6],
            "everything": [1, 2, 3, 4, 5, 6],
            "last": [6],
            "front": [1, 2],
            "back": [3, 4, 5, 6],
        }

    def test_nexus_eliminated_characters_are_dropped(self):
        after = "begin sets; charset most = 2-4; end;\n"
        text = nexus("a ACGT\nb ACGT\nc TTTT", statements="eliminate 2-3;\n", after=after)
        characters = parse_nexus(text, "x.nex")
        assert [column.name for column in characters.columns] == ["site1", "site4"]
        assert characters.partitions == {"most": ("site4",)}

    def test_nexus_blocks_are_joined_by_taxon(self):
        second = nexus("c 0.5\na 1.5\nd 2.5", "datatype=continuous", n_characters=1, block="characters")
        rows = read(nexus("a ACGT\nb ACGT\nc ACGT") + second.removeprefix("#NEXUS\n"))
        assert rows["b"] == [*"ACGT", "?"]
        assert rows["c"] == [*"ACGT", 0.5]
        assert rows["d"] == [*"????", 2.5]

    def test_nexus_line_ends_and_compression(self, tmp_path):
        text = nexus("a ACGT\nb ACGT\nc ACGT")
        for k, data in enumerate((text.replace("\n", "\r\n"), text.replace("\n", "\r"), "\ufeff" + text)):
            (tmp_path / f"{k}.nex").write_bytes(data.encode())
            assert ct.read_characters(tmp_path / f"{k}.nex").shape == (3, 4)
        (tmp_path / "x.nexus.gz").write_bytes(gzip.compress(text.encode()))
        assert ct.read_characters(tmp_path / "x.nexus.gz").shape == (3, 4)

    @pytest.mark.parametrize(
        ("text", "facts"),
        [
            ("a ACGT", ["#NEXUS"]),
            ("#NEXUS\nbegin trees;\ntree t = (a:1,b:1);\nend;", ["no characters"]),
            ("#NEXUS\nbegin data;\ndimensions nchar=4;\nend;", ["line 2", "no matrix"]),
            (nexus("a ACGT\nb ACGT\nc ACGT").removesuffix("end;\n"), ["line 2", "cut off"]),
            (nexus("a ACGT\nb ACGT\nc ACGT").split(";\nend")[0], ["line 5", "no semicolon"]),
            (nexus(""), ["line 5", "empty"]),
            (nexus("a ACGT\nb ACGT\nc ACGT", "datatype=music"), ["line 4", "'music'", "protein"]),
            (nexus("a ACGT\nb ACGT\nc ACGT", "datatype=dna transpose"), ["line 4", "TRANSPOSE"]),
            (nexus("a ACGT\nb ACGT\nc ACGT", n_characters="many"), ["line 3", "NCHAR", "'many'"]),
            (nexus("a ACGT\nb ACGT\nc ACGT", 'datatype=standard equate="x=q"'), ["line 5", "'x'", "'q'"]),
            (nexus("a ACGT\nb ACGT\nc ACGT", "datatype=mixed(DNA:1-2)"), ["Character 3"]),
            (nexus("a ACGT\nb ACGT\nc ACGT", "datatype=dna nolabels"), ["line 6", "TAXLABELS"]),
            (nexus("a ACGT\nb ACGT\nc ACGT", statements="eliminate 3-9;\n"), ["line 5", "ELIMINATE", "3-9"]),
            (nexus("a ACGT\nb ACGT\nc ACGT", "datatype=mixed(DNA:1-2,protein:3-9)"), ["line 5", "3-9"]),
            (nexus("a ACGT\nb AC[GT\nc ACGT"), ["line 7", "'b'", "never closed"]),
            (nexus("a ACGT\nb ACG]T\nc ACGT"), ["line 7", "'b'"]),
            (nexus("a ACGT\n'b ACGT\nc ACGT"), ["line 7"]),
        ],
    )
    def test_invalid_nexus_is_rejected_with_location(self, text, facts):
        with pytest.raises(InputError) as caught:
            parse_nexus(text, "x.nex")
        assert all(fact in str(caught.value) for fact in ("x.nex", *facts)), str(caught.value)

    def test_nexus_deep_nesting_needs_no_recursion(self):
        deep = "[" * 50_000 + "]" * 50_000
        assert list(read(nexus(f"a ACGT\nb {deep}ACGT\nc ACGT"))) == ["a", "b", "c"]
        chain = "".join(f"charset s{k} = s{k + 1}; " for k in range(300))
        after = f"begin sets; {chain} charset s300 = 1; end;\n"
        characters = parse_nexus(nexus("a ACGT\nb ACGT\nc ACGT", after=after), "x.nex")
        assert characters.partitions["s0"] == ("site1",)


def read_sets(statements, n_characters=10, block="sets", labels=""):
    """Return the positions in each partition, counted from 1."""
    rows = "\n".join(f"{taxon} {'ACGTACGTAC' * 3}"[: n_characters + 2] for taxon in "abc")
    text = nexus(rows, n_characters=n_characters, statements=labels, after=f"begin {block};\n{statements}\nend;\n")
    characters = parse_nexus(text, "x.nex")
    number = {column.name: j for j, column in enumerate(characters.columns, 1)}
    return {name: [number[column] for column in columns] for name, columns in characters.partitions.items()}


class TestSets:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("3", [3]),
            ("1-3, 5 , 7", [1, 2, 3, 5, 7]),
            ("8-.", [8, 9, 10]),
            (".", [10]),
            ("1 - . \\3", [1, 4, 7, 10]),
            ("2-9\\3 1", [1, 2, 5, 8]),
            ("ALL", list(range(1, 11))),
            ("not 3-9", [1, 2, 10]),
            ("All Except 1-8", [9, 10]),
            ("1-6 NOT 2-5", [1, 6]),
            ("not early", [4, 5, 6, 7, 8, 9, 10]),
            ("12S 'the end'", [4, 5, 10]),
            ("EARLY 9", [1, 2, 3, 9]),  # names do not depend on case
            ("colour 'tail length'", [6, 7]),
            ("colour tail_length", [6, 7]),
            ("remainder", [6, 7, 8, 9]),
            ("6 remainder", [6, 7, 8, 9]),
        ],
    )
    def test_charset_expressions(self, text, expected):
        before = "charset early = 1-3; charset 12S = 4 5; charset 'the end' = 10;"
        labels = "charstatelabels 6 colour, 7 'tail length';\n"
        assert read_sets(f"{before} charset x = {text};", labels=labels)["x"] == expected

    def test_charset_expressions_agree_with_bio_nexus(self):
        """Random sets of the kinds that Biopython reads."""
        from Bio.Nexus import Nexus

        rng = np.random.default_rng(0)
        n = 30
        for _ in range(60):
            parts = []
            for _ in range(rng.integers(1, 5)):
                low, high = sorted(rng.integers(1, n + 1, size=2).tolist())
                parts.append(rng.choice([f"{low}", f"{low}-{high}", f"{low} - {high}\\3"]))
            statement = f"charset x = {' '.join(parts)};"
            rows = "\n".join(f"{taxon} {'ACGTACGTAC' * 3}" for taxon in "abc")
            other = Nexus.Nexus()
            other.read(io.StringIO(nexus(rows, n_characters=n, after=f"begin sets;\n{statement}\nend;\n")))
            assert read_sets(statement, n)["x"] == sorted({j + 1 for j in other.charsets["x"]})

    def test_vector_sets(self):
        assert read_sets("charset x (vector) = 0110000001;")["x"] == [2, 3, 10]
        assert read_sets("charset x (VECTOR) = 01100 00001;")["x"] == [2, 3, 10]
        assert read_sets("charpartition p (vector) = aabbbbbbba;") == {"a": [1, 2, 10], "b": list(range(3, 10))}
        text = "charpartition p (vector tokens) = one one two two two two two two two one;"
        assert read_sets(text) == {"one": [1, 2, 10], "two": list(range(3, 10))}

    def test_partitions_with_remainder(self):
        text = "charset x = 1-3; charpartition * p = first: x, 'second, part': 4 5, rest: remainder;"
        assert read_sets(text) == {
            "x": [1, 2, 3],
            "first": [1, 2, 3],
            "second, part": [4, 5],
            "rest": list(range(6, 11)),
        }

    def test_sets_of_one_block_of_several(self):
        """Mesquite counts the characters of the block that a set names."""
        first = nexus("a AC\nb AC", n_taxa=2, n_characters=2, block="characters").replace("format", "title one; format")
        second = nexus("a 012\nb 012", "datatype=standard", 2, 3, "characters").replace("format", "title 'Two'; format")
        after = (
            "begin sets;\ncharset x (characters = two) = 1-.;\ncharset y (characters=one) = 2;\n"
            "charpartition p (CHARACTERS = Two) = a: 1, b: remainder;\nend;\n"
            "begin assumptions;\nlink taxa=t characters = Two;\ncharset z = 3;\nend;"
        )
        characters = parse_nexus(first + second.removeprefix("#NEXUS") + after, "x.nex")
        assert characters.partitions == {
            "x": ("character1", "character2", "character3"),
            "y": ("site2",),
            "z": ("character3",),
            "a": ("character1",),
            "b": ("character2", "character3"),
        }

    @pytest.mark.parametrize(
        ("statement", "facts"),
        [
            ("charset bad = 3-99;", ["'bad'", "3-99"]),
            ("charset bad = 1-5\\0;", ["'bad'", "1-5"]),
            ("charset bad = nothing;", ["'bad'", "'nothing'", "CHARSET"]),
            ("charset bad = other; charset other = bad;", ["'bad'", "'other'"]),
            ("charset bad = bad;", ["'bad'"]),
            ("charset bad = 1 not 2 not 3;", ["'bad'", "NOT"]),
            ("charset bad = 1 not;", ["'bad'", "NOT"]),
            ("charset bad = ;", ["'bad'", "empty"]),
            ("charset bad (vector) = 011;", ["'bad'", "3", "10"]),
            ("charset bad (vector) = 0110200001;", ["'bad'", "'2'"]),
            ("charset bad (characters = none) = 1;\n", ["'bad'", "'none'"]),
            ("charset bad = part1.phy: 1-3;", ["'bad'", "part1.phy"]),
            ("charset 1-3;", ["CHARSET"]),
            ("charpartition bad: 1-3;", ["CHARPARTITION"]),
            ("charpartition p = bad: 1-99, good: 5;", ["'bad'", "'p'", "1-99"]),
            ("charpartition p (vector) = ab;", ["'p'"]),
        ],
    )
    def test_sets_that_cannot_be_read_are_left_out(self, statement, facts):
        if "(characters" in statement:  # of several blocks
            statement += "end;\nbegin characters; title two; dimensions nchar=1; format; matrix a 0\nb 0\nc 0\n;"
        with pytest.warns(InputWarning) as caught:
            sets = read_sets(f"charset good = 5;\n{statement}")
        assert sets == {"good": [5]}
        message = str(caught[0].message)
        assert len(caught) == 1
        assert all(fact in message for fact in (*facts, "x.nex, line 13", "left out")), message


# As these programs write files, shortened.
MESQUITE = """#NEXUS
[written Sat Jan 01 by Mesquite  version 3.61 (build 927) at host/127.0.0.1]

BEGIN TAXA;
\tTITLE Taxa;
\tDIMENSIONS NTAX=3;
\tTAXLABELS
\t\tHomo_sapiens 'Pan sp. (nov)' C
\t;

END;

BEGIN CHARACTERS;
\tTITLE  Character_Matrix;
\tDIMENSIONS  NCHAR=3;
\tFORMAT DATATYPE = STANDARD RESPECTCASE GAP = - MISSING = ? SYMBOLS = "  0 1 2";
\tCHARSTATELABELS
\t\t1 'Skull, shape' /  absent present, 2 tail_length /  short 'very long', 3 ;
\tMATRIX
\tHomo_sapiens    01(0 2)
\t'Pan sp. (nov)' {0 1}-?
\tC               210

;

END;
BEGIN ASSUMPTIONS;
\tTYPESET * UNTITLED   =  unord:  1 -  3;
END;

BEGIN MESQUITECHARMODELS;
\tProbModelSet * UNTITLED   =  'Mk1 (est.)':  1 -  3;
END;

Begin MESQUITE;
\tMESQUITESCRIPTVERSION 2;
\tTITLE AUTO;
\ttell ProjectCoordinator;
\tgetEmployee #mesquite.minimal.ManageTaxa.ManageTaxa;
\ttell It;
\t\tsetID 0 6374482018512173466;
\tendTell;
end;
"""
MRBAYES = r"""#NEXUS
begin data;
dimensions ntax=3 nchar=12;
format datatype=mixed(DNA:1-9,Standard:10-12) interleave=yes gap=- missing=?;
matrix
A ACGTACGTA
B ACGTACGTA
C ACGTACGT-

A 012
B 0(01)2
C ???
;
end;
begin mrbayes;
  set autoclose=yes nowarn=yes; log start filename="x y.log";
  charset pos1 = 1-9\3;
  charset pos2 = 2 - .\3; [c]
  charset morph = 10-12;
  partition fav = 3: pos1, pos2, morph;
  set partition=fav;
  lset applyto=(1,2) nst=6 rates=gamma;
  prset applyto=(all) ratepr=variable brlenspr=clock:uniform;
  mcmc ngen=100 samplefreq=10;
end;
"""
BEAST = """#NEXUS
BEGIN DATA;
  DIMENSIONS NTAX=2 NCHAR=4;
  FORMAT DATATYPE=BINARY MISSING=? GAP=- SYMBOLS="01" ;
  MATRIX
A 0101
B 1??0
;
END;
begin assumptions;
 calibrate A = normal(1.0, 0.1);
 charset all_of_it = 1-4;
end;
"""
SPLITSTREE = """#nexus
BEGIN Taxa;
DIMENSIONS ntax=2;
TAXLABELS
[1] 'a'
[2] 'b'
;
END; [Taxa]
BEGIN Characters;
DIMENSIONS nchar=4;
FORMAT
\tdatatype='dna'
\tmissing=?
\tgap=-
\tsymbols="atgc"
\tlabels=left
\ttranspose=no
\tinterleave=yes
;
MATRIX
'a' acgt
'b' ac-r
;
END; [Characters]
"""


class TestDialects:
    def test_mesquite_file_is_read(self):
        characters = parse_nexus(MESQUITE, "x.nex")
        assert rows_of(characters) == {
            "Homo_sapiens": ["0", "1", "{02}"],
            "Pan sp. (nov)": ["{01}", "?", "?"],
            "C": ["2", "1", "0"],
        }
        assert [column.name for column in characters.columns] == ["Skull, shape", "tail_length", "character3"]

    def test_mrbayes_file_is_read(self):
        characters = parse_nexus(MRBAYES, "x.nex")
        assert rows_of(characters)["B"] == [*"ACGTACGTA", "0", "{01}", "2"]
        assert characters.partitions == {
            "pos1": ("site1", "site4", "site7"),
            "pos2": ("site2", "site5", "site8", "character11"),
            "morph": ("character10", "character11", "character12"),
        }

    def test_beast_file_is_read(self):
        characters = parse_nexus(BEAST, "x.nex")
        assert rows_of(characters) == {"A": list("0101"), "B": list("1??0")}
        assert list(characters.partitions) == ["all_of_it"]

    def test_splitstree_file_is_read(self):
        assert read(SPLITSTREE) == {"a": list("ACGT"), "b": ["A", "C", "?", "{AG}"]}


class TestAlignments:
    def test_fasta_sequences_are_read(self):
        characters = parse_fasta(">a first\nACG\nT\n>b second\n; comment\nA-RN\n\n>c\nac gu\n", "x.fa")
        assert rows_of(characters) == {"a": list("ACGT"), "b": ["A", "?", "{AG}", "?"], "c": list("ACGT")}
        assert parse_fasta(">x 1\nA\n>x 2\nC\n", "x.fa").taxa == ("x 1", "x 2")

    @pytest.mark.parametrize(
        ("sequences", "datatype"),
        [("ACGTRYN-", "dna"), ("ACGUN", "rna"), ("MKVLA", "protein"), ("0110?", "standard"), ("????", "dna")],
    )
    def test_datatype_is_guessed_from_symbols(self, sequences, datatype):
        characters = parse_fasta(f">a\n{sequences}\n>b\n{sequences}\n", "x.fa")
        assert {column.datatype for column in characters.columns} == {datatype}

    def test_datatype_option_overrides_guess(self, tmp_path):
        (tmp_path / "x.fa").write_text(">a\nACGT\n>b\nACCA\n")
        frame = ct.read_characters(tmp_path / "x.fa", datatype="protein")
        assert set(frame.attrs["datatypes"].values()) == {"protein"}
        with pytest.raises(InputError, match="'music'"):
            ct.read_characters(tmp_path / "x.fa", datatype="music")
        with pytest.raises(InputError, match="datatype"):
            ct.read_characters(EXAMPLE, datatype="dna")

    @pytest.mark.parametrize(
        "text",
        [
            "3 6\nalpha ACGTAC\nbeta  AC-TAC\ngamma ACRTAC\n",  # relaxed
            " 3 6\nalpha     ACG TAC\nbeta      AC-TAC\ngamma     ACRTAC\n",
            "3 6\nalphaACGTA\nbeta\n",
            "3 6\nalpha     ACG\nTAC\nbeta      AC-T\nAC\ngamma     ACRTAC\n",  # sequential, on several lines
            "3 6\nalpha\nACGTAC\nbeta\nAC-TAC\ngamma\nACRTAC\n",
            "3 6\nalpha ACG\nbeta AC-\ngamma ACR\n\nTAC\nTAC\nTAC\n",  # interleaved
            "3 6\nalpha ACG\nbeta AC-\ngamma ACR\nTAC\nTAC\nTAC\n",
            "3 6\nalpha ACG\nbeta ..-\ngamma ..R\n\nalpha TAC\nbeta TAC\ngamma ...\n",  # names and points repeat
            "3 6 I\nalpha\tACGTAC\r\nbeta\tAC-TAC\ngamma\tACRTAC",
        ],
    )
    def test_phylip_variants_are_read(self, text):
        if "alphaACGTA" in text:  # strict names of ten letters, without a blank
            text = "3 6\nalpha aaaaACGTAC\nbeta bbbbbAC-TAC\ngamma ggggACRTAC\n"
            assert parse_phylip(text, "x.phy").taxa == ("alpha aaaa", "beta bbbbb", "gamma gggg")
        characters = list(rows_of(parse_phylip(text, "x.phy")).values())
        assert characters == [list("ACGTAC"), list("AC?TAC"), ["A", "C", "{AG}", *"TAC"]]

    @pytest.mark.parametrize("text", ["", "\n\n", "a ACGT\n", "2\na A\n", "0 4\n", "-1 4\na A", "x y\n", "²  4\n"])
    def test_invalid_phylip_is_rejected_with_line(self, text):
        with pytest.raises(InputError, match=r"x\.phy, line \d"):
            parse_phylip(text, "x.phy")

    @pytest.mark.parametrize("text", ["", "ACGT\n", ">a\n>b\n", ">\nACGT\n", "\n;\n"])
    def test_invalid_fasta_is_rejected(self, text):
        with pytest.raises(InputError, match=r"x\.fa"):
            parse_fasta(text, "x.fa")


def terms(name):
    return f"http://cldf.clld.org/v1.0/terms.rdf#{name}"


def table(url, kind, **columns):
    parameters = [
        {"name": name, "propertyUrl": terms(term)} if term else {"name": name} for name, term in columns.items()
    ]
    return {"url": url, "dc:conformsTo": terms(kind), "tableSchema": {"columns": parameters}}


STRUCTURE = {
    "StructureDataset-metadata.json": json.dumps(
        {
            "dc:conformsTo": terms("StructureDataset"),
            "tables": [
                table(
                    "vals.csv",
                    "ValueTable",
                    Key="id",
                    Doculect="languageReference",
                    Feature="parameterReference",
                    Val="value",
                    Code="codeReference",
                    Source=None,
                ),
                table("languages.csv", "LanguageTable", ID="id", Name="name"),
                table("codes.csv", "CodeTable", ID="id", Name="name"),
            ],
        }
    ),
    "vals.csv": "Key,Doculect,Feature,Val,Code,Source\n1,deu,order,1,o1,\n2,eng,order,2,o2,x\n3,fra,order,1,o1,\n"
    "4,fra,order,2,o2,\n5,deu,tone,,,\n6,eng,tone,no,,\n7,fra,tone,?,,\n8,ita,order,3,o3,\n",
    "languages.csv": 'ID,Name\ndeu,"German, High"\neng,English\nfra,French\nita,Italian\n',
    "codes.csv": "ID,Name\no1,SOV\no2,SVO\no3,VSO\n",
}
WORDS = {
    "forms.csv": "ID,Language_ID,Parameter_ID,Form\n1,a,hand,x\n2,b,hand,y\n3,c,foot,z\n4,a,foot,z\n5,b,hand,w\n6,d,eye,v\n",
    "cognates.csv": "ID,Form_ID,Cognateset_ID\n1,1,h1\n2,2,h1\n3,3,f1\n4,4,f2\n5,5,h2\n",
}


def parse_files(files):
    return parse_cldf(lambda name: files[name].encode(), list(files), "folder")


class TestOtherPrograms:
    """Files that Biopython writes."""

    bio = pytest.importorskip("Bio")

    @pytest.fixture
    def alignment(self):
        from Bio.Align import MultipleSeqAlignment
        from Bio.Seq import Seq
        from Bio.SeqRecord import SeqRecord

        rng = np.random.default_rng(0)
        rows = ["".join(rng.choice(list("ACGTRYN-"), 150)) for _ in range(7)]
        return MultipleSeqAlignment(
            [SeqRecord(Seq(row), id=f"taxon{k}", annotations={"molecule_type": "DNA"}) for k, row in enumerate(rows)]
        )

    @pytest.mark.parametrize("form", ["fasta", "phylip", "phylip-sequential", "phylip-relaxed", "nexus"])
    def test_files_written_by_biopython_are_read(self, alignment, form):
        parse = {"fasta": parse_fasta, "nexus": parse_nexus}.get(form, parse_phylip)
        rows = rows_of(parse(format(alignment, form), "x"))
        cells = {"R": "{AG}", "Y": "{CT}", "N": "?", "-": "?"}
        assert rows == {row.id: [cells.get(value, value) for value in str(row.seq)] for row in alignment}


class TestCLDF:
    def test_cldf_structure_dataset_is_read(self):
        characters = parse_files(STRUCTURE)
        assert characters.taxa == ("German, High", "English", "French", "Italian")
        assert [column.name for column in characters.columns] == ["order", "tone"]
        assert characters.columns[0].cells == ["SOV", "SVO", frozenset({"SOV", "SVO"}), "VSO"]
        assert characters.columns[1].cells == [None, "no", None, None]

    def test_cldf_wordlist_is_read(self):
        characters = parse_files(WORDS)
        assert characters.taxa == ("a", "b", "c", "d")
        cells = {column.name: column.cells for column in characters.columns}
        assert cells == {
            "foot:f1": ["0", None, "1", None],
            "foot:f2": ["1", None, "0", None],
            "hand:h1": ["1", "1", None, None],
            "hand:h2": ["0", "1", None, None],
        }
        assert characters.partitions == {"foot": ("foot:f1", "foot:f2"), "hand": ("hand:h1", "hand:h2")}

    @pytest.mark.parametrize(
        ("file", "old", "new", "facts"),
        [
            ("vals.csv", "2,eng,", "2,xxx,", ["vals.csv, line 3", "'xxx'"]),
            ("vals.csv", "o2,x", "o9,x", ["vals.csv, line 3", "'English'", "'o9'"]),
            ("vals.csv", "2,eng,order", "2,,order", ["vals.csv, line 3", "Language_ID"]),
            ("vals.csv", "3,fra,order,1,o1,\n", "3,fra,order\n", ["vals.csv, line 4", "3 cells"]),
            ("vals.csv", "3,fra,order,1", '3,fra,order,"1', ["vals.csv, line 4"]),
            ("languages.csv", "eng,", "deu,", ["languages.csv, line 3", "'deu'"]),
            ("StructureDataset-metadata.json", '"tables"', '"tablets"', ["metadata.json", "tables"]),
            ("StructureDataset-metadata.json", "vals.csv", "values.csv", ["'values.csv'"]),
            ("StructureDataset-metadata.json", "{", "[" * 100_000, ["metadata.json"]),
        ],
    )
    def test_invalid_cldf_is_rejected_with_location(self, file, old, new, facts):
        with pytest.raises(InputError) as caught:
            parse_files(STRUCTURE | {file: STRUCTURE[file].replace(old, new, 1)})
        assert all(fact in str(caught.value) for fact in ("folder", *facts)), str(caught.value)

    def test_invalid_cldf_wordlist_is_rejected(self):
        with pytest.raises(InputError, match=r"line 4.*'33'"):
            parse_files(WORDS | {"cognates.csv": WORDS["cognates.csv"].replace("3,3,", "3,33,")})
        with pytest.raises(InputError, match="without cognate sets"):
            parse_files({"forms.csv": WORDS["forms.csv"]})
        with pytest.raises(InputError, match=r"line 3.*'b'.*'1'"):
            parse_files(WORDS | {"forms.csv": WORDS["forms.csv"].replace("2,b", "1,b")})
        with pytest.raises(InputError, match="neither values nor forms"):
            parse_files({"languages.csv": STRUCTURE["languages.csv"]})


class TestFrames:
    def test_read_characters_returns_pandas_frame(self):
        frame = ct.read_characters(EXAMPLE)
        assert frame.shape == (9, 60)
        assert frame.index[0] == "Homo_sapiens"
        assert frame.loc["Hylobates_lar", "site30"] == frozenset("AG")
        assert str(frame["site1"].dtype) == "category"
        assert list(frame["site1"].cat.categories) == ["A", "C", "G", "T"]
        assert frame.attrs["partitions"]["second_gene"] == [f"site{k}" for k in range(31, 61)]
        assert frame.attrs["datatypes"]["site1"] == "dna"
        model = ct.CoalescentClustering().fit(frame)
        assert {"Homo_sapiens", "Pan_troglodytes"} in [
            {model.tree_.leaf_names[leaf] for leaf in model.tree_.leaves_below(node)} for node in range(9, 17)
        ]

    def test_frame_copies_keep_metadata(self):
        frame = ct.read_characters(EXAMPLE)
        part = frame[frame.attrs["partitions"]["second_gene"]]
        assert part.shape == (9, 30)
        # pandas copies attributes with each column: of many columns that would take longer than all else
        assert part.attrs["datatypes"] is frame.copy()["site31"].attrs["datatypes"]
        assert json.loads(json.dumps(frame.attrs)) == frame.attrs

    def test_read_characters_returns_polars_frame(self):
        frame = ct.read_characters(EXAMPLE, library="polars")
        assert frame.shape == (9, 61)
        assert frame["taxon"][8] == "Lemur_catta"
        with pytest.raises(InputError, match="'arrow'"):
            ct.read_characters(EXAMPLE, library="arrow")

    def test_read_characters_gaps_option(self):
        assert ct.read_characters(EXAMPLE, gaps="state").loc["Lemur_catta", "site25"] == "-"
        assert ct.read_characters(EXAMPLE).isna().loc["Lemur_catta", "site25"]
        with pytest.raises(InputError, match="'fifth'"):
            ct.read_characters(EXAMPLE, gaps="fifth")

    def test_read_characters_rejects_other_files(self, tmp_path):
        (tmp_path / "x.csv").write_text("a,b\n1,2\n")
        with pytest.raises(InputError, match="not a character file"):
            ct.read_characters(tmp_path / "x.csv")
        with pytest.raises(InputError, match="does not exist"):
            ct.read_characters(tmp_path / "none.dat")
        (tmp_path / "x.nex").write_bytes(b"\x00\x01\x02\xff\xff")
        with pytest.raises(InputError, match="line 1"):
            ct.read_characters(tmp_path / "x.nex")


class TestFormats:
    PHYLIP = "2 6\nhomo ACGTAC\npan  AC-TAC\n"
    FASTA = ">homo\nACGTAC\n>pan\nAC-TAC\n"
    NEXUS = nexus("homo ACGTAC\npan AC-TAC", n_taxa=2, n_characters=6)

    @pytest.mark.parametrize("ending", ["phy", "aln", "seq", "txt", "dat", "ali.1", "fasta", "nex", "", "dat.gz"])
    @pytest.mark.parametrize("form", ["PHYLIP", "FASTA", "NEXUS"])
    def test_formats_are_recognised_under_any_suffix(self, tmp_path, form, ending):
        path = tmp_path / f"x.{ending}".rstrip(".")
        data = getattr(self, form).encode()
        path.write_bytes(gzip.compress(data) if ending.endswith("gz") else data)
        frame = ct.read_characters(path)
        assert frame.loc["pan"].isna().tolist() == [False, False, True, False, False, False]
        assert "".join(frame.loc["homo"]) == "ACGTAC"

    def test_phylip_with_numbers_as_names_is_recognised(self, tmp_path):
        (tmp_path / "x.seq").write_text("  2   4\n1\nACGT\n2\nAC-T\n")
        assert ct.read_characters(tmp_path / "x.seq").shape == (2, 4)

    def test_tables_are_not_taken_for_characters(self, tmp_path):
        for text in ("3 4\n1.5 2 3\n", "a b\n1 2\n", "id,x\n1,2\n", ">5,<5\n1,2\n", "12 5\n1 2\n3 4\n", "3 8\n1 2 3\n"):
            (tmp_path / "x.txt").write_text(text)
            assert not open_table(tmp_path / "x.txt").is_characters
            (tmp_path / "x.foo").write_text(text)
            with pytest.raises(InputError, match=r"unsupported.*--format"):
                open_table(tmp_path / "x.foo")

    def test_format_can_be_given(self, tmp_path):
        (tmp_path / "x.csv").write_text(self.PHYLIP)
        with pytest.raises(InputError, match='format="phylip"'):
            ct.read_characters(tmp_path / "x.csv")
        assert ct.read_characters(tmp_path / "x.csv", format="phylip").shape == (2, 6)
        with pytest.raises(InputError, match="line 1"):
            ct.read_characters(tmp_path / "x.csv", format="fasta")
        with pytest.raises(InputError, match=r"'fastq'.*nexus, fasta, phylip, cldf"):
            ct.read_characters(tmp_path / "x.csv", format="fastq")
        (tmp_path / "folder").mkdir()
        for name, text in STRUCTURE.items():
            (tmp_path / "folder" / name).write_text(text)
        assert ct.read_characters(tmp_path / "folder", format="cldf").shape[0] == 4

    @pytest.mark.parametrize(
        ("text", "name"),
        [
            ("CLUSTAL W (1.83) multiple sequence alignment\n\n\na ACGT\n", "Clustal"),
            ("#mega\n!Title x;\n#a\nACGT\n", "MEGA"),
            ("# STOCKHOLM 1.0\na ACGT\n//\n", "Stockholm"),
            ("<?xml version='1.0'?><beast/>", "XML"),
        ],
    )
    def test_other_formats_are_named(self, tmp_path, text, name):
        (tmp_path / "x.aln").write_text(text)
        with pytest.raises(InputError, match=f"{name}.*FASTA"):
            ct.read_characters(tmp_path / "x.aln")

    def test_commands_recognise_formats(self, tmp_path, monkeypatch, capsys):
        command = command_in(tmp_path, monkeypatch, capsys)
        Path("x.aln").write_text(self.PHYLIP.replace("2 6", "3 6") + "gorilla ACGTTC\n")
        assert json.loads(command("fit", "x.aln", "--dry-run", "--json")[1])["n_rows"] == 3
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(Path("x.aln").read_bytes())))
        assert json.loads(command("fit", "-", "--dry-run", "--json")[1])["n_rows"] == 3
        Path("x.csv").write_bytes(Path("x.aln").read_bytes())
        assert command("fit", "x.csv", "--format", "phylip", "--dry-run")[0] == 0

    @pytest.mark.parametrize("symbol", "*EL")
    def test_one_symbol_does_not_turn_dna_into_protein(self, symbol):
        rows = [f"AC{symbol}T", "ACGT"]
        for read, text in (
            (parse_fasta, ">a\nACGT\n>b\n{}\n>c\n{}\n".format(*rows)),
            (parse_phylip, "3 4\na ACGT\nb {}\nc {}\n".format(*rows)),
        ):
            line = 4 if read is parse_fasta else 3
            with pytest.raises(
                InputError, match=rf"line {line}: Taxon 'b', character 3: '[{symbol}]' .*dna data.*datatype="
            ):
                read(text, "x")
        protein = parse_fasta(">a\nMKL*\n>b\nMKV*\n", "x")
        assert protein.columns[3].cells == ["*", "*"]

    def test_matrix_on_one_line_is_read(self):
        expected = {"A": list("ACGT"), "b c": ["A", "C", "?", "T"], "D": ["A", "{CT}", "G", "T"]}
        matrix = "A ACGT 'b c' AC -T D A{CT}GT"
        form = "datatype=dna"
        assert read(nexus(matrix, form)) == expected
        assert read(nexus(matrix, form).replace("\n", " ")) == expected
        assert read(nexus("A ACGT 'b c' AC-T\nD A(CT)GT", form)) == expected
        assert read(nexus("a 0.5 1 b ? 2 c 3 4", "datatype=continuous", n_characters=2))["c"] == [3.0, 4.0]
        assert parse_phylip("3 4\nA ACGT B AC GT\nC ACGA\n", "x").taxa == ("A", "B", "C")

    def test_matrix_that_is_interleaved_only_in_fact_is_read(self):
        interleaved = "a AC\nb AC\nc AC\n\na GT\nb GT\nc GA"
        sequential = "a AC\nGT\nb AC\nGT\nc AC\nGA"
        for form in ("datatype=dna", "datatype=dna interleave"):
            for matrix in (interleaved, sequential):
                assert read(nexus(matrix, form)) == {"a": list("ACGT"), "b": list("ACGT"), "c": list("ACGA")}

    def test_taxa_are_matched_with_taxlabels(self):
        before = "begin taxa; dimensions ntax=3; taxlabels 'Homo_sapiens' Pan C; end;\n"
        for names in (["Homo_sapiens", "Pan", "C"], ["1", "2", "3"], ["'homo sapiens'", "PAN", "c"]):
            matrix = "\n".join(f"{name} ACGT" for name in names)
            assert list(read(nexus(matrix, before=before))) == ["Homo_sapiens", "Pan", "C"]
        with pytest.raises(InputError, match=r"'4'.*TAXLABELS"):
            read(nexus("1 ACGT\n2 ACGT\n4 ACGT", before=before))
        with pytest.raises(InputError, match="'Pan' occurs twice"):
            read(nexus("1 ACGT\n2 ACGT\npan ACGT", before=before))

    def test_matrix_without_semicolon_is_reported(self):
        with pytest.raises(InputError, match=r"line 9: Taxon 'end'.*semicolon"):
            read(nexus("a ACGT\nb ACGT\nc ACGT").replace("  ;\nend;", "end;"))

    def test_standard_data_with_more_than_ten_states(self):
        """As IQ-TREE and RAxML write them."""
        assert rows_of(parse_phylip("2 11\na 0123456789A\nb abv34567890\n", "x"))["b"] == list("ABV34567890")

    def test_datatypes_of_other_programs(self):
        assert read(nexus("a 12 7\nb 12 9\nc ? 7", "datatype=microsat", n_characters=2))["b"] == ["12", "9"]
        assert read(nexus("a 0123\nb 0120\nc 0?00", "datatype=integerdata"))["c"] == list("0?00")
        assert read(nexus("a ACGT\nb ACGT\nc ACGT", "datatype=codon"))["c"] == list("ACGT")

    def test_gaps_of_gcg_are_read(self):
        assert rows_of(parse_fasta(">a\n~~ACGT\n>b\nACGT~~\n", "x"))["a"] == list("??ACGT")


# -- broken files ------------------------------------------------------------------------------------------------------

SOURCES = {
    "sequential": nexus("a1 ACGTRY\nb2 ACG-AC\nc3 A{CT}GTAC\nd4 ACGT?C", n_taxa=4, n_characters=6),
    "interleaved": nexus(
        "a1 ACG\nb2 AC-\nc3 {AC}CG\nd4 A?G\n\na1 TAC\nb2 TAC\nc3 TRC\nd4 TAC", "datatype=dna interleave", 4, 6
    ),
    "standard": nexus("a1 010(01)21\nb2 ?-0121\nc3 {02}12200\nd4 000000", 'datatype=standard symbols="012"', 4, 6),
    "continuous": nexus("a1 0.5 1 2\nb2 ? 3 -1e3\nc3 1 2 3\nd4 0 0 0.25", "datatype=continuous", 4, 3),
    "mixed": nexus("a1 ACG012\nb2 ACR0{01}2\nc3 ACG?12\nd4 -CG012", "datatype=mixed(DNA:1-3,Standard:4-6)", 4, 6),
    "protein": nexus("a1 MKLVAA\nb2 MKLVBX\nc3 MK-VAA\nd4 MKLVAA", "datatype=protein", 4, 6),
    "fasta": ">a1\nACG\nTRY\n>b2\nACG-AC\n>c3\nACGTAC\n>d4\nACGT?C\n",
    "phylip": "4 6\na1 ACGTRY\nb2 ACG-AC\nc3 ACGTAC\nd4 ACGT?C\n",
}


def parse(kind, text):
    if kind in ("fasta", "phylip"):
        return (parse_fasta if kind == "fasta" else parse_phylip)(text, "x", datatype="dna")
    return parse_nexus(text, "x")


def find_rows(kind, lines):
    """Return the lines that hold cells, each with its taxon."""
    taxon, results = None, []
    for k, line in enumerate(lines):
        if match := re.match(r">?([abcd][1-4])\b", line):
            taxon = match.group(1)
        if taxon and ((kind != "fasta" and match) or (kind == "fasta" and line and not match)):
            results.append((k, taxon))
        if line.strip() == ";":
            break
    return results


def break_row(kind, rng):
    """Return a file of which one row is wrong, the line, its taxon and what was done."""
    lines = SOURCES[kind].split("\n")
    rows = find_rows(kind, lines)
    k, taxon = rows[rng.integers(len(rows))]
    name, _, cells = lines[k].rpartition(" ") if kind == "fasta" else lines[k].partition(" ")
    symbols = cells.split() if kind == "continuous" else re.findall(r"[{(].*?[)}]|.", cells)
    between = " " if kind == "continuous" else ""
    at, what = int(rng.integers(len(symbols))), rng.choice(["drop", "add", "bad", "open", "empty", "again"])
    other = None
    if what == "drop":
        del symbols[at]
    elif what == "add":
        symbols.insert(at, "1" if kind in ("standard", "continuous") else "A")
    elif what == "bad":
        symbols[at] = str(rng.choice(list("!%$@^&"))) if kind != "continuous" else "1.2.3"
    elif what == "open":
        symbols[at] = "{"
    elif what == "empty":
        symbols[at] = "{}"
    else:  # the name of another taxon, or its own name twice
        other = next(value for _, value in rows if value != taxon)
        if kind == "fasta":
            header = next(n for n in range(k, -1, -1) if lines[n].startswith(">"))
            lines[header] = f">{other}"
        else:
            name = other
    lines[k] = f"{name} {between.join(symbols)}" if kind != "fasta" else between.join(symbols)
    return "\n".join(lines), k + 1, {taxon, other} - {None}, f"{kind}: {what} in line {k + 1}"


@pytest.mark.parametrize("kind", SOURCES)
def test_source_formats_give_expected_taxa(kind):
    assert parse(kind, SOURCES[kind]).taxa == ("a1", "b2", "c3", "d4")


@pytest.mark.parametrize("kind", SOURCES)
def test_broken_rows_are_reported_with_taxon_and_line(kind):
    """75 files of each of 8 kinds, 600 in all: every message names the taxon and a line concerned."""
    rng = np.random.default_rng(sum(map(ord, kind)))
    for _ in range(75):
        text, line, taxa, what = break_row(kind, rng)
        with pytest.raises(InputError) as caught:
            parse(kind, text)
        message = str(caught.value)
        assert any(f"'{taxon}'" in message for taxon in taxa), (what, message)
        named = {int(value) for value in re.findall(r"line (\d+)", message)}
        lines = text.split("\n")
        # a row may be on several lines, and a taxon occur twice
        assert named & {line, *(k + 1 for k, line in enumerate(lines) if any(t in line for t in taxa))}, (what, message)


N_DAMAGED = 500  # files of each kind; any number may be tried


def damage(text, rng):
    """Return a text with a random change anywhere."""
    what = rng.integers(6)
    a, b = sorted(rng.integers(len(text) + 1, size=2).tolist())
    lines = text.split("\n")
    k, j = rng.integers(len(lines), size=2).tolist()
    if what == 0:
        return text[:a]
    if what == 1:
        return text[:a] + text[min(b, a + int(rng.integers(1, 30))) :]
    if what == 2:
        return text[:a] + str(rng.choice(list("[]{}()'\";=,*>\\~\t\n\x0b0-9é\U0001f600"))) + text[a:]
    if what == 3:
        lines[k], lines[j] = lines[j], lines[k]
    elif what == 4:
        del lines[k]
    else:
        lines.insert(k, lines[j])
    return "\n".join(lines)


def outcome(read):
    """Return what is read, or None and the message; any other error fails the test."""
    try:
        return read(), ""
    except InputError as error:
        return None, str(error)


@pytest.mark.parametrize("kind", SOURCES)
def test_damaged_files_are_read_or_rejected_with_location(kind):
    """A damaged file is either read or rejected with a message that gives the location."""
    rng = np.random.default_rng(1)
    n_refused = 0
    for _ in range(N_DAMAGED):
        text = SOURCES[kind]
        for _ in range(rng.integers(1, 4)):
            text = damage(text, rng)
        actual, message = outcome(lambda text=text: parse(kind, text))
        n_refused += actual is None
        if actual is None:
            assert re.search(r"line \d+|#NEXUS|has no (characters|sequences)", message), message
        else:
            assert all(len(column.cells) == len(actual.taxa) for column in actual.columns)
    assert n_refused > N_DAMAGED / 3


@pytest.mark.parametrize("files", [STRUCTURE, WORDS], ids=["structure", "words"])
def test_damaged_cldf_is_read_or_rejected(files):
    rng = np.random.default_rng(2)
    n_refused = 0
    for _ in range(100):
        name = sorted(files)[rng.integers(len(files))]
        damaged = files | {name: damage(files[name], rng)}
        characters, message = outcome(lambda damaged=damaged: parse_files(damaged))
        n_refused += characters is None
        assert characters or "folder" in message
    assert n_refused > 30


# -- the command line --------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("short_chains")
class TestCommands:
    @pytest.fixture
    def command(self, tmp_path, monkeypatch, capsys):
        shutil.copy(EXAMPLE, tmp_path / "primates.nex")
        return command_in(tmp_path, monkeypatch, capsys)

    def test_commands_accept_nexus_files(self, command):
        # The fewer characters, the faster are predictions.
        text = Path("primates.nex").read_text()
        Path("short.nex").write_text(text.replace("Matrix", "Eliminate 1-18 31-60; Matrix"))
        assert command("fit", "short.nex", "-o", "quoted", "--quote-names")[0] == 0
        assert "'Saimiri sciureus':" in Path("quoted/tree.nwk").read_text()
        code, _, err = command("fit", "short.nex", "-o", "out")
        assert code == 0
        assert "9 rows" in err
        assert "(Homo_sapiens:" in Path("out/tree.nwk").read_text()
        model = "out/model.coaltree"
        assert command("score", model, "short.nex")[1].count("\n") == 10
        assert command("place", model, "short.nex")[1].count("\n") == 10
        assert command("impute", "short.nex", "--model", model, "-o", "filled.csv")[0] == 0
        filled = Path("filled.csv").read_text().splitlines()
        assert len(filled) == 10
        assert "{" not in filled[5]
        assert ",," not in filled[9]

    def test_fit_command_accepts_fasta_and_phylip(self, command):
        Path("x.fasta").write_text(">a\nACGT\n>b\nACGA\n>c\nTCGA\n")
        Path("x.phy").write_text("3 4\na ACGT\nb ACGA\nc TCGA\n")
        Path("cldf").mkdir()
        for name, text in STRUCTURE.items():
            Path("cldf", name).write_text(text)
        for name in ("x.fasta", "x.phy", "cldf"):
            assert command("fit", name, "-o", f"out_{name}")[0] == 0
        assert command("fit", "x.fasta", "--format", "fasta", "-o", "again")[0] == 0

    def test_model_file_keeps_gap_handling(self, command):
        Path("x.fasta").write_text(">a\nAC-T\n>b\nACGA\n>c\nTC-A\n>d\nTCGA\n")
        assert command("fit", "x.fasta", "--gaps", "state", "-o", "out")[0] == 0
        columns = ct.load_model("out/model.coaltree")._model.encoding.categories_by_name
        assert columns["site3"] == ("A", "C", "G", "T", "-")
        code, out, err = command("score", "out/model.coaltree", "x.fasta")
        assert code == 0
        assert "did not occur" not in err
        assert out.count("\n") == 5
        Path("x.csv").write_text("a,b\n1,x\n2,y\n3,x\n")
        check_sentence(command("fit", "x.csv", "--gaps", "state", "-o", "o"), "--gaps", "x.csv")
        refused = command("impute", "x.fasta", "--model", "out/model.coaltree", "--gaps", "state", "-o", "o.csv")
        check_sentence(refused, "--gaps", "--model")

    @pytest.mark.parametrize(
        ("arguments", "facts"),
        [
            (["fit", "primates.nex", "--categorical", "site1", "-o", "o"], ["--categorical", "primates.nex"]),
            (["fit", "primates.nex", "--id-column", "site1", "-o", "o"], ["--id-column", "primates.nex"]),
            (["fit", "primates.nex", "--drop", "site99", "-o", "o"], ["--drop", "'site99'"]),
            (["impute", "primates.nex", "-o", "filled.nex"], ["filled.nex", ".csv"]),
            (["fit", "broken.nex", "-o", "o"], ["broken.nex, line 10", "'Gorilla_gorilla'"]),
            (["fit", "broken.phy", "-o", "o"], ["broken.phy, line 3", "'b'"]),
        ],
    )
    def test_commands_report_invalid_character_files(self, command, arguments, facts):
        text = Path("primates.nex").read_text()
        Path("broken.nex").write_text(text.replace("G..G........C.........", "G..G........C........!", 1))
        Path("broken.phy").write_text("2 4\na ACGT\nb ACG\n")
        check_sentence(command(*arguments), *facts)

    def test_drop_option_accepts_columns_and_partitions(self, command):
        _, out, _ = command("fit", "primates.nex", "--drop", "second_gene,site1", "--dry-run", "--json")
        assert json.loads(out)["n_columns"] == 29

    def test_drop_option_accepts_patterns(self, command):
        for patterns, n_columns in (
            ("second_*,site1", 29),
            ("site[1-3]", 57),
            ("site?", 51),
            ("*gene", 0),
            ("*3*", 45),
        ):
            code, out, err = command("fit", "primates.nex", "--drop", patterns, "--dry-run", "--json")
            assert (json.loads(out)["n_columns"] if code == 0 else 0) == n_columns, err
        check_sentence(
            command("fit", "primates.nex", "--drop", "*genes*", "--dry-run"), "--drop", "'*genes*'", "primates.nex"
        )


def test_benchmark_alignments_have_published_sizes(published_data):
    """The alignments DS1 to DS8, if they are available."""
    paths = sorted((published_data / "phylogenetics").glob("DS*.nexus"))
    if not paths:
        pytest.skip("the alignments are not there")
    sizes = [(27, 1949), (29, 2520), (36, 1812), (41, 1137), (50, 378), (50, 1133), (59, 1824), (64, 1008)]
    for path, size in zip(paths, sizes, strict=True):
        characters = parse_file(open_table(path))
        assert (len(characters.taxa), len(characters.columns)) == size


@pytest.mark.parametrize(
    ("rows", "wrong", "datatype"),
    [(("ACGT", "AC!T"), "'!'", "dna"), (("0101", "01A1"), "'A'", "standard"), (("MKLV", "MK1V"), "'1'", "protein")],
)
def test_wrong_symbol_message_names_likely_datatype(tmp_path, rows, wrong, datatype):
    path = tmp_path / "a.fasta"
    path.write_text(">one\n{}\n>two\n{}\n".format(*rows))
    with pytest.raises(InputError, match=f"{wrong} .*{datatype} data"):
        ct.read_characters(path)
