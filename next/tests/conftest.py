"""Check that tests see this package; find the data folder; set up Hypothesis."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import hypothesis
import pytest

import blockspca

ROOT = Path(__file__).resolve().parent.parent
#: one run of the net on the old package; see base_adaptor.py
IS_BASE = bool(os.environ.get("BLOCKSPCA_BASE"))
collect_ignore = [] if IS_BASE else ["base_adaptor.py"]

if not IS_BASE and ROOT / "src" not in Path(blockspca.__file__).resolve().parents:
    raise RuntimeError(
        f"blockspca is imported from {blockspca.__file__}, not from {ROOT / 'src'}; "
        "run the tests by `sh run.sh test`."
    )

# Background jobs of a shell ignore Ctrl-C, which tests send to themselves.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

hypothesis.settings.register_profile(
    "push", max_examples=40, derandomize=True, deadline=None, database=None
)
hypothesis.settings.register_profile(
    "mutants", max_examples=10, derandomize=True, deadline=None, database=None
)
hypothesis.settings.register_profile(
    "nightly", max_examples=1000, derandomize=True, deadline=None, database=None
)
hypothesis.settings.register_profile(
    "fresh", max_examples=10**6, deadline=None, database=None, print_blob=True
)
hypothesis.settings.load_profile(os.environ.get("BLOCKSPCA_HYPOTHESIS", "push"))


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Return the folder of the real data sets, or skip."""
    folder = os.environ.get(
        "BLOCKSPCA_DATA", str(ROOT.parent.parent / "shared" / "data")
    )
    if not Path(folder).is_dir():
        pytest.skip(f"the real data sets are not in {folder}; set BLOCKSPCA_DATA")
    return Path(folder)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say how many calls of the net are not built yet."""
    skipped = terminalreporter.stats.get("skipped", [])
    count = sum("not built" in str(report.longrepr) for report in skipped)
    if count:
        terminalreporter.write_line(f"{count} tests of calls that are not built yet")
