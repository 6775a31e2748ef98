"""Who is answered: this machine, with the token, from the page; and nobody else."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import time
import zipfile
from http.client import HTTPConnection
from urllib.parse import quote, urlsplit

import numpy as np
import pytest

pytest.importorskip("tornado")
pytest.importorskip("plotly")
from tornado.httpclient import HTTPClientError, HTTPRequest
from tornado.websocket import websocket_connect

import blockspca as bs
from blockspca.certificate import Certificate
from blockspca.checker.__main__ import main as checker_main
from blockspca.explore import explore_table
from blockspca.explore import server as server_module
from blockspca.explore.dataset import Dataset
from blockspca.explore.run import Explorer, make_server
from blockspca.explore.state import MAX_TEXT, State
from blockspca.io import Table

from .conftest import make_dataset

SOON = 300.0  # seconds; the first solve on a machine compiles


@pytest.fixture(scope="module")
def page():
    state = State(k=3, seconds=600)
    with explore_table(make_dataset(), state) as running:
        yield running


def get(page: Explorer, path: str, **headers):
    """Status, headers and body of a request; the path begins with the token's place."""
    place = urlsplit(page.url)
    connection = HTTPConnection(place.hostname, place.port, timeout=SOON)
    method = headers.pop("method", "GET")
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.putrequest(method, path, skip_host="Host" in given)
    for name, value in given.items():
        connection.putheader(name, value)
    connection.endheaders()
    reply = connection.getresponse()
    body = reply.read()
    connection.close()
    return reply.status, reply.headers, body


def root(page: Explorer) -> str:
    return urlsplit(page.url).path


def test_the_page_and_its_files(page):
    status, headers, body = get(page, root(page))
    assert status == 200
    assert b"<!doctype html>" in body
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cache-Control"] == "no-store"
    assert headers["Server"] is None
    for name in ("app.js", "plotly.min.js"):
        status, headers, _ = get(page, f"{root(page)}assets/{name}")
        assert status == 200
        assert headers["Content-Type"].startswith("text/javascript")


def test_nothing_is_loaded_from_elsewhere():
    for name, (_, content) in server_module.assets().items():
        text = content.decode().replace("http://www.w3.org/2000/svg", "")
        assert "http:" not in text, name
        assert "https:" not in text, name
        assert "innerHTML" not in text, name


@pytest.mark.parametrize("token", ["", "x", "../", "%2e%2e", "x" * 32, "%00", "a/b"])
@pytest.mark.parametrize(
    "path",
    ["/{}/", "/{}/assets/app.js", "/{}/assets/plotly.min.js", "/{}/export/script.py"],
)
def test_a_wrong_token_finds_nothing(page, token, path):
    assert get(page, path.format(token))[0] == 404


@pytest.mark.parametrize(
    "path",
    [
        "assets/../server.py",
        "assets/..%2fserver.py",
        "assets/%2e%2e/server.py",
        "assets//etc/passwd",
        "assets/..\\server.py",
        "assets/.",
        "assets/",
        "../../../../etc/passwd",
        "export/../../etc/passwd",
        "export/passwd",
        "socket/../assets/../../run.py",
    ],
)
def test_no_path_of_the_disk_is_readable(page, path):
    assert get(page, root(page) + path)[0] == 404


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1", "127.0.0.1:1", ""]
)
def test_a_foreign_host_is_refused(page, host):
    status, _, body = get(page, root(page), Host=host)
    assert status == 403
    assert b"doctype" not in body


def test_localhost_is_this_machine(page):
    port = urlsplit(page.url).port
    assert get(page, root(page), Host=f"localhost:{port}")[0] == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://{}", "{}"])
def test_a_foreign_origin_is_refused(page, origin):
    own = urlsplit(page.url).netloc
    path = root(page) + "export/script.py"
    assert get(page, path, Origin=origin.format(own))[0] == 403
    assert get(page, path, Origin=f"http://{own}")[0] == 200


