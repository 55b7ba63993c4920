"""Documented names of verifiers that are not offered here, each with the reason and what to use instead.

A name is its dotted path below ``verifiers``: a module, or something in one. A module stands for everything in it and below it.
`verifiers_compat.loading` and `verifiers_compat.alias` ask for the reason where a name is not found, so a module that is not offered
needs no file.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

_AGENT = (
    "it is the command line of one agent. Use vf.CliAgentEnv with that as its run_command, or verifiers.v1.Harness, whose program may be"
    " a command of this machine"
)
_HARBOR_MCP = "tasks of Harbor's that bring MCP servers are not offered. Use vf.MCPEnv with the servers"
_REMOTE = "it reads answers out of files in a hosted sandbox. Use HybridMathRubric, with a parser or a completion that has the answer"
_COMPOSABLE = (
    "it names images, data sets and releases of a hosted service. Write a Harness with your agent's run_command, or a SandboxTaskSet with"
    " your rows, of verifiers.envs.experimental.composable"
)
_BROWSER = (
    "it drives browsers of a hosted service. Use vf.ToolEnv with tools that drive a browser of yours, or vf.MCPEnv with an MCP"
    " server for one"
)
_SERVER = "environments run in the process that plays them, without a server between. Use env.generate or env.evaluate"
_PROCESSES = "it belongs to the environment server, which is not here: environments run in the process that plays them"
_INTERCEPTION = "calls of an agent's program are taken by verifiers.v1.Harness itself, on this machine, without a tunnel. Use that"
_ENDPOINT = (
    "one server of this process answers all rollouts, and its parts are not an API. Use state.get_client or state.get_endpoint_config"
)
_SANDBOX_PROGRAM = (
    "it is a part of how verifiers itself runs programs in sandboxes, which is different here. Use sandbox= of verifiers.v1.Harness,"
    " and state.get_sandbox()"
)
_TRAINER = (
    "no trainer is part of this package. A trainer calls env.generate with state_columns=['trajectory'], whose rows have rewards and tokens"
)
_INFERENCE = "no inference server is part of this package. Start vLLM as its own pages say, and name its URL in vf.ClientConfig"
_VIEWER = "what draws the viewer is different here. Use the command vf-tui, or vfgym.results.load_results(DIR), which reads results.jsonl"
_DISPLAY = "there is no full-screen display. Use verifiers.utils.eval_utils: run_evaluations prints plain text"
_HUB = "it asks the hosted hub of environments. Use vf-install with a directory, a wheel or an sdist"
_GEPA = "it is a part of how verifiers itself calls GEPA. Use the command vf-gepa, or verifiers.gepa.optimize_prompt"
_INSIDE = "it is a part of how verifiers itself works, which is different here"


def _at(module: str, names: str, reason: str) -> dict[str, str]:
    return {f"{module}.{name}".lstrip("."): reason for name in names.split()}


REASONS: Mapping[str, str] = {
    # Environments
    **_at("envs.experimental", "opencode_env opencode_qa_env opencode_rlm_env", _AGENT),
    **_at("envs.experimental.harbor_env", "HarborMCPHealthcheck HarborMCPMixin HarborMCPServer mcp", _HARBOR_MCP),
    **_at("envs.experimental.composable", "harnesses tasksets", _COMPOSABLE),
    **_at("envs.experimental.composable", "_filter", _INSIDE),
    **_at("", "BrowserEnv", _BROWSER),
    **_at("envs.integrations", "browser_env", _BROWSER),
    **_at("envs.experimental", "utils", _INSIDE),
    **_at("envs.experimental.mcp_env", "MCPServerConnection MCPToolWrapper", "vf.MCPEnv connects to servers and calls tools itself"),
    **_at("envs.integrations.reasoninggym_env", "SYSTEM_PROMPTS DEFAULT_SYSTEM_PROMPT", "system prompts are reasoning-gym's own, by name"),
    # Rubrics
    **_at("rubrics.experimental.hybrid_math_rubric", "RemoteHybridMathRubric MATH_VERIFY_SCORER_SCRIPT_TEMPLATE", _REMOTE),
    # Tasksets and harnesses
    **_at("v1", "packages", "its tasksets and harnesses are in verifiers.v1 itself. Use verifiers.v1.HarborTaskset or CLIHarness"),
    **_at("v1.utils", "sandbox_utils sandbox_program_utils mcp_proxy_utils artifact_utils", _SANDBOX_PROGRAM),
    **_at("v1.utils", "lifecycle_utils mcp_utils program_utils prompt_utils timing_utils tool_utils trajectory_utils", _INSIDE),
    **_at(
        "v1.utils.endpoint_utils",
        "Endpoint endpoint_from_state endpoint_api_client_type forward_request run_intercepted_program",
        _ENDPOINT,
    ),
    **_at("v1.utils.endpoint_utils", "normalize_endpoint_messages normalize_endpoint_prompt normalize_endpoint_tools", _ENDPOINT),
    # Commands
    **_at("scripts", "rl train prime_rl", _TRAINER),
    **_at("", "rl", _TRAINER),
    **_at("", "RLTrainer RLConfig GRPOTrainer GRPOConfig grpo_defaults lora_defaults get_model get_model_and_tokenizer", _TRAINER),
    **_at("rl", "inference", _INFERENCE),
    **_at("scripts", "vllm", _INFERENCE),
    **_at("cli", "tui", _VIEWER),
    **_at("scripts", "tui", _VIEWER),
    **_at("gepa", "adapter config display gepa_utils", _GEPA),
    **_at("gepa", "GEPAConfig GEPADisplay VerifiersGEPAAdapter make_reflection_lm save_gepa_results", _GEPA),
    # Helpers
    **_at("", "serve", _SERVER),
    **_at("utils", "serve_utils process_utils", _PROCESSES),
    **_at("utils", "interception_utils tunnel_utils", _INTERCEPTION),
    **_at("utils", "display_utils eval_display eval_utils.run_evaluations_tui", _DISPLAY),
    **_at("utils", "install_utils", _HUB),
    **_at("utils", "env_config_utils heartbeat import_utils version_utils", _INSIDE),
    **_at("types", "CustomBaseModel", "messages are dicts here, and responses plain classes, with the methods of pydantic's models"),
    **_at("types", "GenericContentPart", "a content part of any other type is a dict here"),
}
"""For each name, by its path below ``verifiers``, the reason: a clause, and a sentence on what to use instead where there is something."""


def find_reason(path: str) -> str | None:
    """Return why a name is not offered, or None where nothing says so.

    Args:
        path: The name's dotted path below ``verifiers``: ``"envs.python_env.PythonEnv"``.
    """
    while path:
        if path in REASONS:
            return REASONS[path]
        path = path.rpartition(".")[0]
    return None


def find_module_reason(path: str) -> str | None:
    """Return why there is no such module: the reason for its name, or where the one module of that name is, if older ones had it elsewhere.

    Args:
        path: The module's dotted path below ``verifiers``: ``"envs.textarena_env"``.
    """
    here = Path(__file__).parent
    found = [file.relative_to(here).with_suffix("") for file in here.rglob(f"{path.rpartition('.')[2]}.py")]
    moved = f"it is verifiers.{'.'.join(found[0].parts)} here, as in verifiers 0.1.14" if len(found) == 1 else None
    return find_reason(path) or moved
