"""What ``vf-install --check`` says of differences is what the pages say."""

from __future__ import annotations

import re
from pathlib import Path

from verifiers_compat.cli.packages.check import read_differences

DOCS = Path(__file__).parents[4] / "docs"
TABLE = re.compile(r"^\| verifiers 0\.1\.14 \| here \|\n\|---\|---\|\n((?:\|.*\n)+)", re.MULTILINE)


def test_the_tables_of_the_pages_have_the_same_rows() -> None:
    """`data/differences.json` holds each row, with the names by which a package is known to meet it."""
    pages = [(DOCS / name).read_text() for name in ("coming_from_verifiers.md", "tasksets.md")]
    rows = [tuple(line.strip("| ").split(" | ")) for page in pages for table in TABLE.findall(page) for line in table.splitlines()]
    assert len(rows) > 20
    assert sorted(rows) == sorted((row.verifiers, row.here) for row in read_differences())
