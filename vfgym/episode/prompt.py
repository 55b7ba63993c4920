"""The conversation that the model is shown: how a turn is made of an answer, and what comes after it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vfgym.episode.definition import Definition
from vfgym.messages import Message, MessageTypes, Response, as_messages
from vfgym.messages.responses import for_conversation
from vfgym.state import MessagesView, State, TrajectoryStep, step_tokens


def new_step(definition: Definition, state: State, prompt: Sequence[Message], response: Response) -> TrajectoryStep:
    """Return the turn that an answer to `prompt` makes. It is not recorded yet."""
    message: Any = response.message
    tokens, is_truncated, is_cut_off = None, False, False
    if type(message) is not definition.message_types["assistant"]:  # what else a client says of its answer stays here
        if response.tokens is not None:
            tokens = step_tokens(response.tokens, definition.max_seq_len)
        is_cut_off = response.is_truncated
        is_truncated = is_cut_off or (tokens is not None and tokens["is_truncated"])
        message = for_conversation(message, definition.message_types)
    state.is_cut_off = is_cut_off
    return {
        "prompt": prompt,
        "completion": [message],
        "response": response,
        "tokens": tokens,
        "reward": None,
        "advantage": None,
        "is_truncated": is_truncated,
        "trajectory_id": state["trajectory_id"],
        "extras": {},
    }


def recorded_conversation(state: State, conversation: list[Message]) -> list[Message]:
    """Return the conversation that ends with the last turn: the one that was played, unless the author recorded another turn."""
    last = state["trajectory"][-1]
    prompt = last["prompt"]
    if prompt.__class__ is MessagesView and prompt._messages is conversation and last["completion"][0] is conversation[-1]:
        return conversation
    return [*prompt, *last["completion"]]


def add_messages(conversation: list[Message], returned: Any, types: MessageTypes) -> None:
    """Add what `env_response` returned."""
    if returned.__class__ is list and len(returned) == 1 and type(returned[0]) in types.taken:
        conversation.append(returned[0])  # as nearly always
    else:
        conversation += as_messages(returned, types, name="env_response")


def rewrite_conversation(conversation: list[Message], returned: Any, types: MessageTypes) -> list[Message]:
    """Return the conversation that the author's own `get_prompt_messages` gave. Where it goes on from the last one, that one grows."""
    known = len(conversation)
    if known and isinstance(returned, list) and returned[:known] == conversation:
        conversation.extend(as_messages(returned[known:], types, name="get_prompt_messages"))
        return conversation
    return as_messages(returned, types, name="get_prompt_messages")
