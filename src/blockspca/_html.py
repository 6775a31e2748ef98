"""Small tables for notebooks: what `_repr_html_` shows. Every text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

_CELL = "text-align:{align};padding:2px 10px;vertical-align:middle"
_BAR = (
    "display:inline-block;height:0.7em;width:{width:.0f}px;border-radius:2px;"
    "background:{colour}"
)
_POSITIVE, _NEGATIVE = "#3b7dd8", "#d8743b"  # told apart by most who are colour-blind
_WIDEST = 120  # pixels of a loading of 1


class Markup(str):
    """A text that is HTML already."""


def bar(value: float) -> Markup:
    """Return a bar as long as a loading, in a colour for its sign."""
    colour = _POSITIVE if value >= 0 else _NEGATIVE
    style = _BAR.format(width=_WIDEST * min(abs(value), 1.0), colour=colour)
    return Markup(f'<span style="{style}"></span>')


def table(
    headings: Sequence[str], rows: Iterable[Sequence[object]], caption: str = ""
) -> str:
    """Return a table; numbers are set to the right, texts to the left.

    Examples
    --------
    >>> from blockspca._html import table
    >>> "&lt;b&gt;" in table(["feature"], [["<b>"]])
    True
    """
    lines = ["<table>"]
    if caption:
        style = "caption-side:top;text-align:left;padding:4px 0"
        lines.append(f'<caption style="{style}">{escape(caption)}</caption>')
    cells = "".join(f'<th scope="col">{escape(text)}</th>' for text in headings)
    lines.append(f"<thead><tr>{cells}</tr></thead><tbody>")
    for row in rows:
        cells = ""
        for value in row:
            text = value if isinstance(value, Markup) else escape(str(value))
            number = isinstance(value, (int, float)) or _is_number(str(value))
            style = _CELL.format(align="right" if number else "left")
            cells += f'<td style="{style}">{text}</td>'
        lines.append(f"<tr>{cells}</tr>")
    lines.append("</tbody></table>")
    return "\n".join(lines)


def _is_number(text: str) -> bool:
    return text.lstrip("+−-").rstrip("%").strip().replace(".", "", 1).isdigit()
