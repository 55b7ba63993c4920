"""A model's response as the messages and the token data of one turn."""

from __future__ import annotations

from verifiers_compat.messages import MESSAGE_TYPES
from vfgym.messages import Message, Response
from vfgym.messages.responses import for_conversation
from vfgym.state import TrajectoryStepTokens, step_tokens


async def parse_response_message(response: Response) -> list[Message]:
    """Return the completion of a turn: the response's assistant message, in a list."""
    return [for_conversation(response.message, MESSAGE_TYPES)]


async def parse_response_tokens(response: Response, max_seq_len: int | None = None) -> TrajectoryStepTokens | None:
    """Return the token data of a turn, or None where the client asked for none.

    Args:
        response: The response.
        max_seq_len: Tokens of prompt and completion together after which the data is cut, and marked as cut.
    """
    tokens = response.tokens
    return None if tokens is None else step_tokens(tokens, max_seq_len)
