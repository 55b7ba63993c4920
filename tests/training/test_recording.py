"""A model behind a URL that records what it is asked, and rollouts that ask there: ``async (env, base_url) -> reward``."""

from __future__ import annotations

import asyncio
import functools
from typing import Any

import openai
import pytest

import vfgym
from tests.training.policies import Policy, across
from tests.training.trainers import environments
from vfgym.clients.config import ClientConfig
from vfgym.endings import ending_of
from vfgym.errors import Error, InvalidModelResponseError, LimitReached, ModelError, OverlongPromptError
from vfgym.model_server import ModelServer
from vfgym.training import NoTokens, samples
from vfgym.training.playing import play_episode
from vfgym.training.recording import open_recording, record


def falls(turn: int) -> str:
    return f"<action>{environments.INTO_A_HOLE[turn % 2]}</action>"


async def ask_once(base_url: str) -> Any:
    async with openai.AsyncOpenAI(base_url=base_url, api_key="any", max_retries=0) as client:
        return await client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}])


play_lake = functools.partial(play_episode, example_id=0)


def test_a_rollout_by_url_gives_samples() -> None:

    async def play() -> Any:
        lake = environments.make_lake()
        return [await record(play_lake, lake, Policy(answer), "m", group="g") for answer in (across, falls)]

    found = samples(asyncio.run(play()))
    assert [(sample.reward, sample.advantage, sample.turns) for sample in found] == [(1.0, 0.5, [0, 1, 2, 3, 4, 5]), (0.0, -0.5, [0, 1])]
    written = [index for index, kept in zip(found[0].ids, found[0].mask, strict=True) if kept]
    assert (bytes(written).decode(), found[1].policy_versions) == ("".join(across(turn) for turn in range(6)), [7, 7])
    assert {logprob for logprob, kept in zip(found[0].logprobs, found[0].mask, strict=True) if kept} == {-0.5}


def test_the_trainers_parameters_win_over_those_of_programs() -> None:
    async def ask(env: Any, base_url: str) -> float:
        async with openai.AsyncOpenAI(base_url=base_url, api_key="any") as client:
            tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
            answer: Any = await client.chat.completions.create(
                model="theirs", messages=[{"role": "user", "content": "hi"}], temperature=0.1, max_tokens=5, tools=[tool]
            )
            stream: Any = await client.chat.completions.create(model="theirs", messages=[{"role": "user", "content": "hi"}], stream=True)
            streamed = "".join([chunk.choices[0].delta.content or "" async for chunk in stream])
        assert answer.choices[0].message.content == streamed == "down"
        return 0.5

    policy = Policy(lambda turn: "down")
    state = asyncio.run(record(ask, None, policy, "mine", sampling_args={"temperature": 1.0}))
    (model, arguments, tools), _ = policy.asked
    assert (model, arguments, [tool.name for tool in tools]) == ("mine", {"temperature": 1.0, "max_tokens": 5}, ["look"])
    assert state["reward"] == 0.5
    assert len(state["trajectory"]) == 2, "what was streamed is recorded too"
    assert not policy.is_closed, "it is the caller's"


def test_turns_without_tokens_say_so() -> None:
    [sample] = samples([asyncio.run(record(play_lake, environments.make_lake(), Policy(across, with_tokens=False), "m"))])
    assert sample.reward == 1.0
    with pytest.raises(NoTokens, match="turn 0 of example 0 has no token data"):
        sample.ids  # noqa: B018


def test_a_server_that_gives_ids_is_recorded() -> None:
    with ModelServer({"m": lambda request: across(sum(message["role"] == "assistant" for message in request.messages))}) as server:
        config = ClientConfig(api_base_url=server.openai_url, api_key="EMPTY", client_type="openai_chat_completions_token")
        [sample] = samples([asyncio.run(record(play_lake, environments.make_lake(), config, "m"))])
    assert (sample.reward, sample.turns) == (1.0, [0, 1, 2, 3, 4, 5])
    assert 0 < sum(sample.mask) < len(sample.ids)


