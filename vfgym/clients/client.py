"""The one thing that the library asks of a model client."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from vfgym.clients.asking import accounted
from vfgym.messages import Message, Response
from vfgym.tools import Tool

SamplingArgs: TypeAlias = dict[str, Any]
"""Generation parameters as the provider names them (``temperature``, ``max_tokens``, ...)."""


_ONE_MEANING = (
    frozenset({"max_tokens", "max_completion_tokens", "max_output_tokens"}),
    frozenset({"reasoning_effort", "reasoning", "thinking"}),
    frozenset({"stop", "stop_sequences"}),
)
"""Generation parameters that say one thing under several names."""


def merge_sampling_args(asked: Mapping[str, Any], allowed: Mapping[str, Any]) -> SamplingArgs:
    """Return the generation parameters of a request that somebody else wrote, within what its rollout allows.

    Args:
        asked: What the request asks for.
        allowed: What the rollout says. It wins, under whatever name the request says the same.

    >>> merge_sampling_args({"max_completion_tokens": 10**6, "temperature": 0}, {"max_tokens": 500})
    {'temperature': 0, 'max_tokens': 500}
    """
    extra_body = allowed.get("extra_body")
    said = {name for name, value in allowed.items() if value is not None} | set(extra_body if isinstance(extra_body, Mapping) else ())
    taken = said.union(*(names for names in _ONE_MEANING if names & said))
    return {**{name: value for name, value in asked.items() if name not in taken}, **allowed}


class Client(ABC):
    """Something that answers a conversation with one assistant message.

    What a subclass is asked for counts against the limits of the run or block that it is asked in (see `vfgym.clients.asking`).
    """

    def __init_subclass__(cls, *, asks_model: bool = True, **kwargs: Any) -> None:
        """Let what is asked count.

        Args:
            asks_model: Whether `get_response` asks a model; False for one that hands the question to somebody who will.
            **kwargs: Those of other base classes.
        """
        super().__init_subclass__(**kwargs)
        own = cls.__dict__.get("get_response")
        if own is not None and asks_model:
            cls.get_response = accounted(own)  # type: ignore[method-assign]

    @property
    def answered_by(self) -> str:
        """Who answers, as the keys of a cache name it: what one server said is no answer of another's.

        By default the class, and the clients that it holds.
        """
        inner = [each.answered_by for each in getattr(self, "__dict__", {}).values() if isinstance(each, Client)]
        return " ".join([f"{type(self).__module__}.{type(self).__qualname__}", *inner])

    @abstractmethod
    async def get_response(
        self,
        prompt: Sequence[Message],
        model: str,
        sampling_args: SamplingArgs | None = None,
        tools: Sequence[Tool] | None = None,
        **kwargs: Any,
    ) -> Response:
        """Ask for the next message of a conversation.

        Args:
            prompt: The whole conversation that is to be answered.
            model: Name of the model.
            sampling_args: Generation parameters.
            tools: Tools that the model may call.
            **kwargs: What a client may want to know besides; ``state`` is the episode's.

        Raises:
            vfgym.errors.OverlongPromptError: If the prompt does not fit into the model's context.
            vfgym.errors.ModelError: If there is no usable answer.
            vfgym.errors.LimitReached: If a limit that holds here is used up (see `vfgym.limit`): nobody is asked.
        """

    async def prompt_ids(
        self, prompt: Sequence[Message], model: str, tools: Sequence[Tool] | None = None, *, state: Any = None
    ) -> list[int] | None:
        """Return the token ids with which this client would ask for the next message of a conversation, without asking.

        Args:
            prompt: The whole conversation that would be answered.
            model: Name of the model.
            tools: Tools that the model may call.
            state: The episode's state: the ids of its turns are extended where the conversation goes on from them.

        Returns:
            The ids. None where somebody else makes them: clients that send messages know none.
        """
        return None

    async def close(self) -> None:  # noqa: B027 (a client that holds nothing has nothing to close)
        """Release connections. A second call does nothing."""
