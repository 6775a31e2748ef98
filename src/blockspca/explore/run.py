"""Start the page: until it is closed, for the command line; in a thread, for others."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from html import escape
from importlib.util import find_spec
from typing import TYPE_CHECKING

from .state import State

if TYPE_CHECKING:
    from .dataset import Dataset
    from .server import Server


def check_extra() -> None:
    """Raise if a package that the page needs is not installed."""
    for name in ("tornado", "plotly", "jinja2"):
        if find_spec(name) is None:
            raise ImportError(
                f"explore needs {name}; pip install 'blockspca[explore]'."
            )


def make_server(
    dataset: Dataset,
    state: State | None = None,
    *,
    port: int = 0,
    n_jobs: int | None = 1,
    ends_with_tab: bool = True,
) -> Server:
    """A server for a data set; it answers once `serve` runs."""
    check_extra()
    from .engine import Engine
    from .server import Server

    start = State(k=min(5, dataset.n_features)) if state is None else state
    engine = Engine(dataset, n_jobs)
    return Server(engine, start, port=port, ends_with_tab=ends_with_tab)


def run(server: Server, ready: Callable[[], None] = lambda: None) -> None:
    """Serve until the last tab is closed, or Ctrl-C."""
    asyncio.run(server.serve(ready))


class Explorer:
    """A page that is served by a thread of this process.

    Attributes
    ----------
    url : str
        Where it is; the token in it is the key.

    Examples
    --------
    >>> import numpy as np
    >>> from blockspca.explore import Explorer
    >>> from blockspca.explore.dataset import Dataset
    >>> from blockspca.explore.run import make_server
    >>> from blockspca.io import Table
    >>> page = Explorer(make_server(Dataset(Table(np.eye(4)))))
    >>> page.running
    True
    >>> page.stop()
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self.url = server.url
        started: Future[None] = Future()

        def serve() -> None:
            try:
                run(server, lambda: started.set_result(None))
            except BaseException as error:
                if started.done():
                    raise
                started.set_exception(error)

        self._thread = threading.Thread(target=serve, name="explore", daemon=True)
        self._thread.start()
        started.result()

    def stop(self) -> None:
        """End the server; exported files stay."""
        self._server.stop()
        self._thread.join()

    @property
    def running(self) -> bool:
        return self._thread.is_alive()

    def __enter__(self) -> Explorer:
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"Explorer({self.url})"

    def _repr_html_(self) -> str:
        url = escape(self.url)
        return f'<a href="{url}" target="_blank" rel="noopener">Explore: {url}</a>'


def explore_table(
    dataset: Dataset,
    state: State | None = None,
    *,
    port: int = 0,
    n_jobs: int | None = 1,
) -> Explorer:
    """Serve a data set from a thread, until `Explorer.stop` or the end of Python.

    Examples
    --------
    >>> import numpy as np
    >>> from blockspca.explore import explore_table
    >>> from blockspca.explore.dataset import Dataset
    >>> from blockspca.io import Table
    >>> with explore_table(Dataset(Table(np.eye(4)))) as page:
    ...     page.url.startswith("http://127.0.0.1:")
    True
    """
    server = make_server(dataset, state, port=port, n_jobs=n_jobs, ends_with_tab=False)
    return Explorer(server)
