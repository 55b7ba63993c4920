"""Datasets: columns as environments expect them, example datasets of the Hugging Face hub, and answers marked inside a text."""

from __future__ import annotations

import hashlib
import json
import logging
import re
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from verifiers_compat.envs.datasets import without_progress_bars
from vfgym.errors import ConfigurationError, did_you_mean
from vfgym.messages import as_messages, plain
from vfgym.parsers.extraction import extract_boxed_answer as extract_boxed_answer
from vfgym.parsers.extraction import extract_hash_answer as extract_hash_answer

if TYPE_CHECKING:
    from datasets import Dataset

logger = logging.getLogger(__name__)

BOXED_SYSTEM_PROMPT = r"Please reason step by step, and put your final answer within \boxed{}."
"""Asks for an answer that `extract_boxed_answer` finds."""

THINK_BOXED_SYSTEM_PROMPT = r"Think step by step inside <think>...</think> tags. Then give your final answer inside \boxed{}."
"""Asks for reasoning that `ThinkParser` leaves out, and for an answer that `extract_boxed_answer` finds."""


def strip_non_numeric(text: str) -> str:
    """Return the digits and points of a text.

    >>> strip_non_numeric("$1,234.50 a year")
    '1234.50'
    """
    return "".join(character for character in text if character in "0123456789.")


def format_dataset(
    dataset: Dataset,
    system_prompt: str | None = None,
    few_shot: Sequence[Mapping[str, Any]] | None = None,
    question_key: str = "question",
    answer_key: str = "answer",
    map_kwargs: Mapping[str, Any] | None = None,
) -> Dataset:
    """Return a dataset with the columns that environments start from: ``example_id``, ``prompt``, and all others.

    Environments do this themselves, without a second table. An ``env_id`` column is dropped; an ``example_id`` column that
    holds no integers becomes ``src_id``, and rows are numbered from 0; rows without a ``prompt`` get one of their question.

    Args:
        dataset: Rows with a ``prompt`` (a list of messages), or with a question.
        system_prompt: Put before every prompt that has no system message of its own.
        few_shot: Messages between the system prompt and the question.
        question_key: Column of the question.
        answer_key: Column of the answer, which becomes ``answer``.
        map_kwargs: Arguments for ``Dataset.map`` (``num_proc``, ...).

    Raises:
        ConfigurationError: If there is neither a prompt nor a question, or a prompt is not a list of messages.
    """
    if "env_id" in dataset.column_names:
        dataset = dataset.remove_columns("env_id")
    if "example_id" in dataset.column_names and len(dataset) and type(dataset[0]["example_id"]) is not int:
        dataset = dataset.rename_column("example_id", "src_id")
    if "example_id" not in dataset.column_names:
        dataset = dataset.add_column("example_id", list(range(len(dataset))))
    if answer_key != "answer" and answer_key in dataset.column_names:
        if "answer" in dataset.column_names:
            raise ConfigurationError(f"answer_key is {answer_key!r}, and there is a column 'answer' too: remove or rename one of them")
        dataset = dataset.rename_column(answer_key, "answer")
    if "prompt" in dataset.column_names:
        if few_shot:
            logger.warning("few_shot is not used: the dataset has a prompt column")
        if system_prompt is None:
            return dataset
    elif question_key not in dataset.column_names:
        columns = ", ".join(dataset.column_names)
        raise ConfigurationError(f"the dataset needs a column 'prompt' (messages) or {question_key!r} (text); it has {columns}")
    from datasets import Features, Json

    shots = plain(as_messages(few_shot or [], name="few_shot"))
    arguments = {"system_prompt": system_prompt, "few_shot": shots, "question_key": question_key}
    # A column of messages would fill the keys that some of them have with None, and one of mixed types takes text that happens to
    # be JSON ("42") for what it says (datasets 5.2): so prompts are given as JSON text.
    features = Features({**dataset.features, "prompt": Json()})
    with without_progress_bars():
        return dataset.map(_build_prompt, fn_kwargs=arguments, features=features, **(map_kwargs or {}))


