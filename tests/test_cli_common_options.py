"""Options that all commands share: standard streams, JSON, verbosity, help and completion."""

import gzip
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest

import coaltree as ct
from coaltree.cli.app import Notes
from command_line import command_in, contents

pytestmark = pytest.mark.usefixtures("short_chains", "blank_pictures")

ENVIRONMENT = dict(os.environ)
COMMANDS = ["convert", "demo", "fit", "impute", "place", "plot", "report", "score", "simulate"]
WITHOUT_FACTS = ("plot", "report")
TEXT = "id,x,y,c\na,1.0,2.0,u\nb,1.5,,u\nc,9.0,8.0,v\nd,8.5,NA,v\nf,?,7.5,u\n"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model.coaltree"
    frame = pl.read_csv(TEXT.encode(), null_values=["NA", "?"]).drop("id")
    model = ct.CoalescentClustering().fit(frame)
    model.score_samples(frame)  # the file then has the draws, which other processes would make by long chains
    model.save(path)
    return path


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    (tmp_path / "t.csv").write_text(TEXT)
    run = command_in(tmp_path, monkeypatch, capsys)

    def with_input(*arguments, stdin=b""):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        return run(*arguments)

    return with_input


def fit_summary(outcome):
    code, out, err = outcome
    assert code == 0, err
    return json.loads(out, parse_constant=pytest.fail)


# -- standard input and output -------------------------------------------------------------------


def as_parquet(text):
    written = io.BytesIO()
    pl.read_csv(text.encode(), null_values=["NA", "?"]).write_parquet(written)
    return written.getvalue()


@pytest.mark.parametrize(
    ("data", "options"),
    [
        (TEXT.encode(), []),
        (TEXT.encode(), ["--format", "csv"]),
        (TEXT.replace(",", "\t").encode(), []),
        (TEXT.replace(",", "\t").encode(), ["--format", "tsv"]),
        (TEXT.replace(",", ";").encode(), []),
        (gzip.compress(TEXT.encode(), mtime=0), []),
        (as_parquet(TEXT), []),
        (as_parquet(TEXT), ["--format", "parquet"]),
    ],
)
def test_fit_reads_table_from_standard_input(command, tmp_path, data, options):
    assert command("fit", "t.csv", "-o", "file", "-q")[0] == 0
    code, _, err = command("fit", "-", "-o", "piped", *options, stdin=data)
    assert code == 0, err
    assert "standard input: 5 rows, row names from column 'id'" in err
    for name in ("tree.nwk", "clusters.csv"):
        assert (tmp_path / "piped" / name).read_bytes() == (tmp_path / "file" / name).read_bytes()
    assert json.loads((tmp_path / "piped" / "summary.json").read_text())["input"] == "standard input"


def test_format_option_overrides_extension(command, tmp_path):
    (tmp_path / "table.data").write_text(TEXT)
    assert command("fit", "table.data", "-o", "out", "--format", "csv", "-q") == (0, "", "")


def test_query_commands_read_standard_input(command, model):
    expected = command("score", model, "t.csv", "-q")
    assert expected[0] == 0
    assert command("score", model, "-", "-q", stdin=TEXT.encode()) == expected
    assert command("score", "-", "t.csv", "-q", stdin=model.read_bytes()) == expected
    places = command("place", model, "t.csv", "-q")
    assert command("place", "-", "t.csv", "-q", "-o", "-", stdin=model.read_bytes()) == places


@pytest.mark.parametrize("packed", [False, True])
def test_impute_works_as_filter(command, model, tmp_path, packed):
    data = gzip.compress(TEXT.encode(), mtime=0) if packed else TEXT.encode()
    code, out, err = command("impute", "-", "-o", "-", "--model", model, stdin=data)
    assert code == 0, err
    assert out.startswith("id,x,y,c\na,1.0,2.0,u\nb,1.5,")
    assert "NA" not in out
    assert command("impute", "t.csv", "-o", "-", "--model", "-", "-q", stdin=model.read_bytes()) == (0, out, "")
    complete = b"x\ty\n1\t2\n3\t5\n"
    assert command("impute", "-", "-o", "-", "-q", stdin=complete) == (0, complete.decode(), "")
    code, _, err = command("impute", "-", "-o", "o.tsv", stdin=complete)
    assert code == 0, err
    assert (tmp_path / "o.tsv").read_bytes() == complete


