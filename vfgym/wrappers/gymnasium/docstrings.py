"""What stands in an environment's docstring, as text for a player: without markup, formulas, code, links and citations.

Gymnasium's environments, and the many that follow them, document themselves in Markdown under headings (``## Description``,
``## Action Space``, ...); others underline theirs, or describe arguments as Python code does (``Args:``). This module reads these forms;
`vfgym.wrappers.gymnasium.descriptions` knows what the headings mean.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

_FENCE = re.compile(r"\s*(?:```|''')")
_DROPPED = "```"
"""Stands where code or a figure was left out, so that what announced it can be left out too."""

_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+(\S(?:.*[^\s:])?)(?:[^\S\n]|:)*$", re.MULTILINE)
_UNDERLINED = re.compile(r"(?:\A|^[ \t]*\n) {0,3}(\w(?:.*[^\s.!?,;:])?):?[ \t]*\n {0,3}[-=~]{3,}[ \t]*$", re.MULTILINE)
"""A heading as in reStructuredText and in docstrings of NumPy's kind: a line of its own that is not a sentence, underlined."""

_WORDS_OF_CODE = "Args|Arguments|Attributes|Example|Examples|Methods|Parameters|Raises|References|Returns|See Also|Usage|Yields"

HEADINGS_OF_CODE = frozenset(_WORDS_OF_CODE.casefold().split("|"))
"""What the parts of a docstring are called that document code, in lower case."""

_CODE_SECTION = re.compile(rf"^([ \t]*)(?:{_WORDS_OF_CODE}):?(?:(?:[ \t]*\n)+\1[ \t]+\S.*)+", re.MULTILINE)
"""Such a part in docstrings of Google's kind: the lines that are indented below its name."""

_EXAMPLE = re.compile(r"^[ \t]*>>> .*(?:\n.*\S.*)*", re.MULTILINE)
"""A session with Python's interpreter, which goes on to the next empty line."""

_ITEM = re.compile(r"(\s*)(?:[-*+]\s+|(\d+[.)])\s*(?=[^\d\s])|(?=\d+\s*:\s))")
_NUMBERED = re.compile(r"(\d+)\s*:\s*(.+)")
_SENTENCE_END = re.compile(r"(?<=[.!?])(?<!\b[A-Z]\.)(?<!e\.g\.)(?<!i\.e\.)\s+")

_NOT_FOR_PLAYERS = re.compile(
    r'\["[^\]]*"\]\(|\[<a\b|\[https?:|\bPhD\b|adapted from|pixel art|documentation page'  # citations and credits
    r"|diagram below|ansi rendered map|\bgif\b|See \[|\bIllustrat"  # what cannot be seen here
    r"|read more|more information|\.xml\b"  # where to look further
    r"|`info`|\binfo\[|Arguments? section|\bArgument docs|gymnasium\.make|pip install|mujoco-py"  # what the programmer of an agent sees
    r"|(?<![A-Za-z])v\d+\b"  # versions
    r"|\bheuristic\b|get demonstrations|\bRL\b|reinforcement learning|your algorithms?"  # what environments are good for
    r"|useful for studying|curriculum learning|make use of language",
    re.IGNORECASE,
)

_BRACKETED = re.compile(r"\s*\((?:[^()]*\bv\d\b|see [^()]*\bsections?\b|(?:when )?using the time_limit wrapper)[^()]*\)", re.IGNORECASE)

_ABOUT_ARRAYS = re.compile(
    r"ndarray|\bshape\b|`?Box\(|returned as (?!.*calculated)|exclude_current_positions|np\.array|elements? (?:are|is) as follows",
    re.IGNORECASE,
)
"""Sentences on how numbers are stored, which say nothing to a reader of text."""


@dataclass
class Block:
    """A paragraph, an item of a list, a table, a drawing, or what was left out."""

    kind: Literal["paragraph", "item", "table", "drawing", "dropped"]
    lines: list[str] = field(default_factory=list)
    marker: str = ""
    """What stands before an item."""

    @property
    def text(self) -> str:
        """All lines as one."""
        return " ".join(line.strip() for line in self.lines)

    @property
    def rows(self) -> list[list[str]]:
        """The cells of a table, the heading's first."""
        cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))] for line in self.lines]
        return [row for row in cells if not all(set(cell) <= set("-: ") for cell in row)]


