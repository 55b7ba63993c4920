"""Tasks: what an episode starts from, wherever the rows come from.

A task source is anything that holds rows (a list of dicts, an HF ``Dataset``, a lazy builder, an iterable), an endless
procedural source, or nothing at all. Rows stay plain dicts with their own keys; a row becomes the input of an episode when
one starts, and not before.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import operator
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from vfgym.bounded_json import parse_json
from vfgym.errors import ConfigurationError, InvalidMessage
from vfgym.messages import MESSAGE_TYPES, Message, MessageTypes, as_messages

Row: TypeAlias = Mapping[str, Any]
"""One task: ``prompt`` (messages) or ``question`` (text), optionally ``answer``, ``info``, ``example_id``, and any more."""

ENDLESS = 2**31
"""How many different tasks an endless source counts as."""

_SHARED_TYPES = frozenset({str, int, float, bool, type(None)})


@runtime_checkable
class Rows(Protocol):
    """Rows by position.

    Rows that are costly to make have an attribute ``example_ids`` too: a sequence of their ids, in order.
    """

    def __getitem__(self, index: int, /) -> Row: ...


DatasetBuilder: TypeAlias = Callable[[], Rows]
"""A function that makes the rows when they are first needed."""


class ProceduralTasks:
    """An endless source: row number `i` is made by a function of `i`, the same each time.

    >>> squares = ProceduralTasks(lambda i: {"question": f"{i}²?", "answer": str(i * i)})
    >>> squares[12]["answer"]
    '144'
    """

    def __init__(self, make_row: Callable[[int], Row]) -> None:
        """Make rows with `make_row`."""
        self.make_row = make_row

    def __getitem__(self, index: int) -> Row:
        return self.make_row(index)


class DatasetRows:
    """The rows of a Hugging Face Dataset, read in blocks where they are asked for in order.

    One row costs 50 µs alone, and 2 µs in a block (datasets 5.2).
    """

    _BLOCK = 256

    def __init__(self, dataset: Any) -> None:
        """Read `dataset`."""
        self.dataset = dataset
        self._block: tuple[int, list[dict[str, Any]]] = (0, [])  # its first row's position, and its rows; replaced as a whole, for threads
        self._last = -1

    @functools.cached_property
    def example_ids(self) -> list[int]:
        """The ids of the rows, in order, read at once and without the other columns, whose images would have to be decoded.

        Raises:
            AttributeError: If the rows have no ids of their own that are integers, or a format of their own.
        """
        form, feature = self.dataset.format, self.dataset.features.get("example_id")
        # Rows with a format are made by it, ids included.
        if form["type"] is None and "example_id" in form["columns"] and getattr(feature, "dtype", "").startswith(("int", "uint")):
            ids = self.dataset.select_columns("example_id").with_format("numpy")[:]["example_id"]
            if ids.dtype.kind in "iu":  # where some are missing, all are floats
                return ids.tolist()  # type: ignore[no-any-return]
        raise AttributeError("the rows have no integer ids of their own")

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.dataset)

    def __getitem__(self, index: int) -> Row:
        """Return a row."""
        start, rows = self._block
        follows, self._last = 0 <= index == self._last + 1, index
        if start <= index < start + len(rows):
            return rows[index - start]
        if not follows:  # its neighbours will hardly be asked for next
            return self.dataset[index]  # type: ignore[no-any-return]
        columns = self.dataset[index : index + self._BLOCK]
        rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
        if not rows:
            raise IndexError(index)
        self._block = (index, rows)
        return rows[0]


def _is_dataset(source: Any) -> bool:
    return hasattr(source, "column_names") and hasattr(source, "select") and hasattr(source, "map")


def _empty_task(index: int) -> Row:
    return {"prompt": []}


def _has_positions(source: Any) -> bool:
    """Say whether rows can be had by position: an iterable without a length (HF's IterableDataset) only looks like it."""
    return hasattr(source, "__getitem__") and (hasattr(source, "__len__") or not hasattr(source, "__iter__"))


class Tasks:
    """The tasks of an environment: rows, and how a row becomes the input of an episode."""

    def __init__(
        self,
        source: Rows | Iterable[Row] | DatasetBuilder | None,
        *,
        system_prompt: str | None = None,
        few_shot: Sequence[Mapping[str, Any]] | None = None,
        types: MessageTypes = MESSAGE_TYPES,
        dropped: Collection[str] = (),
    ) -> None:
        """Describe tasks; nothing is read or built yet.

        Args:
            source: Rows by position (with a length, or endless without one), an iterable of rows, a function without
                arguments that returns either, or None: every episode then starts from an empty task.
            system_prompt: Put before every question (unless it is empty), and before every prompt of the source that has no system
                message of its own. Rows that are given for one episode keep their prompts.
            few_shot: Messages between the system prompt and the ``question`` of a row.
            types: The message class for each role.
            dropped: Columns that are not part of a task.

        Raises:
            ConfigurationError: If `source` is none of these.
        """
        is_source = source is None or callable(source) or hasattr(source, "__getitem__") or isinstance(source, Iterable)
        if not is_source or isinstance(source, str | bytes | Mapping):
            hint = f" Pick one split of it: dataset[{next(iter(source), 'train')!r}]." if isinstance(source, Mapping) else ""
            raise ConfigurationError(
                "a dataset must be a list of dicts, a Dataset, an iterable of rows, a function that returns one of these, or"
                f" an object with rows by position; got {type(source).__name__}.{hint}"
            )
        if isinstance(source, list | tuple) and source and not isinstance(source[0], Mapping):  # the others are read when they are played
            raise ConfigurationError(f"row 0 of the dataset must be a dict, got {type(source[0]).__name__}")
        self._source = source
        self._types = types
        self.dropped = frozenset(dropped)
        """Columns that are not part of a task."""
        self.set_system_prompt(system_prompt)
        self._few_shot = as_messages(few_shot or [], types, name="few_shot")
        self._rows: Any = None
        self._own_ids = False
        self._known_ids: Sequence[int] | None = None
        self._index_of_id: dict[int, int] | None = None

    def set_system_prompt(self, system_prompt: str | None) -> None:
        """Put another text before every prompt that has no system message of its own; None for nothing."""
        self._system = [] if system_prompt is None else [self._types["system"](system_prompt)]

    @property
    def rows(self) -> Rows:
        """The rows, built on first access."""
        if self._rows is None:
            self._rows = self._built()
            self._known_ids = getattr(self._rows, "example_ids", None)
            self._own_ids = self._known_ids is not None
            if not self._own_ids and not self.is_endless and len(self):
                first = self._rows[0]
                self._own_ids = isinstance(first, Mapping) and type(whole_row(first).get("example_id")) is int
        return self._rows  # type: ignore[no-any-return]

    def _built(self) -> Any:
        source = self._source
        if source is None:
            return ProceduralTasks(_empty_task)
        if callable(source) and not hasattr(source, "__getitem__"):
            source = source()
        if _is_dataset(source):
            return DatasetRows(source)
        if _has_positions(source) and not isinstance(source, Mapping | str | bytes):
            return source
        if isinstance(source, Iterable) and not isinstance(source, Mapping | str | bytes):
            return list(source)
        raise ConfigurationError(f"the dataset builder must return rows (a list of dicts, a Dataset, ...), got {type(source).__name__}")

    @property
    def is_built(self) -> bool:
        """Whether the rows are there, or need no builder to be called."""
        return self._rows is not None or not callable(self._source) or hasattr(self._source, "__getitem__")

    @property
    def has_repeated_ids(self) -> bool:
        """Whether several rows have the same ``example_id`` of their own."""
        rows = self.rows
        if not self._own_ids or self.is_endless:
            return False
        ids = getattr(rows, "example_ids", None)
        if isinstance(ids, range):
            return False
        listed = [self.example_id_of(position) for position in range(len(self))] if ids is None else list(ids)
        return len(set(listed)) < len(listed)

    @property
    def renames_ids(self) -> bool:
        """Whether rows have an ``example_id`` that is not an integer, and is called ``src_id`` then."""
        rows = self.rows
        return not self._own_ids and not self.is_endless and len(self) > 0 and "example_id" in rows[0]

    @property
    def is_endless(self) -> bool:
        """Whether the source has no length."""
        return not hasattr(self.rows, "__len__")

    def __len__(self) -> int:
        """Number of tasks; `ENDLESS` for an endless source."""
        return ENDLESS if self.is_endless else len(self.rows)  # type: ignore[arg-type]

    def example_id_of(self, index: int) -> int:
        """Return the ``example_id`` of task number `index`: the row's own, where the rows have some."""
        rows = self.rows
        return self._choose_id(rows, index) if self._own_ids else index

    def index_of(self, example_id: int) -> int:
        """Return the position of the task with this ``example_id``.

        Raises:
            ConfigurationError: If there is none.
        """
        index = as_integer(example_id)
        rows = self.rows
        if self._own_ids:
            if self._index_of_id is None:
                self._index_of_id = {}
                for position in range(len(self)):
                    self._index_of_id.setdefault(self._choose_id(rows, position), position)
            index = None if index is None else self._index_of_id.get(index)
        if index is None or not 0 <= index < len(self):
            first = f", whose ids begin with {self.example_id_of(0)}" if len(self) else ""
            raise ConfigurationError(f"there is no task with example_id {example_id!r} among the {len(self)} tasks{first}")
        return index

    def _choose_id(self, rows: Rows, index: int) -> int:
        example_id = as_integer(whole_row(rows[index]).get("example_id") if self._known_ids is None else self._known_ids[index])
        if example_id is None:
            raise ConfigurationError(f"row {index} of the dataset needs an integer example_id, as the first row has one")
        return example_id

    def input(self, index: int) -> dict[str, Any]:
        """Return task number `index` as the input of one episode.

        Raises:
            ConfigurationError: If the row has neither a prompt nor a question, or they are malformed.
        """
        row = self.rows[index]
        where = f"row {index} of the dataset"
        if not isinstance(row, Mapping):
            raise ConfigurationError(f"{where} must be a dict, got {type(row).__name__}")
        task = self.copy_input(row, where)
        if row.get("prompt") is not None and whole_row(row) is row:
            task["prompt"] = self.with_system_prompt(task["prompt"])
        for column in self.dropped:
            task.pop(column, None)
        if not self._own_ids:
            if "example_id" in task:
                task["src_id"] = task["example_id"]
            task["example_id"] = index
        elif self._known_ids is not None:
            task["example_id"] = self._known_ids[index]
        elif as_integer(task.get("example_id")) is None:
            raise ConfigurationError(f"{where} needs an integer example_id, as the first row has one; got {task.get('example_id')!r}")
        return task

    def copy_input(self, row: Row, where: str = "the task") -> dict[str, Any]:
        """Return the input of one episode made of any row, with nothing shared that can be written to.

        A prompt stays as it is; of a question it is made with the system prompt and the few-shot messages. A row that holds a whole row
        is that row (see `whole_row`).

        Args:
            row: A row, or the input that was made of one.
            where: What the row is, for the error's text.

        Raises:
            ConfigurationError: If the row has neither a prompt nor a question, or they are malformed.
        """
        row = whole_row(row)
        task = {key: value if type(value) in _SHARED_TYPES or key == "prompt" else copy.deepcopy(value) for key, value in row.items()}
        try:
            task["prompt"] = self.build_prompt(task)
        except InvalidMessage as error:
            raise ConfigurationError(f"{where}: {error}") from None
        if "info" in task:
            task["info"] = parse_info(task["info"], where)
        return task

    def build_prompt(self, task: Row) -> list[Message]:
        """Return the prompt of a row: its own, or one of its question.

        Raises:
            InvalidMessage: If it has neither, or they are malformed.
        """
        if task.get("prompt") is not None:
            return self._copy_messages(as_messages(task["prompt"], self._types, name="prompt"))
        question = task.get("question")
        if question is None and "question" in task:
            raise InvalidMessage("the question is None, and there is no prompt")
        if question is None:
            raise InvalidMessage(f"a row needs a 'prompt' (messages) or a 'question' (text), got the keys {', '.join(task) or '(none)'}")
        system = self._system if self._system and self._system[0]["content"] else []
        return [*self._copy_messages([*system, *self._few_shot]), self._types["user"](question)]

    def with_system_prompt(self, prompt: list[Message]) -> list[Message]:
        """Return a prompt of the dataset with the system prompt before it, if it has no system message of its own."""
        has_system = bool(prompt) and prompt[0]["role"] in ("system", "developer")
        return prompt if has_system else [*self._copy_messages(self._system), *prompt]

    def _copy_messages(self, messages: list[Message]) -> list[Message]:
        """Return messages that nobody else holds, where the environment's messages can be written to."""
        return copy.deepcopy(messages) if messages and self._types is not MESSAGE_TYPES else messages


def whole_row(row: Row) -> Row:
    """Return the row that another row holds as a whole, in its ``info["task"]`` or its ``task``; the row itself where they are labels.

    Each may be data or JSON text. A row that is held has a ``prompt`` or a ``question``.
    """
    info = row.get("info")
    if isinstance(info, str):
        info = _decoded(info) if '"task"' in info else None
    for held in (info.get("task") if isinstance(info, Mapping) else None, row.get("task")):
        held = _decoded(held) if isinstance(held, str) else held
        if isinstance(held, Mapping) and ("prompt" in held or "question" in held):
            return held
    return row


def _decoded(text: str) -> Any:
    """Return the object that JSON text says, or None."""
    if text[:1] == "{":
        with contextlib.suppress(ValueError):
            return parse_json(text)
    return None


def as_integer(value: Any) -> int | None:
    """Return an integer of any kind (numpy's, too) as an ``int``; None for anything else, truth values included."""
    return operator.index(value) if hasattr(value, "__index__") and not isinstance(value, bool | np.bool) else None


def parse_info(info: Any, where: str) -> dict[str, Any]:
    """Return a row's ``info``, given as a dict or as JSON text.

    Raises:
        ConfigurationError: If it is not an object; the text names `where` it stands.
    """
    if isinstance(info, str):
        try:
            info = parse_json(info)
        except ValueError as error:
            raise ConfigurationError(f"{where}: info is text but not JSON: {error}") from None
    if info is None:
        return {}
    if not isinstance(info, Mapping):
        raise ConfigurationError(f"{where}: info must be a dict, or a JSON object as text; got {type(info).__name__}")
    return dict(info)


class TaskStream:
    """The order in which one player meets the tasks: a seeded permutation without repeats, then the next one."""

    def __init__(self, tasks: Tasks) -> None:
        """Stream `tasks`."""
        self.tasks = tasks
        self._drawn = 0
        self._moved: dict[int, int] = {}

    def restart(self) -> None:
        """Begin a new permutation."""
        self._drawn, self._moved = 0, {}

    def draw(self, rng: np.random.Generator) -> int:
        """Return the position of the next task.

        Raises:
            ConfigurationError: If there are no tasks.
        """
        total = len(self.tasks)
        if total == 0:
            raise ConfigurationError("the dataset is empty: an episode needs a task")
        if self._drawn >= total:
            self.restart()
        # A Fisher-Yates shuffle that stores only the positions it has moved: it costs the same for endless sources.
        other = int(rng.integers(self._drawn, total))
        drawn = self._moved.pop(other, other)
        if other != self._drawn:
            self._moved[other] = self._moved.pop(self._drawn, self._drawn)
        self._drawn += 1
        return drawn
