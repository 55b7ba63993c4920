"""Tasksets and harnesses: what is to be solved, and what solves it, as two parts that go together.

``state = await harness.run(task)`` plays one task; `Env` makes an environment of a taskset and a harness.
"""

from verifiers_compat.loading import create_getattr
from verifiers_compat.types import AssistantMessage, SystemMessage, ToolCall, ToolMessage, UserMessage
from verifiers_compat.v1.cli_harness import CLIHarness, MiniSWEAgent, OpenCode, Pi
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
from verifiers_compat.v1.harbor_taskset import HarborTaskset, HarborTasksetConfig
from verifiers_compat.v1.harness import Harness
from verifiers_compat.v1.rlm_harness import RLM
from verifiers_compat.v1.state import State
from verifiers_compat.v1.task import Task
from verifiers_compat.v1.taskset import Taskset
from verifiers_compat.v1.toolset import MCPTool, Toolset
from verifiers_compat.v1.user import User
from verifiers_compat.v1.utils.scoring_utils import (
    add_advantage,
    add_metric,
    add_reward,
    build_signals,
    collect_signals,
    score_group,
    score_rollout,
)
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

__all__ = [
    "RLM",
    "AssistantMessage",
    "CLIHarness",
    "CallableConfig",
    "ClientConfig",
    "Config",
    "EmptyModelResponseError",
    "Env",
    "EnvConfig",
    "Error",
    "HarborTaskset",
    "HarborTasksetConfig",
    "Harness",
    "HarnessConfig",
    "InfraError",
    "InvalidModelResponseError",
    "MCPTool",
    "MCPToolConfig",
    "MiniSWEAgent",
    "ModelError",
    "OpenCode",
    "OverlongPromptError",
    "Pi",
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
    "add_advantage",
    "add_metric",
    "add_reward",
    "advantage",
    "build_signals",
    "cleanup",
    "collect_signals",
    "metric",
    "reward",
    "score_group",
    "score_rollout",
    "setup",
    "stop",
    "teardown",
    "update",
]

__getattr__ = create_getattr(__name__)
