"""Groups of features from a text file, or from a column of `var` of an h5ad file."""

from __future__ import annotations

from pathlib import Path

from .columnar import var_column
from .errors import Argument, ReadError


def text_lines(path: Path, asked: Argument) -> list[str]:
    """Return the lines of a text file that are not empty; `asked` named it."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ReadError(f"{asked}: {error.strerror}.", asked) from None
    except UnicodeDecodeError:
        raise ReadError(f"{asked} is not UTF-8 text.", asked) from None
    return [line for line in text.splitlines() if line.strip()]


def read_groups(
    source: str, data: Path, names: tuple[str, ...] | None
) -> list[str] | dict[str, str]:
    """Read a label for each feature.

    Parameters
    ----------
    source : str
        A text file, of one label a line in the order of the features, or of a feature
        and its label in each line, with a tab, a comma or spaces between them. Or, if
        the data are an h5ad file, the name of a column of its `var`.
    data : Path
        The file of the data.
    names : tuple of str, optional
        Of the features: by them a feature and its label are told from a label with a
        space.
    """
    path, asked = Path(source), Argument("groups", source)
    if not path.is_file():
        if data.suffix.lower() == ".h5ad":
            return var_column(data, source)
        raise ReadError(
            f"{asked} is not a file; give a text file with a feature and its group in "
            "each line, or, of an h5ad file, a column of var.",
            asked,
        )
    lines = [line.strip() for line in text_lines(path, asked)]
    if not lines:
        raise ReadError(f"{asked} is empty.", asked)
    mark = next((mark for mark in ("\t", ",") if all(mark in row for row in lines)), "")
    halves = _halves(lines, mark, frozenset(names or ()))
    if halves is None:
        return lines
    found: dict[str, str] = {}
    for number, (feature, label) in enumerate(halves, 1):
        if feature in found:
            raise ReadError(f"{asked}, line {number}: {feature!r} again.", asked)
        if not label:
            raise ReadError(f"{asked}, line {number}: {feature!r} has no group.", asked)
        found[feature] = label
    return found


def _halves(
    lines: list[str], mark: str, names: frozenset[str]
) -> list[tuple[str, str]] | None:
    """The feature and the label of each line; None if lines are labels alone.

    Names, or labels, may have spaces: without a mark all lines have to begin with the
    name of a feature, up to the last space or up to the first.
    """
    if mark:
        cut = (line.rpartition(mark) for line in lines)
        return [(feature.strip(), label.strip()) for feature, _, label in cut]
    for divide in (str.rpartition, str.partition):
        halves = [divide(line, " ") for line in lines]
        found = [(feature.strip(), label.strip()) for feature, _, label in halves]
        if all(feature in names and label for feature, label in found):
            return found
    return None
