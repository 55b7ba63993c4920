"""Rollouts for rLLM, by its model gateway (rllm-model-gateway 0.1), which records the tokens of what is asked.

`play_session` plays one rollout in a session of the gateway, and returns its state with the ids that the gateway recorded: what
`vfgym.training.samples` makes samples of.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol

from vfgym.clients import SamplingArgs
from vfgym.clients.config import NO_KEY
from vfgym.errors import InfraError
from vfgym.messages import ResponseTokens
from vfgym.state import State, step_tokens
from vfgym.training.adapters import Env
from vfgym.training.playing import asking, play_rollout


class Gateway(Protocol):
    """What is asked of rLLM's ``AsyncGatewayClient``."""

    async def create_session(self, session_id: str | None = ..., metadata: dict[str, Any] | None = ...) -> str:
        """Begin a session."""
        ...

    def get_session_url(self, session_id: str) -> str:
        """Return where the model of a session is asked."""
        ...

    async def flush(self, timeout: float = ...) -> bool:
        """Wait until what was recorded can be read."""
        ...

    async def get_session_traces(self, session_id: str) -> list[Any]:
        """Return what was asked in a session."""
        ...


async def play_session(
    gateway: Gateway,
    env: str | Env,
    *,
    model: str,
    example_id: int,
    split: Literal["train", "eval"] = "train",
    seed: int | None = None,
    sampling_args: SamplingArgs | None = None,
) -> State:
    """Play one rollout in a session of its own, and return its state, whose turns have the tokens that the gateway recorded.

    Args:
        gateway: A client of rLLM's gateway (``AsyncGatewayClient``).
        env: A chat environment, or the id of one.
        model: Name of the model.
        example_id: The task.
        split: What it is a task of.
        seed: Seed of the rollout, so that those of one task begin alike; its `example_id` where it is None.
        sampling_args: Generation parameters, over those of the environment.

    Raises:
        vfgym.training.counting.RolloutMissing: If it failed by the doing of its environment, or of what is underneath.
        InfraError: If the gateway did not record what was asked.
    """
    session = await gateway.create_session(metadata={"example_id": example_id, "split": split})
    async with asking(gateway.get_session_url(session), NO_KEY) as client:
        played = await play_rollout(env, client, model, example_id=example_id, split=split, seed=seed, sampling_args=sampling_args)
    await gateway.flush()
    _take_tokens(played.state, await gateway.get_session_traces(session))
    return played.state


def _take_tokens(state: State, traces: Sequence[Any]) -> None:
    """Write into the turns of a rollout the tokens that were recorded of them."""
    trajectory = state["trajectory"]
    in_order = sorted(traces, key=lambda trace: trace.timestamp)
    if len(in_order) != len(trajectory):
        raise InfraError(f"the gateway recorded {len(in_order)} answers of a rollout of {len(trajectory)} turns")
    for step, trace in zip(trajectory, in_order, strict=True):
        prompt, completion, logprobs = trace.prompt_token_ids, trace.completion_token_ids, trace.logprobs or []
        if prompt and completion and len(logprobs) == len(completion):
            tokens = ResponseTokens(list(prompt), [0] * len(prompt), list(completion), [1] * len(completion), list(logprobs))
            step["tokens"] = step_tokens(tokens, None)
