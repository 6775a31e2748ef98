"""`blockspca info`: versions, formats, solvers, extras, exit codes."""

from __future__ import annotations

from typing import Annotated

import typer

from .errors import MEANING

_PACKAGES = {
    "numpy": "",
    "scipy": "",
    "scikit-learn": "",
    "numba": "",
    "joblib": "",
    "matplotlib": "pictures: pip install 'blockspca[plot]'",
    "jinja2": "the report: pip install 'blockspca[report]'",
    "pandas": "to_frame: pip install pandas",
    "pyarrow": "Parquet files: pip install pyarrow",
    "h5py": "h5ad files: pip install h5py",
    "zarr": "Zarr stores: pip install zarr",
}


def info(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show versions, file formats, solvers with what they promise, exit codes."""
    import os
    import platform

    from .. import __version__
    from ..io import FORMATS
    from ..io.writing import to_json

    found = {name: _version(name) for name in _PACKAGES}
    solvers = _solvers()
    if as_json:
        content = {
            "blockspca": __version__,
            "python": platform.python_version(),
            "platform": platform.platform(),
            "cores": os.cpu_count(),
            "packages": found,
            "formats": FORMATS,
            "solvers": solvers,
            "exit_codes": {int(code): text for code, text in MEANING.items()},
        }
        typer.echo(to_json(content), nl=False)
        return
    typer.echo(f"blockspca {__version__}, Python {platform.python_version()}")
    typer.echo(f"{platform.platform()}, {os.cpu_count()} cores")
    typer.echo("\npackages")
    for name, version in found.items():
        missing = f"not installed; for {_PACKAGES[name]}"
        typer.echo(f"  {name:<14}{version or missing}")
    typer.echo(f"\nfiles\n  {' '.join(FORMATS)}")
    typer.echo("\nsolvers of blocks, and what they promise beforehand")
    for name, promise in solvers.items():
        typer.echo(f"  {name:<26}{promise}")
    typer.echo("\nexit codes")
    for code, text in MEANING.items():
        typer.echo(f"  {int(code):<5}{text}")


def _solvers() -> dict[str, str]:
    """Return for each solver its promise, with numbers for 10 of 1000 features."""
    import math

    from ..solvers.registry import SOLVERS

    k, d = 10, 1000
    promises = {}
    for name in sorted(SOLVERS):
        guarantee = SOLVERS[name].guarantee
        factor, error = guarantee.factor(k, d), guarantee.error(k, d)
        if math.isinf(factor):
            promises[name] = "nothing: a heuristic"
        elif factor == 1 and error == 0:
            promises[name] = "the optimum"
        else:
            less = f" − {error:.4g}" if error else ""
            promises[name] = f"optimum / {factor:.4g}{less} for k = {k}, d = {d}"
        if guarantee.assumes_psd:
            promises[name] += ", if positive semidefinite"
    return promises


def _version(package: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return None
