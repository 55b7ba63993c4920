"""The state of an episode as its row kept it: what is not in the row cannot be read, and reading it says so.

A reward function that scores a kept rollout must not take what was lost for what never was. So whatever it asks for that the row does not
have raises `NotKept`: items of the state, columns of the task, parts of a turn where only the conversation was kept.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NoReturn

import vfgym.errors
from vfgym.errors import ConfigurationError, Error
from vfgym.messages import MESSAGE_TYPES, Message, Response
from vfgym.results import fingerprint_of
from vfgym.results.reading import take_messages
from vfgym.results.rows import RolloutOutput
from vfgym.results.trajectory import is_trajectory
from vfgym.state import RolloutTiming, State, TimeSpan, TimeSpans, UsageTracker
from vfgym.tools import as_tool

_ONLY_LATER = frozenset(
    {"judge_response", "judge_model", "metrics_errors", "cleanup_errors", "advantage", "prompt_too_long", "timed_out", "task"}
)
"""Items that no episode has when it is scored, unless its row says so: rubrics write them, or its end does."""
STATE_OF_TURN = "state of each turn"
"""What a step function asks for that names the state: how that was when the turn was played is in no row."""
_ASKED_OF_EACH = frozenset({"state", "completion", "prompt", "step"})
"""Arguments that every rollout has."""
_OF_GROUPS = {f"{name}s": name for name in ("state", "prompt", "completion", "answer", "task", "info")}
_NOT_KEPT = "<not kept:"
"""How a text begins that stands in a row for what has no form in JSON."""


class NotKept(BaseException):
    """A reward function asked for what a row does not have. No ``except Exception`` of the function itself takes it for its own trouble."""


class _Lost:
    """Notes what was asked for in vain, for one episode."""

    __slots__ = ("first",)

    def __init__(self) -> None:
        self.first: str | None = None

    def note(self, what: str) -> NoReturn:
        self.first = self.first or what
        raise NotKept(what)


class _Incomplete:
    """What a mapping has of which some items are not known: who asks for all it has is told no fewer than there were."""

    __slots__ = ()

    def _lose_all(self) -> NoReturn:
        raise NotImplementedError

    def _ask_for_all(self, *_: Any) -> NoReturn:
        self._lose_all()

    __iter__ = __reversed__ = __len__ = __copy__ = __or__ = __ror__ = _ask_for_all
    keys = values = items = copy = popitem = _ask_for_all

    def pop(self, key: str, *default: Any) -> Any:
        """Remove an item that is known, and return it."""
        key in self  # type: ignore[operator]  # noqa: B015 -- notes what is lost
        return dict.pop(self, key, *default)  # type: ignore[call-overload]


class PartlyKept(_Incomplete, dict[str, Any]):
    """A part of an episode of which some items are not known."""

    __slots__ = ("_lost", "_name")

    def __init__(self, lost: _Lost, name: str, **known: Any) -> None:
        super().__init__(known)
        self._lost, self._name = lost, name

    def __missing__(self, key: str) -> NoReturn:
        self._lost.note(f"{self._name}[{key!r}]")

    def __contains__(self, key: object) -> bool:
        return dict.__contains__(self, key) or self.__missing__(str(key))

    def get(self, key: str, default: Any = None) -> Any:
        """Return an item that is known."""
        return self[key]

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Return an item that is known."""
        return self[key]

    def _lose_all(self) -> NoReturn:
        self._lost.note(f"all of {self._name}")


