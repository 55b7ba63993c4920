"""`LocalPolicy`: a Hugging Face model in this process as a client, whose tokens are kept exactly.

A turn continues from the very ids of the turn before: what the model wrote is never tokenised again. Only what the chat template puts
after it is. Where the template does not extend its own rendering of the conversation (it drops earlier thoughts, say), the prompt is
tokenised anew, and the sample of that turn is a fork that says so (see `vfgym.training.samples`).
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import json
import queue
import re
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from vfgym.bounded_json import parse_json
from vfgym.clients import Client, SamplingArgs
from vfgym.errors import ConfigurationError, Error, ModelError, OverlongPromptError
from vfgym.messages import Message, Response, ResponseMessage, ResponseTokens, ToolCall, Usage, plain
from vfgym.tools import Tool
from vfgym.training.sampling import Completion, Sampling, sample_completions

_MARK = "\u2060answer\u2060"
"""Stands for an answer where the text that a template puts behind one is looked for."""


class Parsed(NamedTuple):
    """What a model's text says."""

    content: str | None
    reasoning: str | None
    tool_calls: list[ToolCall]


_THOUGHT = re.compile(r"\A\s*<think>(.*?)</think>\s*", re.DOTALL)
_TAG_OF_CALL = re.compile(r"(?P<opening><tool_call>\s*+)(?=\{)|\}(?P<closing>\s*+</tool_call>)")


def parse_text(text: str) -> Parsed:
    """Return what a model's text says.

    Thoughts stand in ``<think>``, calls in ``<tool_call>``, or are the text as a whole, as JSON. Calls that cannot be read stay text.
    """
    thought = _THOUGHT.match(text)
    rest = text[thought.end() :] if thought else text
    written, besides = _split_calls(rest)
    if not written and rest.lstrip().startswith('{"name"'):
        written = [rest]
    calls: list[ToolCall] = []
    for number, each in enumerate(written):
        try:
            call = parse_json(each)
            arguments = call.get("arguments", call.get("parameters", {}))
            calls.append(ToolCall(f"call_{number}", str(call["name"]), arguments if isinstance(arguments, str) else json.dumps(arguments)))
        except (ValueError, KeyError, AttributeError):
            return Parsed(rest, thought and thought[1].strip(), [])  # the environment hears what was written
    content = besides.strip() if calls and written != [rest] else None if calls else rest
    return Parsed(content or (None if calls else ""), thought and thought[1].strip(), calls)


def _split_calls(text: str) -> tuple[list[str], str]:
    """Return the objects that stand in ``<tool_call>``, and the text without them: each goes on to the next closing tag after a brace."""
    calls: list[str] = []
    besides: list[str] = []
    done, opening = 0, None
    for tag in _TAG_OF_CALL.finditer(text):
        if opening is None and tag["opening"]:
            opening = tag
        elif opening is not None and tag["closing"]:
            calls.append(text[opening.end() : tag.start("closing")])
            besides.append(text[done : opening.start()])
            done, opening = tag.end(), None
    return calls, "".join([*besides, text[done:]])


class _Request(NamedTuple):
    ids: list[int]
    sampling: Sampling
    answer: concurrent.futures.Future[Completion]


class _Sampler(NamedTuple):
    """A thread that samples, and what it is asked for: after None nothing more."""

    thread: threading.Thread
    requests: queue.SimpleQueue[_Request | None]


