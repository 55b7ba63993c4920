"""`CallsFromInside`: what the code of one episode calls outside of its sandbox: the model, with `llm_batch`, and root tools."""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from vfgym.bounded_json import parse_json
from vfgym.envs.recursion.metrics import BATCH, RecursionCounts
from vfgym.envs.recursion.sub_calls import Ask, SubAnswer, SubModel, call_function
from vfgym.episode.definition import Definition
from vfgym.episode.prompt import new_step
from vfgym.errors import Error, OverlongPromptError, ToolCallError, ToolError
from vfgym.messages import Message, Response
from vfgym.state import State, TrajectoryStep
from vfgym.tools import Tool, ToolFunction


class CallsFromInside:
    """What the code of one episode can call, by `names`."""

    def __init__(
        self,
        definition: Definition,
        state: State,
        ask: Ask,
        answer: Callable[[State, Ask, list[Message]], Awaitable[SubAnswer]],
        sub_model: SubModel | None,
        tools: Mapping[str, ToolFunction],
        most_at_once: int,
    ) -> None:
        """Offer tools, and `llm_batch`.

        Args:
            definition: The environment.
            state: The episode.
            ask: Asks its model.
            answer: Answers one prompt, of the conversation that this begins.
            sub_model: What sub-calls are like; None for no `llm_batch`.
            tools: The root tools, by name.
            most_at_once: How many sub-calls may wait for the model at once.
        """
        self._definition, self._state, self._ask, self._answer_call = definition, state, ask, answer
        self._sub_model, self._tools = sub_model, tools
        self._may_ask = asyncio.Semaphore(most_at_once)
        self.counts = RecursionCounts()
        self.sub_steps: list[tuple[int, TrajectoryStep]] = []
        """Turns of sub-calls, each with the number of root turns that were before it."""
        self.failure: Exception | None = None
        """Why a sub-call has no answer, which ends the episode."""
        self.names = [*(() if sub_model is None else (BATCH,)), *tools]

    async def call(self, name: str, arguments: Any) -> Any:
        """Call a function, and return what JSON can say of its result.

        Args:
            name: Its name.
            arguments: ``{"args": [...], "kwargs": {...}}``.

        Raises:
            ToolCallError: If it fails, which the code is told.
        """
        if name not in self.names:
            raise ToolCallError(f"there is no function {name!r} here; there are {', '.join(self.names)}")
        began = time.perf_counter()
        try:
            args, kwargs = list(arguments["args"]), dict(arguments["kwargs"])
            if name not in self._tools:
                return await self.llm_batch(*args, **kwargs)
            result = await call_function(self._tools[name], _arguments_by_name(self._tools[name], args, kwargs))
            return parse_json(json.dumps(result, default=str))
        except Exception as error:
            if isinstance(error, ToolError):
                raise
            raise ToolCallError(str(error) if isinstance(error, Error) else f"{type(error).__name__}: {error}") from error
        finally:
            self.counts.add_root_call(name, time.perf_counter() - began)

    async def llm_batch(self, prompts: Sequence[Any]) -> list[str]:
        """Ask the model, each prompt in a conversation of its own, and return the answers in order.

        Args:
            prompts: Texts, or lists of messages.

        Raises:
            Exception: If the model gives no answer to one, which then ends the episode as a failed turn of the root model would.
        """
        if self._sub_model is None or not isinstance(prompts, list):
            raise TypeError(f"{BATCH} takes a list of prompts, got {type(prompts).__name__}")
        conversations = [self._sub_model.open_conversation(prompt) for prompt in prompts]  # refused as a whole, before any is asked
        batch, root_turns = len(self.counts.batch_sizes), len(self._state["trajectory"])
        self.counts.batch_sizes.append(len(prompts))
        turns: list[list[TrajectoryStep]] = [[] for _ in prompts]
        calls = [asyncio.ensure_future(self._answer(*each)) for each in zip(conversations, turns, strict=True)]
        try:
            return [said.text for said in await asyncio.gather(*calls)]
        except Exception as error:  # a refused key or an unknown model is an error of an SDK's, and ends the run
            self.failure = error
            raise
        finally:
            for call in calls:
                call.cancel()
            for number, steps in enumerate(turns):
                for step in steps:
                    step["extras"] |= {"is_sub_llm_call": True, "batch": batch, "request": number}
                    self.sub_steps.append((root_turns, step))

    async def _answer(self, conversation: list[Message], steps: list[TrajectoryStep]) -> SubAnswer:
        """Answer one prompt, once it is its turn. That a prompt is too long is what its author reads as the answer."""
        async with self._may_ask:
            try:
                said = await self._answer_call(self._state, functools.partial(self._ask_and_record, steps), conversation)
            except OverlongPromptError as error:
                said = SubAnswer(f"Error: the prompt is too long for the model: {error}")
        self.counts.add_sub_answer(said)
        return said

    async def _ask_and_record(
        self, steps: list[TrajectoryStep], messages: list[Message], tools: list[Tool], client: Any = None, model: str | None = None
    ) -> Response:
        response = await self._ask(messages, tools, client, model)
        self.counts.add_sub_response(response)
        steps.append(new_step(self._definition, self._state, messages, response))
        return response


def _arguments_by_name(function: ToolFunction, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call as the function takes them, checked."""
    signature = inspect.signature(function.func)
    arguments = dict(signature.bind(*args, **kwargs).arguments)
    for name, parameter in signature.parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            arguments |= arguments.pop(name, {})
    return function.bind(arguments)
