"""`LocalPolicy` is closed while others ask: everybody is answered, and its thread ends. No model is needed for that."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from vfgym.messages import UserMessage
from vfgym.training import LocalPolicy, local_policy
from vfgym.training.sampling import Completion


class Words:
    chat_template, eos_token_id, config, generation_config = "one word", 0, None, None

    def apply_chat_template(self, messages: Any, **kwargs: Any) -> str:
        return "word"

    def __call__(self, text: str, **kwargs: Any) -> dict[str, list[int]]:
        return {"input_ids": [1]}

    def decode(self, ids: list[int]) -> str:
        return "word"


@pytest.mark.parametrize("num_before", [1, 2, 3, 4])
async def test_closing_while_others_ask_leaves_nobody_waiting(num_before: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those who ask after it are answered by a thread of their own, which ends with the next `close`."""
    may_answer = threading.Event()

    def sample(model: Any, rows: list[Any], ends: Any) -> list[Completion]:
        may_answer.wait()
        return [Completion([1, 0], [0.0, 0.0], has_ended=True, is_over=True) for _ in rows]

    monkeypatch.setattr(local_policy, "sample_completions", sample)
    policy = LocalPolicy(Words(), Words(), max_batch=1, wait_ms=0)

    def ask() -> asyncio.Future[Any]:
        return asyncio.ensure_future(policy.get_response([UserMessage("?")]))

    before = [ask() for _ in range(num_before)]
    await asyncio.sleep(0)
    closing = asyncio.ensure_future(policy.close())
    await asyncio.sleep(0)
    after = [ask() for _ in range(3)]
    await asyncio.sleep(0)
    may_answer.set()
    answers = await asyncio.gather(*before, *after)
    assert {answer.message.content for answer in answers} == {"word"}
    async with asyncio.timeout(20):
        await closing
        await policy.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "LocalPolicy"]
