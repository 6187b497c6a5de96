"""Every sentence with which the command line refuses something, and that none was forgotten."""

# ruff: noqa: E501  sentences stand in one piece

import ast
import io
import json
import re
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import polars as pl
import pytest

import coaltree as ct
from command_line import check_sentence, command_in, contents

PACKAGE = Path(ct.__file__).parent
TEXT = "id,x,y,c\na,1.0,2.0,u\nb,1.5,,u\nc,9.0,8.0,v\nd,8.5,NA,v\nf,?,7.5,u\n"
MODEL = ("model.coaltree", "t.csv")
MANY = "x,c\n" + "".join(f"{i % 7},v{i}\n" for i in range(1500))
PRICES = "x,c\n" + "".join(f"{i % 7},${i}.5\n" for i in range(1500))


def parquet(**columns):
    written = io.BytesIO()
    pl.DataFrame(columns).write_parquet(written)
    return written.getvalue()


def npy(array):
    written = io.BytesIO()
    np.save(written, array)
    return written.getvalue()


def tree_json(**members):
    tree = {"format": "coaltree tree", "format_version": 1, "leaf_names": ["a", "b"], "children": [[0, 1]]}
    return json.dumps(tree | {"heights": [0, 0, 1], "support": None} | members).encode()


class Case(NamedTuple):
    """A command, what it finds in its folder or on standard input, and how the sentence goes, * for anything."""

    command: str
    sentence: str
    files: Mapping[str, bytes] = MappingProxyType({})
    stdin: bytes = b""


def fit(sentence, text, options=""):
    data = text if isinstance(text, bytes) else text.encode()
    return Case(f"fit n.csv -o out {options}", sentence, {"n.csv": data})


def convert(sentence, name, data, options=""):
    return Case(
        f"convert {name} out.json {options}", sentence, {name: data if isinstance(data, bytes) else data.encode()}
    )


KINDS = ".csv, .tsv, .tab, .txt (each also with .gz), .parquet and .pq"
READ_ENDINGS = ".nwk, .newick, .tree, .nex, .nexus, .trees, .csv, .npy, .json, .coaltree"
WRITTEN_ENDINGS = READ_ENDINGS.removesuffix(", .coaltree")

