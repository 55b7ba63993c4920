"""What the library asks of a client: merging what a program asks for, who answers, and what a client may leave out."""

from __future__ import annotations

from typing import Any

import pytest

import vfgym
from tests.models import InOrder
from vfgym.clients.client import Client, merge_sampling_args
from vfgym.messages import Response, UserMessage

HELLO = [UserMessage("hello")]


@pytest.mark.parametrize(
    ("asked", "allowed", "merged"),
    [
        ({}, {}, {}),
        ({"temperature": 0}, {}, {"temperature": 0}),
        ({"temperature": 0}, {"temperature": 1}, {"temperature": 1}),
        ({"temperature": 0.5}, {"temperature": 0}, {"temperature": 0}),
        ({"temperature": 0}, {"temperature": None}, {"temperature": None}),
        ({"max_tokens": 9}, {"max_completion_tokens": 5}, {"max_completion_tokens": 5}),
        ({"max_completion_tokens": 9}, {"max_output_tokens": 5}, {"max_output_tokens": 5}),
        ({"max_output_tokens": 9}, {"max_tokens": 0}, {"max_tokens": 0}),
        ({"max_tokens": 9}, {"max_completion_tokens": None}, {"max_tokens": 9, "max_completion_tokens": None}),
        ({"reasoning": {"effort": "high"}}, {"reasoning_effort": "low"}, {"reasoning_effort": "low"}),
        ({"reasoning_effort": "high"}, {"thinking": {}}, {"thinking": {}}),
        ({"stop_sequences": ["a"]}, {"stop": []}, {"stop": []}),
        ({"stop": ["a"]}, {"stop_sequences": ["b"]}, {"stop_sequences": ["b"]}),
        ({"max_tokens": 9, "top_k": 4}, {"extra_body": {"max_tokens": 5}}, {"top_k": 4, "extra_body": {"max_tokens": 5}}),
    ],
)
def test_what_the_rollout_says_wins_under_any_name(asked: dict[str, Any], allowed: dict[str, Any], merged: dict[str, Any]) -> None:
    assert merge_sampling_args(asked, allowed) == merged


class Silent(InOrder, asks_model=False):
    """Hands its question on to somebody who asks a model."""

    async def get_response(self, *args: Any, **kwargs: Any) -> Response:
        return await super().get_response(*args, **kwargs)


class HandsOn(Client, asks_model=False):
    def __init__(self, answer: Response) -> None:
        self.answer = answer

    async def get_response(self, *args: Any, **kwargs: Any) -> Response:
        return self.answer


async def test_what_a_client_is_asked_for_counts_unless_it_asks_no_model() -> None:
    with vfgym.limit(requests=9) as meter:
        answer = await InOrder("a").get_response(HELLO, "m")
        assert meter.spent.requests == 1
        assert await HandsOn(answer).get_response(HELLO, "m") is answer
        assert meter.spent.requests == 1
        await Silent("a").get_response(HELLO, "m")  # the client that it asks counts, once
        assert meter.spent.requests == 2


class Around(InOrder):
    def __init__(self, *inner: Client) -> None:
        super().__init__()
        self.first, self.second = inner


def test_who_answers_is_the_class_and_the_clients_inside() -> None:
    base = f"{__name__}.Around"
    silent, in_order = f"{__name__}.Silent", "tests.models.InOrder"
    assert Around(Silent(), InOrder()).answered_by == f"{base} {silent} {in_order}"
    assert InOrder().answered_by == in_order


async def test_a_client_need_not_know_tokens_nor_hold_anything() -> None:
    client = InOrder()
    assert await client.prompt_ids(HELLO, "m", state={}) is None
    await client.close()
    await client.close()
    with pytest.raises(TypeError, match="get_response"):
        Client()  # type: ignore[abstract]
