"""Pickles hold no keys: what comes out of one says at its first request that its keys have to be given again. Copies keep them."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import anthropic
import cloudpickle
import gymnasium as gym
import openai
import pytest

import vfgym
from tests.secrecy.planted import hits, hits_in_object, key, sampling_args, with_query, with_user
from vfgym.agents.model import ModelAgent
from vfgym.clients import ClientConfig, EndpointClientConfig, resolve_client
from vfgym.errors import ConfigurationError
from vfgym.messages import UserMessage
from vfgym.model_server import ModelServer

ASKED = [UserMessage("hi")]


def config(url: str = "http://127.0.0.1:9/v1", **changes: Any) -> ClientConfig:
    headers = {"X-Config": key("config-header")}
    return ClientConfig(
        **{"api_base_url": with_query(url), "api_key": key("api-key"), "extra_headers": headers, "max_retries": 0, **changes}
    )


def opponents() -> dict[str, Any]:
    """Return agents at whose seats a key may lie, each in its own way."""
    return {
        "literal": ModelAgent(config(), "m", sampling_args()),
        "endpoints": ModelAgent(config(endpoint_configs=[config(), EndpointClientConfig(api_key=key("endpoint"))]), "m"),
        "user in the URL": ModelAgent(config(api_base_url=with_user("http://127.0.0.1:9/v1")), "m"),
        "client": ModelAgent(resolve_client(config()), "m"),
        "anthropic": ModelAgent(config(client_type="anthropic_messages"), "m"),
        "openai's client": ModelAgent(openai.AsyncOpenAI(api_key=key("sdk"), default_headers={"X-SDK": key("sdk-header")}), "m"),
        "anthropic's client": ModelAgent(anthropic.AsyncAnthropic(api_key=key("sdk"), default_query={"q": key("sdk-query")}), "m"),
    }


@pytest.mark.parametrize("kind", opponents())
def test_an_environment_with_a_model_as_opponent(kind: str) -> None:
    """Its pickle has no key, before it was asked and after, and it can be sent to another process."""
    env = gym.make("textarena/TicTacToe-v0", opponents=opponents()[kind]).unwrapped
    env.reset(seed=1)
    env.step("[4]")  # the opponent is asked, and nobody answers
    for name, pickled in (("pickle", pickle.dumps(env)), ("cloudpickle", cloudpickle.dumps(lambda: env))):
        assert hits(name, pickled) == []
    assert hits("repr", repr(vars(env))) + hits_in_object("spec", env.spec) == []
    other = pickle.loads(pickle.dumps(env))
    other.reset(seed=1)
    *_, info = other.step("[4]")
    assert "again" in str(info["error"])


@pytest.mark.parametrize("made", [resolve_client, lambda config: config], ids=["client", "config"])
async def test_an_unpickled_client_says_so_at_its_first_request(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    client = resolve_client(pickle.loads(pickle.dumps(made(config(api_key_var="SOME_KEY")))))
    with pytest.raises(ConfigurationError, match=r"without the header X-Config, .* the api_key: pickles .* again"):
        await client.get_response(ASKED, "echo")
    with ModelServer(api_keys=[key("variable")]) as server:
        plain = ClientConfig(api_base_url=server.openai_url, api_key=key("api-key"), api_key_var="SOME_KEY", max_retries=0)
        client = resolve_client(pickle.loads(pickle.dumps(made(plain))))
        with pytest.raises(ConfigurationError, match="without the api_key"):
            await client.get_response(ASKED, "echo")
        monkeypatch.setenv("SOME_KEY", key("variable"))
        client = resolve_client(pickle.loads(pickle.dumps(made(plain))))
        assert (await client.get_response(ASKED, "echo")).message.content == "hi"
        await client.close()


async def test_a_key_of_another_provider_does_not_stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable counts where the configuration names it: the default one's key belongs to Prime."""
    monkeypatch.setenv("PRIME_API_KEY", key("prime"))
    with ModelServer() as server:
        client = resolve_client(pickle.loads(pickle.dumps(ClientConfig(api_base_url=server.openai_url, api_key=key("api-key")))))
        with pytest.raises(ConfigurationError, match="without the api_key"):
            await client.get_response(ASKED, "echo")
        assert server.requests == []


