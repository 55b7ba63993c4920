"""Episodes of environments that own their loop: an overridden `rollout()` turned inside out.

The rollout runs as a task with a stand-in client. A model call made with that client parks: its prompt becomes the
observation, and the next action resumes it. Several calls that wait at once are answered in the order they were made. Calls
to anything else (a judge, a tool server) are real calls.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from vfgym.aio.deadlines import DeadlinePassed, ends_at
from vfgym.aio.steps import Steps
from vfgym.clients import Client, SamplingArgs
from vfgym.context import AuthoredRollout, given
from vfgym.episode.definition import Definition
from vfgym.episode.machine import BaseEpisode
from vfgym.episode.stops import complete, model_failure, note_end
from vfgym.errors import EpisodeNotPicklable, Error, ResetNeeded
from vfgym.messages import Message, Response, as_messages
from vfgym.reseeding import SeededNumbers
from vfgym.state import State, make_placeholder_state
from vfgym.tools import Tool, as_tool

logger = logging.getLogger(__name__)

T = TypeVar("T")


async def in_time(rollout: Callable[[], Awaitable[Any]], deadline: float | None, made: Sequence[State]) -> Any:
    """Call an author's rollout, which may take until a deadline, and return what it returns.

    Where it has begun to play the library's own loop, it goes on: that loop has the limit itself, and gives back a state that the
    author may do more with.

    Args:
        rollout: The rollout.
        deadline: A time of `time.monotonic`; None for none.
        made: The states that it has made so far.

    Raises:
        DeadlinePassed: If it took longer; it was cancelled.
    """
    if deadline is None:
        return await rollout()
    loop = asyncio.get_running_loop()

    def end() -> None:
        if not any(state["timing"].generation.start for state in made):  # stamped by the library's loop as it begins
            scope.reschedule(loop.time())

    timer = loop.call_later(deadline - time.monotonic(), end)
    try:
        async with asyncio.timeout(None) as scope:
            with ends_at(deadline):
                return await rollout()
    except TimeoutError:
        if scope.expired():
            raise DeadlinePassed from None
        raise
    finally:
        timer.cancel()


class ParkedCall:
    """A model call that waits for the agent's next action."""

    def __init__(self, prompt: list[Message], tools: list[Tool], answer: asyncio.Future[Response], task: asyncio.Task[Any] | None) -> None:
        """Park a call.

        Args:
            prompt: What is to be answered.
            tools: What may be called.
            answer: Resumes the call.
            task: Who made the call.
        """
        self.prompt = prompt
        self.tools = tools
        self.answer = answer
        self.task = task


class ParkingClient(Client, asks_model=False):
    """The stand-in client of one inverted episode: it parks every call until the agent answers."""

    def __init__(self, episode: InvertedEpisode) -> None:
        """Park the calls of `episode`."""
        self.episode = episode

    async def get_response(
        self,
        prompt: Sequence[Message],
        model: str,
        sampling_args: SamplingArgs | None = None,
        tools: Sequence[Tool] | None = None,
        **kwargs: Any,
    ) -> Response:
        """Wait until the agent answers `prompt`."""
        return await self.episode.park(prompt, tools or (), kwargs.get("state"))


