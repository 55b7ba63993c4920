"""The documented rollout API of verifiers (``import verifiers_compat as vf``), rebuilt on the episode machine of `vfgym`.

After `install()`, ``import verifiers as vf`` and ``from verifiers.<module> import ...`` resolve here. Names whose modules are heavy
are imported when they are first asked for; names that are left out say why.
"""

from typing import TYPE_CHECKING

from verifiers_compat.alias import API_VERSION
from verifiers_compat.decorators import advantage, cleanup, metric, reward, setup, stop, teardown, update
from verifiers_compat.envs.adapted import as_environment
from verifiers_compat.envs.env_group import EnvGroup
from verifiers_compat.envs.environment import Environment
from verifiers_compat.envs.multiturn_env import MultiTurnEnv
from verifiers_compat.envs.singleturn_env import SingleTurnEnv
from verifiers_compat.envs.stateful_tool_env import StatefulToolEnv
from verifiers_compat.envs.tool_env import ToolEnv
from verifiers_compat.loading import module_getattr
from verifiers_compat.rubrics import Rubric, RubricGroup
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
from vfgym.parsers import MaybeThinkParser, Parser, ThinkParser, XMLParser, extract_boxed_answer, extract_hash_answer

__version__ = API_VERSION
"""The version of the rollout API that is offered."""

if TYPE_CHECKING:
    from verifiers_compat.alias import install, uninstall
    from verifiers_compat.cli.plugins.prime import PRIME_PLUGIN_API_VERSION, PrimeCLIPlugin, get_plugin
    from verifiers_compat.clients.anthropic_messages_client import AnthropicMessagesClient
    from verifiers_compat.clients.openai_chat_completions_client import OpenAIChatCompletionsClient
    from verifiers_compat.clients.openai_completions_client import OpenAICompletionsClient
    from verifiers_compat.clients.openai_responses_client import OpenAIResponsesClient
    from verifiers_compat.envs.experimental.gym_env import GymEnv
    from verifiers_compat.envs.experimental.mcp_env import MCPEnv
    from verifiers_compat.envs.integrations.reasoninggym_env import ReasoningGymEnv
    from verifiers_compat.envs.integrations.textarena_env import TextArenaEnv
    from verifiers_compat.rubrics.judge_rubric import JudgeRubric
    from verifiers_compat.rubrics.math_rubric import MathRubric
    from verifiers_compat.utils.config_utils import MissingKeyError, ensure_keys
    from verifiers_compat.utils.data_utils import load_example_dataset
    from verifiers_compat.utils.env_utils import load_environment
    from verifiers_compat.utils.logging_utils import log_level, print_prompt_completions_sample, quiet_verifiers, setup_logging
    from vfgym.clients.providers.nemorl_chat_completions import NeMoRLChatCompletionsClient
    from vfgym.clients.providers.openai_chat_completions_token import OpenAIChatCompletionsTokenClient
    from vfgym.clients.providers.renderer import RendererClient

