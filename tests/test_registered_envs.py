"""What holds for every registered environment that can be made here, with warnings as errors.

Each run takes a sample of the ids; ``pytest -m exhaustive`` takes all of them.
"""

from __future__ import annotations

import random
from typing import Any

import gymnasium
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env, data_equivalence

from tests.registered import playable_ids
from tests.sampling import SEED
from vfgym import AssistantMessage, ChatEnv, Response, ToolCall
from vfgym.registration import register_all

for module in ("Box2D", "mujoco", "pettingzoo", "reasoning_gym", "textarena"):
    pytest.importorskip(module, reason=f"needs {module}")
register_all()

IDS = playable_ids()
DATASETS = [env_id for env_id in IDS if env_id.startswith("reasoning-gym/")]
GAMES = [env_id for env_id in IDS if env_id not in DATASETS]
SLOW = ("knight_swap", "arc_agi", "rearc", "rubiks_cube", "Sudoku", "futoshiki", "quantum_lock", "group_anagrams", "integration")
"""What takes seconds to make its tasks: the exhaustive run has them."""
QUICK = [env_id for env_id in IDS if not any(name in env_id for name in SLOW)]
RNG = random.Random(SEED)
SOME_DATASETS = RNG.sample([env_id for env_id in QUICK if env_id in DATASETS], 6)
SOME_GAMES = [
    env_id
    for namespace, count in (("gymnasium", 6), ("pettingzoo", 2), ("textarena", 8))
    for env_id in RNG.sample([env_id for env_id in QUICK if env_id.startswith(f"{namespace}/")], count)
]

SILLY_ACTIONS = {
    "empty": "",
    "blank": " \n\t",
    "empty tags": "<answer></answer>",
    "open tag": "</answer><answer>",
    "none": "None",
    "number": "0",
    "negative": "-1",
    "tower": "9**9**9**9**9",
    "large number": "1e999999999",
    "long move": "F+999999999",
    "many digits": "9" * 5_000,
    "not a number": "nan",
    "json": '{"a": [1, null, {"b": "\\u0000"}]}',
    "wrong types": "<answer>[1, [2], {}]</answer>",
    "unclosed": "((((([[[[[{{{{{",
    "code": "__import__('os').abort()",
    "unicode": "\u0663\u00b2\u2460\u202e\x00\ud83e",
    "long": "a b 1 " * 5_000,
    "no content": AssistantMessage(None, tool_calls=[ToolCall("1", "no_such_tool", "{}")]),
    "invalid arguments": AssistantMessage("I call", tool_calls=[ToolCall("1", "no_such_tool", "{not json"), ToolCall("1", "", "[]")]),
    "parts": {"role": "assistant", "content": [{"type": "text", "text": "yes"}, {"type": "text", "text": "42"}]},
    "response": Response("", 0, "", None, AssistantMessage("42")),
}


def for_ids(some: list[str], all_of_them: list[str]) -> Any:
    """Parametrize a test with some ids and, in the exhaustive run, with all."""
    others = [pytest.param(env_id, marks=pytest.mark.exhaustive, id=f"all-{env_id}") for env_id in all_of_them]
    return pytest.mark.parametrize("env_id", [*some, *others])


for_every_id = for_ids([*SOME_DATASETS, *SOME_GAMES], IDS)


def make(env_id: str) -> ChatEnv:
    """Make an environment without Gymnasium's wrappers."""
    env = gymnasium.make(env_id).unwrapped
    assert isinstance(env, ChatEnv)
    return env


def played(env: ChatEnv, seed: int, episodes: int = 3, most_turns: int = 8) -> list[Any]:
    """Play some episodes with sampled actions, and return all that was observed."""
    env.action_space.seed(seed)
    seen: list[Any] = []
    for episode in range(episodes):
        seen.append(env.reset(seed=seed if episode == 0 else None))
        for _ in range(most_turns):
            outcome = tuple(env.step(env.action_space.sample()))
            seen.append(outcome)
            if outcome[2] or outcome[3]:
                break
    env.close()
    return seen


@for_every_id
def test_gymnasiums_checker_is_content(env_id: str) -> None:
    check_env(make(env_id))


@for_every_id
def test_a_seed_replays_its_episodes(env_id: str) -> None:
    env = make(env_id)
    first = played(env, seed=7)
    assert data_equivalence(first, played(make(env_id), seed=7))
    assert data_equivalence(first, played(env, seed=7))


@for_every_id
def test_a_spec_survives_json(env_id: str) -> None:
    """An environment that is made from the spec in JSON gives the same episodes."""
    spec = gymnasium.make(env_id).spec
    assert spec is not None
    again = gymnasium.make(EnvSpec.from_json(spec.to_json()))
    assert again.spec == spec
    assert isinstance(again.unwrapped, ChatEnv)
    assert data_equivalence(played(make(env_id), seed=3, episodes=1), played(again.unwrapped, seed=3, episodes=1))


@for_every_id
def test_every_assistant_message_is_accepted(env_id: str) -> None:
    """However silly it is, it is a turn, and what comes back is sound."""
    env = make(env_id)
    env.reset(seed=0)
    for action in SILLY_ACTIONS.values():
        assert isinstance(action, Response) or action in env.action_space
        env.reset(options={"example_id": env.state["example_id"]} if env_id in DATASETS else None)
        conversation, reward, terminated, truncated, info = env.step(action)
        assert conversation in env.observation_space
        assert 0.0 <= reward <= 1.0 or env_id in GAMES
        assert type(terminated) is type(truncated) is bool
        assert all(type(value) is float for value in info["metrics"].values())
        assert "error" not in info
        assert "metrics_errors" not in env.state


@for_ids(SOME_DATASETS, DATASETS)
def test_the_oracle_is_right(env_id: str) -> None:
    env = make(env_id)
    for split in ("train", "train", "eval", "eval"):
        env.reset(seed=11 if env.state is None else None, options={"split": split})
        assert env.step(env.oracle(env.state)).reward == 1.0