# -- JSON ----------------------------------------------------------------------------------------


def test_fit_json_output(command, tmp_path):
    facts = fit_summary(command("fit", "t.csv", "-o", "out", "--json"))
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert {name: facts[name] for name in summary} == summary
    assert facts["outdir"] == "out"
    assert sorted(facts["files"]) == sorted(path.name for path in (tmp_path / "out").iterdir())


def test_score_json_output(command, model, tmp_path):
    facts = fit_summary(command("score", model, "t.csv", "--json", "-q"))
    fitted = ct.load_model(model)
    frame = pl.read_csv(TEXT.encode(), null_values=["NA", "?"])
    expected = fitted.score_samples(frame.drop("id"))
    assert [row["row"] for row in facts["rows"]] == ["a", "b", "c", "d", "f"]
    assert [row["log_density"] for row in facts["rows"]] == expected.tolist()
    assert facts["mean_log_density"] == pytest.approx(expected.mean())
    assert (facts["n_rows"], facts["output"]) == (5, None)
    assert "CoalescentOutlierDetector" in facts["remarks"][0]  # these are rows of the fit
    facts = fit_summary(command("place", model, "t.csv", "--json", "-o", "p.csv"))
    assert facts["output"] == "p.csv"
    table = pl.read_csv(tmp_path / "p.csv")
    assert [row["cluster"] for row in facts["rows"]] == table["cluster"].to_list()
    assert facts["rows"][0].keys() == set(table.columns)


def test_impute_json_output(command, model, tmp_path):
    facts = fit_summary(command("impute", "t.csv", "-o", "o.csv", "--sd", "s.csv", "--model", model, "--json"))
    assert (facts["n_filled"], facts["n_left_missing"], facts["n_tables"]) == (3, 0, 1)
    assert facts["filled_by_column"] == {"x": 1, "y": 2}
    assert facts["files"] == ["o.csv", "s.csv"]
    assert facts["input"] == "t.csv"


def test_json_output_handles_non_finite_numbers(command, model, tmp_path):
    """The log density of an empty row is 0; that of an impossible one may be infinite."""
    (tmp_path / "n.csv").write_text("x,y,c\n,,\n")
    facts = fit_summary(command("score", model, "n.csv", "--json", "-q"))
    assert [row["row"] for row in facts["rows"]] == ["0"]
    assert facts["rows"][0]["log_density"] == pytest.approx(0.0, abs=1e-9)


# -- how columns are read --------------------------------------------------------------------------

KINDS = (
    "id,n,x,flag,day,code,t\n"
    "a,1,0.5,true,2024-01-01,1,7\n"
    "b,2,,false,2024-01-02,2,8\n"
    "c,4,1.5,true,2024-01-05,1,seven\n"
    "d,3,2.5,true,2024-01-03,1,eight\n"
    "e,5,3.5,,2024-01-04,2,nine\n"
)