class InvertedEpisode(BaseEpisode):
    """One run of an environment whose author wrote `rollout()`."""

    __slots__ = (
        "_asked",
        "_began",
        "_changed",
        "_emitted_before",
        "_failure",
        "_is_cancelled",
        "_loop",
        "_made",
        "_parked",
        "_seen",
        "_steps",
        "_task",
        "_timeout_seconds",
    )

    def __init__(
        self, definition: Definition, session: Any = None, numbers: SeededNumbers | None = None, timeout_seconds: float | None = None
    ) -> None:
        """Make an episode that has not begun (see `BaseEpisode`), with a time limit (see `in_time`)."""
        super().__init__(definition, session, numbers)
        self._timeout_seconds = timeout_seconds
        self._began = 0.0
        self._parked: deque[ParkedCall] = deque()
        self._asked: ParkedCall | None = None
        """The call whose prompt is the agent's observation."""
        self._is_cancelled = False
        self._changed: asyncio.Event | None = None
        self._task: asyncio.Task[Any] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._failure: Exception | None = None
        self._seen = 0
        """How much of what was emitted is in the steps so far."""
        self._emitted_before = 0
        """How much of it is in those before the last one."""
        self._steps: list[float] = []
        self._made: list[State] = []

    def __reduce_ex__(self, protocol: Any) -> Any:
        if self._task is not None:
            raise EpisodeNotPicklable(
                f"{type(self.definition).__name__} plays its own rollout(), whose running code holds {len(self._parked)} parked model"
                " call(s) and cannot be pickled or copied: reset() or close() it first, or override the hooks of MultiTurnEnv"
                " instead of rollout()"
            )
        return super().__reduce_ex__(protocol)

    def open(self, task: dict[str, Any], client: Any = None, model: str = "", sampling_args: Any = None) -> Steps[None]:
        """Start the rollout, and go on until its first model call or its end."""
        try:
            self.state = self.definition.initial_state(task, None, model, sampling_args)
        except BaseException as error:
            self.state, self.is_over = make_placeholder_state(task, error), True  # there is nothing to clean up
            raise
        self.state["client"] = ParkingClient(self)
        self.state.begin(*self._player)
        self._began = time.time()
        yield from self._to_next_prompt(self._start, task, model, sampling_args)

    def advance(self, response: Response) -> Steps[None]:
        """Resume the parked call with the model's answer, and go on until the next one or the end."""
        yield from self._to_next_prompt(self._answer, response)

    def _to_next_prompt(self, func: Callable[..., Coroutine[Any, Any, None]], *args: Any) -> Steps[None]:
        try:
            yield self._on_loop(func, *args)
            if self._asked is None:
                yield from self.finish()
        except GeneratorExit:
            raise
        except BaseException:
            yield from self.finish()
            raise

    def fail(self, error: BaseException) -> Steps[None]:
        """Raise the error from the parked calls, and from any that follow, until the rollout ends."""
        if self.is_over:
            return
        self._failure = model_failure(error)
        yield from self._to_next_prompt(self._drain)

    def truncate(self) -> Steps[None]:
        """Cancel the rollout, as a limit from outside would."""
        if not self.is_over:
            yield self._on_loop(self._cancel)
            self._begin_step()
            complete(self.state, "truncated")
            yield from super().finish()

    def finish(self) -> Steps[None]:
        """End play: cancel what is parked, and run the cleanup handlers."""
        if not self.is_over:
            try:
                yield self._on_loop(self._cancel)
            finally:
                yield from super().finish()

    def score(self) -> Steps[None]:
        """Score the episode; what the rollout emitted since the last step goes with the last step."""
        emitted = self.state.emitted
        if emitted and len(emitted) == self._emitted_before:
            emitted.append(0.0)  # the last step emitted nothing, and the rewards of those before are out already
        yield from super().score()
        rewards = self.state.rewards
        self._steps[-1:] = [sum(rewards[min(self._emitted_before, len(rewards) - 1) :])]
        total = 0.0
        for reward in self._steps:
            total += reward
        self.state["reward"] = total

    def emission(self) -> float:
        """Return what the last step emits."""
        return self._steps[-1] if self._steps else 0.0

    def conversation(self) -> list[Message]:
        """Return the prompt of the parked call that is to be answered; at the end, prompt and completion."""
        if self._asked is not None:
            return self._asked.prompt.copy()
        types = self.definition.message_types
        prompt, completion = self.state.get("prompt") or [], self.state.get("completion") or []
        return [*as_messages(prompt, types), *as_messages(completion, types)]

    @property
    def tool_defs(self) -> list[Tool]:
        """The tools of the call that is to be answered; at the end, those of the state."""
        return super().tool_defs if self._asked is None else self._asked.tools

    def info(self) -> dict[str, Any]:
        """Return what is told besides the observation, with the tools of the call that is to be answered."""
        return {**super().info(), "tools": [tool.openai for tool in self.tool_defs]}

    @property
    def deadline(self) -> float | None:
        """When play has to end (see `BaseEpisode.deadline`): `timeout_seconds` after it began, or after the library's loop did."""
        deadline = None
        if self._timeout_seconds is not None:
            began: float = max([self._began, *(state["timing"].generation.start for state in self._made)])
            deadline = time.monotonic() + began + self._timeout_seconds - time.time()
        return deadline if self.limit is None else self.limit.earlier_deadline(deadline)

    async def park(self, prompt: Any, tools: Sequence[Any], state: Any) -> Response:
        """Wait for the agent's answer to `prompt`, which may call `tools`."""
        if self._is_cancelled:
            raise asyncio.CancelledError("the episode was cancelled: nobody will answer")
        if self._failure is not None:
            raise self._failure
        if isinstance(state, State):
            self._adopt(state)
        answer: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        messages = as_messages(prompt, self.definition.message_types, name="prompt")
        call = ParkedCall(messages, [as_tool(tool) for tool in tools], answer, asyncio.current_task())
        self._parked.append(call)
        self._notice()
        try:
            return await answer
        finally:
            if call in self._parked:  # its author gave up waiting
                self._parked.remove(call)

    def _notice(self) -> None:
        if self._changed is not None:
            self._changed.set()

    def _adopt(self, state: State) -> None:
        """Take the state that the rollout made as the episode's."""
        if state is not self.state:
            state.take_over(self.state)
            self.state = state

    async def _start(self, task: Mapping[str, Any], model: str, sampling_args: dict[str, Any] | None) -> None:
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()
        rollout = functools.partial(self.definition.rollout, task, self.state["client"], model, sampling_args)
        self._task = self._loop.create_task(self._run_rollout(rollout))
        self._task.add_done_callback(lambda _: self._notice())
        await self._settle()

    async def _run_rollout(self, rollout: Callable[[], Awaitable[Any]]) -> Any:
        """Return what the rollout returns; a `SystemExit`, too, which would go through the loop if this task raised it."""
        try:
            with given(authored=AuthoredRollout(self.definition, self.limit, self._made)):
                return await in_time(rollout, self.deadline, self._made)
        except SystemExit as error:
            return error

    def _begin_step(self) -> None:
        self._steps.append(0.0)
        self._emitted_before = self._seen

    async def _answer(self, response: Response) -> None:
        self._begin_step()
        asked, self._asked = self._asked, None
        if asked is not None and asked in self._parked:  # else its author gave up waiting, and the answer is to nothing that is still asked
            self._parked.remove(asked)
            asked.answer.set_result(response)
        await self._settle()

    async def _settle(self) -> None:
        """Wait until a call is parked or the rollout has ended."""
        task, changed = self._task, self._changed
        while not self._parked and task is not None and changed is not None and not task.done():
            changed.clear()
            await changed.wait()
        if task is not None and task.done():
            await self._collect(task)
        elif self._parked:
            self._asked = self._parked[0]
        if self._steps:
            emitted = self.state.emitted
            self._steps[-1], self._seen = sum(emitted[self._emitted_before :]), len(emitted)

    async def _collect(self, task: asyncio.Task[Any]) -> None:
        """Take the result of the rollout that ended."""
        await self._cancel()
        if self._made:
            self._adopt(self._made[-1])
        failure: Exception | None = None
        try:
            state = task.result()
            if isinstance(state, SystemExit):
                raise state
        except (Error, DeadlinePassed) as error:
            failure = error
        else:
            if not isinstance(state, State):
                raise TypeError(f"{type(self.definition).__name__}.rollout() must return a State, got {type(state).__name__}")
            self._adopt(state)
        note_end(self.state, failure, self.limit)

    async def _drain(self) -> None:
        """Fail every call until the rollout ends."""
        self._begin_step()
        self._asked = None
        changed, failure = self._changed, self._failure
        while self._task is not None and changed is not None and failure is not None and not self._task.done():
            for call in [*self._parked]:
                if not call.answer.done():
                    call.answer.set_exception(failure)
            self._parked.clear()
            changed.clear()
            if not self._task.done():
                await changed.wait()
        await self._settle()

    async def _cancel(self) -> None:
        """Cancel the rollout, and the calls that are still parked; wait until those who made them have ended."""
        self._is_cancelled = True
        self._asked = None
        task, self._task = self._task, None
        ending = {call.task for call in self._parked if call.task is not None and call.task is not asyncio.current_task()}
        for call in self._parked:
            call.answer.cancel()
        self._parked.clear()
        if task is not None:
            if not task.done():
                task.cancel()
            ending.add(task)
        if ending:
            await asyncio.wait(ending)
        for ended in ending:
            if not ended.cancelled() and ended.exception() is not None:
                logger.debug("a task of the rollout raised", exc_info=ended.exception())
        self._loop = self._changed = None

    async def _on_loop(self, func: Callable[..., Coroutine[Any, Any, T]], *args: Any) -> T | None:
        """Call `func` on the loop where the rollout runs, whichever loop or thread the step comes from."""
        if self._loop is None or self._loop is asyncio.get_running_loop():
            return await func(*args)
        if not self._loop.is_running():
            if func == self._cancel:  # its tasks went with their loop
                self._parked.clear()
                self._task = self._asked = None
                return None
            raise ResetNeeded("the event loop on which this episode was reset is not running any more: reset() the environment")
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(func(*args), self._loop))
