"""Files are written completely or not at all."""

import csv
import io
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest

from coaltree import Tree
from coaltree._atomic import OutputFolder, check_writable, finish_interrupted, write_atomic, write_files_atomic
from coaltree.errors import InputError, MissingDependencyError
from coaltree.persist import result_files as files
from coaltree.persist.result_files import clusters_csv, csv_text, dendrogram_png, json_text
from named import refused


def everything(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


@pytest.mark.parametrize(("data", "stored"), [("Löß\n", "Löß\n".encode()), (b"\x00\r\n", b"\x00\r\n")])
def test_write_atomic_writes_and_replaces_file(tmp_path, data, stored):
    path = tmp_path / "out.txt"
    for _ in range(2):
        write_atomic(path, data)
        assert path.read_bytes() == stored
    write_atomic(str(path), "new")
    assert path.read_text() == "new"
    assert everything(tmp_path) == ["out.txt"]


def test_write_atomic_uses_default_permissions(tmp_path):
    (tmp_path / "plain").write_text("")
    write_atomic(tmp_path / "whole", "")
    assert (tmp_path / "whole").stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_failed_write_keeps_old_file(tmp_path, monkeypatch, step, error):
    path = tmp_path / "out.txt"
    path.write_text("old")

    def fail(*arguments):
        raise error

    monkeypatch.setattr(os, step, fail)
    expected = KeyboardInterrupt if isinstance(error, KeyboardInterrupt) else InputError
    with pytest.raises(expected) as caught:
        write_atomic(path, "new")
    if expected is InputError:
        assert "out.txt cannot be written: No space left on device" in str(caught.value)
    assert path.read_text() == "old"
    assert everything(tmp_path) == ["out.txt"]


def test_write_atomic_rejects_folder_paths(tmp_path):
    with pytest.raises(InputError, match="it is a folder"):
        write_atomic(tmp_path, "text")
    with pytest.raises(InputError, match="No such file or directory"):
        write_atomic(tmp_path / "nowhere" / "out.txt", "text")
    assert everything(tmp_path) == []


def test_change_that_cannot_be_taken_back_is_finished_later(tmp_path, monkeypatch):
    (tmp_path / "x.txt").write_text("old")
    real = os.replace

    def break_after_the_first(*arguments):
        monkeypatch.setattr(os, "replace", fail)
        real(*arguments)

    def fail(*arguments):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "replace", break_after_the_first)
    with pytest.raises(InputError, match="Input/output error") as caught:
        write_files_atomic({tmp_path / "x.txt": "new", tmp_path / "y.txt": "new"})
    assert "nothing was changed" not in str(caught.value)
    monkeypatch.setattr(os, "replace", real)
    finish_interrupted(tmp_path)
    assert everything(tmp_path) == ["x.txt", "y.txt"]
    assert (tmp_path / "x.txt").read_text() == "new"


@pytest.mark.parametrize("way", ["folder", "together"])
def test_write_atomic_works_without_hard_links(tmp_path, monkeypatch, way):
    def refuse(*arguments):
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    (tmp_path / "x.txt").write_text("old")
    real, calls = os.replace, []

    def fail_at_last(*arguments):
        calls.append(arguments)
        if len(calls) == {"folder": 3, "together": 2}[way]:
            raise OSError(5, "Input/output error")
        return real(*arguments)

    def work():
        if way == "together":
            write_files_atomic({tmp_path / "x.txt": "new", tmp_path / "y.txt": "new"})
            return
        with OutputFolder(tmp_path) as folder:
            folder.add("x.txt", "new")
            folder.add("y.txt", "new")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fail_at_last)
        with pytest.raises(InputError):
            work()
    assert everything(tmp_path) == ["x.txt"]
    assert (tmp_path / "x.txt").read_text() == "old"
    work()
    assert [path.read_text() for path in sorted(tmp_path.iterdir())] == ["new", "new"]


