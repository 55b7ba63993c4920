"""Plain data: what the parts of this package hand on, and what survives a process."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from vfgym.errors import ConfigurationError
from vfgym.interception.wire import plain_data
from vfgym.messages import as_message, as_messages


class NotSerializable(ConfigurationError, TypeError):
    """A value that must survive the process has no form in JSON."""


def check_json(value: Mapping[str, Any], what: str) -> None:
    """Raise if something in `value` has no form in JSON.

    Raises:
        NotSerializable: The text names the key.
    """
    for key, item in value.items():
        try:
            json.dumps(item)
        except (TypeError, ValueError, RecursionError) as error:
            raise NotSerializable(f"{what} must be JSON, and {key!r} is not: {error}") from None


def plain_messages(value: Any, name: str) -> list[dict[str, Any]]:
    """Return a conversation in any raw form as a list of plain dicts, fields that are None left out.

    A bare string is one user message.

    Raises:
        vfgym.errors.InvalidMessage: If it is not a conversation.
    """
    if isinstance(value, str):
        value = [{"role": "user", "content": value}]
    return [plain_message(message) for message in as_messages(value, name=name)]


def plain_message(value: Any) -> dict[str, Any]:
    """Return one message as a plain dict, fields that are None left out (but the content of a message that only calls tools)."""
    message = as_message(value)
    return {key: plain_data(item) for key, item in message.items() if item is not None or key == "content"}


def system_messages(value: Any, name: str = "system_prompt") -> list[dict[str, Any]]:
    """Return a system prompt, given as text or as system messages, as a list of plain messages.

    Raises:
        vfgym.errors.ConfigurationError: If there is a message of another role.
    """
    if value is None:
        return []
    messages = plain_messages([{"role": "system", "content": value}] if isinstance(value, str) else value, name)
    for message in messages:
        if message["role"] != "system":
            raise ConfigurationError(f"{name} must be text, or system messages only; got a message with the role {message['role']!r}")
    return messages
