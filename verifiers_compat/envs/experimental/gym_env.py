"""`GymEnv`: any class with `reset` and `step` as an environment with the rollout API."""

from __future__ import annotations

import copy
import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import gymnasium

from verifiers_compat.envs.awaitables import awaitable_stop
from verifiers_compat.envs.seeded_game import SeededGameEnv
from vfgym.errors import ConfigurationError
from vfgym.lifecycle import stop
from vfgym.messages import Message, as_messages, content_text
from vfgym.parsers import Parser
from vfgym.rubrics import Rubric
from vfgym.state import State, TrajectoryStep
from vfgym.wrappers.games.game import GameEnv
from vfgym.wrappers.games.turns import Turn
from vfgym.wrappers.gymnasium.copies import GymnasiumEpisode
from vfgym.wrappers.gymnasium.game import FAST_GAMES
from vfgym.wrappers.gymnasium.old_gym import normalize_reset as normalize_reset
from vfgym.wrappers.gymnasium.old_gym import normalize_step as normalize_step
from vfgym.wrappers.gymnasium.old_gym import reset_game

Content: TypeAlias = str | list[dict[str, Any]]

_DOCUMENTED_MOST_STEPS = 1000


class StepResetEnv(Protocol):
    """What `GymEnv` plays: the API of Gymnasium, that of the older Gym, or just these two methods. It may have `close` too.

    As in the older Gym, `reset` may take no seed. Then the seed is given to the method ``seed`` before it, where there is one; a game
    that has neither begins as it likes.
    """

    def reset(self, *, seed: int) -> Any:
        """Begin an episode, and return its first observation, alone or as ``(observation, info)``."""
        ...

    def step(self, action: Any) -> tuple[Any, ...]:
        """Play an action.

        Returns:
            ``(observation, reward, terminated, truncated, info)``, or the older ``(observation, reward, done, info)``.
        """
        ...


def sum_step_rewards(state: State) -> float:
    """Return the sum of the rewards of an episode's steps; a step without one counts as 0."""
    # From left to right, as the steps emit them: `sum` compensates for rounding from Python 3.12 on.
    return functools.reduce(operator.add, (float(step["reward"] or 0.0) for step in state["trajectory"]), 0.0)


class EpisodicSumRubric(Rubric):
    """Rewards an episode with the sum of its steps' rewards (`sum_step_rewards`).

    A reward that is known when its step is made is emitted with it; what comes to be known later, at the end.
    """

    def __init__(self, weight: float = 1.0, **kwargs: Any) -> None:
        """Make the rubric.

        Args:
            weight: Factor of the sum.
            **kwargs: Passed to `Rubric`.
        """
        super().__init__(**kwargs)
        self.add_step_reward_func(_step_reward, weight)
        self.add_reward_func(_not_emitted, weight)


def _step_reward(step: TrajectoryStep) -> float:
    return step["reward"] or 0.0


def _not_emitted(state: State) -> float:
    return sum_step_rewards(state) - state.step_metrics.get(sum_step_rewards.__name__, 0.0)


# They are parts of one metric: those of the same name are added up.
_step_reward.__name__ = _not_emitted.__name__ = sum_step_rewards.__name__


