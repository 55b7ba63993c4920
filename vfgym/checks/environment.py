"""`check_environment`: every promise of the library that can be checked on one environment."""

from __future__ import annotations

import contextlib
import copy
import importlib.util
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env, data_equivalence
from gymnasium.vector import SyncVectorEnv

from vfgym.agents.base import seat_of
from vfgym.aio.background import wait
from vfgym.checks.comparison import Broken, Promise
from vfgym.checks.episodes import (
    SILLY_ANSWERS,
    as_plain,
    episode_of,
    expect_same_episodes,
    play_episode,
    record_episodes,
    timings_of,
)
from vfgym.checks.kept_log import log_kept
from vfgym.checks.round_trips import round_trips
from vfgym.clients.scripted import ScriptedClient
from vfgym.envs import ChatEnv
from vfgym.envs.seat import EpisodeSeat
from vfgym.errors import ConfigurationError, InvalidAction, OverlongPromptError
from vfgym.foreign import mute_warnings
from vfgym.messages import Response
from vfgym.rubrics.scoring import Score, apply_score
from vfgym.runs.replicas import as_env, make_env
from vfgym.state import State
from vfgym.wrappers.gymnasium.game import GymnasiumGame
from vfgym.wrappers.pettingzoo.env import PettingZooEnv
from vfgym.wrappers.to_chat import to_chat

logger = logging.getLogger(__name__)

_LONGEST_MESSAGE = 150
"""Characters of what the log says in the detail of a check."""

_NO_ACTIONS: tuple[Any, ...] = (None, 7, [], {"role": "user", "content": "I am no assistant"}, {"content": "no role"})


class Check(NamedTuple):
    """One promise, and whether it holds."""

    promise: str
    passed: bool
    detail: str


def check_environment(env: str | EnvSpec | Callable[[], gym.Env[Any, Any]]) -> list[Check]:
    """Check one environment against every promise that concerns it.

    Checks answer with what no model would say, on purpose. What the library logs for them is not shown, but stands in the ``detail`` of the
    check that first brought it about; tracebacks are logged for debugging.

    Args:
        env: An id, a spec, or a function that makes the environment. The id or spec of a Gymnasium game stands for what `to_chat`
            makes of it.

    Returns:
        A row for each promise. A promise that does not apply (a spec, where there is none) is left out.

    Raises:
        ConfigurationError: If there is no chat environment to check.
    """
    checked = CheckedEnvironment(env)
    return [checked.carry_out(promise) for promise in checked.list_promises()]


class CheckedEnvironment:
    """An environment that is made anew for each check."""

    def __init__(self, env: str | EnvSpec | Callable[[], gym.Env[Any, Any]]) -> None:
        """Make it once, to see which promises concern it.

        Args:
            env: As for `check_environment`.

        Raises:
            ConfigurationError: If there is no chat environment to check.
        """
        self._make_one = _maker(env)
        self._made: list[gym.Env[Any, Any]] = []
        """What was made for the check that runs."""
        self._known: set[str] = set()
        """What earlier checks have told of the log."""
        probe = self._make_one()
        self.spec, self.definition = probe.spec, seat_of(probe).definition
        probe.close()

    def make(self) -> gym.Env[Any, Any]:
        """Make the environment, for the check that runs."""
        self._made.append(self._make_one())
        return self._made[-1]

    def list_promises(self) -> list[Promise]:
        """Return the promises of the library that concern this environment."""
        make, definition, spec = self.make, self.definition, self.spec
        if definition.requires_group_rollouts:
            return [("can be stepped alone", _cannot_be_stepped)]
        promises: list[Promise] = [
            ("passes gymnasium's check_env without a warning", lambda: _check_env(make)),
            ("replays the same episodes under a seed", lambda: _replays(make)),
            ("accepts every member of its action space", lambda: _accepts_members(make)),
            ("refuses what is not an action, and leaves the episode as it was", lambda: _refuses_others(make)),
            ("its step rewards add up to the rubric's score", lambda: _adds_up(make)),
            ("its reward functions score any answer, and an episode without one", lambda: _scores_all(make)),
            ("calls each reward function and each cleanup handler once for an episode", lambda: _calls_once(make)),
            ("tells no answer in info", lambda: _keeps_the_answer(make)),
            ("forks do not see each other's episodes", lambda: _forks_apart(make)),
            ("step() and rollout() give equal states", lambda: _same_states_both_ways(make)),
            ("runs in SyncVectorEnv", lambda: _vectorizes(make)),
        ]
        if isinstance(definition, GymnasiumGame | PettingZooEnv):
            promises.append(("tells what its actions and observations are", lambda: _is_playable(definition)))
        promises += round_trips(definition, make)
        if spec is not None:
            promises.insert(1, ("its spec survives JSON", lambda: _survives_json(spec)))
        return promises

    def carry_out(self, promise: Promise) -> Check:
        """Carry out one check, and close the environments that it made, however it ended."""
        name, check = promise
        with log_kept() as records:
            try:
                detail, passed = check(), True
            except Exception as error:
                detail, passed = str(error) if isinstance(error, Broken) else repr(error), False
            finally:
                while self._made:
                    with contextlib.suppress(Exception):
                        self._made.pop().close()
        new = []
        for record in records:
            logger.debug("while it was checked that it %s: %s", name, record.getMessage(), exc_info=record.exc_info)
            told = record.getMessage().partition("\n")[0][:_LONGEST_MESSAGE]
            if record.levelno >= logging.WARNING and told not in self._known:
                self._known.add(told)
                new.append(told)
        return Check(name, passed, "; ".join([*([detail] if detail else []), *(f"logged: {told}" for told in new)]))


