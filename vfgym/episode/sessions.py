"""What environments keep for one player between its episodes: a game that is opened once and then reset, say."""

from __future__ import annotations

from vfgym.aio.steps import Steps, run_each
from vfgym.calls import is_awaitable
from vfgym.episode.definition import Definition
from vfgym.episode.machine import BaseEpisode


class Sessions:
    """The sessions of one player, one for each environment that opened one. Whoever makes it closes it."""

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        """Begin without any."""
        self._kept: list[tuple[Definition, object]] = []

    def of(self, definition: Definition) -> object:
        """Return what an environment keeps for this player; None where it has not opened anything yet."""
        return next((session for owner, session in self._kept if owner is definition), None)

    def keep(self, episode: BaseEpisode) -> None:
        """Keep the session that an episode was given, or has opened."""
        session = episode.state.session
        if session is not None and self.of(episode.definition) is None:
            self._kept.append((episode.definition, session))

    def close(self) -> Steps[None]:
        """Release all of them, the newest first. One that fails to close keeps none of the others open. A second call does nothing."""
        kept, self._kept = self._kept[::-1], []
        yield from run_each([_close_steps(definition, session) for definition, session in kept])


def _close_steps(definition: Definition, session: object) -> Steps[None]:
    closing = definition.close_session(session)
    if is_awaitable(closing):
        yield closing