def sections(docstring: str) -> dict[str, str]:
    """Split a docstring by its headings, in order; what stands before the first has the heading ``""``."""
    text = _without_code(re.sub(r"<!--.*?-->", "", docstring, flags=re.DOTALL))
    text = _EXAMPLE.sub(_DROPPED, text)
    text = _UNDERLINED.sub(r"\n## \1", text)
    text = _CODE_SECTION.sub("", text)
    parts = _HEADING.split(text)
    found = {"": parts[0]}
    for heading, body in zip(map(plain, parts[1::2]), parts[2::2], strict=True):
        found[heading] = f"{found[heading]}\n\n{body}" if heading in found else body
    return found


def _without_code(text: str) -> str:
    kept: list[str] = []
    is_code = False
    for line in text.splitlines():
        if _FENCE.match(line):
            # A fence is sometimes closed by another than opened it (Acrobot, Gymnasium 1.4).
            is_code = not is_code
            line = _DROPPED if is_code else ""
        elif is_code:
            continue
        kept.append(line)
    return "\n".join(kept)


def blocks(section: str) -> list[Block]:
    """Split a section into its blocks."""
    found: list[Block] = []
    is_open = False  # whether a line may continue the block before it
    for line in section.splitlines():
        last = found[-1] if found and is_open else None
        if not line.strip():
            is_open = last is not None and last.kind == "drawing"
            continue
        block = _new_block(line, last, is_below_item=bool(found) and found[-1].kind == "item")
        if block is None:
            found[-1].lines.append(line)
        else:
            found.append(block)
        is_open = found[-1].kind != "dropped"
    return found


def _new_block(line: str, last: Block | None, *, is_below_item: bool) -> Block | None:
    """Return the block that a line begins; None where it continues the last one."""
    kind = None if last is None else last.kind
    is_indented = line.startswith("    ")
    if line == _DROPPED or line.lstrip().startswith((">", "![")):
        return Block("dropped")
    if kind == "drawing" and is_indented:
        return None
    if item := _ITEM.match(line):
        indent = "  " if len(item[1]) >= 4 else ""
        return Block("item", [line[item.end() :]], f"{indent}{item[2] or '-'} ")
    if kind is None and is_indented and not is_below_item:
        return Block("drawing", [line])
    if line.lstrip().startswith("|"):
        return None if kind == "table" else Block("table", [line])
    return None if kind in ("paragraph", "item") else Block("paragraph", [line])


def tables(section: str) -> Iterator[list[list[str]]]:
    """Return the tables of a section, as rows of cells in plain text, the heading first."""
    for block in blocks(section):
        if block.kind == "table" and block.rows:
            yield [[plain(cell) for cell in row] for row in block.rows]


def numbered_lists(section: str) -> Iterator[tuple[str, ...]]:
    """Return the lists whose items are numbered 0, 1, 2, ..., each in order."""
    run: list[str] = []
    for block in [*blocks(section), Block("dropped")]:
        numbered = _NUMBERED.match(block.text) if block.kind == "item" else None
        if numbered and int(numbered[1]) == len(run):
            run.append(plain(numbered[2]))
            continue
        if run:
            yield tuple(run)
        run = [plain(numbered[2])] if numbered and int(numbered[1]) == 0 else []


def prose(section: str, *, whole: bool = False, without_elements: bool = False) -> str:
    """Return what a section tells a player.

    Args:
        section: Markdown.
        whole: Whether to keep the sentences on citations, versions and the like, as a text is due that follows no fixed form.
        without_elements: Whether to leave out tables, and lists of numbered elements.
    """
    written = [(block, _write(block, whole, without_elements)) for block in blocks(section)]
    paragraphs: list[str] = []
    is_list = False
    for place, (block, text) in enumerate(written):
        following = written[place + 1 :]
        if text.endswith(":") and (not following or not following[0][1]):
            # What it announces was left out.
            text = " ".join(_SENTENCE_END.split(text)[:-1]) if block.kind == "paragraph" else f"{text[:-1]}."
        if not text:
            continue
        if block.kind == "item" and is_list:
            paragraphs[-1] += f"\n{text}"
        else:
            paragraphs.append(text)
        is_list = block.kind == "item" or (block.kind == "paragraph" and text.endswith(":") and following[0][0].kind == "item")
    return "\n\n".join(paragraphs)


