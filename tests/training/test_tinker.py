"""tinker-cookbook's environments, with its published interface stood in for (`pytest -m peers` plays in its own loop)."""

from __future__ import annotations

import pickle
from types import SimpleNamespace
from typing import Any

import pytest

import vfgym
from tests.training.trainers import environments
from tests.training.trainers.stand_ins import install
from vfgym.training.counting import RolloutMissing


class Renderer:
    """Writes conversations as lists of messages, and reads answers that are texts, thoughts and calls."""

    def get_stop_sequences(self) -> list[str]:
        return ["<end>"]

    def build_generation_prompt(self, messages: Any) -> Any:
        return list(messages)

    def create_conversation_prefix_with_tools(self, tools: Any, system: str) -> Any:
        return [{"role": "system", "content": f"{system}|{','.join(tool['name'] for tool in tools)}"}]

    def parse_response(self, tokens: Any) -> Any:
        return tokens[0], SimpleNamespace(is_clean=len(tokens) == 1)


class Call(SimpleNamespace):
    FunctionBody = SimpleNamespace


@pytest.fixture
def tinker(monkeypatch: pytest.MonkeyPatch) -> Any:
    types: Any = {
        "Env": type("Env", (), {}),
        "EnvGroupBuilder": type("EnvGroupBuilder", (), {}),
        "StepResult": SimpleNamespace,
        "STOP_METRIC_PREFIX": "stop/",
    }
    modules: dict[str, Any] = {
        "tinker": {"ModelInput": SimpleNamespace(empty=lambda: "empty")},
        "tinker_cookbook": {"renderers": SimpleNamespace(Renderer=Renderer, ToolCall=Call)},
        "tinker_cookbook__rl": {"types": SimpleNamespace(**types)},
    }
    return install(monkeypatch, "tinker", **modules)


def said(content: Any, **fields: Any) -> list[Any]:
    return [{"role": "assistant", "content": content, **fields}]


async def test_an_episode_is_played_in_what_the_renderer_reads_and_writes(tinker: Any) -> None:
    env = tinker.TinkerEnv(environments.make_lake(), Renderer(), seed=0)
    prompt, stops = await env.initial_observation()
    assert ([message["role"] for message in prompt], stops) == (["user"], ["<end>"])
    for place, move in enumerate(environments.ACROSS):
        read = said([{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": f"<action>{move}</action>"}])
        result = await env.step(read)
        if place == 0:
            assert result.next_observation[1] is read[0], "what the model said is written as it came"
    assert (result.reward, result.episode_done, result.next_observation, result.metrics["stop/game_over"]) == (1.0, True, "empty", 1.0)


async def test_calls_are_calls_and_tools_stand_before_the_conversation(tinker: Any) -> None:
    env = tinker.TinkerEnv(environments.make_sums(system_prompt="Add."), Renderer(), options={"example_id": 1})
    prompt, _ = await env.initial_observation()
    assert [message["content"] for message in prompt] == ["Add.|add", "1 + 2?"]
    call = Call(id=None, function=SimpleNamespace(name="add", arguments='{"a": 1, "b": 2}'))
    result = await env.step(said("", tool_calls=[call]))
    assert (result.next_observation[-1]["content"], result.next_observation[-1]["tool_call_id"], result.metrics) == ("3", "call_0", {})
    await env.close()


@pytest.mark.parametrize(("tokens", "extra"), [(["x", 2], None), (["x"], {"stop_reason": "length"})])
async def test_an_answer_that_was_cut_off_is_a_truncated_one(tinker: Any, tokens: list[Any], extra: Any) -> None:
    env = tinker.TinkerEnv(environments.make_sums(), Renderer(), options={"example_id": 1})
    await env.initial_observation()
    lost = SimpleNamespace(raw_text="<tool_call>{")
    await env.step([*said("I add.", unparsed_tool_calls=[lost]), *tokens[1:]], extra=extra)
    state = env._env.unwrapped.state
    assert (state["is_truncated"], state["trajectory"][0]["completion"][0].content) == (True, "I add.<tool_call>{")


async def test_a_group_begins_alike_and_is_closed(tinker: Any) -> None:
    builder = tinker.ChatEnvGroupBuilder(environments.make_lake(is_slippery=True), Renderer(), 3)
    made = await builder.make_envs()
    played = []
    for env in made:
        await env.initial_observation()
        played.append((await env.step(said("<action>down</action>"))).next_observation[-1])
    assert played[0] == played[1] == played[2]
    await builder.cleanup()
    assert (builder._made, builder.logging_tags()) == ([], ["GymnasiumGame"])
    copied = pickle.loads(pickle.dumps(tinker.ChatEnvGroupBuilder("gymnasium/FrozenLake-v1", None, 2, seed=4, options={"example_id": 7})))
    assert (copied._arguments, copied.logging_tags()) == (
        ("gymnasium/FrozenLake-v1", None, 2, 4, {"example_id": 7}),
        ["gymnasium/FrozenLake-v1"],
    )


async def test_what_says_nothing_of_the_policy_is_raised(tinker: Any) -> None:
    env = tinker.TinkerEnv(environments.make_unreachable(), Renderer())
    await env.initial_observation()
    with pytest.raises(RolloutMissing):
        await env.step(said("hello"))


def test_pictures_and_calls_of_messages_are_written(tinker: Any) -> None:
    picture = vfgym.UserMessage([{"type": "text", "text": "Look."}, {"type": "image_url", "image_url": {"url": "data:,"}}])
    assert tinker._as_tinker(picture)["content"] == [{"type": "text", "text": "Look."}, {"type": "image", "image": "data:,"}]
    calls = tinker._as_tinker(vfgym.AssistantMessage(None, tool_calls=[vfgym.ToolCall("c", "add", "{}")]))
    assert (calls["content"], calls["tool_calls"][0].id, calls["tool_calls"][0].function.name) == ("", "c", "add")
