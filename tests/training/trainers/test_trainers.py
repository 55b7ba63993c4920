"""Trainers' own loops, each in an environment of its own, reach the rewards that `evaluate` reports for the same answers.

``python scripts/peers.py trl skyrl gem tinker torchrl verl areal art rllm`` makes the environments.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from typing import Any

import pytest

import vfgym
from scripts.peers import python_of
from tests.programs import SECONDS
from tests.training.trainers import environments
from vfgym.training.adapters import read_answer

pytestmark = pytest.mark.peers

MOVES = [[f"<action>{move}</action>" for move in moves] for moves in (environments.ACROSS, environments.INTO_A_HOLE)]


START = """
import runpy, sys, types
sys.modules["tests"] = tests = types.ModuleType("tests")  # verl brings a package of that name
tests.__path__ = ["tests"]
del sys.argv[0]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""


def run_trainer(trainer: str, *arguments: str, peer: str = "") -> Any:
    """Run the program of a trainer with its Python, and return what it printed last."""
    python = python_of(peer or trainer)
    assert python.exists(), f"there is no {trainer} to play with: python scripts/peers.py {peer or trainer}"
    done = subprocess.run(
        [str(python), "-c", START, f"tests.training.trainers.with_{trainer}", *arguments],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def evaluate(env: Any, answers: Sequence[str], example_id: int = 0) -> float:
    """Return what `evaluate` reports for these answers."""

    def agent(observation: Any, info: Any) -> Any:
        turn = sum(message["role"] == "assistant" for message in observation)
        if turn == len(answers):
            raise vfgym.errors.ModelError("the model says no more")
        return read_answer(answers[turn], info["tools"])

    [row] = vfgym.evaluate(env, agent, example_ids=[example_id], progress=False)["outputs"]
    return float(row["reward"])


def sums(numbers: int, example_id: int) -> list[float]:
    return [evaluate(environments.make_sums(), environments.answers_to_sums(example_id, number), example_id) for number in range(numbers)]


def test_trl_calls_tools_as_methods() -> None:
    """The last answer counts too, and each instance plays the task of its row."""
    found = run_trainer("trl", "sums")
    assert found["rewarded"] == [[example_id, reward] for example_id in range(3) for reward in sums(4, example_id)]
    assert found["learned"]
    assert found["schema"]["description"] == "Add two numbers."
    assert found["schema"]["parameters"]["required"] == ["a", "b"]
    unit = {"type": "string", "enum": ["ones", "tens"], "description": "What they count."}
    assert found["schema"]["parameters"]["properties"]["unit"] == unit


def test_trl_trains_on_rollouts_that_are_sampled_here() -> None:
    """Each group has one task, its rewards are those of its episodes, and the model learns from them."""
    found = run_trainer("trl", "rollout")
    assert [example_id for example_id, _ in found["rewarded"]] == [0] * 4 + [1] * 4 + [2] * 4
    assert sorted(found["rewarded"]) == sorted([example_id, reward] for example_id, reward, _ in found["played"])
    assert {turns for _, _, turns in found["played"]} == {2}
    assert found["learned"]


def test_trl_leaves_out_what_says_nothing_of_the_policy() -> None:
    """A rollout whose sandbox died moves no baseline, and nothing is learned from it."""
    found = run_trainer("trl", "lost")
    rewards = [reward for _, reward in found["rewarded"]]
    assert [reward is None for reward in rewards].count(True) == 1
    assert None in rewards[4:8]
    for reward, advantage in zip(rewards, found["advantages"], strict=True):
        assert advantage == 0.0 or reward is not None
    groups = [slice(first, first + 4) for first in range(0, len(rewards), 4)]
    assert all(abs(sum(found["advantages"][group])) < 1e-5 for group in groups), "the mean is that of the others"
    assert found["learned"]


def test_skyrl_plays_conversations() -> None:
    found = run_trainer("skyrl")
    lake = environments.make_lake()
    assert [played["reward"] for played in found["played"]] == [evaluate(lake, MOVES[0]), evaluate(lake, MOVES[1]), *sums(3, 1)]
    assert found["played"][3]["roles"] == ["user", "assistant", "tool", "assistant"]
    assert found["by_id"]["metadata"] == {"terminated": False, "truncated": True}, "max_turns truncates"
    assert (found["combined"]["add_calls"], found["lost"]) == (1.0, "infrastructure_failed")
    history, seed, env = found["refused"]
    assert "SkyRL puts what an environment answers behind the conversation so far" in history
    assert "must have a seed" in seed
    assert "what to play" in env


def test_gem_plays_text() -> None:
    found = run_trainer("gem")
    lake = environments.make_lake()
    assert found["vector"] == [evaluate(lake, MOVES[0]), evaluate(lake, MOVES[1])]
    example_id = int(found["tools"][0]["observations"][0][0])
    assert [played["reward"] for played in found["tools"]] == sums(3, example_id)
    assert found["tools"][1]["observations"][1] == str(example_id + 2), "what the tool returned"
    assert found["joined"].count("<action>down</action>\n") == 4, "the example of the prompt, and three moves"
    assert found["lost"] == "infrastructure_failed"
    assert found["random"] in ("left", "down", "right", "up")


def test_gem_spawns_in_the_middle_of_an_episode() -> None:
    """A copy of a game of chance meets the same chances, and leaves the original alone."""
    first, second = run_trainer("gem")["branches"]
    assert first == second


def test_tinker_plays_groups_in_tokens() -> None:
    """Builders go through pickle. What extends the turn before is one datum; a short history is one a turn, as far as it differs."""
    found = run_trainer("tinker")
    assert (found["sums"]["rewards"], found["sums"]["data"]) == (sums(3, 1), [1, 1, 1])
    assert found["sums"]["says_tools"]
    assert found["sums"]["stops"] == ["no_tools_called"] * 3
    lake = environments.make_lake()
    assert found["lake"]["rewards"] == [evaluate(lake, MOVES[0]), evaluate(lake, MOVES[1]), evaluate(lake, MOVES[0])]
    assert found["lake"]["turns"] == [6, 2, 6]
    assert found["thoughts"] == 1, "thoughts are written as they came, so six turns are one datum"
    assert found["tags"] == ["gymnasium/FrozenLake-v1"]
    assert found["alike"], "members of a group begin alike"
    assert found["lost"] == [10 / 16] * 2, "a rollout whose sandbox died is no member of its group"


def test_torchrl_rolls_out_messages() -> None:
    lake = environments.make_lake()
    for played, moves in zip(run_trainer("torchrl"), MOVES, strict=True):
        assert sum(played["rewards"]) == evaluate(lake, moves)
        assert played["done"]
        assert played["seen"] == list(range(1, 2 * len(moves), 2))


def test_stable_baselines_learns_the_same_weights_through_a_conversation() -> None:
    assert run_trainer("sb3", peer="torchrl") == {"PPO": True, "DQN": True}


def test_verl_plays_in_its_own_worker() -> None:
    """Its batch has the very ids that were sampled, and the rewards of the episodes."""
    found = run_trainer("verl")
    lake = environments.make_lake()
    assert found["lake"]["rewards"] == [evaluate(lake, MOVES[0]), evaluate(lake, MOVES[1])]
    assert found["lake"]["exact"] == [True, True]
    assert found["lake"]["written"] == "".join(f"{move}<|im_end|>" for move in MOVES[0])
    assert (found["lake"]["logprobs"], found["lake"]["turns"], found["lake"]["steps"]) == ([-0.5], [12, 4], [[1, 1], [6, 2]])
    assert (found["sums"]["rewards"], found["cut"]["rewards"]) == (sums(3, 0), [0.0])
    assert (found["unreachable"]["raised"], found["short"]["raised"]) == ("RolloutMissing", "ConfigurationError")
    assert "trainer.use_v1=True" in found["short"]["text"]
    assert len(found["by_hand"]) > 1
    for fields, reward, written in found["by_hand"]:
        assert {"prompts", "responses", "response_mask", "rm_scores"} <= set(fields)
        assert reward == 1.0
        assert written > 0


def test_areal_records_with_its_own_proxy() -> None:
    """A rollout that says nothing of the policy is rejected by its workflow."""
    played, *rejected = run_trainer("areal")
    assert [reward for reward, _, _ in played] == [1.0] * len(environments.ACROSS)
    assert all(written > 0 and {"input_ids", "logprobs", "loss_mask"} <= set(fields) for _, written, fields in played)
    assert rejected == [{"rejected": "RolloutMissing"}] * 2


def test_art_gathers_trajectories() -> None:
    """What says nothing of the policy is among a group's exceptions, and not among its trajectories."""
    found = run_trainer("art")
    lake = found["lake"]["trajectories"]
    assert ([played["reward"] for played in lake], [played["choices"] for played in lake]) == ([1.0, 1.0], [[6], [6]])
    assert all(played["has_logprobs"] for group in found.values() for played in group["trajectories"])
    [short] = found["short"]["trajectories"]
    assert len(short["choices"]) > 1, "a conversation that is rewritten is several histories"
    [added] = found["sums"]["trajectories"]
    assert (added["reward"], added["roles"], added["tools"]) == (sums(2, 0)[1], ["user", "assistant", "tool", "assistant"], ["add"])
    assert found["broken"]["trajectories"] == []
    assert ["RolloutMissing" in kind for kind in found["broken"]["exceptions"]] == [True, True]


def test_rllm_records_with_its_own_gateway() -> None:
    across, falls, broken = run_trainer("rllm")
    assert (across["reward"], across["turns"]) == (1.0, list(range(6)))
    assert (falls["reward"], falls["turns"]) == (0.0, [0, 1])
    assert 0 < falls["written"] < falls["ids"]
    assert broken == {"missing": "environment_failed"}
