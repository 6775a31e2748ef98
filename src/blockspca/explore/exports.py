"""The files that an explorer exports: scripts, tables, a report, certificates."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable

from ..components.recording import check_recorded, recorded_apart
from ..components.solve import collect
from ..io.writing import loadings_csv, scores_csv
from ..limits import Budget, Limits
from ..status import Status
from .engine import Answer, Engine
from .scripts import script
from .state import State

TEXT = "text/plain; charset=utf-8"
CSV = "text/csv; charset=utf-8"
JSON = "application/json"


def _script(engine: Engine, answer: Answer) -> bytes:
    return script(engine.dataset, answer.state).encode()


def commands(engine: Engine, state: State) -> list[str]:
    """The command that finds the components, and those that check them; maybe none."""
    make = engine.dataset.source.commands
    return [] if make is None else make(state, engine.dataset.names)


def _command(engine: Engine, answer: Answer) -> bytes:
    found = commands(engine, answer.state)
    if not found:
        raise ValueError("data in memory have no command; take the Python script.")
    return (found[0] + "\n").encode()


def _loadings(engine: Engine, answer: Answer) -> bytes:
    return loadings_csv(result.loadings for result in answer.results).encode()


def _scores(engine: Engine, answer: Answer) -> bytes:
    dataset = engine.dataset
    scores = dataset.scores(answer.components, answer.state.scale)
    if scores is None:
        raise ValueError("a matrix has no samples, hence no scores.")
    return scores_csv(scores, dataset.sample_names).encode()


def _certificates(engine: Engine, answer: Answer) -> bytes:
    """All certificates, as `blockspca verify` takes them one after the other."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for j, result in enumerate(answer.results):
            text = "{}" if result.certificate is None else result.certificate.to_json()
            archive.writestr(f"certificate-{j + 1}.json", text + "\n")
        found = commands(engine, answer.state)
        if found:
            archive.writestr("verify.txt", "\n".join(found[1:]) + "\n")
    return held.getvalue()


def _proof(engine: Engine, answer: Answer) -> bytes:
    """The proof of all components, which `python -m blockspca.checker` checks."""
    state = answer.state
    check_recorded(answer.cov, answer.scheme, len(answer.results), {})
    limits = Limits(time=state.seconds)
    proof = recorded_apart(answer.cov, answer.results, limits, answer.scheme)
    return proof.to_text().encode()


def _state(engine: Engine, answer: Answer) -> bytes:
    return (json.dumps(answer.state.to_dict(), indent=2) + "\n").encode()


def _report(engine: Engine, answer: Answer) -> bytes:
    from ..report.page import build_report, report_of

    dataset, state = engine.dataset, answer.state
    held = dataset.labels.get(state.label or "")
    interrupted = answer.results[-1].status is Status.INTERRUPTED
    budget = Budget(Limits(time=state.seconds))
    asked = (state.k,) * state.n_components
    page = report_of(
        answer.cov,
        collect(answer.cov, answer.results, answer.scheme, budget, sparsities=asked),
        dataset.name,
        {
            "matrix": dataset.table.is_matrix,
            "center": dataset.center,
            "scale": state.scale,
            "missing": dataset.missing,
            "constant": dataset.constant,
        },
        _said(engine, answer),
        path=None if interrupted else engine.path(state),
        scores=dataset.scores(answer.components, state.scale),
        sample_names=dataset.table.sample_names,
        verify_commands=tuple(commands(engine, state)[1:]),
        labels=None if held is None else tuple(str(one) for one in held),
        label_name=state.label or "label",
        seconds=sum(result.time for result in answer.results),
        n_requested=state.n_components,
    )
    return build_report(page).encode()


def _said(engine: Engine, answer: Answer) -> dict[str, object]:
    state, names = answer.state, engine.dataset.names
    return {
        "k": state.k,
        "components": state.n_components,
        "scheme": state.scheme,
        "scaled": state.scale or None,
        "kept in": ", ".join(names[i] for i in state.include),
        "left out": ", ".join(names[i] for i in state.exclude),
        "at most per group": state.max_per_group,
        "no negative loading": state.nonnegative or None,
        "weight of the background": state.weight,
        "command": " ".join(commands(engine, state)[:1]),
    }


#: Name of the file, its kind, and what makes it.
EXPORTS: dict[str, tuple[str, Callable[[Engine, Answer], bytes]]] = {
    "script.py": (TEXT, _script),
    "command.txt": (TEXT, _command),
    "loadings.csv": (CSV, _loadings),
    "scores.csv": (CSV, _scores),
    "report.html": ("text/html; charset=utf-8", _report),
    "certificates.zip": ("application/zip", _certificates),
    "component.proof": (TEXT, _proof),
    "state.json": (JSON, _state),
}
