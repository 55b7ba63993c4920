"""What the episode machine asks of an environment. `vfgym.ChatEnv` and `vfgym.MultiTurnEnv` are what it gets."""

from __future__ import annotations

from collections.abc import Awaitable, Collection, Mapping
from typing import Any, ClassVar, Protocol

import numpy as np

from vfgym.episode.hooks import Hooks
from vfgym.messages import Message, MessageTypes, Response
from vfgym.output.pictures import Picture
from vfgym.rubrics import Rubric
from vfgym.state import State, TrajectoryStep


class Definition(Protocol):
    """An environment: what its episodes start from, who scores them, and what is told of them."""

    message_types: ClassVar[MessageTypes]
    hooks: Hooks
    rubric: Rubric
    max_seq_len: int | None
    score_rollouts: bool

    @property
    def failure_reward(self) -> float | None:
        """What failed episodes count with, where that is known."""
        ...

    def initial_state(self, task: dict[str, Any], client: Any, model: str, sampling_args: dict[str, Any] | None) -> State:
        """Return the state that an episode of a task of its own starts from."""
        ...

    async def rollout(self, input: Mapping[str, Any], client: Any, model: str, sampling_args: dict[str, Any] | None = None) -> State:
        """Play one episode by asking `client`, and return its state, not scored."""
        ...

    def end_flags(self, state: State) -> tuple[bool, bool]:
        """Return ``(terminated, truncated)`` of an episode that is over."""
        ...

    def step_info(self, state: State) -> dict[str, Any] | None:
        """Return what ``info`` tells besides."""
        ...

    def resample_hidden(self, state: State, rng: np.random.Generator) -> None:
        """Draw anew what the policy has not seen."""
        ...

    def copy_resources(self, state: State) -> Awaitable[Mapping[int, Any]]:
        """Copy what an episode has outside of this process."""
        ...

    def open_resources(self, state: State) -> Awaitable[None]:
        """Make, in the copy of a state, what `copy_resources` has copied."""
        ...

    def replaces(self, name: str) -> bool:
        """Say whether the author replaced a hook whose own version the library does inline."""
        ...

    def replaced_hooks(self) -> Collection[str]:
        """Return which of the hooks whose own version the machine does inline the author replaced."""
        ...

    def cleanup(self, state: State) -> Any:
        """Run the cleanup handlers."""
        ...

    def render_picture(self, state: State) -> Picture | None:
        """Return what an episode looks like, or None where its conversation is all there is to see."""
        ...

    def close_session(self, session: Any) -> Any:
        """Release what was kept between the episodes of one player. Plain or async."""
        ...


class TurnDefinition(Definition, Protocol):
    """An environment whose episodes the machine plays turn by turn. Hooks return a value, or an awaitable of one."""

    timeout_seconds: float | None

    def init_state(self, input: Mapping[str, Any], client: Any = None, model: str = "", sampling_args: dict[str, Any] | None = None) -> Any:
        """Return the state that an episode starts from."""
        ...

    def setup_state(self, state: State) -> Any:
        """Prepare an episode."""
        ...

    def get_prompt_messages(self, state: State) -> Any:
        """Return the conversation that the model answers next."""
        ...

    def get_model_response(self, state: State, prompt: Any) -> Any:
        """Ask the state's client for the next message."""
        ...

    def record_turn(self, state: State, step: TrajectoryStep) -> Any:
        """Record one turn by the author's hook."""
        ...

    def apply_action(self, message: Message, state: State) -> Any:
        """Carry out the model's move in a game."""
        ...

    def may_stop(self, state: State) -> bool:
        """Say whether any stop condition may hold."""
        ...

    def is_completed(self, state: State) -> Any:
        """Check the stop conditions."""
        ...

    def env_response(self, messages: list[Message], state: State) -> Any:
        """Return the environment's next messages."""
        ...

    def increment_state_usage_from_response(self, state: State, response: Response) -> None:
        """Count the tokens that a response reports."""
        ...