class KeptState(_Incomplete, State):
    """The state of an episode that was played before, as far as its row tells of it (see `NotKept`)."""

    __slots__ = ("had_advantages", "has_whole_task", "kept_metrics", "lost")

    lost: _Lost
    kept_metrics: dict[str, float]
    """What the row says of the metrics that the library measures itself."""
    had_advantages: bool
    """Whether its turns have advantages, which follow from the rewards of its group."""
    has_whole_task: bool
    """Whether the row has every column of its task: the fingerprint is that of what it has."""

    def __getitem__(self, key: str) -> Any:
        value = super().__getitem__(key)
        return PartlyKept(self.lost, 'state["input"]', **value) if key == "input" and not self.has_whole_task else value

    def __missing__(self, key: str) -> Any:
        source = dict.__getitem__(self, "input")
        if key in self.INPUT_FIELDS and (key in source or self.has_whole_task):
            return source[key]
        if key in _ONLY_LATER:
            raise KeyError(key)
        self.lost.note(f"state[{key!r}]")

    def get(self, key: str, default: Any = None) -> Any:
        """Return an item that the row has, or that no episode has then."""
        try:
            return self[key]
        except KeyError:
            return default

    def __contains__(self, key: object) -> bool:
        if dict.__contains__(self, key) or key in _ONLY_LATER or key in self.INPUT_FIELDS:
            return dict.__contains__(self, key)
        self.lost.note(f"state[{key!r}]")

    def _lose_all(self) -> NoReturn:
        self.lost.note("all of the state")

    def check_has(self, names: Collection[str]) -> None:
        """Check that what functions ask for by the names of their arguments is known.

        Raises:
            NotKept: If it is not.
        """
        if STATE_OF_TURN in names:
            self.lost.note(f"the {STATE_OF_TURN}")
        if self.has_whole_task:
            return
        task = dict.__getitem__(self, "input")
        for name in sorted(names):
            asked = _OF_GROUPS.get(name, name)
            if asked == "**":
                self.lost.note("all columns of the task")
            if asked not in _ASKED_OF_EACH and (asked == "task" or asked not in task):
                self.lost.note(f"`{name}` of the task")

    def check_nothing_lost(self) -> None:
        """Check that nothing was asked for in vain by code that let the exception pass.

        Raises:
            NotKept: If something was.
        """
        if self.lost.first is not None:
            self.lost.note(self.lost.first)


_UNKNOWN: dict[str, Any] = {"prompt": [], "completion": [], "is_completed": False, "is_truncated": False, "stop_condition": None}
"""What rows of other writers may be without."""


def kept_state(row: Mapping[str, Any], metadata: Mapping[str, Any], kept_metrics: Mapping[str, float]) -> KeptState:
    """Return the state of a row's episode, played and not scored.

    Args:
        row: The row. Nothing of it is changed by what happens to the state.
        metadata: That of its run.
        kept_metrics: What the row says of the library's own metrics.

    Raises:
        ConfigurationError: If its messages are malformed.
    """
    row = RolloutOutput({**_UNKNOWN, **row})
    if not take_messages(row, MESSAGE_TYPES):
        name = f"rollout {row.get('rollout') or 0} of example {row['example_id']}"
        raise ConfigurationError(f"{name} cannot be scored again: its messages are malformed")
    lost = _Lost()
    task, is_whole = _task(row)
    usage = UsageTracker()
    tokens = row.get("token_usage") or {}
    if "input_tokens" in tokens:
        usage.add(tokens["input_tokens"], tokens["output_tokens"])
    state = KeptState(
        {name: row[name] for name in metadata.get("state_columns") or () if _is_kept(row.get(name))},
        input=task,
        client=None,
        model=metadata.get("model", ""),
        sampling_args=metadata.get("sampling_args") or None,
        is_completed=row["is_completed"],
        is_truncated=row["is_truncated"],
        tool_defs=[as_tool(tool) for tool in row.get("tool_defs") or ()],
        completion=row["completion"],
        usage_tracker=usage,
        usage=usage,
        reward=None,
        metrics=None,
        error=_error(row),
        stop_condition=row["stop_condition"],
        ending=row.get("ending"),
        timing=_timing(row.get("timing") or {}),
    )
    if is_whole:
        dict.__setitem__(state, "task", task.get("task", task))
    for stop_condition, item in (("prompt_too_long", "prompt_too_long"), ("timeout_reached", "timed_out")):
        if row["stop_condition"] == stop_condition:
            dict.__setitem__(state, item, True)
    if row["stop_condition"] != "has_final_env_response":
        dict.__setitem__(state, "final_env_response", None)
    dict.pop(state, "trajectory", None)
    state.had_advantages = False
    if is_trajectory(row.get("trajectory")):
        state.had_advantages = any(step.get("advantage") is not None for step in row["trajectory"])
        trajectory: list[Any] | None = _kept_steps(row, state.had_advantages)
    else:
        trajectory = _rebuilt_steps(row, lost)
    if trajectory is not None:
        dict.__setitem__(state, "trajectory", trajectory)
    state.lost, state.kept_metrics, state.has_whole_task = lost, dict(kept_metrics), is_whole
    return state


