"""`ReasoningGymEnv`: procedural reasoning tasks, each a question with an answer that can be checked."""

from __future__ import annotations

import importlib
import importlib.util
import json
import math
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, ClassVar, Protocol, TypeAlias, runtime_checkable

from vfgym.data import reasoning_gym_datasets
from vfgym.envs.single_turn import SingleTurnEnv
from vfgym.errors import ConfigurationError, MissingExtra, UnknownArgument
from vfgym.parsers import Parser, XMLParser
from vfgym.parsers.parser import text_of
from vfgym.rubrics import Rubric
from vfgym.rubrics.rubric_group import find_rewarding_functions
from vfgym.rubrics.scoring import Bounds
from vfgym.state import State
from vfgym.tasks import Tasks, as_integer
from vfgym.wrappers.games.turns import NATIVE_OBSERVATION
from vfgym.wrappers.reasoning_gym.curriculum import Curriculum, CurriculumConfig, CurriculumRubric
from vfgym.wrappers.reasoning_gym.items import ItemIds, ItemRows, Items, as_share
from vfgym.wrappers.reasoning_gym.scoring import Entry
from vfgym.wrappers.reasoning_gym.solvers import SOLVERS


@runtime_checkable
class Dataset(Protocol):
    """A dataset as reasoning-gym has it (its ``ProceduralDataset``)."""

    seed: int

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Entry: ...

    def score_answer(self, answer: str | None, entry: Entry) -> float:
        """Return how good an answer to an entry is, from 0.0 to 1.0."""


DatasetName: TypeAlias = str | Sequence[str | Mapping[str, Any]]
"""A dataset of reasoning-gym, or the parts of a composite: names, or dicts with ``name``, ``weight`` and ``config``."""

DEFAULT_SYSTEM_PROMPT = (
    "Solve the problem. Think it through first if that helps. Then give your final answer, and nothing else, between <answer>"
    " and </answer> tags, in the format that the problem asks for."
)

DEFAULT_COMPOSITE = (
    "chain_sum",
    "coin_flip",
    "family_relationships",
    "knights_knaves",
    "letter_counting",
    "mini_sudoku",
    "number_sequence",
    "simple_geometry",
)
"""What ``"composite"`` mixes, in equal shares: one quick dataset each of eight categories."""

_OWN_ARGUMENTS = ("dataset", "eval_dataset", "max_turns", "rubric")


