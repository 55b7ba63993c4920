"""What servers tell of tokens: limits and costs are counted by it, so what cannot be a number of tokens is not usage."""

from __future__ import annotations

import json
import logging
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import vfgym
from tests.clients.canned_server import Canned, CannedServer
from tests.clients.every_client import GIVEN, KINDS, answers_by_route, client_of
from tests.models import InOrder, answer
from vfgym import Usage, UserMessage
from vfgym.errors import ConfigurationError
from vfgym.rubrics.judge_rubric import _ChatCompletions

HELLO = [UserMessage("hello")]
SIZE = {"max_tokens": 5}
NO_COUNTS = [-1, -39_600, 10**9 + 1, 2**63, 10**400, True, False, math.nan, math.inf, "7", 7.0, [7], {}]
"""What is no number of tokens."""

TELLING = [kind for kind in (*KINDS, *GIVEN) if kind != "renderer"]  # which counts the tokens that it is given
"""Clients that read what a server tells."""

PRICES = {"m": {"input": 1.0, "output": 1.0}}


def telling(server: CannedServer, **usage: Any) -> None:
    """Let every route tell this; strings of JSON, since nan and inf have to be sent as well."""
    server.routes = {route: Canned(json.dumps(data)) for route, data in answers_by_route(usage).items()}


@pytest.mark.parametrize("kind", TELLING)
async def test_every_client_says_once_what_its_server_tells_and_limits_are_refused(
    kind: str, server: CannedServer, caplog: pytest.LogCaptureFixture
) -> None:
    client = client_of(kind, server.root)
    telling(server)
    assert (await client.get_response(HELLO, "m", SIZE)).usage == Usage(7, 0, 3, 10)
    field = "output_tokens" if "/messages" in server.paths[-1] or "/responses" in server.paths[-1] else "completion_tokens"
    with caplog.at_level(logging.WARNING):
        for value in (10**400, -5, math.nan):
            telling(server, **{field: value})
            response = await client.get_response(HELLO, "m", SIZE)
            assert (response.usage, response.message.content) == (None, "Oslo.")
    told = [each.getMessage() for each in caplog.records if "tells" in each.getMessage()]
    assert len(told) == 1
    assert f"tells {field} = 1000" in told[0]
    assert server.root in told[0] or kind in GIVEN
    for limits in ({"tokens": 100}, {"cost": 1.0, "prices": PRICES}):
        with vfgym.limit(**limits) as meter, pytest.raises(ConfigurationError, match="m does not tell how many tokens"):
            await client.get_response(HELLO, "m", SIZE)
        assert (meter.spent.tokens, meter.spent.cost) == (0, None)
    await client.close()


@pytest.mark.parametrize("field", ["cache_read_input_tokens", "cache_creation_input_tokens"])
async def test_what_is_added_up_is_checked_too(field: str, server: CannedServer) -> None:
    client = client_of("anthropic_messages", server.root)
    telling(server, **{field: -7})
    assert (await client.get_response(HELLO, "m", SIZE)).usage is None
    telling(server, **{field: 5})
    assert (await client.get_response(HELLO, "m", SIZE)).usage == Usage(12, 0, 3, 15)
    await client.close()


async def test_a_judge_of_ones_own_tells_nonsense(caplog: pytest.LogCaptureFixture) -> None:
    async def create(**arguments: Any) -> Any:
        said = SimpleNamespace(message=SimpleNamespace(content="yes"))
        return SimpleNamespace(choices=[said], usage=SimpleNamespace(prompt_tokens=-1, completion_tokens=5))

    judge = _ChatCompletions(SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=create))))
    for _ in range(2):
        assert (await judge.get_response(HELLO, "j")).usage is None
    assert caplog.text.count("tells prompt_tokens = -1 of an answer of j") == 1


# Usage that somebody makes


@pytest.mark.parametrize("field", ["prompt_tokens", "reasoning_tokens", "completion_tokens", "total_tokens"])
@pytest.mark.parametrize("value", [each for each in NO_COUNTS if each != 10**9 + 1] + [None, 2**53], ids=lambda value: f"{value!r:.20}")
def test_a_usage_that_cannot_be_is_refused(field: str, value: Any) -> None:
    with pytest.raises(ConfigurationError, match=f"{field} of a Usage must be an integer from 0 below 2\\*\\*53, got"):
        Usage(**{field: value})


def test_a_usage_is_of_integers() -> None:
    assert Usage(0, 0, 1, 2**53 - 1).model_dump() == {
        **{"prompt_tokens": 0, "reasoning_tokens": 0, "completion_tokens": 1, "total_tokens": 2**53 - 1}
    }
    counted = Usage(np.int64(5), 0, np.uint8(7), 12)  # type: ignore[arg-type]
    assert [type(counted[name]) for name in ("prompt_tokens", "completion_tokens")] == [int, int]


@pytest.mark.parametrize("tokens", [-1, 10**400, math.nan, "7", True])
async def test_what_somebody_else_puts_on_a_response_is_not_counted(tokens: Any) -> None:
    def made() -> Any:
        response = answer("yes")
        response.usage = SimpleNamespace(prompt_tokens=1, completion_tokens=tokens)  # type: ignore[assignment]
        return response

    with vfgym.limit(prices={"m": {"input": 1, "output": 1}}) as meter:
        await InOrder(made()).get_response(HELLO, "m")
    assert (meter.spent.requests, meter.spent.tokens, meter.spent.cost) == (1, 0, None)
    with vfgym.limit(tokens=5), pytest.raises(ConfigurationError, match="does not tell how many tokens"):
        await InOrder(made()).get_response(HELLO, "m")
