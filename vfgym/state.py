"""What is recorded of one episode: the state, its turns, timing and token usage."""

from __future__ import annotations

import copy
import time
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, SupportsIndex, TypedDict, overload

import numpy as np

from vfgym.endings import Ending, ending_of
from vfgym.errors import Error, FailureCause
from vfgym.messages import Message, Response, ResponseTokens
from vfgym.reseeding import SeededNumbers


class RolloutInput(TypedDict, total=False):
    """One task, as an episode starts from it. Further columns of its dataset row stand beside these."""

    prompt: list[Message]
    example_id: int
    answer: Any
    info: dict[str, Any]


class State(dict[str, Any]):
    """Everything about one episode, by documented names.

    The input's fields (`INPUT_FIELDS`) are read from and written to ``state["input"]`` where it has them, and what changes at
    every move of a game (its ``turn``, ``observation``, ...) in `game_state`; ``in``, iteration, ``pop``, ``del`` and copies as a
    ``dict`` do not look there.

    >>> state = State(input={"answer": "4"}, reward=None)
    >>> state["answer"], "answer" in state
    ('4', False)
    """

    INPUT_FIELDS: ClassVar[list[str]] = ["prompt", "answer", "info", "example_id"]
    __slots__ = (
        "_numbers",
        "emitted",
        "ending",
        "failure_cause",
        "failure_reward",
        "game_state",
        "is_cleaned_up",
        "is_cut_off",
        "reply",
        "reward_failure_cause",
        "rewards",
        "session",
        "step_metrics",
        "time_limit",
    )

    game_state: Any
    """What a game changes at every move, as one object: its attributes are items of the state too. None where no game is played."""
    emitted: list[float]
    """What the step functions gave so far, one number for each step."""
    rewards: list[float]
    """What each step emits, once scored; the sum from left to right is the reward."""
    ending: Ending | None
    """How it ended, as it was decided; ``state["ending"]`` tells it too. None until it is over."""
    failure_cause: FailureCause | None
    """By whose doing it failed; None where nothing ended it but its task or a limit."""
    failure_reward: float | None
    """What its environment declares that failing counts with, where it failed or was cut."""
    step_metrics: dict[str, float]
    """Sums of the step functions over the turns so far."""
    reward_failure_cause: FailureCause | None
    """By whose doing a reward function with a weight failed, so that the reward says nothing of the episode; None where none did."""
    is_cleaned_up: bool
    """Whether the cleanup handlers have run."""
    session: Any
    """What the environment keeps for this player between episodes (a game)."""
    time_limit: float | None
    """Seconds that each blocking reward function may take; None for no limit."""
    reply: list[Any] | None
    """Messages with which the game answered the move just recorded. While set, `env_response` is not called."""
    is_cut_off: bool
    """Whether the answer that is being recorded was cut off, by the limit of its length."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Make a state of the given items, like a ``dict``."""
        super().__init__(*args, **kwargs)
        self.game_state = None
        self.emitted = []
        self.rewards = []
        self.step_metrics = {}
        self.ending = None
        self.failure_cause = None
        self.failure_reward = None
        self.reward_failure_cause = None
        self.is_cleaned_up = False
        self.session = None
        self.time_limit = None
        self.reply = None
        self.is_cut_off = False
        self._numbers: SeededNumbers | None = None

    @property
    def has_failed(self) -> bool:
        """Whether an error ended it, its answers could not be read, or a reward function with a weight raised. Limits are no failures."""
        return self.has_reward_error or ending_of(self).failed

    @property
    def has_reward_error(self) -> bool:
        """Whether a reward function with a weight raised, so that the reward says nothing of the episode."""
        return self.reward_failure_cause is not None

    def begin(self, session: Any, numbers: SeededNumbers | None) -> None:
        """Give the state what belongs to the player that runs the episode."""
        self.session = session
        self._numbers = numbers

    def take_over(self, other: State) -> None:
        """Take what belongs to the player and to its game from another state, in whose place this one comes."""
        self.begin(other.session, other._numbers)
        self.game_state = self.game_state or other.game_state

    def begin_game(self, game_state: Any) -> None:
        """Keep what a game changes at every move in `game_state` from now on."""
        for key in vars(game_state):
            dict.pop(self, key, None)  # one that was written before would hide it
        self.game_state = game_state

    def __copy__(self) -> State:
        made = type(self).__new__(type(self))
        dict.update(made, self)
        parts: Any = self.__reduce_ex__(2)
        for name, value in parts[2][1].items():  # the slots
            setattr(made, name, value)
        made.game_state = copy.copy(self.game_state)
        return made

    @property
    def rng(self) -> np.random.Generator:
        """The episode's random numbers: those of the player that runs it, so that a seed replays them."""
        if self._numbers is None:
            self._numbers = SeededNumbers()
        return self._numbers.generator

    @rng.setter
    def rng(self, rng: np.random.Generator) -> None:
        self._numbers = SeededNumbers.drawn_from(rng)

    def __missing__(self, key: str) -> Any:
        if key in _INPUT_FIELDS:
            source = dict.get(self, "input")
            if source is not None and key in source:
                return source[key]
        if self.game_state is None:
            raise KeyError(key)
        return vars(self.game_state)[key]

    def get(self, key: str, default: Any = None) -> Any:
        """Return an item, the input's fields included, or `default`."""
        if dict.__contains__(self, key):
            return dict.__getitem__(self, key)
        if key in _INPUT_FIELDS:
            source = dict.get(self, "input")
            return default if source is None else source.get(key, default)
        try:
            return self.__missing__(key)
        except KeyError:
            return default

    def __setitem__(self, key: str, value: Any) -> None:
        if key in _INPUT_FIELDS:
            source = dict.get(self, "input")
            if source is not None and key in source:
                source[key] = value
                return
        game_state = getattr(self, "game_state", None)  # a state that is being unpickled has no attributes yet
        if game_state is not None and key in vars(game_state):
            setattr(game_state, key, value)
        else:
            dict.__setitem__(self, key, value)

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Write items, the input's fields included."""
        for key, value in dict(*args, **kwargs).items():
            self[key] = value

    def __ior__(self, other: Any) -> State:  # type: ignore[override, misc]
        self.update(other)
        return self

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Return an item; write `default` first where it is missing."""
        try:
            return self[key]
        except KeyError:
            self[key] = default
            return default


def make_placeholder_state(task: dict[str, Any], error: BaseException | None = None) -> State:
    """Return what stands for the state of an episode that could not begin.

    Args:
        task: The input of the episode, as far as it is known.
        error: What kept it from beginning. Like all states this one holds it only if it is an `Error`.
    """
    noted = error if isinstance(error, Error) else None
    return State(input=task, trajectory=[], completion=[], error=noted, stop_condition=None, ending=None, reward=0.0, metrics={})


_INPUT_FIELDS = frozenset(State.INPUT_FIELDS)


write = dict.update
"""Writes several items of a state of which none is special, in less time than one takes that is assigned: ``write(state, {...})``."""


class MessagesView(Sequence[Message]):
    """The first messages of a conversation that goes on: reads like a list, and shares the conversation's storage.

    Every turn's prompt is one, so that a kept episode of T turns holds T messages and not T² references. It equals a list
    of the same messages, adds to lists, and pickles with the storage shared.
    """

    __slots__ = ("_messages", "_stop")

    def __init__(self, messages: list[Message], stop: int) -> None:
        """View the first `stop` of `messages`, which must never change below that."""
        self._messages = messages
        self._stop = stop

    def __len__(self) -> int:
        return self._stop

    @overload
    def __getitem__(self, index: SupportsIndex) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> list[Message]: ...
    def __getitem__(self, index: SupportsIndex | slice) -> Message | list[Message]:
        if isinstance(index, slice):
            if index.step is None and index.stop is None and (start := index.start) is not None and start >= 0:
                return self._messages[start : self._stop]  # what is asked of long ones
            return self._messages[: self._stop][index]
        position = index.__index__()
        if position < 0:
            position += self._stop
        if not 0 <= position < self._stop:
            raise IndexError(f"message {index} of {self._stop}")
        return self._messages[position]

    def __iter__(self) -> Iterator[Message]:
        return iter(self._messages[: self._stop])

    def __add__(self, other: Iterable[Message]) -> list[Message]:
        return [*self, *other]

    def __radd__(self, other: Iterable[Message]) -> list[Message]:
        return [*other, *self]

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, list | MessagesView) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(list(self))

    def copy(self) -> list[Message]:
        """Return the messages as a list of their own."""
        return list(self)


class TrajectoryStepTokens(TypedDict):
    """Token data of one turn, for training."""

    prompt_ids: list[int]
    prompt_mask: list[int]
    completion_ids: list[int]
    completion_mask: list[int]
    completion_logprobs: list[float]
    overlong_prompt: bool
    is_truncated: bool
    routed_experts: Any


def step_tokens(tokens: ResponseTokens, max_seq_len: int | None) -> TrajectoryStepTokens:
    """Return the token data of one turn, cut to `max_seq_len` tokens of prompt and completion together.

    A prompt that is longer alone is cut, keeps nothing of the completion and is marked overlong.
    """
    prompt, limit = len(tokens.prompt_ids), max_seq_len
    room = len(tokens.completion_ids) if limit is None else max(0, limit - prompt)
    return {
        "prompt_ids": tokens.prompt_ids[:limit],
        "prompt_mask": tokens.prompt_mask[:limit],
        "completion_ids": tokens.completion_ids[:room],
        "completion_mask": tokens.completion_mask[:room],
        "completion_logprobs": tokens.completion_logprobs[:room],
        "overlong_prompt": limit is not None and prompt > limit,
        "is_truncated": limit is not None and prompt + len(tokens.completion_ids) > limit,
        "routed_experts": tokens.routed_experts,
    }


class TrajectoryStep(TypedDict):
    """One turn: what the model was shown and what it answered."""

    prompt: Sequence[Message]
    """The whole conversation that was answered."""
    completion: list[Message]
    """The one assistant message."""
    response: Response
    tokens: TrajectoryStepTokens | None
    reward: float | None
    """The author's value, else filled with the episode's reward when a group is scored."""
    advantage: float | None
    is_truncated: bool
    trajectory_id: str
    extras: dict[str, Any]
    """Anything more; ``extras["reward"]`` is what the environment emitted for this step."""


class TimeSpan:
    """A span of wall-clock time, in seconds since the epoch."""

    __slots__ = ("end", "start")

    def __init__(self, start: float = 0.0, end: float = 0.0) -> None:
        """Make a span; an `end` of 0 says that it has not ended."""
        self.start = start
        self.end = end

    @property
    def duration(self) -> float:
        """Seconds from start to end; 0 while it has not ended."""
        return self.end - self.start if self.end > 0 else 0.0

    def model_dump(self) -> dict[str, float]:
        """Return the span as plain data."""
        start, end = self.start, self.end
        return {"start": start, "end": end, "duration": end - start if end > 0 else 0.0}

    def __repr__(self) -> str:
        return f"TimeSpan(start={self.start}, end={self.end})"


class TimeSpans:
    """Spans of one kind of work, in order. Kept as numbers, since a long episode has two spans for each turn."""

    __slots__ = ("times",)

    def __init__(self, spans: Iterable[TimeSpan] = ()) -> None:
        """Hold `spans`."""
        self.times: list[float] | array[float] = []
        """Start and end of each span, one after the other."""
        for span in spans:
            self.add(span.start, span.end)

    def add(self, start: float, end: float) -> None:
        """Add a span, in seconds since the epoch."""
        append = self.times.append
        append(start)
        append(end)

    def pack(self) -> None:
        """Take less memory, now that hardly any span will be added: a list is faster to add to, an array is a quarter of it."""
        self.times = array("d", self.times)

    @property
    def spans(self) -> tuple[TimeSpan, ...]:
        """The spans, in order; `add` adds one."""
        return tuple(TimeSpan(start, end) for start, end in zip(self.times[::2], self.times[1::2], strict=True))

    @property
    def duration(self) -> float:
        """Seconds of all spans together."""
        times = self.times
        return sum(end - start for start, end in zip(times[::2], times[1::2], strict=True) if end > 0)

    def model_dump(self) -> dict[str, Any]:
        """Return the spans as plain data."""
        times = self.times
        spans = []
        total = 0.0
        for start, end in zip(times[::2], times[1::2], strict=True):
            duration = end - start if end > 0 else 0.0
            total += duration
            spans.append({"start": start, "end": end, "duration": duration})
        return {"spans": spans, "duration": total}


class RolloutTiming:
    """Where the time of one episode went. All values are in seconds."""

    __slots__ = ("env", "generation", "model", "scoring", "setup", "start_time")

    def __init__(self, start_time: float | None = None) -> None:
        """Start the clock, now or at `start_time` (seconds since the epoch)."""
        self.start_time = time.time() if start_time is None else start_time
        self.setup = TimeSpan()
        """`setup_state`."""
        self.generation = TimeSpan()
        """From before `setup_state` until the episode is played."""
        self.scoring = TimeSpan()
        self.model = TimeSpans()
        """Waiting for the model (or whoever answers)."""
        self.env = TimeSpans()
        """The environment's responses."""

    @property
    def total(self) -> float:
        """Seconds from the start of generation to the end of scoring; 0 until scored."""
        return self.scoring.end - self.generation.start if self.scoring.end > 0 else 0.0

    @property
    def overhead(self) -> float:
        """Seconds of the total that no other span accounts for."""
        return self.total - self.setup.duration - self.model.duration - self.env.duration - self.scoring.duration

    def model_dump(self) -> dict[str, Any]:
        """Return the timing as plain data, derived values included."""
        setup, scoring = self.setup.model_dump(), self.scoring.model_dump()
        model, env = self.model.model_dump(), self.env.model_dump()
        total = self.total
        return {
            "start_time": self.start_time,
            "setup": setup,
            "generation": self.generation.model_dump(),
            "scoring": scoring,
            "model": model,
            "env": env,
            "total": total,
            "overhead": total - setup["duration"] - model["duration"] - env["duration"] - scoring["duration"],
        }


