"""The cache of answers: what is the same, what is kept, and several processes at once."""

from __future__ import annotations

import contextlib
import inspect
import multiprocessing
import os
import pickle
import runpy
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest

from tests.models import InOrder, answer
from vfgym import AssistantMessage, Client, ClientConfig, Response, ToolCall, UserMessage
from vfgym.clients import resolve_client
from vfgym.clients.cache import RequestKeys, ResponseCache, default_cache_path, opened
from vfgym.clients.resolve import resolve_endpoints
from vfgym.context import given
from vfgym.errors import ConfigurationError, ModelError
from vfgym.messages import ResponseMessage
from vfgym.model_server import ModelServer
from vfgym.tools import Tool

PROMPT = [UserMessage("What is 6 times 7?")]
TOOL = Tool(name="add", description="Add numbers.", parameters={"type": "object", "properties": {}})


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[ResponseCache]:
    cache = ResponseCache(tmp_path / "deep" / "answers.sqlite")
    yield cache
    cache.close()


async def test_answers_come_back_whole(cache: ResponseCache) -> None:
    message = ResponseMessage(
        "It is 42.",
        tool_calls=[ToolCall("c1", "add", '{"a": 1}')],
        reasoning_content="well",
        finish_reason="length",
        is_truncated=True,
        native_output={"api": "anthropic", "items": [{"type": "thinking", "signature": "é\ud83d"}]},
    )
    response = Response("r1", 5, "m", {"prompt_tokens": 3, "completion_tokens": 4}, message)
    await cache.keep("key", response)
    found = await cache.find("key")
    assert found == response
    assert isinstance(found, Response)
    assert isinstance(found.message, ResponseMessage)
    assert found.is_truncated
    assert await cache.find("other") is None


async def test_the_first_answer_stays(cache: ResponseCache) -> None:
    await cache.keep("key", answer("first"))
    used = await cache.keep("key", answer("second"))
    found = await cache.find("key")
    assert found is not None
    assert found.message.content == used.message.content == "first"


def test_keys_differ_in_everything_that_decides_an_answer(cache: ResponseCache) -> None:
    usual: dict[str, Any] = {"answered_by": "a client http://one/v1", "asked_model": "m", "prompt": PROMPT}
    requests: list[dict[str, Any]] = [
        {},
        {"answered_by": "a client http://two/v1"},
        {"asked_model": "other"},
        {"prompt": [UserMessage("What is 6 times 8?")]},
        {"prompt": [*PROMPT, AssistantMessage("42")]},
        {"sampling_args": {"temperature": 0.5}},
        {"sampling_args": {"temperature": 0}},
        {"sampling_args": {"temperature": None}},
        {"tools": [TOOL]},
        {"tools": [TOOL, TOOL]},
    ]
    keys = {RequestKeys(cache, 0).next_key(**{**usual, **request}) for request in requests}
    keys |= {RequestKeys(cache, 1).next_key(**usual)}
    assert len(keys) == len(requests) + 1
    again = RequestKeys(cache, 0)
    same = {**usual, "sampling_args": {}, "tools": [], "state": {"example_id": 5}}
    assert again.next_key(**same) == RequestKeys(cache, 0).next_key(**usual)
    assert RequestKeys(cache, 0).next_key(**{**usual, "prompt": [{"role": "user", "content": PROMPT[0].content}]}) in keys
    both = [RequestKeys(cache, 0).next_key(**usual, sampling_args=dict(args)) for args in ([("a", 1), ("b", 2)], [("b", 2), ("a", 1)])]
    assert both[0] == both[1]
    assert RequestKeys(cache, 0).next_key("m", "n", PROMPT) != RequestKeys(cache, 0).next_key("n", "m", PROMPT)
    assert again.next_key(**usual) not in keys, "what a rollout asks twice has two answers"


