"""The episode machine: one run of an environment, played turn by turn and then scored.

An episode alternates: the environment shows a conversation, the model answers with one assistant message. `step()` pulls that
alternation from outside and a rollout pushes it from inside; both drive this one machine. Its methods are `Steps`, so plain
hooks run in place and only what is really awaited costs anything. All that an episode knows is data (no generator stays
suspended between turns), so it can be copied and pickled in the middle.

The order inside a turn: record the answer (a game makes its move), call the step functions, check the stop conditions, and
only if none holds let the environment respond.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from vfgym.aio.background import running_loop
from vfgym.aio.deadlines import Before, DeadlinePassed
from vfgym.aio.steps import Steps, run_handlers
from vfgym.calls import is_awaitable
from vfgym.episode_scoring import score_alone
from vfgym.errors import Error, ModelError, OverlongPromptError
from vfgym.hooks import check_stops, complete
from vfgym.messages import Message, Response, as_messages
from vfgym.messages.responses import for_conversation
from vfgym.rubrics.scoring import number_from, value_of_turn, zero
from vfgym.state import MessagesView, State, TrajectoryStep, step_tokens, unbegun, view_of

if TYPE_CHECKING:
    from vfgym.envs.chat import ChatEnv
    from vfgym.envs.multi_turn import MultiTurnEnv


class Outcome(NamedTuple):
    """What `gymnasium.Env.step` returns."""

    observation: list[Message]
    reward: float
    terminated: bool
    truncated: bool
    info: dict[str, Any]


_made: Callable[..., Any] = tuple.__new__
"""Makes a named tuple of a tuple; its constructor takes twice as long."""

made_states: ContextVar[tuple[ChatEnv, list[State]] | None] = ContextVar("made_states", default=None)
"""The environment whose `rollout` is running, and the states that it has made: one that raises takes its state with it.

