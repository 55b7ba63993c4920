"""The contract of a codec."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any

import gymnasium as gym

from vfgym.codecs.answers import closed_tags
from vfgym.codecs.data import json_text, wrapped_in
from vfgym.codecs.narrowing import search
from vfgym.codecs.numbers import is_changed, is_negated
from vfgym.codecs.problems import ActionNotFound, several
from vfgym.codecs.relaxed import bracketed, read_json, read_relaxed

Schema = dict[str, Any]
"""A JSON schema (draft 2020-12)."""

Space = gym.Space[Any]

_STARTS_OF_DATA = "[{(+-.0123456789"
"""What an answer begins with that is meant as data: of other text it would be odd to say that its first element is wrong."""


class Codec(ABC):
    """The actions of one space as JSON data, as text, and in words.

    Codecs are compiled when they are made, compare by their space and names, and can be pickled and copied. A kind of space is
    added by subclassing: `to_json`, `read`, `listing` and `representative` are what a kind must have, the rest follows. Then
    `register_codec` makes it known.
    """

    space: Space
    """The space whose actions these are."""
    names: Any
    """The names that the codec was given, or ``None``."""
    schema: Schema
    """JSON schema of what `to_json` gives."""

    @abstractmethod
    def to_json(self, action: Any) -> Any:
        """Return an action as JSON data, from which `from_json` makes exactly the same action.

        Numbers are written with as few digits as tell them apart at the space's dtype; infinities and NaN, which JSON does not
        have, are the strings ``"inf"``, ``"-inf"`` and ``"nan"``.

        Raises:
            InvalidAction: If it has not the form of an action of this space.
        """

    @abstractmethod
    def read(self, data: Any) -> Any:
        """Return the action of JSON data, which lies in the space and has its types.

        Raises:
            ActionNotFound: With the problem as the rest of a sentence, and its places inside the data.
        """

    @abstractmethod
    def listing(self) -> str:
        """Return the valid actions as a short phrase for prompts and feedback."""

    @abstractmethod
    def representative(self) -> Any:
        """Return an ordinary action, always the same one: no extreme of the space where there are others."""

    def from_json(self, data: Any) -> Any:
        """Return the action of JSON data (the argument of a tool call), which lies in the space and has its exact types.

        The format is forgiven: ``"3"`` for 3, 3.0 for 3, a name in another case. The meaning is not: a value out of bounds, a
        missing or unknown key, a wrong number of elements, a fraction where there are whole numbers.

        Raises:
            ActionNotFound: If it is not an action. The message says where and why, and what is valid.
        """
        try:
            return self.read(data)
        except ActionNotFound as error:
            raise self.not_found(error.sentence()) from None

    def encode(self, action: Any) -> str:
        """Return an action as a model would best write it; `decode` makes exactly the same action of it."""
        return json_text(self.to_json(action))

    def decode(self, text: str) -> Any:
        """Return the action that a message names.

        It may stand after the reasoning, in ``<action>`` tags, in a code fence, after "Action:", inside a JSON object
        ``{"action": ...}``, and need not be quite JSON. A text that names two different actions names none: in two tags, after two
        labels, in two fences, in a sentence. Of several tags (labels, fences) those that hold no action do not count.

        Raises:
            ActionNotFound: If it names none, or several. The message says why, and what is valid.
        """
        try:
            return self.read(read_json(text))
        except ValueError:
            return self._search(text)

    def decode_cut_off(self, text: str) -> Any:
        """Return the action that a message names which was cut off: only what stands in closed ``<action>`` tags counts.

        Raises:
            ActionNotFound: If there are no such tags, or what stands in them names no action, or several.
        """
        tags = closed_tags(text)
        if not tags:
            raise self.not_found("Your answer was cut off by the limit of its length before it named an action: answer more briefly")
        return self.decode(tags)

    def example(self) -> str:
        """Return the text of an ordinary action, always the same one."""
        return self.encode(self.representative())

    def legal_texts(self, mask: Any) -> list[str] | None:
        """Return the texts of the actions that a mask allows, or ``None`` where there is no mask or actions are not enumerable.

        Args:
            mask: What Gymnasium calls an action mask: an int8 array with a 1 for each legal action; or ``None``.
        """
        return None

    def not_found(self, sentence: str) -> ActionNotFound:
        """Return the error with which a model is told what is wrong and what is valid."""
        return ActionNotFound(f"{sentence}. Valid actions: {self.listing()}.")

    def alone(self, text: str) -> Any:
        """Return the action that a text is, but for its format: almost JSON, and with ``{"action": ...}`` around it.

        Returns:
            The action, or ``None`` if the text is something else.

        Raises:
            ActionNotFound: If it is meant as data and is not an action, with the problem and its places.
        """
        try:
            data = read_relaxed(text)
        except ValueError:
            return None
        try:
            return self.read_answer(data)
        except ActionNotFound as error:
            if text[0] in _STARTS_OF_DATA or (isinstance(data, Mapping) and (error.places or len(data) > 1)):
                raise
            return None

    def prose(self, text: str, is_marked: bool) -> Any:
        """Return the action that stands inside brackets in a text; kinds that can be read out of sentences override this.

        Args:
            text: An answer that is more than its action.
            is_marked: Whether it stood in tags or after a label, so that an action which it mentions is meant as the answer.

        Returns:
            The action, or ``None`` if there is none.

        Raises:
            ActionNotFound: If there are several, or what there is cannot be read. The message is a sentence without its full stop.
        """
        # What is alone in parentheses is a remark.
        return self.stated(text, (found for found in bracketed(text) if isinstance(found[0], list | Mapping)))

    def stated(self, text: str, candidates: Iterable[tuple[Any, int, int]]) -> Any:
        """Return the one action that there is among data with their places in a text; returns and raises as `prose` does."""
        found: dict[str, Any] = {}
        problem: ActionNotFound | None = None
        is_unclear = False
        for data, start, end in candidates:
            try:
                action = self.read_answer(data)
            except ActionNotFound as error:
                problem = problem or error
            else:
                found[self.encode(action)] = action
                is_unclear = is_unclear or is_negated(text, start) or is_changed(text, start, end)
        if len(found) > 1:
            raise several(len(found))
        if is_unclear:
            raise ActionNotFound(f"It is unclear whether {next(iter(found))} is meant")
        if found:
            return next(iter(found.values()))
        if problem is not None:
            raise ActionNotFound(problem.sentence())
        return None

    def read_answer(self, data: Any) -> Any:
        """Return the action of data that stood alone in an answer: like `read`, and unwraps ``{"action": ...}``.

        Raises:
            ActionNotFound: As `read` does.
        """
        try:
            return self.read(data)
        except ActionNotFound:
            wrapped = wrapped_in(data)
            if len(wrapped) != 1:
                raise
            return self.read_answer(wrapped[0])

    def _search(self, text: str) -> Any:
        """Return the action that stands somewhere in a text, which is not just its JSON; raises as `decode` does."""
        try:
            return search(text, self)
        except ActionNotFound as error:
            raise self.not_found(str(error)) from None

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and isinstance(other, Codec) and self.space == other.space and self.names == other.names

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.space!r})" if self.names is None else f"{type(self).__name__}({self.space!r}, {self.names!r})"


def seeded_sample(space: Space) -> Any:
    """Return the same sample at each call, without a change to the space's own random numbers."""
    twin = copy.deepcopy(space)
    twin.seed(0)
    return twin.sample()
