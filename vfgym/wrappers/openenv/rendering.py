"""How an observation becomes messages: the author's `prompt_renderer`, and the one that shows plain JSON."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

from vfgym.errors import ConfigurationError
from vfgym.messages import Message, MessageTypes, as_messages
from vfgym.wrappers.openenv.actions import ActionReader

Context: TypeAlias = Literal["reset", "step"]
"""What an observation answers."""

Contract: TypeAlias = Literal["gym", "mcp"]
"""How a server is played: by actions of its schema, or by calling its tools."""

PromptRenderer: TypeAlias = Callable[..., Any]
"""Makes messages of an observation: ``prompt_renderer(observation, context=, action_schema=, contract=, seed=)``. It is given those of
the named arguments that it declares."""


def render_as_json(
    observation: Mapping[str, Any], *, context: Context, contract: Contract, action_schema: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return an observation as JSON, after what an action is where an episode begins."""
    shown = json.dumps(observation, ensure_ascii=False)
    if context == "reset" and contract == "gym":
        shown = f"{ActionReader(action_schema).instructions}\n\nObservation: {shown}"
    return [{"role": "user", "content": shown}]


class Renderer:
    """An author's `prompt_renderer`, with the arguments that it asks for."""

    def __init__(self, render: PromptRenderer, contract: Contract, action_schema: Mapping[str, Any]) -> None:
        """Read the signature of a renderer.

        Raises:
            ConfigurationError: If it is not a function of an observation.
        """
        if not callable(render):
            raise ConfigurationError(
                "prompt_renderer must be a function that makes messages of an observation:"
                f" prompt_renderer(observation, context=, action_schema=, contract=, seed=); got {render!r}"
            )
        self._render = render
        self._known = {"contract": contract, "action_schema": action_schema}
        parameters = list(inspect.signature(render).parameters.values())
        self._takes_any = any(each.kind is each.VAR_KEYWORD for each in parameters)
        self._names = {each.name for each in parameters if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)}

    def render(self, observation: Mapping[str, Any], context: Context, seed: int, types: MessageTypes) -> list[Message]:
        """Return the messages that show an observation.

        Raises:
            ConfigurationError: If the renderer returns no messages.
        """
        known = {**self._known, "context": context, "seed": seed}
        rendered = self._render(observation, **{name: value for name, value in known.items() if self._takes_any or name in self._names})
        messages = as_messages(rendered, types, name="what prompt_renderer returned") if isinstance(rendered, list | tuple) else []
        if not messages:
            raise ConfigurationError(
                f"prompt_renderer must return a list of messages that is not empty (context {context!r}), got {rendered!r}"
            )
        return messages
