"""`NeMoRLChatCompletionsClient`: chat completions as NeMo RL serves them, with the token data on the messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vfgym.clients.client import SamplingArgs
from vfgym.clients.formats.openai_chat import as_fields, native_message, read_completion
from vfgym.clients.providers.openai_chat_completions import ChatCompletion, ChatMessages, ChatTool, OpenAIChatCompletionsClient
from vfgym.messages import Response
from vfgym.messages.chat import convert_all


class NeMoRLChatCompletionsClient(OpenAIChatCompletionsClient):
    """Asks a NeMo RL server.

    It gives an answer's token ids and log-probabilities on the message (``prompt_token_ids``, ``generation_token_ids``,
    ``generation_log_probs``), and wants them back on the assistant messages of a prompt, so that it need not tokenize these again.
    """

    async def get_native_response(
        self, prompt: ChatMessages, model: str, sampling_args: SamplingArgs, tools: list[ChatTool] | None = None, **kwargs: Any
    ) -> ChatCompletion:
        """Call the API, with the token data of the episode's earlier turns on their answers."""
        return await super().get_native_response(_with_tokens(prompt, kwargs.get("state")), model, sampling_args, tools, **kwargs)

    async def from_native_response(self, response: ChatCompletion) -> Response:
        """Return the response as the library's own."""
        fields = as_fields(response)
        choice = fields["choices"][0]
        message = choice["message"]
        if message.get("generation_token_ids") is not None:
            logprobs = [{"logprob": value} for value in message.get("generation_log_probs") or ()]
            choice = {**choice, "token_ids": message["generation_token_ids"], "logprobs": {"content": logprobs}}
            fields = {**fields, "choices": [choice], "prompt_token_ids": message.get("prompt_token_ids")}
        return read_completion(fields, self._tell_unusable(fields.get("model")))


def _with_tokens(prompt: ChatMessages, state: Any) -> ChatMessages:
    """Return a prompt with the token data of each turn on the answer that it gave, where that stands where it stood then."""
    trajectory = state.get("trajectory") if isinstance(state, Mapping) else None
    if not trajectory:
        return prompt
    made = list(prompt)
    for step in trajectory:
        position, tokens = len(step["prompt"]), step["tokens"]
        if tokens is None or position >= len(made) or len(step["completion"]) != 1:
            continue
        if [prompt[position]] == convert_all(step["completion"], native_message):
            made[position] = {
                **prompt[position],
                "prompt_token_ids": tokens["prompt_ids"],
                "generation_token_ids": tokens["completion_ids"],
                "generation_log_probs": tokens["completion_logprobs"],
            }
    return made
