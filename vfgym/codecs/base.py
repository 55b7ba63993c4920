"""The contract of a codec."""

from __future__ import annotations

import copy
import re
from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import Any

import gymnasium as gym

from vfgym.codecs.data import json_text
from vfgym.codecs.labels import is_label
from vfgym.codecs.numbers import JOINED, with_plain_signs
from vfgym.codecs.pictures import without_pictures
from vfgym.codecs.problems import ActionNotFound, AnswerUnclear
from vfgym.codecs.reading import Where, read_answer, read_marks
from vfgym.codecs.relaxed import outermost_brackets, read_json, read_relaxed
from vfgym.codecs.remarks import Remarked, in_parentheses, remarked, without_brackets, without_label
from vfgym.codecs.sentences import turns, words_in
from vfgym.data import answer_words

Schema = dict[str, Any]
"""A JSON schema (draft 2020-12)."""

Space = gym.Space[Any]

_STARTS_OF_DATA = "[{(+-.0123456789"
"""What an answer begins with that is meant as data: of other text it would be odd to say that its first element is wrong."""

_DECORATION = " \t\r\n*_`\"'\u201c\u201d\u201e\u2018\u2019\u00ab\u00bb$"
"""Emphasis and quotes."""

_DIGIT = re.compile(r"\d")
_MOST_CHARACTERS = 300
"""The longest text out of which words such as "go" and "my" are left: a longer one is more than an action."""