CASES = [
    # -- usage ------------------------------------------------------------------------------------
    Case("fti", "No such command 'fti'. Did you mean 'fit'? (see coaltree --help)."),
    Case("fit", "Missing argument 'TABLE' (see coaltree fit --help)."),
    Case("fit t.csv -o out --categorcal c", "No such option: --categorcal (Possible options: --categorical*) (see coaltree fit --help)."),
    Case("fit t.csv -o out --n-clusters two", "Invalid value for '--n-clusters': * (see coaltree fit --help)."),
    Case("fit t.csv -o out --rule best", "Invalid value for '--rule': *'best' is not one of *'max-prob'* (see coaltree fit --help)."),
    Case("fit t.csv -o out --search best", "Invalid value for '--search': *'best' is not one of *'neighbors'* (see coaltree fit --help)."),
    Case("simulate -3", "-3 is not an option, and ROWS cannot be a negative number (see coaltree simulate --help)."),
    Case("simulate -35 --real 2", "-35 is not an option, and ROWS cannot be a negative number (see coaltree simulate --help)."),
    Case("simulate -.5", "-.5 is not an option, and ROWS cannot be a negative number (see coaltree simulate --help)."),
    Case("convert -3 out.nwk", "-3 is not an option, and TREE or OUT cannot be a negative number (see coaltree convert --help)."),
    Case("simulate -x", "No such option: -x (see coaltree simulate --help)."),
    Case("simulate --3", "No such option: --3 (see coaltree simulate --help)."),
    Case("fit t.csv -o", "Option '-o' requires an argument (see coaltree --help)."),
    *(
        Case(command, f"Invalid value for {what}: the name is empty; name a file or a folder, or . for the folder that you are in (see coaltree {command.split()[0]} --help).")
        for command, what in (
            ("fit t.csv -o ''", "'--outdir' / '-o'"),
            ("fit '' -o out", "'TABLE'"),
            ("demo -o ''", "'--outdir' / '-o'"),
            ("score '' t.csv", "'MODEL'"),
            ("score model.coaltree t.csv -o ''", "'--output' / '-o'"),
            ("impute t.csv -o o.csv --sd ''", "'--sd'"),
            ("convert t.nwk ''", "'OUT'"),
            ("plot t.nwk -o ''", "'--output' / '-o'"),
            ("simulate 5 --tree ''", "'--tree'"),
        )
    ),
    # -- files with tables ------------------------------------------------------------------------
    Case("fit no.csv -o out", "no.csv does not exist."),
    Case("fit sub -o out", "sub is a folder without parquet files: name a file in it."),
    Case("fit sub -o out --format csv", "sub is a folder: name a file in it."),
    Case("fit big -o out", "b.parquet and the first file of big have not the same columns, one of them has 'y': files of a folder are one table.", {"big/a.parquet": parquet(x=[1.0]), "big/b.parquet": parquet(x=[2.0], y=[1])}),
    Case("fit big -o out", "Column 'x' of b.parquet is String, and that of the first file of big is Float64: files of a folder are one table, whose columns are of one type.", {"big/a.parquet": parquet(x=[1.0]), "big/b.parquet": parquet(x=["one"])}),
    Case("fit big -o out", "The files of big have columns of the same name but of types that do not go together: *.", {"big/a.parquet": parquet(x=[1.0]), "big/b.parquet": parquet(x=[[1.0]])}),
    Case("fit big -o out", "big/b.parquet is not a parquet file that can be read: *.", {"big/a.parquet": parquet(x=[1.0]), "big/b.parquet": b"u"}),
    Case("fit t.nwk -o out", f"t.nwk is not a kind of file that is read: these are {KINDS}."),
    Case("fit n.gz -o out", f"n.gz is not a kind of file that is read: these are {KINDS}.", {"n.gz": b"x"}),
    Case("fit n.csv.gz -o out", "n.csv.gz is not a whole gzip file: *.", {"n.csv.gz": b"x,y\n1,2\n"}),
    Case("fit n.parquet -o out", "n.parquet is not a parquet file that can be read: *.", {"n.parquet": bytes(range(256))}),
    Case("fit n.parquet -o out", "n.parquet has columns but no rows.", {"n.parquet": parquet(x=[])}),
    Case("fit n.parquet -o out", "n.parquet has no columns.", {"n.parquet": parquet()}),
    Case("fit - -o out", "standard input is empty: a table needs a header and at least one row."),
    Case("fit - -o out", "standard input is not a whole gzip file: *.", stdin=b"\x1f\x8bno"),
    Case("fit - -o out --format parquet", "standard input is not a parquet file that can be read: *.", stdin=TEXT.encode()),
    fit("n.csv is empty: a table needs a header and at least one row.", ""),
    fit("n.csv is empty: a table needs a header and at least one row.", "\n \n"),
    fit("n.csv has a header but no rows.", "x,y\n"),
    fit("The header of n.csv has the column name 'x' more than once: column names must be distinct.", "x,x\n1,2\n"),
    fit("Column 2 of n.csv has no name in the header: give it one, for example 'id' if it holds row names.", "x,\n1,2\n"),
    fit("Column 1 of n.csv has no name in the header, and its values are not distinct row names: give it a name, for example 'group', or leave it out.", ",x\na,1\na,2\n"),
    fit("Line 3 of n.csv has 1 fields, but the header has 2: fields are separated by comma, and one that contains it must stand in quotes.", "x,y\n1,2\n3\n"),
    fit("Line 2 of n.csv cannot be read: field larger than field limit (131072).", 'x,y\n"' + "a" * 140_000 + '",2\n'),
    fit("n.csv cannot be read: a quotation mark in it is not closed.", 'x,y\n1,2\n3,"4\n'),
    fit("n.csv is not UTF-8 text (byte 0xff in line 2): save it as UTF-8; files from spreadsheet programs are often Latin-1 or Windows-1252 (iconv -f latin1 -t utf-8).", b"x\n\xff\xfe1\n"),
    fit("n.csv is not UTF-8 text (byte 0x*", bytes(range(256))),
    fit("The table has 1 infinite cell, the first in column 'x', row 1 (counted from 0): numbers must be finite or missing; replace infinity by a missing value (NaN).", "x,y\n1,2\ninf,3\n4,5\n"),
    fit("Column 'x' holds numbers, but row 2 ('c') holds 'oops' (1 of 4 observed cells is not a number): mark it as missing, fix it, or declare the column categorical.", "id,x\na,1\nb,2\nc,oops\nd,4\n"),
    fit("Column 'c' has 1,500 categories in 1,500 rows, and at most 1,000 are allowed: drop it, group the rare values, or use it as row names.", MANY),
    fit("Column 'c' is text such as '$0.5' with 1,500 different values, and at most 1,000 categories are allowed: *, or leave the column out.", PRICES),
    fit("No columns of n.csv are left to cluster by: all are dropped or hold row names.", "id\na\nb\n", "--id-column id"),
    fit("n.csv has no column 'weigth', which --drop names: did you mean 'weight'?", "weight,y\n1,2\n", "--drop weigth"),
    fit("n.csv has no column 'zzz', which --id-column names: its columns are 'x', 'y'.", "x,y\n1,2\n", "--id-column zzz"),
    fit("n.csv has no column 'Y', which --categorical names: *", "x,y\n1,2\n", "--categorical Y"),
    fit("n.csv has no column 'yy', which --real names: did you mean 'y'?", "x,y\n1,2\n", "--real yy"),
    fit("Column 'x' is named by both --id-column and --drop; name it with one of them.", "x,y\n1,2\n", "--id-column x --drop x"),
    fit("Column 'x' is named by both --categorical and --real; name it with one of them.", "x,y\n1,2\n", "--real x --categorical x"),
    fit("Column 'y' is to hold numbers, but row 1 ('b') holds 'oops', which is not a number: fix the cell, or have it taken as missing with --na-value 'oops'.", "id,y\na,1\nb,oops\nc,no\n", "--real y"),
    Case("fit n.parquet -o out --categorical s", "Column 's' is of type Struct(*), which can be neither row names nor categories.", {"n.parquet": parquet(s=[{"a": 1}], x=[1])}),
    Case("fit n.parquet -o out", "Column 's' is of type Struct(*), which has no reading as a column: convert it to numbers, text or dates, or drop it.", {"n.parquet": parquet(s=[{"a": 1}], x=[1])}),
    # -- options of fit ---------------------------------------------------------------------------
    Case("fit t.csv", "--outdir is missing: name a folder for the results, or give --dry-run to see how the table is read."),
    Case("fit t.csv -o -", "--outdir is -, but several files do not go to standard output: name a folder."),
    Case("demo -o -", "--outdir is -, but several files do not go to standard output: name a folder."),
    Case("fit t.csv -o out -q -v", "--quiet and --verbose were both given; give one of them, or neither."),
    Case("fit t.csv -o out --drop x,,y", "--drop was given an empty column name; name columns as in the table's header."),
    Case("fit t.csv -o out --real ''", "--real was given an empty column name; name columns as in the table's header."),
    Case("fit t.csv -o out --id-column ''", "--id-column was given an empty column name; give --no-id to take no column as row names."),
    Case("fit t.csv -o out --no-id --id-column id", "--no-id and --id-column were both given; give one of them, or neither."),
    Case("fit t.csv -o out --n-clusters 0", "--n-clusters is 0; it must be a whole number of at least 1."),
    Case("fit t.csv -o out --n-clusters 6", "--n-clusters is 6, but t.csv has 5 rows."),
    Case("fit - -o out --n-clusters 3", "--n-clusters is 3, but standard input has 1 row.", stdin=b"x,y\n1,2\n"),
    Case("fit t.csv -o out --height-threshold nan", "--height-threshold is nan; it must be a number of at least 0."),
    Case("fit t.csv -o out --n-clusters 2 --height-threshold 1", "--n-clusters and --height-threshold were both given; give one of them, or neither."),
    Case("fit t.csv -o out --noise -1", "--noise is -1; it must be a number of at least 0."),
    Case("fit t.csv -o out --n-jobs 0", "--n-jobs is 0; it must be a number of threads, or -1 for all processors."),
    Case("fit t.csv -o out --dask host", "--dask is host; it must be the address of a scheduler such as tcp://host:8786, or local:2 for two worker processes on this machine."),
    Case("fit t.csv -o out --dask local:0", "--dask is local:0; it must be the address of a scheduler such as *"),
    Case("fit t.csv -o out --calibrate -1", "--calibrate is -1; it must be a whole number of at least 0."),
    Case("fit t.csv -o out --particles 5", "--particles is an option of --inference smc; add that, or leave --particles out."),
    Case("fit t.csv -o out --inference smc --rule rate1", "--rule is an option of --inference greedy; leave it out."),
    Case("fit t.csv -o out --search exact --inference smc", "--search is an option of --inference greedy; leave it out."),
    Case("fit t.csv -o out --refine --inference mcmc", "--refine is an option of --inference greedy; leave it out."),
    Case("fit t.csv -o out --chains 5", "--chains is an option of --inference mcmc; add that, or leave --chains out."),
    Case("fit t.csv -o out --samples 5 --inference smc", "--samples is an option of --inference mcmc; add that, or leave --samples out."),
    Case("fit t.csv -o out --particles 5 --inference mcmc", "--particles is an option of --inference smc; add that, or leave --particles out."),
    Case("fit t.csv -o out --seed 5", "--seed is an option of --inference smc or mcmc; add one of them, or leave --seed out."),
    Case("fit t.csv -o out --inference mcmc --chains 0", "--chains is 0; it must be a whole number of at least 1."),
    Case("fit t.csv -o out --inference mcmc --samples -1", "--samples is -1; it must be a whole number of at least 1."),
    Case("fit t.csv -o out --covariance full", "* cell(s) are missing, *: give one variance a column, or fill the cells in."),
    Case("fit t.csv -o t.nwk", "t.nwk is a file, and a folder is needed: choose another output folder."),
    Case("fit t.csv -o t.nwk/out", "t.nwk is a file, and a folder is needed: choose another output folder."),
    Case("fit t.csv -o /proc/out", "The folder /proc/out cannot be written: No such file or directory; choose another output folder, or change its permissions."),
    Case("fit t.csv -o blocked --calibrate 0", "blocked/tree.nwk cannot be written: it is a folder; choose another output folder."),
    # -- score and place --------------------------------------------------------------------------
    Case("score no.coaltree t.csv", "no.coaltree does not exist."),
    Case("score sub t.csv", "sub is a folder: name a model file in it, such as model.coaltree."),
    Case("score t.csv t.csv", "t.csv is not a model of coaltree, or is damaged: it does not begin as such a file does; take a file as model.save and coaltree fit write them."),
    Case("score - t.csv", "standard input is empty: a model file was expected, as model.save and coaltree fit write them."),
    Case("score - t.csv", "standard input is not a model of coaltree, or is damaged: *", stdin=b"garbage"),
    Case("score - -", "MODEL and TABLE are both -, and standard input is one: name a file for one of them."),
    Case("score imputer.coaltree t.csv", "imputer.coaltree holds a CoalescentImputer, which fills cells and has neither densities nor clusters: take the model.coaltree that coaltree fit writes, or a CoalescentClustering's."),
    Case("score model.coaltree t.csv --json -o -", "--output - and --json both write to standard output, which is one: name a file, or leave one of them out."),
    Case("score model.coaltree t.csv -o t.csv", "t.csv is the table itself, which is not written over: choose another name."),
    Case("score model.coaltree t.csv -o ./model.coaltree", "model.coaltree is the model itself, which is not written over: choose another name."),
    Case("score model.coaltree t.csv -o sub", "sub cannot be written: it is a folder; choose another name."),
    Case("score model.coaltree t.csv -o /dev/null", "/dev/null cannot be written: it is not a plain file; choose another name."),
    Case("score model.coaltree t.csv -o no/s.csv", "no/s.csv cannot be written: No such file or directory; nothing was changed, choose another place."),
    Case("score model.coaltree n.csv", "The table lacks the column 'c' that it had when the model was fit (and has 'd', which it had not): add the column, with missing cells if it is not known.", {"n.csv": b"x,y,d\n1,2,u\n"}),
    Case("score array.coaltree n.csv", "X has 1 features, but CoalescentClustering is expecting 2 features as input: columns without names are those of the fit in the same order, which are 'x0', 'x1'.", {"n.csv": b"a\n1\n2\n"}),
    Case("score model.coaltree n.csv --unseen error", "Column 'c' holds 'w' in row 0 (counted from 0), which did not occur when the model was fit (known are 'u', 'v'): fix the cell, mark it as missing, or have such cells read as missing (unseen_categories=\"missing\", on the command line --unseen missing).", {"n.csv": b"x,y,c\n1,2,w\n"}),
    Case("score model.coaltree n.csv", "Column 'y' is to hold numbers, but row 0 (counted from 0) holds 'hot', which is not a number: fix the cell, or have it taken as missing with --na-value 'hot'.", {"n.csv": b"x,y,c\n1,hot,u\n2,hot,v\n"}),
    Case("score array.coaltree n.csv", "Column 'x0' holds 'hot' in row 0 (counted from 0), but held numbers or dates when the model was fit: fix the cell, mark it as missing, or convert the column.", {"n.csv": b"a,b\nhot,1\nhot,2\n"}),
    Case("place model.coaltree t.csv --nearest -1", "--nearest is -1; it must be a whole number of at least 0."),
    Case("place model.coaltree t.csv --level 1", "--level is 1; it must be a number between 0 and 1."),
    # -- impute -----------------------------------------------------------------------------------
    Case("impute t.csv -o o.tsv", "o.tsv is to be a file of the kind of t.csv: choose a name that ends with .csv."),
    Case("impute - -o o.csv", "o.csv is to be a file of the kind of standard input: choose a name that ends with .tsv.", stdin=b"x\ty\n1\t\n"),
    Case("impute n.parquet -o -", "n.parquet is a parquet file, which is not written to standard output: name a file.", {"n.parquet": parquet(x=[1.0, None])}),
    Case("impute t.csv -o - --draws 2", "--draws writes several files, and standard output is one: name a file with --output."),
    Case("impute t.csv -o o.csv --sd o.csv", "--sd and --output are both o.csv; they are two files."),
    Case("impute t.csv -o - --sd -", "--output - and --sd - both write to standard output, which is one: name a file, or leave one of them out."),
    Case("impute t.csv -o o.csv --seed 1", "--seed is an option of --draws and of --inference smc or mcmc; add one of them, or leave --seed out."),
    Case("impute t.csv -o o.csv --chains 2", "--chains is an option of --inference mcmc; add that, or leave --chains out."),
    Case("impute t.csv -o o.csv --inference mcmc --samples 0", "--samples is 0; it must be a whole number of at least 1."),
    Case("impute t.csv -o o.csv --refine --inference mcmc", "--refine is an option of --inference greedy; leave it out."),
    Case("impute t.csv -o o.csv --search exact --inference smc", "--search is an option of --inference greedy; leave it out."),
    Case("impute t.csv -o o.csv --model model.coaltree --search exact", "--search is for fitting a model, and --model has been fitted; leave one of the two out."),
    Case("impute t.csv -o o.csv --model model.coaltree --noise 1", "--noise is for fitting a model, and --model has been fitted; leave one of the two out."),
    Case("impute - -o - --model -", "TABLE and --model are both -, and standard input is one: name a file for one of them."),
    # -- convert ----------------------------------------------------------------------------------
    Case("convert no.nwk out.json", "no.nwk does not exist."),
    Case("convert sub.nwk out.json", "sub.nwk is a folder: name a file in it."),
    Case("convert t.foo out.json", f"t.foo is not a kind of tree that is read: names end with {READ_ENDINGS}, or --from says the kind."),
    Case("convert t.nwk out.foo", f"out.foo is not a kind of tree that is written: names end with {WRITTEN_ENDINGS}, or --to says the kind."),
    Case("convert t.nwk out.coaltree", f"out.coaltree is not a kind of tree that is written: names end with {WRITTEN_ENDINGS}, or --to says the kind."),
    Case("convert t.nwk out --to model", f"--to model is not a kind of tree that is written: names end with {WRITTEN_ENDINGS}, or --to says the kind."),
    Case("convert - out.json", "The kind of what - stands for is not known: say it with --from, which is one of newick, nexus, linkage, npy, json, model."),
    Case("convert t.nwk -", "The kind of what - stands for is not known: say it with --to, which is one of newick, nexus, linkage, npy, json."),
    Case("convert t.nwk - --to json --json", "OUT - and --json both write to standard output, which is one: name a file, or leave one of them out."),
    Case("convert t.nwk t.nwk", "t.nwk is the tree itself, which is not written over: choose another name."),
    Case("convert - out.json --from newick", "standard input is empty: a tree was expected."),
    convert("n.nwk is empty: a tree was expected.", "n.nwk", " \n"),
    convert("n.nwk is not UTF-8 text, as newick files are.", "n.nwk", b"(a:1,\xff:1);"),
    convert("n.nwk holds no newick tree that can be read: There is a node with 3 children at *; only binary trees are read; *.", "n.nwk", "(a:1,b:1,c:1);"),
    convert("n.nwk holds no newick tree that can be read: The tree is not ultrametric: leaf 'b' stands 2 below the root, but leaf 'a' only 1; *.", "n.nwk", "(a:1,b:2);"),
    convert("n.nex holds no nexus tree that can be read: The text begins with *, so it is no NEXUS file, which begins with #NEXUS; *.", "n.nex", "(a:1,b:1);"),
    convert("n.csv holds no linkage tree that can be read: it has a header but no merges.", "n.csv", "left,right,height,leaves\n"),
    convert("n.csv holds no linkage tree that can be read: its lines have not all 4 fields (left, right, height, leaves), or 6 (with the names of leaves left and right).", "n.csv", "0,1,1,2\n2,3\n"),
    convert("n.csv holds no linkage tree that can be read: 'x' stands where a number should be.", "n.csv", "0,1,1,2\n2,3,x,3\n"),
    convert("n.csv holds no linkage tree that can be read: it is no csv text (*).", "n.csv", '0,1,1,"2'),
    convert("n.csv holds no linkage tree that can be read: Row 1 of the linkage matrix has distance 1, less than 2 in the row before; *.", "n.csv", "0,1,2,2\n2,3,1,3\n"),
    convert("n.npy holds no npy tree that can be read: it is no .npy file with finite numbers.", "n.npy", "garbage"),
    convert("n.npy holds no npy tree that can be read: it is no .npy file with finite numbers.", "n.npy", npy(np.array([["a"]]))),
    convert("n.npy holds no npy tree that can be read: The linkage matrix has shape (1, 3); it must be (n - 1, 4), as scipy makes it.", "n.npy", npy(np.ones((1, 3)))),
    convert("n.json holds no json tree that can be read: it is not JSON.", "n.json", b"\xff{"),
    convert("n.json holds no json tree that can be read: it is [], and not an object.", "n.json", "[]"),
    convert("n.json holds no json tree that can be read: it does not say that its format is 'coaltree tree'.", "n.json", "{}"),
    convert("n.json holds no json tree that can be read: it was written by a later version of coaltree, which this one cannot read.", "n.json", tree_json(format_version=2)),
    convert("n.json holds no json tree that can be read: children holds a merge of 3 nodes, and only binary trees are read.", "n.json", tree_json(children=[[0, 1, 2]])),
    convert("n.json holds no json tree that can be read: heights is 'x', and not a number.", "n.json", tree_json(heights=[0, 0, "x"])),
    convert("n.json holds no json tree that can be read: Leaf 1 has height 0.5; every leaf stands at height 0.", "n.json", tree_json(heights=[0, 0.5, 1])),
    convert("n.json holds no json tree that can be read: support has shape (2,); *.", "n.json", tree_json(support=[1, 1])),
    Case("convert n.nwk out.csv", "A tree of one leaf has no merges, of which a linkage is made: write it as newick, nexus or json.", {"n.nwk": b"a;"}),
    Case("convert n.coaltree out.json", "n.coaltree is not a model of coaltree, or is damaged: *", {"n.coaltree": b"PK garbage"}),
    # -- cut --------------------------------------------------------------------------------------
    Case("cut model.coaltree --n-clusters 2 --height-threshold 1", "--n-clusters and --height-threshold were both given; give one of them, or neither."),
    Case("cut model.coaltree --n-clusters 0", "--n-clusters is 0; it must be a whole number of at least 1."),
    Case("cut model.coaltree --n-clusters 9", "--n-clusters is 9, but the model has 5 rows."),
    Case("cut model.coaltree --height-threshold -1", "--height-threshold is -1; it must be a number of at least 0."),
    Case("cut t.nwk", "A tree alone does not say where to cut it: give --n-clusters or --height-threshold, or take a model.coaltree."),
    Case("cut t.nwk --n-clusters 4", "--n-clusters is 4, but the tree has 3 leaves."),
    Case("cut t.csv --n-clusters 2", "t.csv holds no linkage tree that can be read: *"),
    Case("cut imputer.coaltree", "imputer.coaltree holds a CoalescentImputer, which fills cells and has neither densities nor clusters: *"),
    Case("cut no.coaltree", "no.coaltree does not exist."),
    Case("cut model.coaltree -o model.coaltree", "model.coaltree is the tree itself, which is not written over: choose another name."),
    Case("cut model.coaltree -o - --json", "--output - and --json both write to standard output, which is one: name a file, or leave one of them out."),
    Case("cut - --n-clusters 2", "The kind of what - stands for is not known: say it with --from, which is one of newick, nexus, linkage, npy, json, model."),
    # -- plot -------------------------------------------------------------------------------------
    Case("plot t.nwk -o p.jpg", "p.jpg is not a kind of picture that is drawn: these end with .png, .svg, .pdf; for another name say the kind with --to."),
    Case("plot t.nwk -o p.png --n-clusters 9", "--n-clusters is 9, but the tree has 3 leaves."),
    Case("plot t.nwk -o p.png --n-clusters 0", "--n-clusters is 0; it must be a whole number of at least 1."),
    Case("plot t.nwk -o p.png --collapse 0", "--collapse is 0; it must be a whole number of at least 1."),
    Case("plot t.nwk -o p.png --width 0", "--width is 0; it must be a number of inches from 1 to 60."),
    Case("plot t.nwk -o p.png --height nan", "--height is nan; it must be a number of inches from 1 to 60."),
    Case("plot t.nwk -o no/p.png", "no/p.png cannot be written: No such file or directory; nothing was changed, choose another place."),
    # -- simulate ---------------------------------------------------------------------------------
    Case("simulate 0", "ROWS is 0; it must be a whole number of at least 1."),
    Case("simulate 5 --states 1", "--states is 1; it must be a whole number of at least 2."),
    Case("simulate 5 --real 0", "--real and --categorical are both 0; a table has at least one column."),
    Case("simulate 5 --missing 1", "--missing is 1; it must be a share of at least 0 and less than 1."),
    Case("simulate 5 --rate 0", "--rate is 0; it must be a number above 0, and at most 1000000."),
    Case("simulate 5 --noise -1", "--noise is -1; it must be a number of at least 0."),
    Case("simulate 5 --tree - --tree-format newick", "--tree is -, where the table goes: name a file with --output, or with --tree."),
    Case("simulate 5 -o s.csv --tree s.csv", "--output and --tree are both s.csv; they are two files."),
    Case("simulate 5 -o s.parquet", "s.parquet is to hold a csv table: choose a name that ends with .csv."),
    Case("simulate 5 --tree s.foo", f"s.foo is not a kind of tree that is written: names end with {WRITTEN_ENDINGS}, or --tree-format says the kind."),
]  # fmt: skip


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    frame = pl.read_csv(TEXT.encode(), null_values=["NA", "?"]).drop("id")
    ct.CoalescentClustering(calibrate=0).fit(frame).save(folder / "model.coaltree")
    ct.CoalescentImputer(calibrate=0).fit(frame).save(folder / "imputer.coaltree")
    ct.CoalescentClustering(calibrate=0).fit(frame.select("x", "y").to_numpy()).save(folder / "array.coaltree")
    return folder