class ReasoningGymEnv(SingleTurnEnv):
    """Tasks of `reasoning-gym <https://github.com/open-thought/reasoning-gym>`_: a question, one answer, a score from 0.0 to 1.0.

    The items of one dataset are split by their index: training has the first `num_train_examples`, evaluation the
    `num_eval_examples` after them, and an item's index is its ``example_id``. (Datasets that differ only by their seed
    overlap: item 1 of seed 0 is item 0 of seed 1.) Items are made when an episode needs them.

    The answer is what stands in the last ``<answer>`` tags, or the whole text where it has no such tag. Its score is the
    dataset's own, which may give part of the points to answers that are partly right (and to some wrong ones a few
    hundredths), but for these:

    * game_of_life_halting and coin_flip compare with the right answer, since their own scorers let wrong ones pass;
    * puzzle24 demands the numbers of the puzzle;
    * symbolic scorers (those of countdown, puzzle24, integrals and polynomial products), which evaluate answers as code, do so
      only for plain formulas (an unsolved ``Integral`` is none, although some rows have it as their answer), in worker processes: a
      formula that takes more than 8 s of CPU time, or fills the memory, scores as no answer does;
    * binary_matrix, n_queens, spiral_matrix and string_insertion evaluate literals only;
    * rubiks_cube and rush_hour take numbers of one digit;
    * rubiks_cube knows moves that name a layer (``2R``), which its own scorer leaves out;
    * complex_arithmetic takes no ``nan``, which its own scorer takes for right;
    * gsm_symbolic sees a minus sign, and compares with all of "1,000" and "1/2";
    * a typographic minus sign counts as a minus everywhere;
    * spell_backward gives 0.8 for a right answer with more after it, for which its own scorer may give a little more than 1;
    * a scorer that fails gives 0.0.

    The metric ``format_reward_func`` says how well the answer keeps to the parser's format.

    With a `curriculum`, training tasks get harder with success (see `CurriculumConfig`). Levels are those of reasoning-gym's own
    curricula, of which all attributes rise together; in a composite each dataset has its own. They belong to the environment, so its
    forks share them. An item's id names its level too: ``level * (num_train_examples + num_eval_examples) + index``. The split by
    index holds at every level, and evaluation tasks keep their levels. ``info`` and the metrics of an episode tell the ``level`` of
    its task, and `vfgym.wrappers.reasoning_gym.Curriculum` can be saved and restored.

    In one process the same seed makes the same items. Those of codeio, intermediate_integration, isomorphic_strings,
    knight_swap, polynomial_multiplication, ransom_note and word_ladder depend on the order of sets of strings besides, which
    every process draws anew: set the environment variable ``PYTHONHASHSEED`` for the same items in each.

    >>> env = ReasoningGymEnv("leg_counting")
    >>> conversation, info = env.reset(seed=0)
    >>> env.oracle(env.state), env.step("<answer>350</answer>").reward
    ('<answer>350</answer>', 1.0)
    """

    _rows_type: ClassVar[type[ItemRows]] = ItemRows

    def __init__(
        self,
        gym: DatasetName | Dataset,
        num_train_examples: int = 1000,
        num_eval_examples: int = 100,
        system_prompt: str | None = DEFAULT_SYSTEM_PROMPT,
        parser: Parser | None = None,
        seed: int = 0,
        dataset_config: Mapping[str, Any] | None = None,
        curriculum: CurriculumConfig | Mapping[str, Any] | bool = False,
        **kwargs: Any,
    ) -> None:
        """Define an environment.

        Args:
            gym: A dataset's name, or a list that makes a composite: each part a name, or a dict with ``name`` and
                optionally ``weight`` (its share, 1.0) and ``config``. ``"composite"`` mixes `DEFAULT_COMPOSITE`. Or a dataset
                that is there already, which has its own seed and configuration.
            num_train_examples: Number of training tasks.
            num_eval_examples: Number of evaluation tasks.
            system_prompt: Put before every question; the default asks for the answer between tags.
            parser: Reads the answer; ``XMLParser(["answer"])`` without one.
            seed: Seed of the items.
            dataset_config: Configuration of the dataset `gym` (its difficulty, say).
            curriculum: Whether tasks get harder with success, and when: a `CurriculumConfig`, a dict of its fields, or True.
            **kwargs: Passed to `SingleTurnEnv` (``few_shot``, ``render_mode``, ...).

        Raises:
            MissingExtra: If reasoning-gym is not installed.
            ConfigurationError: If there is no such dataset, a number is negative, both are 0 (with a curriculum, one of them), the
                seed is not a whole number, a given dataset has fewer items, a dataset lacks the ``level`` or ``eval_level`` of the
                curriculum, or a configuration is malformed. What else only reasoning-gym can check is raised with the first task.
        """
        if importlib.util.find_spec("reasoning_gym") is None:
            raise MissingExtra("reasoning-gym", type(self).__name__)
        for name in _OWN_ARGUMENTS:
            if name in kwargs:
                raise UnknownArgument(f"{type(self).__name__} sets {name!r} itself; to score more, add_rubric() to the environment")
        train, evaluation = _split(num_train_examples, num_eval_examples)
        whole_seed = as_integer(seed)
        if whole_seed is None:
            raise ConfigurationError(f"the seed of the items must be a whole number, got {seed!r}")
        config = CurriculumConfig.of(curriculum)
        self.items = _items(gym, dataset_config, size=evaluation.stop, seed=whole_seed, has_levels=config is not None)
        self.curriculum = None if config is None else Curriculum(config, self.items)
        """The level of each dataset; None where there is no curriculum."""
        train_ids: Sequence[int] = train
        eval_ids: Sequence[int] = evaluation
        if self.curriculum is not None:
            if not train or not evaluation:
                raise ConfigurationError(
                    "a curriculum needs training tasks and evaluation tasks: give num_train_examples and num_eval_examples"
                )
            train_ids = ItemIds(self.items, train, self.curriculum.level_of)
            eval_ids = ItemIds(self.items, evaluation, self.curriculum.eval_level_of)
        self._train_indices = train
        parser = XMLParser(["answer"]) if parser is None else parser
        rubric = Rubric(self.check_answer_reward_func, parser=parser)
        rubric.add_metric(parser.get_format_reward_func())
        kwargs.setdefault("env_id", f"reasoning-gym/{'composite' if self.items.is_composite else self.items.shares[0].name}-v0")
        super().__init__(
            dataset=self._rows_type(self.items, train_ids) if train else None,
            eval_dataset=self._rows_type(self.items, eval_ids) if evaluation else None,
            system_prompt=system_prompt,
            parser=parser,
            rubric=rubric,
            **kwargs,
        )
        if self.curriculum is not None:
            self.add_rubric(CurriculumRubric(self.curriculum, self.items, train, self.check_answer_reward_func.__name__))

    # Levels

    @property
    def level(self) -> int:
        """The level of the dataset at the moment; 0 without a curriculum.

        Raises:
            ConfigurationError: If there are several datasets, each with a level of its own (``env.curriculum.levels``).
        """
        if self.curriculum is None:
            return 0
        if self.items.is_composite:
            raise ConfigurationError("each dataset of a composite has its own level: ask for env.curriculum.levels")
        (level,) = self.curriculum.levels.values()
        return level

    def set_level(self, level: int) -> None:
        """Set the level (in a composite, of every dataset) for all training episodes that start from now on.

        Raises:
            ConfigurationError: If there is no curriculum, or no such level.
        """
        if self.curriculum is None:
            raise ConfigurationError(f"{type(self).__name__} has levels only with a curriculum: make it with curriculum=True")
        self.curriculum.set_levels(dict.fromkeys(self.curriculum.levels, level))

    def state_dict(self) -> dict[str, Any]:
        """Return where the curriculum stands, as plain data; nothing without one."""
        return {} if self.curriculum is None else {"curriculum": self.curriculum.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where the curriculum stood.

        Raises:
            ConfigurationError: If that is of other datasets; the curriculum stands as it was.
        """
        if self.curriculum is None:
            super().load_state_dict(state)
        else:
            self.curriculum.load_state_dict(state.get("curriculum"))  # type: ignore[arg-type]

    def step_info(self, state: State) -> dict[str, Any] | None:
        """Tell the question as the data set has it, and the level of the task."""
        info = state.get("info") or {}
        told = {} if "question" not in state["input"] else {NATIVE_OBSERVATION: state["input"]["question"]}
        return {**told, "level": info["level"]} if "level" in info else told

    def choose_task(self, seed: int | None, options: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the input of the episode that reset options choose: with a curriculum, a training item of any level.

        Raises:
            ConfigurationError: If an option does not fit.
        """
        rows = self.tasks_of("train").rows
        is_own = self.curriculum is not None and isinstance(rows, ItemRows) and options.get("split", "train") == "train"
        if not is_own or "example_id" not in options or options.keys() & {"task", "game_options"}:
            return super().choose_task(seed, options)
        example_id = as_integer(options["example_id"])
        level, index = (-1, -1) if example_id is None else divmod(example_id, self.items.size)
        if index not in self._train_indices or level not in self.items.configurations[self.items.source_of(index)]:
            raise ConfigurationError(f"there is no training task with example_id {options['example_id']!r} at any level")
        return self.tasks_of("train").copy_input(rows.row(example_id))  # type: ignore[attr-defined]

    def _tasks_of_rows(self, rows: Any) -> Tasks:
        if not isinstance(rows, ItemRows) or self.curriculum is None:
            return super()._tasks_of_rows(rows)
        return _TasksByLevel(
            rows, system_prompt=self.system_prompt, few_shot=self.few_shot, types=self.message_types, dropped=self.dropped_columns
        )

    # Answers

    def check_answer_reward_func(self, completion: Any, info: Mapping[str, Any]) -> float | Awaitable[float]:
        """Return the score of the answer in a completion, from 0.0 to 1.0; to be awaited, where the scorer is symbolic.

        Args:
            completion: The model's message, in a list.
            info: The task's ``info``, which names its item.

        Raises:
            ConfigurationError: If it names none, as in a task that is not from this environment.
        """
        return self.items.score_later(self.answer_in(text_of(completion)), self._example_id(info))

    def answer_in(self, text: str) -> str | None:
        """Return the answer that a text gives; None where its tags hold none."""
        # The parser is given text, of which it takes the last answer, as reasoning-gym's own `extract_answer` does.
        answer = self.parser.parse_answer(text)
        if answer is None and not (isinstance(self.parser, XMLParser) and f"<{self.parser.answer_field}>" in text):
            answer = text
        return None if answer is None else answer.strip()

    def _reward_bounds(self) -> Bounds:
        """Return 0.0, the lowest score of all scorers, and the highest, where nothing else scores an answer."""
        functions = find_rewarding_functions(self.rubric)
        own = type(self).check_answer_reward_func is ReasoningGymEnv.check_answer_reward_func
        is_score = functions is not None and all(each.plan.func == self.check_answer_reward_func and each.weight > 0 for each in functions)
        return (0.0, math.fsum(each.weight for each in functions or ())) if own and is_score else super()._reward_bounds()

    def _example_id(self, info: Mapping[str, Any]) -> int:
        items = self.items
        index, level = info.get("index"), info.get("level", 0)
        if not isinstance(index, int) or not 0 <= index < items.size:
            raise ConfigurationError(
                f"a task of {type(self).__name__} must name its item in info['index'], from 0 to {items.size - 1}, got {index!r}"
            )
        if level not in items.configurations[items.source_of(index)]:
            raise ConfigurationError(f"info['level'] of the task must be a level of {items.source_of(index)!r}, got {level!r}")
        return level * items.size + index  # type: ignore[no-any-return]

    def oracle(self, state: State) -> str | None:
        """Return an answer that scores 1.0, or None where none is known."""
        entry = self.items.entry(self._example_id(state["info"]))
        name = self.items.source(entry)
        if name in SOLVERS:
            text = SOLVERS[name](entry["metadata"])
        else:
            known = reasoning_gym_datasets().get(name)
            place = (known["oracle"] if known else None) or "answer"
            answer = entry["answer"] if place == "answer" else entry["metadata"][place.removeprefix("metadata:")]
            if answer is None:
                return None
            text = json.dumps(answer) if known and known["oracle_is_json"] else str(answer)
        if "Integral(" in text:  # intermediate_integration leaves some unsolved
            text = str(importlib.import_module("sympy").sympify(text).doit())
        return f"<{self.parser.answer_field}>{text}</{self.parser.answer_field}>" if isinstance(self.parser, XMLParser) else text


class _TasksByLevel(Tasks):
    """Tasks whose ids change with the level, so that their positions cannot be noted once and for all."""

    def index_of(self, example_id: int) -> int:
        """Return the position of the task that has this ``example_id`` at the moment.

        Raises:
            ConfigurationError: If there is none.
        """
        ids: Sequence[int] = self.rows.example_ids  # type: ignore[attr-defined]
        integer = as_integer(example_id)
        if integer is None or integer not in ids:
            raise ConfigurationError(f"there is no task with example_id {example_id!r} among the {len(self)} tasks at their levels")
        return ids.index(integer)


def _split(num_train: int, num_eval: int) -> tuple[range, range]:
    for name, number in (("num_train_examples", num_train), ("num_eval_examples", num_eval)):
        if not isinstance(number, int) or number < 0:
            raise ConfigurationError(f"{name} must be a whole number from 0, got {number!r}")
    if num_train + num_eval == 0:
        raise ConfigurationError("num_train_examples and num_eval_examples are both 0, so there would be no task")
    return range(num_train), range(num_train, num_train + num_eval)


def _items(gym: DatasetName | Dataset, config: Mapping[str, Any] | None, *, size: int, seed: int, has_levels: bool) -> Items:
    if isinstance(gym, Dataset):
        return _make_items(gym, config, size=size, seed=seed, has_levels=has_levels)
    if isinstance(gym, str) and gym != "composite":
        share = as_share({"name": gym, "config": config or {}})
        return Items([share], size=size, seed=seed, is_composite=False, has_levels=has_levels)
    if not isinstance(gym, str | Sequence):
        raise ConfigurationError(f"gym must be a dataset's name, a list of names, or a dataset of reasoning-gym, got {type(gym).__name__}")
    if config:
        raise ConfigurationError('dataset_config is for one dataset: give each part its own, {"name": ..., "config": {...}}')
    shares = [as_share(part) for part in (DEFAULT_COMPOSITE if isinstance(gym, str) else gym)]
    names = [share.name for share in shares]
    if len(set(names)) < max(1, len(names)):
        raise ConfigurationError(f"a composite needs at least one dataset, and each once, got {names}")
    return Items(shares, size=size, seed=seed, is_composite=True, has_levels=has_levels)


def _make_items(dataset: Dataset, config: Mapping[str, Any] | None, *, size: int, seed: int, has_levels: bool) -> Items:
    kind = type(dataset).__name__
    if config or seed or has_levels:
        raise ConfigurationError(f"the {kind} that was given has its own seed and configuration: give its name to choose them")
    if size > len(dataset):
        raise ConfigurationError(
            f"the {kind} that was given has {len(dataset)} items, too few for num_train_examples + num_eval_examples = {size}"
        )
    return Items.of(dataset, size)
