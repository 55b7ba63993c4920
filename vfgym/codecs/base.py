"""The contract of a codec, and the dispatch from a space to the codec of its kind."""

from __future__ import annotations

import copy
import json
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import gymnasium as gym

from vfgym.codecs.answers import MARKUP, after_reasoning, closed_tags, fenced, first_line, labelled, tagged, where_to_search
from vfgym.codecs.choices import is_chosen
from vfgym.codecs.numbers import Number, is_changed, is_negated, numbers_in, with_plain_signs
from vfgym.codecs.relaxed import bracketed, read_json, read_relaxed
from vfgym.errors import ConfigurationError

Schema = dict[str, Any]
"""A JSON schema (draft 2020-12)."""

Space = gym.Space[Any]

NO_ACTION = "Your answer names no action"

STATE_IT = "name your action alone, or say that you choose it"
"""What is asked of a model whose answer mentions an action that may be no choice."""

_WRAPPING_KEYS = ("action", "answer", "arguments")
"""Keys of an object that models put around an action, in imitation of a tool call. Beside them it may hold remarks."""


_STARTS_OF_DATA = "[{(+-.0123456789"
"""What an answer begins with that is meant as data: of other text it would be odd to say that its first element is wrong."""


_ALTERNATIVE = re.compile(r"([^.!?\n]*)\b(?:or|and|nor)\W*\Z", re.IGNORECASE)
_KEY = re.compile(rf"""["'](?:{"|".join(_WRAPPING_KEYS)})["']\s*:""", re.IGNORECASE)
_LONGEST_ALTERNATIVE = 80
"""Characters before an object that may name an alternative to it."""


class ActionNotFound(ValueError):
    """What was given names no action, or several. The message is written for the model.

    Inside a codec's `Codec.read` it says what is wrong with one value, as the rest of a sentence ("must be from 0 to 1, got 3"),
    and the codecs around it add where that value stands to `places`.
    """

    def __init__(self, message: str, *places: str) -> None:
        """Say what is wrong.

        Args:
            message: The problem.
            *places: Where it is, from the inside to the outside, such as "element 2" and "`thrust`".
        """
        super().__init__(message)
        self.places = list(places)

    def sentence(self) -> str:
        """Return place and problem as one sentence, without its full stop."""
        place = " of ".join(self.places) or "the action"
        return f"{place[0].upper()}{place[1:]} {self}"


class SeveralActions(ActionNotFound):
    """What was given names different actions."""


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
            ActionNotFound: If it is no action. The message says where and why, and what is valid.
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
            ActionNotFound: If it is meant as data and is no action, with the problem and its places.
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
        """Return the action that stands somewhere in a text, which is not just its JSON."""
        answer = after_reasoning(text)
        tags = tagged(answer)
        try:
            if len(tags) > 1:
                return self._agreed(tags, self._within)
            return self._within(tags[0]) if tags else self._within(answer, is_marked=False)
        except ActionNotFound as error:
            raise self.not_found(str(error)) from None

    def _agreed(self, parts: Iterable[str], read: Callable[[str], Any]) -> Any:
        """Return the one action that is read from parts of an answer, each of which says what the answer is.

        Parts that hold no action at all do not count: they quote the form of an answer.
        """
        found: dict[str, Any] = {}
        problem = ActionNotFound(NO_ACTION)
        for part in dict.fromkeys(parts):
            try:
                action = read(part)
            except SeveralActions:
                raise
            except ActionNotFound as error:
                problem = error
            else:
                found[str(self.to_json(action))] = action
        if len(found) > 1:
            raise several(len(found))
        if not found:
            raise problem
        return next(iter(found.values()))

    def _within(self, part: str, is_marked: bool = True, is_labelled: bool = False) -> Any:
        """Return the action of a part of an answer: the whole of it, or what is labelled in it, or fenced, or mentioned.

        Args:
            part: An answer, or what stood in tags or after a label.
            is_marked: Whether it stood in tags or after a label.
            is_labelled: Whether it stood after a label, so that its first line may be all that is meant.
        """
        problem = None
        try:
            action = self.alone(part)
        except ActionNotFound as error:
            problem = ActionNotFound(error.sentence())
        else:
            if action is not None:
                return action
        if not is_labelled and (labels := labelled(part)):
            return self._agreed(labels, lambda label: self._within(label, is_labelled=True))
        lines = [line] if is_labelled and (line := first_line(part)) != part else []
        found: dict[str, Any] = {}
        for narrower in (*lines, *fenced(part)):
            try:
                action = self.alone(narrower)
            except ActionNotFound as error:
                problem = problem or ActionNotFound(error.sentence())
            else:
                if action is not None:
                    found[str(self.to_json(action))] = action
        if len(found) > 1:
            raise several(len(found))
        if found:
            return next(iter(found.values()))
        for searched in (*lines, part):
            try:
                action = self.prose(where_to_search(searched, is_marked), is_marked)
            except ActionNotFound as error:
                problem = error
            else:
                if action is not None:
                    return action
        raise problem or ActionNotFound(NO_ACTION)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and isinstance(other, Codec) and self.space == other.space and self.names == other.names

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.space!r})" if self.names is None else f"{type(self).__name__}({self.space!r}, {self.names!r})"