def _cannot_be_stepped() -> str:
    raise Broken("the rubric scores whole groups: evaluate it with rollouts_per_example > 1")


def _maker(env: str | EnvSpec | Callable[[], gym.Env[Any, Any]]) -> Callable[[], gym.Env[Any, Any]]:
    if isinstance(env, str | EnvSpec):
        return lambda: _make_chat(env)
    if not callable(env):
        raise ConfigurationError(
            f"check_environment takes an id, a spec, or a function that makes the environment anew each time, got {type(env).__name__}"
        )
    return lambda: as_env(env())


def _make_chat(source: str | EnvSpec) -> gym.Env[Any, Any]:
    """Make a registered environment; of a game, the chat environment that `to_chat` makes of it."""
    made = make_env(source, {})
    if isinstance(made.unwrapped, EpisodeSeat):
        return made
    made.close()
    with mute_warnings():  # of a prompt that tells too little, which is a finding here
        return as_env(to_chat(source))


def _check_env(make: Callable[[], gym.Env[Any, Any]]) -> str:
    env = make()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        can_draw = importlib.util.find_spec("PIL") is not None  # which every environment needs for its pictures
        check_env(env.unwrapped, skip_render_check=env.spec is None or not can_draw)
    return "" if can_draw else "not how it is rendered, since Pillow is not installed"


def _survives_json(spec: EnvSpec) -> str:
    again = EnvSpec.from_json(spec.to_json())
    if again != spec:
        raise Broken(f"{spec} came back as {again}")
    gym.make(again).close()
    return ""


def _replays(make: Callable[[], gym.Env[Any, Any]]) -> str:
    first, second = (record_episodes(make()) for _ in range(2))
    expect_same_episodes(first, second, "two runs")
    return f"{len(first)} episodes"


def _accepts_members(make: Callable[[], gym.Env[Any, Any]]) -> str:
    env = make()
    for action in SILLY_ANSWERS:
        if action not in env.action_space:
            raise Broken(f"{action!r:.80} is an assistant message, but not in the action space")
        env.reset(seed=0)
        observation, reward, *_ = env.step(action)
        if observation not in env.observation_space or not isinstance(reward, float):
            raise Broken(f"{action!r:.80} gave an observation outside its space, or a reward that is not a float")
    return f"{len(SILLY_ANSWERS)} silly answers"


def _refuses_others(make: Callable[[], gym.Env[Any, Any]]) -> str:
    env = make()
    before, _ = env.reset(seed=0)
    for action in _NO_ACTIONS:
        if action in env.action_space:
            raise Broken(f"{action!r} is not an assistant message, but in the action space")
        try:
            env.step(action)
        except InvalidAction:
            continue
        raise Broken(f"{action!r} was accepted")
    if episode_of(env).conversation() != before:
        raise Broken("the episode changed")
    return f"{len(_NO_ACTIONS)} wrong answers"


