"""`replay`: a saved rollout is played again, to see whether it earns the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

from vfgym.agents.base import seat_of
from vfgym.envs.chat import ChatEnv
from vfgym.envs.seat import EpisodeSeat
from vfgym.errors import ConfigurationError, ModelError, OverlongPromptError
from vfgym.messages import Response, as_message
from vfgym.results import fingerprint_of
from vfgym.results.row_kinds import check_kinds
from vfgym.runs.replicas import make_env


@dataclass(frozen=True, slots=True)
class Difference:
    """Where a rollout went another way when it was played again."""

    turn: int
    """The turn, from 0: the first that earned something else. The number of turns where no one of them is known to differ."""
    what: str
    """What differs, in words."""

    def __str__(self) -> str:
        return f"turn {self.turn}: {self.what}"


@dataclass(frozen=True, slots=True)
class Replay:
    """What came of a rollout that was played again."""

    rewards: list[float]
    """What each turn earned now, the score of the episode with the last one."""
    difference: Difference | None
    """Where it first differs from the row; None where it does not."""


def replay(row: Mapping[str, Any], env: str | EnvSpec | gym.Env[Any, Any]) -> Replay:
    """Play the actions of a saved rollout again, from its task and its seed, and compare what they earn.

    What each turn earned is compared where the row has its ``trajectory`` (``state_columns=["trajectory"]``), else the reward of the whole.
    Only an environment that is decided by its seed and its actions earns the same again: one whose judge is a model need not.

    Args:
        row: A row of `evaluate`, in memory or from `vfgym.results.load_results`.
        env: The environment: a registered id (``row["env_id"]`` is that of the run), a spec, or an environment, whose own episode is left
            alone. It has to be made as it was for the run.

    Raises:
        ConfigurationError: If the row does not say what is needed, or says it in another form, its task is not one of the environment's,
            or the environment's rubric scores whole groups.
    """
    if not isinstance(row, Mapping) or row.get("seed") is None:
        raise ConfigurationError(
            "replay needs a row of vfgym.evaluate, which says with which seed its episode began; this one has no 'seed' (those of older"
            " versions and of other writers have none)"
        )
    if not isinstance(env, str | EnvSpec | gym.Env):
        raise ConfigurationError(f"replay takes the id of an environment, a spec or an environment, got {type(env).__name__}")
    _check_row(row)
    actions = actions_of(row)
    made = env if isinstance(env, gym.Env) else make_env(env, {})
    seat = seat_of(made).fork()
    try:
        return _play(row, actions, seat)
    finally:
        seat.close()
        if made is not env:
            made.close()


def _check_row(row: Mapping[str, Any]) -> None:
    """Check what is read of a row, as it is checked where rows are read from a file.

    Raises:
        ConfigurationError: If something is of another kind, or a turn has no answer.
    """
    steps = row.get("trajectory")
    if isinstance(steps, list):  # their prompts and responses are objects in memory, and are not compared
        read = ("completion", "extras")
        steps = [{"prompt": None, **{key: step.get(key) for key in read}} if isinstance(step, Mapping) else step for step in steps]
    try:
        check_kinds({**row, "trajectory": steps})
    except ValueError as error:
        raise ConfigurationError(f"the row cannot be played again: {error}") from None
    unanswered = next((number for number, step in enumerate(steps or ()) if not step["completion"]), None)
    if unanswered is not None:
        raise ConfigurationError(f"the row cannot be played again: step {unanswered} of its trajectory has no completion")


def _play(row: Mapping[str, Any], actions: Sequence[Response], seat: EpisodeSeat) -> Replay:
    try:
        difference = play_actions(row, actions, seat)
    except ConfigurationError:
        raise
    except Exception as error:  # whatever the environment's code raises
        difference = None
        if (row.get("error") or {}).get("error") != type(error).__name__:
            difference = Difference(_num_turns(seat), f"the environment raised {error!r}")
        return Replay(_rewards_of(seat), difference)
    rewards = _rewards_of(seat)
    return Replay(rewards, _compare_turns(row, rewards) or difference or _compare_total(row, seat, len(rewards)))


def _reset_options(row: Mapping[str, Any], definition: ChatEnv) -> dict[str, Any] | None:
    """Return how the episode of a row chose its task. Where the seed drew it, nothing else may: that would leave other random numbers."""
    if row.get("draws_task"):
        return None
    chosen = {"player": row["player"]} if "pair" in row else {}
    return {"example_id": row["example_id"], "split": _split_of(row, definition), **chosen}


def play_actions(row: Mapping[str, Any], actions: Sequence[Response], seat: EpisodeSeat) -> Difference | None:
    """Play the actions of a row again to the end of its episode, and return whether that is where the row's ended; None where it is.

    What the environment's code raises is raised.
    """
    difference = None
    seat.reset(seed=row["seed"], options=_reset_options(row, seat.definition))
    for turn, action in enumerate(actions):
        if _is_over(seat):
            difference = Difference(turn, f"the episode is over ({seat.state['stop_condition']}), and the row has {len(actions)} turns")  # type: ignore[index]
            break
        seat.step(action)
    if not _is_over(seat):
        difference = _end_as_before(row, seat, len(actions))
    seat.truncate()  # scores an episode that was over before its first turn, and changes no other
    return difference


def _is_over(seat: EpisodeSeat) -> bool:
    return seat.episode is not None and seat.episode.is_over


def _num_turns(seat: EpisodeSeat) -> int:
    return len(seat.state["trajectory"]) if seat.state is not None else 0


def _rewards_of(seat: EpisodeSeat) -> list[float]:
    trajectory = seat.state["trajectory"] if seat.state is not None else ()
    return [step["extras"].get("reward", 0.0) for step in trajectory]


def _end_as_before(row: Mapping[str, Any], seat: EpisodeSeat, turns: int) -> Difference | None:
    """End an episode that goes on after its last action as somebody outside ended that of the row, if somebody did."""
    stop_condition = row.get("stop_condition")
    if stop_condition == "prompt_too_long":
        seat.fail(OverlongPromptError("as in the row"))
    elif stop_condition == "timeout_reached":
        seat.fail(TimeoutError("as in the row"))
    elif row.get("error") is not None:
        seat.fail(ModelError(str(row["error"].get("error_chain_repr"))))
    else:
        seat.truncate()
        if (
            stop_condition not in ("truncated", "quit") and row.get("trajectory") is not None
        ):  # without, the limit of tokens is not met again
            return Difference(turns, f"the episode goes on, and that of the row was over ({stop_condition})")
    return None


def _compare_turns(row: Mapping[str, Any], rewards: list[float]) -> Difference | None:
    for turn, (step, reward) in enumerate(zip(row.get("trajectory") or (), rewards, strict=False)):
        before = (step.get("extras") or {}).get("reward", reward)
        if not _are_equal(before, reward):
            return Difference(turn, f"it earned {before} in the row, and {reward} now")
    return None


def _compare_total(row: Mapping[str, Any], seat: EpisodeSeat, turns: int) -> Difference | None:
    before, total = row["reward"], seat.state["reward"]  # type: ignore[index]
    return None if _are_equal(before, total) else Difference(turns, f"all turns together earned {before} in the row, and {total} now")


def _are_equal(one: Any, other: Any) -> bool:
    return bool(one == other or (one != one and other != other))  # NaN is not equal to itself


def _split_of(row: Mapping[str, Any], definition: ChatEnv) -> str:
    """Return in which split the task of a row is: its fingerprint says so, or its prompt (some tasks have another answer each time)."""
    tasks = {split: _task_of(row, definition, split) for split in ("eval", "train")}
    for split, task in tasks.items():
        if task is not None and row.get("fingerprint") in (None, fingerprint_of(task)):
            return split
    for split, task in tasks.items():
        if task is not None and task["prompt"] == row["prompt"]:
            return split
    raise ConfigurationError(
        f"the row is of another task than example {row['example_id']} of this {type(definition).__name__}: replay it with the environment"
        f" that it is of ({row.get('env_id')}), made with the same arguments"
    )


def _task_of(row: Mapping[str, Any], definition: ChatEnv, split: str) -> dict[str, Any] | None:
    """Return the task that a split has under the id of a row's; None if it has none."""
    tasks = definition.tasks_of(split)
    try:
        return tasks.input(tasks.index_of(row["example_id"]))
    except ConfigurationError:
        return None