class GymEnv(SeededGameEnv, GameEnv):
    """Any game with `reset` and `step` as an environment, for rollouts and as a `gymnasium.Env`.

    A task is a seed, which stands in its ``answer``: training has those from `seed` on, evaluation those that follow. What the model
    writes is played at once, as its turn is recorded, so there are as many model calls as moves, and the last one that a limit
    allows counts. A move's reward is in ``trajectory[i]["reward"]``, the game's ``info`` in ``trajectory[i]["extras"]["gym_info"]``.

    ``state["gym_done"]`` says whether the game is over.

    As a `gymnasium.Env`, `reset` with a seed plays the game of this very seed, and without one the next task.

    >>> import gymnasium
    >>> env = GymEnv(gymnasium.make, {"id": "FrozenLake-v1", "is_slippery": False}, action_parser=int, num_train_episodes=10)
    >>> conversation, info = env.reset(seed=7)
    >>> conversation[-1].content, env.step("2").reward
    ('0', 0.0)
    """

    _episode_type = GymnasiumEpisode

    def __init__(
        self,
        env_cls: Callable[..., Any],
        env_kwargs: Mapping[str, Any] | None = None,
        action_parser: Callable[[str], Any] | None = None,
        obs_to_text: Callable[[Any], Content] | None = None,
        num_train_episodes: int = 1000,
        num_eval_episodes: int = 20,
        max_episode_steps: int | None = None,
        seed: int = 0,
        system_prompt: str | None = None,
        few_shot: Sequence[Mapping[str, Any]] | None = None,
        parser: Parser | None = None,
        rubric: Rubric | None = None,
        message_type: str = "chat",
        **kwargs: Any,
    ) -> None:
        """Define an environment. No game is made before one is played.

        Args:
            env_cls: Makes a game: a class, ``gymnasium.make``, or any function (see `StepResetEnv` for what it must return).
            env_kwargs: Its arguments, ``{"id": "CartPole-v1"}`` say.
            action_parser: Makes an action of what the model answered; the text itself without it. Whatever it raises ends the episode,
                with the message ``Action Parsing Error: ...`` and no reward for that turn.
            obs_to_text: Makes text (or content parts) of an observation, instead of the method of this name; `str` without either.
            num_train_episodes: Number of training tasks.
            num_eval_episodes: Number of evaluation tasks; where it is 0, evaluation uses the training tasks.
            max_episode_steps: Most moves of an episode; 1000 without it.
            seed: Seed of the first task.
            system_prompt: Put before the first observation.
            few_shot: Messages between the system prompt and the first observation.
            parser: Finds the answer in the model's message. Where it finds none, the whole text is the answer.
            rubric: Scores episodes; an `EpisodicSumRubric` without it.
            message_type: ``"chat"``, or ``"completion"`` for text prompts.
            **kwargs: Passed to `vfgym.GameEnv`: ``history``, or ``blocking`` (in async runs a game lives on a thread of its own,
                but for Gymnasium's toy texts and classic control; ``blocking=False`` keeps any other that takes no time off it).

        Raises:
            ConfigurationError: If an argument does not fit.
        """
        self._refuse(kwargs)
        if not callable(env_cls):
            raise ConfigurationError(
                f"env_cls must be a class or a function that makes a game, got {env_cls!r}."
                ' A registered one is made by gymnasium.make with env_kwargs={"id": ...}.'
            )
        if max_episode_steps is not None and "max_turns" in kwargs:
            raise ConfigurationError("max_episode_steps and max_turns limit the same: give one of them")
        self.env_cls = env_cls
        self.env_kwargs = dict(env_kwargs or {})
        self.action_parser = action_parser
        if obs_to_text is not None:
            self.__dict__["obs_to_text"] = obs_to_text
        kwargs.setdefault("blocking", not _find_maker(env_cls, self.env_kwargs).startswith(FAST_GAMES))
        kwargs.setdefault("max_turns", _DOCUMENTED_MOST_STEPS if max_episode_steps is None else max_episode_steps)
        super().__init__(
            numbers={"num_train_episodes": num_train_episodes, "num_eval_episodes": num_eval_episodes},
            seed=seed,
            system_prompt=system_prompt,
            few_shot=few_shot,
            parser=parser,
            rubric=EpisodicSumRubric(parser=parser) if rubric is None else rubric,
            message_type=message_type,
            **kwargs,
        )

    # The game

    def obs_to_text(self, obs: Any) -> Content:
        """Return an observation as text (or content parts). Override it, or give a function as the argument of this name."""
        return str(obs)

    def open_game(self) -> Any:
        """Make a game."""
        return self.env_cls(**self.env_kwargs)

    def begin_game(self, game: Any, state: State, seed: int | None, options: Mapping[str, Any] | None) -> list[Message]:
        """Reset the game with this seed, and return the prompt."""
        observation, state["gym_info"] = reset_game(game, seed, options)
        state["gym_done"] = False
        few_shot = as_messages(self.few_shot or [], self.message_types, name="few_shot")
        return [*few_shot, *self._to_messages(self.obs_to_text(observation))]

    def make_move(self, game: Any, message: Message, state: State) -> Turn:
        """Play what the model answered, and return what came of it."""
        answer = self.parser.parse_answer([message])
        text = content_text(message["content"]) if answer is None else answer
        try:
            action = text if self.action_parser is None else self.action_parser(text)
        except Exception as error:
            state["gym_done"] = True
            return Turn(self._to_messages(f"Action Parsing Error: {error}"), terminated=True, is_valid=False)
        observation, reward, terminated, truncated, info = normalize_step(game.step(action))
        state["gym_info"] = state["trajectory"][-1]["extras"]["gym_info"] = info
        state["gym_done"] = bool(terminated or truncated)
        return Turn(self._to_messages(self.obs_to_text(observation)), reward, terminated, truncated, info)

    def _to_messages(self, text: Content) -> list[Message]:
        return [self.message_types["user" if self.message_type == "chat" else "text"](text)]

    # How it ends

    @awaitable_stop
    @stop(priority=60)  # before `game_over`, which is what other games call it
    def is_done(self, state: State) -> bool:
        """Stop when the game is over: ``state["gym_done"]``, which an author's hook may write too."""
        return bool(state.get("gym_done"))

    _game_stops = GameEnv._game_stops | {"is_done"}

    def step_info(self, state: State) -> dict[str, Any]:
        """Tell the game's own info."""
        return {"gym_info": copy.deepcopy(state["gym_info"])}


def _find_maker(env_cls: Callable[..., Any], env_kwargs: Mapping[str, Any]) -> str:
    """Return the module that makes a game, as far as it can be told before one is made."""
    if env_cls is gymnasium.make and "id" in env_kwargs:
        given = env_kwargs["id"]
        creator: Any = (gymnasium.spec(given) if isinstance(given, str) else given).entry_point
    else:
        creator = env_cls
    return creator if isinstance(creator, str) else str(getattr(creator, "__module__", ""))
