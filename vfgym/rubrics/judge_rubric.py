"""`JudgeRubric`: reward functions that ask a model what it thinks of an answer."""

from __future__ import annotations

import asyncio
import functools
import logging
import os
import string
import weakref
from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any

from vfgym.aio.threads import on_thread
from vfgym.calls import is_awaitable
from vfgym.clients import PROVIDERS, Client, ClientConfig, EndpointClientConfig, SamplingArgs, resolve_client
from vfgym.clients.formats.usage import read_usage, warn_of_unusable
from vfgym.clients.provider import learn_secrets_of
from vfgym.context import in_force
from vfgym.errors import ConfigurationError, ModelError
from vfgym.lifecycle import teardown
from vfgym.messages import AssistantMessage, Message, Response, Usage, UserMessage, content_text
from vfgym.output.redaction import redact_error, with_secrets
from vfgym.parsers import Parser
from vfgym.rubrics.rubric import Rubric
from vfgym.rubrics.scoring import RewardFunc
from vfgym.state import UsageTracker
from vfgym.tools import Tool

logger = logging.getLogger(__name__)

DEFAULT_JUDGE_PROMPT = """\
You are given a question, the ground truth answer, and a response. Decide whether the response agrees with the ground truth.

Question:
```
{question}
```

Ground truth answer:
```
{answer}
```

Response:
```
{response}
```

Answer with "yes" if the response agrees with the ground truth answer, else with "no". Write nothing but "yes" or "no"."""
"""The template of a `JudgeRubric` that is given none."""

_FIELDS = ("question", "answer", "response")
_ASKED_FOR = frozenset({"user", "text"})
"""Roles of messages that put a question; a prompt of plain text is a ``text`` message."""


class JudgeError(ModelError, RuntimeError):
    """A judge could not be asked, or gave no verdict. The cause is what went wrong."""


