"""From a policy's reply to what the model "generated": cut at stop sequences and limits, counted, tokenized on demand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple

from vfgym.errors import ConfigurationError
from vfgym.interception.wire import split_into_pieces
from vfgym.messages import ToolCall, Usage
from vfgym.model_server.exchange import Reply
from vfgym.model_server.tokenizer import END, answer_pieces, count, parse_answer, shorten, token_ids


class StreamPiece(NamedTuple):
    """Some of an answer, as a stream delivers it."""

    kind: Literal["reasoning", "text", "call", "arguments"]
    call: int
    """Which tool call it belongs to, from 0."""
    text: str
    num_tokens: int


@dataclass
class Generation:
    """One answer, after stop sequences and limits."""

    reply: Reply
    text: str | None
    calls: Sequence[ToolCall]
    reasoning: str | None
    finish_reason: str
    stop_sequence: str | None
    usage: Usage
    ids: list[int] | None = field(default=None, repr=False)
    """Token ids, where they are known already."""

    @cached_property
    def token_ids(self) -> list[int]:
        """Ids of the generated tokens, the end of the message included."""
        if self.ids is not None:
            return self.ids
        ids = token_ids(answer_pieces(self.reasoning, self.text, self.calls))
        return ids if self.stop_sequence is not None or self.finish_reason == "length" else [*ids, END]

    @cached_property
    def logprobs(self) -> list[float]:
        """Log-probability of each token (nats): the reply's, or made up of position and id, always the same."""
        given = self.reply.logprobs
        if given is None:
            return [-(1 + (31 * token + 17 * position) % 97) / 100 for position, token in enumerate(self.token_ids)]
        num_tokens = len(self.token_ids)
        if len(given) < num_tokens:
            raise ConfigurationError(f"a reply needs one log-probability for each of its {num_tokens} tokens, got {len(given)}")
        return list(given[:num_tokens])

    @property
    def is_whole(self) -> bool:
        """Whether nothing was cut off."""
        return self.finish_reason != "length"

    def pieces(self) -> Iterator[StreamPiece]:
        """Return the answer in pieces, in order. The end of the message belongs to none of them."""
        reasoning = list(split_into_pieces(self.reasoning or ""))
        for number, text in enumerate(reasoning):
            markers = (number == 0) + (number == len(reasoning) - 1)
            yield StreamPiece("reasoning", 0, text, count([text]) + markers)
        for text in split_into_pieces(self.text or ""):
            yield StreamPiece("text", 0, text, count([text]))
        for index, call in enumerate(self.calls):
            yield StreamPiece("call", index, "", count([call.name]) + 2)
            for text in split_into_pieces(call.arguments):
                yield StreamPiece("arguments", index, text, count([text]))


def generate(reply: Reply, *, prompt_tokens: int, max_tokens: int | None, stops: Sequence[str]) -> Generation:
    """Return what comes of a reply.

    Args:
        reply: What the policy answered.
        prompt_tokens: Length of the prompt.
        max_tokens: Most tokens of the answer; None for no limit.
        stops: Texts before which the answer ends.

    Raises:
        ConfigurationError: If the reply contradicts itself.
    """
    text, calls, stop = reply.text, reply.tool_calls, None
    if stops and text:
        found = [(position, each) for each in stops if (position := text.find(each)) >= 0]
        if found:
            position, stop = min(found, key=lambda match: match[0])
            text, calls = text[:position], ()
    finish = reply.finish_reason or ("tool_calls" if calls else "stop")
    if stop is not None:
        finish = "stop"
    made = Generation(reply, text, calls, reply.reasoning, finish, stop, Usage())
    if reply.token_ids is not None and stop is None:
        made.ids = list(reply.token_ids)
    if made.ids is not None:
        num_tokens = len(made.ids)
    else:
        num_tokens = count(answer_pieces(made.reasoning, text, calls)) + (stop is None and finish != "length")
    if max_tokens is not None and num_tokens > max_tokens:
        _cut(made, max_tokens)
        num_tokens = len(made.token_ids)
    reasoning_tokens = count([made.reasoning]) if made.reasoning else 0
    made.usage = reply.usage or Usage(prompt_tokens, reasoning_tokens, num_tokens, prompt_tokens + num_tokens)
    return made


def _cut(made: Generation, max_tokens: int) -> None:
    """Cut an answer to a number of tokens, wherever that is."""
    whole = token_ids(answer_pieces(made.reasoning, made.text, made.calls))
    kept = shorten(whole, max_tokens)
    made.ids = made.ids[:max_tokens] if made.ids is not None else kept
    reasoning, text, calls = parse_answer(kept)
    made.reasoning = reasoning or None
    made.text = text if text or made.text is not None else None
    made.calls = [ToolCall(call.id, call.name, arguments) for call, (_, arguments) in zip(made.calls, calls, strict=False)]
    made.finish_reason, made.stop_sequence = "length", None
