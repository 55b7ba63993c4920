"""What is wrong with an answer, in words for the model."""

from __future__ import annotations

NO_ACTION = "Your answer names no action"

STATE_IT = "name your action alone, or say that you choose it"
"""What is asked of a model whose answer mentions an action that may not be a choice."""


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


def several(count: int) -> SeveralActions:
    """Return the error for an answer that names different actions."""
    return SeveralActions(f"Your answer names {count} different actions")
