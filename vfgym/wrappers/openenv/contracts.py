"""The two ways to play a server: `GymPlay`, by actions of its schema, and `McpPlay`, by calls of its tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from vfgym.codecs.problems import ActionNotFound
from vfgym.errors import ToolParseError
from vfgym.messages import Message, MessageTypes, content_text
from vfgym.parsers import Parser
from vfgym.tools import Tool
from vfgym.tools.arguments import parse_arguments
from vfgym.tools.definition import as_tool
from vfgym.tools.mcp import NO_RESULT
from vfgym.tools.results import compact_json
from vfgym.wrappers.games.turns import Turn
from vfgym.wrappers.openenv.actions import ActionReader
from vfgym.wrappers.openenv.protocol import ActionRefused, ServerError, ServerReply
from vfgym.wrappers.openenv.rendering import Contract, Renderer
from vfgym.wrappers.openenv.session import OpenEnvSession

LIST_TOOLS = {"type": "list_tools"}
"""The action that asks which tools there are; no episode has to have begun."""


def contract_of(schema: Mapping[str, Any]) -> Contract:
    """Return the contract of a server, by its schema of actions: OpenEnv's own action that calls a tool, or any other."""
    properties = schema.get("properties") or {}
    return "mcp" if {"tool_name", "arguments"} <= properties.keys() else "gym"


def read_tools(url: str, reply: ServerReply) -> list[Tool]:
    """Return the tools that a server lists.

    Raises:
        ServerError: If it lists none.
        ConfigurationError: If one is malformed.
    """
    listed = reply.observation.get("tools")
    if not isinstance(listed, list) or not all(isinstance(tool, Mapping) for tool in listed):
        raise ServerError(url, f"was asked for its tools and answered without them: {compact_json(reply.observation)}")
    return [as_tool({**_named(tool), "parameters": tool.get("input_schema") or tool.get("inputSchema")}) for tool in listed]


def _named(tool: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tool.get(key) for key in ("name", "description")}


class Play(Protocol):
    """How an answer of the model is played."""

    async def answer(self, session: OpenEnvSession, message: Message, seed: int, *, is_cut_off: bool) -> tuple[Turn, ServerReply | None]:
        """Play a message, and return what the model is shown, and the server's last answer; None where it was not asked."""


class GymPlay:
    """An answer is one action, which is one step."""

    def __init__(self, reader: ActionReader, renderer: Renderer, parser: Parser, types: MessageTypes) -> None:
        """Take what reads answers, and what shows observations."""
        self._reader, self._renderer, self._parser, self._types = reader, renderer, parser, types

    async def answer(self, session: OpenEnvSession, message: Message, seed: int, *, is_cut_off: bool) -> tuple[Turn, ServerReply | None]:
        """Play the action that a message names. One that names none, or one that the server refuses, is asked for again."""
        found = self._parser.parse_answer([message])
        try:
            action = self._reader.read(content_text(message["content"]) if found is None else str(found), is_cut_off=is_cut_off)
            reply = await session.step(action)
        except ActionNotFound as problem:
            return self._ask_again(problem.sentence()), None
        except ActionRefused as refusal:
            return self._ask_again(f"The action does not fit: {refusal}"), None
        shown = self._renderer.render(reply.observation, "step", seed, self._types)
        return Turn(shown, reply.reward, terminated=reply.done, info={"metadata": reply.metadata}), reply

    def _ask_again(self, problem: str) -> Turn:
        return Turn([self._types["user"](f"{problem}. {self._reader.instructions}")], is_valid=False)


class McpPlay:
    """Each tool call of an answer is a step; their rewards are added up."""

    def __init__(self, types: MessageTypes) -> None:
        """Take the message classes."""
        self._types = types

    async def answer(self, session: OpenEnvSession, message: Message, seed: int, *, is_cut_off: bool) -> tuple[Turn, ServerReply | None]:
        """Make the calls of a message, in order, until the episode is over. What is wrong with one the model reads as its result."""
        calls = message.get("tool_calls") or []
        messages: list[Message] = []
        reward, reply = 0.0, None
        for call in calls:
            if reply is not None and reply.done:
                content: Any = "Not carried out: the episode is over."
            else:
                try:
                    arguments = parse_arguments(call.name, call.arguments)
                    reply = await session.step({"type": "call_tool", "tool_name": call.name, "arguments": arguments})
                    content = tool_content(reply.observation)
                    reward += reply.reward
                except (ToolParseError, ActionRefused) as problem:
                    content = f"Error: {problem}"
            messages.append(self._types["tool"](content, tool_call_id=call.id))
        is_over = reply is not None and reply.done
        metadata = reply.metadata if reply is not None else {}
        turn = Turn(messages, reward, terminated=is_over, info={"metadata": metadata}, is_valid=reply is not None or not calls)
        return turn, reply


def tool_content(observation: Mapping[str, Any]) -> str | list[dict[str, Any]]:
    """Return what a tool gave as the content of a tool message: text, or parts where there are images."""
    error = observation.get("error")
    if error:
        return f"Error: {error.get('message') if isinstance(error, Mapping) else error}"
    if "result" not in observation:  # the environment's own answer, in place of the tool's
        return compact_json(observation)
    result = observation["result"]
    if not isinstance(result, Mapping) or not isinstance(result.get("content"), list):
        return result if isinstance(result, str) else compact_json(result)
    parts = [_part(item) for item in result["content"]]
    if not parts:
        given = result.get("structured_content")
        return NO_RESULT if given is None else compact_json(given)
    if all(part["type"] == "text" for part in parts):
        return "\n".join(part["text"] for part in parts)
    return parts


def _part(item: Any) -> dict[str, Any]:
    kind = item.get("type") if isinstance(item, Mapping) else None
    if kind == "text":
        return {"type": "text", "text": str(item.get("text"))}
    if kind == "image":
        mime_type = item.get("mimeType") or item.get("mime_type") or "image/png"
        return {"type": "image_url", "image_url": {"url": f"data:{mime_type};base64,{item.get('data')}"}}
    return {"type": "text", "text": compact_json(item)}