_LAZY = {
    "PRIME_PLUGIN_API_VERSION": "verifiers_compat.cli.plugins.prime:PRIME_PLUGIN_API_VERSION",
    "PrimeCLIPlugin": "verifiers_compat.cli.plugins.prime:PrimeCLIPlugin",
    "get_plugin": "verifiers_compat.cli.plugins.prime:get_plugin",
    "install": "verifiers_compat.alias:install",
    "uninstall": "verifiers_compat.alias:uninstall",
    "AnthropicMessagesClient": "verifiers_compat.clients.anthropic_messages_client:AnthropicMessagesClient",
    "OpenAIChatCompletionsClient": "verifiers_compat.clients.openai_chat_completions_client:OpenAIChatCompletionsClient",
    "OpenAICompletionsClient": "verifiers_compat.clients.openai_completions_client:OpenAICompletionsClient",
    "OpenAIResponsesClient": "verifiers_compat.clients.openai_responses_client:OpenAIResponsesClient",
    "GymEnv": "verifiers_compat.envs.experimental.gym_env:GymEnv",
    "MCPEnv": "verifiers_compat.envs.experimental.mcp_env:MCPEnv",
    "ReasoningGymEnv": "verifiers_compat.envs.integrations.reasoninggym_env:ReasoningGymEnv",
    "TextArenaEnv": "verifiers_compat.envs.integrations.textarena_env:TextArenaEnv",
    "JudgeRubric": "verifiers_compat.rubrics.judge_rubric:JudgeRubric",
    "MathRubric": "verifiers_compat.rubrics.math_rubric:MathRubric",
    "MissingKeyError": "verifiers_compat.utils.config_utils:MissingKeyError",
    "ensure_keys": "verifiers_compat.utils.config_utils:ensure_keys",
    "load_example_dataset": "verifiers_compat.utils.data_utils:load_example_dataset",
    "load_environment": "verifiers_compat.utils.env_utils:load_environment",
    "log_level": "verifiers_compat.utils.logging_utils:log_level",
    "print_prompt_completions_sample": "verifiers_compat.utils.logging_utils:print_prompt_completions_sample",
    "quiet_verifiers": "verifiers_compat.utils.logging_utils:quiet_verifiers",
    "setup_logging": "verifiers_compat.utils.logging_utils:setup_logging",
    "NeMoRLChatCompletionsClient": "vfgym.clients.providers.nemorl_chat_completions:NeMoRLChatCompletionsClient",
    "OpenAIChatCompletionsTokenClient": "vfgym.clients.providers.openai_chat_completions_token:OpenAIChatCompletionsTokenClient",
    "RendererClient": "vfgym.clients.providers.renderer:RendererClient",
    **{
        name: f"verifiers_compat.v1:{name}"
        for name in (
            "Env",
            "EnvConfig",
            "Harness",
            "HarnessConfig",
            "MCPTool",
            "MCPToolConfig",
            "SandboxConfig",
            "Task",
            "Taskset",
            "TasksetConfig",
            "Toolset",
            "ToolsetConfig",
            "User",
            "UserConfig",
        )
    },
}
_HOSTED = "it runs in hosted sandboxes, which this package does not offer"
_LEFT_OUT = {
    **dict.fromkeys(("SandboxEnv", "PythonEnv", "CliAgentEnv", "HarborEnv", "BrowserEnv", "OpenEnvEnv", "RLMEnv", "SWEDebugEnv"), _HOSTED),
    **dict.fromkeys(("HarborTaskset", "HarborTasksetConfig", "CLIHarness", "OpenCode", "Pi", "MiniSWEAgent", "RLM"), _HOSTED),
}
__getattr__ = module_getattr(__name__, lazy=_LAZY, left_out=_LEFT_OUT)

__all__ = [
    *_types,
    "PRIME_PLUGIN_API_VERSION",
    "AnthropicMessagesClient",
    "BrowserSandboxError",
    "Client",
    "EmptyModelResponseError",
    "EnvGroup",
    "Environment",
    "Error",
    "GymEnv",
    "InfraError",
    "InvalidModelResponseError",
    "JudgeRubric",
    "MCPEnv",
    "MathRubric",
    "MaybeThinkParser",
    "MissingKeyError",
    "ModelError",
    "MultiTurnEnv",
    "NeMoRLChatCompletionsClient",
    "OpenAIChatCompletionsClient",
    "OpenAIChatCompletionsTokenClient",
    "OpenAICompletionsClient",
    "OpenAIResponsesClient",
    "OverlongPromptError",
    "Parser",
    "PrimeCLIPlugin",
    "ReasoningGymEnv",
    "RendererClient",
    "Rubric",
    "RubricGroup",
    "SandboxError",
    "SingleTurnEnv",
    "StatefulToolEnv",
    "TextArenaEnv",
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
    "ensure_keys",
    "extract_boxed_answer",
    "extract_hash_answer",
    "get_plugin",
    "install",
    "load_environment",
    "load_example_dataset",
    "log_level",
    "metric",
    "print_prompt_completions_sample",
    "quiet_verifiers",
    "reward",
    "setup",
    "setup_logging",
    "stop",
    "teardown",
    "uninstall",
    "update",
]
