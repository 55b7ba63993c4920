"""How programs reach the model of their rollout, as functions of its state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from verifiers_compat.loading import create_getattr
from verifiers_compat.v1.state import State
from vfgym.interception import check_api


def client_from_state(state: State, api: str = "chat_completions", *, sync: bool = False) -> Any:
    """Return a client of the provider's SDK for the rollout's model (see `State.get_client`)."""
    return state.get_client(api, sync=sync)


def endpoint_config_from_state(state: State, api: str = "chat_completions") -> dict[str, str]:
    """Return how an SDK or another program reaches the rollout's model (see `State.get_endpoint_config`)."""
    return state.get_endpoint_config(api)


def endpoint_api_key(state: State) -> str:
    """Return the key that the endpoint of the rollout takes."""
    return state.get_endpoint_config()["api_key"]


def normalize_endpoint_api(api: str) -> str:
    """Return the API that a name stands for: its own, a short one (``"chat"``), or that of a client (``"openai_chat_completions"``).

    Raises:
        ConfigurationError: If the endpoint does not speak it.
    """
    return check_api(api)


def assistant_completion_from_messages(prompt: Sequence[Mapping[str, Any]], messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return what a conversation has beyond its prompt."""
    return [dict(message) for message in messages[len(prompt) :]]


__getattr__ = create_getattr(__name__)
