"""The notebooks of the site as pages: text, code, and the outputs stored in them.

Nothing is run here; `tests/docs/test_notebooks.py` runs them and compares.
"""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

FOLDER = Path(__file__).with_name("notebooks")


def on_files(files: Files, config: Any) -> Files:
    """Add a page and its pictures for every notebook."""
    for path in sorted(FOLDER.glob("*.ipynb")):
        text, pictures = as_page(path)
        page = f"notebooks/{path.stem}.md"
        files.append(File.generated(config, page, content=text))
        for name, content in pictures.items():
            files.append(File.generated(config, f"notebooks/{name}", content=content))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Lead links of other pages to a notebook's page, where it can be read."""
    return re.sub(r"\]\((notebooks/[\w-]+)\.ipynb\)", r"](\1.md)", markdown)


def as_page(path: Path) -> tuple[str, dict[str, bytes]]:
    """Return a notebook as Markdown, and its pictures by name."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    parts: list[str] = []
    pictures: dict[str, bytes] = {}
    for cell in cells:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            if len(parts) == 1:  # below the title
                parts.append(f"[Download this notebook]({path.name}){{ download }}")
            continue
        parts.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            parts.append(_shown(output, path.stem, pictures))
    return "\n\n".join(parts) + "\n", pictures


def _shown(output: dict[str, Any], stem: str, pictures: dict[str, bytes]) -> str:
    """Return an output as Markdown; a picture is added to `pictures`."""
    if output["output_type"] == "stream":
        return _text("".join(output["text"]))
    data = output["data"]
    if "image/png" in data:
        name = f"{stem}-{len(pictures)}.png"
        pictures[name] = base64.b64decode(data["image/png"])
        return f"![Output of the code above]({name})"
    if "text/html" in data:
        html = re.sub(r"<style.*?</style>", "", "".join(data["text/html"]), flags=re.S)
        html = re.sub(r"\n\s*\n", "\n", html.strip())
        html = html.replace("<th></th>", "<td></td>")  # an empty cell heads nothing
        return f'<div class="output">\n{html}\n</div>'
    return _text("".join(data["text/plain"]))


def _text(text: str) -> str:
    return f"``` {{ .text .output .no-copy }}\n{text.rstrip()}\n```"
