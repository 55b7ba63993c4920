"""HTML that notebooks show: all text is escaped, and without secrets."""

from __future__ import annotations

import pytest

from vfgym.output.html import html_image, html_lines, html_table, html_text
from vfgym.output.redaction import Secret

HOSTILE = "<b onclick='x'>&\"</b>"
ESCAPED = "&lt;b onclick=&#x27;x&#x27;&gt;&amp;&quot;&lt;/b&gt;"


def test_text_is_escaped_and_without_secrets_and_control_characters() -> None:
    Secret("sesame-0123456789")
    assert (html_text(HOSTILE), html_text(0), html_text("")) == (ESCAPED, "0", "")
    assert html_text("the key is sesame-0123456789") == "the key is ***"
    assert "\x1b" not in html_text("\x1b[31mred")
    assert html_lines(HOSTILE).endswith(f">{ESCAPED}</pre>")


def test_a_table() -> None:
    table = html_table(HOSTILE, ["a", HOSTILE], [[1, HOSTILE], [2, ""]])
    assert table.count(ESCAPED) == 3
    assert (table.count("<tr>"), table.count("</th>"), table.count("</td>"), table.count("<thead>")) == (3, 2, 4, 1)
    empty = html_table("t", [], [])
    assert empty == "<table><caption>t</caption><tbody></tbody></table>"


@pytest.mark.parametrize(
    ("url", "is_picture"),
    [("data:image/png;base64,AA==", True), ("https://example.com/a.png", False), ("data:text/html,x", False), ("", False)],
)
def test_only_pictures_whose_data_are_there_are_loaded(url: str, is_picture: bool) -> None:
    made = html_image(url, HOSTILE)
    assert ("<img" in made) is is_picture
    assert (f'alt="{ESCAPED}"' in made) is is_picture
    assert "<b" not in html_image('data:image/png,"><b', "")
