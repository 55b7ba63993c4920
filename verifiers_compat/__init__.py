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
    from verifiers_compat.alias import install as install
    from verifiers_compat.alias import uninstall as uninstall
    from verifiers_compat.cli.plugins.prime import PRIME_PLUGIN_API_VERSION as PRIME_PLUGIN_API_VERSION
    from verifiers_compat.cli.plugins.prime import PrimeCLIPlugin as PrimeCLIPlugin
    from verifiers_compat.cli.plugins.prime import get_plugin as get_plugin
    from verifiers_compat.clients.anthropic_messages_client import AnthropicMessagesClient as AnthropicMessagesClient
    from verifiers_compat.clients.openai_chat_completions_client import OpenAIChatCompletionsClient as OpenAIChatCompletionsClient
    from verifiers_compat.clients.openai_completions_client import OpenAICompletionsClient as OpenAICompletionsClient
    from verifiers_compat.clients.openai_responses_client import OpenAIResponsesClient as OpenAIResponsesClient
    from verifiers_compat.envs.experimental.cli_agent_env import CliAgentEnv as CliAgentEnv
    from verifiers_compat.envs.experimental.gym_env import GymEnv as GymEnv
    from verifiers_compat.envs.experimental.harbor_env import HarborEnv as HarborEnv
    from verifiers_compat.envs.experimental.mcp_env import MCPEnv as MCPEnv
    from verifiers_compat.envs.experimental.rlm_env import RLMEnv as RLMEnv
    from verifiers_compat.envs.integrations.openenv_env import OpenEnvEnv as OpenEnvEnv
    from verifiers_compat.envs.integrations.reasoninggym_env import ReasoningGymEnv as ReasoningGymEnv
    from verifiers_compat.envs.integrations.textarena_env import TextArenaEnv as TextArenaEnv
    from verifiers_compat.rubrics.judge_rubric import JudgeRubric as JudgeRubric
    from verifiers_compat.rubrics.math_rubric import MathRubric as MathRubric
    from verifiers_compat.utils.config_utils import MissingKeyError as MissingKeyError
    from verifiers_compat.utils.config_utils import ensure_keys as ensure_keys
    from verifiers_compat.utils.data_utils import load_example_dataset as load_example_dataset
    from verifiers_compat.utils.env_utils import load_environment as load_environment
    from verifiers_compat.utils.logging_utils import log_level as log_level
    from verifiers_compat.utils.logging_utils import print_prompt_completions_sample as print_prompt_completions_sample
    from verifiers_compat.utils.logging_utils import quiet_verifiers as quiet_verifiers
    from verifiers_compat.utils.logging_utils import setup_logging as setup_logging
    from vfgym.clients.providers.nemorl_chat_completions import NeMoRLChatCompletionsClient as NeMoRLChatCompletionsClient
    from vfgym.clients.providers.openai_chat_completions_token import OpenAIChatCompletionsTokenClient as OpenAIChatCompletionsTokenClient
    from vfgym.clients.providers.renderer import RendererClient as RendererClient

_LAZY = {
    "verifiers_compat.alias": ["install", "uninstall"],
    "verifiers_compat.cli.plugins.prime": ["PRIME_PLUGIN_API_VERSION", "PrimeCLIPlugin", "get_plugin"],
    "verifiers_compat.clients.anthropic_messages_client": ["AnthropicMessagesClient"],
    "verifiers_compat.clients.openai_chat_completions_client": ["OpenAIChatCompletionsClient"],
    "verifiers_compat.clients.openai_completions_client": ["OpenAICompletionsClient"],
    "verifiers_compat.clients.openai_responses_client": ["OpenAIResponsesClient"],
    "verifiers_compat.envs.experimental.cli_agent_env": ["CliAgentEnv"],
    "verifiers_compat.envs.experimental.gym_env": ["GymEnv"],
    "verifiers_compat.envs.experimental.harbor_env": ["HarborEnv"],
    "verifiers_compat.envs.experimental.mcp_env": ["MCPEnv"],
    "verifiers_compat.envs.experimental.rlm_env": ["RLMEnv"],
    "verifiers_compat.envs.integrations.openenv_env": ["OpenEnvEnv"],
    "verifiers_compat.envs.integrations.reasoninggym_env": ["ReasoningGymEnv"],
    "verifiers_compat.envs.integrations.textarena_env": ["TextArenaEnv"],
    "verifiers_compat.envs.experimental.swe_debug_env": ["SWEDebugEnv"],
    "verifiers_compat.envs.python_env": ["PythonEnv"],
    "verifiers_compat.envs.sandbox_env": ["SandboxEnv"],
    "verifiers_compat.rubrics.judge_rubric": ["JudgeRubric"],
    "verifiers_compat.rubrics.math_rubric": ["MathRubric"],
    "verifiers_compat.utils.config_utils": ["MissingKeyError", "ensure_keys"],
    "verifiers_compat.utils.data_utils": ["load_example_dataset"],
    "verifiers_compat.utils.env_utils": ["load_environment"],
    "verifiers_compat.utils.logging_utils": ["log_level", "print_prompt_completions_sample", "quiet_verifiers", "setup_logging"],
    "vfgym.clients.providers.nemorl_chat_completions": ["NeMoRLChatCompletionsClient"],
    "vfgym.clients.providers.openai_chat_completions_token": ["OpenAIChatCompletionsTokenClient"],
    "vfgym.clients.providers.renderer": ["RendererClient"],
}
_V1 = {
    "verifiers_compat.v1": [
        *("Env", "EnvConfig", "Harness", "HarnessConfig", "MCPTool", "MCPToolConfig", "SandboxConfig", "Task", "Taskset"),
        *("TasksetConfig", "Toolset", "ToolsetConfig", "User", "UserConfig"),
        *("HarborTaskset", "HarborTasksetConfig", "CLIHarness", "MiniSWEAgent", "OpenCode", "Pi", "RLM"),
    ],
}
__getattr__ = create_getattr(__name__, {**_LAZY, **_V1})

__all__ = [
    *_errors,
    *_types,
    *(name for names in _LAZY.values() for name in names),
    "Client",
    "EnvGroup",
    "Environment",
    "MaybeThinkParser",
    "MultiTurnEnv",
    "Parser",
    "Rubric",
    "RubricGroup",
    "SingleTurnEnv",
    "StatefulToolEnv",
    "ThinkParser",
    "ToolEnv",
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
