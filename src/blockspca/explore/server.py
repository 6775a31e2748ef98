"""The server of the page: this machine only, one secret token, nothing from the disk.

A request is answered only if it names this host, so that no other name that was made to
point here works (DNS rebinding), if its path begins with the token, and, but for the
page itself, if it comes from the page (`Origin`, `Sec-Fetch-Site`). The files of the
page are read once, at the start: no path of a request is ever a path of the disk.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import re
import secrets
from collections.abc import Callable
from concurrent.futures import Future
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

from tornado import web, websocket
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets

from . import messages
from .engine import Engine
from .exports import EXPORTS
from .jobs import Job, Priority, Worker
from .session import Session
from .state import MAX_TEXT, State

HOST = "127.0.0.1"
LIBRARY = "plotly.min.js"
# Each has a socket and its own questions, which one thread answers in turn.
MAX_TABS = 20
GRACE = 3.0  # seconds in which a tab that is loaded again is not a closed one

_KINDS = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; "
        # ... and a style element that is empty, which is what this is the hash of:
        # plotly.js makes one, and gives it its rules by script.
        "style-src 'self' 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='; "
        "connect-src 'self'; "
        "img-src 'self' data: blob:; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}

log = logging.getLogger(__name__)


def assets() -> dict[str, tuple[str, bytes]]:
    """The files of the page: name, and kind and content."""
    found = {}
    for file in (files(__package__) / "assets").iterdir():
        ending = "." + file.name.rpartition(".")[2]
        if ending in _KINDS:
            found[file.name] = (_KINDS[ending], file.read_bytes())
    return found


def library() -> bytes:
    """plotly.js, which draws the pictures, as the installed package brings it.

    It adds a style sheet for maps, which the page's policy refuses, unless an element
    has the name of that; so one gets it first.
    """
    from plotly.offline import get_plotlyjs

    text = str(get_plotlyjs())
    names = sorted(set(re.findall(r'getElementById\("([0-9a-f]{64})"\)', text)))
    made = 'Object.assign(document.createElement("meta"),{id:"%s"})'
    marks = [f"document.head.append({made % name});" for name in names]
    return ("".join(marks) + text).encode()


class Server:
    """Serves one engine until it is stopped, or its last tab is closed.

    Parameters
    ----------
    state : State
        What a tab without a link of its own begins with.
    port : int
        0 takes a free one.
    ends_with_tab : bool
        Whether the server stops when the last tab was closed.
    """

    def __init__(
        self,
        engine: Engine,
        state: State,
        *,
        port: int = 0,
        ends_with_tab: bool = True,
    ) -> None:
        self.engine, self.state = engine, state
        self.ends_with_tab = ends_with_tab
        # Other users of the machine can reach the port as well.
        self.token = secrets.token_urlsafe(24)
        self.worker = Worker(engine.n_jobs)
        self.tabs: set[Socket] = set()
        self.files = {**assets(), LIBRARY: (_KINDS[".js"], library())}
        self._sockets = bind_sockets(port, HOST)
        self.port = int(self._sockets[0].getsockname()[1])
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopped: asyncio.Event | None = None

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}/{self.token}/"

    @property
    def hosts(self) -> tuple[str, ...]:
        """How this server may be called in a request."""
        return tuple(f"{name}:{self.port}" for name in (HOST, "localhost"))

    def application(self) -> web.Application:
        more = {"server": self}
        start = r"/([^/]+)/"
        return web.Application(
            [
                (start, Page, more),
                (start + r"socket", Socket, more),
                (start + r"assets/([a-z0-9.-]+)", Asset, more),
                (start + r"export/([a-z0-9.-]+)", Download, more),
            ],
            default_handler_class=Nothing,
            default_handler_args=more,
            websocket_max_message_size=4 * MAX_TEXT,
            log_function=lambda handler: None,
        )

    async def serve(self, ready: Callable[[], None] = lambda: None) -> None:
        """Answer until `stop`; `ready` is called once the page can be opened."""
        self._loop = asyncio.get_running_loop()
        self._stopped = asyncio.Event()
        server = HTTPServer(self.application(), max_body_size=4 * MAX_TEXT)
        server.add_sockets(self._sockets)
        self._solve_ahead()
        try:
            ready()
            await self._stopped.wait()
        finally:
            server.stop()
            for tab in list(self.tabs):
                tab.close(1001, "the server has ended")
            self.worker.abandon()
            await server.close_all_connections()

    def stop(self) -> None:
        """End the server; may be called from any thread."""
        loop, stopped = self._loop, self._stopped
        if loop is not None and stopped is not None and not loop.is_closed():
            loop.call_soon_threadsafe(stopped.set)

    def _solve_ahead(self) -> None:
        """Have the first answer ready when the page is."""

        def work(job: Job) -> None:
            self.engine.solve(self.state, job.listen(lambda event: None))

        # What is wrong with the state the page is told when it asks for it.
        self.worker.submit(Job(work, self, Priority.AHEAD, lambda error: None))

    # -- tabs ----------------------------------------------------------------------

    def opened(self, tab: Socket) -> None:
        self.tabs.add(tab)

    def closed(self, tab: Socket) -> None:
        self.tabs.discard(tab)
        if self.ends_with_tab and not self.tabs and self._loop is not None:
            self._loop.call_later(GRACE, self._end_if_alone)

    def _end_if_alone(self) -> None:
        if not self.tabs and self._stopped is not None:
            self._stopped.set()

    # -- exports -------------------------------------------------------------------

    async def export(self, state: State, name: str) -> bytes:
        """Make one of the `EXPORTS`, in the thread that solves."""
        made: Future[bytes] = Future()

        def work(job: Job) -> None:
            if made.set_running_or_notify_cancel():  # from now on nobody can cancel it
                answer = self.engine.solve(state, job.listen(lambda event: None))
                made.set_result(EXPORTS[name][1](self.engine, answer))

        self.worker.submit(Job(work, made, Priority.ANSWER, made.set_exception))
        return await asyncio.wrap_future(made)


class _Checked(web.RequestHandler):
    """Refuses requests of strangers; the same for pages, files and sockets."""

    server: Server
    strict = True  # refuses also requests that another site's page has made

    def initialize(self, server: Server) -> None:
        self.server = server

    def set_default_headers(self) -> None:
        self.clear_header("Server")
        for name, value in _HEADERS.items():
            self.set_header(name, value)

    def prepare(self) -> None:
        refusal = self.refusal()
        if refusal:
            raise web.HTTPError(403, reason=refusal)
        token = self.path_args[0] if self.path_args else ""
        if not hmac.compare_digest(token.encode(), self.server.token.encode()):
            raise web.HTTPError(404)

    def refusal(self) -> str:
        """Why a request is refused, "" if it is not; the token is looked at later."""
        headers = self.request.headers
        if headers.get("Host", "") not in self.server.hosts:
            return "Foreign Host"
        origin = headers.get("Origin")
        if origin is not None and not self.is_own(origin):
            return "Foreign Origin"
        site = headers.get("Sec-Fetch-Site", "none")
        if self.strict and site not in ("same-origin", "none"):
            return "Foreign Site"
        return ""

    def is_own(self, origin: str) -> bool:
        parts = urlsplit(origin)
        return parts.scheme == "http" and parts.netloc in self.server.hosts

    def give(self, name: str) -> None:
        """Answer with a file of the page."""
        if name not in self.server.files:
            raise web.HTTPError(404)
        kind, content = self.server.files[name]
        self.set_header("Content-Type", kind)
        self.finish(content)

    def write_error(self, status_code: int, **more: Any) -> None:
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        error = more.get("exc_info", (None, None, None))[1]
        said = getattr(error, "log_message", None) if status_code == 400 else None
        self.finish(said or f"{status_code} {self._reason}")


class Nothing(_Checked):
    """Every other path."""

    def prepare(self) -> None:
        raise web.HTTPError(403 if self.refusal() else 404)


class Page(_Checked):
    """The page; another site may link to it, as a notebook does."""

    strict = False

    def get(self, token: str) -> None:
        self.give("index.html")


class Asset(_Checked):
    """A file of the page, by its name."""

    def get(self, token: str, name: str) -> None:
        self.give(name)


class Download(_Checked):
    """An exported file, for the state in the query."""

    async def get(self, token: str, name: str) -> None:
        if name not in EXPORTS:
            raise web.HTTPError(404)
        try:
            text = self.get_query_argument("state", "{}")
            state = State.from_json(text, self.server.engine.dataset.n_features)
            content = await self.server.export(state, name)
        except (ValueError, TypeError, ImportError) as error:
            raise web.HTTPError(400, str(error).replace("%", "%%")) from None
        self.set_header("Content-Type", EXPORTS[name][0])
        self.set_header("Content-Disposition", f'attachment; filename="{name}"')
        self.finish(content)


class Socket(websocket.WebSocketHandler, _Checked):
    """The connection of one tab."""

    session: Session | None = None

    def check_origin(self, origin: str) -> bool:
        return self.is_own(origin)

    def open(self, token: str) -> None:
        loop = asyncio.get_running_loop()
        if len(self.server.tabs) >= MAX_TABS:
            self.close(1013, "too many tabs")
            return

        def send(message: dict[str, Any]) -> None:
            text = json.dumps(message, separators=(",", ":"), allow_nan=False)
            loop.call_soon_threadsafe(self._write, text)

        self.set_nodelay(True)
        engine = self.server.engine
        self.session = Session(engine, self.server.worker, send)
        self.server.opened(self)
        self._write(json.dumps(messages.hello(engine.dataset, self.server.state)))

    def _write(self, text: str) -> None:
        try:
            self.write_message(text)
        except websocket.WebSocketClosedError:
            log.debug("a tab was closed before it was told everything")

    def on_message(self, message: str | bytes) -> None:
        if self.session is None:
            return
        try:
            content = json.loads(message)
        except (ValueError, RecursionError):
            content = None
        if not isinstance(content, dict):
            self.session.send(
                {"type": "refused", "message": "the message is not a JSON object."}
            )
            return
        self.session.receive(content)

    def on_close(self) -> None:
        if self.session is not None:
            self.session.close()
            self.session = None
            self.server.closed(self)
