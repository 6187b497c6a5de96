"""Hints for tables that are long or transposed, and silence for tables that are right."""

import warnings

import numpy as np
import pandas as pd
import pytest

import coaltree as ct
from coaltree.errors import InputWarning
from coaltree.table.columns import read_columns
from command_line import command_in


def long_table(first="language", second="concept", n_first=4, n_second=5):
    pairs = [(f"a{i}", f"b{j}") for i in range(n_first) for j in range(n_second)]
    frame = pd.DataFrame(pairs, columns=[first, second])
    frame["value"] = [str(k % 3) for k in range(len(frame))]
    return frame


def hints(X):
    return [remark for remark in read_columns(X).remarks if "looks long" in remark]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("language", "concept"),
        ("Language_ID", "Parameter_ID"),
        ("DOCULECT", "CONCEPT"),
        ("taxon", "character"),
        ("Species", "Traits"),
        ("sampleId", "metric"),
        ("subject", "variable"),
    ],
)
def test_long_tables_are_noted(first, second):
    (hint,) = hints(long_table(first, second))
    assert f"'{first}'" in hint
    assert f"'{second}'" in hint
    assert "20 rows" in hint
    assert hints(long_table(first, second)[["value", second, first]]) == [hint]
    numbered = long_table(first, second).replace({f"a{i}": i for i in range(4)})
    assert hints(numbered.infer_objects()) == [hint]
    assert len(hints(long_table(first, second).sample(frac=0.7, random_state=0))) == 1


def test_tables_with_one_row_per_thing_are_not_noted():
    assert hints(long_table("colour", "shape")) == []  # a design with all combinations
    assert hints(long_table("language", "region")) == []
    assert hints(pd.DataFrame({"language": list("abcdef"), "feature": list("xyxyxy"), "n": range(6)})) == []
    few = pd.DataFrame({"species": list("abab") * 5, "trait": list("xyyx") * 5, "n": range(20)})
    assert hints(few) == []  # combinations repeat: the columns describe rows
    assert hints(long_table(n_first=1)) == []


def test_estimator_passes_the_hint_on():
    with pytest.warns(InputWarning, match="looks long.*'language'"):
        ct.CoalescentClustering().fit(long_table())


TRANSPOSED = "name,eng,deu,fra\norder,SVO,SOV,SVO\nvowels,12,15,14\ntone,no,no,no\ncases,2,4,0\n"


def test_transposed_tables_are_noted(tmp_path, monkeypatch, capsys):
    command = command_in(tmp_path, monkeypatch, capsys)
    (tmp_path / "t.csv").write_text(TRANSPOSED)
    _, _, err = command("fit", "t.csv", "--dry-run")
    assert "looks transposed" in err
    assert "each row has only numbers" in err
    (tmp_path / "u.csv").write_text("Feature_ID,eng,deu,fra\nf1,0,1,1\nf2,1,1,0\nf3,0,0,1\n")
    code, _, err = command("fit", "u.csv", "--dry-run")
    assert code == 0
    assert "looks transposed" in err
    assert "'Feature_ID'" in err


@pytest.mark.parametrize(
    "text",
    [
        "name,order,vowels,tone\neng,SVO,12,no\ndeu,SOV,15,no\nfra,SVO,14,yes\n",
        "gene,s1,s2,s3\ng1,0.5,1.5,2\ng2,2,1,1\ng3,0,0,1\n",
        "name,a,b,c\nr1,u,v,w\nr2,v,v,u\nr3,w,u,u\n",
        "name,a,b,c\nr1,1,v,w\nr2,x,2,u\nr3,w,u,3\n",
    ],
)
def test_tables_that_are_right_are_not_noted(tmp_path, monkeypatch, capsys, text):
    command = command_in(tmp_path, monkeypatch, capsys)
    (tmp_path / "t.csv").write_text(text)
    _, _, err = command("fit", "t.csv", "--dry-run")
    assert "looks" not in err


def test_example_tables_are_not_noted():
    from sklearn import datasets

    for load in (datasets.load_iris, datasets.load_wine):
        frame = load(as_frame=True).frame
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert hints(frame) == []
    rng = np.random.default_rng(0)
    survey = pd.DataFrame(
        {"subject": np.arange(50), "question": rng.choice(list("xy"), 50), "age": rng.normal(size=50)}
    )
    assert hints(survey) == []
