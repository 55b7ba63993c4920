"""Every documented name is where published environments import it from, under ``verifiers``, with its documented parameters.

One real process installs the alias and reports the signatures.
"""

from __future__ import annotations

import functools
import json
import subprocess
import sys

import pytest

from tests.programs import run_python

NAMES: dict[str, list[str]] = {
    "errors": [
        *("Error", "ModelError", "InvalidModelResponseError", "EmptyModelResponseError", "OverlongPromptError", "ToolError"),
        *("ToolParseError", "ToolCallError", "InfraError", "TunnelError", "SandboxError", "BrowserSandboxError"),
    ],
    "decorators": [
        *("discover_decorated(obj, kind)", "stop(func, priority)", "setup(func, priority)", "cleanup(func, priority, stage)"),
        *("update(func, priority, stage)", "metric(func, priority, stage)", "reward(func, weight, priority, stage)"),
        *("advantage(func, priority)", "teardown(func, priority)"),
    ],
    "types": [
        *("SystemMessage", "UserMessage", "AssistantMessage", "ToolMessage", "TextMessage", "ToolCall", "Tool", "Usage", "Response"),
        *("ResponseTokens", "ResponseMessage", "State", "TrajectoryStep", "TimeSpan", "TimeSpans", "RolloutTiming", "RolloutOutput"),
        *("Messages", "ChatMessage", "Info", "SamplingArgs", "RewardFunc", "ClientType", "RolloutInput", "GenerateOutputs"),
        *("GenerateMetadata", "RolloutScore", "RolloutScores", "ClientConfig", "EndpointClientConfig", "EvalConfig", "EvalRunConfig"),
        *("Endpoint", "Endpoints", "StartCallback", "ProgressCallback", "LogCallback", "DatasetBuilder", "ErrorInfo", "VersionInfo"),
        "TokenUsage",
    ],
    "clients": [
        *("resolve_client(client_or_config)", "Client", "OpenAIChatCompletionsClient", "OpenAICompletionsClient"),
        *("OpenAIResponsesClient", "AnthropicMessagesClient", "OpenAIChatCompletionsTokenClient", "NeMoRLChatCompletionsClient"),
    ],
    "clients.client": ["Client(client_or_config)"],
    "clients.openai_chat_completions_client": [
        *("handle_openai_overlong_prompt(func)", "get_usage_field(usage, key)", "content_to_text(content)"),
        *("parse_reasoning_content(message)", "OpenAIChatCompletionsClient"),
    ],
    "clients.openai_completions_client": ["OpenAICompletionsClient"],
    "clients.openai_responses_client": ["OPENAI_RESPONSES_OUTPUT_FIELD", "OpenAIResponsesClient"],
    "clients.anthropic_messages_client": ["AnthropicMessagesClient"],
    "clients.openai_chat_completions_token_client": ["OpenAIChatCompletionsTokenClient"],
    "clients.nemorl_chat_completions_client": ["NeMoRLChatCompletionsClient"],
    "clients.renderer_client": ["RendererClient"],
    "parsers.parser": ["Parser(extract_fn)"],
    "parsers.xml_parser": ["XMLParser(fields, answer_field, extract_fn)"],
    "parsers.think_parser": ["ThinkParser(extract_fn)"],
    "parsers.maybe_think_parser": ["MaybeThinkParser(extract_fn)"],
    "rubrics.rubric": ["Rubric(funcs, weights, parser)"],
    "rubrics.rubric_group": ["RubricGroup(rubrics)"],
    "rubrics.judge_rubric": ["DEFAULT_JUDGE_PROMPT", "JudgeRubric(parser, judge_client, judge_model, judge_sampling_args, judge_prompt)"],
    "rubrics.math_rubric": [
        "verify_response(response, answer, max_verify_chars, timeout_seconds)",
        "MathRubric(funcs, weights, parser, max_workers, timeout_seconds, max_verify_chars)",
    ],
    "envs.environment": ["Environment"],
    "envs.multiturn_env": ["MultiTurnMonitorRubric", "MultiTurnEnv"],
    "envs.singleturn_env": ["SingleTurnEnv"],
    "envs.tool_env": ["ToolMonitorRubric", "ToolEnv"],
    "envs.stateful_tool_env": ["StatefulToolEnv"],
    "envs.sandbox_env": [
        *("SandboxCreationError", "SandboxNotReadyError", "SandboxMonitorRubric", "SandboxState", "CreateSandboxRequest"),
        *("CommandTimeoutError", "ThreadedAsyncSandboxClient(max_workers, max_connections, max_keepalive_connections)"),
        "SandboxEnv(sandbox_name, docker_image, start_command, cpu_cores, memory_gb, disk_size_gb, gpu_count, timeout_minutes)",
        "SandboxEnv(timeout_per_command_seconds, environment_vars, team_id, advanced_configs, labels, max_retries, base_delay)",
        "SandboxEnv(backoff_factor, max_backoff_seconds, jitter, stop_errors, sandbox_client_max_workers)",
        "SandboxEnv(sandbox_client_max_connections, sandbox_client_max_keepalive_connections)",
    ],
    "envs.python_env": [
        *("PythonWorkerNotReadyError", "PythonWorkerRequestError", "PythonWorkerDeadError", "PythonMonitorRubric"),
        *("PythonWorkerState", "PythonEnv(pip_install_packages, max_startup_wait_seconds)"),
    ],
    "utils.threaded_sandbox_client": ["ThreadedAsyncSandboxClient"],
    "envs.env_group": ["ENV_GROUP_INFO_KEY", "EnvGroupRubric", "EnvGroup"],
    "envs.experimental": ["CliAgentEnv", "HarborEnv"],
    "envs.experimental.cli_agent_env": [
        *("AgentError", "CliAgentMonitorRubric"),
        "CliAgentEnv(run_command, interception_port, interception_url, max_turns, poll_interval, docker_image, start_command, cpu_cores)",
        "CliAgentEnv(memory_gb, disk_size_gb, gpu_count, environment_vars, team_id, advanced_configs)",
    ],
    "envs.experimental.harbor_env": [
        "HarborEnv(run_command, dataset_path, tasks, agent_workdir, docker_image, mcp_launch_commands, mcp_healthcheck)",
    ],
    "envs.experimental.gym_env": [
        *("StepResetEnv", "normalize_reset(out)", "normalize_step(out)", "sum_step_rewards(state)", "EpisodicSumRubric(weight)"),
        "GymEnv(env_cls, env_kwargs, action_parser, obs_to_text, num_train_episodes, num_eval_episodes, max_episode_steps, seed)",
        "GymEnv(system_prompt, few_shot, parser, rubric, message_type)",
    ],
    "envs.integrations.textarena_env": [
        "TextArenaEnv(game, num_train_examples, num_eval_examples, system_prompt, parser, rubric, feedback_fn, seed)",
    ],
    "utils.data_utils": [
        *("THINK_BOXED_SYSTEM_PROMPT", "BOXED_SYSTEM_PROMPT"),
        "format_dataset(dataset, system_prompt, few_shot, question_key, answer_key, map_kwargs)",
        *("extract_boxed_answer(text, strict)", "strip_non_numeric(text)", "extract_hash_answer(text)", "get_preprocess_fn(name)"),
        "load_example_dataset(name, split, n, seed)",
    ],
    "utils.message_utils": [
        *("from_raw_content_part(part)", "from_raw_message(message)", "normalize_messages(value, field_name)"),
        *("maybe_normalize_messages(value, field_name)", "concat_messages(messages_list)", "message_to_printable(message)"),
        *("messages_to_printable(messages)", "serialize_message_for_output(message)", "serialize_messages_for_output(messages)"),
        *("format_messages(messages)", "sanitize_tool_calls(messages)"),
    ],
    "utils.response_utils": ["async parse_response_message(response)", "async parse_response_tokens(response, max_seq_len)"],
    "utils.save_utils": [
        *("is_json_serializable(value)", "make_serializable(value)", "extract_usage_tokens(response)"),
        *("get_hf_hub_dataset_name(outputs)", "state_to_output(state, state_columns)", "serialize_timing(timing)"),
        *("states_to_outputs(states, state_columns)", "GenerateOutputsBuilder", "load_outputs(results_path)"),
        "validate_resume_metadata(results_path, env_id, model, num_examples, rollouts_per_example)",
        *("save_outputs(outputs, results_path, mode)", "save_new_outputs(new_outputs, results_path)", "sanitize_metadata(metadata)"),
        *("save_metadata(metadata, result_path)", "make_dataset(results)", "push_results_to_hf_hub(results, dataset_name)"),
    ],
    "utils.tool_utils": ["is_valid_tool_content_parts(value)", "convert_func_to_tool_def(func)"],
    "utils.async_utils": [
        *("async with_sem(sem, coro)", "async maybe_await(func)", "async maybe_call_with_named_args(func)", "NullContext"),
        *("NullAsyncContext", "async maybe_semaphore(limit)", "EventLoopLagMonitor", "EventLoopLagStats"),
        "maybe_retry(func, max_retries, initial, max_wait, error_types)",
    ],
    "utils.error_utils": [
        *("get_error_chain(error, parent_type)", "get_vf_error_chain(error)", "ErrorChain", "error_info(error)"),
        *("error_type_name(error)", "error_info_to_exception(error, error_types)"),
    ],
    "utils.usage_utils": ["extract_usage_tokens(response)", "StateUsageTracker", "compute_context_token_metrics(trajectory)"],
    "utils.metric_utils": [
        *("Metric", "MeanMetric", "RewardMetric", "ErrorRateMetric", "InputTokensMetric", "OutputTokensMetric"),
        *("FinalInputTokensMetric", "FinalOutputTokensMetric", "EnvMetrics", "PassAtKMetric"),
    ],
    "utils.logging_utils": [
        *("LOGGER_NAME", "log_once(logger, level, msg)", "warning_once(logger, msg)", "JsonFormatter"),
        "setup_logging(level, log_format, date_format, log_file, console_logging, file_logging, json_logging)",
        *("log_level(level)", "quiet_verifiers()"),
        "print_prompt_completions_sample(prompts, completions, errors, rewards, step, num_samples)",
        *("print_time(time_s)", "print_size(num_bytes)", "truncate(s, limit)"),
    ],
    "utils.env_utils": [
        *("load_environment(env_id)", "coerce_typed_env_config(env_load_func, sig, env_args)"),
        *("env_config_annotation(env_load_func, sig)", "env_config_type(annotation)"),
    ],
    "utils.path_utils": [
        *("write_temp_file(content, suffix)", "get_results_path(env_id, model, base_path, subdir)", "get_eval_results_path(config)"),
        *("get_eval_runs_dir(env_id, model, env_dir_path, output_dir)", "is_valid_eval_results_path(path)"),
        "find_latest_incomplete_eval_results_path(env_id, model, num_examples, rollouts_per_example, env_dir_path, output_dir)",
        "get_gepa_results_path(env_id, model, env_dir_path, output_dir)",
    ],
    "utils.thread_utils": [
        *("get_thread_local_storage()", "get_or_create_thread_attr(key, factory)", "get_or_create_thread_loop()"),
        *("register_executor(name, executor, scaling_fn)", "unregister_executor(name)", "scale_executors(concurrency)"),
        *("install_default_executor()", "shutdown_executors()"),
    ],
    "utils.client_utils": [
        *("resolve_client_config(config)", "resolve_client_configs(config)", "load_prime_config()", "setup_http_client(config)"),
        *("setup_openai_client(config)", "setup_anthropic_client(config)"),
    ],
    "utils.config_utils": ["MissingKeyError", "ensure_keys(keys)"],
}
"""For each module its names; a function or class with the parameters that it has at least, by their names."""