class TokenPolicy(Client, ABC):
    """A model that is asked with token ids: it writes conversations by a chat template, and goes on from the ids of the turn before."""

    def __init__(
        self,
        tokenizer: Any,
        ends: Iterable[int],
        *,
        template_arguments: Mapping[str, Any] | None = None,
        parse: Callable[[str], Parsed] = parse_text,
    ) -> None:
        """Take what writes conversations, and what reads answers.

        Args:
            tokenizer: A tokenizer of transformers, with a chat template.
            ends: Tokens that end an answer.
            template_arguments: What the template is told besides (``{"enable_thinking": False}``).
            parse: Reads what the model wrote.

        Raises:
            ConfigurationError: If the tokenizer has no chat template.
        """
        if not getattr(tokenizer, "chat_template", None):
            raise ConfigurationError("the tokenizer has no chat_template, which says how a conversation is written: set one")
        self.tokenizer = tokenizer
        self.ends = frozenset(ends)
        self._template_arguments = dict(template_arguments or {})
        self._parse = parse

    @abstractmethod
    async def sample(self, ids: list[int], sampling_args: SamplingArgs) -> Completion:
        """Return what the model writes behind a prompt.

        Raises:
            vfgym.errors.OverlongPromptError: If the prompt does not fit into the model's context.
            vfgym.errors.Error: If the model cannot be asked.
        """

    async def get_response(
        self,
        prompt: Sequence[Message],
        model: str = "",
        sampling_args: SamplingArgs | None = None,
        tools: Sequence[Tool] | None = None,
        **kwargs: Any,
    ) -> Response:
        """Sample the next message of a conversation. See `Client.get_response`."""
        ids = self._prompt_ids(prompt, tools, kwargs.get("state"))
        completion = await self.sample(ids, sampling_args or {})
        written = completion.ids[:-1] if completion.has_ended else completion.ids
        said = self._parse(self.tokenizer.decode(written))
        num = len(completion.ids)
        message = ResponseMessage(
            said.content,
            reasoning_content=said.reasoning,
            tool_calls=said.tool_calls or None,
            finish_reason="length" if not completion.has_ended else "tool_calls" if said.tool_calls else "stop",
            is_truncated=not completion.has_ended,
            tokens=ResponseTokens(ids, [0] * len(ids), completion.ids, [1] * num, completion.logprobs),
        )
        return Response("local", int(time.time()), model, Usage(len(ids), 0, num, len(ids) + num), message)

    async def prompt_ids(
        self, prompt: Sequence[Message], model: str = "", tools: Sequence[Tool] | None = None, *, state: Any = None
    ) -> list[int]:
        """Return the token ids of a conversation, as the model would be shown it (see `Client.prompt_ids`)."""
        return self._prompt_ids(prompt, tools, state)

    def _prompt_ids(self, prompt: Sequence[Message], tools: Sequence[Tool] | None, state: Any) -> list[int]:
        """Return the ids of a prompt: those of the turn that it extends, and what the template puts behind them."""
        messages = plain(prompt)
        told = [tool.openai for tool in tools or ()] or None
        text = self._render(messages, told, add_generation_prompt=True)
        before = _turn_before(prompt, state)
        if before is not None:
            known, ids = messages[: before.num_messages], before.ids
            rest = self._after(known, ids[-1] if ids else None, text, told)
            if rest is not None:
                return [*ids, *self._encode(rest)]
        return self._encode(text)

    def _after(self, known: list[dict[str, Any]], last: int | None, text: str, tools: Any) -> str | None:
        """Return what the template puts behind the last answer; None where it does not extend its own rendering of what came before.

        Args:
            known: The conversation up to and with the last answer.
            last: The last token of that answer.
            text: The rendering of the whole conversation.
            tools: The tools in it.
        """
        rendered = self._render(known, tools)
        thoughts = known[-1].get("reasoning_content")
        if not text.startswith(rendered) or (thoughts and thoughts not in text):
            return None
        marked = self._render([*known[:-1], {"role": "assistant", "content": _MARK}], tools)
        end = marked.rpartition(_MARK)[2]
        if last in self.ends:
            end = end.removeprefix(self.tokenizer.decode([last]))
        return end + text[len(rendered) :]

    def _render(self, messages: list[dict[str, Any]], tools: Any, *, add_generation_prompt: bool = False) -> str:
        rendered: str = self.tokenizer.apply_chat_template(
            messages, tools=tools, add_generation_prompt=add_generation_prompt, tokenize=False, **self._template_arguments
        )
        return rendered

    def _encode(self, text: str) -> list[int]:
        ids: list[int] = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        return ids


