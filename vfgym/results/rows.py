"""`RolloutOutput`: what is kept of one rollout."""

from __future__ import annotations

import math
import traceback
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from vfgym.endings import Ending, ending_of, failure_cause
from vfgym.errors import Error
from vfgym.messages import Message
from vfgym.output.redaction import redact, redact_data
from vfgym.results.counting import counted_reward
from vfgym.results.dropped_values import DroppedValueLog, Place, StandIn, resolve_stand_ins
from vfgym.results.plain_json import as_json, line_of
from vfgym.results.trajectory import encode_steps, is_trajectory, keep_steps
from vfgym.state import RolloutTiming, State, TokenUsage
from vfgym.tools import Tool


class RolloutOutput(dict[str, Any]):
    """One rollout as data that goes into JSON.

    Keys, in order: ``example_id``, ``prompt``, ``completion``, ``answer`` and ``info`` (where the task has them),
    ``reward`` (the rubric's), ``ending`` (how the rollout ended, see `vfgym.endings.Ending`), ``failed`` (whether it failed,
    whatever the cause), ``counted_reward`` (what it counts with in means, see `vfgym.results.counting`; rows of `verifiers_compat`
    are without it and the next), ``failure_reward`` (in rows of what was cut or failed: what the environment declares that these
    count with), ``error`` (an `ErrorInfo` or None), ``timing`` (seconds), ``is_completed``, ``is_truncated`` (whether the model's
    output was cut), ``stop_condition``, ``metrics``, ``metrics_errors`` (where reward functions failed: what each one raised),
    ``cleanup_errors`` (where handlers that run after the episode failed: what each one raised), ``tool_defs``,
    ``token_usage`` (where any was reported), ``error_chain`` and ``long_error_chain`` (where there is an error), ``rollout``
    (its number within the example, from 0), ``return`` (the sum of the rewards as seen through wrappers), ``step_rewards`` (what each
    turn earned, where not all came with the last one; see `step_rewards`), ``fingerprint``
    (which task it is of, see `vfgym.results.fingerprint_of`), ``env_id`` and ``seed`` (the environment, and the seed that its
    episode began with, for `vfgym.replay`; rows of `verifiers_compat` are without them), ``draws_task`` (in games of people: the
    seed drew the task too, as in ``reset(seed=seed)``), ``human`` (where a person played: the help that they had, see
    `vfgym.agents.human.HumanHelp`), ``player`` and ``pair`` (in runs that play each game from both seats: whom the
    policy played, and which two rollouts belong together), ``spent`` (where the run has limits, prices or a cache: see
    `vfgym.results.spending.SpentByRollout`), then each metric under its own name, then the state columns
    that were asked for. A metric named like one of these keys stands in ``metrics`` only.
    """


_AUDIO = ("input_audio", "audio")
"""Types of parts that hold audio: OpenAI's, and a shorter name of it."""

STANDARD_KEYS = frozenset(
    {
        *("example_id", "prompt", "completion", "answer", "info", "reward", "error", "timing", "is_completed", "is_truncated"),
        *("ending", "failed", "counted_reward", "failure_reward", "task", "stop_condition", "metrics", "metrics_errors"),
        *("cleanup_errors", "tool_defs", "token_usage", "error_chain", "long_error_chain", "rollout", "return", "fingerprint"),
        *("env_id", "seed", "draws_task", "human", "player", "pair", "spent", "step_rewards", "trajectory"),
    }
)
"""Keys of a row that no metric overwrites."""


_LONGEST_TRACEBACK = 10_000
"""Characters of a traceback that a row keeps: its end, which has what raised."""

_LONGEST_LINE = 160
"""Characters of an error that a table shows."""


class ErrorInfo(dict[str, str]):
    """An error as data: ``error`` (its type), ``error_chain_repr`` and ``error_chain_str`` (it and its causes), and its ``traceback``.

    The traceback is there in rows of `vfgym.evaluate` where the error is not one of the library: an agent or a hook raised it.
    """

    @classmethod
    def of(cls, error: BaseException, *, keeps_traceback: bool = False) -> ErrorInfo:
        """Describe an error and the causes that were given with ``raise ... from``, without secrets.

        Args:
            error: The error.
            keeps_traceback: Whether the traceback of one that is not the library's is kept: its last 10,000 characters.
        """
        chain = list(_chain(error))
        info = cls(
            error=type(error).__name__,
            error_chain_repr=redact(" -> ".join(map(_describe_error, chain))),
            error_chain_str=" -> ".join(type(link).__name__ for link in chain),
        )
        if keeps_traceback and error.__traceback__ is not None and not isinstance(error, Error):
            info["traceback"] = redact("".join(traceback.format_exception(error)))[-_LONGEST_TRACEBACK:]
        return info

    def one_line(self) -> str:
        """Return the error without its causes as one line of a table, cut where it is long."""
        text = self["error_chain_repr"]
        line = text.partition("\n")[0].partition(" -> ")[0].strip()
        if len(line) > _LONGEST_LINE:
            line = f"{line[:_LONGEST_LINE]}..."
        return line if line == text else f"{line} (the rows have all of it)"

    def __str__(self) -> str:
        return self["error_chain_repr"]