def _is_kept(value: Any) -> bool:
    return value is not None and not (isinstance(value, str) and value.startswith(_NOT_KEPT))


def _task(row: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """Return the task that a row is of, and whether that is all of it.

    Rows are without what is empty, and without the question of which the prompt was made, so these are tried.
    """
    known = {name: row[name] for name in ("prompt", "answer", "info", "task") if name in row}
    question = {} if not row["prompt"] else {"question": row["prompt"][-1]["content"]}
    for further in ({}, question, {"answer": ""}, {**question, "answer": ""}):
        task = {**further, **known}
        if row.get("fingerprint") is not None and fingerprint_of(task) == row["fingerprint"]:
            return {**task, "example_id": row["example_id"]}, True
    return {**known, "example_id": row["example_id"]}, False


def _error(row: Mapping[str, Any]) -> Error | None:
    """Return the error of a row as one of its class, where that is the library's own."""
    described = row["error"]
    if described is None:
        return None
    kind = getattr(vfgym.errors, described["error"], Error)
    kind = kind if isinstance(kind, type) and issubclass(kind, Error) else Error
    error = kind.__new__(kind, described["error_chain_repr"])
    return error


def _timing(kept: Mapping[str, Any]) -> RolloutTiming:
    timing = RolloutTiming(kept.get("start_time", 0.0))
    for name in ("setup", "generation"):
        setattr(timing, name, _span(kept.get(name) or {}))
    for name in ("model", "env"):
        setattr(timing, name, TimeSpans(_span(span) for span in (kept.get(name) or {}).get("spans", ())))
    return timing


def _span(kept: Mapping[str, Any]) -> TimeSpan:
    return TimeSpan(kept.get("start", 0.0), kept.get("end", 0.0))


def _kept_steps(row: Mapping[str, Any], had_advantages: bool) -> list[dict[str, Any]]:
    """Return turns that were kept, as scoring finds and changes them: what scoring had filled in is not known yet."""
    steps = []
    for step in row["trajectory"]:
        response, extras = step.get("response"), dict(step.get("extras") or {})
        extras.pop("reward", None)
        kept = {**dict(step), "response": _response(response) if isinstance(response, Mapping) else response, "extras": extras}
        if had_advantages:
            kept |= {"reward": None if step["reward"] == row["reward"] else step["reward"], "advantage": None}
        steps.append(kept)
    return steps


def _rebuilt_steps(row: Mapping[str, Any], lost: _Lost) -> list[dict[str, Any]] | None:
    """Return the turns of a conversation: of each its answer alone is known. None where they are not all in it."""
    answers: list[Message] = [message for message in row["completion"] or () if message["role"] == "assistant"]
    if len(answers) != (row.get("metrics") or {}).get("num_turns", len(answers)):
        return None
    return [PartlyKept(lost, "step", completion=[answer], extras=PartlyKept(lost, 'step["extras"]')) for answer in answers]


def _response(fields: Mapping[str, Any]) -> Any:
    """Return a turn's response; what another writer has there stays as it is."""
    try:
        return Response(**fields)
    except (TypeError, ConfigurationError):
        return fields