def test_dry_run_writes_no_files(command, tmp_path):
    (tmp_path / "k.csv").write_text(KINDS)
    code, out, err = command("fit", "k.csv", "--dry-run", "--categorical", "code", "--real", "flag")
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "k.csv: 5 rows, row names from column 'id'",
        "columns: 4 real (n, x, flag, day), 2 categorical (code, t)",
        "  column  kind         missing  because it is",
        "  n       real             0 %  numbers",
        "  x       real            20 %  numbers",
        "  flag    real            20 %  declared by --real",
        "  day     real             0 %  dates or times",
        "  code    categorical      0 %  declared by --categorical, 2 categories",
        "  t       categorical      0 %  text, 5 categories",
    ]
    assert [*contents(tmp_path)] == ["k.csv", "t.csv"]
    facts = fit_summary(command("fit", "k.csv", "--dry-run", "--json", "-o", "out"))
    assert [column["kind"] for column in facts["columns"]] == [
        "real", "real", "categorical", "real", "real", "categorical",
    ]  # fmt: skip
    assert facts["columns"][2] == {
        "name": "flag", "kind": "categorical", "reason": "yes or no", "n_categories": 2, "n_missing": 1,
        "missing_share": 0.2,
    }  # fmt: skip
    assert [*contents(tmp_path)] == ["k.csv", "t.csv"]


def test_dry_run_prints_same_notes_as_fit(command, tmp_path):
    (tmp_path / "k.csv").write_text("x,k,e\n1,7,\n2,7,\n4,7,\n")
    code, _, err = command("fit", "k.csv", "--dry-run")
    assert code == 0
    assert "note: 1 column is constant and ignored: 'k'." in err
    assert "note: 1 column has no observed cell and is ignored: 'e'." in err


def test_drop_option_accepts_patterns(command, tmp_path):
    (tmp_path / "t.csv").write_text("id,u_1,u_2,v,[w]\na,1,2,x,5\nb,2,5,y,6\nc,4,8,x,7\n")
    for patterns, columns in (
        ("u_*", ["v", "[w]"]),
        ("u_?,v", ["[w]"]),
        ("[w]", ["u_1", "u_2", "v"]),
        ("[uv]*", ["[w]"]),
    ):
        assert command("fit", "t.csv", "-o", "out", "--drop", patterns)[0] == 0
        assert ct.load_model(tmp_path / "out" / "model.coaltree").encoding_.column_names == tuple(columns)
        assert command("score", "out/model.coaltree", "t.csv", "--drop", patterns)[0] == 0


def test_options_for_kinds_accept_patterns(command, tmp_path):
    (tmp_path / "t.csv").write_text("id,u_1,u_2,v\na,1,2,yes\nb,2,5,no\nc,4,8,yes\n")
    pl.read_csv(tmp_path / "t.csv").write_parquet(tmp_path / "t.parquet")
    for table in ("t.csv", "t.parquet"):
        for options, kinds in (
            (("--categorical", "u_*"), "3 categorical (u_1, u_2, v)"),
            (("--categorical", "*", "--drop", "v"), "2 categorical (u_1, u_2)"),
            (("--categorical", "u_1", "--id-column", "id"), "1 real (u_2), 2 categorical (u_1, v)"),
            (("--categorical", "[u]_?", "--id-column", "u_1"), "3 categorical (id, u_2, v)"),
        ):
            code, _, err = command("fit", table, "-o", "out", *options)
            assert code == 0, err
            assert f"columns: {kinds}" in err
    assert "has no column that matches 'w*'" in command("fit", "t.csv", "-o", "out", "--real", "w*")[2]
    assert (
        "by both --categorical and --real"
        in command("fit", "t.csv", "-o", "out", "--real", "u*", "--categorical", "u_?")[2]
    )


def test_real_option_declares_real_columns(command, tmp_path):
    (tmp_path / "k.csv").write_text(KINDS)
    code, _, err = command("fit", "k.csv", "-o", "out", "--real", "flag", "--drop", "t")
    assert code == 0, err
    fitted = ct.load_model(tmp_path / "out" / "model.coaltree")
    kinds = dict(zip(fitted.encoding_.column_names, fitted.encoding_.kinds, strict=True))
    assert kinds["flag"] == "real"
    frame = pl.DataFrame({"n": ["1", "2", "3"], "x": ["0.5", None, ""], "c": ["u", "v", "u"]})
    frame.write_parquet(tmp_path / "text.parquet")
    code, _, err = command("fit", "text.parquet", "-o", "out", "--real", "n,x")
    assert code == 0, err
    assert "columns: 2 real (n, x), 1 categorical (c)" in err
    # New rows are read as those of the fit, without being told.
    code, out, err = command("score", "out/model.coaltree", "text.parquet", "-q")
    assert (code, err) == (0, "")
    numbers = pl.DataFrame({"n": [1, 2, 3], "x": [0.5, None, None], "c": ["u", "v", "u"]})
    expected = ct.load_model(tmp_path / "out" / "model.coaltree").score_samples(numbers)
    assert [float(line.split(",")[1]) for line in out.splitlines()[1:]] == expected.tolist()


