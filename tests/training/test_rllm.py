"""rLLM's gateway, stood in for by what is recorded here."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

import vfgym
from tests.training.policies import Policy, across
from tests.training.trainers import environments
from vfgym.training import samples
from vfgym.training.recording import open_recording
from vfgym.training.rllm import play_session


class Gateway:
    """Sessions whose model is recorded, with the interface of rLLM's ``AsyncGatewayClient``."""

    def __init__(self, model: Any, lost: int = 0) -> None:
        self.model, self.lost = model, lost
        self.called: list[Any] = []

    async def create_session(self, session_id: str | None = None, metadata: dict[str, Any] | None = None) -> str:
        self.called.append(metadata)
        return "session"

    def get_session_url(self, session_id: str) -> str:
        self.called.append(f"url of {session_id}")
        return str(self.model.base_url)

    async def flush(self, timeout: float = 30.0) -> bool:
        self.called.append("flush")
        return True

    async def get_session_traces(self, session_id: str) -> list[Any]:
        self.called.append(f"traces of {session_id}")
        found = [
            SimpleNamespace(
                timestamp=place,
                prompt_token_ids=step["tokens"]["prompt_ids"],
                completion_token_ids=step["tokens"]["completion_ids"],
                logprobs=step["tokens"]["completion_logprobs"],
            )
            for place, step in enumerate(self.model.trajectory)
        ]
        return found[: len(found) - self.lost][::-1]


@pytest.mark.parametrize("lost", [0, 1])
def test_turns_have_the_tokens_that_the_gateway_recorded(lost: int) -> None:
    async def play() -> Any:
        async with open_recording(Policy(across), "m") as model:
            return await play_session(Gateway(model, lost), environments.make_lake(), model="m", example_id=0)

    if lost:
        with pytest.raises(vfgym.errors.InfraError, match="recorded 5 answers of a rollout of 6 turns"):
            asyncio.run(play())
        return
    [sample] = samples([asyncio.run(play())])
    written = [index for index, kept in zip(sample.ids, sample.mask, strict=True) if kept]
    assert bytes(written).decode() == "".join(across(turn) for turn in range(6))


def test_a_session_is_of_its_task_and_read_when_all_was_written() -> None:
    async def play() -> Any:
        policy = Policy(lambda turn: "19")
        env = environments.make_guess(eval_dataset=[{"question": f"{n} + 9?", "answer": "19"} for n in range(2)])
        async with open_recording(policy, "m") as model:
            gateway = Gateway(model)
            state = await play_session(
                gateway, env, model="m", example_id=1, split="eval", seed=0, sampling_args={"temperature": 0.0, "top_p": 0.5}
            )
        return state, gateway.called, policy.asked

    state, called, [(_, sampling, _)] = asyncio.run(play())
    assert (state["prompt"][-1].content, state["reward"]) == ("1 + 9?", 1.0)
    assert (sampling["temperature"], sampling["top_p"]) == (0.0, 0.5)
    assert called == [{"example_id": 1, "split": "eval"}, "url of session", "flush", "traces of session"]


@pytest.mark.parametrize(
    "changed",
    [{"logprobs": None}, {"logprobs": [-1.0]}, {"prompt_token_ids": []}, {"completion_token_ids": []}, {"prompt_token_ids": None}],
)
def test_a_turn_whose_tokens_were_not_all_recorded_has_none(changed: dict[str, Any]) -> None:
    class Partial(Gateway):
        async def get_session_traces(self, session_id: str) -> list[Any]:
            found = await super().get_session_traces(session_id)
            found[-1].__dict__.update(changed)  # the first one: they come in the order of their end
            return found

    async def play() -> Any:
        async with open_recording(Policy(across), "m") as model:
            return await play_session(Partial(model), environments.make_lake(), model="m", example_id=0)

    trajectory = asyncio.run(play())["trajectory"]
    assert [step["tokens"] is None for step in trajectory] == [True] + [False] * 5
