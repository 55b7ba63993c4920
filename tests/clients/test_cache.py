"""The cache of answers: what is the same, what is kept, and several processes at once."""

from __future__ import annotations

import multiprocessing
import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.models import InOrder, answer
from vfgym import AssistantMessage, Response, ToolCall, UserMessage
from vfgym.clients.asking import cached
from vfgym.clients.cache import RequestKeys, ResponseCache, default_cache_path
from vfgym.errors import ConfigurationError, ModelError
from vfgym.messages import ResponseMessage
from vfgym.tools import Tool

PROMPT = [UserMessage("What is 6 times 7?")]
TOOL = Tool(name="add", description="Add numbers.", parameters={"type": "object", "properties": {}})


@pytest.fixture
def cache(tmp_path: Path) -> ResponseCache:
    return ResponseCache(tmp_path / "deep" / "answers.sqlite")


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
    cache.close()


async def test_the_first_answer_stays(cache: ResponseCache) -> None:
    await cache.keep("key", answer("first"))
    used = await cache.keep("key", answer("second"))
    found = await cache.find("key")
    assert found is not None
    assert found.message.content == used.message.content == "first"
    cache.close()


def test_keys_differ_in_everything_that_decides_an_answer(cache: ResponseCache) -> None:
    requests: list[dict[str, Any]] = [
        {},
        {"model": "other"},
        {"prompt": [UserMessage("What is 6 times 8?")]},
        {"prompt": [*PROMPT, AssistantMessage("42")]},
        {"sampling_args": {"temperature": 0.5}},
        {"tools": [TOOL]},
    ]
    keys = {RequestKeys(cache, 0).next_key(**{"prompt": PROMPT, "model": "m", **request}) for request in requests}
    keys |= {RequestKeys(cache, 1).next_key(PROMPT, "m")}
    assert len(keys) == len(requests) + 1
    again = RequestKeys(cache, 0)
    assert again.next_key(PROMPT, "m", None, None, state={"example_id": 5}) == RequestKeys(cache, 0).next_key(PROMPT, "m", {}, [])
    assert again.next_key(PROMPT, "m") not in keys, "what a rollout asks twice has two answers"


async def test_an_error_is_not_kept(cache: ResponseCache) -> None:
    client = InOrder(ModelError("busy"), "yes")
    with cached(cache), pytest.raises(ModelError):
        await client.get_response(PROMPT, "m")
    for _ in range(2):
        with cached(cache):
            assert (await client.get_response(PROMPT, "m")).message.content == "yes"
    assert len(client.asked) == 2
    cache.close()


async def test_an_answer_that_cannot_be_kept_is_used_all_the_same(cache: ResponseCache, caplog: pytest.LogCaptureFixture) -> None:
    cache.open()
    with sqlite3.connect(cache.path) as connection:
        connection.execute("DROP TABLE answers")
    connection.close()
    with cached(cache):
        assert (await InOrder("yes").get_response(PROMPT, "m")).message.content == "yes"
    assert "cannot be used" in caplog.text
    cache.close()


def test_a_cache_of_another_version_is_refused(cache: ResponseCache) -> None:
    cache.open()
    cache.close()
    with sqlite3.connect(cache.path) as connection:
        connection.execute("PRAGMA user_version = 7")
    connection.close()
    with pytest.raises(ConfigurationError, match="it is of version 7, and this is version 1"):
        cache.open()


def test_the_database_of_something_else_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "places.sqlite"
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE places (name TEXT)")
    connection.close()
    before = file.read_bytes()
    for action in (ResponseCache(file).contents, ResponseCache(file).clear):
        with pytest.raises(ConfigurationError, match="the database of something else, with a table places"):
            action()
    assert file.read_bytes() == before


async def test_an_answer_that_cannot_be_read_is_asked_for(cache: ResponseCache, caplog: pytest.LogCaptureFixture) -> None:
    with cached(cache):
        await InOrder("yes").get_response(PROMPT, "m")
    with sqlite3.connect(cache.path) as connection:
        connection.execute("UPDATE answers SET response = '{'")
    connection.close()
    with cached(cache):
        assert (await InOrder("yes again").get_response(PROMPT, "m")).message.content == "yes again"
    assert "holds an answer that cannot be read" in caplog.text
    cache.close()


def test_where_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("VFGYM_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache_path() == tmp_path / "vfgym" / "responses.sqlite"
    monkeypatch.setenv("VFGYM_CACHE", str(tmp_path / "mine"))
    assert default_cache_path() == tmp_path / "mine"


def write_answers(cache: ResponseCache, name: str) -> None:
    for number in range(50):
        cache._keep(f"{name} {number}", "m", answer(name).model_dump_json())
        cache._keep(f"shared {number}", "m", answer(name).model_dump_json())


def test_several_processes_write_at_once(cache: ResponseCache) -> None:
    """One cache is inherited by forked processes, which open the file themselves."""
    cache.open()
    context = multiprocessing.get_context("spawn")
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
    cache.close()
