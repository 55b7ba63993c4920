"""`ModelAgent`: a model client as an agent, so that whatever plays environments with agents plays them with models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym

from vfgym.agents.base import Answering, seat_of
from vfgym.clients import Client, EndpointClientConfig, SamplingArgs, merge_sampling_args
from vfgym.clients.resolve import resolve_endpoints
from vfgym.envs.seat import EpisodeSeat
from vfgym.errors import ConfigurationError
from vfgym.messages import Message, Response
from vfgym.output.redaction import with_secrets


class ModelAgent:
    """Asks a model for each answer.

    The model is shown the observation, so wrappers that change the conversation have their effect, and the tools of the episode.
    An error of the provider ends the episode, an overlong prompt truncates it; a refused API key and an unknown model are raised (the
    SDK's own error), since nothing that is asked so can succeed.
    """

    def __init__(self, client_or_config: Any, model: str, sampling_args: SamplingArgs | None = None) -> None:
        """Take who is asked.

        Args:
            client_or_config: A `Client`, a `ClientConfig` (with several endpoints, episodes take them in turn), or a client of
                the OpenAI or Anthropic SDK.
            model: Name of the model, and of the agent.
            sampling_args: Generation parameters, over those of the environment.

        Raises:
            ConfigurationError: If one of them is something else.
        """
        if not isinstance(model, str) or not model:
            raise ConfigurationError(f"model must be the name of a model, as its provider calls it; got {model!r}")
        if sampling_args is not None and not isinstance(sampling_args, dict):
            raise ConfigurationError(f"sampling_args must be a dict of generation parameters, got {type(sampling_args).__name__}")
        self.name = model
        self.sampling_args: SamplingArgs = with_secrets(dict(sampling_args or {}))
        self.clients: list[Client] = resolve_endpoints(client_or_config)
        """Who is asked: one client for each endpoint."""
        self.config = client_or_config if isinstance(client_or_config, EndpointClientConfig) else None
        """The configuration that was given; None where a client was."""
        self.base_urls = "" if self.config is None else self.config.base_urls
        """Where the model is, where that is known; several URLs are joined by commas."""
        self._episodes = 0

    @property
    def policy_version(self) -> Any:
        """The version of the policy that a client of one's own answers with, where it has one."""
        return getattr(self.clients[0], "policy_version", None)

    def for_episode(self, env: gym.Env[Any, Any]) -> Answering:
        """Return what answers in this episode. It raises what `Client.get_response` raises.

        Raises:
            ConfigurationError: If `env` is not a chat environment.
        """
        seat, number = seat_of(env), self._episodes % len(self.clients)
        self._episodes += 1
        return _ModelAnswers(self, number, seat)

    async def prompt_ids(self, observation: Sequence[Message], state: Any) -> list[int] | None:
        """Return the token ids with which an observation of an episode would be answered (see `Client.prompt_ids`)."""
        return await self.clients[0].prompt_ids(observation, self.name, state["tool_defs"] or None, state=state)

    def as_spec(self) -> dict[str, Any] | None:
        """Return what a `vfgym.RunSpec` says of who plays; None where clients were given, not a configuration."""
        return None if self.config is None else {"model": self.name, "client": self.config, "sampling_args": self.sampling_args}

    async def close(self) -> None:
        """Release the clients' connections. A second call does nothing."""
        for client in self.clients:
            await client.close()


class _ModelAnswers:
    """What asks a model in one episode: an object and no closure, so that an episode goes on in another process."""

    def __init__(self, agent: ModelAgent, number: int, seat: EpisodeSeat) -> None:
        self._agent, self._number, self._seat = agent, number, seat

    async def __call__(self, observation: list[Message], info: dict[str, Any]) -> Response:
        agent, seat = self._agent, self._seat
        state: Any = seat.state
        tools = state["tool_defs"] if seat.episode is None else seat.episode.tool_defs  # an opponent has a state alone
        arguments = merge_sampling_args(state["sampling_args"] or {}, agent.sampling_args)
        client = agent.clients[self._number]
        return await client.get_response(observation, agent.name, arguments, tools or None, state=state)
