"""`blockspca verify`: check certificates against the data they are about."""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass
from itertools import repeat
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
    from ..components.scheme import BaseScheme
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
    and which components came before. What these determine of it and of loadings.csv is
    compared, and the rest is named. A proof (fit --proof) is replayed step by step,
    which is faster.
    """
    from ..components.checks import check_relations
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
    everything = certificate.is_dir()
    files = summary.certificates if everything and summary else []
    if not everything:
        files = [*(after or _before(certificate, summary)), certificate]
    claims = [_read(path) for path in files]
    for j, claim in enumerate(claims):
        _check_place(files[j], claim, j)
    called = _scheme_of(claims[-1], scheme)
    chosen = as_scheme(called.value)
    loaded = load(file, reading, display)
    cov = loaded.cov.formed()  # as `solve` did
    results = tuple(map(_as_result, files, claims, repeat(cov)))
    complete = True
    done: list[Verification] = []
    # of one certificate, the earlier ones are taken as given
    for j in range(0 if everything else len(files) - 1, len(files)):
        with display.working(f"Checking {files[j]}"):
            earlier = done if len(done) == j else None
            outcome = _check(files[j], cov, results, j, chosen, earlier, max_nodes)
        done.append(outcome)
        display.say(str(files[j]))
        for line in str(outcome).splitlines():
            display.say(f"  {line}")
        complete &= outcome.complete
    for line in check_relations(results, chosen) if len(results) > 1 else ():
        display.say(line)
    beside = summary if summary and files[-1] in summary.certificates else None
    for line in _compare_written(beside, everything, results, chosen, loaded, called):
        display.say(line)
    if not complete:
        display.say("Holds as far as it was checked; raise --max-nodes for the rest.")
        raise typer.Exit(ExitCode.NOT_PROVED)
    display.say("Every claim holds.")


def _check(
    path: Path,
    cov: Covariance,
    results: tuple[Result, ...],
    index: int,
    scheme: BaseScheme,
    done: list[Verification] | None,
    max_nodes: int,
) -> Verification:
    """Check one component, and name its file in what is wrong with it."""
    from ..certify.verification import VerificationError
    from ..components.verified import check_component

    try:
        return check_component(
            cov, results, index, scheme, results[:index], done, max_nodes=max_nodes
        )
    except VerificationError as error:
        raise VerificationError(f"{path}: {error}") from None


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
        said = f"{path} is not a summary that fit has written"
        if certificate.is_dir():
            raise ValueError(f"{said}.") from None
        warnings.warn(
            f"{said}: how the file was read, and which components came before, is not "
            "taken from it.",
            stacklevel=2,
        )
        return None
    files = [folder / certificate_name(j) for j in range(m)]
    return _Summary(path, content, files, reading)


def _compare_written(
    summary: _Summary | None,
    everything: bool,
    results: tuple[Result, ...],
    scheme: BaseScheme,
    loaded: Loaded,
    called: SchemeName,
) -> list[str]:
    """Raise if the other files of the fit contradict the certificates.

    Return what was not compared, as sentences. Without `everything`, only the last of
    the components is.
    """
    from ..certify.verification import VerificationError
    from ..components.solve import collect
    from . import compare_outputs as compare

    if summary is None:
        return ["Only the certificate was checked: no summary goes with it."]
    content, m = summary.content, len(results)
    asked = content.get("k_requested", [])  # older versions do not write it
    if not compare.may_be_requested(asked, results):
        raise VerificationError(
            f"{summary.path}: k_requested is {asked!r}, by the certificates at least "
            f"{[result.k for result in results]}."
        )
    # Without the joint proof, which is not stored and would take as long as the fit.
    expected = collect(loaded.cov, results, scheme, sparsities=asked, prove=False)
    places, fields, left = range(m - 1, m), {}, [f"all but component {m}"]
    if everything:
        named = called if m > 1 else None  # the first belongs to all schemes
        fields = compare.expected_summary(content, expected, loaded, named)
        places, left = range(m), compare.not_derived(content, fields, expected)
    if said := compare.summary_difference(content, expected, places, fields):
        raise VerificationError(f"{summary.path}: {said}.")
    lines = [f"{summary.path}: nothing confirms {', '.join(left)}."]
    table = summary.path.with_name(LOADINGS)
    if not table.exists():
        return [
            *lines,
            f"There is no {table}; only summary.json and certificates were checked.",
        ]
    if said := compare.loadings_difference(table, expected, places, everything):
        raise VerificationError(f"{table}: {said}.")
    return lines


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


def _as_result(path: Path, claim: Certificate, cov: Covariance) -> Result:
    """Return the component of a certificate, with the names of the file."""
    from ..certify.verification import VerificationError

    if claim.n_features != cov.n_features:
        raise VerificationError(
            f"{path}: it is for {claim.n_features} features, and the file has "
            f"{cov.n_features}."
        )
    return claim.as_result(feature_names=cov.feature_names)
