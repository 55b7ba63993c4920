"""What moves as one in a vector: an environment, or a group of them, and what becomes of its steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gymnasium.vector import AutoresetMode

from vfgym.aio.background import on_background_loop, wait
from vfgym.aio.steps import run_async
from vfgym.envs.seat import Luck
from vfgym.errors import ConfigurationError, EpisodeBusy, ResetNeeded
from vfgym.runs.kept_episodes import OpenedEpisode
from vfgym.vector.groups import TaskGroup
from vfgym.vector.members import VectorMember
from vfgym.vector.running import Running

_NOT_BEGUN, _OVER = "no episode has begun", "its episode is over"


class Units:
    """The units of a vector.

    Everything is called on the background loop, but for the constructor and, in one thread and while nothing happens there (`is_idle`),
    `reset_here` and `step_here`.
    """

    def __init__(self, members: Sequence[VectorMember], size: int) -> None:
        """Let so many environments move as one.

        Args:
            members: The environments.
            size: How many of them, one after another, are a unit; more than one are a `TaskGroup`.
        """
        self._members = members
        self._size = size
        self._groups = [TaskGroup(members[first : first + size]) for first in range(0, len(members), size)] if size > 1 else []
        self._ends_for_good = size == 1 and members[0].resets is AutoresetMode.DISABLED
        """Whether nobody resets an environment whose episode has ended but the caller."""
        self._running = Running()
        self._needs_reset = dict.fromkeys(range(len(members)), _NOT_BEGUN)
        """The environments that cannot be stepped, and why."""

    @property
    def is_idle(self) -> bool:
        """Whether nothing runs, and everything that has run was taken."""
        return not len(self._running)

    async def reset(self, ids: Sequence[int], seeds: Sequence[int | None], options: Sequence[Mapping[str, Any] | None]) -> None:
        """Begin episodes in these environments, whatever they are doing. Seeds and options are those of all environments."""
        units = self._units_of(ids)
        await self._running.cancel(units)
        self._start_resets(ids, units, seeds, options)
        try:
            await self._running.begin()
            await self._running.wait_for(units)
        except BaseException:
            await self._running.cancel(units)
            raise
        self._take(units)

    def reset_here(self, ids: Sequence[int], seeds: Sequence[int | None], options: Sequence[Mapping[str, Any] | None]) -> None:
        """Do what `reset` does in the calling thread (see `Running.take_here`)."""
        units = self._units_of(ids)
        self._start_resets(ids, units, seeds, options)
        try:
            self._running.take_here()
        except BaseException:
            wait(on_background_loop(self._running.cancel, units))
            raise
        self._take(units)

    def _units_of(self, ids: Sequence[int]) -> list[int]:
        return [index // self._size for index in ids if index % self._size == 0]

    def _start_resets(
        self,
        ids: Sequence[int],
        units: Sequence[int],
        seeds: Sequence[int | None],
        options: Sequence[Mapping[str, Any] | None],
    ) -> None:
        self._needs_reset.update(dict.fromkeys(ids, "its reset did not end"))
        for unit in units:
            seed, of_unit = seeds[unit * self._size], options[unit * self._size]
            if self._groups:
                self._running.start_phases(unit, self._groups[unit].reset(seed, of_unit))
            else:
                self._running.start({unit: self._members[unit].reset(seed, of_unit)})

    async def step(self, actions: Mapping[int, Any]) -> Sequence[int]:
        """Play an action in each environment, and return their numbers when all are ready."""
        self._start(actions)
        await self._running.begin()
        await self._running.wait(len(self._running))
        return self._take_ready()

    def step_here(self, actions: Mapping[int, Any]) -> Sequence[int]:
        """Do what `step` does in the calling thread (see `Running.take_here`)."""
        self._start(actions)
        try:
            self._running.take_here()
        except BaseException as error:
            lost = [index for unit in self._running.lost for index in self._ids_of(unit)]
            self._needs_reset.update(dict.fromkeys(lost, f"its step was interrupted by {error!r}"))
            raise
        return self._take_ready()

    async def send(self, actions: Mapping[int, Any]) -> None:
        """Let environments play an action each."""
        self._start(actions)
        self._running.begin_soon()

    def _start(self, actions: Mapping[int, Any]) -> None:
        """Start the steps of environments, once it is known that all of them can take one."""
        size = self._size
        for index in actions if len(self._running) or self._needs_reset else ():
            if self._running.is_busy(index // size):
                raise EpisodeBusy(f"environment {index} was sent an action that was not received yet: recv() or reset() first")
            if index in self._needs_reset:
                raise ResetNeeded(f"environment {index}: {self._needs_reset[index]}: call reset() first")
        if not self._groups:
            members = self._members
            self._running.start({index: members[index].step(action) for index, action in actions.items()})
            return
        units = {index // size for index in actions}
        for unit in units:
            if not all(index in actions for index in self._ids_of(unit)):
                raise ConfigurationError(f"environments {[*self._ids_of(unit)]} are a group: send their actions together")
        for unit in sorted(units):
            self._running.start_phases(unit, self._groups[unit].step([actions[index] for index in self._ids_of(unit)]))

    async def receive(self, min_ready: int, timeout: float | None) -> Sequence[int]:
        """Return the numbers of the environments that are ready, when they are so many."""
        count = -(-min_ready // self._size)
        try:
            await self._running.wait(count, timeout)
        except TimeoutError:
            ready = len(self._running.ready) * self._size
            raise TimeoutError(f"{ready} of {min_ready} environments were ready within {timeout} s; they can be received later") from None
        if len(self._running) < count:
            sent = len(self._running) * self._size
            raise ConfigurationError(
                f"recv waits for {min_ready} environments, and {sent or 'none'} were sent an action that was not received: send() first"
            )
        return self._take_ready()

    async def cancel(self) -> None:
        """Give up what all units do."""
        await self._running.cancel(range(len(self._members) // self._size))

    def check_may_be_kept(self) -> None:
        """Raise if an environment is in the middle of something.

        Raises:
            EpisodeBusy: If one was sent an action that was not received.
            ResetNeeded: If one was broken off.
        """
        for index, member in enumerate(self._members):
            if self._running.is_busy(index // self._size):
                raise EpisodeBusy(f"environment {index} was sent an action that was not received yet: recv() before state_dict()")
            if index in self._needs_reset and member.seat.episode is not None and self._needs_reset[index] != _OVER:
                raise ResetNeeded(f"environment {index} cannot be kept: {self._needs_reset[index]}: call reset() first")

    async def keep(self) -> tuple[list[dict[str, Any]], list[Luck | None]]:
        """Return the episodes of all environments as plain data, and what decides of the next task of each group."""
        self.check_may_be_kept()
        kept = [await run_async(member.keep(f"environment {index}")) for index, member in enumerate(self._members)]
        return kept, [group.luck() for group in self._groups]

    async def go_on(self, kept: Sequence[Any], lucks: Sequence[Luck | None], load: Callable[[], None]) -> None:
        """Go on with episodes that were kept, and with what `load` loads. Where that cannot be, nothing has changed."""
        opened: list[OpenedEpisode] = []
        try:
            for member, each in zip(self._members, kept, strict=True):
                opened.append(await run_async(member.open(each)))
            load()
        except BaseException:
            for episode in opened:
                await run_async(episode.give_up())
            raise
        await self.cancel()
        for member, episode in zip(self._members, opened, strict=True):
            await run_async(member.go_on(episode))
        for group, luck in zip(self._groups, lucks, strict=True):
            group.set_luck(luck)
        self._needs_reset = {}
        for index, member in enumerate(self._members):
            if member.seat.episode is None:
                self._needs_reset[index] = _NOT_BEGUN
            elif member.is_over and self._ends_for_good:
                self._needs_reset[index] = _OVER

    def _ids_of(self, unit: int) -> range:
        return range(unit * self._size, (unit + 1) * self._size)

    def _take_ready(self) -> list[int]:
        """Take all units that are ready; of those that failed the first one, which is raised, and no other."""
        ready = self._running.ready
        units = sorted(ready)
        failed = next((unit for unit, error in ready.items() if error is not None), None)
        self._take(units if failed is None else [failed])
        return [index for unit in units for index in self._ids_of(unit)] if self._groups else units

    def _take(self, units: Sequence[int]) -> None:
        """Take units that are ready.

        Raises:
            Exception: What the first of them raised that failed.
        """
        failures: list[Exception] = []
        for unit in units:
            error = self._running.ready.pop(unit)
            if error is not None:
                failures.append(error)
                self._needs_reset.update(dict.fromkeys(self._ids_of(unit), f"it raised {error!r}"))
            elif self._needs_reset:
                for index in self._ids_of(unit):
                    self._needs_reset.pop(index, None)
        if self._ends_for_good:
            over = [unit for unit in units if self._members[unit].is_over]
            self._needs_reset.update(dict.fromkeys(over, _OVER))
        if failures:
            raise failures[0]
