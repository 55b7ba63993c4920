"""`score`: the rollouts of a run are scored again with another rubric, and no model is asked.

A row has the task, the conversation and how it ended, which is what most reward functions look at. Where one asks for more (items of the
state, the turns' own rewards, columns of the data set), the episode is played again by its actions, in the environment that it was played
in. Whatever the library measures itself (turns, tool calls, invalid answers) does not depend on the rubric, and stays.
"""

from __future__ import annotations

import asyncio
import copy
import functools
import logging
import math
import operator
import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, cast

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec

import vfgym.errors
from vfgym.agents.base import seat_of
from vfgym.aio.background import run_to_end
from vfgym.aio.bridge import bridge
from vfgym.aio.steps import Steps, all_of, begin
from vfgym.endings import UNREADABLE, Ending, ending_of, failure_cause
from vfgym.envs.chat import ChatEnv
from vfgym.envs.group import EnvGroup
from vfgym.envs.seat import Fork
from vfgym.episode.scoring import score_turn
from vfgym.errors import ConfigurationError
from vfgym.output.redaction import redact_data
from vfgym.overrides import kind_of
from vfgym.results import ErrorInfo, GenerateOutputs, RolloutOutput, load_results, rollout_output
from vfgym.results.counting import counted_reward, mean_of, settle
from vfgym.results.outputs import RunOutputs
from vfgym.results.plain_json import json_text
from vfgym.results.rows import STANDARD_KEYS, row_order, step_rewards
from vfgym.results.statistics import statistics_of
from vfgym.results.trajectory import KeptStep, is_trajectory
from vfgym.rubrics import Rubric, RubricGroup
from vfgym.rubrics.rubric import call_author_scoring, clean_up_after
from vfgym.rubrics.rubric_group import find_reward_bounds
from vfgym.rubrics.scoring import Score, apply_advantages, apply_score
from vfgym.runs.kept_states import STATE_OF_TURN, KeptState, NotKept, PartlyKept, kept_state
from vfgym.runs.replay import actions_of, play_actions
from vfgym.runs.replicas import make_env
from vfgym.state import State

logger = logging.getLogger(__name__)

_Placed: TypeAlias = "tuple[int, RolloutOutput]"
"""A row, and its place among all of them."""

_MOST_AT_ONCE = 64
"""How many rollouts (groups, where a rubric scores these) are scored at once: those that wait for a judge."""


def score(
    run: str | os.PathLike[str] | GenerateOutputs, rubric: Rubric, *, env: str | EnvSpec | gym.Env[Any, Any] | None = None
) -> GenerateOutputs:
    """Score the rollouts of a run again. The run stays as it is.

    The rows are those that a run of the same rollouts with that rubric would have. Rollouts that were never scored, since something broke
    them off, stay as they are.

    Args:
        run: The directory of a run, or what `vfgym.evaluate` returned.
        rubric: Scores the rollouts; it takes the place of the one that the environment was made with.
        env: The environment of the run: an id, a spec or an environment, made as it was then. It is needed where a reward function asks for
            what rows do not have, and where functions marked in the environment's own class score too. Where it is needed and not
            given, it is made by the id in the metadata.

    Returns:
        The rows, and the metadata with their statistics; nothing is written.

    Raises:
        ConfigurationError: If an argument is of another kind, the run has no rollouts, a function asks for what rows do not have and the
            environment cannot be made, or an episode goes another way when it is played again.
        ResultsError: If results cannot be read.
    """
    if not isinstance(rubric, Rubric):
        raise ConfigurationError(f"rubric must be a vfgym.Rubric, got {kind_of(rubric)}: wrap functions in vfgym.Rubric(...)")
    results = load_results(Path(run)) if isinstance(run, str | os.PathLike) else run
    if not isinstance(results, Mapping) or not {"outputs", "metadata"} <= results.keys():
        raise ConfigurationError(f"score takes the directory of a run or what vfgym.evaluate returned, got {type(run).__name__}")
    if not results["outputs"]:
        raise ConfigurationError("the run has no rollouts to score")
    return run_to_end(_score(results, rubric, env))


