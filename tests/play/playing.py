"""Games that are played by lines that a test types."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym

import vfgym
from vfgym.messages import Message
from vfgym.play import Game, SavedGame, Screen, Session
from vfgym.results import load_results

LAKE = "gymnasium/FrozenLake-v1"


RULES: dict[str, Any] = {"is_slippery": False}


class ScriptedScreen(Screen):
    """Reads given lines, and keeps what is shown. A None is the end of the input."""

    def __init__(self, lines: Sequence[str | None]) -> None:
        super().__init__()
        self.waiting = list(lines)
        self.shown: list[str] = []
        self.asked: list[str] = []

    @property
    def text(self) -> str:
        return "\n".join(self.shown)

    def ask(self, prompt: str) -> str:
        self.asked.append(prompt)
        line = self.waiting.pop(0) if self.waiting else None
        if line is None:
            raise EOFError
        return line

    def clear(self) -> None:
        self.shown.append("(cleared)")

    def say(self, text: str = "") -> None:
        self.shown.append(text.replace("\ue000", " "))  # spaces at which no line is broken


def make(env_id: str = LAKE, **arguments: Any) -> gym.Env[Any, Any]:
    return gym.make(env_id, **arguments)


def play(env: gym.Env[Any, Any], *lines: str | None, seed: int = 1, is_strict: bool = False) -> tuple[Game, str]:
    game, screen = Game(env, seed, is_strict=is_strict), ScriptedScreen(lines)
    Session(game, screen).play()
    return game, screen.text


def typed(game: Game) -> list[Any]:
    return [step["completion"][-1]["content"] for step in game.state["trajectory"]]


def save(game: Game, folder: Path, env_id: str = LAKE, env_args: dict[str, Any] | None = None) -> dict[str, Any]:
    with SavedGame(game, env_id=env_id, env_args=env_args or {}, output_dir=folder) as saved:
        saved.write()
    (row,) = load_results(saved.path)["outputs"]
    return row


class Uncopied(vfgym.GameEnv):
    can_go_back = False  # type: ignore[assignment]

    def open_game(self) -> list[str]:
        return []

    def begin_game(self, game: list[str], state: Any, seed: Any, options: Any) -> list[Message]:
        game.clear()
        return [vfgym.UserMessage("Say a, then b.")]

    def make_move(self, game: list[str], message: Message, state: Any) -> vfgym.Turn:
        game.append(message["content"])
        return vfgym.Turn([vfgym.UserMessage("Go on.")], 1.0, terminated=len(game) == 2, is_valid=message["content"] in "ab")

    def step_info(self, state: Any) -> dict[str, Any]:
        return {"legal_actions": ["a", "b"]}