def _describe_error(error: BaseException) -> str:
    """Return an error as text, with the notes that were added to it."""
    return " ".join([repr(error), *(f"({note})" for note in getattr(error, "__notes__", ()))])


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        link = link.__cause__


_NOT_KNOWN: Mapping[str, Any] = {}


def rollout_output(
    state: State,
    *,
    rollout: int = 0,
    seen_return: float | None = None,
    error: BaseException | None = None,
    state_columns: Sequence[str] = (),
    fingerprint: str | None = None,
    began: Mapping[str, Any] = _NOT_KNOWN,
    failure_reward: float | None = None,
    is_counted: bool = True,
    dropped_log: DroppedValueLog | None = None,
) -> RolloutOutput:
    """Return what is kept of an episode that was played and scored. Its messages are shared, and nothing else of the state.

    Args:
        state: The episode.
        rollout: Its number within the example, from 0.
        seen_return: Sum of the rewards as wrappers passed them on; None where there were none, and the reward counts.
        error: What kept the episode from going on, where the state does not know of it.
        state_columns: Further items of the state to keep. What has no form in JSON in them is replaced by a text that says so.
            The steps of a ``trajectory`` are `vfgym.results.trajectory.KeptStep`.
        fingerprint: That of its task (see `vfgym.results.fingerprint_of`).
        began: Its ``env_id`` and its ``seed``, as far as they are known.
        failure_reward: What its environment declares that it counts with if it failed or was cut.
        is_counted: Whether the row says what it counts with; without, means are of its ``reward``, whether it failed or not.
        dropped_log: Reports what was replaced, for all rows of a run; this row alone by default.
    """
    item = {**(dict.get(state, "input") or {}), **state}.get  # one lookup for both, at a quarter of the cost of State.get
    ending = state.ending or ending_of(state)
    if error is not None and not ending.failed:
        ending = Ending.of_cause(failure_cause(error, otherwise="environment"))
    error = item("error") if error is None else error
    reward = item("reward") or 0.0
    metrics = item("metrics") or {}
    row = RolloutOutput(example_id=item("example_id", 0), prompt=_as_list(item("prompt")), completion=_as_list(item("completion")))
    label = (dict.get(state, "input") or {}).get("task")
    if isinstance(label, str):
        row["task"] = label
    for key in ("answer", "info"):
        value = item(key)
        if value:
            row[key] = value
    row["reward"] = reward
    row["ending"], row["failed"] = str(ending), ending.failed
    if is_counted:
        row["counted_reward"] = counted_reward(ending, reward, failure_reward)
        if not ending.counts_with_return:
            row["failure_reward"] = failure_reward
    row["error"] = None if error is None else ErrorInfo.of(error, keeps_traceback=is_counted)
    row["timing"] = (item("timing") or RolloutTiming()).model_dump()
    row["is_completed"] = bool(item("is_completed"))
    row["is_truncated"] = bool(item("is_truncated"))
    row["stop_condition"] = item("stop_condition")
    row["metrics"] = metrics
    for key in ("metrics_errors", "cleanup_errors"):
        if item(key):
            row[key] = redact_data(item(key))
    row["tool_defs"] = [_tool_fields(tool) for tool in item("tool_defs") or ()]
    usage = token_usage(state)
    if usage is not None:
        row["token_usage"] = usage
    if row["error"] is not None:
        row["error_chain"] = row["error"]["error_chain_repr"]
        row["long_error_chain"] = row["error"]["error_chain_str"]
    row["rollout"] = rollout
    row["return"] = reward if seen_return is None else seen_return
    earned = step_rewards(state) if is_counted and not ending.failed else None
    if earned is not None:
        row["step_rewards"] = earned
    if fingerprint is not None:
        row["fingerprint"] = fingerprint
    row.update(began)
    if isinstance(dict.get(state, "human"), dict):  # the state's own item, not a column of the task
        row["human"] = dict(state["human"])
    for name, value in metrics.items():
        if name not in STANDARD_KEYS:
            row[name] = value
    places: list[Place] = []
    for name in state_columns:
        if name not in row or name in metrics:
            row[name] = _column(state, name, places)
    if places:
        (dropped_log or DroppedValueLog()).warn(row, places)
    return row


