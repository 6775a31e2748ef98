"""`blockspca verify`: check certificates against the data they are about."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .display import Display
from .errors import ExitCode
from .options import File, ReadOptions, ShowOptions, spread
from .solving import SchemeName, SchemeOption

if TYPE_CHECKING:
    from ..certify.certificate import Certificate
    from ..result import Result

MAX_BYTES = 512 * 2**20
MAX_COMPONENTS = 10_000


def register(app: typer.Typer) -> None:
    app.command()(spread(verify))


def verify(
    certificate: Annotated[
        Path,
        typer.Argument(
            help="A certificate, or the directory that fit has written.",
            show_default=False,
        ),
    ],
    file: File,
    reading: ReadOptions,
    show: ShowOptions,
    after: Annotated[
        list[Path] | None,
        typer.Option(
            "--after",
            help="Certificates of the earlier components, in order; may be repeated.",
        ),
    ] = None,
    scheme: SchemeOption = SchemeName.DISJOINT,
    max_nodes: Annotated[
        int, typer.Option("--max-nodes", min=1, help="Larger proofs are not redone.")
    ] = 20_000,
) -> None:
    """Recompute every claim of a certificate, independently of the solver."""
    from ..certify.verify import verify as check
    from .loading import load
    from .solving import as_scheme

    display = Display(show)
    if certificate.is_dir():
        files, scheme, arguments = _of_directory(certificate)
        first = 0
        if arguments != reading.as_arguments():
            asked = " ".join(arguments) or "no options"
            display.note(f"note: fit has read the file with {asked}.")
    else:
        files = [*(after or []), certificate]
        first = len(files) - 1  # the earlier ones are taken as given
    claims = [_read(path) for path in files]
    cov = load(file, reading, display).cov
    complete = True
    for j in range(first, len(files)):
        earlier = tuple(_as_result(claim, cov.n_features) for claim in claims[:j])
        with display.working(f"Checking {files[j]}"):
            problem = as_scheme(scheme).problem(cov, earlier)
            outcome = check(claims[j], problem, max_nodes=max_nodes)
        display.say(str(files[j]))
        for line in str(outcome).splitlines():
            display.say(f"  {line}")
        complete &= outcome.complete
    if not complete:
        display.say("Holds as far as it was checked; raise --max-nodes for the rest.")
        raise typer.Exit(ExitCode.NOT_PROVED)
    display.say("Every claim holds.")


def _read(path: Path) -> Certificate:
    from ..certify.certificate import Certificate

    try:
        if path.stat().st_size > MAX_BYTES:
            raise ValueError(f"{path} is larger than any certificate of ours.")
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ValueError(f"{path} does not exist; check the name.") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not a certificate: it is not text.") from None
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}.") from None
    try:
        return Certificate.from_json(text)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _of_directory(directory: Path) -> tuple[list[Path], SchemeName, list[str]]:
    """Return the certificates that fit has written, its scheme, how it has read."""
    path = directory / "summary.json"
    try:
        content: Any = json.loads(path.read_text(encoding="utf-8"))
        scheme = SchemeName(content["scheme"])
        arguments = [str(word) for word in content["reading"]]
        m = min(int(content["n_components"]), MAX_COMPONENTS)
    except FileNotFoundError:
        raise ValueError(f"{directory} has no summary.json; fit writes one.") from None
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"{path} is not a summary that fit has written.") from None
    files = [directory / f"certificate-{j + 1}.json" for j in range(m)]
    return files, scheme, arguments


def _as_result(claim: Certificate, d: int) -> Result:
    """Return the component of a certificate; deflation needs no more of a result."""
    import numpy as np

    from ..result import Result

    if claim.n_features != d:
        raise ValueError(
            f"an earlier certificate is for {claim.n_features} features, the file has "
            f"{d}; the two do not belong together."
        )
    x = np.zeros(d)
    x[list(claim.support)] = claim.loadings
    return Result(
        x=x,
        support=np.array(claim.support, dtype=np.intp),
        objective=claim.objective,
        upper_bound=claim.upper_bound,
        status=claim.status,
        k=claim.k,
        n_features=d,
    )
