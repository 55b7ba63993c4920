"""What a model's answer plays under the contract ``gym``: a JSON object that a server's schema of actions describes."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from vfgym.bounded_json import parse_json
from vfgym.codecs.data import json_text
from vfgym.codecs.problems import ActionNotFound
from vfgym.codecs.reading import Where, read_answer
from vfgym.codecs.relaxed import read_json, read_relaxed
from vfgym.errors import did_you_mean
from vfgym.messages import AssistantMessage
from vfgym.tools.json_numbers import admitted_types
from vfgym.tools.sampling import sample_arguments

_METADATA = "metadata"
"""The field that every action of OpenEnv has, which is not a model's to fill."""


_TYPES: Mapping[type, tuple[str, ...]] = {
    bool: ("boolean",),
    int: ("integer", "number"),
    float: ("number",),
    str: ("string",),
    list: ("array",),
    dict: ("object",),
    type(None): ("null",),
}
"""For each kind of JSON value, the types of a schema that admit it."""


class ActionReader:
    r"""Reads actions from answers, by the rule of all games (`vfgym.codecs.reading`).

    An action is a JSON object with the fields of the schema. Where the schema has one field, or requires only one, its value alone is an
    action, too: any text for a field of text. Types are the server's to check.

    >>> schema = {"properties": {"move": {"type": "integer"}, "metadata": {"type": "object"}}, "required": ["move"]}
    >>> reader = ActionReader({**schema, "additionalProperties": False})
    >>> reader.read('I go left.\n{"move": 2}'), reader.read("2")
    ({'move': 2}, {'move': 2})
    """

    has_brackets = False
    longest = 0

    def __init__(self, schema: Mapping[str, Any]) -> None:
        """Describe actions.

        Args:
            schema: The server's JSON schema of actions; empty where it has none, so that any object is an action.
        """
        properties = schema.get("properties")
        self.fields = {name: field for name, field in (properties or {}).items() if name != _METADATA}
        """The schema of each field."""
        self.own_keys: Collection[str] = frozenset(self.fields)
        self._required = [name for name in schema.get("required") or () if name in self.fields]
        self._is_closed = bool(self.fields) and schema.get("additionalProperties") is False
        self._schema = {**schema, "properties": self.fields}
        alone = self._required if len(self._required) == 1 else list(self.fields)
        self._alone = alone[0] if len(alone) == 1 else None

    def read(self, text: str, *, is_cut_off: bool = False) -> dict[str, Any]:
        """Return the action that an answer names.

        Raises:
            ActionNotFound: If it names none, or several. `ActionNotFound.sentence` says why.
        """
        action: dict[str, Any] = read_answer(text, self, is_cut_off=is_cut_off)
        return action

    @property
    def instructions(self) -> str:
        """What a model is told of the form of an action."""
        if not self.fields:
            return "An action is a JSON object."
        described = json.dumps({"properties": self.fields, "required": self._required}, ensure_ascii=False)
        alone = f' The value of "{self._alone}" alone will do.' if self._alone else ""
        return f"An action is a JSON object with this schema: {described}.{alone}"

    def sample(self, rng: np.random.Generator) -> AssistantMessage:
        """Return a message with a random action of the schema."""
        return AssistantMessage(json_text(sample_arguments(self._schema, rng)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ActionReader) and self._schema == other._schema

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"ActionReader({self._schema})"

    # What the rule of reading asks for

    def read_exactly(self, text: str) -> dict[str, Any] | None:
        """Return an object with the fields of an action; None for anything else."""
        if text[:1] != "{":
            return None
        try:
            data = parse_json(text)
        except ValueError:
            return None
        return data if isinstance(data, dict) and self._problem(data) is None else None

    def match(self, text: str, where: Where) -> dict[str, Any] | None:
        """Return the action that a text is as a whole: an object, or the value of the one field.

        Raises:
            ActionNotFound: If it is an object with other fields.
        """
        try:
            data = read_relaxed(text)
        except ValueError:
            data = None
        if isinstance(data, dict):
            problem = self._problem(data)
            if problem is None:
                return data
            if text[:1] == "{":
                raise ActionNotFound(problem)
        return None if self._alone is None else self._match_alone(self._alone, text, where)

    def to_json(self, action: Mapping[str, Any]) -> Any:
        """Return what tells an action from others."""
        return dict(action)

    def _match_alone(self, name: str, text: str, where: Where) -> dict[str, Any] | None:
        """Return the action whose one field a text gives: as JSON of a type that the field admits, or as the text itself."""
        types = admitted_types(self.fields[name], self._schema)
        try:
            value = read_json(text)
        except ValueError:
            pass
        else:
            if types.intersection(_TYPES[type(value)]):
                return {name: value}
        return {name: text} if text and "string" in types and where is not Where.LAST_LINE else None

    def _problem(self, data: Mapping[str, Any]) -> str | None:
        """Return what is wrong with the fields of an object; None if nothing is."""
        missing = [name for name in self._required if name not in data]
        if missing:
            return f"needs the field {', '.join(map(repr, missing))}"
        unknown = [name for name in data if name not in self.fields and name != _METADATA]
        if unknown and self._is_closed:
            return f"has no field {unknown[0]!r}, but {', '.join(map(repr, self.fields))}.{did_you_mean(unknown[0], self.fields)}"
        return None
