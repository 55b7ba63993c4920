"""`ReasoningGymEnv`: procedural reasoning tasks, each a question with an answer that can be checked."""

from __future__ import annotations

import importlib
import importlib.util
import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from vfgym.data import reasoning_gym_datasets
from vfgym.envs.reasoning_gym.items import ItemRows, Items, as_share
from vfgym.envs.single_turn import SingleTurnEnv
from vfgym.errors import ConfigurationError, MissingExtra, UnknownArgument
from vfgym.parsers import Parser, XMLParser
from vfgym.parsers.parser import text_of
from vfgym.rubrics import Rubric
from vfgym.state import State

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
    * countdown, puzzle24 and the three datasets of integrals and polynomial products, which evaluate answers as code, do so
      only for plain formulas (an unsolved ``Integral`` is none, although some rows have it as their answer), and
      binary_matrix, n_queens, spiral_matrix and string_insertion for literals;
    * rubiks_cube and rush_hour take numbers of one digit;
    * a scorer that fails gives 0.0.

    The metric ``format_reward_func`` says how well the answer keeps to the parser's format.

    In one process the same seed makes the same items. Those of codeio, intermediate_integration, isomorphic_strings,
    knight_swap, polynomial_multiplication, ransom_note and word_ladder depend on the order of sets of strings besides, which
    every process draws anew: set the environment variable ``PYTHONHASHSEED`` for the same items in each.

    >>> env = ReasoningGymEnv("leg_counting")
    >>> conversation, info = env.reset(seed=0)
    >>> env.oracle(env.state), env.step("<answer>350</answer>").reward
    ('<answer>350</answer>', 1.0)
    """

    def __init__(
        self,
        gym: DatasetName,
        num_train_examples: int = 1000,
        num_eval_examples: int = 100,
        system_prompt: str | None = DEFAULT_SYSTEM_PROMPT,
        parser: Parser | None = None,
        seed: int = 0,
        dataset_config: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Define an environment.

        Args:
            gym: A dataset's name, or a list that makes a composite: each part a name, or a dict with ``name`` and
                optionally ``weight`` (its share, 1.0) and ``config``. ``"composite"`` mixes `DEFAULT_COMPOSITE`.
            num_train_examples: Number of training tasks.
            num_eval_examples: Number of evaluation tasks.
            system_prompt: Put before every question; the default asks for the answer between tags.
            parser: Reads the answer; ``XMLParser(["answer"])`` without one.
            seed: Seed of the items.
            dataset_config: Configuration of the dataset `gym` (its difficulty, say).
            **kwargs: Passed to `SingleTurnEnv` (``few_shot``, ``render_mode``, ...).

        Raises:
            MissingExtra: If reasoning-gym is not installed.
            ConfigurationError: If there is no such dataset, a number is negative, both are 0, or a configuration is malformed.
                What only reasoning-gym can check is raised with the first task.
        """
        if importlib.util.find_spec("reasoning_gym") is None:
            raise MissingExtra("reasoning-gym", type(self).__name__)
        for name in _OWN_ARGUMENTS:
            if name in kwargs:
                raise UnknownArgument(f"{type(self).__name__} sets {name!r} itself; to score more, add_rubric() to the environment")
        train, evaluation = _split(num_train_examples, num_eval_examples)
        self.items = _items(gym, dataset_config, size=evaluation.stop, seed=seed)
        parser = XMLParser(["answer"]) if parser is None else parser
        rubric = Rubric(self.check_answer_reward_func, parser=parser)
        rubric.add_metric(parser.get_format_reward_func())
        kwargs.setdefault("env_id", f"reasoning-gym/{gym if isinstance(gym, str) else 'composite'}-v0")
        super().__init__(
            dataset=ItemRows(self.items, train) if train else None,
            eval_dataset=ItemRows(self.items, evaluation) if evaluation else None,
            system_prompt=system_prompt,
            parser=parser,
            rubric=rubric,
            **kwargs,
        )

    def check_answer_reward_func(self, completion: Any, info: Mapping[str, Any]) -> float:
        """Return the score of the answer in a completion, from 0.0 to 1.0.

        Args:
            completion: The model's message, in a list.
            info: The task's ``info``, which names its item.

        Raises:
            ConfigurationError: If it names none, as in a task that is not from this environment.
        """
        return self.items.score(self._answer_in(text_of(completion)), self._index(info))

    def _answer_in(self, text: str) -> str | None:
        # The parser is given text, of which it takes the last answer, as reasoning-gym's own `extract_answer` does.
        answer = self.parser.parse_answer(text)
        if answer is None and not (isinstance(self.parser, XMLParser) and f"<{self.parser.answer_field}>" in text):
            answer = text
        return None if answer is None else answer.strip()

    def _index(self, info: Mapping[str, Any]) -> int:
        index = info.get("index")
        if not isinstance(index, int) or not 0 <= index < self.items.size:
            raise ConfigurationError(
                f"a task of {type(self).__name__} must name its item in info['index'], from 0 to {self.items.size - 1}, got {index!r}"
            )
        return index

    def oracle(self, state: State) -> str | None:
        """Return an answer that scores 1.0, or None where reasoning-gym gives none (boxnet, rush_hour)."""
        entry = self.items.entry(self._index(state["info"]))
        known = reasoning_gym_datasets().get(self.items.source(entry))
        place = known["oracle"] if known else "answer"
        if place is None:
            return None
        answer = entry["answer"] if place == "answer" else entry["metadata"][place.removeprefix("metadata:")]
        if answer is None:
            return None
        text = json.dumps(answer) if known and known["oracle_is_json"] else str(answer)
        if "Integral(" in text:  # intermediate_integration leaves some unsolved
            text = str(importlib.import_module("sympy").sympify(text).doit())
        return f"<{self.parser.answer_field}>{text}</{self.parser.answer_field}>" if isinstance(self.parser, XMLParser) else text


def _split(num_train: int, num_eval: int) -> tuple[range, range]:
    for name, number in (("num_train_examples", num_train), ("num_eval_examples", num_eval)):
        if not isinstance(number, int) or number < 0:
            raise ConfigurationError(f"{name} must be a whole number from 0, got {number!r}")
    if num_train + num_eval == 0:
        raise ConfigurationError("num_train_examples and num_eval_examples are both 0, so there would be no task")
    return range(num_train), range(num_train, num_train + num_eval)


def _items(gym: DatasetName, config: Mapping[str, Any] | None, *, size: int, seed: int) -> Items:
    if isinstance(gym, str) and gym != "composite":
        return Items([as_share({"name": gym, "config": config or {}})], size=size, seed=seed, is_composite=False)
    if config:
        raise ConfigurationError('dataset_config is for one dataset: give each part its own, {"name": ..., "config": {...}}')
    shares = [as_share(part) for part in (DEFAULT_COMPOSITE if isinstance(gym, str) else gym)]
    names = [share.name for share in shares]
    if len(set(names)) < max(1, len(names)):
        raise ConfigurationError(f"a composite needs at least one dataset, and each once, got {names}")
    return Items(shares, size=size, seed=seed, is_composite=True)
