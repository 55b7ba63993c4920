"""A model behind a URL that records what it is asked, with token ids: for rollouts of any kind, ``async (env, base_url) -> reward``.

`open_recording` gives a rollout an address on this machine. A program of any kind asks there as it would ask a provider (chat
completions, completions, responses or Anthropic's messages); each question is put to a client, and kept as a turn with the ids and
log-probabilities that came with its answer. `RecordedModel.state` is then what `vfgym.training.samples` makes samples of:

>>> import asyncio, vfgym
>>> from vfgym.training import samples
>>> from vfgym.training.playing import play_episode
>>> class Policy(vfgym.Client):
...     async def get_response(self, prompt, model, sampling_args=None, tools=None, **kwargs):
...         tokens = vfgym.ResponseTokens([1, 2], [0, 0], [3], [1], [-0.5])
...         return vfgym.Response("", 0, model, message=vfgym.messages.ResponseMessage("heads", tokens=tokens))
>>> env = vfgym.SingleTurnEnv(
...     dataset=[{"question": "Heads or tails?", "answer": "heads"}],
...     rubric=vfgym.Rubric(lambda completion, answer: float(completion[-1].content == answer)),
... )
>>> [sample] = samples([asyncio.run(record(play_episode, env, Policy(), "mine"))])
>>> sample.ids, sample.mask, sample.logprobs, sample.reward
([1, 2, 3], [0, 0, 1], [0.0, 0.0, -0.5], 1.0)
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from typing import Any, TypeAlias

from vfgym.calls import rollout_failure
from vfgym.clients import Client, SamplingArgs, resolve_client
from vfgym.endings import Ending, failure_cause
from vfgym.errors import LimitReached, OverlongPromptError
from vfgym.interception import Endpoint, Request, open_endpoint
from vfgym.messages import MESSAGE_TYPES, Response
from vfgym.messages.responses import for_conversation
from vfgym.state import TrajectoryStep, step_tokens

RolloutFunction: TypeAlias = "Callable[[Any, str], Awaitable[float]]"
"""A rollout: it plays an environment by asking the model at a URL, and returns the reward."""


class RecordedModel:
    """The address of one rollout's model, and what was asked there."""

    _endpoint: Endpoint
    """Set as it is opened."""

    def __init__(self, client: Client, model: str, sampling_args: SamplingArgs | None) -> None:
        """Record what `client` is asked. Nothing can be asked yet (see `open_recording`)."""
        self.model = model
        self.base_url = ""
        """Where programs ask. Any API key will do: the path is secret."""
        self.trajectory: list[TrajectoryStep] = []
        """The turns, in the order in which they were answered."""
        self._client = client
        self._sampling_args = dict(sampling_args or {})
        self._refused: BaseException | None = None
        """Why the last question has no answer; None where it has one."""

    def variables(self) -> dict[str, str]:
        """Return the environment variables by which a program finds the model (``OPENAI_BASE_URL`` and others)."""
        return self._endpoint.variables(self.model)

    def state(
        self,
        reward: float | None,
        *,
        error: BaseException | None = None,
        example_id: int = 0,
        group: Hashable = None,
        failure_reward: float | None = None,
    ) -> dict[str, Any]:
        """Return the rollout as `vfgym.training.samples` takes it.

        How it ended is known of the last question, too: a program may give up where the model cannot be asked, and call that a reward.

        Args:
            reward: What it earned; None where it failed.
            error: What it raised. `vfgym.errors.Error` says by whose doing that is; anything else is its environment's.
            example_id: Its task.
            group: What the rollouts that it is compared with have in common; its `example_id` where it is None.
            failure_reward: What failing counts with; None where that is not declared.
        """
        ending = self._ending(error)
        failure = error if error is not None else self._refused if ending.failed else None
        return {
            "example_id": example_id,
            **({} if group is None else {"group": group}),
            "trajectory": list(self.trajectory),
            "reward": 0.0 if reward is None else float(reward),
            "error": None if failure is None else f"{type(failure).__name__}: {failure}",
            "ending": str(ending),
            "failed": ending.failed,
            "counted_reward": failure_reward if not ending.counts_with_return else reward,
            "stop_condition": self._stop_condition(ending),
        }

    def _ending(self, error: BaseException | None) -> Ending:
        if isinstance(self._refused, OverlongPromptError | LimitReached):
            return Ending.CUT
        if self._refused is not None:
            return Ending.of_cause(failure_cause(self._refused, "infrastructure"))
        return Ending.TERMINATED if error is None else Ending.of_cause(failure_cause(error, "environment"))

    def _stop_condition(self, ending: Ending) -> str | None:
        if ending is not Ending.CUT:
            return None
        return "prompt_too_long" if isinstance(self._refused, OverlongPromptError) else "limit_reached"

    async def _answer(self, request: Request) -> Response:
        """Have a request answered, and record it."""
        arguments = {**request.sampling_args, **self._sampling_args}
        asked = {"trajectory": self.trajectory, "sampling_args": arguments}
        try:
            response = await self._client.get_response(request.messages, self.model, arguments, request.tools or None, state=asked)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            self._refused = rollout_failure(error)
            raise
        self._refused = None
        self.trajectory.append(self._step(request, response))
        return response

    def _step(self, request: Request, response: Response) -> TrajectoryStep:
        return {
            "prompt": list(request.messages),
            "completion": [for_conversation(response.message, MESSAGE_TYPES)],
            "response": response,
            "tokens": None if response.tokens is None else step_tokens(response.tokens, None),
            "reward": None,
            "advantage": None,
            "is_truncated": response.is_truncated,
            "trajectory_id": self._endpoint.key,
            "extras": {"policy_version": getattr(self._client, "policy_version", None)},
        }