async def _score(results: GenerateOutputs, rubric: Rubric, env: str | EnvSpec | gym.Env[Any, Any] | None) -> GenerateOutputs:
    rows = sorted(results["outputs"], key=row_order)
    metadata = results["metadata"]
    world = await bridge(_World, metadata, rubric, env)
    try:
        scored: dict[int, RolloutOutput] = {}
        scorer = _Scorer(metadata, rubric, world)
        units = scorer.units([(place, row) for place, row in enumerate(rows) if _was_scored(row)])

        async def work() -> None:
            for unit in units:
                scored.update(zip((place for place, _ in unit), await scorer.score([row for _, row in unit]), strict=True))
                await asyncio.sleep(0)

        await all_of([work() for _ in range(_MOST_AT_ONCE)])
    finally:
        await bridge(world.close)
    outputs = [scored.get(place) or RolloutOutput(row) for place, row in enumerate(rows)]
    of = mean_of(outputs)
    if of == "counted_reward":
        settle(outputs)
    known_range = scorer.counted_range(outputs)
    statistics = statistics_of(outputs, metadata["rollouts_per_example"], metadata["pass_threshold"], of=of, reward_range=known_range)
    again = {**metadata, **statistics, "reward_range": known_range, "path_to_save": None, "scored_again": True}
    return cast(GenerateOutputs, RunOutputs(outputs=outputs, metadata=again))


def _was_scored(row: Mapping[str, Any]) -> bool:
    """Say whether a rollout was played to an end that rubrics score: what broke off has no metrics, of the library's own neither."""
    return row["error"] is None or bool(row["metrics"])


class KeptMetricsRubric(Rubric):
    """Measures what the library measured when the episode was played."""

    def scoring_steps(self, state: State) -> Steps[Score]:
        """Return the metrics that the row has of it."""
        return Score(0.0, cast(KeptState, state).kept_metrics.copy())
        yield  # makes this a generator, as the rubrics around it expect


class _World:
    """The environment of a run, where it is known: how it scores besides the rubric, and where its episodes are played again."""

    def __init__(self, metadata: Mapping[str, Any], rubric: Rubric, env: str | EnvSpec | gym.Env[Any, Any] | None) -> None:
        self._metadata = metadata
        self._rubric = rubric
        self._made: gym.Env[Any, Any] | None = None
        self.definition: ChatEnv | None = None
        """The environment with the new rubric; None while it is not known."""
        self._own: ChatEnv | None = None
        self._seat: Fork | None = None
        if env is not None:
            self._enter(env if isinstance(env, gym.Env) else self._make(env, {}))

    def _make(self, env: str | EnvSpec, env_args: dict[str, Any]) -> gym.Env[Any, Any]:
        self._made = make_env(env, env_args)
        return self._made

    def _enter(self, env: gym.Env[Any, Any]) -> None:
        self._own = own = seat_of(env).definition
        if isinstance(own, EnvGroup):
            raise ConfigurationError(
                "the environments of a group have rubrics of their own: score the rows of one of them, with the environment that played"
                " them"
            )
        self.definition = copy.copy(own)
        self.definition.rubric = RubricGroup([self._rubric, *_added_rubrics(own)])
        self._seat = Fork(self.definition)
        self._seat.defers_scoring = True

    def need(self, what: str) -> None:
        """Make the environment by the id of the run's, where it is not known.

        Raises:
            ConfigurationError: If that cannot be done.
        """
        if self.definition is not None:
            return
        env_id = str(self._metadata.get("env_id"))
        try:
            env = self._make(env_id, dict(self._metadata.get("env_args") or {}))
        except ConfigurationError as error:
            raise ConfigurationError(
                f"the rubric asks for {what}, which rows do not have, and the environment {env_id!r} cannot be made to play them again"
                f" ({error}): give it with env=..."
            ) from error
        self._enter(env)

    def play(self, row: Mapping[str, Any]) -> State:
        """Play an episode again, and return its state, not scored.

        Raises:
            ConfigurationError: If it cannot be played as it was.
        """
        where = f"rollout {row.get('rollout') or 0} of example {row['example_id']} cannot be played again"
        if row.get("seed") is None:
            raise ConfigurationError(f"{where}: its row does not say with which seed it began, as those of vfgym.evaluate do")
        seat = cast(Fork, self._seat)
        try:
            difference = play_actions(row, actions_of(row), seat)
        except ConfigurationError as error:
            raise ConfigurationError(f"{where}: {error}") from error
        state = cast(State, seat.state)
        again = json_text(rollout_output(state)["completion"])
        if difference is not None or again != json_text(row.get("completion")):
            raise ConfigurationError(f"{where}: it went another way ({difference or 'other messages came'})")
        return state

    def own_functions(self) -> list[Rubric]:
        """Return what scores beside the rubric and is not measured by the library: functions that are marked in the environment's class."""
        added = [] if self._own is None else _added_rubrics(self._own)
        return [each for each in added if type(each) is Rubric or not type(each).__module__.startswith("vfgym.")]

    def close(self) -> None:
        """Close what was made here."""
        if self._seat is not None:
            self._seat.close()
        if self._made is not None:
            self._made.close()


