"""`blockspca verify`: check certificates against the data they are about."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..scheme_defaults import SchemeName
from .declaring import whole
from .display import Display
from .errors import ExitCode
from .fit import LOADINGS, SUMMARY, certificate_name
from .options import File, ReadOptions, ShowOptions

if TYPE_CHECKING:
    from ..certificate import Certificate
    from ..certify.verification import Verification
    from ..components import Scheme
    from ..covariance.covariance import Covariance
    from ..result import Result
    from .loading import Loaded

# More than a certificate may have, and less than would fill the memory of a small
# machine.
MAX_BYTES = 512 * 2**20
# Of a summary that is read: each is a file that is looked for.
MAX_COMPONENTS = 10_000


def verify(
    certificate: Annotated[
        Path,
        typer.Argument(
            help="A certificate, a proof, or the directory that fit has written.",
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
    scheme: Annotated[
        SchemeName | None,
        typer.Option(
            "--scheme", help="How the components depend on each other, if no file says."
        ),
    ] = None,
    max_nodes: Annotated[
        int,
        typer.Option(
            "--max-nodes", help="Do not repeat searches of more nodes.", **whole(1)
        ),
    ] = 20_000,
) -> None:
    """Check every claim of a certificate, without the solver's compiled code.

    The summary.json that fit writes beside a certificate tells how the file was read
    and which components came before. Its numbers, and those of loadings.csv, are
    checked as well. A proof (fit --proof) is replayed step by step, which is faster.
    """
    from ..certify.verify import VerificationError
    from ..certify.verify import verify as check
    from ..components.checks import check_relations
    from ..components.earlier import check_earlier_bound
    from ..components.finish import check_finished
    from ..components.scheme_names import as_scheme
    from .loading import load

    display = Display(show)
    if is_proof(certificate):
        beside = _summary_of(certificate)
        if beside is not None and beside.is_about(file):
            reading = _as_fit_did(reading, beside, display)
        replay(certificate, file, reading, display)
        return
    if certificate.name == SUMMARY:
        raise ValueError(
            f"{certificate} is the summary of a fit, not a certificate; give its "
            f"directory, {certificate.parent}."
        )
    summary = _summary_of(certificate)
    reading = _as_fit_did(reading, summary, display)
    if certificate.is_dir():
        files = summary.certificates if summary else []
        first = 0
    else:
        files = [*(after or _before(certificate, summary)), certificate]
        first = len(files) - 1  # the earlier ones are taken as given
    claims = [_read(path) for path in files]
    for j, claim in enumerate(claims):
        _check_place(files[j], claim, j)
    chosen = as_scheme(_scheme_of(claims[-1], scheme).value)
    loaded = load(file, reading, display)
    cov = loaded.cov.formed()  # as `solve` did
    complete = True
    done: list[Verification] = []
    for j in range(first, len(files)):
        earlier = tuple(_as_result(claim, cov) for claim in claims[:j])
        with display.working(f"Checking {files[j]}"):
            problem = chosen.problem(cov, earlier)
            try:
                outcome = check(claims[j], problem, max_nodes=max_nodes)
            except VerificationError as error:
                raise VerificationError(f"{files[j]}: {error}") from None
            result = _as_result(claims[j], cov)
            outcome = check_finished(
                outcome, result, problem, cov, earlier, chosen, max_nodes
            )
            if first == 0:
                known = (*earlier, result)
                outcome = check_earlier_bound(outcome, cov, known, j, chosen, done)
                done.append(outcome)
        display.say(str(files[j]))
        for line in str(outcome).splitlines():
            display.say(f"  {line}")
        complete &= outcome.complete
    results = tuple(_as_result(claim, cov) for claim in claims)
    for line in check_relations(results, chosen) if len(results) > 1 else ():
        display.say(line)
    only = _compare_written(files[-1], summary, results, chosen, loaded, first)
    if only:
        display.say(only)
    if not complete:
        display.say("Holds as far as it was checked; raise --max-nodes for the rest.")
        raise typer.Exit(ExitCode.NOT_PROVED)
    display.say("Every claim holds.")


def is_proof(path: Path) -> bool:
    """Tell whether a file begins as a proof does; see docs/proof-format.md."""
    from ..proof_file import FORMAT

    if not path.is_file():
        return False
    with path.open("rb") as file:
        return FORMAT.encode() in file.read(200)


def replay(proof: Path, data: Path, reading: ReadOptions, display: Display) -> None:
    """Check a proof by the checker, which shares nothing with the solver."""
    import numpy as np

    from ..certify.verification import VerificationError
    from ..checker.check import check_proof
    from ..checker.proof_file import ProofError
    from .loading import read_for_proof

    values = read_for_proof(data, reading, display).values
    dense = values.toarray() if hasattr(values, "toarray") else values
    with display.working(f"Checking {proof}"):
        try:
            verdict = check_proof(proof, np.asarray(dense, dtype=np.float64))
        except ProofError as error:
            said = f"{proof}: {error}"
            if str(error).startswith(("these are other data", "the data are")):
                said += "; read the file with the options of fit, such as --drop,"
                said += " --index or --na"
            raise VerificationError(f"{said}.") from None
    for line in str(verdict).splitlines():
        display.say(line)
    display.say("The proof holds.")


@dataclass(frozen=True)
class _Summary:
    """The summary.json of a fit."""

    path: Path
    content: dict[str, Any]
    certificates: list[Path]
    reading: ReadOptions

    def is_about(self, file: Path) -> bool:
        """Whether fit has read a file of this name; a proof may lie beside another."""
        return Path(str(self.content.get("file", ""))).name == file.name


def _summary_of(certificate: Path) -> _Summary | None:
    """Return the summary in a directory, or beside a certificate; None without one."""
    folder = certificate if certificate.is_dir() else certificate.parent
    path = folder / SUMMARY
    if not path.exists():
        if certificate.is_dir():
            raise ValueError(f"{folder} has no summary.json; fit writes one.")
        return None
    try:
        content: Any = json.loads(path.read_text(encoding="utf-8"))
        reading = ReadOptions.from_arguments([str(word) for word in content["reading"]])
        m = int(content["n_components"])
        if not 1 <= m <= MAX_COMPONENTS:
            raise ValueError
    except (OSError, ValueError, KeyError, TypeError):
        if certificate.is_dir():
            raise ValueError(f"{path} is not a summary that fit has written.") from None
        return None
    files = [folder / certificate_name(j) for j in range(m)]
    return _Summary(path, content, files, reading)


def _compare_written(
    certificate: Path,
    summary: _Summary | None,
    results: tuple[Result, ...],
    scheme: Scheme,
    loaded: Loaded,
    first: int,
) -> str:
    """Raise if the other files of the fit contradict the certificate.

    Return what there was nothing to compare with, as a sentence; else "".
    """
    from ..certify.verify import VerificationError
    from ..components.solve import collect
    from .compare_outputs import loadings_difference, summary_difference

    if summary is None or certificate not in summary.certificates:
        return "Only the certificate was checked: there is no summary beside it."
    expected = collect(loaded.cov, results, scheme)
    shape = list(loaded.table.shape)
    said = summary_difference(summary.content, expected, first, shape)
    if said:
        raise VerificationError(f"{summary.path}: {said}.")
    table = summary.path.with_name(LOADINGS)
    if not table.exists():
        return f"There is no {table}; only summary.json and certificates were checked."
    if said := loadings_difference(table, expected, first):
        raise VerificationError(f"{table}: {said}.")
    return ""


def _as_fit_did(
    reading: ReadOptions, summary: _Summary | None, display: Display
) -> ReadOptions:
    """Read the file with the options of fit; those that are given replace its own."""
    if summary is None:
        return reading
    chosen = summary.reading.replaced_by(reading)
    words = " ".join(chosen.as_arguments()) or "no options"
    if chosen != summary.reading:
        before = " ".join(summary.reading.as_arguments()) or "no options"
        display.note(f"note: reading {words}; fit has read the file with {before}.")
    elif reading != chosen:
        display.note(f"reading {words}, as fit did.")
    return chosen


def _before(certificate: Path, summary: _Summary | None) -> list[Path]:
    """Return the certificates that fit has written before this one."""
    files = [] if summary is None else summary.certificates
    names = [path.name for path in files]
    return files[: names.index(certificate.name)] if certificate.name in names else []


def _check_place(path: Path, claim: Certificate, index: int) -> None:
    if claim.component == index + 1:
        return
    raise ValueError(
        f"{path} is about component {claim.component} of several, not component "
        f"{index + 1}; give the directory that fit has written, or the certificates of "
        "the earlier components, in order, each with --after."
    )


def _scheme_of(claim: Certificate, scheme: SchemeName | None) -> SchemeName:
    """Return the scheme that a certificate names; it must be the one asked for."""
    from .solving import scheme_called

    known = scheme_called(claim.scheme)
    if not claim.scheme:
        return scheme or SchemeName.DISJOINT
    if known is None:
        raise ValueError(
            f"the certificate is for the scheme {claim.scheme!r}, which is not one of "
            "ours; check it in Python with Components.verify."
        )
    if scheme not in (None, known):
        raise ValueError(
            f"--scheme {scheme.value} is not that of the certificate, {known.value}; "
            "leave it out."
        )
    return known


def _read(path: Path) -> Certificate:
    from ..certificate import Certificate
    from ..certify.verification import VerificationError
    from ..status import NotProvedError

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
    except NotProvedError as error:
        raise VerificationError(f"{path}: {error}") from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _as_result(claim: Certificate, cov: Covariance) -> Result:
    """Return the component of a certificate, with the names of the file."""
    d = cov.n_features
    if claim.n_features != d:
        raise ValueError(
            f"an earlier certificate is for {claim.n_features} features, the file has "
            f"{d}; the two do not belong together."
        )
    return claim.as_result(feature_names=cov.feature_names)
