"""The documented types of the rollout API: those of `vfgym`, under their documented names."""

from typing import Any, TypeAlias

from vfgym.clients import SamplingArgs
from vfgym.messages import AssistantMessage, Message, SystemMessage, TextMessage, ToolCall, ToolMessage, UserMessage
from vfgym.responses import Response, ResponseMessage, ResponseTokens, Usage
from vfgym.rubrics import GroupRewardFunc, IndividualRewardFunc, RewardFunc
from vfgym.state import (
    RolloutInput,
    RolloutTiming,
    State,
    TimeSpan,
    TimeSpans,
    TokenUsage,
    TrajectoryStep,
    TrajectoryStepTokens,
)
from vfgym.tasks import DatasetBuilder
from vfgym.tools import Tool

ChatMessage: TypeAlias = Message
Messages: TypeAlias = "str | list[Message]"
Info: TypeAlias = "dict[str, Any]"

__all__ = [
    "AssistantMessage",
    "ChatMessage",
    "DatasetBuilder",
    "GroupRewardFunc",
    "IndividualRewardFunc",
    "Info",
    "Messages",
    "Response",
    "ResponseMessage",
    "ResponseTokens",
    "RewardFunc",
    "RolloutInput",
    "RolloutTiming",
    "SamplingArgs",
    "State",
    "SystemMessage",
    "TextMessage",
    "TimeSpan",
    "TimeSpans",
    "TokenUsage",
    "Tool",
    "ToolCall",
    "ToolMessage",
    "TrajectoryStep",
    "TrajectoryStepTokens",
    "Usage",
    "UserMessage",
]
