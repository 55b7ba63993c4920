"""`max_actions_per_turn`: several actions in one answer are what as many answers are."""

from __future__ import annotations

import json
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import vfgym
from vfgym.codecs import ActionNotFound, codec_for
from vfgym.errors import ConfigurationError
from vfgym.messages import AssistantMessage, Response, ResponseMessage, ToolCall
from vfgym.wrappers.games.action_lists import ActionLists


def tagged(*texts: str) -> str:
    return "".join(f"<action>{text}</action>" for text in texts)


def called(*actions: Any, call_id: str = "call_1") -> AssistantMessage:
    return AssistantMessage(None, tool_calls=[ToolCall(call_id, "act", json.dumps({"actions": [*actions]}))])


def lake(most: int = 3, **options: Any) -> Any:
    env = vfgym.to_chat("FrozenLake-v1", max_actions_per_turn=most, is_slippery=False, **options)
    env.reset(seed=0)
    return env


def place(env: Any) -> int:
    return int(env.state["observation"])


@pytest.mark.parametrize("as_tool", [False, True])
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(1, 9))])
@pytest.mark.parametrize("game_id", ["CartPole-v1", "CliffWalking-v1", "Blackjack-v1", "Pendulum-v1"])
def test_k_actions_in_one_answer_are_k_answers(game_id: str, seed: int, as_tool: bool) -> None:
    """The same observation, info, flags and sum of rewards, after each answer and at the end."""
    most = 4
    together = vfgym.to_chat(game_id, max_actions_per_turn=most, as_tool=as_tool)
    one_by_one, space, rng = vfgym.to_chat(game_id), gym.make(game_id).action_space, np.random.default_rng(seed)
    space.seed(seed)
    together.reset(seed=seed)
    one_by_one.reset(seed=seed)
    codec, earned, moves = together.codec, 0.0, 0
    for turn in range(12):
        actions = [space.sample() for _ in range(int(rng.integers(1, most + 1)))]
        rewards: list[float] = []
        for action in actions:
            single = one_by_one.step(tagged(codec.encode(action)))
            rewards.append(single.reward)
            if single.terminated or single.truncated:
                break
        if as_tool:
            answer: Any = called(*map(codec.to_json, actions), call_id=f"call_{turn}")
        else:
            answer = f"<think>{tagged('no', 'no')}</think>So: {' then '.join(tagged(codec.encode(action)) for action in actions)}."
        outcome = together.step(answer)
        np.testing.assert_equal(together.state["observation"], one_by_one.state["observation"])
        np.testing.assert_equal(outcome.info["game_info"], single.info["game_info"])
        assert outcome.reward == pytest.approx(sum(rewards))
        assert outcome[2:4] == single[2:4]
        earned, moves = earned + sum(rewards), moves + len(rewards)
        assert together.state["trajectory"][-1]["extras"]["actions"] == len(rewards)
        if outcome.terminated or outcome.truncated:
            assert together.state["reward"] == pytest.approx(one_by_one.state["reward"]) == pytest.approx(earned)
            assert outcome.info["metrics"]["num_actions"] == moves == len(one_by_one.state["trajectory"])
            break
    together.close()
    one_by_one.close()


def test_the_reply_shows_where_the_last_action_led_and_the_sum_of_rewards() -> None:
    env = vfgym.to_chat("CliffWalking-v1", max_actions_per_turn=3)
    env.reset(seed=0)
    outcome = env.step(tagged("up", "right", "down"))
    assert outcome.reward == -102
    assert len(outcome.observation) == 3
    assert outcome.observation[-1].content.endswith("x  C  C  C  C  C  C  C  C  C  C  T\n\nReward: -102")


def test_what_comes_after_the_end_is_not_played_and_the_reply_says_so() -> None:
    env = lake(8)
    outcome = env.step(tagged("right", "down", "left", "left"))
    assert (outcome.terminated, place(env)) == (True, 5)
    assert outcome.observation[-1].content.endswith("The game is over. 2 of your 4 actions were played.")
    assert outcome.info["metrics"]["num_actions"] == 2
    env.reset(seed=0)
    assert env.step(tagged("right", "down")).observation[-1].content.endswith("The game is over.")


