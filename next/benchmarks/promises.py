"""List what the old package at the root of the repository offers, in docs/promises.csv.

    PYTHONPATH=src python next/benchmarks/promises.py

The column `place` says where a promise goes: a room of the new house, a room and a new
name (`blocks as blocks.partition`), a decision (`decided: ...`), or `goes: ` and who
would miss it. Places that are in the file already are kept.
"""

from __future__ import annotations

import csv
import dataclasses
import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import typer

import blockspca
from blockspca.cli import app
from blockspca.io import FORMATS
from blockspca.reproduction import TABLES as TABLES_OF_THE_PAPER

ROOT = Path(__file__).resolve().parents[2]
OUTPUT = ROOT / "next" / "docs" / "promises.csv"
WRITTEN = re.compile(r"check_output\(\"(--[\w-]+)\"[^\"]*((?:\"\.\w+\"(?:, )?)+)\)")
TABLES = {
    "certified_path": "PATHS GAPS MODEL_1",
    "components": "PARTS SCHEMES PREDICTING",
    "constraints": "SETS",
    "scale": "CASES",
    "standardised": "OF_CORRELATIONS OF_MATRICES",
}

Row = tuple[str, str]  # kind and name


def parameters(name: str, value: Any) -> Iterator[Row]:
    """Yield the parameters of a function, or of the constructor of a class."""
    try:
        signature = inspect.signature(value)
    except ValueError:  # exceptions have none
        return
    for parameter in signature.parameters:
        if parameter not in ("self", "args", "kwargs"):
            yield "parameter", f"{name}({parameter})"


def members(name: str, value: type, bases: list[type]) -> Iterator[Row]:
    """Yield what a class and these of its bases offer."""
    fields = {}
    if dataclasses.is_dataclass(value):
        own = inspect.signature(value).parameters
        fields = {
            f.name: "attribute" for f in dataclasses.fields(value) if f.name in own
        }
    for base in bases:
        fields = dict(vars(base)) | fields
    section = (inspect.getdoc(value) or "").partition("Attributes\n-----")[2]
    section = re.split(r"\n\n[\w ]+\n---", section)[0]
    for line in re.findall(r"^(\w[\w, ]*) :", section, re.MULTILINE):
        fields = dict.fromkeys(line.split(", "), "attribute") | fields
    for key, member in sorted(fields.items(), key=str):
        if key.startswith("_"):
            continue
        if callable(member) or isinstance(member, (classmethod, staticmethod)):
            yield "method", f"{name}.{key}"
            yield from parameters(f"{name}.{key}", getattr(value, key))
        else:
            yield "attribute", f"{name}.{key}"


def public() -> Iterator[Row]:
    """Yield the public names of the package and of its public modules."""
    names = [(name, getattr(blockspca, name)) for name in blockspca.__all__]
    for module_name, module in list(names):
        if inspect.ismodule(module):
            listed = getattr(module, "__all__", ["sparse_pca"])  # tl has no list
            names += [(f"{module_name}.{key}", getattr(module, key)) for key in listed]
    listed_elsewhere = {value for _, value in names if inspect.isclass(value)}
    for name, value in names:
        yield "plot" if name.startswith("plotting.plot_") else "name", name
        if inspect.isclass(value):
            if not dataclasses.is_dataclass(value) and not issubclass(value, Enum):
                yield from parameters(name, value)
            bases = [
                base
                for base in value.__mro__
                if base.__module__.startswith("blockspca")
                and (base is value or base not in listed_elsewhere)
            ]
            listed_elsewhere.update(bases)  # a base of many schemes is listed once
            yield from members(name, value, bases)
        elif callable(value):
            yield from parameters(name, value)


def command_line() -> Iterator[Row]:
    """Yield commands with their arguments and options."""
    for name, command in typer.main.get_command(app).commands.items():
        yield "command", name
        for parameter in command.params:
            yield "option", f"{name} {parameter.opts[0]}"
    yield "option", "--version"
    yield "option", "--debug"
    checker = (ROOT / "src/blockspca/checker/__main__.py").read_text(encoding="utf-8")
    yield "command", "python -m blockspca.checker"
    for option in sorted(set(re.findall(r"\"(--[a-z-]+)\"", checker))):
        yield "option", f"python -m blockspca.checker {option}"


def files() -> Iterator[Row]:
    """Yield kinds of files that are read and written."""
    for ending in FORMATS:
        yield "file", f"read {ending}"
    for path in sorted((ROOT / "src/blockspca").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for option, endings in WRITTEN.findall(text):
            for ending in re.findall(r"\.\w+", endings):
                yield "file", f"{path.stem} {option} writes {ending}"
        for word in re.findall(
            r"\"(blockspca-(?:certificate|fit|proof|table))\"", text
        ):
            yield "file", f"format {word}"
        if path.parent.name in ("cli", "report", "explore"):
            for name in re.findall(r"\"([a-z]+\.(?:csv|json|html|h5ad))\"", text):
                if name not in ("page.html", "index.html"):
                    yield "file", f"{path.parent.name}/{path.stem} writes {name}"
    yield "file", "cli/fit writes certificate-J.json"
    yield "file", "cli/fit writes .h5ad"


def headings() -> Iterator[Row]:
    """Yield the headings of all pages."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    for page in pages:
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
        for heading in re.findall(r"^#{1,3} (.+)$", text, re.MULTILINE):
            yield "heading", f"{page.name}: {heading}"


def benchmarks() -> Iterator[Row]:
    """Yield the scripts that measure, and the rows of those that name them."""
    for path in sorted((ROOT / "benchmarks").glob("*.py")):
        yield "benchmark", path.name
    sys.path.insert(0, str(ROOT / "benchmarks"))
    for name, tables in TABLES.items():
        script = importlib.import_module(name)
        for table in tables.split():
            for row in getattr(script, table):
                text = ", ".join(map(str, row)) if isinstance(row, tuple) else row
                yield "benchmark", f"{name}.py {table}: {text}"
    for name in TABLES_OF_THE_PAPER:
        yield "benchmark", f"table of the paper: {name}"


def main() -> None:
    """Write the table with the places that it already has."""
    places = {}
    if OUTPUT.exists():
        with OUTPUT.open(encoding="utf-8", newline="") as file:
            lines = csv.DictReader(file)
            places = {(line["kind"], line["name"]): line["place"] for line in lines}
    parts = (public(), command_line(), files(), headings(), benchmarks())
    rows = dict.fromkeys(row for part in parts for row in part)
    with OUTPUT.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("kind", "name", "place"))
        writer.writerows((*row, places.get(row, "")) for row in rows)
    print(f"{len(rows)} promises, {sum(row not in places for row in rows)} new")


if __name__ == "__main__":
    main()