@pytest.mark.parametrize(
    ("failure", "ending"),
    [
        (ConnectionError("the network is gone"), "infrastructure_failed"),
        (ModelError("the server is down"), "infrastructure_failed"),
        (InvalidModelResponseError("it says nothing"), "policy_failed"),
        (OverlongPromptError("too long"), "cut"),
        (LimitReached("tokens", 1, 2), "cut"),
    ],
)
@pytest.mark.parametrize("gives_up", [True, False])
def test_a_model_that_cannot_be_asked_is_no_low_reward(failure: Exception, ending: str, gives_up: bool) -> None:
    """Also where the rollout takes it for one."""

    async def ask(env: Any, base_url: str) -> float:
        try:
            await ask_once(base_url)
        except openai.APIError:
            if not gives_up:
                raise
        return 0.0

    state = asyncio.run(record(ask, None, Policy(lambda turn: failure), "m", failure_reward=-1.0))
    assert (ending_of(state), state["failed"], state["counted_reward"]) == (ending, ending != "cut", -1.0)


def test_a_model_that_answers_again_was_not_refused() -> None:
    answers: list[Any] = [ModelError("busy"), "down"]

    async def ask(env: Any, base_url: str) -> float:
        with pytest.raises(openai.APIError):
            await ask_once(base_url)
        await ask_once(base_url)
        return 1.0

    state = asyncio.run(record(ask, None, Policy(lambda turn: answers.pop(0)), "m"))
    assert (ending_of(state), state["reward"], len(state["trajectory"])) == ("terminated", 1.0, 1)


@pytest.mark.parametrize(
    ("raised", "ending"),
    [(KeyError("mine"), "environment_failed"), (Error("ours"), "environment_failed"), (vfgym.errors.AgentError("its"), "policy_failed")],
)
def test_what_a_rollout_raises_is_how_it_ended(raised: Exception, ending: str) -> None:
    async def fail(env: Any, base_url: str) -> float:
        raise raised

    state = asyncio.run(record(fail, None, Policy(across), "m"))
    assert (state["ending"], state["failed"], state["trajectory"]) == (ending, True, [])
    assert str(raised) in state["error"]


@pytest.mark.parametrize("group", [None, 0, "g"])
@pytest.mark.parametrize(
    ("reward", "raised", "counted", "error"),
    [
        (0.0, None, 0.0, None),
        (2, None, 2, None),
        (None, vfgym.errors.AgentError("broken"), 0.0, "AgentError: broken"),
        (None, KeyError("mine"), 0.0, "KeyError: 'mine'"),
    ],
)
def test_a_state_says_what_was_earned_and_what_it_counts_with(
    group: Any, reward: float | None, raised: Exception | None, counted: float, error: str | None
) -> None:
    """A group and a failure reward of 0 are some."""

    async def play(env: Any, base_url: str) -> float:
        assert env == "as it is"
        if raised is not None:
            raise raised
        assert reward is not None
        return reward

    state = asyncio.run(record(play, "as it is", Policy(across), "m", example_id=3, group=group, failure_reward=0.0))
    assert (state["example_id"], state["trajectory"], state["stop_condition"]) == (3, [], None)
    assert ("group" in state, state.get("group")) == (group is not None, group)
    assert (state["reward"], state["counted_reward"], state["error"]) == (0.0 if reward is None else reward, counted, error)


@pytest.mark.parametrize(
    ("refused", "stop"), [(OverlongPromptError("x"), "prompt_too_long"), (LimitReached("tokens", 1, 2), "limit_reached")]
)
def test_what_was_cut_says_by_what(refused: Exception, stop: str) -> None:
    async def ask(env: Any, base_url: str) -> float:
        with pytest.raises(openai.APIError):
            await ask_once(base_url)
        return 1.0

    state = asyncio.run(record(ask, None, Policy(lambda turn: refused), "m"))
    assert (state["stop_condition"], state["error"], state["reward"], state["counted_reward"]) == (stop, None, 1.0, None)


def test_the_address_is_gone_with_its_block() -> None:
    async def play() -> None:
        async with open_recording(Policy(across), "m") as model:
            url = model.base_url
            assert model.variables()["OPENAI_BASE_URL"] == url
        with pytest.raises(openai.NotFoundError):
            await ask_once(url)

    asyncio.run(play())


def test_a_rollout_that_is_cancelled_takes_its_address_with_it() -> None:
    urls: list[str] = []

    async def play() -> None:
        begun = asyncio.Event()

        async def wait_on(env: Any, base_url: str) -> float:
            urls.append(base_url)
            begun.set()
            await asyncio.Event().wait()
            return 0.0

        task = asyncio.create_task(record(wait_on, None, Policy(across), "m"))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(openai.NotFoundError):
            await ask_once(urls[0])

    asyncio.run(play())