class JudgeRubric(Rubric):
    """A rubric whose reward functions may ask a model: they get ``judge``, and await it.

    >>> async def correct(judge, prompt, completion, answer, state) -> float:
    ...     verdict = await judge(prompt, completion, answer, state)
    ...     return 1.0 if "yes" in verdict.lower() else 0.0
    >>> rubric = JudgeRubric(correct, judge_model="gpt-4.1-mini")

    The objects ``judge_client``, ``judge_model``, ``judge_prompt`` and ``judge_sampling_args`` are there too, for functions that
    ask in their own way. What ``judge`` asks for is counted in the rollout's usage, apart from the model's (``judge_requests``,
    ``judge_input_tokens``, ``judge_output_tokens``). The judge's calls are real ones also where an agent plays the episode with ``step``.
    """

    def __init__(
        self,
        funcs: Sequence[RewardFunc] | RewardFunc | None = None,
        weights: Sequence[float] | None = None,
        parser: Parser | None = None,
        judge_client: Any = None,
        judge_model: str = "gpt-4.1-nano",
        judge_sampling_args: SamplingArgs | None = None,
        judge_prompt: str = DEFAULT_JUDGE_PROMPT,
    ) -> None:
        """Make a rubric. Nobody is asked yet, so no API key is needed yet.

        Args:
            funcs: Reward functions (more with `add_reward_func`); there are none without.
            weights: Their weights (1.0 without).
            parser: Reads what is judged out of the completion; by default the text of the last assistant message.
            judge_client: Who is asked: a `Client`, a `ClientConfig`, a client of the OpenAI or Anthropic SDK, or an object that
                has ``chat.completions.create`` like one. By default OpenAI, with the key in ``OPENAI_API_KEY`` (and at
                ``OPENAI_BASE_URL``, where that is set).
            judge_model: Name of the model.
            judge_sampling_args: Generation parameters, as for a model that is evaluated. One that is None is left out.
            judge_prompt: Template of what the judge is told, for `str.format`, with the fields ``{question}``, ``{answer}``
                and ``{response}``. Other braces are written twice.

        Raises:
            ConfigurationError: If the template has another field or single braces, or the client is none of these.
        """
        super().__init__(funcs, weights, parser)
        if judge_sampling_args is not None and not isinstance(judge_sampling_args, Mapping):
            raise ConfigurationError(f"judge_sampling_args must be a dict of generation parameters, got {judge_sampling_args!r}")
        self._take_template(judge_prompt)
        self.judge_client = _DefaultClient() if judge_client is None else judge_client
        self.judge_model = judge_model
        self.judge_sampling_args: SamplingArgs = with_secrets(dict(judge_sampling_args or {}))
        self._client: Client | None = None if judge_client is None else _client_of(judge_client)
        self._asking: weakref.WeakValueDictionary[tuple[int, str], asyncio.Lock] = weakref.WeakValueDictionary()
        self.class_objects |= {
            "judge": self.judge,
            "judge_client": self.judge_client,
            "judge_model": self.judge_model,
            "judge_prompt": self.judge_prompt,
            "judge_sampling_args": self.judge_sampling_args,
        }

    def _take_template(self, template: Any) -> None:
        """Take the template, once it is known that `judge` can fill it."""
        self.judge_prompt = _check_text(template)
        fill_template(template, dict.fromkeys(_FIELDS, ""))

    async def judge(self, prompt: Any, completion: Any, answer: Any, state: MutableMapping[str, Any] | None = None) -> str:
        """Ask the judge about a completion.

        Args:
            prompt: The conversation that was to be answered, or text. The judge is shown the text of its last user message.
            completion: What the model wrote; the judge is shown what the parser reads out of it.
            answer: The right answer.
            state: The episode's state. With it, the same is not asked twice: verdicts are kept in ``state["judge_response"]``,
                a dict with the full text that the judge was given as keys. ``state["judge_model"]`` says who gave them; where a
                second model judges the episode, its name stands before the text in its keys.

        Returns:
            The text of the judge's answer.

        Raises:
            JudgeError: If there is none, whatever the reason (a ``RuntimeError``; a refused API key is one too). A reward
                function that lets it through scores 0.0, and ``state["metrics_errors"]`` says so.
            ConfigurationError: If OpenAI is to be asked, and there is no API key; or the template has other fields or single braces.
        """
        response = self.parser.parse_answer(completion)
        values = (question_of(prompt), answer, "" if response is None else response)
        text = fill_template(self.judge_prompt, dict(zip(_FIELDS, values, strict=True)))
        if state is None:
            return await self._verdict(text, in_force().scored)
        verdicts = state.setdefault("judge_response", {})
        key = text if state.setdefault("judge_model", self.judge_model) == self.judge_model else f"{self.judge_model}: {text}"
        lock = self._asking.setdefault((id(state), key), asyncio.Lock())
        async with lock:  # functions that ask the same at the same time wait for one answer
            if key not in verdicts:
                verdicts[key] = await self._verdict(text, [state], state=state)
        return str(verdicts[key])

    async def _verdict(self, text: str, states: Sequence[Mapping[str, Any]], **kwargs: Any) -> str:
        """Ask, and count what it costs as the episodes' (equal shares of it, where there are several)."""
        if self._client is None:
            self._client = self.judge_client.resolve()
        _count(states, requests=1)
        try:
            response = await self._client.get_response([UserMessage(text)], self.judge_model, dict(self.judge_sampling_args), **kwargs)
        except Exception as error:
            redact_error(error)
            notes = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))  # which API key was refused, for example
            failure = JudgeError(f"the judge {self.judge_model} could not be asked: {type(error).__name__}: {error}{notes}")
            logger.warning("%s", failure)
            raise failure from error
        if response.usage is not None:
            _count(states, input_tokens=response.usage.prompt_tokens, output_tokens=response.usage.completion_tokens)
        verdict = content_text(response.message.content)
        if not verdict:
            why = " within its token limit" if response.is_truncated else ""
            failure = JudgeError(f"the judge {self.judge_model} answered with no text{why}")
            logger.warning("%s", failure)
            raise failure
        return verdict

    @teardown
    async def close_judge_client(self) -> None:
        """Close the connections to the judge, unless the client was given. A later question opens new ones."""
        if self._client is not None and isinstance(self.judge_client, _DefaultClient | EndpointClientConfig):
            await self._client.close()

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what belongs to this process: connections, and who is being asked."""
        return {name: value for name, value in vars(self).items() if name not in ("_client", "_asking")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._client = None if isinstance(self.judge_client, _DefaultClient) else _client_of(self.judge_client)
        self._asking = weakref.WeakValueDictionary()


def _count(states: Sequence[Mapping[str, Any]], **counts: float) -> None:
    for state in states:
        tracker = state.get("usage_tracker")
        if isinstance(tracker, UsageTracker):
            for name, count in counts.items():
                setattr(tracker.judges, name, getattr(tracker.judges, name) + count / len(states))


def question_of(prompt: Any) -> str:
    """Return the question in a prompt: the text of its last user message, else of its last message.

    Args:
        prompt: Text, one message, or a list of messages, as dicts or as objects.

    >>> question_of([{"role": "system", "content": "Be brief."}, {"role": "user", "content": [{"type": "text", "text": "6 * 7?"}]}])
    '6 * 7?'
    """
    if isinstance(prompt, str):
        return prompt
    messages = list(prompt) if isinstance(prompt, Sequence) else [prompt]
    asking = [message for message in messages if _field(message, "role") in _ASKED_FOR]
    return content_text(_field((asking or messages)[-1], "content")) if messages else ""


def _field(message: Any, name: str) -> Any:
    return message.get(name) if isinstance(message, Mapping) else getattr(message, name, None)


def _check_text(template: Any) -> str:
    if not isinstance(template, str):
        raise ConfigurationError(f"judge_prompt must be text, got {type(template).__name__}: {template!r:.120}")
    return template


def fill_template(template: str, values: Mapping[str, Any]) -> str:
    """Return what a judge is told: a template with its fields filled.

    Raises:
        ConfigurationError: If it has another field, or single braces.
    """
    fields = ", ".join(f"{{{name}}}" for name in _FIELDS)
    advice = f"it may have {fields}, and other braces are written twice: {{{{ and }}}}"
    try:
        names = [name for _, name, _, _ in string.Formatter().parse(template) if name is not None]
        unknown = next((name for name in names if name not in _FIELDS), None)
        if unknown is None:
            return template.format(**values)
    except (ValueError, LookupError) as error:
        raise ConfigurationError(f"judge_prompt cannot be formatted ({error}): {advice}") from None
    raise ConfigurationError(f"judge_prompt has the field {{{unknown}}}: {advice}")


class _DefaultClient:
    """Stands for the OpenAI SDK's client, which is made when something of it is used: only then is an API key needed."""

    def __init__(self) -> None:
        self._resolved: Any = None

    def resolve(self) -> Client:
        """Return the client that asks OpenAI.

        Raises:
            ConfigurationError: If there is no API key.
        """
        if self._resolved is None:
            default = PROVIDERS["openai"]
            if not os.environ.get(default.key_var):
                raise ConfigurationError(
                    f"the judge is a model of OpenAI, and there is no API key for it: set {default.key_var}, or give the JudgeRubric"
                    " a judge_client"
                )
            url = os.environ.get("OPENAI_BASE_URL") or default.url
            self._resolved = resolve_client(ClientConfig(provider="openai", api_base_url=url))
        return self._resolved  # type: ignore[no-any-return]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        self.resolve()
        return getattr(self._resolved.client, name)

    def __reduce__(self) -> tuple[type[_DefaultClient], tuple[()]]:
        return type(self), ()