def _adds_up(make: Callable[[], gym.Env[Any, Any]]) -> str:
    env = make()
    env.action_space.seed(1)
    for seed in range(3):
        total = 0.0
        for turn in play_episode(env, seed)[1:]:
            total += turn[2]
        if not episode_of(env).is_over:
            total += seat_of(env).truncate().reward
        score = episode_of(env).state["reward"]
        if total != score:
            raise Broken(f"the steps emitted {total}, the score is {score}")
    return "3 episodes"


def _scores_all(make: Callable[[], gym.Env[Any, Any]]) -> str:
    """Look for reward functions that raise: a rollout in which one with a weight does has failed, whoever played it."""
    env = make()
    env.action_space.seed(1)
    sampled = tuple(env.action_space.sample() for _ in range(3))
    for answers in ((), *((answer,) for answer in (*SILLY_ANSWERS, *sampled))):
        env.reset(seed=0)
        for answer in answers:
            env.step(answer)
        seat = seat_of(env)
        if not episode_of(env).is_over:
            seat.truncate()
        state = episode_of(env).state
        if state.has_reward_error:
            what = "; ".join(f"{name} raised {error}" for name, error in state["metrics_errors"].items())
            where = f"after the answer {answers[0]!r:.80}" if answers else "in an episode that ended before the first answer"
            raise Broken(f"{what} {where}: return a number there, too, 0.0 say")
    return f"{1 + len(SILLY_ANSWERS) + len(sampled)} episodes"


def _keeps_the_answer(make: Callable[[], gym.Env[Any, Any]]) -> str:
    env = make()
    _, info = env.reset(seed=0)
    answer = episode_of(env).state.get("answer")
    infos = [info, *(turn[5] for turn in play_episode(env, 0)[1:])]
    for told in infos:
        if "answer" in told or any(_holds(value, answer) for key, value in told.items() if key not in ("tools", "metrics", "error")):
            raise Broken(f"the answer {answer!r} stands in info")
    return ""


def _holds(value: Any, answer: Any) -> bool:
    """Say whether the text of an answer stands somewhere in `value`."""
    if isinstance(value, Mapping):
        return any(_holds(item, answer) for item in value.values())
    if isinstance(value, list | tuple):
        return any(_holds(item, answer) for item in value)
    return isinstance(answer, str) and answer != "" and isinstance(value, str) and value == answer


def _forks_apart(make: Callable[[], gym.Env[Any, Any]]) -> str:
    env = make()
    first = seat_of(env)
    alone = []
    for seed in (5, 6):
        seat = first.fork()
        seat.action_space.seed(seed)
        alone.append(play_episode(seat, seed))
        seat.close()
    seats = [first.fork(), first.fork()]
    together: list[list[Any]] = [[seat.reset(seed=seed)] for seat, seed in zip(seats, (5, 6), strict=True)]
    for turn in range(1, max(map(len, alone))):
        for seat, history, played in zip(seats, alone, together, strict=True):
            if turn < len(history):
                played.append((history[turn][0], *seat.step(history[turn][0])))
    for seat in seats:
        seat.close()
    timings = timings_of(env)
    if as_plain(alone, timings) != as_plain(together, timings):
        raise Broken("two forks played in turns differ from the same two played one after the other")
    return "2 forks"


def _same_states_both_ways(make: Callable[[], gym.Env[Any, Any]]) -> str:
    env = make()
    definition = seat_of(env).definition
    seat = seat_of(env).fork()  # without the wrappers, which a rollout knows nothing of
    seat.action_space.seed(11)
    history = play_episode(seat, 0)
    options = {"example_id": history[0][1]["example_id"]}
    actions = [turn[0] for turn in history[1:]]
    seat.reset(seed=0, options=options)
    before = copy.deepcopy(seat.np_random.bit_generator.state)
    for action in actions:
        seat.step(action)
    if not data_equivalence(before, seat.np_random.bit_generator.state):
        return "not compared: its episodes draw from state.rng, which a rollout has no seed for"
    episode = episode_of(seat)
    if not episode.is_over:
        seat.fail(OverlongPromptError(_CUT_OFF))
    timings = timings_of(env)
    rolled = wait(_play_rollout(definition, definition.choose_task(None, options) or {}, actions))
    for key in _COMPARED:
        if as_plain(episode.state.get(key), timings) != as_plain(rolled.get(key), timings):
            raise Broken(f"state[{key!r}] is {episode.state.get(key)!r:.100} when stepped and {rolled.get(key)!r:.100} when rolled out")
    seat.close()
    return f"{len(actions)} turn(s)"


