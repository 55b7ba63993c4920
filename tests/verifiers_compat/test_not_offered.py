"""Every documented name that is not offered says so, with a true reason, wherever it was documented: in packages and in submodules."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest

from verifiers_compat.alias import install, uninstall
from verifiers_compat.not_offered import REASONS, find_module_reason, find_reason

TREE = {
    "": "cli clients decorators envs errors gepa parsers rl rubrics scripts serve types utils v1",
    "cli": "commands plugins tui",
    "cli.commands": "build eval gepa init install setup",
    "cli.plugins": "prime",
    "clients": "anthropic_messages_client client nemorl_chat_completions_client openai_chat_completions_client"
    " openai_chat_completions_token_client openai_completions_client openai_responses_client renderer_client",
    "envs": "env_group environment experimental integrations multiturn_env python_env sandbox_env singleturn_env stateful_tool_env"
    " tool_env",
    "envs.experimental": "cli_agent_env composable gym_env harbor_env mcp_env opencode_env opencode_qa_env opencode_rlm_env rlm_env"
    " sandbox_mixin utils",
    "envs.experimental.composable": "_filter composable_env harness harnesses task tasksets",
    "envs.experimental.composable.harnesses": "mini_swe_agent opencode rlm",
    "envs.experimental.composable.tasksets": "cp harbor lean math swe",
    "envs.experimental.composable.tasksets.cp": "cp_task test_utils",
    "envs.experimental.composable.tasksets.harbor": "harbor",
    "envs.experimental.composable.tasksets.lean": "lean_task",
    "envs.experimental.composable.tasksets.math": "math_task",
    "envs.experimental.composable.tasksets.swe": "_test_patch log_parser multi_swe openswe r2e_gym swe_bench swe_lego swe_rebench_v2"
    " swe_rebench_v2_log_parsers swe_smith swe_tasksets",
    "envs.experimental.harbor_env": "env mcp",
    "envs.experimental.utils": "file_locks git_checkout_cache",
    "envs.integrations": "browser_env openenv_env reasoninggym_env textarena_env",
    "envs.integrations.browser_env": "browser_env modes",
    "envs.integrations.browser_env.modes": "base cua_mode dom_mode",
    "gepa": "adapter config display gepa_utils",
    "parsers": "maybe_think_parser parser think_parser xml_parser",
    "rl": "inference trainer",
    "rl.inference": "client server",
    "rl.trainer": "config orchestrator trainer utils",
    "rubrics": "experimental experimental.hybrid_math_rubric judge_rubric math_rubric rubric rubric_group",
    "scripts": "build eval gepa init install prime_rl rl setup train tui vllm",
    "serve": "client client.env_client client.zmq_env_client server types",
    "serve.server": "env_router env_server env_worker zmq_env_server",
    "utils": "async_utils client_utils config_utils data_utils display_utils env_config_utils env_utils error_utils eval_display eval_utils"
    " heartbeat import_utils install_utils interception_utils logging_utils message_utils metric_utils path_utils process_utils"
    " response_utils save_utils serve_utils thread_utils threaded_sandbox_client tool_utils tunnel_utils usage_utils version_utils",
    "v1": "config env harness packages runtime state task taskset toolset user utils",
    "v1.packages": "harnesses tasksets",
    "v1.packages.harnesses": "cli mini_swe_agent opencode pi rlm",
    "v1.packages.tasksets": "harbor",
    "v1.utils": "artifact_utils endpoint_utils json_utils judge_utils lifecycle_utils mcp_proxy_utils mcp_utils program_utils prompt_utils"
    " sandbox_program_utils sandbox_utils scoring_utils timing_utils tool_utils trajectory_utils",
}
"""Every module of verifiers 0.1.14, by the package that it is in."""


@pytest.fixture(scope="module", autouse=True)
def alias() -> Iterator[None]:
    install()
    yield
    uninstall()


def ask(code: str) -> str:
    """Return what a line of code is answered with."""
    try:
        exec(code, {})
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "it is there"


@pytest.mark.parametrize("path", REASONS)
def test_every_name_that_is_not_offered_says_why(path: str) -> None:
    """With `ImportError`, so that packages that can do without it go on; and nothing that is offered has a reason not to be."""
    module, _, name = f"verifiers.{path}".rpartition(".")
    reason = find_reason(path.rpartition(".")[0]) or REASONS[path]  # below a module that is not offered, each name has its reason
    answer = ask(f"from {module} import {name}")
    assert answer.startswith(("ImportError: verifiers.", "ModuleNotFoundError: verifiers."))
    assert answer.endswith(f" is not offered: {reason}")


@pytest.mark.parametrize(
    "path", ["envs.integrations.browser_env", "envs.experimental.opencode_rlm_env", "scripts.tui", "cli.tui", "serve", "rl", "v1.packages"]
)
def test_modules_that_are_not_offered_say_why(path: str) -> None:
    assert ask(f"import verifiers.{path}") == f"ModuleNotFoundError: verifiers.{path} is not offered: {REASONS[path]}"


def test_each_module_of_the_tree_is_here_or_says_why() -> None:
    """So does one that an older verifiers had elsewhere; of what was never there nobody knows anything."""
    tree = [f"{package}.{name}".lstrip(".") for package, names in TREE.items() for name in names.split()]
    here = 0
    for module in tree:
        try:
            here += importlib.util.find_spec(f"verifiers.{module}") is not None
        except ModuleNotFoundError as error:
            assert " is not offered: " in str(error)
    assert here > 90
    assert importlib.util.find_spec("verifiers.envs.no_such_env") is None
    for older, place in {"envs.textarena_env": "envs.integrations.textarena_env", "envs.gym_env": "envs.experimental.gym_env"}.items():
        with pytest.raises(ModuleNotFoundError, match=f"it is verifiers.{place} here, as in verifiers 0.1.14"):
            importlib.util.find_spec(f"verifiers.{older}")
    assert find_module_reason("envs.env") is None  # two modules have this name


def test_a_module_stands_for_what_is_below_and_what_was_never_there_has_no_reason() -> None:
    assert find_reason("serve.client.env_client.EnvClient") == find_reason("serve") == REASONS["serve"]
    assert find_reason("gepa.adapter.anything") == REASONS["gepa.adapter"]
    assert find_reason("envs.no_such_env") is None
    assert find_reason("") is None
    assert find_reason("envs.browser_env_of_mine") is None


def test_the_guide_names_the_classes_that_are_not_offered() -> None:
    guide = (Path(__file__).parents[2] / "docs" / "coming_from_verifiers.md").read_text()
    section = guide.partition("## What is not here")[2]
    missing = [name for name in REASONS if name[0].isupper() and f"`{name}`" not in section]
    assert missing == []
