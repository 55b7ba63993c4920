"""`SavedGame`: the game of a person as a run of one rollout, in the format of all results."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from vfgym.envs.group import route_of, with_route
from vfgym.errors import ConfigurationError
from vfgym.play.game import Game
from vfgym.results import ResultsWriter, RolloutOutput, Run, fingerprint_of, rollout_output
from vfgym.results.counting import settle
from vfgym.results.files import default_results_path
from vfgym.results.metadata import version_info

PLAYER = "human"
"""What a person is called in results, in place of a model."""


class SavedGame:
    """The directory of a game's results. It is made as the game begins, so that what is wrong with it shows before anybody plays."""

    def __init__(self, game: Game, *, env_id: str, env_args: Mapping[str, Any], output_dir: Path) -> None:
        """Make the directory, below ``{output_dir}/evals``.

        Args:
            game: A game that has just begun.
            env_id: The environment's id.
            env_args: What it was made with, as JSON data.
            output_dir: Where results go.

        Raises:
            ResultsError: If it cannot be made.
        """
        self._game = game
        self._fingerprint, self._route = _task_of(game)
        self.path = default_results_path(env_id, PLAYER, output_dir, is_model=False)
        """The directory."""
        self._run = Run(
            env_id=env_id,
            env_args=dict(env_args),
            model=PLAYER,
            is_model=False,
            num_examples=1,
            rollouts_per_example=1,
            pass_threshold=game.seat.definition.pass_threshold,
            version_info=version_info(game.seat.definition),
            seed=game.seed,
            state_columns=["trajectory"],
            max_concurrent=1,
            path_to_save=self.path,
            reward_range=game.seat.definition.reward_range,
        )
        self._writer = ResultsWriter(self.path, self._run.metadata([]))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._writer.close()

    def write(self, error: BaseException | None = None) -> RolloutOutput:
        """Write the game's row, and what came of the run.

        Args:
            error: What broke the game off, if something did.

        Raises:
            ResultsError: If it cannot be written.
        """
        game, state = self._game, self._game.state
        state["human"] = game.help
        row = rollout_output(
            state,
            seen_return=game.episode_return,
            error=error,
            state_columns=self._run.state_columns,
            fingerprint=self._fingerprint,
            began={"env_id": self._run.env_id, "seed": game.seed, "draws_task": True},
            failure_reward=game.definition.failure_reward,
        )
        if self._route:
            row["info"] = with_route(row, self._route)["info"]
        rows = [row]
        self._writer.append(row)
        settle(rows)
        outputs = self._run.outputs(rows)
        self._writer.finish(outputs["metadata"], outputs["outputs"])
        return row


def _task_of(game: Game) -> tuple[str | None, list[str]]:
    """Return the fingerprint of the task that is played, and the names by which a group finds who plays it.

    It is taken of the task and not of the episode, whose hooks may have written to its input already.
    """
    tasks = game.seat.definition.tasks_of("train")
    try:
        task = tasks.input(tasks.index_of(game.state["example_id"]))
    except ConfigurationError:
        return None, []
    return fingerprint_of(task), route_of(task)