@pytest.mark.parametrize("kind", ["openai_chat_completions", "AsyncOpenAI", "wrapped"])
async def test_what_one_server_said_is_no_answer_of_anothers(kind: str, cache: ResponseCache) -> None:
    def client_at(server: ModelServer) -> Client:
        if kind == "AsyncOpenAI":
            return resolve_client(openai.AsyncOpenAI(api_key="k", base_url=server.openai_url))
        client = resolve_client(ClientConfig(api_base_url=server.openai_url, api_key="k"))
        return Passing(client) if kind == "wrapped" else client

    with ModelServer({"m": lambda request: "one"}) as one, ModelServer({"m": lambda request: "two"}) as two:
        said = []
        for server in (one, two, one, two):
            client = client_at(server)
            with given(keys=RequestKeys(cache, 0)):
                said.append((await client.get_response(PROMPT, "m")).message.content)
            await client.close()
        assert said == ["one", "two", "one", "two"]
        assert (one.num_requests, two.num_requests) == (1, 1)


class Passing(Client):
    """Asks another client."""

    def __init__(self, inner: Client) -> None:
        self.inner = inner

    async def get_response(self, *args: Any, **kwargs: Any) -> Response:
        return await self.inner.get_response(*args, **kwargs)

    async def close(self) -> None:
        await self.inner.close()


def test_a_key_names_no_secret_and_endpoints_that_take_turns_are_one_server() -> None:
    def at(*urls: str) -> list[str]:
        config = ClientConfig(
            api_base_url=urls[0], api_key="k", endpoint_configs=[{"api_base_url": url} for url in urls] if urls[1:] else []
        )
        return [each.answered_by for each in resolve_endpoints(config)]

    (one,) = at("http://ann:swordfish@one/v1/")
    assert one == at("http://ann:other@one/v1")[0]
    assert "swordfish" not in one
    both = at("http://one/v1", "http://two/v1")
    assert both[0] == both[1] != at("http://one/v1")[0]


async def test_an_error_is_not_kept(cache: ResponseCache) -> None:
    client = InOrder(ModelError("busy"), "yes")
    with given(keys=RequestKeys(cache, 0)), pytest.raises(ModelError):
        await client.get_response(PROMPT, "m")
    for _ in range(2):
        with given(keys=RequestKeys(cache, 0)):
            assert (await client.get_response(PROMPT, "m")).message.content == "yes"
    assert len(client.asked) == 2


async def test_an_answer_that_cannot_be_kept_is_used_all_the_same(cache: ResponseCache, caplog: pytest.LogCaptureFixture) -> None:
    cache.open()
    with sqlite3.connect(cache.path) as connection:
        connection.execute("DROP TABLE answers")
    connection.close()
    with given(keys=RequestKeys(cache, 0)):
        assert (await InOrder("yes").get_response(PROMPT, "m")).message.content == "yes"
    assert "cannot be used" in caplog.text


def test_a_cache_of_another_version_is_refused(cache: ResponseCache) -> None:
    cache.open()
    cache.close()
    with sqlite3.connect(cache.path) as connection:
        connection.execute("PRAGMA user_version = 7")
    connection.close()
    with pytest.raises(ConfigurationError, match="it is of version 7, and this is version 1"):
        cache.open()


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ("places (name TEXT)", "the database of something else, with a table places"),
        ("answers (question TEXT, answer TEXT)", "the database of something else, with columns question, answer"),
    ],
)
def test_the_database_of_something_else_is_refused_and_left_as_it_is(table: str, says: str, tmp_path: Path) -> None:
    file = tmp_path / "places.sqlite"
    with sqlite3.connect(file) as connection:
        connection.execute(f"CREATE TABLE {table}")
    connection.close()
    file.chmod(0o600)
    before = file.read_bytes()
    for action in (ResponseCache(file).contents, ResponseCache(file).clear, ResponseCache(file).open):
        with pytest.raises(ConfigurationError, match=says):
            action()
    assert file.read_bytes() == before


