"""The questions of one tab, and the order in which they are answered.

Every question has a number, which all that belongs to it carries: the page forgets what
belongs to an older one. A new question ends the work on the one before.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from .._messages import count
from ..inspection.alternatives import alternatives
from ..inspection.importance import feature_importance
from ..inspection.stability import stability
from ..limits import Limits
from ..progress import Event
from ..report.block_data import blocks_at_levels
from . import messages
from .engine import Answer, Engine
from .jobs import Job, Priority, Worker
from .pictures import MAX_CORNERS, Samples
from .state import State, StateError, real, whole

PACE = 0.04  # seconds between two messages of progress: the eye sees no more
MAX_PRICED = 20  # constraints whose price is found
MAX_SEARCH = 100  # characters
# More than anybody waits for at a page; the library draws as many as one likes.
MAX_RESAMPLES = 200
MAX_WITHIN = 0.2  # share of the best, of sets that are listed

log = logging.getLogger(__name__)

Send = Callable[[dict[str, Any]], None]


class Session:
    """The connection of one tab to the engine; `send` may be called from any thread.

    Parameters
    ----------
    worker : Worker
        Shared by all tabs.
    send : callable
        Given a dict for JSON.
    """

    def __init__(self, engine: Engine, worker: Worker, send: Send) -> None:
        self.engine, self.worker, self._send = engine, worker, send
        self.dataset = engine.dataset
        self.number = 0
        self.state: State | None = None
        self.answer: Answer | None = None
        self.samples: Samples | None = None
        self._told = 0.0

    def receive(self, message: Mapping[str, Any]) -> None:
        """Answer a message of the page, or refuse it with a sentence."""
        actions = {
            "ask": self._ask,
            "stop": lambda _: self.worker.stop(self),
            "search": self._search,
            "names": self._names,
            "lasso": self._lasso,
            "cell": self._cell,
            "swaps": self._swaps,
            "sets": self._sets,
            "stability": self._stability,
            "blocks": self._blocks,
        }
        action = actions.get(str(message.get("type")))
        try:
            if action is None:
                raise StateError("the type of the message is not known.")
            action(message)
        except (ValueError, TypeError) as error:
            self.send({"type": "refused", "message": str(error)})

    def close(self) -> None:
        """Forget the tab."""
        self._send = lambda message: None
        self.worker.discard(self)

    def send(self, message: dict[str, Any], number: int | None = None) -> None:
        self._send({**message, "id": self.number if number is None else number})

    # -- the question --------------------------------------------------------------

    def _ask(self, message: Mapping[str, Any]) -> None:
        number, content = message.get("id"), message.get("state")
        if isinstance(number, bool) or not isinstance(number, int):
            raise StateError("a question needs a number.")
        if not isinstance(content, Mapping):
            raise StateError("a question needs a state.")
        self.number = number
        state = State.checked(content, self.dataset.n_features)
        before, self.state = self.state, state
        # Only what is shown differs, such as a colour: nothing is solved again.
        same = before is not None and before.question() == state.question()
        if same and self.answer is not None and self.answer.complete:
            self.send(messages.components(self.dataset, self.answer))
            self._show(number, state)
            return
        self.worker.discard(self)
        self.answer = None
        known = self.engine.known(state)
        if known is not None:
            self._found(known, number)
            self._submit(Priority.ANSWER, lambda job: self._show(number, state))
        else:
            self._submit(Priority.ANSWER, lambda job: self._solve(job, number, state))
        self._submit(Priority.AHEAD, lambda job: self._ahead(job, number, state))

    def _submit(self, priority: Priority, work: Callable[[Job], None]) -> None:
        number = self.number

        def run(job: Job) -> None:
            try:
                work(job)
            except KeyboardInterrupt:
                if not job.discarded:
                    self.send({"type": "stopped"}, number)

        def failed(error: Exception) -> None:
            if isinstance(error, (ValueError, TypeError, ImportError)):
                self.send({"type": "refused", "message": str(error)}, number)
                return
            log.exception("the explorer failed", exc_info=error)
            said = f"This failed, by an error of blockspca: {type(error).__name__}"
            self.send({"type": "refused", "message": f"{said}: {error}"}, number)

        self.worker.submit(Job(run, self, priority, failed))

    def _found(self, answer: Answer, number: int) -> None:
        """Tell the page of components; not if it asks something else by now."""
        if number == self.number:
            self.answer = answer
            self.send(messages.components(self.dataset, answer), number)

    def _solve(self, job: Job, number: int, state: State) -> None:
        done = 0

        def found(answer: Answer) -> None:
            nonlocal done
            done = len(answer.results)
            if not job.discarded:
                self._found(answer, number)

        def tell(event: Event) -> None:
            self._progress(messages.progress(event, done), number)

        self.engine.solve(state, job.listen(tell), found)
        if not job.discarded:
            if job.interrupted:
                self.send({"type": "stopped"}, number)
            self._show(number, state)

    def _progress(self, message: dict[str, Any], number: int) -> None:
        now = time.monotonic()
        if now - self._told >= PACE:
            self._told = now
            self.send(message, number)

    def _show(self, number: int, state: State) -> None:
        """Send what is seen of the components: shares, and the samples."""
        answer = self.answer
        if answer is None or number != self.number:
            return
        scores = self.dataset.scores(answer.components, state.scale)
        if scores is not None:
            self.samples = Samples.of(self.dataset, state, scores)
            self.send(self.samples.message(self.dataset, state), number)
        self.send(messages.summary(answer, self.engine.known_pca(state)), number)

    def _ahead(self, job: Job, number: int, state: State) -> None:
        """Compute the path, PCA and prices of an answer."""
        walked = self.engine.path(state, job.listen(lambda event: None))
        job.check()
        ceiling = self.engine.pca(replace(state, n_components=1))
        if job.discarded:
            return
        self.send(messages.path(walked, float(ceiling[0])), number)
        pca = self.engine.pca(state)
        if self.answer is not None and number == self.number:  # it was not refused
            self.send(messages.summary(self.answer, pca), number)
            if state.is_constrained:
                self._prices(job, number, state)
        self.send({"type": "settled"}, number)

    # -- prices --------------------------------------------------------------------

    def _prices(self, job: Job, number: int, state: State) -> None:
        listener = job.listen(lambda event: None)
        rows = []
        for words, without in relaxations(state, self.dataset.names)[: MAX_PRICED + 1]:
            job.check()
            cost = self.engine.price(state, without, listener)
            rows.append(messages.price(words, cost))
            if not job.discarded:
                self.send({"type": "prices", "rows": rows}, number)

    # -- small questions, answered at once -----------------------------------------

    def _search(self, message: Mapping[str, Any]) -> None:
        text = message.get("text")
        if not isinstance(text, str) or len(text) > MAX_SEARCH:
            raise StateError(f"search for a text of at most {MAX_SEARCH} characters.")
        found = self.dataset.search(text)
        rows = messages.features(self.dataset, found)
        self.send({"type": "found", "text": text, "features": rows})

    def _names(self, message: Mapping[str, Any]) -> None:
        wanted = State.checked(
            {"include": message.get("features")}, self.dataset.n_features
        ).include
        rows = messages.features(self.dataset, wanted)
        self.send({"type": "names", "features": rows})

    def _lasso(self, message: Mapping[str, Any]) -> None:
        corners = message.get("corners")
        if not isinstance(corners, list) or not 3 <= len(corners) <= MAX_CORNERS:
            raise StateError(f"a lasso has 3 to {MAX_CORNERS} corners.")
        polygon = np.array(corners, dtype=np.float64)
        if polygon.shape != (len(corners), 2):
            raise StateError("a corner of a lasso is two numbers.")
        if self.samples is not None:
            self.send(self.samples.inside(self.dataset, polygon))

    def _cell(self, message: Mapping[str, Any]) -> None:
        cell = message.get("cell")
        if isinstance(cell, bool) or not isinstance(cell, int):
            raise StateError("a cell is a whole number.")
        if self.samples is not None:
            self.send(self.samples.at(self.dataset, cell))

    # -- questions that take a while -----------------------------------------------

    def _asked(self, make: Callable[[Job, Answer], dict[str, Any]]) -> None:
        """Make a message about the answer and send it, unless another is asked for."""
        answer, number = self.answer, self.number
        if answer is None or not answer.complete:
            raise ValueError("wait for the components first.")

        def work(job: Job) -> None:
            content = make(job, answer)
            if job.discarded:
                return
            self.send(content, number)
            if job.interrupted:
                self.send({"type": "stopped"}, number)

        self.worker.discard(self, Priority.ASKED)
        self._submit(Priority.ASKED, work)

    def _swaps(self, message: Mapping[str, Any]) -> None:
        most = len(self.answer.results) if self.answer else 1
        j = whole("component", message.get("component", 0), 0, most - 1)

        def make(job: Job, answer: Answer) -> dict[str, Any]:
            earlier = answer.results[:j]
            found = feature_importance(
                answer.scheme.problem(answer.cov, earlier),
                answer.results[j],
                limits=Limits(time=answer.state.seconds),
                n_jobs=self.engine.n_jobs,
            )
            return {**messages.swaps(self.dataset, found), "component": j}

        self._asked(make)

    def _sets(self, message: Mapping[str, Any]) -> None:
        within = real("within", message.get("within", 0.01), 0.0, MAX_WITHIN)

        def make(job: Job, answer: Answer) -> dict[str, Any]:
            state = answer.state
            if state.is_constrained:
                raise ValueError(
                    "Sets nearly as good are listed without constraints only; the "
                    "swaps above keep them."
                )
            found = alternatives(
                answer.cov,
                state.k,
                within,
                limits=Limits(time=state.seconds),
                n_jobs=self.engine.n_jobs,
            )
            return messages.sets(self.dataset, found)

        self._asked(make)

    def _stability(self, message: Mapping[str, Any]) -> None:
        resamples = whole("resamples", message.get("resamples", 20), 1, MAX_RESAMPLES)
        number = self.number

        def make(job: Job, answer: Answer) -> dict[str, Any]:
            state = answer.state
            if self.dataset.table.is_matrix or state.weight is not None:
                raise ValueError(
                    "Stability draws the samples again, for which there must be some, "
                    "and no background."
                )

            def tell(done: int, total: int) -> None:
                job.check()
                self.send({"type": "drawn", "done": done, "total": total}, number)

            found = stability(
                self.dataset.table.values,
                state.k,
                resamples,
                n_components=state.n_components,
                scheme=answer.scheme,
                center=self.dataset.center,
                scale=state.scale,
                constraints=self.engine.constraints(state),
                limits=Limits(time=3 * state.seconds),
                n_jobs=self.engine.n_jobs,
                progress=tell,
            )
            return messages.stability(self.dataset, found)

        self._asked(make)

    def _blocks(self, message: Mapping[str, Any]) -> None:
        def make(job: Job, answer: Answer) -> dict[str, Any]:
            thresholds = self.engine.thresholds(answer.state)
            blocks = blocks_at_levels(thresholds, answer.cov, answer.results)
            return {"type": "blocks", **blocks}

        self._asked(make)


def relaxations(state: State, names: tuple[str, ...]) -> list[tuple[str, State]]:
    """The state without all constraints, then without each, with words for what it is.

    Examples
    --------
    >>> from blockspca.explore.session import relaxations
    >>> from blockspca.explore.state import State
    >>> [words for words, _ in relaxations(State(exclude=(1,)), ("a", "b"))]
    ['b left out']
    """
    rows: list[tuple[str, State]] = []
    for i in state.include:
        kept = tuple(j for j in state.include if j != i)
        rows.append((f"{names[i]} kept in", replace(state, include=kept)))
    for i in state.exclude:
        kept = tuple(j for j in state.exclude if j != i)
        rows.append((f"{names[i]} left out", replace(state, exclude=kept)))
    if state.max_per_group is not None:
        words = f"at most {count(state.max_per_group, 'feature')} of a group"
        rows.append((words, replace(state, max_per_group=None)))
    if state.nonnegative:
        rows.append(("no negative loading", replace(state, nonnegative=False)))
    if len(rows) > 1:
        rows.insert(0, ("all constraints together", state.unconstrained()))
    return rows
