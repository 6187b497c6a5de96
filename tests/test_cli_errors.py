"""Error messages of the command line: one sentence that names the problem, exit code 2, and no file written."""

import io
import json
import shlex
import sys
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import polars as pl
import pytest

import coaltree as ct
from command_line import check_sentence, command_in, contents
from named import check_named

pytestmark = pytest.mark.usefixtures("short_chains", "blank_pictures")

TEXT = "id,x,y,c\na,1.0,2.0,u\nb,1.5,,u\nc,9.0,8.0,v\nd,8.5,NA,v\nf,?,7.5,u\n"
MANY = "x,c\n" + "".join(f"{i % 7},v{i}\n" for i in range(1500))
PRICES = "x,c\n" + "".join(f"{i % 7},~{i}.5\n" for i in range(1500))


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
    """A command, the words that its refusal must name, and what it finds in its folder or on standard input."""

    command: str
    named: str
    files: Mapping[str, bytes] = MappingProxyType({})
    stdin: bytes = b""


def fit(named, text, options=""):
    data = text if isinstance(text, bytes) else text.encode()
    return Case(f"fit n.csv -o out {options}", named, {"n.csv": data})


def convert(named, name, data, options=""):
    return Case(f"convert {name} out.json {options}", named, {name: data if isinstance(data, bytes) else data.encode()})


