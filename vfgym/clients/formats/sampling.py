"""Sampling arguments for the APIs that name them differently from chat completions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from vfgym.clients.client import SamplingArgs
from vfgym.clients.formats.openai_chat import request_headers, split_sampling_args
from vfgym.errors import ConfigurationError


def check_sampling_args(sampling_args: SamplingArgs, api: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the parameters among sampling arguments, and the options of the request (see `split_sampling_args`).

    Args:
        sampling_args: Sampling arguments in the spelling of chat completions or in the API's own.
        api: Name of the API, for the message.

    Raises:
        ConfigurationError: If more than one answer is asked for, or one that comes in pieces.
    """
    parameters, options = split_sampling_args(sampling_args)
    count = parameters.pop("n", 1)
    if count != 1:
        raise ConfigurationError(f"{api} gives one answer a call, got n={count!r}; ask several times, as rollouts_per_example does")
    if parameters.pop("stream", False):
        raise ConfigurationError("answers are read whole; leave out stream=True")
    return parameters, options


def create_arguments(
    create: Callable[..., Any], parameters: dict[str, Any], options: dict[str, Any], kwargs: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the arguments of an SDK's ``create``.

    Args:
        create: The SDK's function, or what stands for it. What it does not take as an argument goes into the request's body as it is.
        parameters: Parameters of the API.
        options: Options of the request.
        kwargs: What else the request is asked with (see `request_headers`).
    """
    # The plain function: a cached method would keep its client.
    known = _argument_names(getattr(create, "__func__", create))
    arguments = {name: value for name, value in parameters.items() if known is None or name in known}
    body = {name: value for name, value in parameters.items() if name not in arguments} | dict(options.get("extra_body") or {})
    rest = {name: value for name, value in options.items() if name not in ("extra_body", "extra_headers")}
    if body:
        rest["extra_body"] = body
    headers = request_headers(options, kwargs or {})
    if headers:
        rest["extra_headers"] = headers
    return {**arguments, **rest}


@lru_cache(maxsize=16)
def _argument_names(create: Callable[..., Any]) -> frozenset[str] | None:
    """Return the names of a function's arguments; None where it takes any."""
    parameters = inspect.signature(create).parameters
    return None if any(each.kind is each.VAR_KEYWORD for each in parameters.values()) else frozenset(parameters)
