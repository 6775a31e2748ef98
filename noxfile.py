#!/usr/bin/env -S uv run --script
# /// script
# dependencies = ["nox>=2025.2.9"]
# ///
"""Tasks by nox, for who prefers it to run.sh."""

import nox

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv|virtualenv"


@nox.session
def tests(session: nox.Session) -> None:
    """Run the tests; arguments go to pytest."""
    session.install("-e", ".[test]")
    session.run("pytest", "--numprocesses", "auto", *session.posargs)


@nox.session(default=False, python="3.10")
def lowest(session: nox.Session) -> None:
    """Run tests with the lowest version of every dependency."""
    extras = ".[plot,report,explore,files,sdp,abess,anndata,data,dask]"
    tools = ("scanpy", "polars", "pytest", "pytest-xdist", "pytest-timeout")
    tools += ("hypothesis",)
    session.install("-c", "tests/lowest.txt", "-e", extras, *tools)
    chosen = session.posargs or ["tests/certify", "tests/io", "tests/plotting"]
    session.run("pytest", "--numprocesses", "auto", *chosen)


@nox.session(default=False)
def lint(session: nox.Session) -> None:
    """Run ruff and mypy."""
    session.install("-e", ".[test]")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy")


@nox.session(default=False)
def docs(session: nox.Session) -> None:
    """Build the documentation site in build/site."""
    session.install("-e", ".[docs]")
    session.run("mkdocs", "build", "--strict")


if __name__ == "__main__":
    nox.main()
