"""`NewMessages`: only what is new since the last observation, and the whole conversation where history was rewritten."""

from typing import Any

import gymnasium as gym

import vfgym
from tests.environments import Echo
from vfgym.state import State


class Forgetful(Echo):
    def get_prompt_messages(self, state: State) -> Any:
        turn = len(state["trajectory"])
        return [vfgym.UserMessage(f"turn {turn}")]


def test_the_deltas_put_together_are_the_conversation() -> None:
    env = vfgym.NewMessages(Echo(dataset=[{"question": "hello"}], max_turns=3))
    observation, info = env.reset(seed=0)
    conversation = [*observation]
    assert info["is_rewritten"] is False
    for answer in ("a", "b", "c"):
        observation, _, _, truncated, info = env.step(answer)
        assert observation[0].content == answer
        conversation += observation
    assert truncated
    assert conversation == env.unwrapped._episode.conversation()


def test_a_rewritten_history_is_shown_whole() -> None:
    env = vfgym.NewMessages(Forgetful(dataset=[{"question": "hello"}]))
    env.reset(seed=0)
    observation, _, _, _, info = env.step("a")
    assert [message.content for message in observation] == ["turn 1"]
    assert info["is_rewritten"] is True


def test_it_can_be_made_again_from_a_spec() -> None:
    gym.register("tests/Echo-v0", entry_point=lambda: Echo(dataset=[{"question": "hello"}], max_turns=2))
    try:
        env = vfgym.NewMessages(gym.make("tests/Echo-v0"))
        assert isinstance(gym.make(env.spec), vfgym.NewMessages)
    finally:
        del gym.registry["tests/Echo-v0"]
