"""The renderer client: conversations become tokens on this side, a server on loopback gives tokens back, and a later turn extends the
ids of the one before.

The package ``renderers`` is the real one; the renderer is a small one of bytes, which follows its protocol.
"""

from __future__ import annotations

import importlib
import json
import pickle
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import ModuleType
from typing import Any

import openai
import pytest

from tests.clients.canned_server import CannedServer, canned_server
from vfgym.clients import ClientConfig
from vfgym.clients.providers.renderer import RendererClient
from vfgym.envs import MultiTurnEnv
from vfgym.errors import EmptyModelResponseError, InvalidModelResponseError, MissingExtra, ModelError, OverlongPromptError
from vfgym.messages import Usage, UserMessage
from vfgym.tools import Tool

END = 256
OPEN = {"user": 300, "system": 301, "assistant": 302, "tool": 303}
TOOL = Tool(name="add", description="Add.", parameters={"type": "object"}, strict=True)


@pytest.fixture
def package() -> ModuleType:
    return importlib.import_module("renderers")


class ByteRenderer:
    """A role, the bytes of the message as JSON, an end."""

    is_prefix_stable = True

    def __init__(self, package: ModuleType, can_bridge: bool = True) -> None:
        self.package = package
        self.can_bridge = can_bridge
        self.calls: list[tuple[str, list[Any], Any]] = []
        self.threads: set[str] = set()

    def render(self, messages: list[Any], *, tools: Any = None, add_generation_prompt: bool = False) -> Any:
        self.threads.add(threading.current_thread().name)
        self.calls.append(("render", messages, tools))
        return self.package.base.RenderedTokens(token_ids=self._ids(messages, add_generation_prompt))

    def bridge_to_next_turn(
        self, previous_prompt_ids: list[int], previous_completion_ids: list[int], new_messages: list[Any], *, tools: Any = None
    ) -> Any:
        self.calls.append(("bridge", new_messages, tools))
        if not self.can_bridge:
            return None
        return self.package.base.RenderedTokens(token_ids=[*previous_prompt_ids, *previous_completion_ids, *self._ids(new_messages, True)])

    def parse_response(self, token_ids: list[int], *, tools: Any = None, prompt_ids: Any = None) -> Any:
        text = bytes(each for each in token_ids if each != END).decode()
        if not text.startswith("{"):
            return self.package.base.ParsedResponse(content=text)
        fields = json.loads(text)
        calls = [self.package.base.ParsedToolCall(**call) for call in fields.pop("calls", ())]
        return self.package.base.ParsedResponse(**{"content": "", **fields}, tool_calls=calls)

    def get_stop_token_ids(self) -> list[int]:
        return [END]

    def _ids(self, messages: list[Any], add_generation_prompt: bool) -> list[int]:
        said = [[OPEN[each["role"]], *json.dumps(each["content"]).encode(), END] for each in messages]
        return [token for ids in said for token in ids] + ([OPEN["assistant"]] if add_generation_prompt else [])


class Client(RendererClient):
    """A renderer client with renderers of its own."""

    def __init__(self, config: Any, package: ModuleType, can_bridge: bool = True) -> None:
        super().__init__(config)
        self.made: list[ByteRenderer] = []
        self.can_bridge = can_bridge
        self.byte_package = package

    def make_renderer(self, model: str) -> ByteRenderer:
        self.made.append(ByteRenderer(self.byte_package, self.can_bridge))
        return self.made[-1]

    @property
    def calls(self) -> list[tuple[str, list[Any], Any]]:
        return [call for renderer in self.made for call in renderer.calls]


def completion(said: Any, finish_reason: str = "stop", **more: Any) -> dict[str, Any]:
    text = said if isinstance(said, str) else json.dumps(said)
    ids = [*text.encode(), END]
    logprobs = {"content": [{"token": f"token_id:{each}", "logprob": -0.5, "top_logprobs": []} for each in ids]}
    choice = {"index": 0, "token_ids": ids, "finish_reason": finish_reason, "logprobs": logprobs, **more}
    return {"request_id": "gen_1", "choices": [choice]}