def _build_prompt(row: Mapping[str, Any], system_prompt: str | None, few_shot: list[Any], question_key: str) -> dict[str, str]:
    if "prompt" not in row:
        system = [{"role": "system", "content": system_prompt}] if system_prompt else []
        return {"prompt": json.dumps([*system, *few_shot, {"role": "user", "content": row[question_key]}])}
    prompt = row["prompt"]
    if not isinstance(prompt, list):
        raise ConfigurationError(f"a prompt must be a list of messages where there is a system_prompt, got {type(prompt).__name__}")
    has_system = bool(prompt) and prompt[0].get("role") == "system"
    return {"prompt": json.dumps(prompt if has_system else [{"role": "system", "content": system_prompt}, *prompt])}


Preprocess: TypeAlias = Callable[[Mapping[str, Any]], dict[str, str]]
"""From a row as the hub has it to its question and answer."""


@dataclass(frozen=True)
class ExampleDataset:
    """A dataset of the Hugging Face hub that `load_example_dataset` knows."""

    path: str
    """Its name on the hub, or a local directory."""
    preprocess: Preprocess
    split: str = "train"
    """The split that is loaded where none is asked for."""
    configs: tuple[str | None, ...] = (None,)
    """The configurations (subsets) of the dataset whose rows are loaded, one after another."""
    keeps: Mapping[str, str] = field(default_factory=dict)
    """How the text in a column must begin for a row to be loaded."""


def _columns(question: str, answer: str = "answer", read: Callable[[str], str] = str) -> Preprocess:
    """Return the function for a dataset that has a column for each."""

    def preprocess(row: Mapping[str, Any]) -> dict[str, str]:
        return {"question": str(row[question]), "answer": read(str(row[answer]))}

    return preprocess


def _multiple_choice(question: str, options: Sequence[str], answer: str) -> dict[str, str]:
    lettered = (f"{letter}: {option}" for letter, option in zip(string.ascii_uppercase, options, strict=False))
    return {"question": "\n".join([f"Question: {question}", "", *lettered]), "answer": answer}


def _gpqa(row: Mapping[str, Any]) -> dict[str, str]:
    right = str(row["Correct Answer"])
    options = [right, *(str(row[f"Incorrect Answer {number}"]) for number in (1, 2, 3))]
    # The right answer comes first in the file: put in an order that the question decides, so that it is always the same.
    options.sort(key=lambda option: hashlib.sha256(f"{row['Question']}\n{option}".encode()).digest())
    return _multiple_choice(str(row["Question"]), options, string.ascii_uppercase[options.index(right)])


def _mmlu(row: Mapping[str, Any]) -> dict[str, str]:
    return _multiple_choice(row["question"], row["choices"], string.ascii_uppercase[int(row["answer"])])


def _mmlu_pro(row: Mapping[str, Any]) -> dict[str, str]:
    return _multiple_choice(row["question"], row["options"], str(row["answer"]))


def _openbookqa(row: Mapping[str, Any]) -> dict[str, str]:
    choices = (f"{label}. {text}" for label, text in zip(row["choices"]["label"], row["choices"]["text"], strict=True))
    return {"question": "\n".join([f"Question: {row['question_stem']}", "", "Choices:", *choices]), "answer": str(row["answerKey"])}


def _prime_code(row: Mapping[str, Any]) -> dict[str, str]:
    checks = row["verification_info"]
    return {"question": str(row["prompt"]), "answer": checks if isinstance(checks, str) else json.dumps(checks)}


def _thousands(text: str) -> str:
    """Return a GSM8K answer: what follows the hashes, without the commas between thousands."""
    return re.sub(r"(?<=\d),(?=\d{3})", "", extract_hash_answer(text))


def _digits(text: str) -> str:
    """Return an integer as it is written plainly, without leading zeros or the ``.0`` of a float; any other text as it is."""
    whole = text.removesuffix(".0")
    return str(int(whole)) if whole.isdecimal() else text


_OPEN_RS = "knoveleng/open-rs"
_PYTHON_TASK = "Solve the following coding problem using the programming language python:"

