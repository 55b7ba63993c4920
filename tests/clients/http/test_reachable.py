"""Whether anybody listens where a model is said to be."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from vfgym.clients import ClientConfig
from vfgym.clients.http.reachable import check_reachable
from vfgym.errors import ConfigurationError


@pytest.fixture
def url() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"


@pytest.fixture
def closed() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return f"http://127.0.0.1:{listening.getsockname()[1]}/v1"


def config(url: str, **fields: Any) -> ClientConfig:
    return ClientConfig(api_base_url=url, api_key="k", **fields)


async def test_somebody_listens(url: str) -> None:
    await check_reachable(config(url))
    await check_reachable(config(url).single())


async def test_every_endpoint_is_asked(url: str, closed: str) -> None:
    both = [config(url), config(closed)]
    with pytest.raises(ConfigurationError, match=f"{closed} cannot be reached: the connection is refused"):
        await check_reachable(config(url, endpoint_configs=both))


@pytest.mark.parametrize("name", ["no-such-host.invalid", f"{'a' * 64}.example"])
async def test_a_host_that_cannot_be(name: str) -> None:
    with pytest.raises(ConfigurationError, match=r"cannot be reached: .*Is the URL right"):
        await check_reachable(config(f"http://{name}:1/v1"))


async def test_no_answer_in_time(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    async def never(*args: Any, **kwargs: Any) -> None:
        raise TimeoutError

    monkeypatch.setattr("asyncio.open_connection", never)
    with pytest.raises(ConfigurationError, match=r"no answer within 2\.5 s"):
        await check_reachable(config(url, connect_timeout=2.5))


async def test_where_a_proxy_is_named_it_is_asked(url: str, closed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", url)
    await check_reachable(config("http://far.invalid/v1"))
    monkeypatch.setenv("HTTP_PROXY", closed)
    with pytest.raises(ConfigurationError, match=r"http://far\.invalid/v1 \(by the proxy 127\.0\.0\.1\)"):
        await check_reachable(config("http://far.invalid/v1"))


async def test_keys_in_the_url_are_not_told(closed: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        await check_reachable(config(closed.replace("127", "user:sesame@127")))
    assert "sesame" not in str(caught.value)
