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
from collections.abc import Awaitable
from typing import Any, NamedTuple

from vfgym.aio.deadlines import Before, DeadlinePassed
from vfgym.aio.steps import Steps
from vfgym.calls import is_awaitable
from vfgym.episode.definition import Definition, TurnDefinition
from vfgym.episode.endings import end_flags, settle_ending
from vfgym.episode.prompt import add_messages, new_step, recorded_conversation, rewrite_conversation
from vfgym.episode.scoring import score_alone, score_turn
from vfgym.episode.stops import LIMIT_REACHED, check_stops, complete, error_stop, model_failure, note_error, note_time_over
from vfgym.errors import Error
from vfgym.lifecycle import run_cleanups
from vfgym.limits import RolloutMeter
from vfgym.messages import Message, Response, as_messages
from vfgym.reseeding import SeededNumbers
from vfgym.state import MessagesView, State, make_placeholder_state
from vfgym.tools import Tool


class Outcome(NamedTuple):
    """What `gymnasium.Env.step` returns."""

    observation: list[Message]
    reward: float
    terminated: bool
    truncated: bool
    info: dict[str, Any]


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
        "limit",
        "state",
    )

    def __init__(self, definition: Definition, session: Any = None, numbers: SeededNumbers | None = None) -> None:
        """Make an episode that has not begun.

        Args:
            definition: The environment that is played.
            session: What the environment keeps for this player between episodes.
            numbers: The player's random numbers; fresh ones without it.
        """
        self.definition = definition
        self._player = (session, numbers)
        self.state: State = State()
        self.is_over = False
        """Whether it was played to its end, and the cleanup handlers ran."""
        self.is_broken = False
        """Whether an exception left it where it cannot go on."""
        self.is_scored = False
        self.is_busy = False
        """Whether a step of it is running."""
        self.limit: RolloutMeter | None = None
        """What it may spend; None where that is not limited."""
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

    def put_off(self, seconds: float) -> None:
        """Go on as much later: the time that has passed since then does not count."""

    def conversation(self) -> list[Message]:
        """Return the whole conversation that the model must answer, or that was had."""
        raise NotImplementedError

    @property
    def tool_defs(self) -> list[Tool]:
        """The tools that whoever answers now may call."""
        return self.state["tool_defs"]  # type: ignore[no-any-return]

    def finish(self) -> Steps[None]:
        """End play: run every cleanup handler, then the `@update` ones, once.

        One that fails is recorded and does not keep the others from running; nor does a cancellation, which is raised
        when all have run. Rewards follow from what updates write: so where nothing failed before, an `Error` of an update is
        the episode's, and anything else that one raises is raised.
        """
        if self.is_over:
            return
        self.is_over = True
        if self.limit is not None:
            self.limit.is_over = True  # what scores the episode may ask, whatever was used up
        state = self.state
        if state.is_cleaned_up:  # by the play loop that an overridden rollout() called
            return
        state.is_cleaned_up = True
        hooks = self.definition.hooks
        cleanups = [("cleanup", self.definition.cleanup)] if self.definition.replaces("cleanup") else hooks.cleanups
        errors = yield from run_cleanups((*cleanups, *hooks.updates), state, state)
        failure = next((errors[name] for name, _ in hooks.updates if name in errors), None)
        if failure is not None and state["is_completed"] and state["error"] is None:
            if not isinstance(failure, Error):
                raise failure
            note_error(state, failure)
            complete(state, error_stop(state))
        if state["is_completed"]:
            settle_ending(self.definition, state)

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
        flags = end_flags(self.definition, self.state) if self.is_over else (False, False)
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
            "ending": state["ending"] if self.is_over else None,
        }
        if state["error"] is not None:
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

    __slots__ = ("_answered", "_conversation", "_deadline", "_overridden", "_rebuilds", "_step_scorers", "_timing")
    definition: TurnDefinition

    def __init__(self, definition: TurnDefinition, session: Any = None, numbers: SeededNumbers | None = None) -> None:
        """Make an episode that has not begun (see `BaseEpisode`)."""
        super().__init__(definition, session, numbers)
        self._conversation: list[Message] = []
        self._answered = 0.0
        self._deadline: float | None = None
        self._overridden = definition.replaced_hooks()
        self._rebuilds = "get_prompt_messages" in self._overridden or "add_trajectory_step" in self._overridden
        self._step_scorers = definition.rubric.step_scorers() if definition.score_rollouts else []

    def __getstate__(self) -> dict[str, Any]:
        slots: dict[str, Any] = super().__getstate__()[1]  # type: ignore[index]
        slots["limit"] = None  # of the rollout that is played here
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
            if "init_state" in self._overridden:
                state = definition.init_state(task, client, model, sampling_args)
                if is_awaitable(state):
                    state = yield state
            else:
                state = definition.initial_state(task, client, model, sampling_args)
            state.begin(*self._player)
        except BaseException as error:
            self.state, self.is_over = make_placeholder_state(task, error), True  # there is nothing to clean up
            raise
        self.state = state
        state.step_metrics = {function.name: 0.0 for function, _ in self._step_scorers}
        timing = state["timing"]
        timing.generation.start = timing.setup.start = time.time()
        if definition.timeout_seconds is not None:
            self._deadline = time.monotonic() + definition.timeout_seconds
        if self.limit is not None:
            self._deadline = self.limit.earlier_deadline(self._deadline)
        try:
            try:
                for _, setup in definition.hooks.setups:
                    result = setup(state)
                    if is_awaitable(result):
                        yield self._with_deadline(result)
                result = definition.setup_state(state)
                if is_awaitable(result):
                    result = yield self._with_deadline(result)
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

    def put_off(self, seconds: float) -> None:
        """Go on as much later: its deadline is put off, and the prompt was shown later."""
        self._shown += seconds
        if self._deadline is not None:
            self._deadline += seconds

    def conversation(self) -> list[Message]:
        """Return the whole conversation: the prompt to answer, and at the end prompt and completion."""
        if not self.is_over:
            return self._conversation.copy()
        types = self.definition.message_types
        messages = as_messages(self.state["prompt"], types)
        messages += as_messages(self.state["completion"] or [], types)
        return messages

    def outcome(self) -> Outcome:
        """Return the five-tuple of the last step."""
        if self.is_over:
            return super().outcome()
        emitted = self.state.emitted
        return Outcome(self._conversation.copy(), emitted[-1] if emitted else 0.0, False, False, self.info())

    def _with_deadline(self, awaitable: Awaitable[Any]) -> Awaitable[Any]:
        return awaitable if self._deadline is None else Before(self._deadline, awaitable)

    def _time_out(self) -> Steps[None]:
        complete(self.state, note_time_over(self.state, self.limit))
        yield from self.finish()

    def _turn(self, response: Response | None) -> Steps[None]:
        """Play from an answer (None: from the beginning) to the next prompt, or to the end."""
        self.is_busy = True
        try:
            try:
                if response is not None:
                    yield from self._record(response)
                if not (yield from self._end_if_stopped()) and (stop_condition := (yield from self._show())):
                    yield from self._end_if_stopped(stop_condition)
            except DeadlinePassed:
                yield from self._time_out()
        except GeneratorExit:
            self.is_broken = True
            raise
        except BaseException:
            self.is_broken = True
            yield from self.finish()
            raise
        finally:
            self.is_busy = False

    def _record(self, response: Response) -> Steps[None]:
        """Record the turn that an answer makes, carry out its move, and call the step functions."""
        definition, state, conversation = self.definition, self.state, self._conversation
        state.emitted.append(0.0)  # a step that fails emits this
        state.reply = None
        if self._deadline is not None and time.monotonic() >= self._deadline:
            raise DeadlinePassed
        self._answered = time.time()
        self._timing.model.add(self._shown, self._answered)
        try:
            step = new_step(definition, state, MessagesView(conversation, len(conversation)), response)
            message = step["completion"][0]
            conversation.append(message)
            if "add_trajectory_step" not in self._overridden:
                state["trajectory"].append(step)
            elif is_awaitable(result := definition.record_turn(state, step)):
                yield self._with_deadline(result)
            if "apply_action" in self._overridden and is_awaitable(result := definition.apply_action(message, state)):
                yield self._with_deadline(result)
            if self._step_scorers:
                state.emitted[-1] = yield from score_turn(self._step_scorers, state, step)
        except Error as error:
            note_error(state, error)

    def _end_if_stopped(self, stop_condition: str = "") -> Steps[bool]:
        """End the episode if a stop condition holds.

        Args:
            stop_condition: What ends it anyway, unless a condition of higher priority holds.
        """
        if not stop_condition and self.limit is not None and self.limit.find_used_up_after(len(self.state["trajectory"])):
            stop_condition = LIMIT_REACHED
        if not (stop_condition or "is_completed" in self._overridden or self.definition.may_stop(self.state)):
            return False
        if not (yield from self._is_completed()) and not stop_condition:
            return False
        if not self.state["is_completed"]:  # the author's own is_completed() said so, or an error that it does not look at
            complete(self.state, stop_condition or None)
        yield from self.finish()
        return True

    def _show(self) -> Steps[str]:
        """Take what the model is shown next.

        Returns:
            The stop condition that ends the episode then: the environment failed, or said its last. Empty if nothing does.
        """
        state = self.state
        try:
            messages = state.reply
            if messages is None or self._rebuilds:
                messages = self._ask_environment()
                if is_awaitable(messages):
                    messages = yield self._with_deadline(messages)
            self._take_messages(messages)
        except Error as error:
            note_error(state, error)
            return error_stop(state)
        self._shown = time.time()
        if self._answered:
            self._timing.env.add(self._answered, self._shown)
        return "" if state["final_env_response"] is None else "has_final_env_response"

    def _ask_environment(self) -> Any:
        """Call the hook that says what the model is shown next; the result may have to be awaited."""
        state = self.state
        if "get_prompt_messages" in self._overridden:
            return self.definition.get_prompt_messages(state)
        if not state["trajectory"]:
            return state["prompt"]
        self._conversation = conversation = recorded_conversation(state, self._conversation)
        return self.definition.env_response(conversation.copy(), state)

    def _take_messages(self, messages: Any) -> None:
        """Take what a hook returned, or a game answered, into the conversation."""
        types = self.definition.message_types
        if "get_prompt_messages" in self._overridden:
            self._conversation = rewrite_conversation(self._conversation, messages, types)
        elif self.state["trajectory"]:
            add_messages(self._conversation, messages, types)
        else:
            self._conversation = as_messages(messages, types, name="prompt")

    def _is_completed(self) -> Steps[bool]:
        """Check the stop conditions; an `Error` that one raises ends the episode."""
        bounded = None if self._deadline is None else self._with_deadline
        try:
            if "is_completed" not in self._overridden:
                return (yield from check_stops(self.definition.hooks.stops, self.state, bounded))
            completed: Any = self.definition.is_completed(self.state)
            if is_awaitable(completed):
                completed = yield self._with_deadline(completed)
            return bool(completed)
        except Error as error:
            note_error(self.state, error)
            complete(self.state, error_stop(self.state))
            return True


def play(episode: Episode, task: dict[str, Any], client: Any, model: str, sampling_args: dict[str, Any] | None) -> Steps[State]:
    """Play a whole episode by asking `client`, without scoring it."""
    definition = episode.definition
    yield from episode.open(task, client, model, sampling_args)
    while not episode.is_over:
        try:
            response: Any = definition.get_model_response(episode.state, episode.conversation())
            if is_awaitable(response):
                response = yield episode._with_deadline(response)
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
