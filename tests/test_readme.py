"""The README's promises: its two commands, its examples, its links."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_the_first_shell_block_is_two_commands():
    first = re.search(r"```(?:sh|bash|shell|console)\n(.*?)```", README, re.DOTALL)
    assert first is not None
    commands = [line for line in first.group(1).splitlines() if line.strip()]
    assert [c.split("#")[0].split() for c in commands] == [
        ["sh", "run.sh", "demo"],
        ["sh", "run.sh", "test"],
    ]


def test_a_use_and_a_picture_come_before_the_formula():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    places = ("![", "pip install", "sh run.sh", "SparsePCA(n_components=", "max x'Ax")
    order = [text.index(words) for words in places]
    assert order == sorted(order)


def test_the_home_page_has_a_picture_a_comparison_and_a_door_for_everybody():
    text = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    places = (
        "](pictures/overview.png)",
        "| `blockspca.SparsePCA` | `sklearn.decomposition.SparsePCA` |",
        '<div class="cite"',
    )
    order = [text.index(words) for words in places]
    assert order == sorted(order)
    for user in ("biologists", "quants", "researchers", "engineers"):
        assert f"(for-{user}.md)" in text
        assert (ROOT / "docs" / f"for-{user}.md").exists()


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_paper_can_be_cited(page):
    text = (ROOT / page).read_text(encoding="utf-8").split("```bibtex")[1]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    for words in ("Efficient Sparse PCA via Block-Diagonalization", "2410.14092"):
        assert words in re.sub(r"[{}]", "", text)  # braces keep capitals
        assert words in citation


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_give_what_is_printed(page):
    parser = doctest.DocTestParser()
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    # one page is one session; ``` ends a block and is no output
    text = page.read_text(encoding="utf-8").replace("```", "\n")
    runner.run(parser.get_doctest(text, {}, page.name, str(page), 0))
    assert runner.failures == 0
    if page.name == "README.md":
        assert runner.tries >= 5


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_relative_links_lead_somewhere(page):
    code = re.compile(r"^ {4}.*$", re.M)
    text = code.sub("", page.read_text(encoding="utf-8"))
    for target in re.findall(r"\]\((?!https?:|#)([^)#\s]+)", text):
        assert (page.parent / target).exists(), target
