"""Actions that are texts are read as they are meant: without what decorates them, and as the command that the game lists."""

from __future__ import annotations

import string
from typing import Any

import gymnasium as gym
import pytest

import vfgym


class House(gym.Env[str, str]):
    """A house in which one types commands."""

    observation_space = gym.spaces.Text(1000, charset=string.printable)
    action_space = gym.spaces.Text(100, charset=string.printable)

    def __init__(self, commands: tuple[str, ...] = ()) -> None:
        self.commands = commands
        self.typed: list[str] = []

    def _info(self) -> dict[str, Any]:
        return {"admissible_commands": list(self.commands)} if self.commands else {}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        return "You are west of a house.", self._info()

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.typed.append(action)
        return f"You typed {action!r}.", 0.0, False, False, self._info()


def typed(answer: str, commands: tuple[str, ...] = ()) -> str | None:
    """Return what is typed for an answer; None where it is asked again."""
    house = House(commands)
    env = vfgym.to_chat(lambda: house)
    env.reset(seed=0)
    env.step(answer)
    return house.typed[-1] if house.typed else None


@pytest.mark.parametrize("answer", ["Open  Mailbox", "<action>OPEN MAILBOX!</action>", "open mailbox.", "Action: open mailbox"])
def test_a_command_that_the_game_lists_is_typed_as_it_is_listed(answer: str) -> None:
    assert typed(answer, ("look", "open mailbox")) == "open mailbox"


def test_what_the_game_does_not_list_is_typed_as_it_is() -> None:
    assert typed("<action>Dance</action>", ("look", "open mailbox")) == "Dance"
    assert typed("<action>go</action>", ("Go", "GO")) == "go"


def test_the_prompt_says_in_words_what_may_be_typed() -> None:
    observation, _ = vfgym.to_chat(House).reset(seed=0)
    assert "Actions: a text of 1 to 100 characters (letters, digits, punctuation, spaces, line breaks)." in observation[-1].content
    assert "<action>look</action>" in observation[-1].content


def test_every_text_travels_through_the_conversation() -> None:
    env = vfgym.to_gym(vfgym.to_chat(House))
    env.reset(seed=0)
    for text in (
        "open mailbox.",
        "**x**",
        "'x'",
        '"x"',
        "> x",
        "Action: x",
        "<|x|>",
        "[THINK]",
        "[/action]",
        "a.",
        ".",
        " x ",
        "<invoke name=act>",
    ):
        assert env.step(text)[0] == f"You typed {text!r}."
