"""A plain function that holds the event loop of a run and does not return is named, with its place and with how to bound it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import verifiers_compat as vf
import vfgym
from vfgym import Rubric, aevaluate, evaluate
from vfgym.aio import loop_watch
from vfgym.aio.loop_watch import author_function, watch_loop
from vfgym.messages import AssistantMessage, Message, ToolCall
from vfgym.state import State
from vfgym.testing import ScriptedClient

PATIENCE = 60.0
"""Seconds after which a test fails instead of hanging."""
ROWS = [{"question": "?"}]


class Named(logging.Handler):
    """Lets a function of this file that holds the loop go on once it was named. (A busy machine may hold it elsewhere.)"""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.text = ""
        self.came = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        if "has not returned" in record.getMessage() and __file__ in record.getMessage():
            self.text = record.getMessage()
            self.came.set()


@pytest.fixture
def named(monkeypatch: pytest.MonkeyPatch) -> Iterator[Named]:
    monkeypatch.setattr(loop_watch, "PATIENCE", 0.1)
    handler = Named()
    logging.getLogger("vfgym").addHandler(handler)
    yield handler
    logging.getLogger("vfgym").removeHandler(handler)


class Held(vf.ToolEnv):
    def __init__(self, where: str, named: Named) -> None:
        self.where, self.named = where, named
        super().__init__(tools=[self.held_tool], dataset=ROWS, rubric=Rubric(self.held_reward))

    def hold(self, where: str) -> None:
        if where == self.where:
            assert self.named.came.wait(PATIENCE)

    def held_tool(self) -> str:
        """Hold the loop."""
        self.hold("held_tool")
        return "done"

    def held_reward(self, state: State) -> float:
        self.hold("held_reward")
        return 1.0

    def setup_state(self, state: State) -> Any:
        self.hold("setup_state")
        return super().setup_state(state)

    @vfgym.cleanup
    def held_cleanup(self, state: State) -> None:
        self.hold("held_cleanup")

    async def get_prompt_messages(self, state: State) -> Any:
        self.hold("get_prompt_messages")
        return await super().get_prompt_messages(state)


CALL = AssistantMessage(None, tool_calls=[ToolCall("1", "held_tool", "{}")])
PLACES = ["held_tool", "held_reward", "setup_state", "held_cleanup", "get_prompt_messages"]


@pytest.mark.parametrize("where", PLACES)
async def test_a_function_that_holds_a_run_is_named(where: str, named: Named) -> None:
    env = Held(where, named)
    rows = (await aevaluate(env, vfgym.ScriptedAgent([CALL, "x"]), progress=False))["outputs"]
    assert [row["reward"] for row in rows] == [1.0]
    assert f"Held.{where} ({__file__}:" in named.text
    assert "@vfgym.blocking" in named.text
    assert "timeout_seconds" in named.text
    named.came.clear()
    rows = (await Held(where, named).generate(ROWS, ScriptedClient([CALL, "x"]), "m"))["outputs"]
    assert [row["reward"] for row in rows] == [1.0]
    assert f"Held.{where} ({__file__}:" in named.text


def test_an_agent_that_holds_a_synchronous_run_is_named(named: Named) -> None:
    def held_agent(observation: list[Message], info: dict[str, Any]) -> str:
        assert named.came.wait(PATIENCE)
        return "x"

    evaluate(vfgym.SingleTurnEnv(ROWS), held_agent, progress=False)
    assert f"held_agent ({__file__}:" in named.text


async def test_a_task_of_ones_own_that_holds_the_loop_is_named(named: Named) -> None:
    async def held_task() -> None:
        assert named.came.wait(PATIENCE)

    async def agent(observation: list[Message], info: dict[str, Any]) -> str:
        await asyncio.create_task(held_task())
        return "x"

    await aevaluate(vfgym.SingleTurnEnv(ROWS), agent, progress=False)
    assert f"held_task ({__file__}:" in named.text


def watchers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "vfgym-loop-watch"]


async def test_runs_on_one_loop_share_a_watch_which_ends_with_the_last(named: Named) -> None:
    before = watchers()
    with watch_loop():
        with watch_loop():
            [watcher] = [each for each in watchers() if each not in before]
        assert watcher.is_alive()
    await asyncio.to_thread(watcher.join, PATIENCE)
    assert not watcher.is_alive()


@pytest.mark.parametrize("error", [KeyError, asyncio.CancelledError, KeyboardInterrupt])
async def test_a_watch_ends_however_its_run_does(error: type[BaseException], named: Named) -> None:
    before = watchers()
    with contextlib.suppress(error), watch_loop():
        [watcher] = [each for each in watchers() if each not in before]
        raise error
    await asyncio.to_thread(watcher.join, PATIENCE)
    assert not watcher.is_alive()
    with watch_loop():
        assert [each for each in watchers() if each not in before] != []


@pytest.mark.parametrize("statement", ["importlib.import_module('slow_to_import')", "import slow_to_import"])
def test_what_the_library_imports_is_nobodys_function(statement: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named: list[str | None] = []
    monkeypatch.setattr(sys, "name_in_a_test", lambda frame: named.append(author_function(frame)), raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "slow_to_import.py").write_text("import sys\nsys.name_in_a_test(sys._getframe())\n")
    exec(f"import importlib\n{statement}", {"__name__": "vfgym.imports_something"})
    del sys.modules["slow_to_import"]
    assert named == [None]
