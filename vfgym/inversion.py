"""Episodes of environments that own their loop: an overridden `rollout()` turned inside out.

The rollout runs as a task with a stand-in client. A model call made with that client parks: its prompt becomes the
observation, and the next action resumes it. Several calls that wait at once are answered in the order they were made. Calls
to anything else (a judge, a tool server) are real calls.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from vfgym.calls import is_awaitable
from vfgym.clients import Client, SamplingArgs
from vfgym.concurrency import Steps
from vfgym.episode import BaseEpisode, complete, note_error
from vfgym.errors import EpisodeNotPicklable, Error, ModelError
from vfgym.messages import Message, as_messages
from vfgym.responses import Response
from vfgym.state import State
from vfgym.tools import Tool

if TYPE_CHECKING:
    from vfgym.envs.chat import ChatEnv

logger = logging.getLogger(__name__)

T = TypeVar("T")


class ParkedCall:
    """A model call that waits for the agent's next action."""

    def __init__(self, prompt: list[Message], answer: asyncio.Future[Response]) -> None:
        """Park a call with this prompt; `answer` resumes it."""
        self.prompt = prompt
        self.answer = answer


class ParkingClient(Client):
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
        return await self.episode.park(prompt, kwargs.get("state"))


class InvertedEpisode(BaseEpisode):
    """One run of an environment whose author wrote `rollout()`."""

    __slots__ = ("_changed", "_failure", "_loop", "_parked", "_seen", "_steps", "_task")

    def __init__(self, definition: ChatEnv) -> None:
        """Make an episode of `definition` that has not begun."""
        super().__init__(definition)
        self._parked: deque[ParkedCall] = deque()
        self._task: asyncio.Task[Any] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._failure: Error | None = None
        self._seen = 0
        self._steps: list[float] = []

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise EpisodeNotPicklable(
            f"{type(self.definition).__name__} plays its own rollout(), whose running code holds {len(self._parked)} parked model"
            " call(s) and cannot be pickled or copied: reset() or close() it first, or override the hooks of MultiTurnEnv"
            " instead of rollout()"
        )

    def open(
        self,
        task: Mapping[str, Any],
        client: Any,
        model: str,
        sampling_args: dict[str, Any] | None = None,
        *,
        session: Any = None,
        rng: Any = None,
    ) -> Steps[list[Message] | None]:
        """Start the rollout and return the prompt of its first model call; None if it made none."""
        initial = self.definition.init_state(task, ParkingClient(self), model, sampling_args)
        if is_awaitable(initial):
            initial = yield initial
        self.state = initial
        self.state._rng = rng
        return (yield from self._next_prompt(self._start, task, model, sampling_args))

    def advance(self, response: Response) -> Steps[list[Message] | None]:
        """Resume the parked call with the model's answer and return the next prompt; None if the rollout ended."""
        return (yield from self._next_prompt(self._answer, response))

    def _next_prompt(self, func: Callable[..., Coroutine[Any, Any, None]], *args: Any) -> Steps[list[Message] | None]:
        try:
            yield self._on_loop(func, *args)
            if not self._parked:
                yield from self.finish()
        except GeneratorExit:
            raise
        except BaseException:
            yield from self.finish()
            raise
        return self._parked[0].prompt if self._parked else None

    def fail(self, error: BaseException) -> Steps[None]:
        """Raise the error from the parked calls, and from any that follow, until the rollout ends."""
        if not isinstance(error, Error):
            cause, error = error, ModelError(f"the model failed: {error!r}")
            error.__cause__ = cause
        self._failure = error
        yield from self._next_prompt(self._drain)

    def truncate(self) -> Steps[None]:
        """Cancel the rollout, as a limit from outside would."""
        if not self.is_over:
            yield self._on_loop(self._cancel)
            self._steps.append(0.0)
            complete(self.state, "truncated")
            yield from super().finish()

    def finish(self) -> Steps[None]:
        """End play: cancel what is parked, and run the cleanup handlers."""
        if not self.is_over:
            yield self._on_loop(self._cancel)
            yield from super().finish()

    def score(self) -> Steps[None]:
        """Score the episode; what the rollout emitted since the last step goes with the last step."""
        yield from super().score()
        self._steps[-1:] = [self.state.rewards[-1] + sum(self.state.rewards[self._seen : -1])]
        total = 0.0
        for reward in self._steps:
            total += reward
        self.state["reward"] = total

    def emission(self) -> float:
        """Return what the last step emits."""
        return self._steps[-1] if self._steps else 0.0

    def conversation(self) -> list[Message]:
        """Return the prompt of the parked call that is to be answered; at the end, prompt and completion."""
        if self._parked:
            return self._parked[0].prompt.copy()
        types = self.definition.message_types
        prompt, completion = self.state.get("prompt") or [], self.state.get("completion") or []
        return [*as_messages(prompt, types), *as_messages(completion, types)]

    async def park(self, prompt: Any, state: Any) -> Response:
        """Wait for the agent's answer to `prompt`."""
        if self._failure is not None:
            raise self._failure
        if isinstance(state, State):
            self._adopt(state)
        loop = asyncio.get_running_loop()
        call = ParkedCall(as_messages(prompt, self.definition.message_types, name="prompt"), loop.create_future())
        self._parked.append(call)
        self._changed.set()
        return await call.answer

    def _adopt(self, state: State) -> None:
        """Take the state that the rollout made as the episode's."""
        if state is not self.state:
            state._rng = self.state._rng
            self.state = state

    async def _start(self, task: Mapping[str, Any], model: str, sampling_args: dict[str, Any] | None) -> None:
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()
        rollout = self.definition.rollout(task, self.state["client"], model, sampling_args)
        self._task = asyncio.ensure_future(rollout)
        self._task.add_done_callback(lambda _: self._changed.set())
        await self._settle()

    async def _answer(self, response: Response) -> None:
        self._steps.append(0.0)
        self._parked.popleft().answer.set_result(response)
        await self._settle()

    async def _settle(self) -> None:
        """Wait until a call is parked or the rollout has ended."""
        task = self._task
        while not self._parked and task is not None and not task.done():
            self._changed.clear()
            await self._changed.wait()
        if task is not None and task.done():
            self._collect(task)
        if self._steps and not self.is_over:
            emitted = self.state.emitted
            self._steps[-1], self._seen = sum(emitted[self._seen :]), len(emitted)

    def _collect(self, task: asyncio.Task[Any]) -> None:
        """Take the result of the rollout that ended."""
        self._parked.clear()
        try:
            state = task.result()
        except Error as error:
            note_error(self.state, error)
        else:
            if not isinstance(state, State):
                raise TypeError(f"{type(self.definition).__name__}.rollout() must return a State, got {type(state).__name__}")
            self._adopt(state)
        if not self.state["is_completed"]:
            complete(self.state, "has_error" if self.state["error"] is not None else "rollout_completed")

    async def _drain(self) -> None:
        failure = self._failure
        self._steps.append(0.0)
        while self._task is not None and not self._task.done():
            while self._parked and failure is not None:
                self._parked.popleft().answer.set_exception(failure)
            self._changed.clear()
            if not self._task.done():
                await self._changed.wait()
        await self._settle()

    async def _cancel(self) -> None:
        self._parked.clear()
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task])
        if self._task is not None and not self._task.cancelled() and self._task.exception() is not None:
            logger.debug("the rollout raised", exc_info=self._task.exception())

    async def _on_loop(self, func: Callable[..., Coroutine[Any, Any, T]], *args: Any) -> T:
        """Call `func` on the loop where the rollout runs, whichever loop or thread the step comes from."""
        if self._loop is None or self._loop is asyncio.get_running_loop():
            return await func(*args)
        if not self._loop.is_running():
            raise RuntimeError("the event loop on which this episode was reset is not running any more: reset() the environment")
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(func(*args), self._loop))