@pytest.fixture
def refused(models, tmp_path, monkeypatch, capsys):
    """Run a command that is refused, and return its sentence."""
    command = command_in(tmp_path, monkeypatch, capsys)

    def run(case):
        given = {path.name: path.read_bytes() for path in models.iterdir()}
        given |= {"t.csv": TEXT.encode(), "t.nwk": b"((a:1,b:1):1,c:2);", "t.foo": b"", "sub.nwk/file": b""}
        given |= {"sub/file": b"", "blocked/tree.nwk/file": b""} | dict(case.files)
        for name, data in given.items():
            (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
            (tmp_path / name).write_bytes(data)
        before = contents(tmp_path)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(case.stdin)))
        outcome = command(*shlex.split(case.command))
        check_sentence(outcome)
        assert contents(tmp_path) == before
        return outcome[2].splitlines()[-1].removeprefix("coaltree: ")

    return run


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.command} {case.sentence[:30]}")
def test_the_sentence(refused, case):
    sentence = refused(case)
    assert re.fullmatch(".*".join(map(re.escape, case.sentence.split("*"))), sentence), sentence


# -- that no sentence was forgotten --------------------------------------------------------------

READERS = [
    "opening",
    "reading",
    "declared",
    "delimited",
    "index",
    "names",
    "typed_text",
    "cells",
    "columns",
    "new_rows",
    "fields",
]
MODULES = [
    *sorted((PACKAGE / "cli").glob("*.py")),
    *(PACKAGE / "table" / f"{name}.py" for name in READERS),
    *(PACKAGE / "output" / name for name in ("tree_files.py", "tree_json.py")),
    PACKAGE / "whole.py",
    PACKAGE / "console.py",
]
# What the command line cannot bring about, and what needs another user or a file that changes in between.
ELSEWHERE = {
    "{} cannot be read: {}.": "needs a file that may not be read, which root always may: test_cli.py; polars",
    "{} cannot be written: {}; nothing was changed, choose another place.": "also for whole folders",
    "Column names must be distinct, but {} {} more than once: rename or drop columns.": "parquet has no such columns",
    "The table lacks the categorical {} {} that it had when the model was fit.": "columns are found by name before",
    "row_names has {}, but the table has {}.": "a file has as many names as rows",
    "path is {}; it must be the name of a file, for example 'model.coaltree', or a Path.": "a word is always a name",
    "unseen is {}; it must be 'missing' or 'error'.": "an option with two values",
    "{} cannot be filled: put text that goes over several lines into quotes, or on one line.": "test_table_filled_file.py",
}


def sentences_of(path):
    """Yield the sentences that a module makes errors of, with {} for what is put in."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "InputError":
            for text in ast.walk(node.args[0]) if isinstance(node.args[0], ast.IfExp) else [node.args[0]]:
                if isinstance(text, ast.JoinedStr):
                    parts = [part.value if isinstance(part, ast.Constant) else "{}" for part in text.values]
                    yield "".join(parts)
                elif isinstance(text, ast.Constant) and isinstance(text.value, str):
                    yield text.value


def test_every_sentence_is_tried():
    tried = [case.sentence for case in CASES]
    known = {sentence: path.name for path in MODULES for sentence in sentences_of(path)}
    assert len(known) > 60
    assert not set(ELSEWHERE) - set(known)
    forgotten = []
    for sentence, module in known.items():
        words = [part for part in sentence.split("{}") if len(part.strip()) > 3]
        found = any(all(word.strip(" .") in case for word in words) for case in tried)
        if not found and sentence not in ELSEWHERE:
            forgotten.append((module, sentence))
    assert not forgotten