def _client_of(given: Any) -> Client:
    """Return who is asked, for the ``judge_client`` that was given."""
    package, name = type(given).__module__.partition(".")[0], type(given).__name__
    # A synchronous client is asked as it is, on a thread: it may have been given a transport or proxies of its own.
    is_known = isinstance(given, Client | EndpointClientConfig) or (package == "openai" and name.startswith("Async"))
    if not is_known and callable(getattr(getattr(getattr(given, "chat", None), "completions", None), "create", None)):
        return _ChatCompletions(given)
    return resolve_client(given)


class _ChatCompletions(Client):
    """Asks an object that has ``chat.completions.create`` like an OpenAI client, plain or async."""

    def __init__(self, client: Any) -> None:
        learn_secrets_of(client)
        self.client = client
        self._has_told_unusable = False

    async def get_response(
        self,
        prompt: Sequence[Message],
        model: str,
        sampling_args: SamplingArgs | None = None,
        tools: Sequence[Tool] | None = None,
        **kwargs: Any,
    ) -> Response:
        """Ask on a thread, since what is called may wait there."""
        arguments = {name: value for name, value in (sampling_args or {}).items() if value is not None}
        if "max_tokens" in arguments:
            arguments.setdefault("max_completion_tokens", arguments.pop("max_tokens"))
        messages = [{"role": message.role, "content": message.content} for message in prompt]
        completion = await on_thread(functools.partial(self.client.chat.completions.create, model=model, messages=messages, **arguments))
        if is_awaitable(completion):
            completion = await completion
        content = completion.choices[0].message.content
        usage = self._usage_of(getattr(completion, "usage", None), model)
        return Response("", 0, model, usage, AssistantMessage(None if content is None else str(content)))

    def _usage_of(self, reported: Any, model: str) -> Usage | None:
        told = {name: getattr(reported, name, None) for name in ("prompt_tokens", "completion_tokens")}
        return read_usage(told, functools.partial(self._tell_unusable, model))

    def _tell_unusable(self, model: str, field: str, value: Any) -> None:
        if not self._has_told_unusable:
            self._has_told_unusable = True
            warn_of_unusable("the judge's client", model, field, value)