CodecFactory = Callable[[Any, Any], Codec]
"""Makes the codec of a space from the space and the names (or ``None``)."""

_factories: dict[type[Space], CodecFactory] = {}


def register_codec(space_class: type[Space], factory: CodecFactory) -> None:
    """Make known how the codecs of a kind of spaces are made; subclasses of it without a factory of their own use it too.

    Args:
        space_class: A subclass of `gymnasium.Space`.
        factory: Called with a space and its names (``None`` without any); most often a subclass of `Codec`.

    Raises:
        ConfigurationError: If the class is no subclass of `gymnasium.Space`.
    """
    if not (isinstance(space_class, type) and issubclass(space_class, gym.Space)):
        raise ConfigurationError(f"expected a subclass of gymnasium.Space, got {space_class!r}")
    _factories[space_class] = factory


def codec_for(space: Space, names: Any = None) -> Codec:
    """Return the codec of a space.

    >>> codec = codec_for(gym.spaces.Discrete(3), ["left", "stay", "right"])
    >>> codec.encode(2), codec.decode("I go <action>Right</action>!"), codec.from_json(0)
    ('right', np.int64(2), np.int64(0))

    Args:
        space: Any space, nested as deeply as you like. A space of an unknown class is treated like its nearest known base
            class (what its own `contains` refuses is refused), or by its own `to_jsonable` and `from_jsonable`.
        names: What actions are called. For a `Discrete` a name for each action, in order, or a mapping from numbers to names;
            for a vector (a 1-d `Box` or `MultiBinary`) a label for each element; for a `Dict`, `Tuple`, `OneOf`, `MultiDiscrete`
            or `Graph` a structure like the space's, with such names or ``None`` in it; for a `Sequence` the names of one item.

    Raises:
        ConfigurationError: If it is no space, or the names do not fit it.
    """
    if not isinstance(space, gym.Space):
        raise ConfigurationError(f"expected a gymnasium.Space, got {space!r}")
    for base in type(space).__mro__:
        if base in _factories:
            codec = _factories[base](space, names)
            return codec if type(space).contains is base.contains or base is gym.Space else NarrowedCodec(codec)
    raise AssertionError("gym.Space itself is registered")


class NarrowedCodec(Codec):
    """The codec of a user's subclass of a known space, which contains only some of what its base class contains."""

    def __init__(self, codec: Codec) -> None:
        """Narrow the codec of the base class by the space's own `contains`."""
        self.space, self.names, self.schema = codec.space, codec.names, codec.schema
        self._codec = codec

    def to_json(self, action: Any) -> Any:
        """Return what the base class's codec returns."""
        return self._codec.to_json(action)

    def encode(self, action: Any) -> str:
        """Return what the base class's codec returns."""
        return self._codec.encode(action)

    def read(self, data: Any) -> Any:
        """Return what the base class's codec reads, if the space contains it."""
        return self._checked(self._codec.read(data))

    def decode(self, text: str) -> Any:
        """Return what the base class's codec reads, if the space contains it."""
        action = self._codec.decode(text)
        try:
            return self._checked(action)
        except ActionNotFound as error:
            raise self.not_found(error.sentence()) from None

    def listing(self) -> str:
        """Return the phrase of the base class."""
        return self._codec.listing()

    def legal_texts(self, mask: Any) -> list[str] | None:
        """Return what the base class's codec returns."""
        return self._codec.legal_texts(mask)

    def representative(self) -> Any:
        """Return the base class's action if the space contains it, and a sample if not."""
        action = self._codec.representative()
        return action if self.space.contains(action) else seeded_sample(self.space)

    def _checked(self, action: Any) -> Any:
        if not self.space.contains(action):
            raise ActionNotFound(f"is not valid here, got {self._codec.encode(action)}")
        return action


def seeded_sample(space: Space) -> Any:
    """Return the same sample at each call, without a change to the space's own random numbers."""
    twin = copy.deepcopy(space)
    twin.seed(0)
    return twin.sample()


