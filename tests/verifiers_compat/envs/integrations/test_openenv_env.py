"""`vf.OpenEnvEnv`: the documented rows, prompts, rewards and stops of both contracts, for a project and for a server that runs."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tests.openenv_servers
import verifiers_compat as vf
from tests.openenv_servers import GYM_ACTION, StandIn, serving
from tests.verifiers_compat.models import Model, calling, rolled_out
from tests.verifiers_compat.test_two_faces import comparable
from verifiers_compat.envs.integrations import openenv_env
from vfgym.errors import ConfigurationError, UnknownArgument
from vfgym.testing import ScriptedClient


def render(observation: dict[str, Any], context: str, seed: int) -> list[dict[str, str]]:
    return [{"role": "user", "content": f"{context} {seed}: {observation['total']}"}]


@pytest.fixture
def server() -> Iterator[StandIn]:
    with serving(StandIn()) as stand_in:
        yield stand_in


@pytest.fixture
def tools() -> Iterator[StandIn]:
    with serving(StandIn("mcp")) as stand_in:
        yield stand_in


def test_rows_have_what_the_server_shows_first_and_the_seed(server: StandIn) -> None:
    env = vf.OpenEnvEnv(url=server.url, num_train_examples=3, num_eval_examples=2, seed=5, prompt_renderer=render)
    assert server.opened == 0  # whoever asks for a dataset pays for the resets
    rows = list(env.get_dataset())
    assert [row["info"] for row in rows] == [{"seed": 5}, {"seed": 6}, {"seed": 7}]
    assert [row["prompt"][-1]["content"] for row in rows] == ["reset 5: 5", "reset 6: 6", "reset 7: 7"]
    assert [row["info"]["seed"] for row in env.get_eval_dataset()] == [8, 9]
    server.wait_until_all_ended()
    assert server.opened == 5


async def test_a_rollout_of_the_contract_gym(server: StandIn) -> None:
    """As many model calls as steps; the prompt is what the server shows, whatever the row says."""
    env = vf.OpenEnvEnv(url=server.url, num_train_examples=2, prompt_renderer=render)
    model = Model(lambda number, state: '{"add": 4}')
    row = {"prompt": [{"role": "user", "content": "old"}], "info": {"seed": 3}, "example_id": 0}
    state = await env.rollout(row, model, "m")
    assert model.calls == 3
    assert [message["content"] for message in state["prompt"]] == ["reset 3: 3"]
    assert [message["content"] for message in state["completion"]][1::2] == ["step 3: 7", "step 3: 11", "step 3: 15"]
    assert [step["reward"] for step in state["trajectory"]] == [0.4, 0.4, 0.4]
    assert (state["stop_condition"], state["is_truncated"], state["openenv_done"]) == ("openenv_done", False, True)
    assert await env.openenv_done(state)
    server.wait_until_all_ended()


async def test_a_rollout_of_the_contract_mcp(tools: StandIn) -> None:
    env = vf.OpenEnvEnv(url=tools.url, prompt_renderer=render_total)
    state = await rolled_out(env, calling(("add", {"number": 1}), ("add", {"number": 2})), "Three.")
    assert [tool.name for tool in state["tool_defs"]] == ["add", "give_up"]
    assert [step["reward"] for step in state["trajectory"]] == [pytest.approx(0.3), 0.0]
    assert [message["content"] for message in state["completion"]][1:] == ["The total is 1.", "The total is 3.", "Three."]
    assert state["stop_condition"] == "mcp_no_tool_calls"
    tools.wait_until_all_ended()


def render_total(observation: dict[str, Any], action_schema: dict[str, Any], contract: str) -> list[dict[str, str]]:
    assert (contract, "tool_name" in action_schema["properties"]) == ("mcp", True)
    return [{"role": "user", "content": str(observation["total"])}]


async def test_stepped_and_rolled_out_it_plays_the_same_states(server: StandIn) -> None:
    env = vf.OpenEnvEnv(url=server.url, prompt_renderer=render)
    answers = ("1", "Hm.", '{"add": 2}', "3")
    env.reset(seed=6)
    for answer in answers:
        env.step(answer)
    stepped = env.state
    rolled = await env.rollout(env.get_dataset()[6], ScriptedClient(answers), "m")
    await env.rubric.score_rollout(rolled)
    assert comparable(rolled) == comparable(stepped)
    assert rolled["reward"] == pytest.approx(0.6)
    env.close()


def test_a_server_that_fails_is_the_error_of_its_rollout(server: StandIn) -> None:
    env = vf.OpenEnvEnv(url=server.url, num_train_examples=1, num_eval_examples=0, prompt_renderer=render)
    server.faults["step"] = "gone"
    (output,) = env.evaluate_sync(Model(lambda number, state: "1"), "m")["outputs"]
    assert output["error"]["error"] == "ServerError"
    server.faults["reset"] = "error"
    with pytest.raises(vf.InfraError, match="it broke"):
        env.reset(seed=0)


def test_a_project_is_played_on_servers_of_its_own(tmp_path: Path) -> None:
    command = shlex.join([sys.executable, str(tests.openenv_servers.__file__), "8123"])
    manifest = {"image": "counting", "port": 8123, "start_command": command, "contract": "gym"}
    (tmp_path / ".build.json").write_text(json.dumps(manifest))
    with pytest.raises(ConfigurationError, match=r"give url='http://127.0.0.1:8123', or give backend='unsafe'"):
        vf.OpenEnvEnv(tmp_path, prompt_renderer=render)
    env = vf.OpenEnvEnv(str(tmp_path), 2, 0, prompt_renderer=render, backend="unsafe")
    try:
        assert (env.contract, env.action_schema) == ("gym", GYM_ACTION)
        outputs = env.evaluate_sync(Model(lambda number, state: "1"), "m", max_concurrent=1)["outputs"]
        assert [output["reward"] for output in outputs] == pytest.approx([0.3, 0.3])
    finally:
        env.close()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"prompt_renderer": None}, "prompt_renderer must be a function"),
        ({"openenv_project": "."}, "give one of them"),
        ({"url": None}, "give one of them"),
        ({"backend": "bwrap"}, "are for servers that are started for a project"),
        ({"start_timeout": 5}, "are for servers that are started for a project"),
        ({"num_train_examples": -1}, "num_train_examples must be a whole number"),
    ],
)
def test_arguments_that_do_not_fit(server: StandIn, arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        vf.OpenEnvEnv(**{"url": server.url, "prompt_renderer": render, **arguments})
    with pytest.raises(UnknownArgument, match="its tasks are seeds"):
        vf.OpenEnvEnv(url=server.url, prompt_renderer=render, dataset=[])


def test_a_seed_stands_in_the_info_or_the_answer_of_a_row(server: StandIn) -> None:
    env = vf.OpenEnvEnv(url=server.url, prompt_renderer=render, seed=4)
    rows: list[Any] = [{"info": {"seed": 0}, "answer": "3"}, {"info": '{"seed": 0}'}, {"info": {"a": 1}, "answer": "0"}, {"answer": "3"}]
    assert [env.seed_of(row) for row in rows] == [0, 0, 0, 3]
    assert env.row_of(0) == {"prompt": [], "info": {"seed": 0}, "seed": 0}


def test_each_argument_arrives_at_the_servers_of_a_project(server: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A contract that is named wins over the project's."""
    (tmp_path / ".build.json").write_text(json.dumps({"image": "i", "port": 1, "start_command": "c", "contract": "mcp"}))
    asked: list[Any] = []

    def servers_of(project: Any, backend: Any, **timeouts: float) -> str:
        asked.append((project.image, backend, timeouts))
        return server.url

    monkeypatch.setattr(openenv_env, "servers_of", servers_of)
    timeouts = {"start_timeout": 7.0, "request_timeout": 8.0}
    env = vf.OpenEnvEnv(tmp_path, 3, 2, 1, render, 6, contract="gym", backend="unsafe", **timeouts)  # type: ignore[arg-type]
    assert (asked, env.contract, env.max_turns) == ([("i", "unsafe", timeouts)], "gym", 6)
    assert [row["info"]["seed"] for row in env.get_eval_dataset()] == [4, 5]
