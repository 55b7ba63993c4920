"""Actions that are texts are read as they are meant: without what decorates them, and as the command that the game lists."""

from __future__ import annotations

import string

import gymnasium as gym
import pytest

import vfgym
from tests.wrappers.gymnasium.toys import Toy, first_content


class House(Toy):
    """A house in which one types commands."""

    observation_space = gym.spaces.Text(1000, charset=string.printable)
    action_space = gym.spaces.Text(100, charset=string.printable)

    def seen(self) -> str:
        return f"You typed {self.played[-1]!r}." if self.played else "You are west of a house."


def typed(answer: str, commands: tuple[str, ...] = ()) -> str | None:
    env = vfgym.to_chat(lambda: House(info={"admissible_commands": commands}))
    env.reset(seed=0)
    env.step(answer)
    return next(iter(env.state.session.game.played), None)


@pytest.mark.parametrize(
    ("answer", "command"),
    [
        ("Open  Mailbox", "open mailbox"),
        ("<action>OPEN MAILBOX!</action>", "open mailbox"),
        ("Action: open mailbox", "open mailbox"),
        ("<action>Dance</action>", "Dance"),
        ("<action>go</action>", "go"),
    ],
)
def test_a_command_that_the_game_lists_is_typed_as_it_is_listed(answer: str, command: str) -> None:
    assert typed(answer, ("look", "open mailbox", "Go", "GO")) == command


def test_the_prompt_says_in_words_what_may_be_typed() -> None:
    told = first_content(vfgym.to_chat(House))
    assert "Actions: a text of 1 to 100 characters (letters, digits, punctuation, spaces, line breaks)." in told
    assert "<action>look</action>" in told


def test_every_text_travels_through_the_conversation() -> None:
    env = vfgym.to_gym(vfgym.to_chat(House))
    env.reset(seed=0)
    texts = ("open mailbox.", "**x**", "'x'", '"x"', "> x", "Action: x", "<|x|>", "[THINK]", "[/action]", "a.", ".", " x ")
    for text in (*texts, "<invoke name=act>"):
        assert env.step(text)[0] == f"You typed {text!r}."
