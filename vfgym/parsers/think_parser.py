"""Parsers for models that write their reasoning between ``<think>`` and ``</think>`` before they answer."""

from __future__ import annotations

import logging
from typing import Any

from vfgym.parsers.parser import ExtractFunc, FormatRewardFunc, MeanFormatReward, Messages, Parser, identity, text_of

_OPENING = "<think>"
_CLOSING = "</think>"

logger = logging.getLogger(__name__)


class ThinkParser(Parser):
    """Takes what follows the last ``</think>``. A text without it holds no answer.

    It is for models that always write their reasoning into the text. Where an API or a chat template takes the reasoning out of
    the text (as for Qwen3 and DeepSeek-R1), or a model thinks only sometimes, `MaybeThinkParser` is the one to use.

    >>> ThinkParser().parse_answer("<think>6 * 7</think> 42")
    '42'
    >>> ThinkParser().parse_answer("42")
    ''
    """

    def __init__(self, extract_fn: ExtractFunc = identity) -> None:
        """Make a parser, and log a warning that it needs ``</think>`` in the text.

        Args:
            extract_fn: Reads the answer out of the text after the reasoning.
        """
        super().__init__(extract_fn)
        logger.warning(
            "ThinkParser finds no answer where the model's text has no </think>: the reasoning must be in the text, not parsed "
            "out by the API or removed by the chat template. MaybeThinkParser accepts both."
        )

    def parse(self, text: Messages) -> Any:
        """Return the result of `extract_fn` for what follows the last ``</think>``, stripped (``""`` where there is none).

        Args:
            text: A text, or a completion, of which the last assistant message is read.

        Raises:
            InvalidMessage: If it is neither.
        """
        _, closing, answer = text_of(text).rpartition(_CLOSING)
        return self.extract_fn(answer.strip() if closing else "")

    def get_format_reward_func(self) -> FormatRewardFunc:
        """Return a reward function: the share of assistant messages in the format, 0.0 where there are none.

        In the format is a text that starts with ``<think>``, has one opening and one closing tag, and goes on after the
        closing one.
        """
        return MeanFormatReward(_format_score)


class MaybeThinkParser(Parser):
    """Takes what follows the last ``</think>``, or the whole text where there is none.

    >>> MaybeThinkParser().parse_answer("<think>6 * 7</think> 42")
    '42'
    >>> MaybeThinkParser().parse_answer("42")
    '42'
    """

    def parse(self, text: Messages) -> Any:
        """Return the result of `extract_fn` for the text without its reasoning, stripped.

        Args:
            text: A text, or a completion, of which the last assistant message is read.

        Raises:
            InvalidMessage: If it is neither.
        """
        return self.extract_fn(text_of(text).rpartition(_CLOSING)[2].strip())


def _format_score(text: str) -> float:
    in_format = (
        text.lstrip().startswith(_OPENING)
        and text.count(_OPENING) == 1
        and text.count(_CLOSING) == 1
        # Whitespace counts as an answer here: evaluations compare with rewards that were counted so.
        and not text.endswith(_CLOSING)
    )
    return 1.0 if in_format else 0.0
