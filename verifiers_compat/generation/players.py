"""Who plays the rollouts of `generate`: somebody who asks a client, or an author's own method."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from verifiers_compat.generation.authored_player import AuthoredPlayer
from vfgym.runs.client_player import ClientPlayer, ClientPlayerConfig
from vfgym.runs.engine import GroupJob, PlayedRollout, Player
from vfgym.runs.remaining import task_fingerprint
from vfgym.state import make_placeholder_state


@dataclass(frozen=True, slots=True)
class Players:
    """Makes who plays one rollout after another."""

    config: ClientPlayerConfig
    state_columns: Sequence[str]
    authors_method: Callable[..., Awaitable[Any]] | None = None
    """The author's own `run_group` (`run_rollout`, where rollouts are scored alone), which plays then."""

    @property
    def plays_groups(self) -> bool:
        """Whether one call plays all rollouts of an example: it may ask for all of them at once."""
        return self.authors_method is not None and self.config.in_groups

    async def new(self) -> Player:
        """Return who plays."""
        if self.authors_method is not None:
            return AuthoredPlayer(self.authors_method, self.config, self.state_columns)
        return ClientPlayer(self.config)

    def jobs(self, groups: list[GroupJob]) -> list[GroupJob]:
        """Return groups with the rollouts for which somebody is called: the first, where a call plays them all."""
        return [GroupJob(group.example, group.numbers[:1]) for group in groups] if self.plays_groups else groups

    def unplayed(self, group: GroupJob, failure: Exception) -> Iterator[PlayedRollout]:
        """Give the rollouts of a group of which nothing is left but what broke them off."""
        definition, example = self.config.definition, group.example
        for number in range(example.num_rollouts) if self.plays_groups else group.numbers:
            fingerprint = task_fingerprint(self.config.inputs, example, number) if self.config.is_saved else None
            state = make_placeholder_state({"example_id": example.example_id})
            yield PlayedRollout(number, definition, state, failure, fingerprint=fingerprint)