def _write(block: Block, whole: bool, without_elements: bool) -> str:
    if block.kind == "dropped":
        return ""
    if block.kind == "drawing":
        return "\n".join(block.lines)
    if block.kind == "table":
        return "" if without_elements else "\n".join(_row(row) for row in block.rows)
    if without_elements and block.kind == "item" and _NUMBERED.match(block.text):
        return ""
    text = plain(block.text if whole else _for_players(block.text))
    return f"{block.marker}{text}" if text else ""


def _for_players(text: str) -> str:
    # A version or reference in brackets goes alone, not with its sentence.
    sentences = _SENTENCE_END.split(_BRACKETED.sub("", text))
    return " ".join(each for each in sentences if not (_NOT_FOR_PLAYERS.search(each) or _ABOUT_ARRAYS.search(each)))


def _row(cells: Iterable[str]) -> str:
    first, *others = [plain(cell) for cell in cells]
    return f"{first}: {', '.join(each for each in others if each)}" if others else first


_TAGS = re.compile(r"</?(?:a|b|br|center|code|div|em|i|img|p|span|strong)\b[^<>]*>", re.IGNORECASE)
_SUBSTITUTIONS = [
    (re.compile(r"\[<a\b[^>]*>.*?</a>\]|!\[[^\]]*\]\([^)]*\)"), ""),
    (re.compile(r"<sup>(.*?)</sup>"), r"^\1"),
    (re.compile(r"<sub>(\w+)</sub>"), r"_\1"),
    (re.compile(r"<sub>(.*?)</sub>"), r"_(\1)"),
    (_TAGS, ""),
    (re.compile(r"\[([^\]]*)\]\([^)]*\)"), r"\1"),
    (re.compile(r":\w+:`~?([^`]+)`"), r"\1"),
    (re.compile(r"(?<![\w*])\*{1,3}(?=\S)(.+?)(?<=\S)\*{1,3}(?![\w*])"), r"\1"),
    (re.compile(r"(?<!\w)_(?=[^\s_])(.+?)(?<=[^\s_])_(?!\w)"), r"\1"),
    (re.compile(r"`+"), ""),
    (re.compile(r"<?https?://[^\s>)\]]+>?"), ""),
    (re.compile(r"\\_"), "_"),
    (re.compile(r"\s+"), " "),
    (re.compile(r"\s+(?=[.,;:](?:\s|$))"), ""),
]
_FORMULA = re.compile(r"\$(?=\S)([^$]+?)(?<=\S)\$(?!\d)")  # two prices are not a formula


def plain(markdown: str) -> str:
    r"""Return one line of Markdown as plain text.

    >>> plain(r"*Reward*: $w_{forward} \\times \\frac{dx}{dt}$ (default is `1`)")
    'Reward: w_forward * dx/dt (default is 1)'
    """
    text = _FORMULA.sub(lambda formula: _plain_formula(formula[1]), markdown)
    for pattern, replacement in _SUBSTITUTIONS:
        text = pattern.sub(replacement, text)
    return text.strip()


_LATEX = [
    (re.compile(r"\\_"), "_"),
    (re.compile(r"_\{([^{}]*)\}"), r"_\1"),
    (re.compile(r"\^\{([^{}]*)\}"), r"^\1"),
    (re.compile(r"\\\|\(?(.+?)\)?\\\|_2"), r"norm(\1)"),
    (re.compile(r"\|(.+?)\|"), r"abs(\1)"),
    (re.compile(r"\\frac\{([^{} ]*)\}\{([^{} ]*)\}"), r"\1/\2"),
    (re.compile(r"\\frac\{([^{}]*)\}\{([^{} ]*)\}"), r"(\1)/\2"),
    (re.compile(r"\\frac\{([^{}]*)\}\{([^{}]*)\}"), r"(\1)/(\2)"),
    (re.compile(r"\s*\\(?:times|cdot)\s*"), " * "),
    (re.compile(r"\\leq?\b"), "<="),
    (re.compile(r"\\geq?\b"), ">="),
    (re.compile(r"\\infty\b"), "inf"),
    (re.compile(r"\\pm\b"), "±"),
    (re.compile(r"\\[a-zA-Z]+\{([^{}]*)\}"), r"\1"),
    (re.compile(r"[\\{}]"), ""),
]


def _plain_formula(latex: str) -> str:
    for pattern, replacement in _LATEX:
        latex = pattern.sub(replacement, latex)
    # Backquoted, so that no later substitution takes its stars and underscores for emphasis.
    return f"`{latex}`"
