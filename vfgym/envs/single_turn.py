"""`SingleTurnEnv`: one question, one answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from vfgym.envs.multi_turn import MultiTurnEnv
from vfgym.errors import ConfigurationError
from vfgym.messages import Message
from vfgym.state import State


class SingleTurnEnv(MultiTurnEnv):
    """An environment whose episodes are over with the model's first answer.

    >>> from vfgym import Rubric
    >>> env = SingleTurnEnv(
    ...     [{"question": "6 * 7?", "answer": "42"}],
    ...     rubric=Rubric(lambda completion, answer: float(completion[-1].content == answer)),
    ... )
    >>> conversation, info = env.reset(seed=0)
    >>> conversation[-1].content
    '6 * 7?'
    >>> env.step("42").reward
    1.0
    """

    _refused_arguments: ClassVar[Mapping[str, str]] = {"max_turns": "its episodes have one turn; use MultiTurnEnv for more"}

    def __init__(self, dataset: Any = None, eval_dataset: Any = None, **kwargs: Any) -> None:
        """Define an environment.

        Args:
            dataset: Training tasks (see `ChatEnv`).
            eval_dataset: Evaluation tasks.
            **kwargs: Passed to `MultiTurnEnv`; its ``max_turns`` is 1.

        Raises:
            ConfigurationError: If there are no tasks.
        """
        self._refuse(kwargs)
        if dataset is None and eval_dataset is None:
            raise ConfigurationError(
                f"{type(self).__name__} needs tasks: give dataset= or eval_dataset= (rows with a question or a prompt)"
            )
        super().__init__(max_turns=1, dataset=dataset, eval_dataset=eval_dataset, **kwargs)

    def env_response(self, messages: list[Message], state: State) -> Any:
        """There is none after the only turn."""
        raise NotImplementedError(f"{type(self).__name__} has a single turn and no env_response")

    def end_flags(self, state: State) -> tuple[bool, bool]:
        """A question that was answered is done, although its stop condition reads ``max_turns_reached``."""
        answered = state["stop_condition"] == "max_turns_reached"
        return (True, False) if answered else super().end_flags(state)