@asynccontextmanager
async def asked(package: ModuleType, *answers: Any, can_bridge: bool = True, **config: Any) -> AsyncIterator[tuple[Client, CannedServer]]:
    async with canned_server(*answers) as server:
        settings = {"client_type": "renderer", "api_base_url": server.url, "api_key": "k", "api_key_var": "NO_SUCH", "max_retries": 0}
        client = Client(ClientConfig(**settings, **config), package, can_bridge)
        try:
            yield client, server
        finally:
            await client.close()


async def answer_of(package: ModuleType, said: Any, **more: Any):
    async with asked(package, completion(said, **more)) as (client, _):
        return await client.get_response([UserMessage("hi")], "m")


class TestRequests:
    async def test_tokens_go_and_tokens_come(self, package):
        async with asked(package, completion("Grüße"), extra_headers_from_state={"X-B": "trajectory_id"}) as (client, server):
            arguments = {"temperature": 0.5, "max_tokens": 9, "top_p": None, "logprobs": True, "extra_headers": {"X-B": "b", "X-C": "c"}}
            arguments["extra_body"] = {"top_k": 3, "cache_salt": "salt", "priority": 2, "return_token_ids": True}
            response = await client.get_response([UserMessage("hi")], "m", arguments, [TOOL], state={"trajectory_id": "t"})
        prompt_ids = [OPEN["user"], *b'"hi"', END, OPEN["assistant"]]
        assert server.paths == ["/inference/v1/generate"]
        assert (server.headers[0]["x-b"], server.headers[0]["x-c"]) == ("t", "c")
        parameters = server.body.pop("sampling_params")
        sent = {"temperature": 0.5, "max_tokens": 9, "top_k": 3, "stop_token_ids": [END]}
        assert {name: parameters[name] for name in sent} == sent
        assert not {"top_p", "return_token_ids", "cache_salt", "priority", "max_completion_tokens"} & parameters.keys()
        assert server.body == {"model": "m", "token_ids": prompt_ids, "cache_salt": "salt", "priority": 2}
        completion_ids = [*"Grüße".encode(), END]
        tokens = response.tokens
        assert (tokens.prompt_ids, tokens.completion_ids) == (prompt_ids, completion_ids)
        assert (tokens.prompt_mask, tokens.completion_mask) == ([0] * len(prompt_ids), [1] * len(completion_ids))
        assert tokens.completion_logprobs == [-0.5] * len(completion_ids)
        assert response.usage == Usage(len(prompt_ids), 0, len(completion_ids), len(prompt_ids) + len(completion_ids))
        assert (response.id, response.model, response.message.content, response.message.finish_reason) == ("gen_1", "m", "Grüße", "stop")
        assert client.calls[0][2] == [{"name": "add", "description": "Add.", "parameters": {"type": "object"}}]

    async def test_a_header_that_a_subclass_adds_to_the_sampling_arguments_is_sent(self, package):
        async with asked(package, completion("a"), extra_headers_from_state={"X-B": "trajectory_id"}) as (client, server):
            ask = client.get_native_response
            client.get_native_response = lambda prompt, model, arguments, tools=None, **kwargs: ask(
                prompt, model, {**arguments, "extra_headers": {"X-A": "trace"}}, tools, **kwargs
            )
            await client.get_response([UserMessage("hi")], "m", state={"trajectory_id": "t"})
        assert (server.headers[0]["x-a"], server.headers[0]["x-b"]) == ("trace", "t")

    async def test_tool_choice_none_shows_no_tools(self, package):
        async with asked(package, completion("ok")) as (client, _):
            await client.get_response([UserMessage("hi")], "m", {"tool_choice": "none"}, [TOOL])
            assert client.calls[0][2] is None

    async def test_a_pool_renders_on_threads_of_its_own(self, package):
        async with asked(package, completion("ok"), renderer_pool_size=1) as (client, server):
            for _ in range(2):
                await client.get_response([UserMessage("hi")], "m")
            await client.close()
            await client.get_response([UserMessage("hi")], "m")
        assert len(server.bodies) == 3
        threads = {name for renderer in client.made for name in renderer.threads}
        assert threads
        assert all(name.startswith("vfgym-renderer") for name in threads)

    async def test_without_a_pool_one_renderer_serves_a_model(self, package):
        async with asked(package, completion("ok")) as (client, _):
            for model in ("m", "m", "other"):
                await client.get_response([UserMessage("hi")], model)
            assert len(client.made) == 2
            assert {name for renderer in client.made for name in renderer.threads} == {threading.current_thread().name}