@contextlib.asynccontextmanager
async def open_recording(client_or_config: Any, model: str, *, sampling_args: SamplingArgs | None = None) -> AsyncIterator[RecordedModel]:
    """Give a rollout an address at which it asks a model, and record what it asks. The address is gone with the block.

    Args:
        client_or_config: Who answers: a `Client`, a `ClientConfig` (``client_type="openai_chat_completions_token"`` asks servers for ids),
            or a client of an SDK. One that is given as a `Client` is not closed.
        model: Name of the model that it is asked for, whatever programs call it.
        sampling_args: Generation parameters, over those of programs.
    """
    client = resolve_client(client_or_config)
    recording = RecordedModel(client, model, sampling_args)
    recording._endpoint = endpoint = await open_endpoint(recording._answer)
    recording.base_url = endpoint.config("chat_completions", model)["base_url"]
    try:
        yield recording
    finally:
        await endpoint.close()
        if client is not client_or_config:
            await client.close()


async def record(
    play: RolloutFunction,
    env: Any,
    client_or_config: Any,
    model: str,
    *,
    sampling_args: SamplingArgs | None = None,
    example_id: int = 0,
    group: Hashable = None,
    failure_reward: float | None = None,
) -> dict[str, Any]:
    """Play a rollout of any kind, and return it as `vfgym.training.samples` takes it. What it raises is how it ended.

    Args:
        play: The rollout, which asks the model at the URL that it is given, and returns what it earned.
        env: What it plays; it is passed on as it is.
        client_or_config: Who answers (see `open_recording`).
        model: Name of the model.
        sampling_args: Generation parameters, over those of the rollout.
        example_id: Its task, in the state. `play` is told of its task by other ways (``functools.partial(play_episode, example_id=3)``).
        group: What the rollouts that it is compared with have in common; its `example_id` where it is None.
        failure_reward: What failing counts with; None where that is not declared.
    """
    reward: float | None = None
    failure: BaseException | None = None
    async with open_recording(client_or_config, model, sampling_args=sampling_args) as recording:
        try:
            reward = await play(env, recording.base_url)
        except Exception as error:
            failure = error
    return recording.state(reward, error=failure, example_id=example_id, group=group, failure_reward=failure_reward)