def test_another_site_may_link_to_the_page_and_to_nothing_else(page):
    foreign = {"Sec_Fetch_Site": "cross-site"}
    assert get(page, root(page), **foreign)[0] == 200
    assert get(page, root(page) + "assets/app.js", **foreign)[0] == 403
    assert get(page, root(page) + "assets/plotly.min.js", **foreign)[0] == 403
    assert get(page, root(page) + "export/script.py", **foreign)[0] == 403


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_nothing_can_be_written(page, method):
    assert get(page, root(page), method=method)[0] in (403, 405)


# -- the socket ------------------------------------------------------------------------


async def connected(page: Explorer, origin: str | None = None, path: str = "socket"):
    url = page.url.replace("http:", "ws:") + path
    own = f"http://{urlsplit(page.url).netloc}"
    headers = {"Origin": own if origin is None else origin}
    return await websocket_connect(HTTPRequest(url, headers=headers))


async def until(socket, kind: str) -> dict:
    while True:
        text = await asyncio.wait_for(socket.read_message(), SOON)
        assert text is not None, f"closed before {kind}"
        message = json.loads(text)
        if message["type"] == kind:
            return message


def test_a_socket_answers(page):
    async def talk():
        socket = await connected(page)
        hello = await until(socket, "hello")
        await socket.write_message("no JSON")
        refused = await until(socket, "refused")
        state = {"k": 4, "seconds": 600}
        await socket.write_message(json.dumps({"type": "ask", "id": 1, "state": state}))
        found = await until(socket, "components")
        socket.close()
        return hello, refused, found

    hello, refused, found = asyncio.run(talk())
    assert hello["state"]["k"] == 3
    assert hello["labels"] == ["kind", "dose"]
    assert refused["message"]
    assert found["components"][0]["k"] == 4


@pytest.mark.parametrize(
    ("origin", "path"),
    [("http://evil.example", "socket"), ("null", "socket"), (None, "../x/socket")],
)
def test_a_foreign_socket_is_refused(page, origin, path):
    with pytest.raises(HTTPClientError) as refused:
        asyncio.run(connected(page, origin, path))
    assert refused.value.code in (403, 404)


def test_a_message_that_is_too_long_ends_the_socket(page):
    async def talk():
        socket = await connected(page)
        await until(socket, "hello")
        # so short that it is sent at once: the server may close before it is all there
        await socket.write_message("x" * (4 * MAX_TEXT + 1))
        messages = [await asyncio.wait_for(socket.read_message(), SOON)]
        while messages[-1] is not None:
            messages.append(await asyncio.wait_for(socket.read_message(), SOON))
        return messages[-1], socket.close_code

    assert asyncio.run(talk()) == (None, 1009)  # "message too big"


def test_tabs_are_limited(page, monkeypatch):
    monkeypatch.setattr(server_module, "MAX_TABS", 1)

    async def talk():
        first = await connected(page)
        await until(first, "hello")
        second = await connected(page)
        end = await asyncio.wait_for(second.read_message(), SOON)
        first.close()
        return end

    assert asyncio.run(talk()) is None


# -- exports ---------------------------------------------------------------------------


def exported(page: Explorer, name: str, state: State) -> bytes:
    path = f"{root(page)}export/{name}?state={quote(json.dumps(state.to_dict()))}"
    status, headers, body = get(page, path)
    assert status == 200, body
    assert headers["Content-Disposition"] == f'attachment; filename="{name}"'
    return body


STATE = State(k=3, n_components=2, exclude=(1,), seconds=600)


def test_tables_hold_the_components(page):
    dataset = make_dataset()
    expected = bs.solve_components(
        dataset.covariance(STATE),
        3,
        2,
        scheme=STATE.scheme,
        constraints=bs.Constraints(exclude=[1]),
    )
    rows = list(
        csv.DictReader(io.StringIO(exported(page, "loadings.csv", STATE).decode()))
    )
    assert [row["feature"] for row in rows] == [
        name for result in expected.results for name in result.features
    ]
    found = list(csv.reader(io.StringIO(exported(page, "scores.csv", STATE).decode())))
    scores = dataset.scores(expected.components, scale=False)
    assert found[1][0] == "sample 0"
    assert np.allclose([float(v) for v in found[1][1:]], scores[0])
    assert len(found) == 61


