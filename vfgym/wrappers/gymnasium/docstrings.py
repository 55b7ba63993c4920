"""The docstring of somebody's game as text for a player: without markup, and without what is written for programmers.

Docstrings are written in Markdown, in reStructuredText, or as Google and NumPy have them; this takes what all of them look like.
"""

from __future__ import annotations

import inspect
import re

_FOR_PROGRAMMERS = re.compile(
    r"(?:reset )?arguments?|args|attributes|change ?log|citations?|citing|credits|examples?|imports?|installation|licen[cs]e|methods"
    r"|notes? on imports?|observation encoding|parameters|raises|references|registered configurations|returns|see also|usage"
    r"|vectorized environment|versions?(?: history)?|yields",
    re.IGNORECASE,
)
"""Headings of sections that say nothing to a player."""

_NOISE = [
    re.compile(r"<!--.*?-->", re.DOTALL),
    re.compile(r"^[ \t]*(?:```|''').*?(?:^[ \t]*(?:```|''')[ \t]*$|\Z)", re.DOTALL | re.MULTILINE),  # code
    re.compile(r"^[ \t]*>>> .*(?:\n.*\S.*)*", re.MULTILINE),  # a session with Python's interpreter, up to the next empty line
    re.compile(r"^([ \t]*)(?:\.\. \w[\w-]*::|:[A-Za-z]+(?: [^:\n]+)?:(?!`)).*(?:\n(?:[ \t]*\n)*\1[ \t]+\S.*)*", re.MULTILINE),  # of Sphinx
    re.compile(r"^[ \t]*(?:!\[[^\]]*\]\([^)]*\)|\[!\[.*|#!.*)[ \t]*$", re.MULTILINE),  # images
]

_UNDERLINED = re.compile(r"(?:\A|^[ \t]*\n) {0,3}(\w(?:.*[^\s.!?,;:])?):?[ \t]*\n {0,3}[-=~]{3,}[ \t]*$", re.MULTILINE)
_GOOGLE = re.compile(
    r"^([ \t]*)(?:Args|Arguments|Attributes|Examples?|Methods|Parameters|Raises|Returns|Usage|Yields):[ \t]*$"
    r"(?:\n\1[ \t]+\S.*|\n[ \t]*(?=\n|\Z))*",
    re.MULTILINE,
)
"""A part of a docstring of Google's kind that documents code: the lines that are indented below its name."""

_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+(\S(?:.*[^\s:])?)(?:[^\S\n]|:)*$", re.MULTILINE)

_MOST_READ = 20_000
"""Characters of a docstring that are read."""

_SENTENCE_END = re.compile(r"(?<=[.!?])(?<!\b[A-Z]\.)(?<!e\.g\.)(?<!i\.e\.)(?<!\bet al\.)\s+")
_NOT_FOR_PLAYERS = re.compile(
    r"https?:|\bdoi\b|\barXiv\b|\bet al\.|adapted from|\bcopyright\b|\blicen[cs]ed?\b|\bauthor\b|\bcreated by\b"
    r"|\bcredits? (?:to|goes)\b|@\w+\{"  # credits
    r"|\bimport \w|\bfrom \w+ import\b|pip install|\b(?:gymnasium|gym)\.(?:make|register|Env)\b|`?info\b`?\["  # code
    r"|\bRL\b|reinforcement learning|curriculum learning|naming convention"  # what environments are good for
    r"|\b(?:added|changed|deprecated|fixed|removed|since) in (?:version )?v?\d|\b(?:TODO|FIXME)\b",  # changes
    re.IGNORECASE,
)
_ITEM = re.compile(r"\s*(?:[-*+]\s|\d+[.):]|\|)")
_ELEMENT = re.compile(r"\s*(?:[-*+]\s+)?(\d+)(?:\s*[:=]\s*|\s+-\s+)(\S.*)")

