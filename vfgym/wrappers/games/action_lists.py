"""`ActionLists`: answers that hold several actions, which a game plays in order.

There is one form: in text each action stands in ``<action>`` tags of its own; a call of the tool ``act`` has a list of them. An answer with
a single action is read as in any other game.
"""

from __future__ import annotations

import json
import re
from typing import Any

from vfgym.codecs import ActionNotFound, Codec
from vfgym.codecs.marks import EMPTY, TOOL_NAME, find_marks
from vfgym.codecs.reading import tail_of
from vfgym.codecs.relaxed import read_json
from vfgym.codecs.thinking import drop_thinking
from vfgym.messages import AssistantMessage, Message, ToolCall, content_text
from vfgym.tools import Tool
from vfgym.wrappers.games.answers import Answers

_ARGUMENT = "actions"
_TAG = re.compile(r"<action>(.*?)(</action>|(?=<action>)|\Z)", re.DOTALL | re.IGNORECASE)
_NOT_PLAYED = "None of your actions was played."


class ActionLists(Answers):
    """Reads one or more actions from messages."""

    def __init__(self, codec: Codec, most: int, *, as_tool: bool = False, game: str = "the game") -> None:
        """Describe how a game is answered.

        Args:
            codec: The actions.
            most: Most actions of an answer.
            as_tool: Whether the model is offered a tool ``act``, whose one argument is a list of actions.
            game: What the tool's description calls the game.
        """
        super().__init__(codec, as_tool=as_tool, game=game)
        self.most = most
        actions = {"type": "array", "items": codec.schema, "minItems": 1, "maxItems": most}
        parameters = {"type": "object", "properties": {_ARGUMENT: actions}, "required": [_ARGUMENT], "additionalProperties": False}
        description = f"Play your next 1 to {most} actions in {game}, in this order. Actions: {codec.listing()}."
        self.tools = [Tool(name=TOOL_NAME, description=description, parameters=parameters)] if as_tool else []

    @property
    def instructions(self) -> str:
        """What a prompt says of the form of an answer."""
        example = self.codec.example()
        if self.as_tool:
            arguments = json.dumps({_ARGUMENT: [self.codec.to_json(self.codec.decode(example))] * 2})
            return (
                f"Play 1 to {self.most} actions in each turn by calling the tool `{TOOL_NAME}`, for example with the arguments {arguments}."
                " They are played in order."
            )
        return (
            f"Answer with 1 to {self.most} actions, which are played in order, each in <action> tags of its own, like this:"
            f" <action>{example}</action><action>{example}</action>"
        )

    def read(self, message: Message) -> Any:
        """Return the action of a message that plays one.

        Raises:
            ActionNotFound: If it plays none, or several.
        """
        actions = self.read_all(message)
        if len(actions) > 1:
            raise ActionNotFound(f"There are {len(actions)} actions.")
        return actions[0]

    def read_all(self, message: Message, *, is_cut_off: bool = False) -> list[Any]:
        """Return the actions that a message plays, in order.

        Args:
            message: The answer.
            is_cut_off: Whether the limit of its length cut it off, so that only closed tags count.

        Raises:
            ActionNotFound: If it plays none, or more than it may, or if one of them cannot be read. The text says what was wrong, for the
                model to read.
        """
        if message.get("tool_calls"):
            return self._read_list(message["tool_calls"])
        said, is_closed = drop_thinking(content_text(message["content"]))
        said = tail_of(said, self.codec, self.most)
        tags = [content.strip() for content, end in _TAG.findall(said) if end or not is_cut_off]
        texts = [content for content in tags if content not in EMPTY]
        if len(texts) > 1 and is_closed:
            return self._read_each(texts, self.codec.decode_mark)
        listed = _find_list(said) if is_closed else None
        if listed is not None:
            return self._read_each(listed, self.codec.from_json)
        return [super().read_cut_off(message) if is_cut_off else super().read(message)]

    def _read_list(self, calls: list[ToolCall]) -> list[Any]:
        arguments = self._arguments(calls)
        actions = arguments.get(_ARGUMENT) if isinstance(arguments, dict) and len(arguments) == 1 else None
        if not isinstance(actions, list) or not actions:
            form = f'{{"{_ARGUMENT}": [...]}}'
            raise ActionNotFound(f"`{TOOL_NAME}` takes one argument: {form}, a list of 1 to {self.most}. Actions: {self.codec.listing()}.")
        return self._read_each(actions, self.codec.from_json)

    def _read_each(self, given: list[Any], read: Any) -> list[Any]:
        if len(given) > self.most:
            raise ActionNotFound(f"You gave {len(given)} actions, and at most {self.most} are played in a turn. {_NOT_PLAYED}")
        actions = []
        for number, each in enumerate(given, 1):
            try:
                actions.append(read(each))
            except ActionNotFound as error:
                where = f"Action {number} of {len(given)} cannot be read: " if len(given) > 1 else ""
                raise ActionNotFound(f"{where}{error}{f' {_NOT_PLAYED}' if where else ''}") from None
        return actions

    def as_call(self, action: Any, call_id: str = "call_1") -> AssistantMessage:
        """Return the message that plays one action by calling the tool."""
        return self.as_call_of([action], call_id)

    def as_call_of(self, actions: list[Any], call_id: str = "call_1") -> AssistantMessage:
        """Return the message that plays actions by calling the tool."""
        arguments = json.dumps({_ARGUMENT: [self.codec.to_json(action) for action in actions]}, allow_nan=False)
        return AssistantMessage(None, tool_calls=[ToolCall(call_id, TOOL_NAME, arguments)])


def _find_list(text: str) -> list[Any] | None:
    """Return the list ``actions`` of a call of the tool that was written as text; None where there is none."""
    for _ in range(2):  # a call may stand in <tool_call> tags
        marks = find_marks(text, keys={_ARGUMENT})
        if len(marks) != 1:
            return None
        (text,) = marks
        try:
            data = read_json(text)
        except ValueError:
            continue
        if isinstance(data, list) and data:
            return data
    return None