def actions_of(row: Mapping[str, Any]) -> list[Response]:
    """Return what was answered in each turn.

    Raises:
        ConfigurationError: If the row does not have all of it.
    """
    trajectory = row.get("trajectory")
    if trajectory is not None:
        return [_response_of(step) for step in trajectory]
    if isinstance(row["completion"], str):
        raise ConfigurationError(
            "the row cannot be played again: its completion is one text, which does not tell its turns. Keep them, with"
            ' evaluate(..., state_columns=["trajectory"])'
        )
    messages = [as_message(message) for message in row["completion"] or () if message["role"] == "assistant"]
    turns = (row.get("metrics") or {}).get("num_turns", len(messages))
    if turns != len(messages):
        raise ConfigurationError(
            f"the row has {len(messages)} answers of {turns:g} turns in its completion (that of self-play has one player's, and authors"
            ' write their own): keep the turns, with evaluate(..., state_columns=["trajectory"])'
        )
    return [Response(id="", created=0, model="", message=message) for message in messages]


def _response_of(step: Mapping[str, Any]) -> Response:
    """Return what was answered in one turn, with what the provider said of it: whether it was cut off, and its tokens."""
    kept = step.get("response")
    message: Any = step["completion"][0]
    usage = None
    if isinstance(kept, Mapping):
        message, usage = kept.get("message") or message, kept.get("usage")
    elif isinstance(kept, Response):
        return kept
    return Response(id="", created=0, model="", usage=None if usage is None else dict(usage), message=message)