_CUT_OFF = "the episode is cut off here"


class _CutOffClient(ScriptedClient):
    """Ends an episode that goes on after its script, as one does whose conversation has become too long."""

    async def get_response(self, *args: Any, **kwargs: Any) -> Response:
        """Return the answer for this turn."""
        if len(kwargs["state"]["trajectory"]) == len(self.answers):
            raise OverlongPromptError(_CUT_OFF)
        return await super().get_response(*args, **kwargs)


async def _play_rollout(definition: ChatEnv, row: dict[str, Any], actions: list[Any]) -> State:
    state = await definition.rollout(row, _CutOffClient(actions), "scripted")
    if definition.score_rollouts:
        await definition.rubric.score_rollout(state)
    else:
        apply_score(state, Score())
    return state


_COMPARED = ("prompt", "completion", "reward", "metrics", "stop_condition", "is_completed", "is_truncated", "error", "answer", "example_id")


def _is_playable(game: GymnasiumGame | PettingZooEnv) -> str:
    if game.prompt_problems:
        raise Broken("; ".join(game.prompt_problems))
    return ""


def _vectorizes(make: Callable[[], gym.Env[Any, Any]]) -> str:
    env = SyncVectorEnv([make, make])
    observations, _ = env.reset(seed=0)
    env.action_space.seed(0)
    for _ in range(4):
        observations, *_ = env.step(env.action_space.sample())
    if len(observations) != 2:
        raise Broken(f"two environments gave {len(observations)} observations")
    env.close()
    return "2 environments"


class _Counted:
    """Counts the calls of a reward function, or of a cleanup handler (which scores nothing)."""

    def __init__(self, func: Callable[..., Any], name: str, scores: str | None = None) -> None:
        self.func = func
        self.name = name
        self.scores = scores
        self.calls = 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.calls += 1
        return self.func(*args, **kwargs)


@contextlib.contextmanager
def _count_calls(definition: ChatEnv) -> Iterator[list[_Counted]]:
    """Count the calls of reward functions and cleanup handlers."""
    functions = definition.rubric.functions
    functions += [function for function, _ in definition.rubric.step_scorers()]
    handlers = definition.hooks.cleanups
    own_handlers = handlers.copy()
    own_funcs = [function.plan.func for function in functions]
    counted_funcs = [_Counted(function.plan.func, function.name, function.when) for function in functions]
    counted_handlers = [_Counted(handler.call, handler.name) for handler in handlers]
    try:
        for function, counted in zip(functions, counted_funcs, strict=True):
            function.plan.func = counted
        handlers[:] = [handler._replace(call=counted) for handler, counted in zip(handlers, counted_handlers, strict=True)]
        yield counted_funcs + counted_handlers
    finally:
        handlers[:] = own_handlers
        for function, func in zip(functions, own_funcs, strict=True):
            function.plan.func = func


def _calls_once(make: Callable[[], gym.Env[Any, Any]]) -> str:
    env = make()
    seat = seat_of(env)
    with _count_calls(seat.definition) as counted:
        env.action_space.seed(5)
        turns = len(play_episode(env, 0)) - 1
        seat.truncate()  # one that is over already is left as it is
        _expect_calls(counted, "an episode that was played", is_scored=seat.definition.score_rollouts, turns=turns)
        env.reset(seed=1)
        seat.truncate()
        _expect_calls(counted, "an episode that was truncated", is_scored=seat.definition.score_rollouts, turns=0)
        env.reset(seed=2)
        env.close()
        _expect_calls(counted, "an episode that was abandoned", is_scored=False, turns=0)
    return f"{len(counted)} functions"


def _expect_calls(counted: list[_Counted], kind: str, *, is_scored: bool, turns: int) -> None:
    """Compare the calls for one episode with those that there should be, and count from 0 again."""
    for function in counted:
        expected = 1 if function.scores is None else is_scored * (turns if function.scores == "step" else 1)
        if function.calls != expected:
            raise Broken(f"{function.name} was called {function.calls} times, not {expected}, for {kind}")
        function.calls = 0