def _added_rubrics(definition: ChatEnv) -> list[Rubric]:
    """Return what scores beside the rubric that an environment was given: the functions of its own class, and what the library measures."""
    joined = definition._joined_rubrics
    return [] if joined is None or joined is not definition.rubric else joined.rubrics[1:]


class _Ended(NamedTuple):
    """How the scoring of a rollout ended."""

    failure: Exception | None
    """What it raised that ends the rollout."""
    seen_return: float
    """The sum of the rewards that its steps gave."""


class _Scorer:
    """Scores kept rollouts: from their rows as long as these have what is asked for, then by playing them again."""

    def __init__(self, metadata: Mapping[str, Any], rubric: Rubric, world: _World) -> None:
        self._metadata = metadata
        self._columns: Sequence[str] = metadata.get("state_columns") or ()
        self._world = world
        rewarding = [rubric, *world.own_functions()]
        self._bounds = find_reward_bounds(RubricGroup(rewarding))
        self._of_rows = RubricGroup([*rewarding, KeptMetricsRubric()])
        """Scores what rows have."""
        self._asked = _names_asked_for(self._of_rows)
        self._measured = measured_names()
        self._plays_again = False
        self._is_for_groups = False
        self._one_at_a_time = asyncio.Lock()
        """Held by who plays episodes again: there is one seat for it."""

    def counted_range(self, rows: Sequence[RolloutOutput]) -> list[float] | None:
        """Return the lowest and the highest number that rollouts can count with as they are scored now; None where that is not known."""
        low, high = self._bounds
        if low is None or high is None:
            return None
        failed = [row.get("counted_reward") for row in rows if not ending_of(row).counts_with_return]
        return [min([low, *(number for number in failed if number is not None)]), high]

    def units(self, rows: Sequence[_Placed]) -> Iterator[list[_Placed]]:
        """Give what is scored at once: the rollouts of an example where they are scored together, else each."""
        self._is_for_groups = self._of_rows.has_group_rewards or any(_has_advantages(row) for _, row in rows[:1])
        if self._is_for_groups:
            return (list(group) for _, group in groupby(rows, key=lambda each: each[1]["example_id"]))
        return ([each] for each in rows)

    async def score(self, rows: Sequence[RolloutOutput]) -> list[RolloutOutput]:
        """Return rows as the rubric scores them. A rollout that broke off belongs to no group."""
        if not self._is_for_groups:
            return await self._score_unit(rows)
        whole = [row for row in rows if not _broke_off(row)]
        scored = iter(await self._score_unit(whole) if whole else ())
        return [_in_order(row, _unscored(row), None, self._columns) if _broke_off(row) else next(scored) for row in rows]

    async def _score_unit(self, rows: Sequence[RolloutOutput]) -> list[RolloutOutput]:
        if not self._plays_again:
            try:
                states = [kept_state(row, self._metadata, self._kept_metrics(row)) for row in rows]
                for state in states:
                    state.check_has(self._asked)
                ended: Sequence[_Ended] = await begin(self._scoring(self._of_rows, states))
                for state in states:
                    state.check_nothing_lost()
                return self._scored_rows(rows, states, ended)
            except NotKept as error:
                async with self._one_at_a_time:
                    await bridge(self._world.need, str(error))
                self._plays_again = True
        async with self._one_at_a_time:
            played = [await bridge(self._world.play, row) for row in rows]
        rubric = cast(ChatEnv, self._world.definition).rubric
        return self._scored_rows(rows, played, await begin(self._scoring(rubric, played)))

    def _kept_metrics(self, row: Mapping[str, Any]) -> dict[str, float]:
        tools = {f"{tool['name']}_calls" for tool in row.get("tool_defs") or ()}
        return {
            name: value for name, value in row["metrics"].items() if name in self._measured or name in tools or name.endswith(_ROOT_TOOLS)
        }

    def _scoring(self, rubric: Rubric, states: Sequence[State]) -> Steps[list[_Ended]]:
        """Score the rollouts of a unit, and return how that ended for each."""
        members = list(states)
        scorers = rubric.step_scorers()
        failures: list[Exception | None] = [None] * len(members)
        for state in members:
            if isinstance(state, KeptState):  # an episode that was played again has it from its turns
                state.step_metrics = {function.name: 0.0 for function, _ in scorers}
                for step in state["trajectory"] if scorers or dict.__contains__(state, "trajectory") else ():
                    state.emitted.append((yield from score_turn(scorers, state, step)))
                if state["stop_condition"] in _ENDED_OUTSIDE:
                    state.emitted.append(0.0)
        emitted = [functools.reduce(operator.add, state.emitted, 0.0) for state in members]
        if len(members) > 1 or rubric.has_group_rewards:
            scores = yield from (call_author_scoring(rubric, members, as_group=True) or rubric.group_scoring_steps(members))
            failures = [each.failure for each in scores]
        else:
            try:
                scores = [(yield from rubric.scoring_steps(members[0]))]
            except Exception as error:
                scores, failures = [Score()], [error]
        for state, each in zip(members, scores, strict=True):
            apply_score(state, each)
        if all(_has_real_steps(state) for state in members) and any(_asks_for_advantage(state) for state in members):
            apply_advantages(members)
        for state in members:
            yield from clean_up_after(rubric, state)
        # What a run's wrappers see of an episode that is scored with its group is what its turns earned.
        is_deferred = rubric.has_group_rewards or (len(members) > 1 and rubric.provides_advantages)
        returns = emitted if is_deferred else [state["reward"] for state in members]
        return [_Ended(*each) for each in zip(failures, returns, strict=True)]

    def _scored_rows(self, rows: Sequence[RolloutOutput], states: Sequence[State], ended: Sequence[_Ended]) -> list[RolloutOutput]:
        return [self._scored_row(*each) for each in zip(rows, states, ended, strict=True)]

    def _scored_row(self, row: RolloutOutput, state: State, ended: _Ended) -> RolloutOutput:
        """Return a row with what the rubric found instead of what the old one did."""
        failure = ended.failure
        error = row["error"] if failure is None else ErrorInfo.of(failure)
        reward = 0.0 if failure is not None else state["reward"]
        metrics = {} if failure is not None else state["metrics"]
        ending = _ending(row, state, failure)
        changed: dict[str, Any] = {"reward": reward, "ending": str(ending), "failed": ending.failed, "error": error, "metrics": metrics}
        changed["return"] = 0.0 if failure is not None else ended.seen_return
        earned = None if ending.failed or "counted_reward" not in row else step_rewards(state)
        if earned is not None:
            changed["step_rewards"] = earned
        if "counted_reward" in row:
            declared = self._failure_reward(row)
            changed["counted_reward"] = counted_reward(ending, reward, declared)
            if not ending.counts_with_return:
                changed["failure_reward"] = declared
        usage = _usage(row, state)
        if usage:
            changed["token_usage"] = usage
        else:
            row = RolloutOutput({name: value for name, value in row.items() if name != "token_usage"})
        if not _are_equal(row.get("return", row["reward"]), row["reward"]):
            self._note_wrapped()
        new = _in_order(row, changed, dict.get(state, "metrics_errors"), self._columns)
        if is_trajectory(row.get("trajectory")):
            new["trajectory"] = [
                KeptStep({**dict(step), **{name: scored[name] for name in ("reward", "advantage", "extras")}})
                for step, scored in zip(row["trajectory"], state["trajectory"], strict=True)
            ]
        return new

    def _failure_reward(self, row: Mapping[str, Any]) -> float | None:
        """Return what the environment declares that failing counts with; where it is not known, what the row tells of that."""
        return row.get("failure_reward") if self._world.definition is None else self._world.definition.failure_reward

    @functools.cache  # noqa: B019 -- said once, and a scorer lives as long as one call of `score`
    def _note_wrapped(self) -> None:
        logger.warning("`return` of the new rows is what the rubric gives: what wrappers around the environment made of it is not known")