def several(count: int) -> SeveralActions:
    """Return the error for an answer that names different actions."""
    return SeveralActions(f"Your answer names {count} different actions")


def beside(text: str, objects: Sequence[tuple[Any, int, int]]) -> str:
    """Return what a text says beside objects that name its action: what follows them, and alternatives just before them.

    What else stands before an object led to it, and may weigh other actions.

    >>> beside('2 is a wall. {"action": 5} or 6', [({"action": 5}, 13, 26)])
    ' or 6'
    """
    start, end = objects[0][1], objects[-1][2]
    alternatives = _ALTERNATIVE.search(text[max(0, start - _LONGEST_ALTERNATIVE) : start])
    return f"{alternatives[1]} {text[end:]}" if alternatives else text[end:]


def after_key(text: str) -> str:
    """Return what follows the last key of an action in a text whose JSON is broken; all of the text where there is none."""
    return text[keys[-1].end() :] if (keys := list(_KEY.finditer(text))) else text


def chosen_number(text: str, is_marked: bool) -> Number | None:
    """Return the only number in a text, or ``None`` if there is none.

    Args:
        text: A text.
        is_marked: Whether it stood in tags or after a label, so that the number need not be said to be the choice.

    Raises:
        ActionNotFound: If there are several, or it is unclear whether the number is the choice. The message is a sentence without its
            full stop.
    """
    try:
        numbers = numbers_in(text)
    except ValueError as error:
        raise ActionNotFound(str(error)) from None
    if len(numbers) > 1:
        raise several(len(numbers))
    for number, places in numbers.items():
        if not is_marked and not is_chosen(with_plain_signs(text), places):
            raise ActionNotFound(f"It is unclear whether {number} is your choice: {STATE_IT}")
        return number
    return None


def wrapped_in(data: Any) -> list[Any]:
    """Return what stands under the keys with which models wrap an action.

    >>> wrapped_in({"reason": "It is free.", "Action": 2})
    [2]
    """
    if not isinstance(data, Mapping):
        return []
    return [value for key, value in data.items() if isinstance(key, str) and key.casefold() in _WRAPPING_KEYS]


def json_text(data: Any) -> str:
    r"""Return JSON data as text in which whole numbers have no fraction and nothing can be taken for a message's markup.

    >>> json_text([0.5, -1.0, {"say": "</action>"}])
    '[0.5, -1, {"say": "\\u003c/action>"}]'
    """
    if type(data) is float:
        return number_text(data)
    if isinstance(data, list):
        return "[" + ", ".join([json_text(item) for item in data]) + "]"
    if isinstance(data, dict):
        return "{" + ", ".join([f"{json_text(key)}: {json_text(value)}" for key, value in data.items()]) + "}"
    text = json.dumps(data, ensure_ascii=False)
    return text.replace("<", "\\u003c") if "<" in text and MARKUP.search(text) else text


def number_text(number: float) -> str:
    """Return a number in its shortest form: -1 for -1.0, but -0.0 for -0.0, which is another number."""
    if number.is_integer() and abs(number) < 1e15 and (number or math.copysign(1.0, number) > 0):
        return str(int(number))
    return repr(number)


def shown(data: Any) -> str:
    """Return data as an error message shows it."""
    try:
        text = json.dumps(data, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        text = repr(data)
    return text if len(text) <= 60 else f"{text[:50]}..."


def sequence_of(data: Any) -> Sequence[Any] | None:
    """Return data that is a list (a tuple or the text of a list will do), or ``None``."""
    if isinstance(data, list | tuple):
        return data
    opened = _from_text(data, "[(")
    return opened if isinstance(opened, list) else None


def elements_of(data: Any, count: int) -> Sequence[Any]:
    """Return data that is a list of `count` elements.

    Raises:
        ActionNotFound: If it is not.
    """
    items = sequence_of(data)
    elements = f"{count} element{'' if count == 1 else 's'}"
    if items is None:
        raise ActionNotFound(f"must be a list of {elements}, got {shown(data)}")
    if len(items) != count:
        raise ActionNotFound(f"must have {elements}, got {len(items)}")
    return items


def mapping_of(data: Any) -> Mapping[str, Any] | None:
    """Return data that is an object (the text of one will do), or ``None``."""
    if isinstance(data, Mapping):
        return data
    opened = _from_text(data, "{")
    return opened if isinstance(opened, Mapping) else None


def _from_text(data: Any, openers: str) -> Any:
    """Return the data inside a string: models put lists and objects in quotes when they call tools."""
    if isinstance(data, str) and data.strip()[:1] in tuple(openers):
        try:
            return read_json(data)
        except ValueError:
            return None
    return None