CASES = [
    # -- usage ------------------------------------------------------------------------------------
    Case("fti", "fti fit --help"),
    Case("fit", "TABLE --help"),
    Case("fit t.csv -o out --categorcal c", "--categorcal --categorical --help"),
    Case("fit t.csv -o out --n-clusters two", "--n-clusters --help"),
    Case("fit t.csv -o out --rule best", "--rule best max-prob --help"),
    Case("fit t.csv -o out --search best", "--search best neighbors --help"),
    Case("simulate -3", "-3 ROWS --help negative"),
    Case("simulate -35 --real 2", "-35 ROWS --help negative"),
    Case("simulate -.5", "-.5 ROWS --help negative"),
    Case("convert -3 out.nwk", "-3 TREE OUT --help negative"),
    Case("simulate -x", "-x --help"),
    Case("simulate --3", "--3 --help"),
    Case("fit t.csv -o", "-o --help"),
    *(
        Case(command, f"{what} empty --help")
        for command, what in (
            ("fit t.csv -o ''", "--outdir"),
            ("fit '' -o out", "TABLE"),
            ("demo -o ''", "--outdir"),
            ("score '' t.csv", "MODEL"),
            ("score model.coaltree t.csv -o ''", "--output"),
            ("impute t.csv -o o.csv --sd ''", "--sd"),
            ("convert t.nwk ''", "OUT"),
            ("plot t.nwk -o ''", "--output"),
            ("simulate 5 --tree ''", "--tree"),
        )
    ),
    # -- files with tables ------------------------------------------------------------------------
    Case("fit no.csv -o out", "no.csv exist"),
    Case("fit sub -o out", "sub folder parquet"),
    Case("fit sub -o out --format csv", "sub folder"),
    Case("fit big -o out", "b.parquet y folder", {"big/a.parquet": parquet(x=[1.0]), "big/b.parquet": parquet(x=[2.0], y=[1])}),
    Case("fit big -o out", "x b.parquet folder", {"big/a.parquet": parquet(x=[1.0]), "big/b.parquet": parquet(x=["one"])}),
    Case("fit big -o out", "big types", {"big/a.parquet": parquet(x=[1.0]), "big/b.parquet": parquet(x=[[1.0]])}),
    Case("fit big -o out", "big/b.parquet", {"big/a.parquet": parquet(x=[1.0]), "big/b.parquet": b"u"}),
    Case("fit t.nwk -o out", "t.nwk .csv .parquet"),
    Case("fit n.gz -o out", "n.gz .csv .parquet", {"n.gz": b"x"}),
    Case("fit n.csv.gz -o out", "n.csv.gz gzip", {"n.csv.gz": b"x,y\n1,2\n"}),
    Case("fit n.parquet -o out", "n.parquet damaged", {"n.parquet": bytes(range(256))}),
    Case("fit n.parquet -o out", "n.parquet rows", {"n.parquet": parquet(x=[])}),
    Case("fit n.parquet -o out", "n.parquet columns", {"n.parquet": parquet()}),
    Case("fit - -o out", "standard input empty"),
    Case("fit - -o out", "gzip standard input", stdin=b"\x1f\x8bno"),
    Case("fit - -o out --format parquet", "parquet standard input", stdin=TEXT.encode()),
    fit("n.csv empty", ""),
    fit("n.csv empty", "\n \n"),
    fit("n.csv empty", '""\n""\n'),
    Case("fit t.csv -o out --drop 'a\nb'", "--drop line break quotes"),
    fit("n.csv header rows", "x,y\n"),
    fit("n.csv x header distinct", "x,x\n1,2\n"),
    fit("2 n.csv header", "x,\n1,2\n"),
    fit("1 n.csv header distinct", ",x\na,1\na,2\n"),
    fit("3 n.csv 1 2 fields comma", "x,y\n1,2\n3\n"),
    fit("2 n.csv 131072 limit", 'x,y\n"' + "a" * 140_000 + '",2\n'),
    fit("n.csv quotation", 'x,y\n1,2\n3,"4\n'),
    fit("n.csv UTF-8 0xff 2 iconv", b"x\n\xff\xfe1\n"),
    fit("n.csv UTF-8 0x80", bytes(range(256))),
    fit("1 infinit x finite", "x,y\n1,2\ninf,3\n4,5\n"),
    fit("x 2 c oops", "id,x\na,1\nb,2\nc,oops\nd,4\n"),
    fit("c 1,500 1,000 categories", MANY, "--categorical c"),
    fit("c ~0.5 1,500 1,000 categories", PRICES),
    fit(
        "a '-' '12%' 'unknown' b '7 EUR' 3 of 9 --na-value --categorical a,b",
        "a,b,c\n1,$ 5,u\n-,$ 6,u\n2,7 EUR,v\n3,$ 8,v\n12%,$ 9,u\n4,$ 1,v\nunknown,$ 2,u\n5,$ 3,u\n6,$ 4,v\n",
    ),
    fit("n.csv columns left", "id\na\nb\n", "--id-column id"),
    fit("n.csv weigth --drop weight", "weight,y\n1,2\n", "--drop weigth"),
    fit("n.csv zzz --id-column x y", "x,y\n1,2\n", "--id-column zzz"),
    fit("n.csv Y --categorical", "x,y\n1,2\n", "--categorical Y"),
    fit("n.csv yy --real y", "x,y\n1,2\n", "--real yy"),
    fit("x --id-column --drop", "x,y\n1,2\n", "--id-column x --drop x"),
    fit("n.csv w* --drop x y", "x,y\n1,2\n", "--drop w*"),
    fit("x --categorical --real", "x,y\n1,2\n", "--real x --categorical x"),
    fit("y 1 b oops number --na-value", "id,y\na,1\nb,oops\nc,no\n", "--real y"),
    Case("fit n.parquet -o out --categorical s", "s categories Struct", {"n.parquet": parquet(s=[{"a": 1}], x=[1])}),
    Case("fit n.parquet -o out", "s Struct", {"n.parquet": parquet(s=[{"a": 1}], x=[1])}),
    # -- options of fit ---------------------------------------------------------------------------
    Case("fit t.csv", "--outdir --dry-run folder"),
    Case("fit t.csv -o -", "--outdir folder standard output"),
    Case("demo -o -", "--outdir folder standard output"),
    Case("fit t.csv -o out -q -v", "--quiet --verbose"),
    Case("fit t.csv -o out --drop x,,y", "--drop empty"),
    Case("fit t.csv -o out --real ''", "--real empty"),
    Case("fit t.csv -o out --id-column ''", "--id-column --no-id empty"),
    Case("fit t.csv -o out --no-id --id-column id", "--no-id --id-column"),
    Case("fit t.csv -o out --n-clusters 0", "--n-clusters 0 1"),
    Case("fit t.csv -o out --n-clusters 6", "--n-clusters 6 t.csv 5"),
    Case("fit - -o out --n-clusters 3", "--n-clusters 3 1 standard input", stdin=b"x,y\n1,2\n"),
    Case("fit t.csv -o out --height-threshold nan", "--height-threshold nan 0"),
    Case("fit t.csv -o out --n-clusters 2 --height-threshold 1", "--n-clusters --height-threshold"),
    Case("fit t.csv -o out --noise -1", "--noise -1 0"),
    Case("fit t.csv -o out --n-jobs 0", "--n-jobs 0 -1 threads"),
    Case("fit t.csv -o out --dask host", "--dask host scheduler tcp: local:2"),
    Case("fit t.csv -o out --dask local:0", "--dask local:0 scheduler"),
    Case("fit t.csv -o out --draw-parameters", "--draw-parameters --inference mcmc"),
    Case("fit - -o out --evidence", "--evidence 3 300 1", stdin=b"x,y\n1,2\n"),
    Case("fit t.csv -o out --particles 5", "--particles --inference smc"),
    Case("fit t.csv -o out --inference smc --rule rate1", "--rule --inference greedy"),
    Case("fit t.csv -o out --search exact --inference smc", "--search --inference greedy"),
    Case("fit t.csv -o out --refine --inference mcmc", "--refine --inference greedy"),
    Case("fit t.csv -o out --chains 5", "--chains --inference mcmc"),
    Case("fit t.csv -o out --samples 5 --inference smc", "--samples --inference mcmc"),
    Case("fit t.csv -o out --particles 5 --inference mcmc", "--particles --inference smc"),
    Case("fit t.csv -o out --seed 5", "--seed --inference smc mcmc"),
    Case("fit t.csv -o out --summary mcc", "--summary --inference smc"),
    Case("fit t.csv -o out --inference smc --seed -1", "--seed -1 0"),
    Case("fit t.csv -o out --inference smc --particles 0", "--particles 0 1"),
    Case("demo -o t.csv", "t.csv folder"),
    Case("fit t.csv -o out --inference mcmc --chains 0", "--chains 0 1"),
    Case("fit t.csv -o out --inference mcmc --samples -1", "--samples -1 1"),
    Case("fit t.csv -o out --inference mcmc --samples 5 --max-seconds 9", "--max-seconds 9 auto"),
    Case("fit t.csv -o out --inference mcmc --samples auto --max-seconds 0", "--max-seconds 0"),
    Case("fit t.csv -o out --inference mcmc --heated -1", "--heated -1 0"),
    Case("fit t.csv -o out --heated 1", "--heated --inference mcmc"),
    Case("fit t.csv -o out --inference smc --max-seconds 9", "--max-seconds --inference mcmc"),
    Case("fit t.csv -o t.nwk", "t.nwk folder"),
    Case("fit t.csv -o t.nwk/out", "t.nwk folder"),
    Case("fit t.csv -o /proc/out", "/proc/out folder written"),
    Case("fit t.csv -o blocked", "blocked/tree.nwk folder"),
    # -- outliers ---------------------------------------------------------------------------------
    Case("outliers no.csv", "no.csv exist"),
    Case("outliers t.csv --contamination 0", "--contamination 0 0.5"),
    Case("outliers t.csv --contamination 0.6", "--contamination 0.6 0.5"),
    Case("outliers t.csv --cells 0", "--cells 0 1"),
    Case("outliers t.csv --model no.coaltree", "no.coaltree exist"),
    Case("outliers t.csv --model model.coaltree --standardize power", "--standardize --model"),
    Case("outliers - --model -", "TABLE --model standard input"),
    Case("outliers t.csv -o t.csv", "t.csv itself"),
    Case("outliers t.csv --json -o -", "--output --json standard output"),
    # -- score and place --------------------------------------------------------------------------
    Case("score no.coaltree t.csv", "no.coaltree exist"),
    Case("score sub t.csv", "sub folder model.coaltree"),
    Case("score t.csv t.csv", "t.csv model"),
    Case("score - t.csv", "standard input empty model"),
    Case("score - t.csv", "standard input model", stdin=b"garbage"),
    Case("score - -", "MODEL TABLE standard input"),
    Case("score imputer.coaltree t.csv", "imputer.coaltree CoalescentImputer model"),
    Case("score detector.coaltree t.csv", "detector.coaltree CoalescentOutlierDetector outliers --model"),
    Case("score model.coaltree t.csv --json -o -", "--output --json standard output"),
    Case("score model.coaltree t.csv -o t.csv", "t.csv itself"),
    Case("score model.coaltree t.csv -o ./model.coaltree", "model.coaltree itself"),
    Case("score model.coaltree t.csv -o sub", "sub folder"),
    Case("score model.coaltree t.csv -o /dev/null", "/dev/null written"),
    Case("score model.coaltree t.csv -o no/s.csv", "no/s.csv written"),
    Case("score model.coaltree n.csv", "c d lacks", {"n.csv": b"x,y,d\n1,2,u\n"}),
    Case("score array.coaltree n.csv", "1 2 x0 x1", {"n.csv": b"a\n1\n2\n"}),
    Case("score model.coaltree n.csv --unseen error", "c w 0 u v --unseen", {"n.csv": b"x,y,c\n1,2,w\n"}),
    Case("score model.coaltree n.csv", "y 0 hot number --na-value", {"n.csv": b"x,y,c\n1,hot,u\n2,hot,v\n"}),
    Case("score array.coaltree n.csv", "x0 hot 0 numbers", {"n.csv": b"a,b\nhot,1\nhot,2\n"}),
    Case("place model.coaltree t.csv --nearest -1", "--nearest -1 0"),
    Case("place model.coaltree t.csv --level 0", "--level 0 1"),
    Case("place model.coaltree t.csv --level nan", "--level nan 0 1"),
    Case("place model.coaltree", "TABLE --help"),
    Case("score model.coaltree t.csv --unseen no", "--unseen no error missing --help"),
    Case("place model.coaltree t.csv --level 1", "--level 1 0"),
    Case("profile model.coaltree --columns 0", "--columns 0 1"),
    Case("profile model.coaltree -o model.coaltree", "model.coaltree itself"),
    Case("profile imputer.coaltree", "imputer.coaltree CoalescentImputer model"),
    Case("explain model.coaltree --row z", "row z name number"),
    Case("explain model.coaltree --row 5", "row 5 0 4"),
    Case("explain model.coaltree t.csv --row a", "--row table new"),
    # -- impute -----------------------------------------------------------------------------------
    Case("impute t.csv -o o.tsv", "o.tsv t.csv .csv"),
    Case("impute t.csv -o o.parquet", "o.parquet t.csv .csv"),
    Case("impute t.csv -o o.csv.gz", "o.csv.gz t.csv .csv"),
    Case("impute t.csv -o o", "o t.csv .csv"),
    Case("impute t.csv -o t.csv", "t.csv itself"),
    Case("impute t.csv -o no/o.csv", "no/o.csv written"),
    Case("impute t.csv -o o.csv --sd no/s.csv", "no/s.csv written"),
    Case("impute t.csv -o o.csv --sd t.csv", "t.csv itself"),
    Case("impute t.csv -o o.csv --draws 0", "--draws 0 1"),
    Case("impute t.csv -o o.csv --draws 2 --seed -1", "--seed -1 0"),
    Case("impute t.csv -o o.csv --inference smc --runs 0", "--runs 0 1"),
    Case("impute t.csv -o o.csv --inference smc --particles 0", "--particles 0 1"),
    Case("impute t.csv -o o.csv --draw-parameters", "--draw-parameters --inference mcmc"),
    Case("impute t.csv -o o.csv --noise nan", "--noise nan 0"),
    Case("impute t.csv -o o.csv --drop nothing", "t.csv nothing --drop"),
    Case("impute t.csv -o o.csv --model no", "no exist"),
    Case("impute t.csv -o o.csv --model t.csv", "t.csv model"),
    Case("impute t.csv -o o.csv --model m --categorical z", "--categorical --model"),
    Case("impute t.csv -o o.csv --model m --inference greedy", "--inference --model"),
    Case("impute - -o o.csv", "o.csv .tsv standard input", stdin=b"x\ty\n1\t\n"),
    Case("impute n.parquet -o -", "n.parquet standard output", {"n.parquet": parquet(x=[1.0, None])}),
    Case("impute t.csv -o - --draws 2", "--draws --output standard output"),
    Case("impute t.csv -o o.csv --sd o.csv", "--sd --output o.csv"),
    Case("impute t.csv -o - --sd -", "--output --sd standard output"),
    Case("impute t.csv -o o.csv --seed 1", "--seed --draws --inference smc mcmc"),
    Case("impute t.csv -o o.csv --inference mcmc --max-seconds 9", "--max-seconds 9 auto"),
    Case("impute t.csv -o o.csv --chains 2", "--chains --inference mcmc"),
    Case("impute t.csv -o o.csv --inference mcmc --samples 0", "--samples 0 1"),
    Case("impute t.csv -o o.csv --refine --inference mcmc", "--refine --inference greedy"),
    Case("impute t.csv -o o.csv --search exact --inference smc", "--search --inference greedy"),
    Case("impute t.csv -o o.csv --model model.coaltree --search exact", "--search --model"),
    Case("impute t.csv -o o.csv --model model.coaltree --noise 1", "--noise --model"),
    Case("impute - -o - --model -", "TABLE --model standard input"),
    # -- convert ----------------------------------------------------------------------------------
    Case("convert no.nwk out.json", "no.nwk exist"),
    Case("convert sub.nwk out.json", "sub.nwk folder"),
    Case("convert t.foo out.json", "t.foo .nwk .json .coaltree --from"),
    Case("convert t.nwk out.foo", "out.foo .nwk .json --to"),
    Case("convert t.nwk out.coaltree", "out.coaltree .nwk .json --to"),
    Case("convert t.nwk out --to model", "--to model .nwk .json"),
    Case("convert - out.json", "--from newick nexus linkage npy"),
    Case("convert t.nwk -", "--to newick nexus linkage npy"),
    Case("convert t.nwk - --to json --json", "OUT --json standard output"),
    Case("convert t.nwk t.nwk", "t.nwk itself"),
    Case("convert - out.json --from newick", "empty standard input"),
    convert("n.nwk empty", "n.nwk", " \n"),
    convert("n.nwk UTF-8", "n.nwk", b"(a:1,\xff:1);"),
    convert("n.nwk 3 binary newick children", "n.nwk", "(a:1,b:1,c:1);"),
    convert("n.nwk ultrametric b 2 'a' 1", "n.nwk", "(a:1,b:2);"),
    convert("n.nex #NEXUS nexus", "n.nex", "(a:1,b:1);"),
    convert("n.csv header merges linkage", "n.csv", "left,right,height,leaves\n"),
    convert("n.csv 4 6 linkage leaves fields", "n.csv", "0,1,1,2\n2,3\n"),
    convert("n.csv x linkage", "n.csv", "0,1,1,2\n2,3,x,3\n"),
    convert("n.csv linkage read", "n.csv", '0,1,1,"2'),
    convert("n.csv 1 2 linkage distance", "n.csv", "0,1,2,2\n2,3,1,3\n"),
    convert("n.npy npy", "n.npy", "garbage"),
    convert("n.npy numbers", "n.npy", npy(np.array([["a"]]))),
    convert("n.npy 1 3 4 linkage shape", "n.npy", npy(np.ones((1, 3)))),
    convert("n.json JSON", "n.json", b"\xff{"),
    convert("n.json [] object", "n.json", "[]"),
    convert("n.json coaltree tree format", "n.json", "{}"),
    convert("n.json version", "n.json", tree_json(format_version=2)),
    convert("n.json 3 binary children", "n.json", tree_json(children=[[0, 1, 2]])),
    convert("n.json x heights", "n.json", tree_json(heights=[0, 0, "x"])),
    convert("n.json 1 0.5 0 leaf", "n.json", tree_json(heights=[0, 0.5, 1])),
    convert("n.json 2 shape support", "n.json", tree_json(support=[1, 1])),
    Case("convert n.nwk out.csv", "merges newick nexus linkage leaf", {"n.nwk": b"a;"}),
    Case("convert n.coaltree out.json", "n.coaltree model", {"n.coaltree": b"PK garbage"}),
    # -- cut --------------------------------------------------------------------------------------
    Case("cut model.coaltree --n-clusters 2 --height-threshold 1", "--n-clusters --height-threshold"),
    Case("cut model.coaltree --n-clusters 0", "--n-clusters 0 1"),
    Case("cut model.coaltree --n-clusters 9", "--n-clusters 9 5"),
    Case("cut model.coaltree --height-threshold -1", "--height-threshold -1.0 0"),
    Case("cut t.nwk", "--n-clusters --height-threshold"),
    Case("cut t.nwk --n-clusters 4", "--n-clusters 4 3 leaves"),
    Case("cut t.csv --n-clusters 2", "t.csv linkage"),
    Case("cut imputer.coaltree", "imputer.coaltree CoalescentImputer model"),
    Case("cut no.coaltree", "no.coaltree exist"),
    Case("cut model.coaltree -o model.coaltree", "model.coaltree itself"),
    Case("cut model.coaltree -o - --json", "--output --json standard output"),
    Case("cut - --n-clusters 2", "--from newick nexus linkage npy"),
    # -- plot -------------------------------------------------------------------------------------
    Case("plot t.nwk -o p.jpg", "p.jpg .png .svg .pdf --to"),
    Case("plot t.nwk -o p.png --n-clusters 9", "--n-clusters 9 3 leaves"),
    Case("plot t.nwk -o p.png --n-clusters 0", "--n-clusters 0 1"),
    Case("plot t.nwk -o p.png --collapse 0", "--collapse 0 1"),
    Case("plot t.nwk -o p.png --width 0", "--width 0 1 60 inches"),
    Case("plot t.nwk -o p.png --height nan", "--height nan 1 60 inches"),
    Case("plot t.nwk -o no/p.png", "no/p.png written"),
    # -- simulate ---------------------------------------------------------------------------------
    Case("simulate 0", "ROWS 0 1"),
    Case("simulate 5 --states 1", "--states 1 2"),
    Case("simulate 5 --real 0", "--real --categorical 0"),
    Case("simulate 5 --missing 1", "--missing 1 0"),
    Case("simulate 5 --rate 0", "--rate 0 1000000"),
    Case("simulate 5 --noise -1", "--noise -1 0"),
    Case("simulate 5 --tree - --tree-format newick", "--tree --output"),
    Case("simulate 5 -o s.csv --tree s.csv", "--output --tree s.csv"),
    Case("simulate 5 -o s.parquet", "s.parquet .csv"),
    Case("simulate 5 --tree s.foo", "s.foo .nwk .json --tree-format"),
]  # fmt: skip


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    frame = pl.read_csv(TEXT.encode(), null_values=["NA", "?"]).drop("id")
    ct.CoalescentClustering().fit(frame).save(folder / "model.coaltree")
    ct.CoalescentImputer().fit(frame).save(folder / "imputer.coaltree")
    ct.CoalescentOutlierDetector().fit(frame).save(folder / "detector.coaltree")
    ct.CoalescentClustering().fit(frame.select("x", "y").to_numpy()).save(folder / "array.coaltree")
    return folder


@pytest.fixture
def refused(models, tmp_path, monkeypatch, capsys):
    """Run a command that is refused, and return its sentence."""
    command = command_in(tmp_path, monkeypatch, capsys)

    def run(case):
        files = {path.name: path.read_bytes() for path in models.iterdir()}
        files |= {"t.csv": TEXT.encode(), "t.nwk": b"((a:1,b:1):1,c:2);", "t.foo": b"", "sub.nwk/file": b""}
        files |= {"sub/file": b"", "blocked/tree.nwk/file": b""} | dict(case.files)
        for name, data in files.items():
            (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
            (tmp_path / name).write_bytes(data)
        before = contents(tmp_path)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(case.stdin)))
        outcome = command(*shlex.split(case.command))
        check_sentence(outcome)
        assert contents(tmp_path) == before
        return outcome[2].splitlines()[-1].removeprefix("coaltree: ")

    return run


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.command} {case.named}")
def test_error_message_names_problem_and_remedy(refused, case):
    sentence = refused(case)
    assert sentence.endswith((".", "?"))
    check_named(sentence, case.named)