async def test_sampling_arguments_of_a_pickle_are_not_sent() -> None:
    with ModelServer() as server:
        agent = ModelAgent(ClientConfig(api_base_url=server.openai_url, api_key="EMPTY"), "echo", sampling_args())
        agent = pickle.loads(pickle.dumps(agent))
        with pytest.raises(ConfigurationError, match="X-Sampling, Authorization-2, sampling"):
            await agent.clients[0].get_response(ASKED, "echo", agent.sampling_args)
        assert server.requests == []


def test_snapshots_and_branches_hold_no_key_where_anybody_looks() -> None:
    """Their pickles and texts have none; what a branch asks with is the opponents' own, keys included."""
    table = {"dataset": [{"question": "?"}], "sampling_args": sampling_args()}
    talk = vfgym.MultiTurnEnv(**table)
    against = vfgym.TextArenaEnv("TicTacToe-v0", seat=0, opponents={1: opponents()["literal"]})
    for env in (talk, against):
        env.reset(seed=0)
        assert hits_in_object("snapshot", env.snapshot()) == []
        assert hits_in_object("snapshot that came out of a pickle", pickle.loads(pickle.dumps(env.snapshot()))) == []
        assert hits_in_object("branch", env.branch(seed=1)) == []
        assert hits_in_object("identity", env.identity) == []
    assert talk.branch().state["sampling_args"] == talk.state["sampling_args"]
    other = vfgym.TextArenaEnv("TicTacToe-v0", seat=0, opponents={1: opponents()["literal"]})
    other.restore(pickle.loads(pickle.dumps(against.snapshot())))
    assert other.state.game_state.opponents[1]._agent is other._opponents["1"]  # type: ignore[index]


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
async def test_copies_in_memory_keep_the_keys(copied: Any) -> None:
    with ModelServer(api_keys=[key("api-key")]) as server:
        where = ClientConfig(api_base_url=server.openai_url, api_key=key("api-key"), extra_headers={"X-Config": key("config-header")})
        sdk = openai.AsyncOpenAI(api_key=key("api-key"), base_url=server.openai_url, default_headers={"X-Config": key("config-header")})
        clients = [resolve_client(each) for each in (copied(where), where, sdk)]
        await clients[1].get_response(ASKED, "echo")  # from now on it has a route, and connections
        for client in (clients[0], copied(clients[1]), copied(clients[2])):
            assert (await client.get_response(ASKED, "echo")).message.content == "hi"
            assert server.requests[-1].headers["X-Config"] == key("config-header")
            await client.close()
        for client in clients:
            await client.close()


def test_text_of_a_configuration() -> None:
    where = config(endpoint_configs=[{"api_key": key("endpoint"), "extra_headers": {"X": key("endpoint-header")}}])
    where.extra_headers["X-Later"] = key("later")
    changed = where.model_copy(update={"api_key": key("updated"), "extra_headers": {"X": key("updated-header")}})
    for each in (where, changed, *where.endpoints()):
        assert hits_in_object("config", each) == []
    assert where.model_dump()["extra_headers"]["X-Config"] == key("config-header")
    assert ClientConfig(**where.model_dump(exclude={"endpoint_configs"})).resolve_headers()["X-Later"] == key("later")


@pytest.mark.parametrize(
    "fields",
    [
        {"timeout": -1},
        {"api_key_var": key("variable")},
        {"api_base_url": with_user("nowhere://there")},
        {"extra_headers": {"": key("header")}},
        {"extra_headers": [key("header")]},
        {"endpoint_configs": [{"api_key": key("endpoint"), "timeout": "soon"}]},
        {"unknown": key("unknown")},
    ],
)
def test_an_error_about_a_configuration_does_not_show_it(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011
        config(**fields)
    assert hits("error", str(raised.value) + repr(raised.value)) == []
