"""Fields between XML-like tags: ``<reasoning>...</reasoning><answer>...</answer>``.

Models write tags, not XML, so this is a search for literal tags and no XML parser: nothing is nested, escaped or required.
It uses `str.find`, in linear time. A regular expression takes quadratic time over unclosed tags or long runs of
whitespace: 9 s where a model repeats an opening tag over 100,000 characters.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, TypeAlias

from vfgym.errors import ConfigurationError, did_you_mean
from vfgym.parsers.parser import ExtractFunc, FormatRewardFunc, MeanFormatReward, Messages, Parser, identity, message_text, text_of

Field: TypeAlias = str | tuple[str, ...]
"""The tag of a field, or a tuple of alternative tags, of which the first one is canonical."""

logger = logging.getLogger(__name__)


class XMLParser(Parser):
    """Reads fields between tags named after them.

    >>> parser = XMLParser(["reasoning", ("code", "answer")])
    >>> parsed = parser.parse("<reasoning>6 * 7</reasoning> <answer> 42 </answer>")
    >>> parsed.reasoning, parsed.code, parsed.answer
    ('6 * 7', None, '42')
    >>> parser.parse_answer([{"role": "assistant", "content": "<answer>42</answer>"}])
    '42'
    """

    def __init__(self, fields: Sequence[Field], answer_field: str = "answer", extract_fn: ExtractFunc = identity) -> None:
        """Make a parser.

        Args:
            fields: The fields in the order in which a model should write them.
            answer_field: The tag whose content `parse_answer` returns. Where no field has this tag there is never an answer.
            extract_fn: Applied to the answer by `parse_answer`.

        Raises:
            ConfigurationError: If there is no field, a field has no tag, or two fields share a tag.
            TypeError: If `fields` is not a list, or a field is not a string or a tuple of strings.
        """
        super().__init__(extract_fn)
        self.answer_field = answer_field
        self._fields = _validate_fields(fields)
        if "think" in self.get_fields():
            logger.warning(
                "XMLParser has a field 'think': it stays empty where the model's reasoning is parsed out of the text by the API, "
                "or removed by the chat template."
            )

    def parse(self, text: Messages, strip: bool = True, last: bool = False) -> Any:
        """Return the fields of a text.

        Args:
            text: A text, or a completion, of which the last assistant message is read.
            strip: Has no effect: whitespace around a field's content is always left out. It is there because environments
                written for the rollout API pass it.
            last: Take the last occurrence of each tag instead of the first.

        Returns:
            A `SimpleNamespace` with one attribute for every tag, alternatives included: the content as a string, or None
            where the tag does not occur with a closing tag after it.

        Raises:
            InvalidMessage: If `text` is neither a text nor messages.
        """
        source = text_of(text)
        return SimpleNamespace(**{tag: _content_of(tag, source, last) for tags in self._fields for tag in tags})

    def parse_answer(self, completion: Messages) -> str | None:
        """Return the result of `extract_fn` for the content of the answer field, or None where there is no answer.

        In a text the *last* answer counts. Among messages the newest assistant message that has an answer counts, and in
        it the *first* answer: evaluations compare with scores that were counted so.

        Args:
            completion: A text, one message, or a list of messages.

        Raises:
            InvalidMessage: If it is none of these.
        """
        if isinstance(completion, str):
            return self._answer_in(completion, last=True)
        for message in reversed(self.get_assistant_messages(completion)):
            answer = self._answer_in(message_text(message), last=False)
            if answer is not None:
                return answer
        return None

    def get_fields(self) -> list[str]:
        """Return the canonical tag of each field, in order."""
        return [tags[0] for tags in self._fields]

    def get_format_str(self) -> str:
        """Return a description of the format, for a prompt.

        >>> print(XMLParser([("code", "answer")]).get_format_str())
        <[ code | answer ]>
        ...
        </[ code | answer ]>
        """
        names = [tags[0] if len(tags) == 1 else f"[ {' | '.join(tags)} ]" for tags in self._fields]
        return "\n".join(_element(name, "...") for name in names)

    def format(self, **kwargs: Any) -> str:
        """Return a text in the format, with canonical tags.

        Args:
            **kwargs: The content of each field, by its canonical tag or else by an alternative. Other names are ignored.

        Raises:
            ValueError: If the content of a field is missing or None.

        >>> print(XMLParser(["answer"]).format(answer=42))
        <answer>
        42
        </answer>
        """
        elements = []
        for tags in self._fields:
            value = next((kwargs[tag] for tag in tags if tag in kwargs), None)
            if value is None:
                unknown = kwargs.keys() - {tag for known in self._fields for tag in known}
                wanted = " or ".join(f"`{tag}`" for tag in tags)
                raise ValueError(f"format() needs the content of {wanted}.{did_you_mean(tags[0], unknown)}")
            elements.append(_element(tags[0], value))
        return "\n".join(elements)

    def get_format_reward_func(self) -> FormatRewardFunc:
        """Return a reward function: the mean over the assistant messages, 0.0 where there are none, of these points.

        * 0.4 times the share of fields of which a tag occurs, if at least one field can be read;
        * 0.2 always (for whitespace around content, of which any is in the format);
        * 0.2 if the text starts with a tag of the first field;
        * 0.2 if the text ends with a closing tag of the last field.

        >>> reward = XMLParser(["reasoning", "answer"]).get_format_reward_func()
        >>> reward("<reasoning>6 * 7</reasoning><answer>42</answer>"), reward("<answer>42</answer>"), reward("42")
        (1.0, 0.6, 0.2)
        """
        return MeanFormatReward(self._format_score)

    def _answer_in(self, text: str, last: bool) -> str | None:
        answer = getattr(self.parse(text, last=last), self.answer_field, None)
        return None if answer is None else self.extract_fn(answer)

    def _format_score(self, text: str) -> float:
        stripped = text.strip()
        tenths = 2.0  # Counted in tenths, because 0.4 + 0.2 is not 0.6 in floats.
        if any(_content_of(tag, text) is not None for tags in self._fields for tag in tags):
            present = sum(any(f"<{tag}>" in text or f"</{tag}>" in text for tag in tags) for tags in self._fields)
            tenths += 4 * present / len(self._fields)
        if stripped.startswith(tuple(f"<{tag}>" for tag in self._fields[0])):
            tenths += 2
        if stripped.endswith(tuple(f"</{tag}>" for tag in self._fields[-1])):
            tenths += 2
        return tenths / 10


def _validate_fields(fields: Sequence[Field]) -> list[tuple[str, ...]]:
    """Return the tags of each field, canonical first."""
    if isinstance(fields, str):
        raise TypeError(f"fields must be a list of fields, got the string {fields!r}. Did you mean [{fields!r}]?")
    checked = [_validate_tags(field) for field in fields]
    if not checked:
        raise ConfigurationError("XMLParser needs at least one field, such as 'answer'")
    repeated = [tag for tag, count in Counter(tag for tags in checked for tag in tags).items() if count > 1]
    if repeated:
        raise ConfigurationError(f"each tag may stand for one field only, these occur more often: {', '.join(map(repr, repeated))}")
    return checked


def _validate_tags(field: object) -> tuple[str, ...]:
    tags = (field,) if isinstance(field, str) else field
    if not isinstance(tags, tuple) or not all(isinstance(tag, str) for tag in tags):
        raise TypeError(f"a field must be a string or a tuple of alternative strings, got {field!r}")
    if not tags:
        raise ConfigurationError("a field needs at least one tag, got an empty tuple")
    return tags


def _content_of(tag: str, text: str, last: bool = False) -> str | None:
    """Return what the first (or last) element of `text` with this tag holds, stripped."""
    opening, closing = f"<{tag}>", f"</{tag}>"
    content = None
    start = text.find(opening)
    while start != -1:
        start += len(opening)
        end = text.find(closing, start)
        if end == -1:
            break
        content = text[start:end].strip()
        if not last:
            break
        start = text.find(opening, end + len(closing))
    return content


def _element(name: str, content: Any) -> str:
    return f"<{name}>\n{content}\n</{name}>"
