"""`Answers`: how a model answers a game: by an action in its text or, where that is offered, by a call of the tool ``act``."""

from __future__ import annotations

import copy
import json
from typing import Any

import numpy as np

from vfgym.bounded_json import parse_json
from vfgym.codecs import ActionNotFound, Codec
from vfgym.codecs.marks import TOOL_NAME
from vfgym.messages import AssistantMessage, Content, Message, ToolCall, ToolMessage, UserMessage, content_text
from vfgym.tools import Tool

_user_message = UserMessage._of  # bound once: a move is answered in less time

_ARGUMENT = "action"
_NOT_CARRIED_OUT = "Not carried out: one call is played a turn."


class Answers:
    """Reads the actions of a game from messages, writes them into messages, and replies to messages.

    Text that names an action is read whether or not the tool is offered.
    """

    def __init__(self, codec: Codec, *, as_tool: bool = False, game: str = "the game") -> None:
        """Describe how a game is answered.

        Args:
            codec: The actions.
            as_tool: Whether the model is offered a tool ``act``, whose one argument is the action.
            game: What the tool's description calls the game.
        """
        self.codec = codec
        self._decode = codec.decode
        self.as_tool = as_tool
        parameters = {"type": "object", "properties": {_ARGUMENT: codec.schema}, "required": [_ARGUMENT], "additionalProperties": False}
        description = f"Play your next action in {game}. Actions: {codec.listing()}."
        self.tools = [Tool(name=TOOL_NAME, description=description, parameters=parameters)] if as_tool else []
        """The tools to tell the model of."""

    @property
    def instructions(self) -> str:
        """What a prompt says of the form of an answer."""
        example = self.codec.example()
        if self.as_tool:
            arguments = json.dumps({_ARGUMENT: self.codec.to_json(self.codec.decode(example))})
            return f"Play one action in each turn by calling the tool `{TOOL_NAME}`, for example with the arguments {arguments}."
        return f"Answer with one action in <action> tags, like this: <action>{example}</action>"

    def read(self, message: Message) -> Any:
        """Return the action that a message plays.

        Raises:
            ActionNotFound: If it plays none, or several. The text says what was wrong, for the model to read.
        """
        if "tool_calls" in message and message["tool_calls"]:  # noqa: RUF019 -- faster than get, where there are none
            return self._read_call(message["tool_calls"])
        content = message["content"]
        return self._decode(content if content.__class__ is str else content_text(content))

    def read_cut_off(self, message: Message) -> Any:
        """Return the action of a message that the limit of its length cut off: only what is certainly whole counts.

        Raises:
            ActionNotFound: If nothing of the kind plays an action.
        """
        if message.get("tool_calls"):
            return self.read(message)
        return self.codec.decode_cut_off(content_text(message["content"]))

    def _read_call(self, calls: list[ToolCall]) -> Any:
        arguments = self._arguments(calls)
        if not isinstance(arguments, dict) or arguments.keys() != {_ARGUMENT}:
            raise ActionNotFound(f'`{TOOL_NAME}` takes one argument: {{"{_ARGUMENT}": ...}}. Actions: {self.codec.listing()}.')
        return self.codec.from_json(arguments[_ARGUMENT])

    def _arguments(self, calls: list[ToolCall]) -> Any:
        """Return the arguments of the one call of the tool, as JSON data.

        Raises:
            ActionNotFound: If there are other calls, or the arguments are not JSON.
        """
        if not self.as_tool:
            raise ActionNotFound(f"There are no tools in this game. {self.instructions} Actions: {self.codec.listing()}.")
        if len(calls) > 1:
            raise ActionNotFound(f"You called tools {len(calls)} times. Call `{TOOL_NAME}` once a turn.")
        if calls[0].name != TOOL_NAME:
            raise ActionNotFound(f"There is no tool `{calls[0].name}`. Call `{TOOL_NAME}`.")
        try:
            return parse_json(calls[0].arguments)
        except ValueError as error:
            raise ActionNotFound(f"The arguments of `{TOOL_NAME}` are not JSON: {error}.") from error

    def in_text(self, action: Any) -> AssistantMessage:
        """Return the message that plays an action in its text."""
        return AssistantMessage(f"<action>{self.codec.encode(action)}</action>")

    def as_call(self, action: Any, call_id: str = "call_1") -> AssistantMessage:
        """Return the message that plays an action by calling the tool. In a conversation each call has an id of its own."""
        arguments = json.dumps({_ARGUMENT: self.codec.to_json(action)}, allow_nan=False)
        return AssistantMessage(None, tool_calls=[ToolCall(call_id, TOOL_NAME, arguments)])

    def reply(self, message: Message, content: Content) -> list[Message]:
        """Return what answers a message: tool messages for its calls, as providers demand, else a user's message."""
        if "tool_calls" not in message or not message["tool_calls"]:
            return [_user_message({"role": "user", "content": content}) if content.__class__ is str else UserMessage(content)]
        calls = message["tool_calls"]
        images: list[Message] = []
        if not isinstance(content, str):
            # Few providers take images in tool messages.
            images = [UserMessage(content)]
            content = "See below."
        others = [ToolMessage(_NOT_CARRIED_OUT, tool_call_id=call.id) for call in calls[1:]]
        return [ToolMessage(content, tool_call_id=calls[0].id), *others, *images]

    def content_of(self, reply: list[Message]) -> Content:
        """Return the content that `reply` made these messages of."""
        content: Content = reply[-1 if reply[-1]["role"] == "user" else 0]["content"]
        return content


class ActionSampler:
    """Draws the messages that play random actions of a space. It keeps a copy of the space, whose random numbers may be in use."""

    def __init__(self, answers: Answers) -> None:
        self.answers = answers
        self._space = copy.deepcopy(answers.codec.space)

    def sample(self, rng: np.random.Generator) -> AssistantMessage:
        """Return one message: a call of the tool where there is one, else text."""
        self._space.seed(int(rng.integers(2**31)))
        action = self._space.sample()
        if self.answers.as_tool:
            return self.answers.as_call(action, f"call_{int(rng.integers(2**31))}")
        return AssistantMessage(self.answers.codec.encode(action))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ActionSampler) and (self.answers.codec, self.answers.as_tool) == (
            other.answers.codec,
            other.answers.as_tool,
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"ActionSampler({self.answers.codec.space})"
