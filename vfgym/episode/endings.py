"""Decides how an episode ended: the one place that does, when play ends and once more when it is scored."""

from __future__ import annotations

from typing import Protocol

from vfgym.calls import rollout_failure
from vfgym.endings import CUT_STOPS, UNREADABLE, Ending, failure_cause
from vfgym.errors import ConfigurationError, FailureCause, did_you_mean
from vfgym.state import State, write

_TO_SAY = (Ending.TERMINATED, Ending.TRUNCATED)
"""What an environment may say itself."""


class _Ends(Protocol):
    """What is asked of an environment."""

    @property
    def failure_reward(self) -> float | None: ...

    def end_flags(self, state: State) -> tuple[bool, bool]: ...


def settle_ending(definition: _Ends, state: State) -> None:
    """Decide how an episode that is over ended, and what it counts with where it failed or was cut.

    What failed is told by errors, what was cut by the stop condition. All else is for the environment to say: by ``state["ending"]``,
    which its hooks may set to ``"terminated"`` or ``"truncated"``, else by its `end_flags`. An ending that a hook makes up is an error, by
    which the episode fails.
    """
    said = state.get("ending")
    if said is not None and said not in _TO_SAY and said != state.ending:
        error = ConfigurationError(
            f"a hook wrote {said!r:.80} into state['ending']: it may write {' or '.join(repr(str(each)) for each in _TO_SAY)}; what was"
            f" cut or failed is told by the stop condition and by errors.{did_you_mean(str(said), _TO_SAY)}"
        )
        write(state, {"error": state["error"] or error, "stop_condition": "has_error"})
        state.failure_cause = state.failure_cause or "environment"
    cause = _cause(state)
    if cause is not None:
        ending = Ending.of_cause(cause)
    elif state["stop_condition"] in CUT_STOPS:
        ending = Ending.CUT
    elif said in _TO_SAY:
        ending = Ending(said)
    else:
        ending = Ending.TERMINATED if definition.end_flags(state)[0] else Ending.TRUNCATED
    _write(definition, state, ending)


def _cause(state: State) -> FailureCause | None:
    if state.failure_cause is not None:
        return state.failure_cause
    if state["error"] is not None:  # that an author's hook wrote there
        return failure_cause(state["error"], otherwise="environment")
    return "policy" if state["stop_condition"] == UNREADABLE else state.reward_failure_cause


def _write(definition: _Ends, state: State, ending: Ending) -> None:
    state.ending = ending
    state["ending"] = str(ending)
    state.failure_reward = None if ending.counts_with_return else definition.failure_reward


def fail_ending(definition: _Ends, state: State, failure: BaseException) -> Exception:
    """Let an episode have failed by what was raised, where that is not in its state; return it as what is recorded.

    Raises:
        BaseException: The error itself, where it ends the whole run.
    """
    error = rollout_failure(failure)
    if state.failure_cause is None:
        state.failure_cause = failure_cause(error, otherwise="environment")
    _write(definition, state, Ending.of_cause(state.failure_cause))
    return error


def end_flags(definition: _Ends, state: State) -> tuple[bool, bool]:
    """Return ``(terminated, truncated)`` of an episode, as `gymnasium.Env.step` does; ``(False, False)`` while it has no ending.

    An environment's own flags are passed on as they are: a game may say both.
    """
    ending = state.ending
    if ending is None:
        return False, False
    if not ending.counts_with_return:
        return ending.flags
    own = definition.end_flags(state)
    return own if own[0] == (ending is Ending.TERMINATED) else ending.flags
