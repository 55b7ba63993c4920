"""Chat completions through the OpenAI SDK: for clients that were given as such, and for subclasses of the library's."""

from __future__ import annotations

from collections.abc import Mapping
from types import FunctionType
from typing import Any

from vfgym.clients.formats.openai_chat_stream import collect_stream
from vfgym.clients.formats.sampling import create_arguments


async def create_completion(client: Any, model: str, messages: list[Any], parameters: dict[str, Any], options: dict[str, Any]) -> Any:
    """Ask for a chat completion.

    Args:
        client: An `openai.AsyncOpenAI`, or what stands for one.
        model: Name of the model.
        messages: The conversation as the API takes it.
        parameters: Parameters of the API. What the SDK's ``create`` does not know is sent in the request's body.
        options: ``extra_headers``, ``extra_query``, ``extra_body`` and ``timeout`` of the request.

    Returns:
        The SDK's ``ChatCompletion``, or the JSON of one that was streamed, as a dict.
    """
    completions = client.chat.completions
    if not parameters.get("stream") and not options.get("extra_body", {}).get("stream") and is_the_sdks_own(completions):
        return await _post(client, {"model": model, "messages": messages, **parameters}, options)
    arguments = create_arguments(completions.create, parameters, options)
    response = await completions.create(**{"model": model, "messages": messages, **arguments})
    return await collect_stream(response) if hasattr(response, "__aiter__") else response


async def _post(client: Any, body: dict[str, Any], options: dict[str, Any]) -> Any:
    """Send what ``create`` would, without its walk over every field of every message (0.25 ms a message in openai 3.52)."""
    from openai.types.chat import ChatCompletion

    return await client.post("/chat/completions", cast_to=ChatCompletion, body=body, options=post_options(options))


def post_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a request as the ``post`` of the SDK's client calls them."""
    named = {"extra_headers": "headers", "extra_query": "params", "extra_body": "extra_json", "timeout": "timeout"}
    return {named[name]: value for name, value in options.items()}


def is_the_sdks_own(resource: Any, sdk: str = "openai") -> bool:
    """Say whether the ``create`` of a resource is what the SDK wrote: tests replace it, and tracing tools wrap it."""
    create = getattr(getattr(resource, "create", None), "__func__", None)
    return isinstance(create, FunctionType) and str(create.__globals__.get("__name__")).startswith(f"{sdk}.")