Other environments, of which that rollout may play episodes too, keep theirs to themselves.
"""


def note_error(state: State, error: Error) -> None:
    """Record an error that ends the episode. An overlong prompt is a truncation and no error."""
    if isinstance(error, OverlongPromptError):
        state["prompt_too_long"] = True
        state["is_truncated"] = True
    else:
        state["error"] = error


def model_failure(error: BaseException) -> Error | DeadlinePassed:
    """Return why whoever answers could not, as what ends an episode: a time that passed, or an `Error`."""
    if isinstance(error, Error):
        return error
    if isinstance(error, TimeoutError):
        return DeadlinePassed(*error.args)
    failure = ModelError(f"the model failed: {error!r}")
    failure.__cause__ = error
    return failure


def error_stop(state: State) -> str:
    """Return the stop condition that stands for the error that was noted last."""
    return "has_error" if state["error"] is not None else "prompt_too_long"


def new_step(definition: ChatEnv, state: State, prompt: Sequence[Message], response: Response) -> TrajectoryStep:
    """Return the turn that an answer to `prompt` makes. It is not recorded yet."""
    message: Any = response.message
    tokens, is_truncated, is_cut_off = None, False, False
    if type(message) is not definition.message_types["assistant"]:  # what else a client says of its answer stays here
        if response.tokens is not None:
            tokens = step_tokens(response.tokens, definition.max_seq_len)
        is_cut_off = response.is_truncated
        is_truncated = is_cut_off or (tokens is not None and tokens["is_truncated"])
        message = for_conversation(message, definition.message_types)
    state.is_cut_off = is_cut_off
    return {
        "prompt": prompt,
        "completion": [message],
        "response": response,
        "tokens": tokens,
        "reward": None,
        "advantage": None,
        "is_truncated": is_truncated,
        "trajectory_id": state["trajectory_id"],
        "extras": {},
    }


class BaseEpisode:
    """What every episode does: clean up once, be scored once, and tell its outcome."""

    __slots__ = (
        "_example_id",
        "_metrics",
        "_player",
        "_shown",
        "_tools",
        "definition",
        "is_broken",
        "is_busy",
        "is_over",
        "is_scored",
        "state",
    )

    def __init__(self, definition: ChatEnv, session: Any = None, rng: np.random.Generator | None = None) -> None:
        """Make an episode that has not begun.

        Args:
            definition: The environment that is played.
            session: What the environment keeps for this player between episodes.
            rng: The player's random numbers; fresh ones without it.
        """
        self.definition = definition
        self._player = (session, rng)
        self.state: State = State()
        self.is_over = False
        """Whether it was played to its end, and the cleanup handlers ran."""
        self.is_broken = False
        """Whether an exception left it where it cannot go on."""
        self.is_scored = False
        self.is_busy = False
        """Whether a step of it is running."""
        self._shown = 0.0
        self._metrics: dict[str, float] | None = None
        self._example_id: Any = None
        self._tools: tuple[Any, list[Any]] | None = None

    def open(self, task: dict[str, Any], client: Any = None, model: str = "", sampling_args: Any = None) -> Steps[None]:
        """Begin. Afterwards the episode is over, or `conversation` is the first prompt."""
        raise NotImplementedError

    def advance(self, response: Response) -> Steps[None]:
        """Play one turn with the model's answer. Afterwards the episode is over, or `conversation` is the next prompt."""
        raise NotImplementedError

    def answer(self, response: Response) -> Steps[None]:
        """Play one turn, and mark the episode as broken if that raises."""
        self.is_busy = True
        try:
            yield from self.advance(response)
        except BaseException:
            self.is_broken = True
            raise
        finally:
            self.is_busy = False

    def fail(self, error: BaseException) -> Steps[None]:
        """End the episode because the model could not answer."""
        raise NotImplementedError

    def truncate(self) -> Steps[None]:
        """End the episode from outside, as a limit would."""
        raise NotImplementedError

    @property
    def deadline(self) -> float | None:
        """When play has to end, as a time of `time.monotonic`: whoever answers is not waited for any longer. None for never."""
        return None

    def conversation(self) -> list[Message]:
        """Return the whole conversation that the model must answer, or that was had."""
        raise NotImplementedError

    def finish(self) -> Steps[None]:
        """End play: run every cleanup handler, then the `@update` ones, once.

        One that fails is recorded and does not keep the others from running; nor does a cancellation, which is raised
        when all have run. Rewards follow from what updates write: so where nothing failed before, an `Error` of an update is
        the episode's, and anything else that one raises is raised.
        """
        if self.is_over:
            return
        self.is_over = True
        state = self.state
        if state.is_cleaned_up:  # by the play loop that an overridden rollout() called
            return
        state.is_cleaned_up = True
        hooks = self.definition.hooks
        errors: dict[str, Exception] = {}
        try:
            yield from run_handlers((*hooks.cleanups, *hooks.updates), state, errors=errors)
        finally:
            if errors:
                dict.setdefault(state, "cleanup_errors", {}).update({name: repr(error) for name, error in errors.items()})
        failure = next((errors[name] for name, _ in hooks.updates if name in errors), None)
        if failure is not None and state["is_completed"] and state["error"] is None:
            if not isinstance(failure, Error):
                raise failure
            note_error(state, failure)
            complete(state, error_stop(state))

    def score(self) -> Steps[None]:
        """Score the episode that was played, once."""
        if not self.is_scored:
            self.is_scored = True
            yield from score_alone(self.definition, self.state)

    def emission(self) -> float:
        """Return what the last step emits."""
        if self.is_scored:
            return self.state.rewards[-1]
        return self.state.emitted[-1] if self.state.emitted else 0.0

    def outcome(self) -> Outcome:
        """Return the five-tuple of the last step."""
        flags = self.definition.end_flags(self.state) if self.is_over else (False, False)
        return Outcome(self.conversation(), self.emission(), *flags, self.info())

    def info(self) -> dict[str, Any]:
        """Return what is told besides the observation; the answer is never in it."""
        state, metrics = self.state, self._metrics
        if metrics is None:
            self._metrics = metrics = dict.fromkeys(self.definition.rubric.metric_names, 0.0)
            self._example_id = state["input"].get("example_id", -1)
        info = {
            "example_id": self._example_id,
            "tools": self._tool_params() if state["tool_defs"] else [],
            "metrics": {**metrics, **state["metrics"]} if self.is_scored else metrics.copy(),
            "stop_condition": state["stop_condition"] if self.is_over else None,
        }
        if state.may_end and state["error"] is not None:
            info["error"] = repr(state["error"])
        extra = self.definition.step_info(state)
        if extra:
            info |= extra
        return info

    def _tool_params(self) -> list[Any]:
        tools = self.state["tool_defs"]
        if self._tools is None or self._tools[0] is not tools or len(self._tools[1]) != len(tools):
            self._tools = (tools, [tool.openai for tool in tools])
        return self._tools[1].copy()


