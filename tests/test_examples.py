"""Every example runs, prints something and draws something."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("plot_*.py"))


def test_there_are_examples():
    assert len(EXAMPLES) >= 5


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_it_runs(path, capsys, monkeypatch):
    from matplotlib import pyplot as plt

    monkeypatch.setattr(plt, "show", lambda: None)
    plt.close("all")
    names = runpy.run_path(str(path))
    assert names["__doc__"].splitlines()[1].startswith("===")
    assert capsys.readouterr().out
    assert plt.get_fignums()
    for number in plt.get_fignums():
        plt.figure(number).canvas.draw()
    plt.close("all")
