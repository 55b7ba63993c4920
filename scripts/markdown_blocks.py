"""Read the fenced code blocks of a Markdown page, with the HTML comment that marks them.

``python scripts/markdown_blocks.py README.md ci:test`` prints the block that follows ``<!-- ci:test -->``, so that ``.ci/run`` executes
the very commands a reader copies; ``tests/test_docs.py`` runs the Python blocks.
"""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FENCED_BLOCK = re.compile(
    r"(?:^[ ]*<!--[ ]*(?P<marker>[^\n]*?)[ ]*-->[ ]*\n)?"
    r"^(?P<indent>[ ]*)```(?P<language>\w+)[^\n]*\n(?P<code>.*?)^(?P=indent)```[ ]*$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """One fenced code block."""

    language: str
    """What stands after the opening fence, as ``python`` or ``bash``."""
    marker: str
    """The text of the HTML comment on the line before the block, or ``""``."""
    code: str
    """The lines between the fences, without common indentation."""
    line: int
    """The line of the page, counted from 1, on which ``code`` starts."""


def markdown_blocks(text: str) -> Iterator[Block]:
    """Yield the fenced code blocks of a Markdown page that name a language, in order."""
    for match in FENCED_BLOCK.finditer(text):
        line = text.count("\n", 0, match.start("code")) + 1
        yield Block(match["language"], match["marker"] or "", textwrap.dedent(match["code"]), line)


def main() -> None:
    """Print the one block of a page that carries a marker.

    Raises:
        SystemExit: If the page has no block with this marker, or several.
    """
    parser = argparse.ArgumentParser(description=main.__doc__.splitlines()[0] if main.__doc__ else None)
    parser.add_argument("page", type=Path, help="a Markdown file")
    parser.add_argument("marker", help="the text of the HTML comment before the block, as ci:test")
    arguments = parser.parse_args()
    marked = [block for block in markdown_blocks(arguments.page.read_text()) if block.marker == arguments.marker]
    if len(marked) != 1:
        parser.error(f"{arguments.page} must have exactly one block after <!-- {arguments.marker} -->, but has {len(marked)}")
    sys.stdout.write(marked[0].code)


if __name__ == "__main__":
    main()
