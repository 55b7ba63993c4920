"""`HumanAgent`: a person at the terminal."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from tests.environments import LegalQuiz, Quiz
from vfgym import ToolEnv
from vfgym.agents.human import EndOfInput, HumanAgent, HumanAnswers, _read_line_on_thread
from vfgym.aio.background import in_event_loop
from vfgym.runs import evaluate


class WithoutInfo(gymnasium.Wrapper[Any, Any, Any, Any]):
    def step(self, action: Any) -> Any:
        return (*self.env.step(action)[:4], {})


def test_human_agent_shows_what_is_new_and_reads_a_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("hello\nbye\n"))
    env = LegalQuiz()
    observation, info = env.reset(options={"example_id": 1})
    answer = HumanAgent().for_episode(env)
    first = answer(observation, info)
    assert first == "hello"
    shown = capsys.readouterr().out
    assert "question 1" in shown
    assert "rock, paper, scissors" in shown
    observation, _, _, _, info = env.step(first)
    assert answer(observation, info) == "bye"
    shown = capsys.readouterr().out
    assert "you said hello" in shown
    assert "question 1" not in shown


def test_human_agent_takes_no_empty_line_for_an_answer(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("\n \nhello\n\n"))
    env = Quiz()
    answer = HumanAgent().for_episode(env)
    assert answer(*env.reset(seed=0)) == "hello"
    assert capsys.readouterr().out.count("nothing was typed") == 2
    with pytest.raises(EOFError):
        answer(*env.reset(seed=0))


def test_human_agent_calls_tools(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    monkeypatch.setattr("sys.stdin", io.StringIO('/add {"a": 1, "b": 2}\n/unknown\n'))
    env = ToolEnv(tools=[add], dataset=[{"question": "1 + 2?"}])
    observation, info = env.reset(seed=0)
    answer = HumanAgent().for_episode(env)
    observation, _, _, _, info = env.step(answer(observation, info))
    assert observation[-1].content == "3"
    assert "tools: add" in capsys.readouterr().out
    assert answer(observation, info) == "/unknown"


@pytest.mark.parametrize(
    ("line", "called"),
    [
        *[("/look", ("look", "{}")), ("/look  ", ("look", "{}")), ('/add  {"a": 1} ', ("add", '{"a": 1}')), ("/add {no", ("add", "{no"))],
        *[(text, None) for text in ("look", "add {}", " /look", "//look", "/", "/looks", "/Look")],
    ],
)
def test_a_line_calls_a_tool_or_is_text(line: str, called: tuple[str, str] | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{line}\n"))
    tools = [{"type": "function", "function": {"name": name}} for name in ("add", "look")]
    answer = HumanAnswers()([], {"tools": tools})
    if called is None:
        assert answer == line
    else:
        assert [(call.name, call.arguments) for call in answer["tool_calls"]] == [called]
        assert answer["content"] is None


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (0, ""),
        (2, "(legal: 0, 1)\n"),
        (40, f"(legal: {', '.join(map(str, range(40)))})\n"),
        (41, f"(legal: {', '.join(map(str, range(40)))}, and 1 more)\n"),
    ],
)
def test_so_many_legal_actions_are_listed(
    count: int, shown: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("0\n"))
    HumanAnswers()([], {"legal_actions": [str(number) for number in range(count)]})
    assert capsys.readouterr().out == f"{shown}> "


@pytest.mark.parametrize(
    ("ending", "episode_return", "rewards", "shown"),
    [
        ("terminated", 0.0, {}, "\nover (done): reward 0\n  num_turns: 0\n  wins: 0.5\n"),
        ("truncated", 1.5, {"x": 1.5, "o": 0}, "\ncut off (done): reward 1.5\n  x: 1.5, o: 0\n  num_turns: 0\n  wins: 0.5\n"),
        ("cut", None, {"x": 1.0}, "\ncut off (done): it is scored together with the other rollouts of its task\n"),
    ],
)
def test_what_came_of_an_episode_is_shown(
    ending: str, episode_return: float | None, rewards: dict[str, float], shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    info = {"ending": ending, "stop_condition": "done", "metrics": {"num_turns": 0.0, "wins": 0.5}}
    HumanAnswers().show_end([], {**info, **({"rewards": rewards} if rewards else {})}, episode_return)
    assert capsys.readouterr().out == shown


@pytest.mark.parametrize("kind", ["pipe", "file"])
async def test_lines_of_the_terminal_are_read_one_by_one(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What follows a line is left to whoever reads next; the last one need not end with a line break."""
    text = "höllo\r\n \nno \xff end".encode("latin-1").replace(b"h\xf6", "hö".encode())
    if kind == "file":
        (tmp_path / "typed").write_bytes(text)
        file = os.open(tmp_path / "typed", os.O_RDONLY)
    else:
        file, end = os.pipe()
        os.write(end, text)
        os.close(end)
    monkeypatch.setattr("sys.stdin", sys.__stdin__)
    monkeypatch.setattr("vfgym.agents.human._STANDARD_INPUT", file)
    assert [await _read_line_on_thread(()) for _ in range(2)] == ["höllo", "no \ufffd end"]
    assert capsys.readouterr().out == "> > (nothing was typed, so nothing is sent)\n> "
    with pytest.raises(EndOfInput, match="the input ended: nobody answers any more"):
        await _read_line_on_thread(())
    os.close(file)


def test_human_agent_is_asked_on_a_thread_where_input_is_not_the_terminals(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A notebook has an `input` of its own."""
    lines = iter(["one", "two"])

    def notebook_input(prompt: str) -> str:
        assert not in_event_loop()
        try:
            return next(lines)
        except StopIteration:
            raise EOFError from None

    monkeypatch.setattr("builtins.input", notebook_input)
    done: list[Any] = []
    with pytest.raises(EndOfInput):
        evaluate(Quiz(max_turns=1), HumanAgent(), on_progress=lambda row, progress: done.append(row["completion"][0]["content"]))
    assert done == ["one", "two"]
    shown = capsys.readouterr()
    assert shown.out.count("question") == 3, "episodes are shown one after the other"
    assert shown.err == "", "no progress is drawn over the conversation"


def test_a_human_sees_the_end_behind_a_wrapper_that_passes_no_info_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("one\ntwo\n"))
    env = WithoutInfo(Quiz(max_turns=2))
    (row,) = evaluate(env, HumanAgent(), num_examples=1)["outputs"]
    assert (row["error"], row["stop_condition"]) == (None, "max_turns_reached")
    assert row["human"] == {"hints": 0, "undone": 0, "refused": 0}
    assert "cut off (max_turns_reached): reward 0\n  num_turns: 2" in capsys.readouterr().out
