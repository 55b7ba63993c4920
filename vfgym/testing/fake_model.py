"""`FakeModel`: a client whose answers a test decides, and that remembers what it was asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from vfgym.calls import is_awaitable
from vfgym.clients import Client, SamplingArgs
from vfgym.errors import ConfigurationError
from vfgym.messages import AssistantMessage, Message, Response, ToolCall, as_message, content_text
from vfgym.tools import Tool


@dataclass(frozen=True)
class FakeModelRequest:
    """What a fake model was asked."""

    prompt: list[Message]
    """The conversation that is to be answered."""
    model: str
    """Name of the model."""
    sampling_args: SamplingArgs
    """Generation parameters."""
    tools: list[Tool]
    """Tools that the model may call."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """What else was said: ``state`` is that of the episode that is played."""

    @property
    def text(self) -> str:
        """The text of the last message."""
        return content_text(self.prompt[-1]["content"]) if self.prompt else ""


FakeAnswer: TypeAlias = "str | Mapping[str, Any] | Response | ToolCall | BaseException"
"""What a fake model answers: text, a message, a tool call, a whole response; or an exception, which it raises."""

AnswerRule: TypeAlias = Callable[[FakeModelRequest], Any]
"""A function, plain or async, from a request to an answer."""


class FakeModel(Client):
    """A client that answers by a rule, or in the order in which it is asked; for agents, rollouts and judges.

    >>> import vfgym
    >>> judge = FakeModel(lambda request: "yes" if "42" in request.text else "no")
    >>> async def correct(judge, prompt, completion, answer, state) -> float:
    ...     return float(await judge(prompt, completion, answer, state) == "yes")
    >>> rubric = vfgym.JudgeRubric(correct, judge_client=judge)
    >>> env = vfgym.SingleTurnEnv(dataset=[{"question": "6 * 7?", "answer": "forty-two"}], rubric=rubric)
    >>> _ = env.reset(seed=0)
    >>> env.step("42").reward, len(judge.requests), "forty-two" in judge.requests[0].text
    (1.0, 1, True)

    `ScriptedClient` answers by the turn of an episode instead, and `ModelServer` over HTTP, where `Faults` are those of a network.
    """

    def __init__(self, answers: AnswerRule | Iterable[FakeAnswer]) -> None:
        """Decide what it answers.

        Args:
            answers: A function of the request; or answers in the order of the requests. An exception is raised instead of given: a
                `vfgym.errors.ModelError` is a model that cannot be reached.

        Raises:
            ConfigurationError: If they are one text.
        """
        if isinstance(answers, str):
            raise ConfigurationError(f"the answers must be a list or a function, got the text {answers!r:.80}")
        self._rule: AnswerRule | None = answers if callable(answers) else None
        self._answers: list[FakeAnswer] = [] if callable(answers) else list(answers)
        self.requests: list[FakeModelRequest] = []
        """What it was asked, in order."""

    async def get_response(
        self,
        prompt: Sequence[Message],
        model: str,
        sampling_args: SamplingArgs | None = None,
        tools: Sequence[Tool] | None = None,
        **kwargs: Any,
    ) -> Response:
        """Return the answer to a request.

        Raises:
            ConfigurationError: If it was asked more often than there are answers.
            BaseException: What stands in the place of an answer.
        """
        request = FakeModelRequest(list(prompt), model, dict(sampling_args or {}), list(tools or ()), kwargs)
        self.requests.append(request)
        if self._rule is not None:
            answer = self._rule(request)
            answer = await answer if is_awaitable(answer) else answer
        elif len(self.requests) > len(self._answers):
            raise ConfigurationError(f"the fake model has {len(self._answers)} answer(s), and is asked for one more")
        else:
            answer = self._answers[len(self.requests) - 1]
        if isinstance(answer, BaseException):
            raise answer
        if isinstance(answer, Response):
            return answer
        return Response(f"fake-{len(self.requests)}", 0, model, None, _as_answer(answer))


def _as_answer(answer: Any) -> Any:
    if isinstance(answer, ToolCall):
        return AssistantMessage(None, tool_calls=[answer])
    return AssistantMessage(answer) if isinstance(answer, str) else as_message(answer)
