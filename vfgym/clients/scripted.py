"""Clients that need no model: for tests, benchmarks and classrooms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from vfgym.clients import Client, SamplingArgs
from vfgym.errors import ConfigurationError
from vfgym.messages import AssistantMessage, Message, Response, as_message
from vfgym.tools import Tool


class ScriptedClient(Client):
    """Answers each turn of an episode from a script; one client serves any number of concurrent rollouts."""

    def __init__(self, answers: Iterable[Any]) -> None:
        """Take the script.

        Args:
            answers: Texts, assistant messages or `Response` objects, in the order in which one episode gets them.

        Raises:
            ConfigurationError: If they are one text.
        """
        if isinstance(answers, str):
            raise ConfigurationError(f"the answers of an episode must be a list, with one for each turn, got the text {answers!r:.80}")
        self.answers = list(answers)
        self.calls = 0
        """How often the client was asked."""

    async def get_response(
        self,
        prompt: Sequence[Message],
        model: str,
        sampling_args: SamplingArgs | None = None,
        tools: Sequence[Tool] | None = None,
        **kwargs: Any,
    ) -> Response:
        """Return the answer for this turn of the episode that ``state`` belongs to.

        Raises:
            ConfigurationError: If the script is too short.
        """
        self.calls += 1
        turn = len(kwargs["state"]["trajectory"])
        if turn >= len(self.answers):
            raise ConfigurationError(f"the script has {len(self.answers)} answer(s), and the episode asks for one more")
        answer = self.answers[turn]
        if isinstance(answer, Response):
            return answer
        message = AssistantMessage(answer) if isinstance(answer, str) else as_message(answer)
        return Response(f"scripted-{self.calls}", 0, model, None, message)
