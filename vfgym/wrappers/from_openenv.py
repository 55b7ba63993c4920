"""`from_openenv`: an OpenEnv server that runs as a chat environment."""

from __future__ import annotations

from typing import Any

from vfgym.envs.signatures import shows_arguments_of
from vfgym.wrappers.openenv.env import TIMEOUT, OpenEnvEnv
from vfgym.wrappers.openenv.rendering import Contract, PromptRenderer, render_as_json


@shows_arguments_of(OpenEnvEnv)
def from_openenv(
    url: str,
    prompt_renderer: PromptRenderer = render_as_json,
    *,
    contract: Contract | None = None,
    request_timeout: float = TIMEOUT,
    **kwargs: Any,
) -> OpenEnvEnv:
    """Return the environment that an OpenEnv server plays.

    Args:
        url: Where the server is, such as ``"http://127.0.0.1:8000"``. Episodes are WebSocket sessions where it has ``/ws``, else they are
            played one at a time over ``/reset`` and ``/step``.
        prompt_renderer: Makes the messages that show an observation: ``prompt_renderer(observation, context=, action_schema=, contract=,
            seed=)``, of which it is given what it declares. ``context`` is ``"reset"`` or ``"step"``; under the contract ``mcp`` it only
            makes the first prompt. The default shows the observation as JSON, and says what an action is.
        contract: ``"gym"`` (an answer is an action) or ``"mcp"`` (the model calls the server's tools); by the server's schema of actions
            without it.
        request_timeout: Seconds that the server has for each answer.
        **kwargs: Passed to `vfgym.wrappers.openenv.OpenEnvEnv` (``max_turns``, ``rubric``, ``system_prompt``, ``history``, ...).

    Raises:
        ConfigurationError: If nothing that speaks the protocol answers there, or an argument does not fit.
    """
    return OpenEnvEnv(url, prompt_renderer, contract=contract, request_timeout=request_timeout, **kwargs)