class TestAnswers:
    async def test_reasoning_and_calls(self, package):
        calls = [
            {"raw": "<a>", "name": "add", "arguments": {"a": "é"}},
            {"raw": "<b>", "name": "add", "arguments": '{"a": '},
            {"raw": "<c>", "name": "add"},
            {"raw": "<d>", "name": "stop", "arguments": {}, "id": "own"},
            {"raw": "<nameless>"},
        ]
        message = (await answer_of(package, {"content": "So:", "reasoning_content": "hm", "calls": calls})).message
        assert (message.content, message.reasoning_content, message.finish_reason) == ("So:<nameless>", "hm", "tool_calls")
        assert [(call.id, call.name, call.arguments) for call in message.tool_calls] == [
            ("call_0", "add", '{"a": "é"}'),
            ("call_1", "add", '{"a": '),
            ("call_2", "add", "<c>"),
            ("own", "stop", "{}"),
        ]

    async def test_how_answers_end(self, package):
        response = await answer_of(package, "abc", finish_reason="length")
        assert (response.message.finish_reason, response.is_truncated) == ("length", True)
        with pytest.raises(EmptyModelResponseError, match="1 tokens"):
            await answer_of(package, "")
        assert (await answer_of(package, {"reasoning_content": "hm"})).message.reasoning_content == "hm"


class TestErrors:
    async def test_an_overlong_prompt_is_not_sent(self, package):
        async with asked(package, completion("ok")) as (client, server):
            # By a name of its own: the package remembers it by the address, and a later server may have the same port.
            model = {"id": "small", "object": "model", "created": 0, "owned_by": "x", "max_model_len": 5}
            server.routes["/v1/models"] = {"object": "list", "data": [model]}
            with pytest.raises(OverlongPromptError, match="context of small"):
                await client.get_response([UserMessage("hi")], "small")
            assert server.bodies == []

    async def test_what_the_server_answers_instead(self, package):
        async with asked(package, completion("ok", logprobs={"content": []})) as (client, _):
            with pytest.raises(InvalidModelResponseError, match="cannot be used"):
                await client.get_response([UserMessage("hi")], "m")
        answers = [(400, {"error": {"message": "maximum context length is 5"}}), (500, {"error": {"message": "boom"}}), (401, {})]
        async with asked(package, *answers) as (client, _):
            for kind in (OverlongPromptError, ModelError, openai.AuthenticationError):
                with pytest.raises(kind):
                    await client.get_response([UserMessage("hi")], "m")

    def test_without_the_package(self, monkeypatch):
        for name in ("renderers", "renderers.base", "renderers.client"):
            monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(MissingExtra, match=r"pip install 'vfgym\[renderers\]'"):
            RendererClient(ClientConfig(client_type="renderer"))


class Counting(MultiTurnEnv):
    """Says a number after each answer."""

    def env_response(self, messages, state, **kwargs):
        return [UserMessage(str(len(state["trajectory"])))]