DAMAGES: dict[str, Any] = {
    "garbage": lambda whole: b"not a database at all, but long enough to have a header" * 100,
    "a part of a page": lambda whole: whole[:2000],
    "some pages": lambda whole: whole[: len(whole) // 2 // 4096 * 4096],
    "zeros": lambda whole: whole[:4096] + bytes(len(whole) - 4096),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
@pytest.mark.parametrize("is_open", [False, True])
async def test_a_damaged_cache_is_set_aside_and_told(
    damage: Any, is_open: bool, cache: ResponseCache, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(40):
        await cache.keep(f"key {number}", answer("x" * 2000))
    cache.close()  # all of it is in the file then
    if is_open:
        cache.open()
    damaged = damage(cache.path.read_bytes())
    cache.path.write_bytes(damaged)
    for _ in range(2):
        with given(keys=RequestKeys(cache, 0)):
            assert (await InOrder("yes").get_response(PROMPT, "m")).message.content == "yes"
    for number in range(40):
        await cache.find(f"key {number}")
    await cache.keep("new", answer("kept"))
    found = await cache.find("new")
    assert found is not None
    assert found.message.content == "kept"
    cache.close()
    (aside,) = cache.path.parent.glob("*.damaged-*[0-9]")
    assert aside.read_bytes()[:16] == damaged[:16]
    assert caplog.text.count("is damaged (") == 1
    assert aside.name in caplog.text
    assert cache.path.stat().st_mode & 0o077 == 0


async def test_a_damaged_cache_is_set_aside_where_files_cannot_be_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Windows, which has no ``fcntl``."""
    monkeypatch.setitem(sys.modules, "fcntl", None)  # type: ignore[arg-type]
    there = runpy.run_path(inspect.getfile(ResponseCache))
    (tmp_path / "answers").write_bytes(b"garbage " * 1000)
    (tmp_path / "answers").chmod(0o600)
    with there["opened"](there["ResponseCache"](tmp_path / "answers")) as cache:
        await cache.keep("new", answer("kept"))
    assert cache.contents()["answers"] == 1
    assert len([*tmp_path.glob("answers.damaged-*[0-9]")]) == 1
    cache.close()


def processes() -> Any:
    """Return what starts processes that have nothing open, and imports this module once for all of them."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    return context


def find_all(cache: ResponseCache) -> None:
    for number in range(40):
        cache._find(f"key {number}")
        cache._keep(f"key {number}", "m", answer("again").model_dump_json())


def test_several_processes_set_one_damaged_file_aside(cache: ResponseCache) -> None:
    cache.path.parent.mkdir()
    cache.path.write_bytes(b"garbage " * 1000)
    cache.path.chmod(0o600)
    context = processes()
    finders = [context.Process(target=find_all, args=(cache,)) for _ in range(3)]
    for finder in finders:
        finder.start()
    for finder in finders:
        finder.join()
    assert [finder.exitcode for finder in finders] == [0, 0, 0]
    (aside,) = cache.path.parent.glob("*.damaged-*[0-9]")
    assert aside.read_bytes().startswith(b"garbage")
    assert cache.contents()["answers"] == 40


@pytest.mark.parametrize("mode", [0o644, 0o620, 0o666, 0o604])
def test_what_others_can_open_is_closed_to_them_and_told(mode: int, cache: ResponseCache, caplog: pytest.LogCaptureFixture) -> None:
    cache.open()
    cache.close()
    cache.path.chmod(mode)
    cache.open()
    assert cache.path.stat().st_mode & 0o777 == 0o600
    assert f"others could open the cache {cache.path} (mode {mode:o})" in caplog.text
    caplog.clear()
    cache.close()
    cache.open()
    assert not caplog.text


def test_a_cache_of_another_user_is_refused(cache: ResponseCache, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.open()
    cache.close()
    monkeypatch.setattr(os, "geteuid", lambda: cache.path.stat().st_uid + 1)
    with pytest.raises(ConfigurationError, match="it belongs to another user"):
        cache.open()


def test_a_pipe_is_no_cache(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    for action in (ResponseCache(tmp_path / "pipe").open, ResponseCache(tmp_path / "pipe").contents):
        with pytest.raises(ConfigurationError, match="it is not a plain file"):
            action()


async def test_an_answer_that_cannot_be_read_is_asked_for(cache: ResponseCache, caplog: pytest.LogCaptureFixture) -> None:
    with given(keys=RequestKeys(cache, 0)):
        await InOrder("yes").get_response(PROMPT, "m")
    with sqlite3.connect(cache.path) as connection:
        connection.execute("UPDATE answers SET response = '{'")
    connection.close()
    with given(keys=RequestKeys(cache, 0)):
        assert (await InOrder("yes again").get_response(PROMPT, "m")).message.content == "yes again"
    assert "holds an answer that cannot be read" in caplog.text


def test_where_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("VFGYM_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache_path() == tmp_path / "vfgym" / "responses.sqlite"
    monkeypatch.setenv("VFGYM_CACHE", "")
    assert default_cache_path() == tmp_path / "vfgym" / "responses.sqlite"
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert default_cache_path() == tmp_path / "home" / ".cache" / "vfgym" / "responses.sqlite"
    monkeypatch.setenv("VFGYM_CACHE", str(tmp_path / "mine"))
    assert default_cache_path() == ResponseCache().path == tmp_path / "mine"
    assert ResponseCache("other").path == Path("other")


async def test_what_it_holds_is_counted_and_forgotten(cache: ResponseCache) -> None:
    nothing = {"path": str(cache.path), "answers": 0, "bytes": 0, "models": {}}
    assert (cache.contents(), cache.clear(), cache.path.exists()) == (nothing, 0, False)
    for key, model in (("1", "b"), ("2", "a"), ("3", "b")):
        await cache.keep(key, Response(key, 0, model, None, ResponseMessage("x" * 5000, finish_reason="stop", is_truncated=False)))
    cache.close()
    contents = cache.contents()
    cache.close()  # which puts into the file what stood beside it
    assert contents == {"path": str(cache.path), "answers": 3, "bytes": cache.path.stat().st_size, "models": {"a": 1, "b": 2}}
    assert [*contents["models"]] == ["a", "b"]
    assert cache.clear() == 3
    assert await cache.find("1") is None
    cache.close()
    assert cache.contents() == {**nothing, "bytes": cache.path.stat().st_size}
    assert cache.path.stat().st_size < contents["bytes"]
    assert cache.clear() == 0


async def test_a_cache_that_was_closed_is_opened_again_and_a_copy_opens_its_own(cache: ResponseCache) -> None:
    await cache.keep("key", answer("first"))
    for _ in range(2):
        cache.close()
    assert (await cache.find("key") or answer("")).message.content == "first"
    copied = pickle.loads(pickle.dumps(cache))
    cache.close()
    assert copied.path == cache.path
    assert (await copied.find("key") or answer("")).message.content == "first"
    copied.close()


@pytest.mark.parametrize("error", [None, ValueError, KeyboardInterrupt])
def test_a_cache_is_closed_after_its_with(error: Any, cache: ResponseCache) -> None:
    with contextlib.suppress(*([error] if error else [])), opened(cache) as given_cache:
        assert given_cache is cache
        assert cache.path.exists()
        assert cache._connection is not None
        if error is not None:
            raise error
    assert cache._connection is None
    cache.path.unlink()
    cache.path.mkdir()
    with (
        pytest.raises(ConfigurationError, match=r"cannot be used: .*\. Remove the file, or name another one with VFGYM_CACHE$"),
        opened(cache),
    ):
        pytest.fail("it cannot be opened")


async def test_what_is_wrong_is_told_once(cache: ResponseCache, caplog: pytest.LogCaptureFixture) -> None:
    cache.path.mkdir(parents=True)
    response = answer("yes")
    for key in ("1", "2"):
        assert await cache.keep(key, response) is response
        assert await cache.find(key) is None
    assert len(caplog.messages) == 1
    other = ResponseCache(cache.path)
    response = Response("r", 0, "scripted", None, response.message.replace(native_output={"items": {1, 2}}))
    assert await other.keep("3", response) is response
    assert [message.partition(":")[0] for message in caplog.messages[1:]] == [
        "answers of scripted are not cached, since they have no form in JSON"
    ]


def write_answers(cache: ResponseCache, name: str) -> None:
    for number in range(50):
        cache._keep(f"{name} {number}", "m", answer(name).model_dump_json())
        cache._keep(f"shared {number}", "m", answer(name).model_dump_json())


def test_several_processes_write_at_once(cache: ResponseCache) -> None:
    """One cache is inherited by forked processes, which open the file themselves."""
    cache.open()
    context = processes()
    writers = [context.Process(target=write_answers, args=(cache, f"p{number}")) for number in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0, 0]
    assert cache.contents()["answers"] == 3 * 50 + 50
    assert cache.path.stat().st_mode & 0o077 == 0
    child = os.fork()
    if child == 0:
        try:
            cache._keep("from the child", "m", answer("yes").model_dump_json())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert cache.contents()["answers"] == 3 * 50 + 51