@pytest.mark.parametrize(
    ("answer", "played"),
    [
        *(
            (answer, 1)
            for answer in ("right", "I think.\nAction: right", "<think>right or down?</think>right", "<action>right</action>\nDone.")
        ),
        ("First <action>right</action>, then <ACTION> 2 </ACTION>.", 2),
        ("<think><action>down</action></think><action>right</action><action>right</action>", 2),
        ("<action>...</action><action>right</action>", 1),
        ("<action>right<action>right</action>", 2),
        ("<action>right</action><action>right", 2),  # whoever stops at the closing tag does not say it
    ],
)
def test_one_action_in_any_form_or_several_in_tags_are_played_in_order(answer: str, played: int) -> None:
    env = lake()
    env.step(answer)
    assert (place(env), env.state["trajectory"][-1]["extras"]["actions"]) == (played, played)


@pytest.mark.parametrize("as_tool", [False, True])
@pytest.mark.parametrize(
    ("actions", "problem"),
    [
        (("right", "jump", "right"), "Action 2 of 3 cannot be read: "),
        (("right",) * 4, "You gave 4 actions, and at most 3 are played in a turn."),
    ],
)
def test_what_cannot_all_be_played_is_not_played_at_all(actions: tuple[str, ...], problem: str, as_tool: bool) -> None:
    env = lake(as_tool=as_tool)
    outcome = env.step(called(*actions) if as_tool else tagged(*actions))
    reply = outcome.observation[-1]
    assert reply.role == ("tool" if as_tool else "user")
    assert problem in reply.content
    assert reply.content.endswith("None of your actions was played.")
    assert place(env) == 0
    assert env.state["trajectory"][-1]["extras"]["invalid_answer"]
    assert env.state["invalid_moves"] == 1


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ("{}", 'takes one argument: {"actions": [...]}, a list of 1 to 3'),
        ('{"actions": []}', "a list of 1 to 3"),
        ('{"actions": "right"}', "a list of 1 to 3"),
        ('{"actions": ["right"], "speed": 2}', "a list of 1 to 3"),
        ('{"actions": ["jump"]}', "left"),
        ("{right}", "not JSON"),
    ],
)
def test_a_call_without_a_list_of_actions_is_told_why(arguments: str, problem: str) -> None:
    env = lake(as_tool=True)
    reply = env.step(AssistantMessage(None, tool_calls=[ToolCall("call_7", "act", arguments)])).observation[-1]
    assert (reply.role, reply.tool_call_id) == ("tool", "call_7")
    assert problem in reply.content


def test_of_an_answer_that_was_cut_off_only_closed_tags_are_played() -> None:
    env = lake()
    message = ResponseMessage("<action>right</action><action>right</action><action>do", finish_reason="length", is_truncated=True)
    env.step(Response(id="1", created=0, model="m", message=message))
    assert place(env) == 2


@pytest.mark.parametrize(("on_invalid", "played"), [("noop", 1), ("random", 1), ("feedback", 0), ("terminate", 0)])
def test_an_invalid_answer_leads_to_what_on_invalid_says(on_invalid: Any, played: int) -> None:
    options: dict[str, Any] = {"noop_action": "up"} if on_invalid == "noop" else {}
    env = lake(on_invalid=on_invalid, invalid_reward=-0.5, **options)
    outcome = env.step(tagged("right", "jump"))
    assert outcome.reward == -0.5
    assert env.state["num_moves"] == played
    assert outcome.terminated == (on_invalid == "terminate")
    assert ("Instead, " in outcome.observation[-1].content) == bool(played)


def test_turns_are_answers_and_steps_are_moves() -> None:
    env = vfgym.to_chat("CartPole-v1", max_actions_per_turn=3, max_turns=2, show=("step",))
    first, _ = env.reset(seed=0)
    assert first[-1].content.endswith("\nStep 0 of 6")
    assert env.step(tagged("left", "right")).observation[-1].content.endswith("\nStep 2 of 5")
    outcome = env.step(tagged("left", "right", "left"))
    assert (outcome.truncated, outcome.reward, outcome.info["metrics"]["num_turns"]) == (True, 3.0, 2.0)


def test_the_prompt_and_the_tool_say_how_many_and_how() -> None:
    prompt = lake().state["prompt"][0].content
    assert "Answer with 1 to 3 actions, which are played in order, each in <action> tags of its own" in prompt
    assert "<action>down</action><action>down</action>" in prompt
    env = lake(as_tool=True)
    (tool,) = env.reset(seed=0)[1]["tools"]
    actions = tool["function"]["parameters"]["properties"]["actions"]
    assert (actions["type"], actions["minItems"], actions["maxItems"]) == ("array", 1, 3)
    assert actions["items"]["enum"] == ["left", "down", "right", "up"]
    assert 'with the arguments {"actions": ["down", "down"]}' in env.state["prompt"][0].content