@pytest.mark.parametrize("n_moved", range(5))
def test_interrupted_replacement_is_finished_later(tmp_path, n_moved):
    """A process that dies between two moves leaves a complete stage, which the next reader or writer moves into place."""
    (tmp_path / "x.txt").write_text("old")
    (tmp_path / "z.txt").write_text("old")
    script = """if True:
        import os, signal, sys
        from coaltree._atomic import OutputFolder

        real, left = os.replace, [int(sys.argv[2])]

        def move(*arguments):
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left[0] -= 1
            real(*arguments)

        os.replace = move
        with OutputFolder(sys.argv[1]) as folder:
            folder.add("x.txt", "new")
            folder.add("y.txt", "new")
            folder.discard("z.txt")
    """
    ended = subprocess.run([sys.executable, "-c", script, tmp_path, str(n_moved)], check=False)
    assert ended.returncode == (0 if n_moved == 4 else -9)
    finish_interrupted(tmp_path)
    values = {path.name: path.read_text() for path in tmp_path.iterdir() if path.is_file()}
    assert values == ({"x.txt": "old", "z.txt": "old"} if n_moved == 0 else {"x.txt": "new", "y.txt": "new"})


def test_device_files_are_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for write in (lambda path: write_atomic(path, "x"), lambda path: write_files_atomic({path: "x"}), check_writable):
        with refused("pipe written plain file"):
            write(tmp_path / "pipe")
    assert (tmp_path / "pipe").is_fifo()
    assert everything(tmp_path) == ["pipe"]


def test_files_do_not_replace_folder(tmp_path):
    (tmp_path / "sub").mkdir()
    with pytest.raises(InputError, match="sub cannot be written: it is a folder"):
        write_files_atomic({tmp_path / "x.txt": "x", tmp_path / "sub": "y"})
    assert everything(tmp_path) == ["sub"]
    write_files_atomic({})


def test_write_check_leaves_no_trace(tmp_path):
    check_writable(tmp_path / "x.txt")
    (tmp_path / "y.txt").write_text("kept")
    check_writable(tmp_path / "y.txt")
    assert everything(tmp_path) == ["y.txt"]
    assert (tmp_path / "y.txt").read_text() == "kept"
    for path, reason in (
        (tmp_path, "it is a folder"),
        (tmp_path / "no" / "x.txt", "No such file"),
        (tmp_path / "y.txt" / "x.txt", "Not a directory"),
    ):
        with pytest.raises(InputError, match=f"cannot be written: {reason}"):
            check_writable(path)


def test_csv_text_quotes_and_formats():
    text = csv_text({"a, b": ["x", 'say "y"'], "n": [0.1 + 0.2, 3], "empty": [None, ""]})
    assert text == '"a, b",n,empty\nx,0.30000000000000004,\n"say ""y""",3,\n'
    assert csv_text({"a": []}) == "a\n"
    with pytest.raises(ValueError, match="zip"):
        csv_text({"a": [1], "b": []})


def test_output_folder_writes_files_at_end(tmp_path):
    outdir = tmp_path / "a" / "b"
    with OutputFolder(outdir) as folder:
        folder.add("x.txt", "x")
        folder.add("y.bin", b"\x01")
        assert everything(tmp_path) == ["a", "a/b"]
    assert everything(outdir) == ["x.txt", "y.bin"]
    (outdir / "mine.txt").write_text("kept")
    with OutputFolder(str(outdir)) as folder:
        folder.add("x.txt", "new")
    assert everything(outdir) == ["mine.txt", "x.txt", "y.bin"]
    assert (outdir / "x.txt").read_text() == "new"


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_output_folder_writes_nothing_on_error(tmp_path, error):
    def work(outdir):
        with OutputFolder(outdir) as folder:
            folder.add("x.txt", "x")
            raise error

    with pytest.raises(error):
        work(tmp_path / "a" / "b")
    assert everything(tmp_path) == []
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "x.txt").write_text("old")
    with pytest.raises(error):
        work(tmp_path / "old")
    assert (tmp_path / "old" / "x.txt").read_text() == "old"
    assert everything(tmp_path) == ["old", "old/x.txt"]


def test_output_folder_keeps_foreign_files(tmp_path):
    outdir = tmp_path / "a"

    def work():
        with OutputFolder(outdir):
            (outdir / "theirs.txt").write_text("kept")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        work()
    assert everything(tmp_path) == ["a", "a/theirs.txt"]


