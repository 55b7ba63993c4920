"""The documented rollout API of verifiers (``import verifiers_compat as vf``), rebuilt on the episode machine of `vfgym`.

After `install()`, ``import verifiers as vf`` and ``from verifiers.<module> import ...`` resolve here. Names whose modules are heavy
are imported when they are first asked for; names that are left out say why.
"""

from verifiers_compat.envs.adapted import as_environment
from verifiers_compat.envs.env_group import EnvGroup
from verifiers_compat.envs.environment import Environment
from verifiers_compat.envs.multiturn_env import MultiTurnEnv
from verifiers_compat.envs.singleturn_env import SingleTurnEnv
from verifiers_compat.envs.stateful_tool_env import StatefulToolEnv
from verifiers_compat.envs.tool_env import ToolEnv
from verifiers_compat.types import *  # noqa: F403
from verifiers_compat.types import __all__ as _types
from vfgym.clients import ProviderClient as Client
from vfgym.errors import (
    BrowserSandboxError,
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
    TunnelError,
)
from vfgym.lifecycle import advantage, cleanup, metric, reward, setup, stop, teardown, update
from vfgym.parsers import MaybeThinkParser, Parser, ThinkParser, XMLParser, extract_boxed_answer, extract_hash_answer
from vfgym.rubrics import Rubric, RubricGroup

__all__ = [
    *_types,
    "BrowserSandboxError",
    "Client",
    "EmptyModelResponseError",
    "EnvGroup",
    "Environment",
    "Error",
    "InfraError",
    "InvalidModelResponseError",
    "MaybeThinkParser",
    "ModelError",
    "MultiTurnEnv",
    "OverlongPromptError",
    "Parser",
    "Rubric",
    "RubricGroup",
    "SandboxError",
    "SingleTurnEnv",
    "StatefulToolEnv",
    "ThinkParser",
    "ToolCallError",
    "ToolEnv",
    "ToolError",
    "ToolParseError",
    "TunnelError",
    "XMLParser",
    "advantage",
    "as_environment",
    "cleanup",
    "extract_boxed_answer",
    "extract_hash_answer",
    "metric",
    "reward",
    "setup",
    "stop",
    "teardown",
    "update",
]
