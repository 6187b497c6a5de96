"""Files of data sets: from a local folder or from the web, and the messages if they are not available."""

import errno
import functools
import hashlib
import http.server
import sys
import threading

import pytest

from coaltree.datasets import download as fetching
from coaltree.datasets.download import SOURCES, Source
from coaltree.errors import InputError, MissingDependencyError
from named import refused

NAME = "toys/bricks.csv"
CONTENT = b"red,blue\n1,2\n"


class Quiet(http.server.SimpleHTTPRequestHandler):
    n_requests = 0

    def do_GET(self):
        Quiet.n_requests += 1
        super().do_GET()

    def log_message(self, *arguments):
        pass


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty folder for downloads, and none of one's own."""
    folder = tmp_path / "cache"
    monkeypatch.delenv("COALTREE_DATA", raising=False)
    monkeypatch.setattr("pooch.os_cache", lambda name: folder / name)
    monkeypatch.setattr("time.sleep", lambda seconds: None)  # between two tries
    return folder / "coaltree"


@pytest.fixture
def web(tmp_path, monkeypatch):
    """A server on this machine that has the file."""
    folder = tmp_path / "web"
    folder.mkdir()
    (folder / "bricks.csv").write_bytes(CONTENT)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder))) as server:
        # looks a hundred times a second whether to stop
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        publish(monkeypatch, f"http://127.0.0.1:{server.server_port}/bricks.csv")
        Quiet.n_requests = 0
        yield folder
        server.shutdown()
        thread.join()


def publish(monkeypatch, address, content=CONTENT):
    monkeypatch.setitem(SOURCES, NAME, Source(address, hashlib.sha256(content).hexdigest()))


def own_folder(tmp_path, monkeypatch, content):
    folder = tmp_path / "own"
    (folder / "toys").mkdir(parents=True)
    (folder / NAME).write_bytes(content)
    monkeypatch.setenv("COALTREE_DATA", str(folder))
    return folder


def test_source_addresses_are_pinned():
    for name, source in SOURCES.items():
        assert source.address.startswith("https://raw.githubusercontent.com/")
        commit = source.address.split("/")[5]
        assert len(commit) == 40
        assert int(commit, 16)
        assert len(source.sha256) == 64
        assert int(source.sha256, 16)
        assert name.rpartition("/")[2] == source.address.rpartition("/")[2]


def test_download_is_cached(web, cache):
    assert fetching.fetch_file(NAME) == CONTENT
    assert (cache / NAME).read_bytes() == CONTENT
    assert fetching.fetch_file(NAME) == CONTENT
    assert Quiet.n_requests == 1


def test_damaged_download_is_repeated(web, cache):
    (cache / "toys").mkdir(parents=True)
    (cache / NAME).write_bytes(b"half")
    assert fetching.fetch_file(NAME) == CONTENT


def test_local_folder_has_priority(web, cache, tmp_path, monkeypatch):
    own_folder(tmp_path, monkeypatch, CONTENT)
    assert fetching.fetch_file(NAME) == CONTENT
    assert Quiet.n_requests == 0
    assert not cache.exists()


def test_missing_files_are_downloaded(web, cache, tmp_path, monkeypatch):
    folder = own_folder(tmp_path, monkeypatch, CONTENT)
    (folder / NAME).unlink()
    assert fetching.fetch_file(NAME) == CONTENT
    assert Quiet.n_requests == 1


def test_local_folder_is_verified(tmp_path, monkeypatch):
    publish(monkeypatch, "https://example.org/bricks.csv")
    own_folder(tmp_path, monkeypatch, b"other")
    with refused("bricks.csv file published checksum differs remove"):
        fetching.fetch_file(NAME)


def test_missing_data_folder_is_rejected(tmp_path, monkeypatch):
    publish(monkeypatch, "https://example.org/bricks.csv")
    monkeypatch.setenv("COALTREE_DATA", str(tmp_path / "nowhere"))
    with refused("COALTREE_DATA nowhere folder"):
        fetching.fetch_file(NAME)


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("read_bytes", r"bricks.csv cannot be read: Permission denied\."),
        ("is_file", r"bricks.csv .*Permission denied"),
    ],
)
def test_unreadable_file_is_reported(tmp_path, monkeypatch, method, message):
    publish(monkeypatch, "https://example.org/bricks.csv")
    own_folder(tmp_path, monkeypatch, CONTENT)

    def refuse(path):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(f"pathlib.Path.{method}", refuse)
    with pytest.raises(InputError, match=message):
        fetching.fetch_file(NAME)


def test_download_with_wrong_checksum_is_not_kept(web, cache):
    (web / "bricks.csv").write_bytes(b"something else")
    with refused("http://127.0.0.1 file published"):
        fetching.fetch_file(NAME)
    assert not (cache / NAME).exists()


def test_offline_download_is_reported(web, cache, monkeypatch):
    publish(monkeypatch, "http://127.0.0.1:9/bricks.csv")  # nobody listens there
    with refused("downloaded http://127.0.0.1:9/bricks.csv (ConnectionError)"):
        fetching.fetch_file(NAME)


def test_offline_download_names_data_folder(web, cache, tmp_path, monkeypatch):
    publish(monkeypatch, "http://127.0.0.1:9/bricks.csv")
    monkeypatch.setenv("COALTREE_DATA", str(tmp_path))
    with pytest.raises(InputError, match=rf"is not in {tmp_path} \(COALTREE_DATA\) and could not be downloaded"):
        fetching.fetch_file(NAME)


def test_unavailable_url_is_reported(web, cache, monkeypatch):
    (web / "bricks.csv").unlink()
    with refused("downloaded (HTTPError)"):
        fetching.fetch_file(NAME)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "No space left on device"),
        (PermissionError("in the words of pooch"), "Permission denied"),
    ],
)
def test_unwritable_cache_is_reported(web, cache, monkeypatch, error, reason):
    def fail(*arguments, **options):
        raise error

    monkeypatch.setattr("pooch.core.Pooch.fetch", fail)
    with pytest.raises(InputError, match=f".*coaltree: {reason}"):
        fetching.fetch_file(NAME)


def test_file_in_place_of_cache_folder_is_reported(web, cache):
    cache.parent.write_text("in the way")
    with refused("coaltree directory"):
        fetching.fetch_file(NAME)


def test_missing_pooch_has_install_hint(web, cache, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(MissingDependencyError, match=r'pip install "coaltree\[data\]"'):
        fetching.fetch_file(NAME)


def test_text_lines_are_split_and_decoded(tmp_path, monkeypatch):
    content = "a\x85b\r\nc\x0cd\n\n".encode("latin-1")
    publish(monkeypatch, "https://example.org/bricks.csv", content)
    own_folder(tmp_path, monkeypatch, content)
    assert fetching.read_text_lines(NAME, "latin-1") == ["a\x85b", "c\x0cd", ""]
    with refused("bricks.csv damaged byte 1 utf-8"):
        fetching.read_text_lines(NAME, "utf-8")
