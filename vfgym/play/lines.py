"""What a line of the player is: a command, a call of a tool, or an answer to the environment."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple, TypeAlias

from vfgym.errors import did_you_mean

COMMANDS: Mapping[str, str] = {
    "help": "show this; so does ?",
    "say TEXT": "send any text, such as /say help",
    "lines": "type an answer of several lines; one with a dot alone ends it",
    "moves": "list what you can play now, as the rules do",
    "hint": "show a right answer or a legal move, where one is known",
    "undo": "go back before your last move",
    "show": "show again what you were shown last",
    "rules": "show the rules again",
    "tools": "describe the tools",
    "call NAME": "fill in the form of a tool; /NAME does it too",
    "open": "open the last images in a viewer",
    "quit": "leave; the game is saved unfinished (also Ctrl-D)",
}
"""What a player can type besides answers, without the slash, and what it does."""

_NAMES = frozenset(name.partition(" ")[0] for name in COMMANDS)


class PlayerCommand(NamedTuple):
    """A command of the player: nothing of it is sent."""

    name: str
    """One of `COMMANDS`; empty for a line without any."""
    rest: str = ""
    """What stands behind it on the line."""


class ToolForm(NamedTuple):
    """A call of a tool, whose form is filled in next."""

    tool: str
    arguments: str = ""
    """A JSON object, if it stands on the line; empty to ask for the arguments one by one."""


class Answer(NamedTuple):
    """A text for the environment, as it was typed."""

    text: str


class Unknown(NamedTuple):
    """A line with a slash that is nothing: it is not sent."""

    why: str


Line: TypeAlias = PlayerCommand | ToolForm | Answer | Unknown


def asks_for_help(line: str) -> bool:
    """Say whether a line asks for help: ``help``, ``?`` or nothing at all, with or without a slash."""
    return line.strip().removeprefix("/").strip().casefold() in ("", "?", "help")


def read_line(line: str, tools: Collection[str] = (), legal: Collection[str] = ()) -> Line:
    """Return what a line is.

    Args:
        line: What was typed.
        tools: Names of the tools that can be called now.
        legal: Legal moves: one that begins with a slash is an answer.

    >>> read_line(" ? "), read_line("/say help"), read_line("e4")
    (PlayerCommand(name='help', rest=''), Answer(text='help'), Answer(text='e4'))
    >>> read_line('/add {"a": 1}', tools=["add"])
    ToolForm(tool='add', arguments='{"a": 1}')
    """
    text = line.strip()
    if asks_for_help(text):
        return PlayerCommand("help" if text.removeprefix("/").strip() else "")
    if not text.startswith("/") or text in legal:
        return Answer(line)
    name, _, rest = line.lstrip()[1:].partition(" ")
    name = name.rstrip()
    if name.casefold() == "say":
        return Answer(rest) if rest.strip() else Unknown("/say sends the text behind it, and there is none")
    if name.casefold() == "call":
        tool, _, arguments = rest.strip().partition(" ")
        return _call(tool, arguments, tools)
    if name.casefold() in _NAMES:
        return PlayerCommand(name.casefold(), rest.strip())
    if name in tools:
        return _call(name, rest, tools)
    hint = did_you_mean(name, [*_NAMES, *tools])
    return Unknown(f"there is no command /{name}.{hint} /help lists all; /say {text} sends it as text")


def _call(tool: str, arguments: str, tools: Collection[str]) -> Line:
    if tool in tools:
        return ToolForm(tool, arguments.strip())
    known = ", ".join(tools)
    return Unknown(f"there is no tool {tool!r}: {f'the tools are {known}' if known else 'there are none now'}.{did_you_mean(tool, tools)}")
