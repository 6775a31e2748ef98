"""The page that shows a proof."""

from __future__ import annotations

from html.parser import HTMLParser

import numpy as np
import pytest

import blockspca as bs
from blockspca.checker.proof_file import Direction, Node, Record, Round, read_proof
from blockspca.report.proof_page import _rounds, _tree, proof_lines, proof_page
from proof_builder import as_bytes, describe, entry_proof, entry_tree_proof
from proof_compositions import composition_proof
from proof_signs import sign_proof


class Balanced(HTMLParser):
    """Notes what is opened and not closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def assert_well_formed(text: str) -> None:
    parser = Balanced()
    parser.feed(text)
    assert parser.open == []


@pytest.fixture(scope="module")
def sections():
    X = np.random.default_rng(4).normal(size=(9, 14))
    cov = bs.Covariance.from_data(X, scale=True)
    components = bs.solve_components(cov, 5, 2, proof=True)
    return read_proof(components.proof.to_text().encode())


def test_page_shows_bounds_features_and_trees(sections):
    names = [f"<gene {i}>" for i in range(14)]
    text = proof_page(sections, names)
    assert_well_formed(text)
    assert "<gene" not in text
    assert "&lt;gene" in text
    assert text.count("What is claimed") == 2
    assert "suffix bounds" in text
    assert sections[0].problem.sha256 in text


def test_lines_have_a_bound_for_each_record(sections):
    lines = proof_lines(sections)
    for section in sections:
        assert str(section.problem) in lines
        for record in section.records:
            start = f"k = {record.k}: at most {record.upper:.6g}"
            assert any(line.startswith(start) for line in lines)


def test_names_must_fit(sections):
    with pytest.raises(ValueError, match="14 features"):
        proof_page(sections, ["a"])


def test_tree_is_nested_as_it_is_meant():
    leaf = Node("L")
    nodes = (Node("D"), Node("S", (0, 2)), Node("S", (1,)), leaf, Node("P"))
    record = Record(k=4, upper=1.0, rule="tree", features=(7, 8, 9, 6), tree=nodes)
    text = "".join(_tree(record, str))
    assert_well_formed(text)
    # 7 is opened, within it 8, and after both of them 9
    assert text.index("with 7") < text.index("with 8") < text.index("with 9")
    assert text.count("</ul>") == text.count("<ul") == 3
    assert text.index("with 8") < text.index("</ul>") < text.index("with 9")


def test_large_trees_are_cut_short():
    nodes = (Node("S", tuple(range(900))), *(Node("L") for _ in range(900)))
    record = Record(3, 1.0, "tree", features=tuple(range(900)), tree=nodes)
    text = "".join(_tree(record, str))
    assert_well_formed(text)
    assert "401 more steps" in text


def test_rounds_are_told():
    point = Direction(0.5, 0.1, [], [])
    rounds = (Round(point, (3, 4), (0, 7), [1.0]), Round(point, (7,), (), [1.0]))
    last = Direction(0.25, 0.1, [], [], rounds)
    record = Record(k=3, upper=2.0, rule="direction", direction=last)
    text = _rounds(record, 9, lambda i: f"<f{i}>")
    assert_well_formed(text)
    assert "in every better set: &lt;f3&gt;, &lt;f4&gt;; still open: 2 of 9" in text
    assert "k = 3: directions, 2 rounds" in text


def test_weights_and_their_searches_are_told():
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(8, 6))
    data = describe(Y, "data")
    lines = entry_proof(Y, data, 2, rng)
    text = proof_page(read_proof(as_bytes(lines)))
    assert "moved towards 0" in text
    lines = entry_tree_proof(Y, data, 3, rng)
    split, last = {"split": 2}, {"last": True}
    fix = {"fix": {"ratio": "0x1.0p+0", "weights": [], "shares": []}, "out": [1]}
    fix |= {"own": ["0x1.0p+0"], "prices": ["0x1.0p+0"], "in": [4, 5]}
    lines[1]["nodes"] = [fix, split, last, {"close": fix["fix"]}]
    text = proof_page(read_proof(as_bytes(lines)), [f"<{i}>" for i in range(6)])
    assert_well_formed(text)
    assert "In no better set: &lt;1&gt;; in every better set: &lt;4&gt;, &lt;5" in text
    assert "Split: with &lt;2&gt;, then without." in text
    assert "k = 3: weights, 3 nodes" in text


def test_the_page_says_what_is_taken_off_and_shows_trees_of_groups():
    X = np.random.default_rng(4).normal(size=(9, 8))
    cov = bs.Covariance.from_data(X)
    groups = bs.Constraints(groups=[0, 0, 1, 1, 2, 2, 3, 3], whole_groups=True)
    whole = bs.solve(cov, 4, constraints=groups, proof=True)
    said = {
        "less a multiple of vv": bs.HotellingDeflation(),
        "orthogonal to 1 given vector(s), with a penalty": bs.Orthogonalised(),
    }
    found = {
        words: bs.solve_components(cov, 3, 2, scheme=scheme, proof=True)
        for words, scheme in said.items()
    }
    for words, result in {**found, "as a whole or not at all": whole}.items():
        sections = read_proof(result.proof.to_text().encode())
        text = proof_page(sections, [f"<gene {i}>" for i in range(8)])
        assert_well_formed(text)
        assert words in text.replace("&#x27;", "'")
        assert words in "\n".join(proof_lines(sections))
    assert "each by its first feature" in text
    assert "4 groups" in "\n".join(proof_lines(sections))


def test_the_page_shows_counts_of_parts():
    rng = np.random.default_rng(0)
    for _ in range(20):
        lines, _ = composition_proof(rng, 7, 3)
        sections = read_proof(as_bytes(lines))
        text = proof_page(sections, [f"<{i}>" for i in range(7)])
        assert_well_formed(text)
        given = sections[0].records[-1].compositions
        counts = given.counted()
        assert f"{len(given.parts)} parts, {len(counts)} counts left" in text
        for one in counts:
            assert sum(one) == 3
            assert f"{', '.join(map(str, one))} features of the parts in turn" in text
        assert "from each part" in "\n".join(proof_lines(sections))


def test_the_page_shows_what_is_added_for_signs():
    shown = 0
    for seed in range(40):
        found = sign_proof(np.random.default_rng(seed), 5, 3)
        if found is None:
            continue
        text = proof_page(read_proof(as_bytes(found[0])))
        assert_well_formed(text)
        shown += "N not negative" in text
    assert shown > 3
