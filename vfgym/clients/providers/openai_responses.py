"""The client of OpenAI's Responses API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from vfgym.clients.client import SamplingArgs
from vfgym.clients.formats.native_output import FIELD, native_output, wire_form
from vfgym.clients.formats.openai_chat import unix_time
from vfgym.clients.formats.openai_responses import API, Item, native_parameters, native_prompt, native_tool, read_items
from vfgym.clients.formats.sampling import check_sampling_args, create_arguments
from vfgym.clients.formats.usage import read_usage
from vfgym.clients.provider import OpenAISDKClient
from vfgym.errors import EmptyModelResponseError, InvalidModelResponseError, OverlongPromptError
from vfgym.messages import FinishReason, Message, Response, ResponseMessage
from vfgym.output.redaction import excerpt
from vfgym.tools import Tool

if TYPE_CHECKING:
    import openai
    import openai.types.responses

NativeTool: TypeAlias = "dict[str, Any]"

_UNFINISHED = {"queued", "in_progress"}
_FAILED = {"failed", "cancelled"}


class OpenAIResponsesClient(OpenAISDKClient["list[Item]", "openai.types.responses.Response", NativeTool]):
    """Asks a model through OpenAI's Responses API.

    The whole conversation is sent at each call. The items of an answer are kept on the assistant message (see
    `vfgym.clients.formats.native_output`) and sent back unchanged, so that reasoning models go on from their own reasoning. Where the
    provider must store nothing, pass ``store=False`` and, if the provider asks for it,
    ``include=["reasoning.encrypted_content"]`` as sampling arguments: nothing of the kind is sent unasked. Images go in tool
    results too; audio is an error.

    Sampling arguments may be spelled as for chat completions: ``max_tokens``, ``reasoning_effort``, ``verbosity``,
    ``response_format``, ``logprobs``, ``tool_choice``; all others are sent as they are. ``tools`` among them (those that the
    provider runs itself) are added to the environment's. There are no stop sequences.
    """

    async def to_native_prompt(self, messages: Sequence[Message]) -> tuple[list[Item], dict[str, Any]]:
        """Return the conversation as the API's items. System messages stay in their place; ``instructions`` is the caller's.

        Raises:
            InvalidMessage: If a message has something in it that the API does not take.
        """
        return native_prompt(messages), {}

    async def to_native_tool(self, tool: Tool) -> NativeTool:
        """Return a tool in the API's format."""
        return native_tool(tool)

    async def get_native_response(
        self, prompt: list[Item], model: str, sampling_args: SamplingArgs, tools: list[NativeTool] | None = None, **kwargs: Any
    ) -> openai.types.responses.Response:
        """Call the API (see `ProviderClient.get_native_response`).

        Raises:
            ConfigurationError: If a sampling argument asks for what the API cannot do.
        """
        parameters, options = check_sampling_args(sampling_args, "the Responses API")
        parameters = native_parameters(parameters)
        # In the body as they are: as arguments they would be matched against the SDK's types, which takes openai 3.52 0.5 ms an item.
        body: dict[str, Any] = {"input": prompt}
        all_tools = [*(tools or ()), *parameters.pop("tools", ())]
        if all_tools:
            body["tools"] = all_tools
        options["extra_body"] = {**body, **options.get("extra_body", {})}
        create: Any = self.client.responses.create
        response: openai.types.responses.Response = await create(model=model, **create_arguments(create, parameters, options, kwargs))
        return response

    async def raise_from_native_response(self, response: openai.types.responses.Response) -> None:
        """Raise for an answer that failed, is not finished, or has nothing in it.

        Raises:
            OverlongPromptError: If it failed because the prompt does not fit.
            InvalidModelResponseError: If it failed, or is not finished.
            EmptyModelResponseError: If there is no text, no tool call and no reasoning in it.
        """
        if response is None:
            raise EmptyModelResponseError(f"{self._where()} gave no response")
        native = wire_form(response)
        if not isinstance(native, Mapping):
            raise InvalidModelResponseError(
                f"{self._where()} gave something that is not a response of the Responses API: {excerpt(native, 200)}"
            )
        status, error = native.get("status"), native.get("error")
        if error or status in _FAILED:
            said = error if isinstance(error, Mapping) else {"message": error}
            if said.get("code") == "context_length_exceeded":
                raise OverlongPromptError(f"the prompt is longer than the model's context: {said.get('message')}")
            raise InvalidModelResponseError(
                f"{self._where()} could not answer (status {status}): {said.get('code')}: {said.get('message')}"
            )
        if status in _UNFINISHED:
            raise InvalidModelResponseError(f"{self._where()} has not finished its answer (status {status}); leave out background=True")
        items = native.get("output")
        if not items:
            raise EmptyModelResponseError(f"{self._where()} gave a response without output (status {status})")
        fields = read_items(items)
        if not (fields["content"] or "tool_calls" in fields or any(item.get("type") == "reasoning" for item in items)):
            raise EmptyModelResponseError(f"{self._where()} gave an answer without text, tool calls and reasoning (status {status})")

    async def from_native_response(self, response: openai.types.responses.Response) -> Response:
        """Return the API's response as a `Response`."""
        native = wire_form(response)
        fields = read_items(native["output"])
        fields[FIELD] = native_output(API, native["output"])
        is_truncated = native.get("status") == "incomplete" or bool(native.get("incomplete_details"))
        finish_reason: FinishReason | None = None
        if "tool_calls" in fields:
            finish_reason = "tool_calls"
        elif is_truncated:
            finish_reason = "length"
        elif native.get("status") == "completed":
            finish_reason = "stop"
        message = ResponseMessage(**fields, finish_reason=finish_reason, is_truncated=is_truncated)
        model, created = native.get("model") or "", unix_time(native.get("created_at"))
        return Response(native.get("id") or "", created, model, read_usage(native.get("usage"), self._tell_unusable(model)), message)
