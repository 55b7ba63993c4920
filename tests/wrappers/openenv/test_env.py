"""`OpenEnvEnv` and `from_openenv`: both contracts, stepped and evaluated, with seeds, prompts, sessions and ends, on a small server."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import pytest

import vfgym
from tests.models import calling
from tests.openenv_servers import GYM_ACTION, StandIn, serving
from vfgym.errors import ConfigurationError, EpisodeNotPicklable
from vfgym.testing import check_environment
from vfgym.wrappers.openenv import OpenEnvEnv
from vfgym.wrappers.openenv.servers import GivenServer, OpenEnvServer


@pytest.fixture
def server() -> Iterator[StandIn]:
    """A server of the contract gym."""
    with serving(StandIn()) as stand_in:
        yield stand_in


@pytest.fixture(params=[True, False], ids=["websockets", "http"])
def either(request: pytest.FixtureRequest) -> Iterator[StandIn]:
    """A server of the contract gym: by WebSockets, or by plain HTTP."""
    with serving(StandIn(websockets=request.param)) as stand_in:
        yield stand_in


@pytest.fixture
def tools() -> Iterator[StandIn]:
    """A server of the contract mcp."""
    with serving(StandIn("mcp")) as stand_in:
        yield stand_in


def render(observation: dict[str, Any], context: str, seed: int) -> list[dict[str, str]]:
    """Show the total, and where it comes from."""
    return [{"role": "user", "content": f"{context} {seed}: {observation['total']}"}]


# The contract gym


def test_an_action_is_a_step_and_its_reward_is_that_steps(either: StandIn) -> None:
    env = vfgym.from_openenv(either.url, render)
    conversation, info = env.reset(seed=4)
    assert (env.contract, env.action_schema) == ("gym", GYM_ACTION)
    assert [message.content for message in conversation] == ["reset 4: 4"]
    assert (info["example_id"], info["tools"]) == (4, [])
    outcomes = [env.step(answer) for answer in ('{"add": 5}', "I add one.\nAction: 1", "<action>2</action>")]
    assert [(outcome.reward, outcome.terminated) for outcome in outcomes] == [(0.5, False), (0.1, False), (0.2, True)]
    assert [message.content for message in outcomes[-1].observation[2::2]] == ["step 4: 9", "step 4: 10", "step 4: 12"]
    assert outcomes[-1].info["stop_condition"] == "openenv_done"
    assert env.state is not None
    assert env.state["reward"] == pytest.approx(0.8)
    assert env.state["trajectory"][1]["extras"]["game_info"] == {"metadata": {"steps": 2}}
    assert env.state["observation"] == {"total": 12}
    assert (either.resets, either.actions) == ([{"seed": 4}], [{"add": 5}, {"add": 1}, {"add": 2}])


def test_an_answer_that_is_no_action_is_asked_for_again(either: StandIn) -> None:
    """Here or by the server, whose schema it is; the environment does not move, and the model reads what was wrong."""
    env = vfgym.from_openenv(either.url, render)
    env.reset(seed=0)
    for answer, words in (("Hm.", "names no action"), ('{"ad": 1}', "field 'add'"), ('{"add": "much"}', "does not fit: add: Input should")):
        outcome = env.step(answer)
        assert outcome.reward == 0.0
        assert words in str(outcome.observation[-1].content)
        assert "JSON object with this schema" in str(outcome.observation[-1].content)
    outcome = env.step("3")
    assert (outcome.reward, outcome.observation[-1].content) == (0.3, "step 0: 3")
    assert [env.step("1").info["metrics"]["invalid_answers"] for _ in range(2)] == [0.0, 3.0], "it is known at the end"


def test_without_a_renderer_observations_are_json_and_the_action_is_explained(server: StandIn) -> None:
    env = vfgym.from_openenv(server.url)
    conversation, _ = env.reset(seed=1, options={"game_options": {"level": "hard"}})
    assert '"required": ["add"]' in conversation[0].content
    assert conversation[0].content.endswith('Observation: {"total": 1, "options": {"level": "hard"}}')
    assert env.step("1").observation[-1].content == '{"total": 2}'
    with pytest.raises(ConfigurationError, match="cannot be one of the game_options"):
        env.reset(seed=1, options={"game_options": {"seed": 2}})
    env.reset(seed=1)
    env.action_space.seed(0)
    assert env.action_space.sample().content.startswith('{"add": ')


def test_a_seed_replays_the_episodes_that_follow(server: StandIn) -> None:
    """A reset without a seed draws one from the player's random numbers, and tells the renderer and the server."""
    env = vfgym.from_openenv(server.url, render)
    for seed in (7, None, None, 7, None, None):
        env.reset(seed=seed)
    seeds = [reset["seed"] for reset in server.resets]
    assert seeds[:3] == seeds[3:]
    assert len(set(seeds)) == 3


