"""`HumanAgent`: a person at the terminal."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import sys
from collections.abc import Sequence
from typing import Any, TypedDict

import gymnasium as gym

from vfgym.aio.bridge import in_bridge
from vfgym.aio.threads import on_thread
from vfgym.endings import Ending, ending_of
from vfgym.envs.seat import Action, EpisodeSeat, new_since, transcript
from vfgym.messages import AssistantMessage, Message, ToolCall
from vfgym.output.terminal import echo

_STANDARD_INPUT = 0
"""File descriptor of ``sys.__stdin__``."""


class HumanHelp(TypedDict):
    """The value of ``human`` in the row of an episode that a person played: the help they had, which no model has.

    Zeros are written too: a row without ``human`` was not played by a person.
    """

    hints: int
    """Hints that were shown."""
    undone: int
    """Moves that were taken back."""
    refused: int
    """Answers that were not moves, or not arguments of a tool: they were told so, and asked again at no cost."""


def no_help() -> HumanHelp:
    """Return the help of a person who has had none."""
    return HumanHelp(hints=0, undone=0, refused=0)


class EndOfInput(BaseException):
    """Whoever types the answers has ended the input (Ctrl-D): an evaluation stops, and keeps what is finished.

    As with `KeyboardInterrupt`, it is not an error of the episode, so nothing that records errors takes it for one.
    """


_MOST_LISTED = 40
"""Legal actions that a human is shown."""


class HumanAgent:
    """Shows the conversation on the terminal and reads the answer, one line; an empty one is asked for again.

    A line ``/tool {"a": 1}`` calls a tool of that name with these arguments. The end of the input is an
    `EOFError`, and in an evaluation `EndOfInput`. There are no hints, no way back and no second try: what is typed is played, as a
    model's answer is. The row says so (see `HumanHelp`).
    """

    name = "human"

    def for_episode(self, env: gym.Env[Any, Any]) -> HumanAnswers:
        """Return what asks the human in this episode."""
        seat: object = env.unwrapped
        if isinstance(seat, EpisodeSeat) and seat.state is not None:  # at another seat of a game, the row is somebody else's
            seat.state["human"] = no_help()
        return HumanAnswers()


class HumanAnswers:
    """What asks the human in one episode, and shows how it ends."""

    def __init__(self) -> None:
        """Begin with nothing shown."""
        self._shown: list[Message] = []

    def __call__(self, observation: list[Message], info: dict[str, Any]) -> Any:
        """Show what is new, and return what is typed: something to await in an evaluation."""
        self._show(self._new(observation))
        self._shown = observation
        tools = [tool["function"]["name"] for tool in info.get("tools") or ()]
        if tools:
            echo(f"(tools: {', '.join(tools)}; call one with /{tools[0]} " + '{"argument": "value"})')
        legal = info.get("legal_actions")
        if legal:
            more = f", and {len(legal) - _MOST_LISTED} more" if len(legal) > _MOST_LISTED else ""
            echo(f"(legal: {', '.join(legal[:_MOST_LISTED])}{more})")
        return _read_line_on_thread(tools) if in_bridge() else _read_line_now(tools)

    def show_end(self, observation: list[Message], info: dict[str, Any], episode_return: float | None) -> None:
        """Show the last observation of the episode and what came of it.

        Args:
            observation: The last observation.
            info: What the episode itself tells (`vfgym.episode.BaseEpisode.info`): wrappers may drop what it has to have.
            episode_return: Sum of the rewards; None if the episode is scored later, with others of its task.
        """
        if observation != self._shown:
            new = self._new(observation)
            # Of an observation that goes on from none (with limited history, say), all but the end was shown in others.
            self._show(new if len(new) < len(observation) or not self._shown else new[-1:])
        ended = f"\n{'over' if ending_of(info) is Ending.TERMINATED else 'cut off'} ({info['stop_condition']})"
        if episode_return is None:
            echo(f"{ended}: it is scored together with the other rollouts of its task")
            return
        echo(f"{ended}: reward {episode_return:g}")
        if "rewards" in info:
            echo("  " + ", ".join(f"{player}: {reward:g}" for player, reward in info["rewards"].items()))
        for name, value in info["metrics"].items():
            echo(f"  {name}: {value:g}")

    def _new(self, observation: list[Message]) -> list[Message]:
        """Return what was not shown yet; what was typed stands in the terminal already."""
        new = new_since(self._shown, observation)
        goes_on = self._shown and len(new) < len(observation)
        return [message for message in new if message["role"] != "assistant"] if goes_on else new

    def _show(self, messages: Sequence[Message]) -> None:
        if messages:
            echo(transcript(messages))


_PROMPT = "> "


_ASK_AGAIN = "(nothing was typed, so nothing is sent)"


def _read_line_now(tools: Sequence[str]) -> Action:
    while not (line := input(_PROMPT)).strip():
        echo(_ASK_AGAIN)
    return _parse_line(line, tools)


async def _read_line_on_thread(tools: Sequence[str]) -> Action:
    try:
        while not (line := await _line_of_input(_PROMPT)).strip():
            echo(_ASK_AGAIN)
    except EOFError:
        raise EndOfInput("the input ended: nobody answers any more") from None
    return _parse_line(line, tools)


async def _line_of_input(prompt: str) -> str:
    """Read a line as `input` does, while the event loop goes on and the task can be cancelled."""
    if sys.stdin is not sys.__stdin__ or not inspect.isbuiltin(input):  # a notebook, an editor: `input` asks in their own way
        return await on_thread(input, prompt)
    # No thread: one that waits in `input` takes the next line from whoever reads after a cancellation, and a process that ends
    # meanwhile aborts over the lock of the standard input.
    echo(prompt, end="", flush=True)
    line = b""
    while not line.endswith(b"\n"):
        await _readable(_STANDARD_INPUT)
        byte = os.read(_STANDARD_INPUT, 1)  # what follows the line is left to whoever reads next
        if not byte and not line:
            raise EOFError
        if not byte:
            break
        line += byte
    return line.decode(errors="replace").rstrip("\r\n")


async def _readable(file: int) -> None:
    """Wait until something can be read from a terminal or a pipe."""
    loop = asyncio.get_running_loop()
    is_ready = asyncio.Event()
    try:
        loop.add_reader(file, is_ready.set)
    except PermissionError:  # epoll takes no regular files, which can be read at any time
        return
    try:
        await is_ready.wait()
    finally:
        loop.remove_reader(file)


def _parse_line(line: str, tools: Sequence[str]) -> Action:
    name, _, arguments = line.removeprefix("/").partition(" ")
    if not line.startswith("/") or name not in tools:
        return line
    return AssistantMessage(None, tool_calls=[ToolCall(f"typed_{name}", name, arguments.strip() or json.dumps({}))])
