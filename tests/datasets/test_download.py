"""Downloads from a server of our own: checked, cached, refused, not waited for."""

from __future__ import annotations

import http.server
import io
import socket
import threading
import zipfile

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

pytest.importorskip("pooch")

from blockspca.cli.main import run
from blockspca.datasets import (
    PAPER_SETS,
    DownloadError,
    PaperSet,
    download_paper_set,
    load_paper_set,
)
from blockspca.datasets import download as module
from blockspca.datasets.catalogue import array_sha256
from blockspca.datasets.download import FOLDER, SUMS, recorded_sums
from blockspca.datasets.sources import (
    SOURCES,
    Source,
    dettling,
    index_lists,
    matlab,
    text_tables,
    zipped_text,
)

X = np.random.default_rng(0).integers(0, 9, size=(7, 4)).astype(float)
TEXT = "\n".join(" ".join(f"{v:g}" for v in row) for row in X)
SET = PaperSet("Small", "small.npz", (7, 4), "made up", array_sha256(X))


class Server:
    """Serves `files`, by path, and counts what is asked for."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.asked: list[str] = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append(self.path)
                content = outer.files.get(self.path)
                self.send_response(404 if content is None else 200)
                self.end_headers()
                self.wfile.write(content or b"")

            def log_message(self, *arguments: object) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def source(self, *names: str, read=text_tables) -> Source:
        port = self.server.server_port
        return Source(tuple(f"http://127.0.0.1:{port}/{n}" for n in names), read)


@pytest.fixture
def server():
    found = Server()
    yield found
    found.server.shutdown()
    found.server.server_close()


def test_downloaded_converted_kept_and_loaded(server, tmp_path):
    server.files["/data.txt"] = TEXT.encode()
    source = server.source("data.txt")
    path = download_paper_set(SET, tmp_path, source=source)
    assert path == tmp_path / SET.file
    cov = load_paper_set(SET, tmp_path)
    np.testing.assert_allclose(cov.submatrix(np.arange(4)), np.cov(X.T))
    sums = recorded_sums(tmp_path / FOLDER)
    assert list(sums) == ["Small-data.txt"]
    assert server.asked == ["/data.txt"]
    # The file itself is there: nothing is asked for. Without it, its source is.
    download_paper_set(SET, tmp_path, source=source)
    path.unlink()
    download_paper_set(SET, tmp_path, source=source)
    assert path.is_file()
    assert server.asked == ["/data.txt"]
    assert sorted(p.name for p in tmp_path.iterdir()) == [FOLDER, SET.file]


def test_several_files_are_put_together(server, tmp_path):
    lines = TEXT.splitlines()
    server.files["/a.txt"] = "\n".join(lines[:3]).encode()
    server.files["/b.txt"] = "\n".join(lines[3:]).encode()
    download_paper_set(SET, tmp_path, source=server.source("a.txt", "b.txt"))
    assert load_paper_set(SET, tmp_path).n_samples == 7


def test_other_numbers_than_recorded_are_refused(server, tmp_path):
    server.files["/data.txt"] = TEXT.replace("1", "2").encode()
    with pytest.raises(DownloadError, match="the numbers are not those"):
        download_paper_set(SET, tmp_path, source=server.source("data.txt"))
    assert not (tmp_path / SET.file).exists()


def test_the_first_download_is_trusted_and_another_file_later_is_not(server, tmp_path):
    untried = PaperSet("Untried", "untried.npz", (7, 4), "made up")
    source = server.source("data.txt")
    server.files["/data.txt"] = TEXT.encode()
    path = download_paper_set(untried, tmp_path, source=source)
    for old in (path, tmp_path / FOLDER / "Untried-data.txt"):
        old.unlink()
    server.files["/data.txt"] = TEXT.replace("1", "2").encode()
    with pytest.raises(DownloadError, match="another file than at the first") as error:
        download_paper_set(untried, tmp_path, source=source)
    assert SUMS in str(error.value)
    assert not path.exists()
    server.files["/data.txt"] = TEXT.encode()
    assert download_paper_set(untried, tmp_path, source=source) == path


def test_a_missing_file_and_a_wrong_shape_say_what_to_do(server, tmp_path):
    with pytest.raises(DownloadError, match=r"HTTPError.*Its source: made up"):
        download_paper_set(SET, tmp_path, source=server.source("absent.txt"))
    server.files["/data.txt"] = TEXT.splitlines()[0].encode()
    with pytest.raises(DownloadError, match="the array is"):
        download_paper_set(SET, tmp_path, source=server.source("data.txt"))
    server.files["/html.txt"] = b"<html>not here</html>"
    with pytest.raises(DownloadError, match="Save it as"):
        download_paper_set(SET, tmp_path, source=server.source("html.txt"))


def test_without_a_network_the_message_says_so(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, not listening: connections are refused
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/data.txt"
        with pytest.raises(DownloadError, match="could not be downloaded"):
            download_paper_set(SET, tmp_path, source=Source((url,), text_tables))


def test_a_silent_server_is_not_waited_for(tmp_path):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()  # accepts, and says nothing
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/data.txt"
        with pytest.raises(DownloadError, match="could not be downloaded"):
            download_paper_set(
                SET, tmp_path, timeout=0.3, source=Source((url,), text_tables)
            )


def test_what_is_not_public_is_said(tmp_path):
    with pytest.raises(DownloadError, match=r"is not public.*ask its authors"):
        load_paper_set("Reddit1500", tmp_path, download=True)


def test_without_pooch_the_extra_is_named(tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ImportError, match=r"blockspca\[data\]"):
        download_paper_set("CovColonCov", tmp_path)


def test_every_set_but_one_has_a_source():
    assert set(SOURCES) == set(PAPER_SETS) - {"Reddit1500"}
    for source in SOURCES.values():
        assert all(url.startswith("https://") for url in source.urls)


def test_reproduce_says_what_could_not_be_had(tmp_path, monkeypatch, capsys):
    def refuse(chosen, folder):
        raise DownloadError(f"{chosen.name} could not be downloaded")

    monkeypatch.setattr(module, "download_paper_set", refuse)
    words = ["reproduce", "dimensions", "--data", str(tmp_path), "--download"]
    assert run(words) == 0
    said = capsys.readouterr()
    assert said.err.count("could not be downloaded") == 11
    assert "11 no data" in said.out


# -- the readers ---------------------------------------------------------------------


def test_matlab_files(tmp_path):
    path = tmp_path / "data.mat"
    scipy.io.savemat(path, {"Y": np.ones((7, 1)), "X": X})
    np.testing.assert_array_equal(matlab([path], (7, 4)), X)
    with pytest.raises(ValueError, match="no array of shape"):
        matlab([path], (4, 7))


def test_text_in_an_archive(tmp_path):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("__MACOSX/x", "junk")
        archive.writestr("matrix.txt", TEXT.replace(" ", ","))
    path = tmp_path / "data.zip"
    path.write_bytes(content.getvalue())
    np.testing.assert_array_equal(zipped_text([path], (7, 4)), X)


def test_lists_of_indices(tmp_path):
    path = tmp_path / "data.txt"
    path.write_text("3 1 \n2 \n4 \n")
    found = index_lists([path], (3, 4))
    expected = [[1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 1]]
    np.testing.assert_array_equal(found.toarray(), expected)
    assert array_sha256(found) == array_sha256(sp.csr_matrix(np.array(expected)))


def test_r_files(tmp_path):
    rdata = pytest.importorskip("rdata", minversion="1.0")  # the first that writes
    from blockspca.datasets.sources import golub, r_list

    path = tmp_path / "data.RData"
    rdata.write_rda(str(path), {"golub": {"x": X, "y": np.arange(7)}})
    np.testing.assert_array_equal(r_list([path], (7, 4)), X)
    with pytest.raises(ValueError, match="raw numbers"):
        golub([path], (7, 4))


@pytest.mark.data
def test_the_recipe_gives_leukemia(load):
    # Means are taken off, so that small values have the error of larger ones.
    np.testing.assert_allclose(
        dettling(load("golub_raw")), load("Leukemia"), rtol=1e-12, atol=1e-12
    )


@pytest.mark.data
def test_dorothea_survives_its_text_format(data_dir, tmp_path):
    """Written as the source has it, read again, it has the recorded hash."""
    X = sp.load_npz(data_dir / "Dorothea_train.npz").tocsr()
    path = tmp_path / "dorothea_train.data"
    rows = (X.indices[a:b] + 1 for a, b in zip(X.indptr, X.indptr[1:], strict=False))
    path.write_text("".join(" ".join(map(str, row)) + " \n" for row in rows))
    chosen = PAPER_SETS["DorotheaCov"]
    assert array_sha256(index_lists([path], chosen.shape)) == chosen.sha256