async def test_it_is_evaluated_many_episodes_at_once(server: StandIn) -> None:
    env = vfgym.from_openenv(server.url, render)
    results = await vfgym.aevaluate(
        env, lambda observation, info: "1", num_examples=15, rollouts_per_example=2, max_concurrent=10, progress=False
    )
    assert [(row["reward"], row["error"]) for row in results["outputs"]] == [(pytest.approx(0.3), None)] * 30
    assert server.most_at_once > 1
    server.wait_until_all_ended()


def test_it_keeps_the_promises_of_every_environment(server: StandIn) -> None:
    assert check_environment(lambda: vfgym.from_openenv(server.url, render))


# The contract mcp


def test_each_tool_call_is_a_step_and_rewards_are_added_up(tools: StandIn) -> None:
    env = vfgym.from_openenv(tools.url, lambda observation, contract: [{"role": "user", "content": f"{contract} {observation['total']}"}])
    conversation, info = env.reset(seed=2)
    assert conversation[0].content == "mcp 2"
    assert [tool["function"]["name"] for tool in info["tools"]] == ["add", "give_up"]
    outcome = env.step(calling(("add", {"number": 1}), ("add", {"number": 2})))
    assert outcome.reward == pytest.approx(0.3)
    assert [message.content for message in outcome.observation[-2:]] == ["The total is 3.", "The total is 5."]
    outcome = env.step("Five.")
    assert (outcome.reward, outcome.terminated, outcome.info["stop_condition"]) == (0.0, True, "mcp_no_tool_calls")
    assert outcome.info["metrics"]["add_calls"] == 2.0
    assert tools.opened == 2  # one to list the tools, one for the episode
    assert tools.actions[0] == {"type": "list_tools"}


def test_a_server_that_does_not_know_what_tools_are_is_not_played_by_tools() -> None:
    with (
        serving(StandIn(websockets=False, faults={"step": "refused"})) as server,
        pytest.raises(ConfigurationError, match="has no tools, as the contract 'mcp' asks for"),
    ):
        vfgym.from_openenv(server.url, contract="mcp")


# Sessions


def test_a_session_is_of_one_episode_and_closed_whatever_ends_it(server: StandIn) -> None:
    def broken(observation: Any) -> Any:
        raise LookupError("the author's own mistake")

    env = vfgym.from_openenv(server.url, render)
    env.reset(seed=0)
    for _ in range(3):
        env.step("1")  # the server's own end
    server.wait_until_all_ended()
    env.reset(seed=0)
    env.reset(seed=0)  # given up
    env.truncate()
    server.wait_until_all_ended()
    env.reset(seed=0)
    env.fail(RuntimeError("the agent"))
    env.reset(seed=0)
    env.close()
    server.wait_until_all_ended()
    assert server.opened == 5
    with pytest.raises(LookupError):
        vfgym.from_openenv(server.url, broken).reset(seed=0)
    server.wait_until_all_ended()
    assert server.opened == 6


def test_forks_play_at_the_same_time_and_an_episode_is_not_gone_back_to(server: StandIn) -> None:
    env = vfgym.from_openenv(server.url, render)
    other = env.fork()
    env.reset(seed=1)
    other.reset(seed=2)
    assert server.open_now == 2
    assert (env.step("1").observation[-1].content, other.step("1").observation[-1].content) == ("step 1: 2", "step 2: 3")
    assert not env.can_go_back
    with pytest.raises(EpisodeNotPicklable, match="server"):
        env.snapshot()
    copied = pickle.loads(pickle.dumps(vfgym.from_openenv(server.url)))
    assert copied.reset(seed=5)[0][0].content.endswith('{"total": 5, "options": {}}')
    for each in (env, other, copied):
        each.close()
    server.wait_until_all_ended()


def test_a_session_answers_pings_while_nobody_asks_anything(server: StandIn) -> None:
    """A server that pings ends sessions that do not answer while a model thinks."""
    server.pings = True
    env = vfgym.from_openenv(server.url, render)
    env.reset(seed=0)
    assert server.was_answered.wait(timeout=20)
    assert env.step("1").reward == 0.1
    env.close()


