"""`SeededGameEnv`: a game whose tasks are seeds, with the rollout API. Nothing is reset before somebody plays or asks for a dataset."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, ClassVar

from verifiers_compat.envs.datasets import first_tasks
from verifiers_compat.envs.multiturn_env import MultiTurnEnv
from vfgym.aio.steps import Steps, eager, run_async
from vfgym.calls import is_awaitable
from vfgym.envs.chat import ChatEnv, check_split
from vfgym.errors import ConfigurationError
from vfgym.messages import Message
from vfgym.state import State
from vfgym.tasks import Row, Tasks, as_integer
from vfgym.wrappers.games.turns import GameTurnsEnv

if TYPE_CHECKING:
    from datasets import Dataset


class SeededGameEnv(MultiTurnEnv, GameTurnsEnv):
    """A game whose tasks are consecutive seeds: those for training, then those for evaluation.

    They are numbered from 0, as the rows of any dataset are; the seed stands in their ``answer``. `reset` with a seed plays the game of
    this very seed, and without one the next task. A task of the author's own that has a prompt keeps it; all others get what the game
    shows first, as ``prompt`` and ``question``.
    """

    _refused_arguments: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("dataset", "eval_dataset"), "its tasks are seeds: give the numbers of training and evaluation tasks, and the first seed"
    )

    def __init__(self, *, numbers: Mapping[str, int], seed: int, **kwargs: Any) -> None:
        """Define an environment.

        Args:
            numbers: Number of training tasks and number of evaluation tasks, by the names of the arguments that give them. Where
                the latter is 0, evaluation uses the training tasks.
            seed: Seed of the first task.
            **kwargs: Passed to the game's environment.

        Raises:
            ConfigurationError: If a number is none, or there would be no task.
        """
        for name, number in {**numbers, "seed": seed}.items():
            if as_integer(number) is None or number < 0:
                raise ConfigurationError(f"{name} must be a whole number from 0, got {number!r}")
        num_train, num_eval = numbers.values()
        if num_train + num_eval == 0:
            raise ConfigurationError(f"{' and '.join(numbers)} are both 0, so there would be no task")
        super().__init__(**kwargs)
        end = seed + num_train
        for split, seeds in (("train", range(seed, end)), ("eval", range(end, end + num_eval))):
            if seeds:
                self.set_tasks(split, SeedRows(seeds, self.row_of))

    def row_of(self, seed: int) -> dict[str, Any]:
        """Return the task that stands for a seed."""
        return {"prompt": [], "seed": seed}

    def seed_of(self, row: Row) -> int | None:
        """Return the seed of a row that does not name it: its ``answer``; None if there is none."""
        answer = row.get("answer")
        return int(answer) if isinstance(answer, str) and answer.strip().isdecimal() else as_integer(answer)

    # Tasks

    def tasks_of(self, split: Any) -> Tasks:
        """Return the tasks of a split; those of the other one where it has none."""
        check_split(split)
        return self._tasks[split] if split in self._tasks else next(iter(self._tasks.values()))

    def has_tasks(self, split: str) -> bool:
        """Say whether there are tasks of this split itself."""
        return split in self._tasks

    set_tasks = ChatEnv.set_tasks

    def _tasks_of_rows(self, rows: Any) -> Tasks:
        system_prompt = self.system_prompt or None
        return GameTasks(rows, self.seed_of, system_prompt=system_prompt, few_shot=self.few_shot, types=self.message_types)

    def choose_task(self, seed: int | None, options: Mapping[str, Any]) -> dict[str, Any] | None:  # type: ignore[override]
        """Return the task that reset options or the seed choose; None to take the next one.

        Raises:
            ConfigurationError: If an option does not fit.
        """
        game_options = options.get("game_options")
        if not isinstance(game_options, Mapping | None):
            raise ConfigurationError(f"the reset option 'game_options' must be a dict, got {type(game_options).__name__}")
        chosen = self._choose_player(options["player"]) if "player" in options else {}
        task = ChatEnv.choose_task(self, seed, {name: value for name, value in options.items() if name not in ("game_options", "player")})
        if task is None and seed is not None:
            task = {**self.row_of(seed), "example_id": self._number_of(seed)}
        if game_options is None and not chosen:
            return task
        if task is None:
            option = "player" if game_options is None else "game_options"
            raise ConfigurationError(f"the reset option {option!r} is for a certain game: give a seed (or an example_id or a task), too")
        return {**task, **({} if game_options is None else {"game_options": game_options}), **chosen}

    def _number_of(self, seed: int) -> int:
        """Return the number of the training task that a seed is; -1 where it is none."""
        seeds = self._seeds_of("train")
        return seeds.index(seed) if seeds is not None and seed in seeds else -1

    # Datasets: only whoever asks for one pays for the resets

    def _build_split(self, split: str, *, calls_builder: bool = True) -> Dataset | None:
        if split not in self._datasets and (seeds := self._seeds_of(split)) is not None:
            self._datasets[split] = self._questions(seeds)
        return super()._build_split(split, calls_builder=calls_builder)

    def _take_tasks(self, split: str, n: int, seed: int | None) -> Dataset:
        if seed is None and n > 0 and split not in self._datasets and (seeds := self._seeds_of(split)) is not None:
            return self._questions(seeds[:n])
        return super()._take_tasks(split, n, seed)

    def _seeds_of(self, split: str) -> range | None:
        rows = self._tasks[split].rows if split in self._tasks else None
        return rows.seeds if isinstance(rows, SeedRows) else None

    def _questions(self, seeds: range) -> Dataset:
        # On a loop and a thread of their own: a dataset may be asked for on any loop, and nothing here may have to wait for that one.
        with ThreadPoolExecutor(1) as thread:
            rows = thread.submit(asyncio.run, run_async(self._first_observation(seeds))).result()
        return first_tasks(Tasks(rows, types=self.message_types), len(rows))

    def _first_observation(self, seeds: range) -> Steps[list[dict[str, Any]]]:
        """Begin the game of each seed, and return the tasks with what is known of them then."""
        rows = []
        session = None
        try:
            for seed in seeds:
                state = self.initial_state(self.row_of(seed), None, "", None)
                state.begin(session, None)
                try:
                    # The library's own hook: an author's runs when the task is played.
                    result = SeededGameEnv.setup_state(self, state)
                    if is_awaitable(result):
                        yield result
                finally:
                    yield from self._leave(state)
                session = state.session
                rows.append({"question": state["input"]["question"], **state["input"]})
        finally:
            if session is not None and is_awaitable(closing := self.close_session(session)):
                yield closing
        return rows

    def _leave(self, state: State) -> Steps[None]:
        """Release what belongs to one episode, and not to its player, of an episode that was begun and is not played."""
        return
        yield  # makes this a generator, as those are that have something to release

    @eager
    def setup_state(self, state: State) -> Steps[State]:
        """Begin the game of the task's seed. A task that has a prompt of its own keeps it."""
        prompt = state["prompt"]
        begun = super().setup_state(state)
        if is_awaitable(begun):
            yield begun
        task = state["input"]
        if task.get("question") is None:  # a Dataset fills in None
            task["question"] = state["prompt"][-1]["content"]
        if task.get("answer") is None:
            task["answer"] = self.answer_of(state)
        if prompt:
            state["prompt"] = prompt
        return state

    def answer_of(self, state: State) -> str:
        """Return the ``answer`` of a task that has none: the seed of its game, as text."""
        return str(state["input"]["seed"])