EXAMPLE_DATASETS: dict[str, ExampleDataset] = {
    "aime2024": ExampleDataset("HuggingFaceH4/aime_2024", _columns("problem", read=_digits)),
    "aime2025": ExampleDataset("opencompass/AIME2025", _columns("question", read=strip_non_numeric), "test", ("AIME2025-I", "AIME2025-II")),
    "amc2023": ExampleDataset("knoveleng/AMC-23", _columns("problem", read=_digits)),
    "gpqa_diamond": ExampleDataset("Idavidrein/gpqa", _gpqa, configs=("gpqa_diamond",)),
    "gpqa_main": ExampleDataset("Idavidrein/gpqa", _gpqa, configs=("gpqa_main",)),
    "gsm8k": ExampleDataset("openai/gsm8k", _columns("question", read=_thousands), "test", ("main",)),
    "math": ExampleDataset("chiayewken/competition_math", _columns("problem", "solution", extract_boxed_answer)),
    "math500": ExampleDataset("HuggingFaceH4/MATH-500", _columns("problem"), "test"),
    "mmlu": ExampleDataset("cais/mmlu", _mmlu, "dev", ("all",)),
    "mmlu_pro": ExampleDataset("TIGER-Lab/MMLU-Pro", _mmlu_pro, "validation"),
    "openbookqa": ExampleDataset("allenai/openbookqa", _openbookqa, configs=("main",)),
    "openrs": ExampleDataset(_OPEN_RS, _columns("problem")),
    "openrs_easy": ExampleDataset(_OPEN_RS, _columns("problem"), keeps={"level": "Easy"}),
    "openrs_hard": ExampleDataset(_OPEN_RS, _columns("problem"), keeps={"level": "Hard"}),
    "prime_code": ExampleDataset("PrimeIntellect/verifiable-coding-problems", _prime_code, keeps={"prompt": _PYTHON_TASK}),
}
"""The datasets that `load_example_dataset` knows, by name. Add to it, or point one to a local directory, before loading."""


def _example(name: str) -> ExampleDataset:
    if name not in EXAMPLE_DATASETS:
        known = ", ".join(EXAMPLE_DATASETS)
        raise ConfigurationError(f"there is no example dataset {name!r}; known: {known}.{did_you_mean(name, EXAMPLE_DATASETS)}")
    return EXAMPLE_DATASETS[name]


def get_preprocess_fn(name: str) -> Preprocess:
    """Return the function that makes question and answer of a row of an example dataset.

    Raises:
        ConfigurationError: If there is no example dataset of that name.
    """
    return _example(name).preprocess


def load_example_dataset(name: str = "gsm8k", split: str | None = None, n: int | None = None, seed: int = 0) -> Dataset:
    """Load an example dataset, from the Hugging Face hub or its local cache.

    Args:
        name: One of `EXAMPLE_DATASETS`.
        split: Its split; by default the one that is usually asked for.
        n: How many rows, drawn at random. All rows, in their order, where it is None or not positive; more than there are means all.
        seed: Seed of the draw.

    Returns:
        A dataset with the columns ``question`` and ``answer``, both text.

    Raises:
        ConfigurationError: If there is no example dataset of that name.
    """
    example = _example(name)
    from datasets import Features, Value, concatenate_datasets, load_dataset

    parts = [load_dataset(example.path, config, split=split or example.split) for config in example.configs]
    rows = concatenate_datasets(parts)
    if example.keeps:
        with without_progress_bars():
            rows = rows.filter(_begins, fn_kwargs={"beginnings": example.keeps})
    if n is not None and n > 0:
        rows = rows.shuffle(seed=seed).select(range(min(n, len(rows))))
    features = Features({"question": Value("string"), "answer": Value("string")})  # else numbers in text become numbers again
    with without_progress_bars():
        return rows.map(example.preprocess, remove_columns=rows.column_names, features=features)


def _begins(row: Mapping[str, Any], beginnings: Mapping[str, str]) -> bool:
    return all(str(row[column]).startswith(text) for column, text in beginnings.items())