_PARTS = re.compile(r"[+-]?\d+(?:\.\d+)?|[^\W\d_]+")
_DECIMAL_COMMA = re.compile(r"\d,\d")


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
    own_keys: Collection[str] = ()
    """Keys of the data itself, where it is an object."""
    has_fractions: bool = True
    """Whether an action may have fractions, so that "0,5" may be one number or two."""
    has_brackets: bool = False
    """Whether ``[x]`` marks an action, as in TextArena; here it is a list."""
    longest: int = 0
    """About how many characters the longest action has as text; 0 where it has few, or where there is no longest one."""

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
        """Return the action that a message names (see `vfgym.codecs.reading` for the rule).

        Raises:
            ActionNotFound: If it names none, or several. The message says why, and what is valid.
        """
        action = self.read_exactly(text)
        return self._read(text) if action is None else action

    def decode_cut_off(self, text: str) -> Any:
        """Return the action that a message names which was cut off: only closed tags, boxes and JSON count.

        Raises:
            ActionNotFound: If nothing of the kind names an action, or they name several.
        """
        return self._read(text, is_cut_off=True)

    def decode_mark(self, text: str) -> Any:
        """Return the action that stands in a mark; raises as `decode` does."""
        try:
            return read_marks([text.strip()], self)
        except ActionNotFound as error:
            raise self.not_found(error.sentence()) from None

    def _read(self, text: str, *, is_cut_off: bool = False) -> Any:
        try:
            return read_answer(text, self, is_cut_off=is_cut_off)
        except ActionNotFound as error:
            raise self.not_found(error.sentence()) from None

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

    def read_exactly(self, text: str) -> Any:
        """Return the action that is written exactly so, as `encode` writes it; ``None`` for any other text."""
        try:
            return self.read(read_json(text))
        except ValueError:
            return None

    def match(self, text: str, where: Where) -> Any:
        """Return the action that a text is as a whole, its format aside; ``None`` if it is anything else or more than that.

        Set aside are emphasis, quotes, pictures and final punctuation, around a marked text brackets, a label such as "position:" and a
        remark that names no other action and makes no other thing of it, and the words of ``answer_words.json``.

        Args:
            text: An answer, a line of one, or what stands in a mark.
            where: Which of these it is.

        Raises:
            ActionNotFound: If it is meant as data and is not an action, or if its remark names another action.
        """
        bare = _strip_decoration(text, where)
        if where is Where.LAST_LINE:
            return self._match_bare(bare, where)
        plain, directions = without_pictures(bare)
        bare = plain if plain is bare else _strip_decoration(plain, where)
        action = self._match_marked(bare) if where is Where.MARK else self._match_bare(bare, where)
        if action is not None and directions and any(self._names_other(direction, action) for direction in directions):
            raise self._unclear(action)
        return action

    def _match_marked(self, text: str) -> Any:
        """Return the action that a marked text is, with or without a remark behind it."""
        problem: ActionNotFound | None = None
        try:
            action = self._match_whole(text)
        except AnswerUnclear:
            raise
        except ActionNotFound as error:
            problem, action = error, None
        if action is not None:
            return action
        for part in remarked(text):
            try:
                action = self._match_before_remark(_strip_decoration(part.action, Where.MARK))
            except ActionNotFound:
                continue
            if action is not None:
                return self._with_remark(action, part)
        if problem is not None:
            raise problem
        return None

    def _match_before_remark(self, text: str) -> Any:
        """Return the action before a remark: where it says no, it must be the name of an action, and not a part of one."""
        if len(text) > _MOST_CHARACTERS:
            return None
        return self.lookup(text, Where.MARK) if turns(text) else self._match_whole(text)

    def _match_whole(self, text: str) -> Any:
        """Return the action that a text is, in brackets or without, and with a label or a remark in parentheses."""
        problem: ActionNotFound | None = None
        try:
            action = self._match_bare(text, Where.MARK)
        except ActionNotFound as error:
            problem, action = error, None
        if action is not None:
            return action
        inner = without_brackets(text)
        if inner is not None:
            action = self._match_inner(inner)
        labelled = None if action is not None else without_label(text)
        if labelled is not None and self._is_label(labelled[0]):
            action = self._match_inner(labelled[1])
        remark = in_parentheses(text) if action is None else None
        if remark is not None:
            action = self._match_bare(_strip_decoration(remark.action, Where.MARK), Where.MARK)
            if action is not None:
                return self._with_remark(action, remark)
        if action is None and problem is not None:
            raise problem
        return action

    def _match_inner(self, text: str) -> Any:
        try:
            return self._match_bare(_strip_decoration(text, Where.MARK), Where.MARK)
        except ActionNotFound:
            return None

    def _is_label(self, words: str) -> bool:
        """Say whether what stands before a colon says nothing of the action: words such as "position", or the name of its number."""
        own = {str(key).casefold() for key in self.own_keys}
        return is_label(words) or (len(own) == 1 and words in own) or answer_words().left_out_in_marks.issuperset(words.split())

    def _with_remark(self, action: Any, part: Remarked) -> Any:
        """Return an action, if the remark beside it leaves it what it is.

        Raises:
            AnswerUnclear: If the remark names another action, or turns this one into something else.
        """
        mentioned = self.mentioned_in(part.remark)
        is_other = any(self.to_json(other) != self.to_json(action) for other in mentioned)
        if is_other or turns(part.remark, may_say_what_is_not=part.is_reason or part.is_in_parentheses):
            raise self._unclear(action)
        if part.is_in_parentheses and turns(" ".join(words_in(part.remark)[:1])):
            raise self._unclear(action)
        if not (part.is_reason or part.is_in_parentheses) and (_DIGIT.search(part.remark) or (mentioned and not part.action.isdigit())):
            raise self._unclear(action)
        return action

    def _unclear(self, action: Any) -> AnswerUnclear:
        return AnswerUnclear(f"It is unclear whether {self.to_json(action)} is your choice, since your remark may name another action")

    def _names_other(self, remark: str, action: Any) -> bool:
        return any(self.to_json(other) != self.to_json(action) for other in self.mentioned_in(remark))

    def _match_bare(self, text: str, where: Where) -> Any:
        action = self.lookup(text, where)
        if action is None and where is not Where.LAST_LINE and len(text) <= _MOST_CHARACTERS:
            left_out = answer_words().left_out_in_marks if where is Where.MARK else answer_words().left_out
            words = JOINED.sub(" ", with_plain_signs(text)).split()
            telling = [word for word in words if word.casefold() not in left_out]
            if telling and len(telling) < len(words):
                action = self.lookup(" ".join(telling), where)
            if telling and action is None and where is Where.MARK:
                action = self.find_by_words(telling)
        return action

    def lookup(self, text: str, where: Where) -> Any:
        """Return the action that a text without decoration is; ``None`` if it is none.

        Here it is the action of JSON data, or of almost JSON. In a mark lists and objects need no brackets.

        Raises:
            ActionNotFound: If it is meant as data and is not an action, with the problem and its places.
        """
        has_brackets = text[:1] in ("[", "{", "(")
        if not has_brackets and where is not Where.MARK:
            return self.read_exactly(text)
        if not has_brackets and self.has_fractions and _DECIMAL_COMMA.search(text):
            return None
        try:
            return self.read(read_relaxed(text))
        except ActionNotFound:
            if text[:1] in _STARTS_OF_DATA:
                raise
            return None
        except ValueError:
            return None

    def find_by_words(self, words: list[str]) -> Any:
        """Return the one action whose name contains all of these words; ``None`` if there is none. Kinds with names override this."""
        return None

    def mentioned_in(self, remark: str) -> list[Any]:
        """Return the actions that a remark mentions: the whole of it, and the words, numbers and brackets in it that are one."""
        parts = [remark, *_PARTS.findall(remark), *(remark[start:end] for start, end in outermost_brackets(remark))]
        found = []
        for part in parts:
            try:
                found.append(self._match_bare(_strip_decoration(part, Where.MARK), Where.MARK))
            except ActionNotFound:
                continue
        return [action for action in found if action is not None]

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and isinstance(other, Codec) and self.space == other.space and self.names == other.names

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.space!r})" if self.names is None else f"{type(self).__name__}({self.space!r}, {self.names!r})"


def _strip_decoration(text: str, where: Where) -> str:
    """Return a text without emphasis, quotes and the punctuation at its end: in a mark all of it, else one full stop."""
    bare = text.strip(_DECORATION)
    if bare[:1] == "~" == bare[-1:]:  # crossed out or code, where "~4" is about 4
        bare = bare.strip(_DECORATION + "~")
    if where is Where.MARK:
        return bare.rstrip(_DECORATION + ".!,;:\u3002\uff01").removeprefix("#").lstrip()
    return bare if bare.endswith("..") or bare[-1:] not in (".", "!") else bare[:-1].rstrip(_DECORATION)


def seeded_sample(space: Space) -> Any:
    """Return the same sample at each call, without a change to the space's own random numbers."""
    twin = copy.deepcopy(space)
    twin.seed(0)
    return twin.sample()
