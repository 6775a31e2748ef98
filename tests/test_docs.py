"""The site has every page, and every page has a place in it."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_every_page_is_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").split("nav:")[1]
    listed = re.findall(r": ([\w-]+\.md)$", navigation, re.MULTILINE)
    pages = {path.name for path in (ROOT / "docs").glob("*.md")}
    assert sorted(listed) == sorted(pages), "add new pages to nav in mkdocs.yml"


def test_every_page_is_in_the_readme():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    linked = set(re.findall(r"\(docs/([\w-]+\.md)\)", readme))
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} - {"index.md"}
    assert linked == pages, "list new pages under More in README.md"


def test_every_parameter_of_scikit_learn_has_an_answer():
    from sklearn.decomposition import SparsePCA

    page = (ROOT / "docs" / "from-scikit-learn.md").read_text(encoding="utf-8")
    for name in SparsePCA().get_params():
        assert f"`{name}`" in page


def test_exit_codes_are_documented():
    from blockspca.cli.errors import MEANING

    page = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| (\d+) \|", page, re.MULTILINE)
    assert [int(code) for code in listed] == [int(code) for code in MEANING]


def test_every_command_is_documented():
    from typer.main import get_command

    from blockspca.cli import app

    page = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    commands = get_command(app).commands  # type: ignore[attr-defined]
    assert {f"| `{name}` |" in page for name in commands} == {True}


def test_every_public_name_is_in_the_api_page():
    import blockspca

    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    modules = {"__version__", *blockspca._MODULES}
    absent = [
        name
        for name in blockspca.__all__
        if name not in modules and not re.search(rf"\.{name}\b", page)
    ]
    assert absent == []
