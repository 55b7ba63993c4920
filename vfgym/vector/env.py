"""`ChatVectorEnv`: many chat environments as one `gymnasium.vector.VectorEnv`, all playing at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias, cast

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from gymnasium.spaces.utils import is_space_dtype_shape_equiv
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import concatenate, create_empty_array

from vfgym.aio.bridge import bridge
from vfgym.aio.threads import allow_workers
from vfgym.errors import ConfigurationError
from vfgym.runs.kept_episodes import (
    check_fits,
    describe_run,
    keep_value,
    load_definitions,
    read_value,
    set_space_numbers,
    space_numbers,
)
from vfgym.runs.replicas import EnvLike, Replicas
from vfgym.runs.spec import check_integer
from vfgym.spaces import MessageSpace
from vfgym.vector.base import InProcessVectorEnv, few_collections
from vfgym.vector.checks import (
    as_actions,
    as_autoreset_mode,
    as_ids,
    as_options,
    as_seeds,
    check_factories,
    check_group_size,
    refuse_action,
)
from vfgym.vector.infos import batch_infos
from vfgym.vector.members import VectorMember
from vfgym.vector.plain import is_known_to_be_plain
from vfgym.vector.units import Units

Stepped: TypeAlias = tuple[Any, npt.NDArray[np.float64], npt.NDArray[np.bool_], npt.NDArray[np.bool_], dict[str, Any]]
"""Observations, rewards, terminations, truncations and infos of several environments."""


_SPACES = ("action_space", "observation_space")


class ChatVectorEnv(InProcessVectorEnv):
    """Chat environments side by side: all that take a step wait together, on one event loop.

    Seeds, ``options["reset_mask"]``, observations, infos and autoreset are as in `gymnasium.vector.SyncVectorEnv`. What is plain runs on
    the background event loop of the process, one environment after another; async hooks and tools, and blocking ones, which have threads,
    are waited for at once. `step` waits for all environments; with `send` and `recv` those that are ready first are answered first.
    Environments of which it is known that nothing in them waits (the library's own with plain tools and reward functions, games that do
    not block) are reset and stepped in the calling thread.

    Where a hook raises what is not a `vfgym.errors.Error`, `step` and `recv` raise it, and that environment (or group) has to be reset.
    What the others returned can be had with `recv`.

    >>> import vfgym
    >>> env = vfgym.SingleTurnEnv([{"question": f"{i} + {i}?", "answer": str(i + i)} for i in range(9)])
    >>> envs = ChatVectorEnv(env, num_envs=3)
    >>> observations, infos = envs.reset(seed=[0, 1, 0])
    >>> observations[0] == observations[2]
    True
    >>> observations, rewards, terminations, truncations, infos = envs.step(["4", "2", "I do not know."])
    >>> terminations.tolist(), infos["final_info"]["stop_condition"].tolist()
    ([True, True, True], ['max_turns_reached', 'max_turns_reached', 'max_turns_reached'])
    >>> envs.close()
    """

    def __init__(
        self,
        env: EnvLike | Sequence[Callable[[], gym.Env[Any, Any]]],
        num_envs: int | None = None,
        *,
        autoreset_mode: AutoresetMode | str = AutoresetMode.SAME_STEP,
        group_size: int = 1,
    ) -> None:
        """Make the environments.

        Args:
            env: A registered id, a spec, a chat environment (inside wrappers or not), a function that makes one, or a list of such
                functions. An environment is played on forks of it, inside wrappers rebuilt like its own, and is not closed.
            num_envs: How many environments; as many as there are functions in a list, else one group.
            autoreset_mode: When an environment whose episode has ended is reset: in the same step (its last observation and info are
                ``infos["final_obs"]`` and ``infos["final_info"]`` then), in the next one, or not at all.
            group_size: So many environments, one after another, begin each task alike, from one seed. One whose episode has ended waits
                for the others: its action is ignored, its reward 0.0, and its flags stay. The step in which the last one ends has
                ``infos["group_reward"]`` and ``infos["group_advantage"]``: what each counts with (see `vfgym.training.samples`), and
                how far that is above the group. The observations are those of the next task then. A rubric that scores whole groups
                scores in that step; what it gives is in the group's rewards alone.

        Raises:
            ConfigurationError: If an argument does not fit, or there cannot be so many of these environments.
        """
        super().__init__()
        self.autoreset_mode = as_autoreset_mode(autoreset_mode)
        self.group_size = check_integer("group_size", group_size, "a positive integer", least=1)
        source: EnvLike
        if isinstance(env, list | tuple):
            check_factories(env, num_envs)
            num_envs, source = len(env), _one_after_another(env)
        else:
            num_envs, source = self.group_size if num_envs is None else num_envs, cast(EnvLike, env)
        self.num_envs = check_integer("num_envs", num_envs, "a positive integer", least=1)
        check_group_size(self.group_size, self.num_envs, self.autoreset_mode)
        self._replicas = Replicas()
        try:
            self._make(source)
        except BaseException:
            self._replicas.close()
            raise
        first = self.envs[0]
        self.metadata = {**first.metadata, "autoreset_mode": self.autoreset_mode}
        self.render_mode = first.render_mode
        allow_workers(self.num_envs)

    def _make(self, source: EnvLike) -> None:
        definition = self._replicas.open(source, {})
        if definition.requires_group_rollouts and self.group_size == 1:
            raise ConfigurationError(
                f"the rubric scores whole groups ({', '.join(definition.rubric.group_function_names)}): say how many environments play a"
                " task together, with group_size"
            )
        in_groups = self.group_size > 1
        defers = in_groups and (definition.requires_group_rollouts or definition.rubric.provides_advantages)
        replicas = [self._replicas.take(defers_scoring=defers) for _ in range(self.num_envs)]
        self._members = [VectorMember(replica, AutoresetMode.DISABLED if in_groups else self.autoreset_mode) for replica in replicas]
        for index, member in enumerate(self._members):
            self._check_alike(index, member.env)
        self._units = Units(self._members, self.group_size)
        self._definitions = [*{id(replica.seat.definition): replica.seat.definition for replica in replicas}.values()]
        self._plays_here = all(member.is_bare for member in self._members) and all(map(is_known_to_be_plain, self._definitions))

    def _check_alike(self, index: int, env: gym.Env[Any, Any]) -> None:
        for name in ("observation_space", "action_space"):
            space, first = getattr(env, name), getattr(self._members[0].env, name)
            if not is_space_dtype_shape_equiv(space, first):
                raise ConfigurationError(f"the environments of a vector must be of one kind: {name} {index} is {space}, the first {first}")

    def close_extras(self, **kwargs: Any) -> None:
        """Give up what runs, and close the environments."""
        self._here_or_on_loop(self._replicas.close, self._close)

    async def _close(self) -> None:
        await self._units.cancel()
        await bridge(self._replicas.close)

    # Episodes

    def reset(self, *, seed: int | Sequence[int | None] | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode in each environment, whatever it is doing.

        Args:
            seed: Seed of the first environment (the next one has the next seed; a group has one), or a list with a seed or None for each.
            options: Options for all environments (see `vfgym.envs.EpisodeSeat.reset`), or a list with those of each. ``reset_mask`` among
                them, an array of booleans, chooses the environments that are reset; the observations of the others are their last ones.

        Returns:
            The observations, and the infos of those that were reset.

        Raises:
            ConfigurationError: If an argument does not fit.
        """
        self._check_open()
        seeds = as_seeds(seed, self.num_envs, self.group_size)
        each, mask = as_options(options, self.num_envs, self.group_size)
        ids = range(self.num_envs) if mask is None else np.flatnonzero(mask).tolist()
        with few_collections(self.num_envs):
            self._here_or_on_loop(self._units.reset_here, self._units.reset, ids, seeds, each)
            chosen = set(ids)
            members = [(member, index in chosen) for index, member in enumerate(self._members)]
            infos = batch_infos([member.last.info if is_new else {} for member, is_new in members])
            return self._batch([member.last.observation if is_new else member.observe_again() for member, is_new in members]), infos

    def step(self, actions: Any) -> Stepped:
        """Play an action in each environment, and wait for all of them.

        Args:
            actions: A list with an action for each environment. One that plays none, since it is reset in this step or waits for its group,
                takes None too.

        Returns:
            Observations (as many conversations), rewards, terminations, truncations, infos.

        Raises:
            InvalidAction: If they are not as many as environments, or one of them is not an action. No environment has moved then, nor
                where one of the following is raised.
            ResetNeeded: If an environment has no episode to continue.
            EpisodeBusy: If an environment was sent an action that was not received.
        """
        with few_collections(self.num_envs):
            given = self._as_actions(actions, range(self.num_envs))
            return self._stepped(self._here_or_on_loop(self._units.step_here, self._units.step, given))

    def send(self, actions: Any, ids: Sequence[int] | npt.NDArray[np.int_]) -> None:
        """Let some environments play an action each, without waiting for them (see `recv`).

        Args:
            actions: A list with an action for each of them.
            ids: The numbers of the environments, from 0; of a group all of them.

        Raises:
            ConfigurationError: If an id is unknown.
            InvalidAction: As in `step`, and with the other errors of `step`.
        """
        given = self._as_actions(actions, as_ids(ids, self.num_envs))
        self._on_loop(self._units.send, given)

    def recv(self, min_ready: int = 1, timeout: float | None = None) -> Stepped:
        """Wait until some of the environments that were sent an action are ready, and return what all that are returned.

        Args:
            min_ready: How many environments to wait for.
            timeout: Seconds to wait; None for no limit.

        Returns:
            What `step` returns, of the environments that are ready; ``infos["env_id"]`` has their numbers, in ascending order.

        Raises:
            TimeoutError: If fewer are ready in time. Those that are can be received later.
            ConfigurationError: If not so many environments were sent an action.
        """
        self._check_open()
        min_ready = check_integer("min_ready", min_ready, "a positive integer", least=1)
        if timeout is not None and (isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout >= 0):
            raise ConfigurationError(f"timeout must be seconds from 0, or None for no limit; got {timeout!r}")
        ids = self._on_loop(self._units.receive, min_ready, timeout)
        stepped = self._stepped(ids)
        stepped[-1]["env_id"] = np.array(ids, dtype=np.int64)
        return stepped

    # Going on in another process

    def state_dict(self) -> dict[str, Any]:
        """Return where all episodes stand, as plain data that JSON, `pickle` and ``torch.save`` can write.

        In it are the episodes with their games, the random numbers, the streams of tasks, what every environment returned last, the
        wrappers, the random numbers of the spaces, and what environments themselves have learned (`ChatEnv.state_dict`). What is yours,
        such as a policy, is not.

        Raises:
            EpisodeNotPicklable: If something cannot be kept; the text says which part, and why.
            EpisodeBusy: If an environment was sent an action that was not received.
            ResetNeeded: If an exception broke an episode off.
        """
        self._check_open()
        kept, lucks = self._on_loop(self._units.keep)
        beside = lucks, [None if name not in vars(self) else space_numbers(vars(self)[name]) for name in _SPACES]
        return {
            "of": self._describe(),
            "episodes": kept,
            "random": keep_value(beside, "what the vector draws from", self._members[0].replica),
            "environments": [definition.state_dict() for definition in self._definitions],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where `state_dict` was called, in this process or another one; what the environments do is given up.

        The state is loaded as a pickle is: load none that a stranger may have written.

        Args:
            state: What `state_dict` of such a vector returned: of the same environment, inside the same wrappers, made with the same
                arguments, by the same version of this library.

        Raises:
            ConfigurationError: If it is the state of something else; the vector stands as it was.
        """
        self._check_open()
        check_fits(state, self._describe(), ("episodes", "random", "environments"))
        lucks, spaces = read_value(state["random"], self._members[0].replica)
        self._on_loop(self._units.go_on, state["episodes"], lucks, lambda: load_definitions(self._definitions, state["environments"]))
        for name, numbers in zip(_SPACES, spaces, strict=True):
            if numbers is not None:
                set_space_numbers(getattr(self, name), numbers)

    def _describe(self) -> dict[str, Any]:
        return describe_run(
            "ChatVectorEnv",
            self._members[0].replica,
            num_envs=self.num_envs,
            group_size=self.group_size,
            autoreset_mode=self.autoreset_mode.value,
        )

    def _as_actions(self, actions: Any, ids: Sequence[int]) -> dict[int, Any]:
        """Return the actions by environment, once they have been checked."""
        self._check_open()
        space = self.single_action_space
        found = as_actions(actions, space if isinstance(space, MessageSpace) else self.action_space, len(ids))
        for index, action in zip(ids, found, strict=True):
            if not space.contains(action):
                refuse_action(index, action, space, is_played=not self._members[index].is_over)
        return dict(zip(ids, found, strict=True))

    def _stepped(self, ids: Sequence[int]) -> Stepped:
        last = [self._members[index].last for index in ids]
        return (
            self._batch([each.observation for each in last]),
            np.array([each.reward for each in last], dtype=np.float64),
            np.array([each.terminated for each in last], dtype=np.bool_),
            np.array([each.truncated for each in last], dtype=np.bool_),
            batch_infos([each.info for each in last]),
        )

    def _batch(self, observations: Sequence[Any]) -> Any:
        space = self.single_observation_space
        batch: Any = create_empty_array(space, n=len(observations))
        return concatenate(space, observations, batch)

    def _check_open(self) -> None:
        if self.closed:
            raise ConfigurationError("the vector environment is closed: make another one")


def _one_after_another(factories: Iterable[Callable[[], gym.Env[Any, Any]]]) -> Callable[[], gym.Env[Any, Any]]:
    """Return a function that calls the next of some functions at each call."""
    remaining = iter(factories)
    return lambda: next(remaining)()
