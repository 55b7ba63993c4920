"""Tasksets and harnesses: what is to be solved, and what solves it, as two parts that go together.

``state = await harness.run(task)`` plays one task; `Env` makes an environment of a taskset and a harness.
"""

from typing import Any

from verifiers_compat.types import AssistantMessage, SystemMessage, ToolCall, ToolMessage, UserMessage
from verifiers_compat.v1.config import (
    CallableConfig,
    Config,
    EnvConfig,
    HarnessConfig,
    MCPToolConfig,
    SandboxConfig,
    ScoringConfig,
    TasksetConfig,
    ToolsetConfig,
    UserConfig,
)
from verifiers_compat.v1.env import Env
from verifiers_compat.v1.harness import Harness
from verifiers_compat.v1.state import State
from verifiers_compat.v1.task import Task
from verifiers_compat.v1.taskset import Taskset
from verifiers_compat.v1.toolset import MCPTool, Toolset
from verifiers_compat.v1.user import User
from vfgym.clients import ClientConfig
from vfgym.errors import (
    EmptyModelResponseError,
    Error,
    InfraError,
    InvalidModelResponseError,
    ModelError,
    OverlongPromptError,
    SandboxError,
    ToolCallError,
    ToolError,
    ToolParseError,
)
from vfgym.lifecycle import advantage, cleanup, metric, reward, setup, stop, teardown, update

_LEFT_OUT = frozenset({"CLIHarness", "HarborTaskset", "HarborTasksetConfig", "OpenCode", "Pi", "MiniSWEAgent", "RLM"})

__all__ = [
    "AssistantMessage",
    "CallableConfig",
    "ClientConfig",
    "Config",
    "EmptyModelResponseError",
    "Env",
    "EnvConfig",
    "Error",
    "Harness",
    "HarnessConfig",
    "InfraError",
    "InvalidModelResponseError",
    "MCPTool",
    "MCPToolConfig",
    "ModelError",
    "OverlongPromptError",
    "SandboxConfig",
    "SandboxError",
    "ScoringConfig",
    "State",
    "SystemMessage",
    "Task",
    "Taskset",
    "TasksetConfig",
    "ToolCall",
    "ToolCallError",
    "ToolError",
    "ToolMessage",
    "ToolParseError",
    "Toolset",
    "ToolsetConfig",
    "User",
    "UserConfig",
    "UserMessage",
    "advantage",
    "cleanup",
    "metric",
    "reward",
    "setup",
    "stop",
    "teardown",
    "update",
]


def __getattr__(name: str) -> Any:
    if name in _LEFT_OUT:
        raise ImportError(
            f"{name} runs programs in hosted sandboxes, which this package does not offer: write a Harness whose program is a function"
            " or a command of this machine"
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
