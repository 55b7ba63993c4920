"""`HumanAgent`: a person at the terminal."""

from __future__ import annotations

import io
from typing import Any

import gymnasium
import pytest

from tests.environments import LegalQuiz, Quiz
from vfgym import ToolEnv
from vfgym.agents.human import EndOfInput, HumanAgent
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
