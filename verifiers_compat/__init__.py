"""The documented rollout API of verifiers (``import verifiers_compat as vf``), rebuilt on the episode machine of `vfgym`.

After `install()`, ``import verifiers as vf`` and ``from verifiers.<module> import ...`` resolve here. Names whose modules are heavy
are imported when they are first asked for; documented names that are not available say why.
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
from verifiers_compat.errors import *  # noqa: F403
from verifiers_compat.errors import __all__ as _errors
from verifiers_compat.loading import create_getattr
from verifiers_compat.rubrics import Rubric, RubricGroup
from verifiers_compat.types import *  # noqa: F403
from verifiers_compat.types import __all__ as _types
from vfgym.clients import ProviderClient as Client
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
    "verifiers_compat.alias": ["install", "uninstall"],
    "verifiers_compat.cli.plugins.prime": ["PRIME_PLUGIN_API_VERSION", "PrimeCLIPlugin", "get_plugin"],
    "verifiers_compat.clients.anthropic_messages_client": ["AnthropicMessagesClient"],
    "verifiers_compat.clients.openai_chat_completions_client": ["OpenAIChatCompletionsClient"],
    "verifiers_compat.clients.openai_completions_client": ["OpenAICompletionsClient"],
    "verifiers_compat.clients.openai_responses_client": ["OpenAIResponsesClient"],
    "verifiers_compat.envs.experimental.gym_env": ["GymEnv"],
    "verifiers_compat.envs.experimental.mcp_env": ["MCPEnv"],
    "verifiers_compat.envs.integrations.reasoninggym_env": ["ReasoningGymEnv"],
    "verifiers_compat.envs.integrations.textarena_env": ["TextArenaEnv"],
    "verifiers_compat.rubrics.judge_rubric": ["JudgeRubric"],
    "verifiers_compat.rubrics.math_rubric": ["MathRubric"],
    "verifiers_compat.utils.config_utils": ["MissingKeyError", "ensure_keys"],
    "verifiers_compat.utils.data_utils": ["load_example_dataset"],
    "verifiers_compat.utils.env_utils": ["load_environment"],
    "verifiers_compat.utils.logging_utils": ["log_level", "print_prompt_completions_sample", "quiet_verifiers", "setup_logging"],
    "verifiers_compat.v1": [
        *("Env", "EnvConfig", "Harness", "HarnessConfig", "MCPTool", "MCPToolConfig", "SandboxConfig", "Task", "Taskset"),
        *("TasksetConfig", "Toolset", "ToolsetConfig", "User", "UserConfig"),
    ],
    "vfgym.clients.providers.nemorl_chat_completions": ["NeMoRLChatCompletionsClient"],
    "vfgym.clients.providers.openai_chat_completions_token": ["OpenAIChatCompletionsTokenClient"],
    "vfgym.clients.providers.renderer": ["RendererClient"],
}
_HOSTED = "it runs in hosted sandboxes, which this package does not offer"
_UNAVAILABLE = {
    **dict.fromkeys(("SandboxEnv", "PythonEnv", "CliAgentEnv", "HarborEnv", "BrowserEnv", "OpenEnvEnv", "RLMEnv", "SWEDebugEnv"), _HOSTED),
    **dict.fromkeys(("HarborTaskset", "HarborTasksetConfig", "CLIHarness", "OpenCode", "Pi", "MiniSWEAgent", "RLM"), _HOSTED),
}
__getattr__ = create_getattr(__name__, lazy=_LAZY, unavailable=_UNAVAILABLE)

__all__ = [
    *_errors,
    *_types,
    "PRIME_PLUGIN_API_VERSION",
    "AnthropicMessagesClient",
    "Client",
    "EnvGroup",
    "Environment",
    "GymEnv",
    "JudgeRubric",
    "MCPEnv",
    "MathRubric",
    "MaybeThinkParser",
    "MissingKeyError",
    "MultiTurnEnv",
    "NeMoRLChatCompletionsClient",
    "OpenAIChatCompletionsClient",
    "OpenAIChatCompletionsTokenClient",
    "OpenAICompletionsClient",
    "OpenAIResponsesClient",
    "Parser",
    "PrimeCLIPlugin",
    "ReasoningGymEnv",
    "RendererClient",
    "Rubric",
    "RubricGroup",
    "SingleTurnEnv",
    "StatefulToolEnv",
    "TextArenaEnv",
    "ThinkParser",
    "ToolEnv",
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
