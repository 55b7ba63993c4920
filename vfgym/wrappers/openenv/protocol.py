"""OpenEnv's wire protocol: what a server's answers hold, and what goes wrong between a server and whoever plays on it.

A server answers `reset` and `step` with an observation (a JSON object), a reward and whether the episode is over: as HTTP routes, or in
messages ``{"type": ..., "data": ...}`` over a WebSocket at ``/ws``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from vfgym.bounded_json import parse_json
from vfgym.errors import InfraError
from vfgym.output.redaction import redact_url

MAX_BYTES = 100 * 2**20
"""Bytes of the largest answer that is read."""

_SHOWN = 300
"""Characters of a server's words that an error repeats."""


class ServerReply(NamedTuple):
    """What a server answers to `reset` or `step`."""

    observation: dict[str, Any]
    reward: float
    """0.0 where the server gave none."""
    done: bool
    metadata: dict[str, Any]


class ServerError(InfraError):
    """An OpenEnv server cannot be reached, went away, took too long, or answered with something that is not an answer."""

    def __init__(self, url: str, problem: str) -> None:
        """Say what is wrong with a server.

        Args:
            url: The server's.
            problem: The rest of the sentence that begins with the server.
        """
        super().__init__(f"the OpenEnv server {redact_url(url)} {problem}")
        self.url, self.problem = url, problem

    def __reduce__(self) -> tuple[type[ServerError], tuple[str, str]]:
        return type(self), (self.url, self.problem)


class ServerFull(ServerError):
    """A server plays as many episodes as it can at the moment."""


class ActionRefused(Exception):
    """An action does not fit the server's schema, or is not JSON; the episode stands as it was. The text is for the model."""


def encode(data: Mapping[str, Any]) -> str:
    """Return a message as JSON.

    Raises:
        ActionRefused: If it holds something that JSON does not have.
    """
    try:
        return json.dumps(data, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ActionRefused(f"it is not JSON: {error}") from None


def parse(url: str, text: str | bytes) -> dict[str, Any]:
    """Return the JSON object that a server sent.

    Raises:
        ServerError: If it is not one.
    """
    try:
        data = parse_json(text)
    except ValueError:
        data = None
    if not isinstance(data, dict):
        raise ServerError(url, f"answered with something that is not a JSON object: {shorten(text)!r}")
    return data


def read_reply(url: str, data: Mapping[str, Any]) -> ServerReply:
    """Return what a server answered to `reset` or `step`.

    Raises:
        ServerError: If there is no observation, the reward is not a finite number, or ``done`` is not a boolean.
    """
    observation, reward, done, metadata = (data.get(name) for name in ("observation", "reward", "done", "metadata"))
    if not isinstance(observation, dict):
        raise ServerError(url, f"answered without an observation (a JSON object): {shorten(encode_any(data))}")
    if reward is None:
        reward = 0.0
    try:
        is_finite = isinstance(reward, int | float) and math.isfinite(reward)
    except OverflowError:  # a whole number of more than 308 digits
        is_finite = False
    if not is_finite:
        raise ServerError(url, f"gave the reward {shorten(repr(reward))}, which is not a finite number")
    if not isinstance(done, bool | None):
        raise ServerError(url, f"answered with done={shorten(repr(done))}, which is neither true nor false")
    return ServerReply(observation, float(reward), bool(done), metadata if isinstance(metadata, dict) else {})


def describe_problems(errors: Any) -> str:
    """Return what a server says is wrong with an action (pydantic's list of errors), in one line."""
    listed = errors if isinstance(errors, list) else [errors]
    return "; ".join(_describe(error) for error in listed)


def _describe(error: Any) -> str:
    if not isinstance(error, Mapping) or "msg" not in error:
        return shorten(encode_any(error))
    place = ".".join(str(part) for part in error.get("loc") or ())
    return f"{place}: {error['msg']}" if place else str(error["msg"])


def encode_any(data: Any) -> str:
    """Return data as JSON, or as Python writes it."""
    try:
        return json.dumps(data, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return repr(data)


def shorten(text: str | bytes) -> str:
    """Return the beginning of what a server said."""
    said = text.decode(errors="replace") if isinstance(text, bytes) else text
    return said if len(said) <= _SHOWN else f"{said[:_SHOWN]}..."
