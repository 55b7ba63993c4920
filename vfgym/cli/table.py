"""Tables: drawn on a terminal, plain aligned text elsewhere, and a block for each row where a table is too wide."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Sequence

from vfgym.output.terminal import echo, one_line

_NARROWEST = 20
"""Characters that a column of text keeps, whose cells are wrapped to make a table fit."""


def output_width() -> int | None:
    """Return how many characters a line of the standard output has; None for any number.

    A terminal knows. Elsewhere the environment variable ``COLUMNS`` may say so.
    """
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given):
        return int(given)
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def wrap_text(text: str) -> str:
    """Return a text in lines that fit the standard output, broken between words only."""
    width = output_width()
    return text if width is None else "\n".join(_wrap_words(text, width))


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table on the standard output.

    Where it is too wide, long texts in it are wrapped between words; where that does not do, each row becomes a block of lines. No number
    and no word is ever broken.
    """
    columns, rows = list(map(one_line, columns)), [list(map(one_line, row)) for row in rows]
    if not sys.stdout.isatty():
        echo(render_table(columns, rows, output_width()))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    fitted = _fit_cells(columns, rows, console.width - 3 * len(columns) - 1)
    if fitted is None:
        echo(_blocks(columns, rows, console.width))
        return
    table = Table()
    for column in columns:
        table.add_column(Text(column), no_wrap=True)
    for row in fitted:
        table.add_row(*(Text("\n".join(lines)) for lines in row))
    console.print(table)


def render_table(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int | None = None) -> str:
    """Return a table as text, columns two spaces apart.

    Args:
        columns: The heads of the columns.
        rows: The cells of each row.
        width: Most characters of a line; None for any number. Where the columns do not fit, there is a block for each row: its first cell,
            then a line for each other one.

    >>> table = ["agent", "reward", "seconds"], [["random", "0.1 ± 0.2", "1.50"]]
    >>> print(render_table(*table))
    agent   reward     seconds
    random  0.1 ± 0.2  1.50
    >>> print(render_table(*table, width=20))
    random
      reward: 0.1 ± 0.2
      seconds: 1.50
    """
    fitted = _fit_cells(columns, rows, None if width is None else width - 2 * (len(columns) - 1))
    if fitted is None:
        return _blocks(columns, rows, max(width or 0, 1))
    table = [[[column] for column in columns], *fitted]
    widths = [max(len(line) for lines in cells for line in lines) for cells in zip(*table, strict=True)]
    lines = []
    for row in table:
        for number in range(max(map(len, row))):
            cells = [lines_of_cell[number] if number < len(lines_of_cell) else "" for lines_of_cell in row]
            lines.append("  ".join(cell.ljust(wide) for cell, wide in zip(cells, widths, strict=True)).rstrip())
    return "\n".join(lines)


def _fit_cells(columns: Sequence[str], rows: Sequence[Sequence[str]], room: int | None) -> list[list[list[str]]] | None:
    """Return the lines of each cell, so that the columns need no more than so many characters together; None where they need more."""
    widths = [max(len(cell) for cell in column) for column in zip(columns, *rows, strict=True)]
    if room is None or sum(widths) <= room:
        return [[[cell] for cell in row] for row in rows]
    longest_words = [max((len(word) for cell in column for word in cell.split()), default=0) for column in zip(columns, *rows, strict=True)]
    for index in sorted(range(len(widths)), key=lambda index: -widths[index]):
        excess = sum(widths) - room
        floor = max(longest_words[index], len(columns[index]), _NARROWEST)
        if excess > 0 and floor < widths[index]:
            widths[index] = max(floor, widths[index] - excess)
    if sum(widths) > room:
        return None
    return [[_wrap_words(cell, width) or [""] for cell, width in zip(row, widths, strict=True)] for row in rows]


def _blocks(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> str:
    """Return a table as text with a block for each row."""
    texts = []
    for first, *others in rows:
        lines = _wrap_words(first, width)
        for column, cell in zip(columns[1:], others, strict=True):
            if cell:
                lines += _wrap_words(f"  {column}: {cell}" if column else f"  {cell}", width)
        texts.append("\n".join(lines))
    return "\n\n".join(texts)


def _wrap_words(text: str, width: int) -> list[str]:
    """Return a text in lines that are broken between words only; one word may be longer than a line."""
    return textwrap.wrap(text, width, subsequent_indent="    "[: width // 8], break_long_words=False, break_on_hyphens=False)
