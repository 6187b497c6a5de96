"""Ctrl-C while a process reads or writes."""

import contextlib
import os
import signal
import subprocess
import sys
import time

import pytest

from coaltree.errors import InputError
from command_line import command_in

# A process that hangs is ended, and the test fails.
PATIENCE = 60
ROWS = b"".join(b"row%d,%d.5,%d.25\n" % (i, i % 997, i % 89) for i in range(50_000))

WRITER = """
import sys
from coaltree.cli.app import report_errors
from coaltree._atomic import OutputFolder, write_files_atomic
from pathlib import Path

# So many files, each forced onto the disk, that the writing is never over before the interrupt.
names = [f"{i}.bin" for i in range(20_000)]
data = bytes(4096)
folder = Path(sys.argv[1])
try:
    with report_errors(False):
        if sys.argv[2] == "folder":
            with OutputFolder(folder) as out:
                for name in names:
                    out.add(name, data)
        else:
            write_files_atomic({folder / name: data for name in names})
except BaseException as error:
    sys.exit(getattr(error, "exit_code", 1))
"""


def start_process(*arguments):
    # A process that was started in the background may ignore interrupts, and hands that on.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return subprocess.Popen([sys.executable, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    finally:
        signal.signal(signal.SIGINT, handler)


def check_interrupted(process):
    try:
        out, err = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    assert (process.returncode, out) == (130, b"")
    assert err.decode().splitlines()[-1] == "coaltree: interrupted."
    assert b"Traceback" not in err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
@pytest.mark.parametrize(("sent", "whole"), [(signal.SIGINT, False), (signal.SIGINT, True), (signal.SIGTERM, False)])
def test_interrupt_during_reading_exits_cleanly(tmp_path, sent, whole):
    """The table comes from a pipe, so that the process is known to be reading it."""
    table = tmp_path / "table.csv"
    os.mkfifo(table)
    process = start_process("-m", "coaltree", "fit", table, "-o", tmp_path / "out")
    with table.open("wb", buffering=0) as pipe:
        for text in (b"id,x,y\n", ROWS):
            pipe.write(text)
        if not whole:
            process.send_signal(sent)
            # An interrupt just before the process waits for more is noticed when there is more.
            with contextlib.suppress(BrokenPipeError):
                while process.poll() is None:
                    pipe.write(b"more,1,2\n")
                    time.sleep(0.02)
    if whole:
        process.send_signal(sent)
    check_interrupted(process)
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]


@pytest.mark.parametrize("way", ["folder", "together"])
def test_interrupt_during_writing_leaves_complete_files(tmp_path, way):
    folder = tmp_path if way == "together" else tmp_path / "out"
    (tmp_path / "0.bin").write_bytes(b"earlier")
    process = start_process("-c", WRITER, folder, way)
    deadline = time.monotonic() + PATIENCE
    while not any(path.name.startswith(".") for path in tmp_path.rglob("*")) or len([*tmp_path.rglob("new-*")]) < 20:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    check_interrupted(process)
    assert [path.name for path in tmp_path.rglob("*")] == ["0.bin"]
    assert (tmp_path / "0.bin").read_bytes() == b"earlier"


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("error", [ImportError, OSError, InputError, ValueError])
def test_interrupt_converted_by_library_is_recognised(sent, error, tmp_path, monkeypatch, capsys):
    """An extension module that is interrupted while it is loaded may raise anything."""

    def interrupted(*arguments, **settings):
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(sent)
        raise error("initialization failed")

    monkeypatch.setattr("coaltree.cli.fit.read_table", interrupted)
    (tmp_path / "t.csv").write_text("x,y\n1,2\n3,4\n")
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        code, _, err = command_in(tmp_path, monkeypatch, capsys)("fit", "t.csv", "-o", "out")
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    assert code == 130
    assert err.splitlines()[-1] == "coaltree: interrupted."
