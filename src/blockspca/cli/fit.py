"""`blockspca fit`: components of a file, as JSON and CSV."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..scheme_defaults import SchemeName
from .constraining import ConstraintOptions, price_lines, price_row
from .declaring import option
from .display import Display
from .h5ad import refuse_other_than_h5ad, write_h5ad
from .options import File, Force, ProofFile, ReadOptions, ShowOptions, SolveOptions
from .solving import ComponentOptions, Fit, end_of

if TYPE_CHECKING:
    from ..components import Components

FORMAT = "blockspca-fit"
SUMMARY = "summary.json"
LOADINGS = "loadings.csv"
SCORES = "scores.csv"


@dataclass(frozen=True)
class WriteOptions:
    """Where the results go."""

    output: Path | None = option(
        "A directory for JSON and CSV files, or, for an h5ad file, a new .h5ad file "
        "for the data with the results.",
        None,
        "--output",
        "-o",
    )
    as_json: bool = option("Print the summary as JSON.", False, "--json")
    proof: ProofFile = None
    force: Force = False

    @property
    def is_h5ad(self) -> bool:
        return self.output is not None and self.output.suffix.lower() == ".h5ad"

    def check(self, file: Path, reading: ReadOptions, n_components: int) -> None:
        """Refuse, before the work, a place where nothing could be written."""
        from ..io.writing import check_directory, check_free

        if self.proof is not None:
            check_free([self.proof], self.force)
        if self.output is None:
            return
        if self.is_h5ad:
            check_free([self.output], self.force)
            refuse_other_than_h5ad(file, reading)
            return
        proofs = (certificate_name(j) for j in range(n_components))
        names = [SUMMARY, LOADINGS, SCORES, *proofs]
        check_directory("--output", self.output, names, self.force)


def fit(
    file: File,
    asked: ComponentOptions,
    reading: ReadOptions,
    solving: SolveOptions,
    show: ShowOptions,
    constraining: ConstraintOptions,
    writing: WriteOptions,
) -> None:
    """Find components of k features each, with a proof of how good they are."""
    from ..io.writing import to_json
    from .solving import fit_components, write_proof

    display = Display(show)
    asked.sparsity()  # what is wrong with it is said before the file is read
    writing.check(file, reading, asked.n_components)
    from .loading import load

    loaded = load(file, reading, display)
    found = fit_components(
        loaded,
        asked,
        solving,
        display,
        constraining,
        proof=writing.proof is not None,
    )
    summary = summarise(found, None if writing.is_h5ad else writing.output)
    with saying_instead(found, display):
        if writing.proof is not None:
            write_proof(found.components, writing.proof, display)
        written = _write(found, summary, writing)
    if writing.as_json:
        typer.echo(to_json(summary), nl=False)
    else:
        for line in [*lines(found), *written]:
            display.say(line)
    end_of(found, display, solving)


def _write(found: Fit, summary: dict[str, Any], writing: WriteOptions) -> list[str]:
    """Write the results where they were asked for; return lines that say where."""
    from ..io.writing import to_json, write_files

    output = writing.output
    if output is None:
        return []
    if writing.is_h5ad:
        return [write_h5ad(found, output, writing.force)]
    files = {SUMMARY: to_json(summary), **tables(found), **certificates(found)}
    # Of a fit with more components, certificates would be left that belong to nothing.
    before = _files_of_previous(output) if writing.force else []
    written = write_files(output, files, force=writing.force)
    for path in before:
        if path not in written:  # it belongs to what was replaced
            path.unlink(missing_ok=True)
    names = ", ".join(path.name for path in written)
    return [f"Written to {output}: {names}"]


@contextmanager
def saying_instead(found: Fit, display: Display) -> Iterator[None]:
    """Print what was found if it cannot be written, as where a disk is full."""
    try:
        yield
    except OSError:
        for line in lines(found):
            display.say(line)
        raise


def _files_of_previous(output: Path) -> list[Path]:
    """Return the files that an earlier fit has written, by its summary."""
    try:
        content = json.loads((output / SUMMARY).read_text(encoding="utf-8"))
        ours, m = content["format"] == FORMAT, int(content["n_components"])
    except (OSError, ValueError, KeyError, TypeError):
        return []
    if not ours:
        return []

    def belongs(name: str) -> bool:
        number = re.fullmatch(r"certificate-([1-9][0-9]{0,9})\.json", name)
        return name in (LOADINGS, SCORES) or bool(number and int(number[1]) <= m)

    return [path for path in output.iterdir() if belongs(path.name)]


def certificate_name(index: int) -> str:
    """Return the name of the file for a component, counted from 0."""
    return f"certificate-{index + 1}.json"


def summarise(found: Fit, folder: Path | None) -> dict[str, Any]:
    """Return everything about a fit that is not a table, ready for JSON."""
    from .. import __version__

    components, loaded = found.components, found.loaded
    rows: list[dict[str, Any]] = components.to_rows()
    share: float | None = float(components.explained_variance_ratio.sum())
    r2: float | None = components.r2
    if loaded.cov.is_contrast:  # of no total variance would these be a share
        share, r2 = None, None
        rows = [row | {"ratio": None} for row in rows]
    return {
        "format": FORMAT,
        "version": 1,
        "blockspca": __version__,
        "file": str(loaded.file),
        "shape": list(loaded.table.shape),
        "reading": loaded.options.as_arguments(),
        "scheme": found.scheme.value,
        "n_components": len(components),
        "n_components_requested": found.n_components,
        "k_requested": list(components.sparsities),
        "components": rows,
        "prices": [price_row(result) for result in components.results],
        "explained_variance_ratio": share,
        "r2": r2,
        "in_turn": in_turn_row(components),
        "total_variance": components.total_variance,
        "joint_upper_bound": components.joint_upper_bound,
        "joint_gap": components.joint_gap,
        "pca_variance": None if found.pca is None else found.pca.tolist(),
        "seconds": found.seconds,
        "verify": verify_commands(found, folder),
    }


def in_turn_row(components: Components) -> dict[str, float] | None:
    """What the components would have been one after the other, if others were taken."""
    if components.in_turn is None:
        return None
    share = float(components.in_turn.explained_variance_ratio.sum())
    return {"explained_variance_ratio": share, "r2": components.in_turn.r2}


def verify_commands(found: Fit, folder: Path | None = None) -> tuple[str, ...]:
    """Return for each component the command that checks its certificate again.

    The certificates are in `folder`, or beside the user; the data where they were read.
    """

    scheme, n = found.scheme.value, len(found.components)
    return verify_words(found.loaded.file, found.loaded.options, scheme, n, folder)


def verify_words(
    file: Path, options: ReadOptions, scheme: str, n: int, folder: Path | None = None
) -> tuple[str, ...]:
    """The commands that check n certificates of a file, read as the options say."""
    names = [str((folder or Path()) / certificate_name(j)) for j in range(n)]
    commands = []
    for j, name in enumerate(names):
        words = ["blockspca", "verify", name, str(file), *options.as_arguments()]
        words += [word for earlier in names[:j] for word in ("--after", earlier)]
        if j and scheme != SchemeName.DISJOINT.value:
            words += ["--scheme", scheme]
        commands.append(shlex.join(words))
    return tuple(commands)


def tables(found: Fit) -> dict[str, str]:
    """Return the CSV files: loadings, and scores where there are samples."""
    from ..io.writing import loadings_csv, scores_csv

    components = found.components
    files = {LOADINGS: loadings_csv(r.loadings for r in components.results)}
    scores = found.loaded.scores(components.components)
    if scores is not None:
        files[SCORES] = scores_csv(scores, found.loaded.table.sample_names)
    return files


def certificates(found: Fit) -> dict[str, str]:
    """Return the certificates, one JSON file for each component."""
    return {
        certificate_name(j): result.certificate.to_json() + "\n"
        for j, result in enumerate(found.components.results)
        if result.certificate is not None
    }


def lines(found: Fit) -> list[str]:
    """Say what was found."""
    from .._messages import count, percent
    from ..components.shown import in_place_of, proof_of

    components, loaded = found.components, found.loaded
    n, d = loaded.table.shape
    size = count(d, "feature")
    if not loaded.table.is_matrix:
        size = f"{count(n, 'sample')} × {size}"
    said = [f"{loaded.file}: {size}"]
    if len(components) > 1:
        said += [f"{len(components)} components, --scheme {found.scheme.value}"]
    for j, result in enumerate(components.results):
        said += [
            "",
            f"component {j + 1}: {count(len(result.support), 'feature')}, "
            f"{variance_in_words(components, j)}, {proof_of(components, j)}",
            *(f"  {value:+.4f}  {name}" for name, value in result.loadings.items()),
            *price_lines(result),
        ]
    if loaded.cov.is_contrast:
        return said  # of no total variance would these be a share
    share = float(components.explained_variance_ratio.sum())
    explained = f"Explained: {percent(share)} of the variance"
    if found.pca is not None:
        ceiling = float(found.pca.sum()) / components.total_variance
        explained += (
            f"; PCA with all features reaches {percent(ceiling)} with "
            f"{count(len(components), 'component')}"
        )
    predicted = (
        f"Predicted from the scores: {percent(components.r2)} of the variance of all "
        f"{count(d, 'feature')}."
    )
    said += ["", f"{explained}.", predicted]
    if components.in_turn is not None:
        said += [in_place_of(components, "--scheme residual")]
    return said


def variance_in_words(components: Components, index: int) -> str:
    """Say what variance a component has, and of several what it adds to the others.

    That is its adjusted variance: what the scores before it do not explain.
    """
    from .._messages import percent

    variance = f"variance {components.explained_variance[index]:.6g}"
    if len(components) == 1 or not components.has_shares:
        return variance
    adds = components.adjusted_explained_variance[index]
    share = percent(float(components.explained_variance_ratio[index]))
    return f"{variance}, adds {adds:.6g} ({share})"
