"""HTML that notebooks show for objects (``_repr_html_``): all text is escaped, and without secrets."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from vfgym.output.terminal import display_text


def html_text(value: object) -> str:
    """Return a value as text in HTML: escaped, without secrets and control characters.

    >>> html_text("<b>bold</b>")
    '&lt;b&gt;bold&lt;/b&gt;'
    """
    return html.escape(display_text(value))


def html_lines(value: object) -> str:
    """Return a value as a block of text in HTML, with its lines and spaces as they are."""
    return f'<pre style="white-space:pre-wrap;margin:0">{html_text(value)}</pre>'


def html_table(title: object, heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table in HTML.

    Args:
        title: What stands above it.
        heads: The heads of the columns; empty for none.
        rows: The values of each row.
    """
    head = _row("th", map(html_text, heads))
    body = "".join(_row("td", map(html_lines, row)) for row in rows)
    return f"<table><caption>{html_text(title)}</caption>{head and f'<thead>{head}</thead>'}<tbody>{body}</tbody></table>"


def _row(tag: str, cells: Iterable[str]) -> str:
    row = "".join(f'<{tag} style="text-align:left;vertical-align:top">{cell}</{tag}>' for cell in cells)
    return row and f"<tr>{row}</tr>"


def html_image(url: str, alternative: str) -> str:
    """Return a picture in HTML where its data stand in the URL; the URL as text elsewhere, so that nothing is loaded."""
    if not url.startswith("data:image/"):
        return html_lines(f"image: {url}")
    return f'<img src="{html.escape(url)}" alt="{html_text(alternative)}" style="max-width:100%">'
