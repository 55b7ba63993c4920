"""How a system prompt gets into the conversations of an environment, and what stands there now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from verifiers_compat.gepa.examples import Example
from vfgym.envs.chat import ChatEnv
from vfgym.errors import ConfigurationError
from vfgym.messages import content_text
from vfgym.results.plain_json import json_text

_ROLES = ("system", "developer")


def current_prompt(definition: ChatEnv, examples: Iterable[Example]) -> str:
    """Return the system prompt that all examples have: that of their own prompt, else that of the environment which plays them.

    Raises:
        ConfigurationError: If they have different ones, which one text cannot take the place of, or prompts that can have none.
    """
    if getattr(definition, "message_type", "chat") == "completion":
        raise ConfigurationError("prompts that are plain text (message_type='completion') have no system prompt that could be improved")
    prompts = {_prompt_of(definition, example.task_of(definition)) for example in examples}
    if len(prompts) > 1:
        raise ConfigurationError(
            f"the examples have {len(prompts)} different system prompts, and one text cannot take the place of all: give an environment"
            " whose tasks share one (what differs belongs into the user's message)"
        )
    return prompts.pop()


def _prompt_of(definition: ChatEnv, task: dict[str, Any]) -> str:
    messages = task["prompt"]
    if has_system_message(messages):
        return content_text(messages[0]["content"])
    return definition.routed(task)[0].system_prompt or ""


def has_system_message(messages: Any) -> bool:
    """Say whether a conversation begins with a system message (newer models of OpenAI call it the developer's)."""
    return bool(messages) and isinstance(messages[0], Mapping) and messages[0]["role"] in _ROLES


def with_prompt(task: Mapping[str, Any], prompt: str) -> dict[str, Any]:
    """Return a task whose system message, where its prompt begins with one, says something else; nothing where the text is empty."""
    messages = task["prompt"]
    if not has_system_message(messages):
        return dict(task)
    system = [{**messages[0], "content": prompt}] if prompt else []
    return {**task, "prompt": [*system, *messages[1:]]}


class PromptCheck:
    """What the model was told of each example, and with which system prompt: other prompts must change it."""

    def __init__(self) -> None:
        """Begin without any."""
        self._told: dict[Example, tuple[str, str]] = {}

    def check(self, example: Example, prompt: str, row: Mapping[str, Any]) -> None:
        """Take down what a rollout of an example began with.

        Raises:
            ConfigurationError: If it began so with another system prompt, too: then the environment does not tell it to the model.
        """
        if row["error"] is not None:
            return
        told = json_text(row["prompt"])
        first_prompt, first_told = self._told.setdefault(example, (prompt, told))
        if prompt != first_prompt and told == first_told:
            raise ConfigurationError(
                "the environment does not take a system prompt: whatever set_system_prompt is given, the conversation of the example with"
                f" example_id {row['example_id']} begins in the same way"
            )