NOTE = "of n.csv counts the rows (7, 8, 9, ...)"


@pytest.mark.parametrize(
    ("first", "options", "noted"),
    [
        ([7, 8, 9, 10, 11], [], True),
        ([7, 8, 9, 10, 12], [], False),
        ([7, 8, 9, 10, 11], ["--id-column", "k"], False),
        ([7, 8, 9, 10, 11], ["--drop", "k"], False),
        ([7, 8, 9, 10, 11], ["--real", "k"], False),
        ([7, 8, 9, 10, 11], ["--no-id"], False),
        ([7, 8, 9], [], False),
        ([7.5, 8.5, 9.5, 10.5, 11.5], [], False),
    ],
)
def test_first_column_of_row_numbers_is_noted(command, tmp_path, first, options, noted):
    (tmp_path / "n.csv").write_text("k,x\n" + "".join(f"{k},{i * i}\n" for i, k in enumerate(first)))
    code, _, err = command("fit", "n.csv", "--dry-run", *options)
    assert code == 0, err
    assert (f"note: Column 'k' {NOTE}" in err) is noted


# -- more and fewer words --------------------------------------------------------------------------


def test_verbose_prints_timings(command, model):
    code, out, err = command("fit", "t.csv", "-o", "out", "-v")
    assert code == 0, err
    lines = err.splitlines()
    assert "  x       real            20 %  numbers" in lines
    assert any(line.startswith("  x: process ornstein-uhlenbeck, sd ") for line in lines)
    assert any(line.startswith("  c: process multinomial, rate ") and "(u 0." in line for line in lines)
    for step in ("reading", "fitting", "drawing"):
        assert sum(line.startswith(f"{step}: ") and line.endswith(" s") for line in lines) == 1
    assert out.startswith("missing ")
    for arguments, steps in (
        (("score", model, "t.csv"), ("loading", "reading", "drawing trees", "scoring")),
        (("place", model, "t.csv"), ("loading", "reading", "drawing trees", "placing")),
        (("impute", "t.csv", "-o", "o.csv", "--model", model), ("loading", "reading", "filling")),
        (("convert", model, "t.nwk"), ("reading",)),
        (("plot", "t.nwk", "-o", "p.png"), ("reading", "drawing")),
        (("simulate", "5", "-o", "s.csv"), ("drawing",)),
    ):
        code, _, err = command(*arguments, "--verbose")
        assert code == 0, err
        assert [line.partition(":")[0] for line in err.splitlines() if line.endswith(" s")] == list(steps)
        assert command(*arguments, "--quiet")[2] == ""


@pytest.mark.parametrize("name", COMMANDS)
def test_all_commands_have_common_options(command, name):
    code, out, _ = command(name, "--help")
    assert code == 0
    for option in ("--quiet", "-q", "--verbose", "-v", "--debug", *(["--json"] if name not in WITHOUT_FACTS else [])):
        assert option in out
    assert "─ Output ─" in out
    assert out.rstrip().splitlines()[-1].strip().startswith(f"Example: coaltree {name}") or "Example: coaltree" in out


