"""What a release promises: lowest versions, one version, workflows that are pinned."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import blockspca

try:
    import tomllib
except ImportError:  # Python 3.10
    tomllib = pytest.importorskip("tomli")

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[
    "project"
]
EXTRAS = (
    "plot",
    "report",
    "explore",
    "files",
    "sdp",
    "abess",
    "anndata",
    "data",
    "dask",
)


def lower_bounds() -> dict[str, str]:
    asked = [*PROJECT["dependencies"]]
    for extra in EXTRAS:
        asked += PROJECT["optional-dependencies"][extra]
    return dict(re.sub(r"\[.*\]", "", text).split(">=") for text in asked)


def same(version: str, other: str) -> bool:
    """Whether 1.4 and 1.4.0 are meant to be one."""
    first, second = ([int(p) for p in text.split(".")] for text in (version, other))
    longest = max(len(first), len(second))
    pad = [part + [0] * (longest - len(part)) for part in (first, second)]
    return pad[0] == pad[1]


def test_the_lowest_versions_are_those_of_the_project():
    lines = (ROOT / "tests" / "lowest.txt").read_text().splitlines()
    lines = [line.split("#")[0].strip() for line in lines]
    pins = dict(line.split("==") for line in lines if line)
    bounds = lower_bounds()
    assert set(bounds) <= set(pins)
    for name, version in bounds.items():
        assert same(version, pins[name]), name


def test_the_lowest_versions_are_installed_with_every_extra():
    extras = f".[{','.join(EXTRAS)}]"
    workflow = (ROOT / ".github" / "workflows" / "test.yml").read_text()
    assert f'-c tests/lowest.txt -e "{extras}"' in workflow
    assert extras in (ROOT / "noxfile.py").read_text()


def test_the_recipe_asks_for_the_same_versions():
    recipe = (ROOT / "conda" / "recipe.yaml").read_text()
    for text in PROJECT["dependencies"]:
        name, version = text.split(">=")
        assert f"- {name} >={version}" in recipe
    assert f'version: "{PROJECT["version"]}"' in recipe
    assert PROJECT["version"] == blockspca.__version__
    least = PROJECT["requires-python"].removeprefix(">=")
    assert f'python_min: "{least}"' in recipe


def test_what_registries_ask_for_is_listed_and_there():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = text.split("## Registries")[1].split("\n## ")[0]
    named = re.findall(r"`([\w./-]+/[\w./-]+|[A-Z_]+\.md|LICENSE)`", table)
    assert len(named) > 12
    for path in named:
        assert (ROOT / path).exists(), path
    for test in re.findall(r"::(test_\w+)", table):
        found = [p for p in (ROOT / "tests").rglob("*.py") if test in p.read_text()]
        assert found, test


def test_bug_reports_ask_for_versions():
    template = ROOT / ".github" / "ISSUE_TEMPLATE" / "bug.yml"
    assert "blockspca info" in template.read_text(encoding="utf-8")
    assert (ROOT / "CODE_OF_CONDUCT.md").exists()


def test_actions_are_pinned_to_commits():
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        for action in re.findall(r"uses: (\S+)", path.read_text()):
            assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", action), (path.name, action)


def test_every_system_and_every_end_of_the_versions_is_tested():
    text = (ROOT / ".github" / "workflows" / "test.yml").read_text(encoding="utf-8")
    asked = set(re.findall(r"os: (\w+)-latest, python: \"3.(\d+)\"", text))
    least = PROJECT["requires-python"].removeprefix(">=3.")
    most = max(
        (t.rpartition(".")[2] for t in PROJECT["classifiers"] if "Python :: 3." in t),
        key=int,
    )
    assert {(system, most) for system in ("ubuntu", "macos", "windows")} <= asked
    assert ("ubuntu", least) in asked
    lowest = text.split("\n  lowest:")[1].split("\n  prereleases:")[0]
    assert f'python-version: "3.{least}"' in lowest
    assert "--ignore-glob" not in lowest  # every test that can run there does
    for words in ("pip install --pre", "--cov=blockspca", "sh run.sh build"):
        assert words in text


def test_releases_need_no_password_and_workflows_are_looked_after():
    folder = ROOT / ".github"
    release = (folder / "workflows" / "release.yml").read_text(encoding="utf-8")
    assert "id-token: write" in release
    assert "secrets." not in release
    assert "zizmor" in (folder / "workflows" / "zizmor.yml").read_text(encoding="utf-8")
    assert "github-actions" in (folder / "dependabot.yml").read_text(encoding="utf-8")


def test_every_python_that_is_promised_has_a_classifier():
    least = int(PROJECT["requires-python"].removeprefix(">=3."))
    minor = [
        int(text.rpartition(".")[2])
        for text in PROJECT["classifiers"]
        if re.fullmatch(r"Programming Language :: Python :: 3\.\d+", text)
    ]
    assert minor == list(range(least, max(minor) + 1))
    assert PROJECT["license"] == "MIT"
    assert "Typing :: Typed" in PROJECT["classifiers"]