_MARKUP = [
    (re.compile(r"\s*\(see [^()]*\)"), ""),
    (re.compile(r":\w+:`~?([^`]+)`"), r"\1"),  # a role of Sphinx
    (re.compile(r"!?\[([^\]]*)\]\([^)]*\)"), r"\1"),
    (re.compile(r"</?[a-zA-Z][^<>]*>"), ""),
    (re.compile(r"(?<![\w*])\*{1,3}(?=\S)(.+?)(?<=\S)\*{1,3}(?![\w*])"), r"\1"),
    (re.compile(r"`+|(?<!\w)\$(?=\S)|(?<=\S)\$(?!\w)"), ""),
    (re.compile(r"\\([_*])"), r"\1"),
    (re.compile(r"\s+"), " "),
]


def player_sections(docstring: str) -> dict[str, str]:
    """Return what a docstring says to a player, by headings and in order; what stands before the first has the heading ``""``."""
    text = inspect.cleandoc(docstring)[:_MOST_READ]
    for noise in _NOISE:
        text = noise.sub("", text)
    text = _UNDERLINED.sub(r"\n## \1", _GOOGLE.sub("", text))
    parts = _HEADING.split(text)
    found: dict[str, str] = {}
    for heading, body in zip(["", *map(plain, parts[1::2])], parts[::2], strict=True):
        told = "" if _FOR_PROGRAMMERS.fullmatch(heading) else _paragraphs(body)
        if told:
            found[heading] = f"{found[heading]}\n\n{told}" if heading in found else told
    return found


def _paragraphs(section: str) -> str:
    """Return the paragraphs of a section, each in one line but for lists, tables and drawings."""
    told = []
    for block in re.split(r"\n[ \t]*\n", section.strip("\n")):
        lines = block.splitlines()
        is_drawing = bool(lines) and all(line.startswith("    ") for line in lines) and not re.match(r"\s*(?:[-*+]\s|\d)", lines[0])
        written = block.rstrip() if is_drawing else "\n".join(filter(None, map(_for_players, _joined(lines))))
        if written:
            told.append(written)
    if told and told[-1].endswith(":") and "\n" not in told[-1]:
        # What it announces was code.
        told[-1] = " ".join(_SENTENCE_END.split(told[-1])[:-1])
    return "\n\n".join(filter(None, told))


def _joined(lines: list[str]) -> list[str]:
    """Return the lines of a block, each with those that go on with it."""
    joined: list[str] = []
    for line in lines:
        if joined and not _ITEM.match(line):
            joined[-1] += f" {line.strip()}"
        else:
            joined.append(line)
    return joined


def _for_players(line: str) -> str:
    indent = "  " if re.match(r"\s+[-*+\d]", line) else ""
    if line.lstrip().startswith("|"):
        cells = [plain(cell) for cell in line.strip().strip("|").split("|")]
        return "" if all(set(cell) <= set("-: ") for cell in cells) else ", ".join(filter(None, cells))
    if _ITEM.match(line):
        return "" if _NOT_FOR_PLAYERS.search(line) else indent + plain(line)
    return plain(" ".join(each for each in _SENTENCE_END.split(line) if not _NOT_FOR_PLAYERS.search(each)))


def numbered_elements(section: str) -> tuple[str, ...]:
    r"""Return what a section lists under 0, 1, 2, ..., in order; empty if that is no list, or more than one.

    >>> numbered_elements("Where to go:\n- 0: left\n- 1: right")
    ('left', 'right')
    """
    found = [(int(element[1]), element[2]) for line in section.splitlines() if (element := _ELEMENT.fullmatch(line))]
    return tuple(name for _, name in found) if [number for number, _ in found] == [*range(len(found))] else ()


def without_elements(section: str) -> str:
    """Return a section without what `numbered_elements` takes of it."""
    if not numbered_elements(section):
        return section
    return "\n".join(line for line in section.splitlines() if not _ELEMENT.fullmatch(line)).strip()


def plain(text: str) -> str:
    """Return a line without markup.

    >>> plain("You win if *you* reach the [goal](#goal) at ``(3, 3)``.")
    'You win if you reach the goal at (3, 3).'
    """
    for pattern, replacement in _MARKUP:
        text = pattern.sub(replacement, text)
    return text.strip()
