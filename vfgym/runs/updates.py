"""How rollouts go on while their policy is updated: who waits, what is given up, how many groups may begin, and which are too old.

A learner may update the policy between any two groups that it takes. What is under way then has turns of two versions, or is dropped, or
was finished before (`OnUpdate`); and what was played too many versions ago is played again (`PolicyUpdates.staleness`).
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Iterable, Iterator, Mapping
from typing import Any, Literal, TypeAlias, TypeVar

from vfgym.aio.background import wait
from vfgym.episode import BaseEpisode
from vfgym.errors import ConfigurationError, Error

T = TypeVar("T")

OnUpdate: TypeAlias = Literal["continue", "finish", "drop"]
"""What becomes of rollouts that are under way when the policy changes: they go on under the new version, as each of their turns tells; they
are finished under the old one before `RolloutStream.pause` returns; or they are dropped, and played again."""


class Superseded(Error):
    """A rollout was given up because the policy changed while it was played. It is played again."""


class _Signal:
    """Wakes everybody who waits for a change, in the order in which they came."""

    def __init__(self) -> None:
        self._waiting: list[asyncio.Future[None]] = []

    async def wait(self) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        await future

    def wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)


class PolicyUpdates:
    """Knows the versions of a policy, who is asked and what is played right now, and what begins and goes on.

    Groups begin no earlier than they can be fresh: the last update told how many are taken for one, so that many begin for each version
    that may pass. Until the first update, and when more are taken than before, groups begin while somebody waits for one.
    """

    def __init__(self, policy: Any, max_staleness: int | None, on_update: OnUpdate) -> None:
        """Watch a policy.

        Args:
            policy: Who answers; its ``policy_version`` says which version of it does.
            max_staleness: Most versions that a turn may be old when its group is delivered; None for any number.
            on_update: What becomes of rollouts that are under way.

        Raises:
            ConfigurationError: If versions are to be counted, and there is none.
        """
        self._policy, self._max, self.on_update = policy, max_staleness, on_update
        self.replayed: Counter[str] = Counter()
        """How many rollouts were played again, by the reason."""
        self._changed = _Signal()
        self._is_paused = self._is_taking = False
        self._num_playing = self._num_asking = self._drops = 0
        self._num_held = self._num_standing = 0
        """How many rollouts are held before a turn, and how many callers want all to stand there."""
        self._answers: set[asyncio.Future[Any]] = set()
        """Answers that are awaited, and may be dropped."""
        self._dropped: set[asyncio.Future[Any]] = set()
        self._begun: set[int] = set()
        """The groups that have begun and were not delivered, by their place."""
        self._num_delivered = 0
        """How many groups were delivered under this version."""
        self._num_per_update: int | None = None
        """How many were delivered under the version before; None until the first update."""
        self._versions_per_update = 1
        self._last_version = self.check_version()

    # Versions

    def check_version(self) -> Any:
        """Return the version that answers now.

        Raises:
            ConfigurationError: If versions are counted, and it is not a number of one.
        """
        version = getattr(self._policy, "policy_version", None)
        if self._max is not None and (not isinstance(version, int) or isinstance(version, bool)):
            raise ConfigurationError(
                f"max_staleness={self._max} counts versions of the policy, so who answers needs an integer attribute policy_version, which"
                f" is raised at each update; {type(self._policy).__name__} has {version!r}"
            )
        return version

    def staleness(self, trajectories: Iterable[Iterable[Mapping[str, Any]]]) -> int:
        """Return how many versions the oldest turn is away from the present one; 0 where versions are not counted, or nobody was asked."""
        if self._max is None:
            return 0
        now = self.check_version()
        asked = (step["extras"].get("policy_version") for trajectory in trajectories for step in trajectory)
        return max((abs(now - version) for version in asked if version is not None), default=0)

    def is_stale(self, trajectories: Iterable[Iterable[Mapping[str, Any]]]) -> bool:
        """Say whether turns are too old to be delivered."""
        return self._max is not None and self.staleness(trajectories) > self._max

    # Groups

    def start_taking(self) -> None:
        """Note that somebody waits for a group, from now on."""
        self._is_taking = True
        version = self.check_version()
        if version != self._last_version and self._max is not None:
            self._num_per_update = max(1, self._num_delivered)
            self._versions_per_update = abs(version - self._last_version)
            self._num_delivered = 0
        self._last_version = version
        self._changed.wake()

    def stop_taking(self, place: int) -> None:
        """Note that the group of a place is delivered, and nobody waits for the next one yet."""
        self._is_taking = False
        self._num_delivered += 1
        self._begun.discard(place)

    def give_up(self, place: int) -> None:
        """Note that the group of a place will begin again."""
        self._begun.discard(place)
        self._changed.wake()

    async def begin(self, place: int) -> None:
        """Wait until the group of a place may begin, unless it has."""
        while place not in self._begun:
            if self._may_begin():
                self._begun.add(place)
                self._changed.wake()
            else:
                await self._changed.wait()

    def _may_begin(self) -> bool:
        if self._max is None:
            return True
        expected = self._num_per_update
        if expected is None or self._num_delivered >= expected:
            return self._is_taking
        return self._num_delivered + len(self._begun) < expected * (self._max // self._versions_per_update + 1)

    # Pauses

    async def pause(self) -> None:
        """See `RolloutStream.pause`."""
        self._is_paused = True
        if self.on_update == "drop":
            self._drops += 1
            self._dropped |= self._answers
            for answer in self._answers:
                answer.cancel()
        while self._is_paused and (self._num_playing if self.on_update == "finish" else self._num_asking):
            await self._changed.wait()

    def resume(self) -> None:
        """See `RolloutStream.resume`."""
        self._is_paused = False
        self._changed.wake()

    async def resumed(self) -> None:
        """Wait while there is a pause, or all have to stand still."""
        while self._is_paused or self._num_standing:
            await self._changed.wait()

    @contextlib.asynccontextmanager
    async def standing_still(self) -> AsyncIterator[None]:
        """Let every rollout that is under way stand before a turn, and none begin. It waits for answers and for what environments do."""
        self._num_standing += 1
        try:
            while self._num_playing > self._num_held:
                await self._changed.wait()
            yield
        finally:
            self._num_standing -= 1
            self._changed.wake()

    @contextlib.contextmanager
    def playing(self) -> Iterator[None]:
        """Note that a rollout is under way."""
        self._num_playing += 1
        try:
            yield
        finally:
            self._num_playing -= 1
            self._let_pause_end()

    @contextlib.contextmanager
    def asking(self) -> Iterator[None]:
        """Note that the policy is asked."""
        self._num_asking += 1
        try:
            yield
        finally:
            self._num_asking -= 1
            self._let_pause_end()

    def _let_pause_end(self) -> None:
        if self._is_paused or self._num_standing:
            self._changed.wake()

    def hold(self, episode: BaseEpisode) -> None:
        """Hold an episode before its next turn while there is a pause, in the code of a `vfgym.aio.bridge`. That takes none of its time."""
        if self._num_standing or (self._is_paused and self.on_update != "finish"):
            began = time.monotonic()
            self._num_held += 1
            self._let_pause_end()
            try:
                wait(self._until_turn())
            finally:
                self._num_held -= 1
            episode.put_off(time.monotonic() - began)

    async def _until_turn(self) -> None:
        while self._num_standing or (self._is_paused and self.on_update != "finish"):
            await self._changed.wait()

    # Going on in another process

    def state_dict(self) -> dict[str, Any]:
        """Return what is known of the policy's versions, as plain data."""
        return {
            "now": self.check_version(),
            "version": self._last_version,
            "replayed": dict(self.replayed),
            "begun": sorted(self._begun),
            "delivered": self._num_delivered,
            "per_update": self._num_per_update,
            "versions_per_update": self._versions_per_update,
            "drops": self._drops,
        }

    def check_state(self, state: Mapping[str, Any]) -> None:
        """Raise if who answers is of another version than when the state was taken.

        Raises:
            ConfigurationError: It says which versions these are.
        """
        now = self.check_version()
        if state["now"] != now:
            raise ConfigurationError(
                f"this state does not fit: expected a policy of policy_version {state['now']!r}, as it was saved, and who answers has"
                f" {now!r}: load the policy first"
            )

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on with what `state_dict` returned."""
        self.replayed, self._begun = Counter(state["replayed"]), set(state["begun"])
        self._num_delivered, self._num_per_update = state["delivered"], state["per_update"]
        self._versions_per_update, self._last_version, self._drops = state["versions_per_update"], state["version"], state["drops"]

    async def unless_dropped(self, awaitable: Awaitable[T]) -> T:
        """Await an answer.

        Raises:
            Superseded: If a pause drops it.
        """
        answer = asyncio.ensure_future(awaitable)
        self._answers.add(answer)
        try:
            return await answer
        except asyncio.CancelledError:
            if answer in self._dropped:
                raise Superseded("the policy is being updated") from None
            raise
        finally:
            self._answers.discard(answer)
            self._dropped.discard(answer)


class PlayedVersions:
    """The versions that one rollout was played under."""

    __slots__ = ("_drops", "_first", "_updates", "asked")

    def __init__(self, updates: PolicyUpdates) -> None:
        """Begin a rollout."""
        self._updates = updates
        self._drops: int | None = None
        self._first: Any = None
        self.asked: Any = None
        """That which was asked last."""

    def state(self) -> tuple[int | None, Any, Any]:
        """Return what a rollout that goes on in another process has to know."""
        return self._drops, self._first, self.asked

    def load_state(self, state: tuple[int | None, Any, Any]) -> None:
        """Go on with what `state` returned."""
        self._drops, self._first, self.asked = state

    def note_turn(self) -> None:
        """Note that the policy is asked now.

        Raises:
            Superseded: If the rollout is dropped, as the policy has changed; or would be too old.
        """
        updates, version = self._updates, self._updates.check_version()
        if self._drops is None:
            self._drops, self._first = updates._drops, version
        elif updates.on_update == "drop" and (self._drops, self._first) != (updates._drops, version):
            raise Superseded("the policy was updated")
        elif updates._max is not None and abs(version - self._first) > updates._max:
            raise Superseded(f"it began {abs(version - self._first)} versions of the policy ago")
        self.asked = version