def test_output_folder_rejects_unusable_paths(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="file is a file"):
        OutputFolder(tmp_path / "file").__enter__()
    with pytest.raises(InputError, match="file is a file"):
        OutputFolder(tmp_path / "file" / "below").__enter__()

    mkdir = Path.mkdir

    def refuse(path, *arguments, **options):
        if path.suffix == ".part":
            raise PermissionError(13, "Permission denied")
        mkdir(path, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "mkdir", refuse)
        with refused("new written Permission denied"):
            OutputFolder(tmp_path / "new").__enter__()
    assert everything(tmp_path) == ["file"]

    def work():
        with OutputFolder(tmp_path) as folder:
            folder.add("x.txt", "x")
            folder.add("sub", "y")

    (tmp_path / "sub").mkdir()
    with pytest.raises(InputError, match="sub cannot be written: it is a folder"):
        work()
    assert everything(tmp_path) == ["file", "sub"]


def test_output_folder_rejects_locked_folder(tmp_path):
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(InputError, match="Permission denied"):
            OutputFolder(tmp_path / "new").__enter__()
    finally:
        tmp_path.chmod(0o700)


def test_clusters_csv_quotes_names():
    names = ["plain", 'a "b"', "c, d", "e\nf", "Ωmega", "  x"]
    text = clusters_csv(names, np.array([0, 1, 0, 2, 2, 1]))
    assert list(csv.reader(io.StringIO(text))) == [
        ["name", "cluster"],
        *([name, label] for name, label in zip(names, "010221", strict=True)),
    ]
    assert text.startswith("name,cluster\nplain,0\n")
    with pytest.raises(ValueError, match="zip"):
        clusters_csv(["a"], [0, 1])


def test_json_text_is_strict():
    facts = files.to_plain_values(
        {"a": np.float64(math.nan), "b": [np.int64(2), -math.inf, (np.True_, 0.5)], 3: None, "ü": "ß"}
    )
    text = json_text(facts)
    assert json.loads(text) == {"a": None, "b": [2, None, [True, 0.5]], "3": None, "ü": "ß"}
    assert "ß" in text
    with pytest.raises(ValueError, match="JSON"):
        json_text({"a": math.nan})


def png_size(png):
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    return int.from_bytes(png[16:20], "big"), int.from_bytes(png[20:24], "big")


def comb(n):
    children = [[i + 1, 0 if i == 0 else n + i - 1] for i in range(n - 1)]
    return Tree(children, [0.0] * n + list(range(1, n)))


def test_picture_size_is_bounded():
    sizes = {n: png_size(dendrogram_png(comb(n), np.arange(n) % 2, "t")) for n in (1, 2, 40, 300, 301, 900)}
    heights = {n: height for n, (_, height) in sizes.items()}
    assert heights[2] < heights[40] < heights[300] < 6000
    assert heights[301] == pytest.approx(heights[900], abs=60)
    assert all(width < 2000 for width, _ in sizes.values())


def test_pictures_are_reproducible_without_pyplot_figures():
    draws = [dendrogram_png(comb(5), [0, 0, 1, 1, 2], "a $title_ of_ $ 5 %") for _ in range(2)]
    assert draws[0] == draws[1]
    if "matplotlib.pyplot" in sys.modules:
        assert sys.modules["matplotlib.pyplot"].get_fignums() == []


def test_missing_matplotlib_has_install_hint(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingDependencyError, match=r"coaltree\[cli\]"):
        dendrogram_png(comb(3), [0, 0, 0], "t")


def test_names_in_any_script_draw_without_warning(recwarn):
    tree = Tree([[0, 1], [3, 2]], [0, 0, 0, 1, 2], ["日本", "العربية", "हिन्दी"])
    families = mpl.rcParams["font.family"]
    assert dendrogram_png(tree, [0, 0, 1], "ไทย").startswith(b"\x89PNG")
    assert [str(warning.message) for warning in recwarn] == []
    assert mpl.rcParams["font.family"] == families
