"""The page as text: everything in it, everything escaped, nothing from elsewhere."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import blockspca as bs

pytest.importorskip("jinja2")

from blockspca.covariance.derived import restricted
from blockspca.report import Report, build_report
from blockspca.report.page import embedded_json

EVIL = "</script><script>alert(1)</script><!-- \u2028 & ' \""


def example(names: list[str], **options) -> str:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, len(names)))
    X[:, :3] += rng.normal(size=(40, 1))
    cov = bs.Covariance.from_data(X, feature_names=names)
    found = bs.solve_components(cov, 3, options.pop("n_components", 2))
    scores = (X - X.mean(axis=0)) @ found.components.T
    path = bs.solve_path(cov, 5)
    return build_report(
        Report(cov=cov, components=found, path=path, scores=scores, **options)
    )


@pytest.fixture(scope="module")
def page() -> str:
    return example([f"feature {j}" for j in range(8)], source="data.csv")


def test_it_says_what_a_reader_needs(page):
    for text in (
        "2 sparse components, each of 3 of the 8 features, together explain",
        "data.csv (40 samples × 8 features)",
        "Ordinary PCA",
        "proved optimal",
        "feature 1",
        "Choosing k",
        "no set of k exceeds",
        "Save certificate 2 as JSON",
        "numpy",
        "threshold path",
    ):
        assert text in page


def test_features_by_components_and_which_enter_with_k(page):
    assert re.search(r"Loadings of \d features in 2 components", page)
    assert "Features of the best component for each k. " in page
    assert re.search(r"feature \d from k = \d on", page)


def test_nothing_comes_from_elsewhere(page):
    held = "#|data:application/json|data:text/csv"
    assert not re.search(rf"(?:src|href)=\"(?!{held})", page)
    assert "default-src 'none'" in html.unescape(page)
    assert "@import" not in page
    assert not re.search(r"url\(", page)


def test_the_embedded_certificate_verifies(page):
    import base64

    [first, _] = re.findall(r"data:application/json;base64,([A-Za-z0-9+/=]+)", page)
    certificate = bs.Certificate.from_json(base64.b64decode(first).decode())
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 8))
    X[:, :3] += rng.normal(size=(40, 1))
    assert bs.verify(certificate, bs.Covariance.from_data(X)).complete


def test_names_are_text_wherever_they_appear():
    names = [f"{EVIL} {j}" for j in range(8)]
    page = example(
        names, source=EVIL, title=EVIL, parameters={EVIL: EVIL}, sample_names=None
    )
    assert "<script>alert" not in page
    assert "<!-- " not in page
    # the page's own two script elements, and no more
    assert page.count("<script") == 2
    assert page.count("</script") == 2
    data = re.search(r'id="page-data">(.*?)</script>', page, re.DOTALL)
    assert "<" not in data.group(1)
    assert json.loads(data.group(1))["blocks"]["names"][0].startswith(EVIL)
    assert "&lt;/script&gt;" in page


def test_embedded_json_is_the_same_data():
    content = {"name": EVIL, "values": [1.5, 2]}
    assert json.loads(embedded_json(content)) == content
    with pytest.raises(ValueError, match="JSON"):
        embedded_json([float("nan")])


def test_one_component_without_scores_or_path():
    A, _ = bs.datasets.noisy_blocks(n_blocks=5, block_size=20, rng=0)
    cov = bs.Covariance.from_matrix(A)
    page = build_report(Report(cov=cov, components=bs.solve_components(cov, 3, 1)))
    assert "1 sparse component of 3 of the 100 features, explains" in page
    assert 'id="path"' not in page
    assert ">Scores<" not in page


def test_a_contrast_without_a_known_bound_by_its_target_has_no_shares():
    """A sparse background is neither semidefinite by construction nor in memory."""
    target, background = np.diag([9.0, 8.0, 1.0]), sp.csr_array(np.diag([8.0, 0, 0]))
    cov = bs.contrastive(target, background, 1.0)
    assert cov.dominance is None
    for contrast in (cov, restricted(cov, np.array([0, 1]))):
        found = bs.solve_components(contrast, 1, 1)
        page = build_report(Report(cov=contrast, components=found))
        assert "less a background" in page
        assert "adds to the explained variance" not in page


def test_an_unproved_component_is_said_to_be_so():
    X = np.random.default_rng(0).normal(size=(50, 100))
    cov = bs.Covariance.from_data(X)
    found = bs.solve_components(cov, 12, 1, limits=bs.Limits(nodes=5))
    page = build_report(Report(cov=cov, components=found))
    assert "not proved optimal" in page
    assert "badge open" in page


def test_labels_of_explained_variance_have_room(page):
    chart = page[page.index('aria-label="Sparse components explain') :]
    labels = re.findall(r'<text x="([0-9.]+)" y="[0-9]+" class="tick">([^<]+)<', chart)
    assert labels[0][1].count("%") == 2
    for x, text in labels[:2]:
        assert float(x) + 7.2 * len(text) < 420  # a wide font of 12 px


def test_samples_are_counted_where_data_has_gaps():
    X = np.random.default_rng(0).normal(size=(40, 6))
    X[3, 2] = np.nan
    cov = bs.Covariance.from_data(X, missing="pairwise")
    found = bs.solve_components(cov, 2, 1)
    scores = np.nan_to_num(X) @ found.components.T
    page = build_report(
        Report(cov=cov, components=found, scores=scores, source="gaps.csv")
    )
    assert "gaps.csv (40 samples × 6 features)" in page


def test_one_score_is_a_histogram():
    page = example([str(j) for j in range(8)], n_components=1)
    assert "Histogram of 40 scores" in page


def test_the_example_of_the_docs_can_be_pasted(tmp_path, monkeypatch):
    docs = Path(__file__).parents[2] / "docs" / "report.md"
    [code] = re.findall(r"```python\n(.*?)```", docs.read_text("utf-8"), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(code, {})
    assert "of the variance of wine" in Path("wine.html").read_text("utf-8")


def test_a_name_may_break_between_its_parts():
    from blockspca.report.page import breakable

    assert breakable("a_b/c") == "a_<wbr>b/<wbr>c"
    assert breakable("<b>_x") == "&lt;b&gt;_<wbr>x"
    assert breakable("__x") == "__<wbr>x"
    assert breakable("") == ""