class LocalPolicy(TokenPolicy):
    """A causal language model of transformers as a client: answers are sampled in batches, and come with ids and log-probabilities.

    The log-probabilities (nats) are those of the distribution that was sampled from: after temperature, ``top_k`` and ``top_p``. At
    temperature 0 there is nothing to choose, and they are 0.
    """

    policy_version: Any = None
    """Say here which weights answer; it is kept with each turn (see `vfgym.rollout`)."""

    def __init__(
        self, model: Any, tokenizer: Any, *, max_batch: int = 16, wait_ms: float = 2.0, parse: Callable[[str], Parsed] = parse_text
    ) -> None:
        """Take a model and its tokenizer.

        Args:
            model: A causal language model of transformers.
            tokenizer: Its tokenizer, with a chat template.
            max_batch: Most answers that are sampled at once.
            wait_ms: For how long a batch waits for further requests, in milliseconds.
            parse: Reads what the model wrote.

        Raises:
            ConfigurationError: If the tokenizer has no chat template, or a number does not fit.
        """
        ends = getattr(getattr(model, "generation_config", None), "eos_token_id", None)
        ends = tokenizer.eos_token_id if ends is None else ends
        super().__init__(tokenizer, ends if isinstance(ends, list | tuple) else [] if ends is None else [ends], parse=parse)
        if max_batch < 1 or wait_ms < 0:
            raise ConfigurationError(f"max_batch must be positive and wait_ms at least 0, got {max_batch} and {wait_ms}")
        self.model = model
        self._max_batch, self._wait = max_batch, wait_ms / 1e3
        self._context: int | None = getattr(model.config, "max_position_embeddings", None)
        self._sampler: _Sampler | None = None
        self._starting = threading.Lock()

    async def sample(self, ids: list[int], sampling_args: SamplingArgs) -> Completion:
        """Sample behind a prompt, together with what others ask (see `TokenPolicy.sample`)."""
        sampling = Sampling.of(sampling_args)
        if self._context is not None and len(ids) >= self._context:
            raise OverlongPromptError(f"the prompt has {len(ids)} tokens, and the model's context {self._context}")
        return await self._ask(ids, sampling)

    async def close(self) -> None:
        """End the thread that samples, once it has answered what was asked before. A second call does nothing."""
        with self._starting:
            sampler, self._sampler = self._sampler, None
            if sampler is not None:
                sampler.requests.put(None)
        if sampler is not None:
            await asyncio.to_thread(sampler.thread.join)

    # Batches

    async def _ask(self, ids: list[int], sampling: Sampling) -> Completion:
        answer: concurrent.futures.Future[Completion] = concurrent.futures.Future()
        with self._starting:
            if self._sampler is None:
                self._sampler = self._start_sampler()
            self._sampler.requests.put(_Request(ids, sampling, answer))
        return await asyncio.wrap_future(answer)

    def _start_sampler(self) -> _Sampler:
        requests: queue.SimpleQueue[_Request | None] = queue.SimpleQueue()
        thread = threading.Thread(target=self._work, args=(requests,), name="LocalPolicy", daemon=True)
        thread.start()
        return _Sampler(thread, requests)

    def _work(self, requests: queue.SimpleQueue[_Request | None]) -> None:
        """Sample batches until there is nothing more to come."""
        while (first := requests.get()) is not None:
            batch, is_last = [first], False
            until = time.monotonic() + self._wait
            while len(batch) < self._max_batch:
                try:
                    request = requests.get(timeout=max(0.0, until - time.monotonic()))
                except queue.Empty:
                    break
                if request is None:
                    is_last = True
                    break
                batch.append(request)
            self._answer([request for request in batch if request.answer.set_running_or_notify_cancel()])
            if is_last:
                return

    def _answer(self, batch: list[_Request]) -> None:
        """Answer requests together; each alone, where that fails, so that one that cannot be answered harms no other."""
        if not batch:
            return
        try:
            rows = [(request.ids, self._within_context(request)) for request in batch]
            for request, completion in zip(batch, sample_completions(self.model, rows, self.ends), strict=True):
                request.answer.set_result(completion)
        except Exception as error:
            if len(batch) > 1:
                for request in batch:
                    self._answer([request])
            else:
                failure = error if isinstance(error, Error) else ModelError(f"the model failed: {type(error).__name__}: {error}")
                failure.__cause__ = None if failure is error else error
                batch[0].answer.set_exception(failure)

    def _within_context(self, request: _Request) -> Sampling:
        """Return how to sample an answer that fits into the model's context."""
        sampling = request.sampling
        if self._context is None or len(request.ids) + sampling.max_tokens <= self._context:
            return sampling
        return replace(sampling, max_tokens=self._context - len(request.ids))


class _Before(NamedTuple):
    num_messages: int
    ids: list[int]


def _turn_before(prompt: Sequence[Message], state: Any) -> _Before | None:
    """Return the last turn with tokens that a prompt extends; None where there is none."""
    trajectory = state.get("trajectory") if isinstance(state, Mapping) else None
    for step in reversed(trajectory or ()):
        tokens = step.get("tokens")
        known = [*step["prompt"], *step["completion"]]
        if len(known) < len(prompt) and list(prompt[: len(known)]) == known:
            return (
                None
                if tokens is None or tokens["is_truncated"]
                else _Before(len(known), [*tokens["prompt_ids"], *tokens["completion_ids"]])
            )
    return None
