"""Whether a sentence that mentions an action says that it is the choice: "I go left", but not "Going left leads into a hole".

A mention counts for one of a few reasons (`Mention.is_chosen`), unless the sentence takes it back (`Mention.is_in_doubt`). What `english`
knows of either is not complete: where it does not reach, an answer is rather asked for again than guessed at.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from vfgym.codecs import english
from vfgym.codecs.numbers import SIGN_WORD, Number, numbers_in, with_plain_signs, without_array_call
from vfgym.codecs.problems import STATE_IT, ActionNotFound, several

_LONGEST_SENTENCE = 300  # characters before and after a mention that are looked at
_MOST_MENTIONS = 32


def says_nothing(text: str) -> bool:
    """Say whether there are no words in a text, only decoration and formatting.

    >>> says_nothing(" **?** </s>"), says_nothing("a"), says_nothing("1")
    (True, False, True)
    """
    return not any(character.isalpha() for character in english.MARKUP.sub("", text))


class Mention(NamedTuple):
    """One mention of an action, with what stands around it."""

    words: str
    context: str
    """What stands before the mention, in earlier sentences too."""
    before: str
    """What stands before it in its sentence, without the sign of a number and the call that it is an argument of."""
    after: str
    """What stands after it in its sentence."""
    stop: str
    """What ends the sentence."""
    rest: str
    """What follows the sentence."""

    @property
    def is_chosen(self) -> bool:
        """Whether the text says that this is the choice."""
        is_first = says_nothing(self.context)
        if self.is_in_doubt:
            return is_first and self.is_alone
        return self.is_alone or self.is_stated or (is_first and self.is_explained)

    @property
    def is_in_doubt(self) -> bool:
        """Whether the sentence asks, sets a condition, objects to a wish, or is about an action that is not to be played now."""
        is_condition = english.CONDITION_BEFORE.search(self.before) or english.CONDITION_AFTER.match(self.after)
        is_objection = english.WISH.search(self.before) and english.OBJECTION.search(self.after + self.rest[:10])  # ". But"
        return bool(self.stop.startswith(("?", "\uff1f")) or is_condition or is_objection or english.ANOTHER_ACTION.search(self.before))

    @property
    def is_alone(self) -> bool:
        """Whether the text ends with a sentence that is nothing but the mention."""
        return says_nothing(self.before) and any(map(says_nothing, self._tails)) and says_nothing(self.rest)

    @property
    def is_stated(self) -> bool:
        """Whether the sentence has a form that says so: "I go left"."""
        return any(
            form.before.search(self.before) and form.mention.match(self.words) and any(map(form.after.match, self._tails))
            for form in english.FORMS
        )

    @property
    def is_explained(self) -> bool:
        """Whether a remark follows that is not thinking: "left. It is free"."""
        following = self.after + self.stop + self.rest
        pause = english.PAUSE_BEFORE_REMARK.match(following)
        if pause is None or (self.words[-1].isdigit() and english.LIST_ITEM.match(following)):
            return False
        remark = following[pause.end() : pause.end() + _LONGEST_SENTENCE]
        return not says_nothing(remark) and not english.NO_REASON.search(remark)

    @property
    def _tails(self) -> tuple[str, str]:
        """What stands after the mention in its sentence: all of it, and what follows a noun ("left button") or a unit ("1.5 Nm")."""
        addition = english.UNIT_AFTER if self.words[-1].isdigit() else english.NOUN_AFTER
        return self.after, addition.sub("", self.after, count=1)


def mention_at(text: str, start: int, end: int) -> Mention:
    """Return the mention at a place of a text."""
    context = text[max(0, start - _LONGEST_SENTENCE) : start]
    before = SIGN_WORD.sub("", without_array_call(english.SENTENCE_BREAK.split(context)[-1]))
    after, stop, *_ = [*english.SENTENCE_BREAK.split(text[end : end + _LONGEST_SENTENCE], maxsplit=1), ""]
    rest_start = end + len(after) + len(stop)
    return Mention(text[start:end], context, before, after, stop, text[rest_start : rest_start + _LONGEST_SENTENCE])


def is_chosen(text: str, places: Sequence[tuple[int, int]], is_specific: bool = False) -> bool:
    """Say whether what a text mentions is said to be the choice at one of the places where it is mentioned.

    >>> [is_chosen(text, [(text.index("up"), text.index("up") + 2)]) for text in ("I move up to win.", "I give up.", "Should I go up?")]
    [True, False, False]

    Args:
        text: A text with plain signs.
        places: Where each mention begins and ends, in order; of very many only the last ones are looked at.
        is_specific: Whether it stood in tags or after a label, or is a move of chess, and need only not be in doubt.
    """
    places = places[-_MOST_MENTIONS:]
    if is_specific:
        return any(not mention_at(text, start, end).is_in_doubt for start, end in places)
    parts = [(start + verb.end(), end) for start, end in places if (verb := english.OWN_VERB.match(text[start:end]))]
    return any(mention_at(text, start, end).is_chosen for start, end in [*places, *parts])


def chosen_number(text: str, is_marked: bool) -> Number | None:
    """Return the only number in a text, or ``None`` if there is none.

    Args:
        text: A text.
        is_marked: Whether it stood in tags or after a label, so that the number need not be said to be the choice.

    Raises:
        ActionNotFound: If there are several, or it is unclear whether one is the choice; with a sentence without its full stop.
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
