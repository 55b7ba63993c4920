"""A line is a command, a call of a tool, or an answer; help and empty lines are never sent."""

from __future__ import annotations

import pytest

from vfgym.play.lines import COMMANDS, Answer, PlayerCommand, ToolForm, Unknown, asks_for_help, read_line


@pytest.mark.parametrize("line", ["help", "/help", "HELP", " Help ", "?", "/?", " ? ", "/ help", "", "   ", "/", " / ", "\t"])
def test_help_and_empty_lines_are_never_sent(line: str) -> None:
    assert asks_for_help(line)
    assert isinstance(read_line(line), PlayerCommand)
    assert isinstance(read_line(line, tools=["help"], legal=["help", "?"]), PlayerCommand), "/say sends a move of that name"


@pytest.mark.parametrize("line", ["help me", "undo", "hint", "e4", "[col 3]", " a b ", "quit", "?!"])
def test_all_else_without_a_slash_is_an_answer_as_it_was_typed(line: str) -> None:
    assert read_line(line) == Answer(line)


def test_say_sends_any_text() -> None:
    for text in ("help", "?", "/undo", "  two  spaces "):
        assert read_line(f"/say {text}") == Answer(text)
    assert isinstance(read_line("/say "), Unknown)


def test_commands_are_known_in_any_case() -> None:
    names = ("lines", "moves", "hint", "undo", "show", "rules", "tools", "open", "quit")
    for name in names:
        assert read_line(f"/{name}") == read_line(f" /{name.upper()} ") == PlayerCommand(name)
        assert read_line(f"/{name}  3 ") == PlayerCommand(name, "3")
    assert {*COMMANDS} == {*names, "help", "say TEXT", "call NAME"}


def test_a_tool_is_called_by_its_name_or_through_call() -> None:
    assert read_line("/add", tools=["add"]) == read_line("/call add", tools=["add"]) == ToolForm("add")
    assert read_line('/add {"a": 1}', tools=["add"]) == ToolForm("add", '{"a": 1}')
    assert read_line("/undo", tools=["undo"]) == PlayerCommand("undo"), "commands come first"
    assert read_line("/call undo {}", tools=["undo"]) == ToolForm("undo", "{}")


def test_a_slash_before_nothing_known_is_not_sent_unless_it_is_a_legal_move() -> None:
    unknown = read_line("/undoo", tools=["add"])
    assert isinstance(unknown, Unknown)
    assert "Did you mean `undo`?" in unknown.why
    assert "/say /undoo sends it" in unknown.why
    assert read_line("/call ad", tools=["add", "act"]) == Unknown("there is no tool 'ad': the tools are add, act. Did you mean `add`?")
    assert read_line("/call") == Unknown("there is no tool '': there are none now.")
    known = read_line("/ad", tools=["add"])
    assert known == Unknown("there is no command /ad. Did you mean `add`? /help lists all; /say /ad sends it as text")
    assert read_line("/zzz 1") == Unknown("there is no command /zzz. /help lists all; /say /zzz 1 sends it as text")
    assert read_line("/pass", legal=["/pass"]) == Answer("/pass")