class TokenUsage(TypedDict, total=False):
    """Tokens of one episode."""

    input_tokens: float
    """Prompt tokens of all model calls; shared context counts each time."""
    output_tokens: float
    """Completion tokens of all model calls."""
    final_input_tokens: float
    """Tokens of the last turn's context that the model did not write."""
    final_output_tokens: float
    """Tokens of the last turn's context that the model wrote."""
    judge_input_tokens: float
    """Prompt tokens of all questions to judges, where any was asked; as the next two, not part of the model's."""
    judge_output_tokens: float
    """Completion tokens of the judges' answers."""
    judge_requests: float
    """How often a judge was asked. A question about several rollouts of a group at once counts with an equal share for each."""


@dataclass(slots=True)
class JudgeUsage:
    """What judges of one episode cost."""

    requests: float = 0.0
    input_tokens: float = 0.0
    output_tokens: float = 0.0


class UsageTracker(Mapping[str, float]):
    """Counts the tokens of an episode; reads as the mapping ``{"input_tokens", "output_tokens"}``, which are the model's alone."""

    __slots__ = ("_counts", "judges", "seen")

    def __init__(self) -> None:
        """Start at zero, with nothing `seen`."""
        self._counts = {"input_tokens": 0.0, "output_tokens": 0.0}
        self.seen = False
        """Whether any usage was reported."""
        self.judges = JudgeUsage()
        """What judges of the episode cost."""

    def add(self, input_tokens: float = 0, output_tokens: float = 0) -> None:
        """Count tokens.

        Raises:
            ValueError: If a number is negative.
        """
        if input_tokens < 0 or output_tokens < 0:
            raise ValueError(f"token counts cannot be negative, got input_tokens={input_tokens}, output_tokens={output_tokens}")
        self.seen = True
        self._counts["input_tokens"] += input_tokens
        self._counts["output_tokens"] += output_tokens

    def __getitem__(self, key: str) -> float:
        return self._counts[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._counts)

    def __len__(self) -> int:
        return len(self._counts)

    def __repr__(self) -> str:
        return repr(self._counts)