class Episode(BaseEpisode):
    """One run of a `MultiTurnEnv`."""

    __slots__ = ("_deadline", "_log", "_overridden", "_rebuilds", "_step_scorers", "_timing")
    definition: MultiTurnEnv

    def __init__(self, definition: MultiTurnEnv, session: Any = None, rng: np.random.Generator | None = None) -> None:
        """Make an episode that has not begun (see `BaseEpisode`)."""
        super().__init__(definition, session, rng)
        self._log: list[Message] = []
        self._deadline: float | None = None
        self._overridden = definition.hooks.overridden
        self._rebuilds = self._overridden["get_prompt_messages"] or self._overridden["add_trajectory_step"]
        self._step_scorers = definition.rubric.step_scorers() if definition.score_rollouts else []

    def __getstate__(self) -> dict[str, Any]:
        slots: dict[str, Any] = super().__getstate__()[1]  # type: ignore[index]
        if self._deadline is not None:  # of this machine's clock: a copy, wherever it goes on, has the time that is left
            slots["_deadline"] -= time.monotonic()
        return slots

    def __setstate__(self, slots: dict[str, Any]) -> None:
        for name, value in slots.items():
            setattr(self, name, value)
        if self._deadline is not None:
            self._deadline += time.monotonic()

    def open(self, task: dict[str, Any], client: Any = None, model: str = "", sampling_args: Any = None) -> Steps[None]:
        """Begin: make the state, set it up, and ask for the first prompt.

        An `Error` in `setup_state` is recorded and ends the episode; anything else is raised, after cleanup.
        """
        definition = self.definition
        try:
            if self._overridden["init_state"]:
                state: State = yield definition.init_state(task, client, model, sampling_args)
            else:
                state = definition.initial_state(task, client, model, sampling_args)
            state.begin(*self._player)
        except BaseException as error:
            self.state, self.is_over = unbegun(task, error), True  # there is nothing to clean up
            raise
        self.state = state
        state.step_metrics = {function.name: 0.0 for function, _ in self._step_scorers}
        timing = state["timing"]
        timing.generation.start = timing.setup.start = time.time()
        if definition.timeout_seconds is not None:
            self._deadline = time.monotonic() + definition.timeout_seconds
        try:
            try:
                for _, setup in definition.hooks.setups:
                    result = setup(state)
                    if is_awaitable(result):
                        yield self._bounded(result)
                result = definition.setup_state(state)
                if is_awaitable(result):
                    result = yield self._bounded(result)
                if isinstance(result, State) and result is not state:
                    result.take_over(state)
                    result.step_metrics = state.step_metrics
                    self.state = result
            except Error as error:
                note_error(state, error)
            finally:
                timing.setup.end = time.time()
        except DeadlinePassed:
            yield from self._time_out()
            return
        except GeneratorExit:
            raise
        except BaseException:
            yield from self.finish()
            raise
        self._timing = self.state["timing"]
        yield from self._turn(None)

    def answer(self, response: Response) -> Steps[None]:
        """Play one turn with an answer that somebody else asked for: count its tokens, then `advance`."""
        if response.usage is not None:
            self.definition.increment_state_usage_from_response(self.state, response)
        return self._turn(response)

    def advance(self, response: Response) -> Steps[None]:
        """Play one turn with the model's answer. Afterwards the episode is over, or `conversation` is the next prompt."""
        return self._turn(response)

    def fail(self, error: BaseException) -> Steps[None]:
        """End the episode because the model could not answer: an overlong prompt, a timeout, or any other error."""
        if self.is_over:
            return
        self.state.emitted.append(0.0)
        failure = model_failure(error)
        if isinstance(failure, DeadlinePassed):
            yield from self._time_out()
            return
        note_error(self.state, failure)
        if not (yield from self._is_completed()):
            complete(self.state, error_stop(self.state))
        yield from self.finish()

    def truncate(self) -> Steps[None]:
        """End the episode from outside, as a limit would."""
        if not self.is_over:
            self.state.emitted.append(0.0)  # what the score adds is emitted here: the last step's reward is out already
            complete(self.state, "truncated")
            yield from self.finish()

    @property
    def deadline(self) -> float | None:
        """When play has to end (see `BaseEpisode.deadline`): `timeout_seconds` after it began."""
        return self._deadline

    def conversation(self) -> list[Message]:
        """Return the whole conversation: the prompt to answer, and at the end prompt and completion."""
        if not self.is_over:
            return self._log.copy()
        types = self.definition.message_types
        messages = as_messages(self.state["prompt"], types)
        messages += as_messages(self.state["completion"] or [], types)
        return messages

    def outcome(self) -> Outcome:
        """Return the five-tuple of the last step."""
        if self.is_over:
            return super().outcome()
        emitted = self.state.emitted
        return _made(Outcome, (self._log.copy(), emitted[-1] if emitted else 0.0, False, False, self.info()))  # type: ignore[no-any-return]

    def _bounded(self, awaitable: Awaitable[Any]) -> Awaitable[Any]:
        return awaitable if self._deadline is None else Before(self._deadline, awaitable)

    def _time_out(self) -> Steps[None]:
        self.state["timed_out"] = True
        complete(self.state, "timeout_reached")
        yield from self.finish()

    def _turn(self, response: Response | None) -> Steps[None]:
        """Play from an answer (None: from the beginning) to the next prompt, or to the end."""
        # A turn is one generator, since each further one would cost as much as all of its plain hooks.
        definition, state, overridden = self.definition, self.state, self._overridden
        must_stop, answered, is_emitted, state.reply = "", 0.0, response is None, None
        self.is_busy = True
        try:
            try:
                if response is not None:
                    if self._deadline is not None and time.monotonic() >= self._deadline:
                        yield from self._time_out()
                        return
                    try:
                        log, answered = self._log, time.time()
                        times = self._timing.model.times
                        times.append(self._shown)
                        times.append(answered)
                        step = new_step(definition, state, view_of(log), response)
                        log.append(step["completion"][0])
                        if overridden["add_trajectory_step"]:
                            result = definition.add_trajectory_step(state, step)
                            if is_awaitable(result):
                                yield self._bounded(result)
                        else:
                            state["trajectory"].append(step)
                        if overridden["apply_action"]:
                            result = definition.apply_action(step["completion"][0], state)
                            if result is not None and is_awaitable(result):
                                yield self._bounded(result)
                        if self._step_scorers:
                            reward, sums = 0.0, state.step_metrics
                            for function, class_objects in self._step_scorers:
                                if function.only == "step" and (function.is_foreseen or running_loop() is None):  # what most games have
                                    try:
                                        value = function.plan.func(step)
                                    except Exception as error:
                                        value = zero(function, error, state)
                                else:
                                    value = value_of_turn(function, class_objects, state, step)
                                if value.__class__ is not float:
                                    value = yield from number_from(function, value, state)
                                sums[function.name] += value
                                if function.weight:
                                    reward += function.weight * value
                            state.emitted.append(reward)
                            is_emitted = True
                    except Error as error:
                        note_error(state, error)
                while True:
                    if must_stop or overridden["is_completed"] or definition.may_stop(state):
                        is_completed = yield from self._is_completed()
                        if is_completed or must_stop:
                            if not state["is_completed"]:  # the author's own is_completed() said so, or an error that it does not look at
                                complete(state, must_stop or None)
                            yield from self.finish()
                            return
                    try:
                        shown = state.reply
                        if shown is None or self._rebuilds:
                            shown = self._ask()
                            if is_awaitable(shown):
                                shown = yield self._bounded(shown)
                        if overridden["get_prompt_messages"]:
                            self._rewrite(shown)
                        elif (response is not None and not self._rebuilds) or state["trajectory"]:
                            types = definition.message_types
                            if shown.__class__ is list and len(shown) == 1 and type(shown[0]) in types.taken:
                                self._log.append(shown[0])  # as nearly always
                            else:
                                self._log += as_messages(shown, types, name="env_response")
                        else:
                            self._log = as_messages(shown, definition.message_types, name="prompt")
                    except Error as error:
                        note_error(state, error)
                        must_stop = error_stop(state)
                        continue
                    self._shown = time.time()
                    if response is not None:
                        times = self._timing.env.times
                        times.append(answered)
                        times.append(self._shown)
                    if not state.may_end or state["final_env_response"] is None:
                        return
                    must_stop = "has_final_env_response"
            except DeadlinePassed:
                yield from self._time_out()
                return
            finally:
                if not is_emitted:
                    state.emitted.append(0.0)
        except GeneratorExit:
            self.is_broken = True
            raise
        except BaseException:
            self.is_broken = True
            yield from self.finish()
            raise
        finally:
            self.is_busy = False

    def _is_completed(self) -> Steps[bool]:
        """Check the stop conditions; an `Error` that one raises ends the episode."""
        bounded = None if self._deadline is None else self._bounded
        try:
            if not self._overridden["is_completed"]:
                return (yield from check_stops(self.definition.hooks.stops, self.state, bounded))
            completed: Any = self.definition.is_completed(self.state)
            if is_awaitable(completed):
                completed = yield self._bounded(completed)
            return bool(completed)
        except Error as error:
            note_error(self.state, error)
            complete(self.state, error_stop(self.state))
            return True

    def _ask(self) -> Any:
        """Call the hook that says what the model is shown next; the result may have to be awaited."""
        state = self.state
        if self._overridden["get_prompt_messages"]:
            return self.definition.get_prompt_messages(state)
        if not state["trajectory"]:
            return state["prompt"]
        last, log = state["trajectory"][-1], self._log
        prompt = last["prompt"]
        if prompt.__class__ is not MessagesView or prompt._messages is not log or last["completion"][0] is not log[-1]:
            # The author recorded another turn than the one that was played: go on from what is recorded.
            self._log = log = [*prompt, *last["completion"]]
        return self.definition.env_response(log.copy(), state)

    def _rewrite(self, shown: Any) -> None:
        """Take the conversation that the author's own `get_prompt_messages` returned."""
        log, types = self._log, self.definition.message_types
        known = len(log)
        if known and isinstance(shown, list) and shown[:known] == log:
            log.extend(as_messages(shown[known:], types, name="get_prompt_messages"))
        else:  # history was rewritten
            self._log = as_messages(shown, types, name="get_prompt_messages")


def play(episode: Episode, task: dict[str, Any], client: Any, model: str, sampling_args: dict[str, Any] | None) -> Steps[State]:
    """Play a whole episode by asking `client`, without scoring it."""
    definition = episode.definition
    yield from episode.open(task, client, model, sampling_args)
    while not episode.is_over:
        try:
            response: Any = definition.get_model_response(episode.state, episode.conversation())
            if is_awaitable(response):
                response = yield episode._bounded(response)
        except DeadlinePassed as passed:
            yield from episode.fail(passed)
            break
        except Error as error:
            yield from episode.fail(error)
            break
        except GeneratorExit:
            raise
        except BaseException:
            yield from episode.finish()
            raise
        yield from episode.advance(response)
    return episode.state
