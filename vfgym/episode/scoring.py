"""Scoring episodes that were played, alone or with the others of their task, whoever played them."""

from __future__ import annotations

import time
from collections.abc import Iterable

from vfgym.aio.steps import Steps
from vfgym.calls import rollout_failure
from vfgym.episode.definition import Definition
from vfgym.episode.endings import settle_ending
from vfgym.rubrics.rubric import call_author_scoring, clean_up_after
from vfgym.rubrics.scoring import Score, StepScorer, apply_advantages, apply_score, number_from, value_of_turn
from vfgym.state import State, TrajectoryStep


def score_turn(scorers: Iterable[StepScorer], state: State, step: TrajectoryStep) -> Steps[float]:
    """Call the step functions on one turn, and return what it emits."""
    reward, sums = 0.0, state.step_metrics
    for function, class_objects in scorers:
        value = value_of_turn(function, class_objects, state, step)
        if value.__class__ is not float:
            value = yield from number_from(function, value, state)
        sums[function.name] += value
        if function.weight:
            reward += function.weight * value
    return reward


def _score_turns(definition: Definition, state: State) -> Steps[None]:
    """Call the step functions on each turn of an author's own loop; the library's calls them while it plays."""
    scorers = definition.rubric.step_scorers()
    state.step_metrics = {function.name: 0.0 for function, _ in scorers}
    for step in state["trajectory"]:
        state.emitted.append((yield from score_turn(scorers, state, step)))


def score_alone(definition: Definition, state: State) -> Steps[None]:
    """Score one episode that was played. The rubric cleans up after it, also where that fails."""
    timing = state["timing"]
    timing.generation.start = timing.generation.start or timing.start_time
    scoring = timing.scoring
    scoring.start = time.time()
    if definition.score_rollouts:
        try:
            yield from _score_alone(definition, state)
        except GeneratorExit:
            raise
        except BaseException:
            yield from clean_up_after(definition.rubric, state)
            raise
        yield from clean_up_after(definition.rubric, state)
    else:
        apply_score(state, Score())
    _settle_scored(definition, state)
    scoring.end = time.time()


def _settle_scored(definition: Definition, state: State) -> None:
    """Let an episode have failed whose reward function did."""
    if state["is_completed"]:
        settle_ending(definition, state)


def _score_alone(definition: Definition, state: State) -> Steps[None]:
    rubric = definition.rubric
    if not state.emitted:
        yield from _score_turns(definition, state)
    by_author = call_author_scoring(rubric, [state], as_group=False)
    if by_author is None:
        yield from rubric.score_alone_steps(state)
    else:
        apply_score(state, (yield from by_author)[0])


def score_together(definition: Definition, states: list[State]) -> Steps[list[Exception | None]]:
    """Score the episodes of one task that were played, with their advantages.

    Returns:
        For each episode, what was raised that ends its rollout and no other's (see `Score.failure`); None where nothing was.
    """
    started = time.time()
    rubric = definition.rubric
    failures: list[Exception | None] = [None] * len(states)
    if definition.score_rollouts:
        for index, state in enumerate(states):
            if not state.emitted:
                try:
                    yield from _score_turns(definition, state)
                except BaseException as error:
                    failures[index] = rollout_failure(error)
        scores = yield from (call_author_scoring(rubric, states, as_group=True) or rubric.group_scoring_steps(states))
    else:
        scores = [Score() for _ in states]
    for state, score in zip(states, scores, strict=True):
        apply_score(state, score)
        _settle_scored(definition, state)
    if not (definition.score_rollouts and rubric.provides_advantages):
        apply_advantages(states)
    if definition.score_rollouts:
        for state in states:
            yield from clean_up_after(rubric, state)
    ended = time.time()
    for state in states:
        timing = state["timing"]
        timing.generation.start = timing.generation.start or timing.start_time
        timing.scoring.start, timing.scoring.end = started, ended
    return [failure or score.failure for failure, score in zip(failures, scores, strict=True)]
