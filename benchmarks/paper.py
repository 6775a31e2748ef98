"""Every table of the paper, as `blockspca reproduce all` measures it.

python benchmarks/run.py paper

`blockspca reproduce all --output DIR` writes the same tables as single files, from
which docs/generate_results.py makes the page of results.
"""

from __future__ import annotations

from blockspca.reproduction import (
    TABLES,
    Measurements,
    Settings,
    reproduce,
    warm_up,
)
from blockspca.reproduction.measurements import QUICK_SECONDS, SECONDS
from common import DATA, Options, Report


def report(options: Options) -> Report:
    limit = QUICK_SECONDS if options.quick else SECONDS
    measurements = Measurements(Settings(DATA, limit, options.quick))
    warm_up()
    found = Report("The tables of the paper", [f"Time limit of a run: {limit:g} s."])
    for name in TABLES:
        table = reproduce(name, measurements)
        columns = {c.key: (c.heading, c.form) for c in table.columns}
        found.add(table.title, columns, table.to_dict()["rows"])
        found.notes += [note for note in table.notes if note not in found.notes]
    return found