def test_certificates_are_verified(page):
    held = zipfile.ZipFile(io.BytesIO(exported(page, "certificates.zip", STATE)))
    names = ["certificate-1.json", "certificate-2.json"]
    assert held.namelist() == names
    claim = Certificate.from_json(held.read(names[0]).decode())
    cov = make_dataset().covariance(STATE)
    assert bs.verify(claim, cov.formed()).complete


@pytest.mark.parametrize(
    "state",
    [
        State(k=3, seconds=600),
        State(k=3, seconds=600, n_components=2, scheme="residual"),
        State(k=3, seconds=600, n_components=2, scheme="projection", exclude=(1,)),
        State(k=3, seconds=600, include=(2,)),
    ],
    ids=["one", "residual", "projection", "include"],
)
def test_a_proof_is_checked_by_the_independent_checker(page, tmp_path, state):
    (tmp_path / "component.proof").write_bytes(exported(page, "component.proof", state))
    np.save(tmp_path / "data.npy", make_dataset().table.values)
    words = [str(tmp_path / name) for name in ("component.proof", "data.npy")]
    assert checker_main(words) == 0


def test_a_report_shows_names_as_text(page):
    text = exported(page, "report.html", STATE).decode()
    assert "Before, the features were centred, and not scaled." in text
    assert "&lt;script&gt;document.title" in text
    assert "<script>document.title" not in text


def test_a_state_is_read_again(page):
    text = exported(page, "state.json", STATE).decode()
    assert State.from_json(text, 12) == STATE


@pytest.mark.parametrize(
    ("name", "query", "said"),
    [
        ("loadings.csv", "state=%7B", b"not JSON"),
        ("loadings.csv", "state=%7B%22k%22%3A999%7D", b"outside"),
        ("command.txt", "", b"Python script"),
    ],
)
def test_what_cannot_be_exported_is_said(page, name, query, said):
    status, headers, body = get(page, f"{root(page)}export/{name}?{query}")
    assert status == 400
    assert headers["Content-Type"].startswith("text/plain")
    assert said in body


def test_a_matrix_has_no_scores():
    A = np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 0.1], [0.0, 0.1, 2.5]])
    with explore_table(Dataset(Table(A, is_matrix=True))) as page:
        assert get(page, root(page) + "export/loadings.csv")[0] == 400  # k = 5 of 3
        query = "state=" + quote(json.dumps(State(k=2).to_dict()))
        assert get(page, f"{root(page)}export/loadings.csv?{query}")[0] == 200
        assert get(page, f"{root(page)}export/scores.csv?{query}")[0] == 400


# -- its end ---------------------------------------------------------------------------


def test_the_server_ends_with_its_last_tab(monkeypatch):
    monkeypatch.setattr(server_module, "GRACE", 0.05)
    page = Explorer(make_server(make_dataset(), State(k=2)))

    async def talk():
        first, second = await connected(page), await connected(page)
        await until(first, "hello")
        first.close()
        await asyncio.sleep(0.3)
        assert page.running
        second.close()

    asyncio.run(talk())
    ends = time.monotonic() + SOON
    while page.running and time.monotonic() < ends:
        time.sleep(0.02)
    assert not page.running


def test_stopping_frees_the_port():
    page = explore_table(make_dataset())
    page.stop()
    assert not page.running
    with pytest.raises(ConnectionError):
        get(page, root(page))
    assert page.url in repr(page)
    assert page.url in page._repr_html_()


def test_a_server_that_does_not_start_is_no_wait_without_end(monkeypatch):
    """Only `ready` ended the wait for it."""

    async def fails(self, ready):
        self.worker.abandon()
        for socket in self._sockets:
            socket.close()
        raise OSError("no more files")

    monkeypatch.setattr(server_module.Server, "serve", fails)
    with pytest.raises(OSError, match="no more files"):
        explore_table(make_dataset())
