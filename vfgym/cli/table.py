"""Tables: drawn on a terminal, plain aligned text elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table on the standard output."""
    if not sys.stdout.isatty():
        print(aligned(columns, rows))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table()
    for column in columns:
        table.add_column(Text(column))
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    Console().print(table)


def aligned(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table as text, columns two spaces apart.

    >>> print(aligned(["agent", "reward"], [["random", "0.1"]]))
    agent   reward
    random  0.1
    """
    widths = [max(len(cell) for cell in column) for column in zip(columns, *rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in (columns, *rows)]
    return "\n".join(line.rstrip() for line in lines)
