"""What the site adds to its pages: the gallery, notebooks, and formulas as MathML."""

from __future__ import annotations

import ast
import contextlib
import html
import io
import re
import runpy
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

EXAMPLES = Path(__file__).parents[1] / "examples"


PAGE = "gallery.md"
_sections: list[str] = []


def on_files(files: Files, config: Any) -> Files:
    """Run the examples and add their pictures to the site."""
    _sections.clear()
    for path in sorted(EXAMPLES.glob("plot_*.py")):
        text, pictures = _run(path)
        _sections.append(_section(path, text, len(pictures)))
        for number, picture in enumerate(pictures):
            name = f"gallery/{path.stem}-{number}.png"
            files.append(File.generated(config, name, content=picture))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Put the examples on their page."""
    if page.file.src_uri != PAGE:
        return markdown
    return "\n".join([markdown, *_sections])


# What pymdownx.arithmatex makes of $x$ and of $$x$$, escaped for HTML.
_FORMULA = re.compile(
    r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL
)


def on_page_content(html: str, **_: Any) -> str:
    """Turn formulas into MathML, which browsers draw by themselves."""
    return _FORMULA.sub(_mathml, html)


def _mathml(found: re.Match[str]) -> str:
    from latex2mathml.converter import convert

    kind = "block" if found[1] == "div" else "inline"
    return convert(html.unescape(found[2]), display=kind)


def on_post_page(output: str, **_: Any) -> str:
    """Give the theme's search dialog the name that screen readers need."""
    dialog = 'data-md-component="search" role="dialog"'
    return output.replace(dialog, f'{dialog} aria-label="Search"')


def _run(path: Path) -> tuple[str, list[bytes]]:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    plt.close("all")
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        runpy.run_path(str(path))
    pictures = []
    for number in plt.get_fignums():
        content = io.BytesIO()
        plt.figure(number).savefig(content, format="png", dpi=90)
        pictures.append(content.getvalue())
    plt.close("all")
    return said.getvalue(), pictures


def _section(path: Path, said: str, n_pictures: int) -> str:
    source = path.read_text(encoding="utf-8")
    documentation = ast.get_docstring(ast.parse(source)) or path.stem
    title, _, *text = documentation.splitlines()
    code = source.split('"""', 2)[2].strip()
    lines = [f"## {title}", "", " ".join(text).strip(), ""]
    for number in range(n_pictures):
        lines.append(
            f"![{title}, picture {number + 1}](gallery/{path.stem}-{number}.png)"
        )
        lines.append("")
    lines += ["```python", code, "```", "", "It prints", "", "```text", said.rstrip()]
    return "\n".join([*lines, "```", ""])
