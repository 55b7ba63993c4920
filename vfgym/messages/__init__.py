"""Messages, tool calls and the responses of models: immutable data in the OpenAI chat format."""

from vfgym.messages.chat import (
    MESSAGE_TYPES,
    AssistantMessage,
    Content,
    Message,
    MessageTypes,
    SystemMessage,
    TextMessage,
    ToolMessage,
    UserMessage,
    as_message,
    as_messages,
    content_text,
    join_contents,
    plain,
)
from vfgym.messages.responses import FinishReason, Response, ResponseMessage, ResponseTokens, Usage
from vfgym.messages.tool_calls import ToolCall, as_tool_call

__all__ = [
    "MESSAGE_TYPES",
    "AssistantMessage",
    "Content",
    "FinishReason",
    "Message",
    "MessageTypes",
    "Response",
    "ResponseMessage",
    "ResponseTokens",
    "SystemMessage",
    "TextMessage",
    "ToolCall",
    "ToolMessage",
    "Usage",
    "UserMessage",
    "as_message",
    "as_messages",
    "as_tool_call",
    "content_text",
    "join_contents",
    "plain",
]