REPORT = """
import importlib, inspect, json, sys
from verifiers_compat.alias import install
install()
found = {}
for module, names in json.load(sys.stdin).items():
    try:
        imported = importlib.import_module("verifiers." + module)
    except Exception as error:
        found[module] = repr(error)
        continue
    found[module] = {}
    for name in names:
        value = getattr(imported, name, None)
        try:
            parameters = list(inspect.signature(value).parameters)
        except (TypeError, ValueError):
            parameters = []
        found[module][name] = [value is not None, inspect.iscoroutinefunction(value), parameters]
print(json.dumps(found))
"""

CASES = [(module, documented) for module, names in NAMES.items() for documented in names]


def _name_of(documented: str) -> str:
    return documented.removeprefix("async ").partition("(")[0]


@functools.cache
def _found() -> dict[str, dict[str, tuple[bool, bool, list[str]]]]:
    asked = json.dumps({module: [_name_of(documented) for documented in names] for module, names in NAMES.items()})
    command = [sys.executable, "-W", "error", "-c", REPORT]
    done = subprocess.run(command, input=asked, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize(("module", "documented"), CASES, ids=[f"{module}.{documented}" for module, documented in CASES])
def test_documented_name(module: str, documented: str) -> None:
    """It can be imported, is async where it is documented so, and takes the documented parameters by name."""
    found = _found()[module]
    assert isinstance(found, dict), f"verifiers.{module} cannot be imported: {found}"
    is_there, is_async, parameters = found[_name_of(documented)]
    assert is_there
    assert is_async or not documented.startswith("async ")
    names = documented.partition("(")[2].rstrip(")")
    assert {name for name in names.split(", ") if name} <= set(parameters)


def test_the_package_stays_light() -> None:
    """Importing it, the names of `clients` and the helpers loads no SDK and nothing that few need."""
    heavy = "aiohttp anthropic datasets huggingface_hub math_verify openai rich textarena torch"
    modules = " ".join(f"verifiers_compat.{name}" for name in NAMES if not name.startswith(("clients.", "rubrics.")))
    script = (
        f"import importlib, sys\nfor name in '{modules}'.split(): importlib.import_module(name)\n"
        f"print(*(set('{heavy}'.split()) & set(sys.modules)))"
    )
    done = run_python(script, check=True)
    assert done.stdout.strip() == ""