def step_rewards(state: State) -> list[float] | None:
    """Return what each turn of a scored episode earned; together that is its reward.

    None where nothing was earned before the last turn, and where JSON does not have one of the numbers.
    """
    earned = state.rewards
    if not any(earned[:-1]) or not all(map(math.isfinite, earned)):
        return None
    num_turns = min(len(dict.get(state, "trajectory") or earned), len(earned))
    return [*earned[: num_turns - 1], sum(earned[num_turns:], earned[num_turns - 1])]  # what came after the last turn is earned by that


def _as_list(messages: Any) -> Any:
    """Return messages in a list of its own; what a client kept of them for itself is let go."""
    if isinstance(messages, str) or not isinstance(messages, Sequence):
        return messages
    listed = list(messages)
    for index, message in enumerate(listed):
        if isinstance(message, Message):
            message.forget_converted()
            content = message["content"]
            if content.__class__ is not str and any(part.get("type") in _AUDIO for part in content or ()):
                listed[index] = message.of_fields({**message, "content": [saved_part(part) for part in content]})
    return listed


def saved_part(part: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a content part as results hold it: audio as ``input_audio``, in base64 without whitespace, its format in lower case.

    Audio without data is the text ``[audio]``.
    """
    if part.get("type") not in _AUDIO:
        return part
    audio = next((part[name] for name in _AUDIO if name in part), None)
    data = audio.get("data") if isinstance(audio, Mapping) else None
    if not (isinstance(audio, Mapping) and isinstance(data, str) and data.strip()):
        return {"type": "text", "text": "[audio]"}
    rest = {key: value for key, value in part.items() if key not in _AUDIO}
    held = {**audio, "data": "".join(data.split()), "format": str(audio.get("format") or "").lower()}
    return {**rest, "type": "input_audio", "input_audio": held}


def _tool_fields(tool: Tool) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "parameters": tool.parameters, "strict": tool.strict}


def _column(state: State, name: str, places: list[Place]) -> Any:
    """Return a state column as data, and add to `places` what it is without."""
    stand_ins: list[StandIn] = []

    def stand_in(value: Any) -> StandIn:
        stand_ins.append(_not_kept(f"{type(value).__name__} has no form in JSON"))
        return stand_ins[-1]

    value = state.get(name)
    try:
        data = keep_steps(value, stand_in) if name == "trajectory" and is_trajectory(value) else as_json(value, stand_in)
    except Exception as error:  # whatever an object's own code may raise, or one that holds itself: the rest of the row counts
        return resolve_stand_ins(_not_kept(str(error) or repr(error)), name, places)
    data = resolve_stand_ins(data, name, places) if stand_ins else data
    return data if name == "trajectory" else redact_data({name: data})[name]


def _not_kept(reason: str) -> StandIn:
    return StandIn.of(f"<not kept: {reason}>", reason)


def row_line(row: Mapping[str, Any], *, text_log: DroppedValueLog | None = None) -> str:
    """Return a row as its line on disk, without the line's end. What has no form in JSON stands as its ``repr``.

    Args:
        row: The row.
        text_log: Reports what stands as its ``repr``, for all rows of a run; nothing does by default.
    """
    trajectory = row.get("trajectory")
    if is_trajectory(trajectory):
        row = {**row, "trajectory": encode_steps(trajectory, row.get("prompt"))}
    places: list[Place] = []
    line = line_of(row, places)
    if places and text_log is not None:
        text_log.warn(row, places, "holds as text only")
    return line


def token_usage(state: State) -> TokenUsage | None:
    """Return the tokens of an episode, those of its judges apart, or None where no usage was reported.

    The final numbers are those of the last turn's context, which holds what all turns wrote: exact where the conversation
    only grew.
    """
    tracker = state.get("usage_tracker")
    judges = getattr(tracker, "judges", None)
    usages = [step["response"].usage for step in state.get("trajectory") or () if getattr(step["response"], "usage", None) is not None]
    written = sum(each.completion_tokens for each in usages)
    usage: TokenUsage = {}
    if tracker is not None and tracker.seen:
        usage = {"input_tokens": tracker["input_tokens"], "output_tokens": tracker["output_tokens"]}
    elif usages:
        usage = {"input_tokens": float(sum(each.prompt_tokens for each in usages)), "output_tokens": float(written)}
    if usages:
        last = usages[-1]
        usage["final_input_tokens"] = float(max(0, last.prompt_tokens + last.completion_tokens - written))
        usage["final_output_tokens"] = float(written)
    if judges is not None and judges.requests:
        usage["judge_input_tokens"] = judges.input_tokens
        usage["judge_output_tokens"] = judges.output_tokens
        usage["judge_requests"] = judges.requests
    return usage or None


def row_order(row: Mapping[str, Any]) -> tuple[int, int]:
    """Return what rows are sorted by: example, then rollout."""
    return row["example_id"], row.get("rollout") or 0