@pytest.mark.parametrize(
    "arguments",
    [
        ("fit", "no.csv", "-o", "out"),
        ("score", "no", "t.csv"),
        ("place", "no", "t.csv"),
        ("impute", "no.csv", "-o", "o.csv"),
        ("convert", "no.nwk", "o.json"),
        ("plot", "no.nwk", "-o", "p.png"),
        ("simulate", "0"),
        ("demo", "-o", "t.csv"),
    ],
)
def test_debug_option_prints_traceback(command, arguments):
    code, _, err = command(*arguments, "--debug")
    assert code == 2
    assert "Traceback (most recent call last)" in err
    assert err.splitlines()[-1].startswith("coaltree: ")


# -- processes of their own ------------------------------------------------------------------------


def run(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "coaltree", *map(str, arguments)],
        capture_output=True, timeout=300, check=False, env=ENVIRONMENT | options.pop("env", {}), **options,
    )  # fmt: skip


def test_help_imports_nothing_heavy():
    script = (
        "import sys\n"
        "from coaltree.__main__ import main\n"
        f"for command in [[], *([name] for name in {COMMANDS})]:\n"
        "    sys.argv = ['coaltree', *command, '--help']\n"
        "    try: main()\n"
        "    except SystemExit as end: assert not end.code\n"
        "heavy = {'numpy', 'polars', 'sklearn', 'scipy', 'matplotlib', 'pandas', 'joblib'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, timeout=60, env=ENVIRONMENT)


def test_shell_completion_lists_choices():
    done = run("--show-completion", "bash", env={"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"})
    assert done.returncode == 0, done.stderr
    assert b"_COALTREE_COMPLETE=complete_bash" in done.stdout
    done = run(env={"_COALTREE_COMPLETE": "complete_bash", "COMP_WORDS": "coaltree s", "COMP_CWORD": "1"})
    assert done.stdout.decode().split() == ["score", "simulate"]
    words = {"COMP_WORDS": "coaltree fit t.csv --inference ", "COMP_CWORD": "4"}
    done = run(env={"_COALTREE_COMPLETE": "complete_bash"} | words)
    assert done.stdout.decode().split() == ["greedy", "smc", "mcmc"]


@pytest.mark.skipif(os.name == "nt", reason="no such pipes")
def test_broken_pipe_ends_quietly(tmp_path, model):
    (tmp_path / "n.csv").write_text("x,y,c\n" + "1,2,u\n" * 8_000)
    for arguments in (
        ["simulate", "8000", "-q"],
        ["score", model, "n.csv", "-q", "--json"],
    ):
        process = subprocess.Popen(
            [sys.executable, "-m", "coaltree", *map(str, arguments)],
            cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT,
        )  # fmt: skip
        assert process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        process.stderr.close()
        process.wait(timeout=300)


def test_full_disk_is_reported():
    if not Path("/dev/full").exists():
        pytest.skip("no such device here")
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "coaltree", "simulate", "5", "-q"],
            stdout=full, stderr=subprocess.PIPE, timeout=300, check=False, env=ENVIRONMENT,
        )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.decode().splitlines() == ["coaltree: No space left on device."]


def test_status_line_appears_before_slow_imports(command, model, monkeypatch):
    """Before anything heavy is imported; not in files and pipes, and not with --quiet."""
    for arguments, words in (
        (["fit", "t.csv", "--dry-run"], "reading t.csv"),
        (["score", model, "t.csv"], "loading"),
    ):
        _, _, err = command(*arguments)
        assert words not in err
        with monkeypatch.context() as patch:
            patch.setattr(Notes, "announce", lambda notes, text: notes.say(text))
            _, _, err = command(*arguments)
            assert words in err.splitlines()[0]
            _, _, err = command(*arguments, "--quiet")
            assert words not in err
    messages = []
    notes = Notes(quiet=False)
    monkeypatch.setattr(notes, "say", messages.append)
    monkeypatch.setattr(sys, "stderr", SimpleNamespace(isatty=lambda: True))
    notes.announce("reading")
    assert messages == ["reading"]
