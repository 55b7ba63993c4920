"""What is wrong with an answer, in words for the model."""

from __future__ import annotations

HOW_TO_ANSWER = (
    'Write it alone in <action> tags, or in \\boxed{}, as JSON {"action": ...}, on a line that begins with "Action:",'
    " or as your whole answer"
)
"""The marks that count, in the reply to an answer that could not be read."""

NO_ACTION = f"Your answer names no action that could be read. {HOW_TO_ANSWER}"
DOUBTFUL = "Write your choice on a line of its own"
CUT_OFF = "Your answer was cut off by the limit of its length before it named an action: answer more briefly"
STILL_THINKING = "Your answer ends before your thinking does, so it names no action: close your thinking, then answer"


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


class AnswerUnclear(ActionNotFound):
    """An answer as a whole cannot be read. The message is a sentence without its full stop."""

    def sentence(self) -> str:
        """Return the message."""
        return str(self)


def several_actions(texts: list[str]) -> AnswerUnclear:
    """Return the error for an answer that names different actions."""
    listed = ", ".join(text if len(text) <= 40 else f"{text[:30]}..." for text in texts[:4])
    return AnswerUnclear(f"Your answer names {len(texts)} different actions ({listed}): name one")