class TestConversations:
    async def played(self, client: Client, max_turns: int = 3, **settings: Any):
        env = Counting(dataset=[{"question": "Count.", "answer": ""}], max_turns=max_turns, **settings)
        return await env.rollout({"prompt": [UserMessage("Count.")], "example_id": 0}, client, "m")

    async def test_a_turn_extends_the_ids_of_the_one_before(self, package):
        async with asked(package, completion("a"), completion("b"), completion("c")) as (client, server):
            state = await self.played(client)
        assert state["error"] is None
        assert [name for name, *_ in client.calls] == ["render", "bridge", "bridge"]
        assert client.calls[1][1] == [{"role": "user", "content": "1"}]
        for earlier, later in zip(state["trajectory"], server.bodies[1:], strict=False):
            known = earlier["tokens"]["prompt_ids"] + earlier["tokens"]["completion_ids"]
            assert later["token_ids"][: len(known)] == known
        assert (client.bridges.attempts, client.bridges.successes, client.bridges.failures) == (2, 2, 0)

    async def test_the_ids_of_a_prompt_are_known_without_asking(self, package):
        async with asked(package, completion("a"), completion("b")) as (client, server):
            state = await self.played(client, 2)
            last = [*state["prompt"], *state["completion"], UserMessage("2")]
            ids = await client.prompt_ids(last, "m", state=state)
            image = UserMessage([{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}])
            assert await client.prompt_ids([*last, image], "m", state=state) is None
        tokens = state["trajectory"][-1]["tokens"]
        known = tokens["prompt_ids"] + tokens["completion_ids"]
        assert ids[: len(known)] == known
        assert ids[len(known) :] == [OPEN["user"], *b'"2"', END, OPEN["assistant"]]
        assert len(server.bodies) == 2

    async def test_a_renderer_that_cannot_extend_renders_all(self, package):
        async with asked(package, completion("a"), can_bridge=False) as (client, server):
            await self.played(client, 2)
        assert [name for name, *_ in client.calls] == ["render", "bridge", "render"]
        assert [message["content"] for message in client.calls[2][1]] == ["Count.", "a", "1"]
        assert server.bodies[1]["token_ids"].count(END) == 3
        assert (client.bridges.attempts, client.bridges.successes, client.bridges.failures) == (1, 0, 1)

    async def test_ids_that_were_cut_are_not_extended(self, package):
        async with asked(package, completion("a"), completion("b")) as (client, _):
            await self.played(client, 2, max_seq_len=12)
        assert [name for name, *_ in client.calls] == ["render", "render"]

    async def test_a_turn_that_an_author_recorded_as_dicts_is_extended(self, package):
        async with asked(package, completion("a"), completion("b")) as (client, _):
            (first, _) = (await self.played(client, 2))["trajectory"]
            said = [dict(message) for message in (*first["prompt"], *first["completion"])]
            recorded = {"trajectory": [{**first, "prompt": said[:-1], "completion": said[-1:]}]}
            await client.get_response([*said, {"role": "user", "content": "go on"}], "m", state=recorded)
        assert client.calls[-1][:2] == ("bridge", [{"role": "user", "content": "go on"}])

    async def test_images_are_rendered_where_they_are_sent(self, package):
        image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
        async with asked(package, completion("a")) as (client, _):
            state = await self.played(client, 1)
            last = state["trajectory"][0]
            await client.get_response([*last["prompt"], *last["completion"], UserMessage([image])], "m", state=state)
        assert client.bridges.attempts == 0
        assert client.calls[-1][0] == "render"


class TestConfiguration:
    @pytest.mark.parametrize(("settings", "asked_for"), [({}, "m"), ({"renderer_model_name": "base"}, "base")])
    def test_whose_tokenizer_it_is(self, package, monkeypatch, settings, asked_for):
        monkeypatch.setattr(package.base, "load_tokenizer", lambda name: f"tokenizer of {name}")  # it would be downloaded
        monkeypatch.setattr(package, "create_renderer", lambda tokenizer, config: (tokenizer, config))
        tokenizer, config = RendererClient(ClientConfig(renderer="qwen3", **settings)).make_renderer("m")
        assert (tokenizer, config.name) == (f"tokenizer of {asked_for}", "qwen3")

    def test_a_copy_has_threads_and_renderers_of_its_own(self):
        client = RendererClient(ClientConfig(renderer="qwen3", renderer_pool_size=2))
        client._made["m"] = object()
        client.bridges.attempts = 3
        copied = pickle.loads(pickle.dumps(client))
        assert (copied._made, copied._threads, copied.bridges.attempts) == ({}, None, 3)
        assert copied._making is not client._making
        assert (copied.config.renderer, copied.config.renderer_pool_size) == ("qwen3", 2)
        assert client._made.keys() == {"m"}

    def test_without_what_loads_tokenizers(self, package, monkeypatch):
        monkeypatch.setitem(sys.modules, "transformers", None)
        with pytest.raises(MissingExtra, match="renderers"):
            RendererClient(ClientConfig()).make_renderer("m")