def test_one_action_a_turn_is_what_it_was() -> None:
    env, usual = lake(1, as_tool=True), vfgym.to_chat("FrozenLake-v1", as_tool=True, is_slippery=False)
    assert env.state["prompt"] == usual.reset(seed=0)[0]
    assert env.answers.tools == usual.answers.tools
    env.step(tagged("right"))
    assert "actions" not in env.state["trajectory"][-1]["extras"]


LISTS = ActionLists(codec_for(gym.spaces.Discrete(3), ["left", "stay", "right"]), 2, as_tool=True, game="Chess")


def test_the_tool_says_what_it_plays() -> None:
    (tool,) = LISTS.tools
    assert tool.description == "Play your next 1 to 2 actions in Chess, in this order. Actions: 0 (left), 1 (stay), 2 (right)."
    actions = {"type": "array", "items": LISTS.codec.schema, "minItems": 1, "maxItems": 2}
    assert tool.parameters == {"type": "object", "properties": {"actions": actions}, "required": ["actions"], "additionalProperties": False}
    assert ActionLists(LISTS.codec, 2).tools == []
    assert LISTS.as_call(2, "call_9") == called("right", call_id="call_9")
    assert LISTS.as_call_of([2, 0], "call_9") == called("right", "left", call_id="call_9")
    assert LISTS.as_call(0) == LISTS.as_call_of([0]) == called("left")


@pytest.mark.parametrize(
    ("message", "is_cut_off", "actions"),
    [
        (called("left", 2), False, [0, 2]),
        (called("left", 2), True, [0, 2]),
        (tagged("left", "right"), False, [0, 2]),
        (tagged("left", "right") + "<action>stay", True, [0, 2]),
        (f"{tagged('left')}<action>right", True, [0]),
        ('act(actions=["left", "right"])', False, [0, 2]),
        ("right", False, [2]),
    ],
)
def test_as_many_actions_as_may_be_are_read_in_order(message: Any, is_cut_off: bool, actions: list[int]) -> None:
    message = AssistantMessage(message) if isinstance(message, str) else message
    assert LISTS.read_all(message, is_cut_off=is_cut_off) == actions


def test_where_one_action_is_read_several_are_none() -> None:
    assert LISTS.read(AssistantMessage("right")) == LISTS.read(called("right")) == 2
    for message in (AssistantMessage(tagged("left", "right")), called(0, 2)):
        with pytest.raises(ActionNotFound, match=r"^There are 2 actions\.$"):
            LISTS.read(message)


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        (tagged("left", "left", "left"), "You gave 3 actions, and at most 2 are played in a turn. None of your actions was played."),
        (called("left", "left", "left"), "You gave 3 actions, and at most 2 are played in a turn. None of your actions was played."),
        ("act(actions=[0, 0, 0])", "You gave 3 actions, and at most 2 are played in a turn. None of your actions was played."),
        (called("left", 7), "Action 2 of 2 cannot be read: The action must be a name or a number from 0 to 2, got 7. "),
        (called(7), "The action must be a name or a number from 0 to 2, got 7."),
    ],
)
def test_the_whole_answer_is_refused_where_one_action_cannot_be_played(message: Any, problem: str) -> None:
    with pytest.raises(ActionNotFound) as caught:
        LISTS.read_all(AssistantMessage(message) if isinstance(message, str) else message)
    assert str(caught.value).startswith(problem)
    assert ("None of your actions was played." in str(caught.value)) == (message != called(7))


@pytest.mark.parametrize("most", [0, -1, 1.5, "two", True])
def test_a_number_of_actions_that_cannot_be_is_refused(most: Any) -> None:
    with pytest.raises(ConfigurationError, match="max_actions_per_turn must be a whole number of at least 1"):
        vfgym.to_chat("CartPole-v1", max_actions_per_turn=most)


@pytest.mark.parametrize(
    ("answer", "count"),
    [
        ("<action>main engine</action><action>main engine (it falls)</action>", 2),
        ("<action>not\n2</action><action>2</action>", None),
        ('<tool_call>{"name": "act", "arguments": {"actions": ["fire main engine", 0]}}</tool_call>', 2),
        ("I call\nact(actions=[2, 0])", 2),
        ('{"actions": [1]}', 1),
    ],
)
def test_each_of_several_actions_is_read_as_a_mark_and_a_call_may_be_text(answer: str, count: int | None) -> None:
    env = vfgym.to_chat("LunarLander-v3", max_actions_per_turn=3)
    env.reset(seed=0)
    env.step(answer)
    assert env.state is not None
    extras = env.state["trajectory"][-1]["extras"]
    assert (extras.get("invalid_answer"), extras.get("actions")) == ((True, None) if count is None else (None, count))
    env.close()