class SeedRows:
    """Tasks that are seeds, by position. What a game shows first is not known before it is played."""

    def __init__(self, seeds: range, row_of: Callable[[int], Row]) -> None:
        """Take the seeds, and what makes a task of one."""
        self.seeds = seeds
        self._row_of = row_of

    def __len__(self) -> int:
        """Number of tasks."""
        return len(self.seeds)

    def __getitem__(self, index: int) -> Row:
        """Return a task."""
        return self._row_of(self.seeds[index])


class GameTasks(Tasks):
    """Tasks that name the seed of a game. One without a prompt gets it from the game."""

    def __init__(self, rows: Any, seed_of: Callable[[Row], int | None], **kwargs: Any) -> None:
        """Describe tasks.

        Args:
            rows: The rows (see `Tasks`).
            seed_of: Returns the seed of a row that has no ``seed``; None if it has none.
            **kwargs: Passed to `Tasks`.
        """
        super().__init__(rows, **kwargs)
        self._seed_of = seed_of

    def with_system_prompt(self, prompt: list[Message]) -> list[Message]:
        """Return a prompt of the dataset with the system prompt before it; one that the game gives comes with it."""
        return super().with_system_prompt(prompt) if prompt else prompt

    def copy_input(self, row: Row, where: str = "the task") -> dict[str, Any]:
        """Return the input of an episode, with its seed.

        Raises:
            ConfigurationError: If there is no seed, or the row is malformed.
        """
        seed = self._seed_of(row) if row.get("seed") is None else as_integer(row["seed"])
        if seed is None or seed < 0:
            raise ConfigurationError(f"{where} must have the seed of its game in its answer, as text; got {row.get('answer')!r}")
        has_prompt = bool(row.get("prompt")) or row.get("question") is not None
        task = super().copy_input(row if has_prompt else {**row, "prompt": []}, where)
        return {**task, "seed": seed} if has_prompt else {**task, "seed": seed, "prompt": []}