# What an environment is made of


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"contract": "gmy"}, "contract must be 'gym' or 'mcp', or None to go by the server's schema of actions; got 'gmy'"),
        ({"contract": ""}, "contract must be 'gym' or 'mcp', or None to go by the server's schema of actions; got ''"),
        ({"request_timeout": 0}, "request_timeout must be a positive number of seconds, got 0"),
        ({"prompt_renderer": "text"}, "prompt_renderer must be a function that makes messages of an observation"),
    ],
)
def test_what_does_not_fit_is_said_before_a_server_is_asked(server: StandIn, options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        OpenEnvEnv(server.url, **{"prompt_renderer": render, **options})
    assert str(caught.value).startswith(problem)
    assert server.asked == []


class Counted(GivenServer):
    """A server that counts how often its source was closed, and its leases."""

    closed = leased = 0

    async def lease(self) -> OpenEnvServer:
        vars(self)["leased"] = self.leased + 1
        return await super().lease()

    async def give_back(self, server: OpenEnvServer) -> None:
        vars(self)["leased"] = self.leased - 1

    async def close(self) -> None:
        vars(self)["closed"] = self.closed + 1


@pytest.mark.parametrize(
    ("faults", "options", "problem"),
    [
        ({"schema": "error"}, {}, "with the HTTP status 500"),
        ({"schema": {"action": []}}, {}, "has no schema of actions in its /schema"),
        ({"step": "error"}, {"contract": "mcp"}, "failed in step: it broke"),
        ({"step": {"observation": {"tools": 3}}}, {"contract": "mcp"}, "was asked for its tools and answered without them"),
        ({}, {"max_turns": 0.5}, "max_turns"),
    ],
)
def test_a_source_is_closed_where_there_will_be_no_environment(faults: dict[str, Any], options: dict[str, Any], problem: str) -> None:
    with serving(StandIn(faults=faults)) as stand_in:
        source = Counted(OpenEnvServer(stand_in.url, 20.0))
        with pytest.raises(ConfigurationError) as caught:
            OpenEnvEnv(source, render, **options)
        assert problem in str(caught.value)
        assert (source.closed, source.leased) == (1, 0)
        stand_in.wait_until_all_ended()


class Elsewhere:
    """A source of a server that nobody gave the URL of."""

    def __init__(self, server: OpenEnvServer) -> None:
        self.server = server

    async def lease(self) -> OpenEnvServer:
        return self.server

    async def give_back(self, server: OpenEnvServer) -> None: ...

    async def close(self) -> None: ...


def test_only_whoever_gave_a_url_is_asked_whether_it_is_right() -> None:
    with serving(StandIn(faults={"schema": "error"})) as stand_in:
        for server, is_asked in ((stand_in.url, True), (Elsewhere(OpenEnvServer(stand_in.url, 20.0)), False)):
            with pytest.raises(ConfigurationError) as caught:
                OpenEnvEnv(server, render)
            assert str(caught.value).endswith(". Is the URL right, and does an OpenEnv server run there?") is is_asked


def test_a_source_is_closed_with_the_environment(server: StandIn) -> None:
    source = Counted(OpenEnvServer(server.url, 20.0))
    env = OpenEnvEnv(source, render)
    env.reset(seed=0)
    assert (source.closed, source.leased) == (0, 1)
    env.close()
    assert (source.closed, source.leased) == (1, 0)
    assert server.resets == [{"seed": 0}]


def test_the_server_is_played_as_somebody_says(tools: StandIn) -> None:
    """Whatever its schema looks like."""
    env = vfgym.from_openenv(tools.url, contract="gym")
    assert (env.contract, env.reset(seed=0)[1]["tools"]) == ("gym", [])
    outcome = env.step('{"tool_name": "add", "arguments": {"number": 3}}')
    assert (outcome.reward, outcome.terminated) == (0.3, False)
    env.close()


def test_an_answer_with_calls_goes_on_until_the_server_is_done(tools: StandIn) -> None:
    env = vfgym.from_openenv(tools.url)
    env.reset(seed=0)
    outcome = env.step(calling(("add", {"number": "x"})))
    assert (outcome.reward, outcome.terminated, outcome.truncated) == (0.0, False, False)
    assert "add cannot be called so" in str(outcome.observation[-1].content)
    outcome = env.step(calling(("add", {"number": 1}), ("give_up", {}), ("add", {"number": 1})))
    assert (outcome.reward, outcome.terminated, outcome.info["stop_condition"]) == (pytest.approx(-0.9), True, "openenv_done")
    metrics = outcome.info["metrics"]
    assert (metrics["add_calls"], metrics["give_up_calls"]) == (3.0, 1.0)
    env.close()