def _ending(row: Mapping[str, Any], state: State, failure: Exception | None) -> Ending:
    """Return how a rollout ended, now that it was scored again: a reward function that failed before may not, and the reverse."""
    if failure is not None:
        return Ending.of_cause(failure_cause(failure, otherwise="environment"))
    ending = ending_of(row)
    if ending.failed and row["error"] is None and row["stop_condition"] != UNREADABLE:
        ending = ending_of({"stop_condition": row["stop_condition"]})
    return ending if ending.failed or state.reward_failure_cause is None else Ending.of_cause(state.reward_failure_cause)


def _unscored(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the row of a rollout that broke off has of a rubric."""
    declared = {"failure_reward": row["failure_reward"]} if "failure_reward" in row else {}
    return {"reward": 0.0, "metrics": {}, "return": 0.0, **declared}


def _in_order(row: RolloutOutput, changed: Mapping[str, Any], metrics_errors: Any, columns: Sequence[str]) -> RolloutOutput:
    """Return a row with other numbers, its keys in the order in which a run writes them."""
    new = RolloutOutput()
    for name in (*row, *(name for name in changed if name not in row and name not in _PLACED)):
        is_old = name in _PLACED or (name in row["metrics"] and name not in STANDARD_KEYS)
        if name in columns or is_old:
            continue
        new[name] = changed.get(name, row.get(name))
        if name == "counted_reward" and "failure_reward" in changed:
            new["failure_reward"] = changed["failure_reward"]
        if name == "metrics" and metrics_errors:
            new["metrics_errors"] = redact_data(metrics_errors)
        if name == "return" and "step_rewards" in changed:
            new["step_rewards"] = changed["step_rewards"]
    new.update({name: value for name, value in changed["metrics"].items() if name not in STANDARD_KEYS})
    new.update({name: row[name] for name in columns if name in row})
    return new


_PLACED = ("metrics_errors", "step_rewards", "failure_reward")
"""Keys that some rows have, each behind another one."""
_ENDED_OUTSIDE = ("truncated", "prompt_too_long")
"""Stop conditions of episodes whose score comes after what their last turn earned."""
_ROOT_TOOLS = ("_root_calls", "_root_time_seconds")
"""How names end of what `RLMEnv` measures of each tool."""


@functools.cache
def measured_names() -> frozenset[str]:
    """Return the names of the metrics that the library itself measures, whatever the rubric; those of each tool are not among them."""
    from vfgym.envs.cli_agent import CliAgentMonitorRubric
    from vfgym.envs.multi_turn import MultiTurnMonitorRubric
    from vfgym.envs.python import PythonMonitorRubric
    from vfgym.envs.recursion.metrics import RLMMonitorRubric
    from vfgym.envs.sandbox import SandboxMonitorRubric
    from vfgym.envs.tool import ToolMonitorRubric
    from vfgym.wrappers.games.turns import GameMonitorRubric
    from vfgym.wrappers.gymnasium.game import ActionMonitorRubric

    kinds = (
        *(ActionMonitorRubric, CliAgentMonitorRubric, GameMonitorRubric, MultiTurnMonitorRubric, PythonMonitorRubric),
        *(RLMMonitorRubric, SandboxMonitorRubric, ToolMonitorRubric),
    )
    return frozenset(name for kind in kinds for name in kind().metric_names)


def _names_asked_for(rubric: Rubric) -> frozenset[str]:
    """Return by which names the functions of a rubric ask for what belongs to a rollout; ``**`` where one takes whatever there is."""
    if isinstance(rubric, RubricGroup):
        return frozenset().union(*map(_names_asked_for, rubric.rubrics))
    functions = [*rubric.functions, *(function for function, _ in rubric.step_scorers())]
    names = {name for function in functions for name in function.plan.names if name not in rubric.class_objects}
    names |= {"**" for function in functions if function.plan.takes_any}
    if any(function.when == "step" and "state" in function.plan.names for function in functions):
        names.add(STATE_OF_TURN)
    return frozenset(names)


def _usage(row: Mapping[str, Any], state: State) -> dict[str, float]:
    """Return the tokens of a row, with those of the judges that scored it now."""
    usage = {name: count for name, count in (row.get("token_usage") or {}).items() if not name.startswith("judge_")}
    judges = state["usage_tracker"].judges
    if judges.requests:
        usage |= {f"judge_{name}": getattr(judges, name) for name in ("input_tokens", "output_tokens", "requests")}
    return usage


def _broke_off(row: Mapping[str, Any]) -> bool:
    """Say whether what ended a rollout is not an `Error`: such a rollout is not scored with its group."""
    return row["error"] is not None and not hasattr(vfgym.errors, row["error"]["error"])


def _has_advantages(row: Mapping[str, Any]) -> bool:
    return is_trajectory(row.get("trajectory")) and any(step.get("advantage") is not None for step in row["trajectory"])


def _has_real_steps(state: State) -> bool:
    return isinstance(dict.get(state, "trajectory"), list) and not any(isinstance(step, PartlyKept) for step in state["trajectory"])


def _asks_for_advantage(state: State) -> bool:
    return isinstance(state, KeptState) and state.had_advantages


def _are_equal(one: float, other: float) -> bool:
    return one == other or (math.isnan(one) and math.isnan(other))
