"""What the documentation names: every name is where it is imported from, with the parameters, defaults and values that it documents."""

from __future__ import annotations

import importlib
import inspect
import operator
import re
import typing
from collections.abc import Iterator
from typing import Any

import pytest

import verifiers_compat as vf
import vfgym.parsers
from tests.programs import run_python
from verifiers_compat.alias import install, uninstall


def entries(text: str) -> list[str]:
    """Return the entries of a text, each of which begins without an indent."""
    return [" ".join(entry.split()) for entry in re.split(r"\n(?=\S)", text.strip())]


@pytest.fixture(scope="module", autouse=True)
def alias() -> Iterator[None]:
    install()
    yield
    uninstall()


MODULES = """
errors: Error; ModelError; InvalidModelResponseError; EmptyModelResponseError; OverlongPromptError; ToolError; ToolParseError;
    ToolCallError; InfraError; TunnelError; SandboxError; BrowserSandboxError
decorators: discover_decorated(obj, kind); stop(func, priority); setup(func, priority); cleanup(func, priority, stage); update(func,
    priority, stage); metric(func, priority, stage); reward(func, weight, priority, stage); advantage(func, priority); teardown(func,
    priority)
types: SystemMessage; UserMessage; AssistantMessage; ToolMessage; TextMessage; ToolCall; Tool; Usage; Response; ResponseTokens;
    ResponseMessage; State; TrajectoryStep; TimeSpan; TimeSpans; RolloutTiming; RolloutOutput; Messages; ChatMessage; Info; SamplingArgs;
    RewardFunc; ClientType; RolloutInput; GenerateOutputs; GenerateMetadata; RolloutScore; RolloutScores; ClientConfig;
    EndpointClientConfig; EvalConfig; EvalRunConfig; Endpoint; Endpoints; StartCallback; ProgressCallback; LogCallback; DatasetBuilder;
    ErrorInfo; VersionInfo; TokenUsage
clients: resolve_client(client_or_config); Client; OpenAIChatCompletionsClient; OpenAICompletionsClient; OpenAIResponsesClient;
    AnthropicMessagesClient; OpenAIChatCompletionsTokenClient; NeMoRLChatCompletionsClient
clients.client: Client(client_or_config)
clients.openai_chat_completions_client: handle_openai_overlong_prompt(func); get_usage_field(usage, key); content_to_text(content);
    parse_reasoning_content(message); OpenAIChatCompletionsClient
clients.openai_completions_client: OpenAICompletionsClient
clients.openai_responses_client: OPENAI_RESPONSES_OUTPUT_FIELD; OpenAIResponsesClient
clients.anthropic_messages_client: AnthropicMessagesClient
clients.openai_chat_completions_token_client: OpenAIChatCompletionsTokenClient
clients.nemorl_chat_completions_client: NeMoRLChatCompletionsClient
clients.renderer_client: RendererClient
parsers.parser: Parser(extract_fn)
parsers.xml_parser: XMLParser(fields, answer_field, extract_fn)
parsers.think_parser: ThinkParser(extract_fn)
parsers.maybe_think_parser: MaybeThinkParser(extract_fn)
rubrics.rubric: Rubric(funcs, weights, parser)
rubrics.rubric_group: RubricGroup(rubrics)
rubrics.judge_rubric: DEFAULT_JUDGE_PROMPT; JudgeRubric(parser, judge_client, judge_model, judge_sampling_args, judge_prompt)
rubrics.math_rubric: verify_response(response, answer, max_verify_chars, timeout_seconds); MathRubric(funcs, weights, parser, max_workers,
    timeout_seconds, max_verify_chars)
envs.environment: Environment
envs.multiturn_env: MultiTurnMonitorRubric; MultiTurnEnv
envs.singleturn_env: SingleTurnEnv
envs.tool_env: ToolMonitorRubric; ToolEnv
envs.stateful_tool_env: StatefulToolEnv
envs.sandbox_env: SandboxCreationError; SandboxNotReadyError; SandboxMonitorRubric; SandboxState; CreateSandboxRequest;
    CommandTimeoutError; ThreadedAsyncSandboxClient(max_workers, max_connections, max_keepalive_connections); SandboxEnv(sandbox_name,
    docker_image, start_command, cpu_cores, memory_gb, disk_size_gb, gpu_count, timeout_minutes); SandboxEnv(timeout_per_command_seconds,
    environment_vars, team_id, advanced_configs, labels, max_retries, base_delay); SandboxEnv(backoff_factor, max_backoff_seconds, jitter,
    stop_errors, sandbox_client_max_workers); SandboxEnv(sandbox_client_max_connections, sandbox_client_max_keepalive_connections)
envs.python_env: PythonWorkerNotReadyError; PythonWorkerRequestError; PythonWorkerDeadError; PythonMonitorRubric; PythonWorkerState;
    PythonEnv(pip_install_packages, max_startup_wait_seconds)
utils.threaded_sandbox_client: ThreadedAsyncSandboxClient
envs.env_group: ENV_GROUP_INFO_KEY; EnvGroupRubric; EnvGroup
envs.experimental: CliAgentEnv; HarborEnv; RLMEnv; SandboxMixin; SWEDebugEnv
envs.experimental.cli_agent_env: AgentError; CliAgentMonitorRubric; CliAgentEnv(run_command, interception_port, interception_url,
    max_turns, poll_interval, docker_image, start_command, cpu_cores); CliAgentEnv(memory_gb, disk_size_gb, gpu_count, environment_vars,
    team_id, advanced_configs)
envs.experimental.harbor_env: HarborEnv(run_command, dataset_path, tasks, agent_workdir, docker_image, mcp_launch_commands,
    mcp_healthcheck)
envs.experimental.gym_env: StepResetEnv; normalize_reset(out); normalize_step(out); sum_step_rewards(state); EpisodicSumRubric(weight);
    GymEnv(env_cls, env_kwargs, action_parser, obs_to_text, num_train_episodes, num_eval_episodes, max_episode_steps, seed);
    GymEnv(system_prompt, few_shot, parser, rubric, message_type)
envs.integrations.textarena_env: TextArenaEnv(game, num_train_examples, num_eval_examples, system_prompt, parser, rubric, feedback_fn,
    seed)
utils.data_utils: THINK_BOXED_SYSTEM_PROMPT; BOXED_SYSTEM_PROMPT; format_dataset(dataset, system_prompt, few_shot, question_key,
    answer_key, map_kwargs); extract_boxed_answer(text, strict); strip_non_numeric(text); extract_hash_answer(text);
    get_preprocess_fn(name); load_example_dataset(name, split, n, seed)
utils.message_utils: from_raw_content_part(part); from_raw_message(message); normalize_messages(value, field_name);
    maybe_normalize_messages(value, field_name); concat_messages(messages_list); message_to_printable(message);
    messages_to_printable(messages); serialize_message_for_output(message); serialize_messages_for_output(messages);
    format_messages(messages); sanitize_tool_calls(messages)
utils.response_utils: async parse_response_message(response); async parse_response_tokens(response, max_seq_len)
utils.save_utils: is_json_serializable(value); make_serializable(value); extract_usage_tokens(response); get_hf_hub_dataset_name(outputs);
    state_to_output(state, state_columns); serialize_timing(timing); states_to_outputs(states, state_columns); GenerateOutputsBuilder;
    load_outputs(results_path); validate_resume_metadata(results_path, env_id, model, num_examples, rollouts_per_example);
    save_outputs(outputs, results_path, mode); save_new_outputs(new_outputs, results_path); sanitize_metadata(metadata);
    save_metadata(metadata, result_path); make_dataset(results); push_results_to_hf_hub(results, dataset_name)
utils.tool_utils: is_valid_tool_content_parts(value); convert_func_to_tool_def(func)
utils.async_utils: async with_sem(sem, coro); async maybe_await(func); async maybe_call_with_named_args(func); NullContext;
    NullAsyncContext; async maybe_semaphore(limit); EventLoopLagMonitor; EventLoopLagStats; maybe_retry(func, max_retries, initial,
    max_wait, error_types)
utils.error_utils: get_error_chain(error, parent_type); get_vf_error_chain(error); ErrorChain; error_info(error); error_type_name(error);
    error_info_to_exception(error, error_types)
utils.usage_utils: extract_usage_tokens(response); StateUsageTracker; compute_context_token_metrics(trajectory)
utils.metric_utils: Metric; MeanMetric; RewardMetric; ErrorRateMetric; InputTokensMetric; OutputTokensMetric; FinalInputTokensMetric;
    FinalOutputTokensMetric; EnvMetrics; PassAtKMetric
utils.logging_utils: LOGGER_NAME; log_once(logger, level, msg); warning_once(logger, msg); JsonFormatter; setup_logging(level, log_format,
    date_format, log_file, console_logging, file_logging, json_logging); log_level(level); quiet_verifiers();
    print_prompt_completions_sample(prompts, completions, errors, rewards, step, num_samples); print_time(time_s); print_size(num_bytes);
    truncate(s, limit)
utils.env_utils: load_environment(env_id); coerce_typed_env_config(env_load_func, sig, env_args); env_config_annotation(env_load_func,
    sig); env_config_type(annotation)
utils.path_utils: write_temp_file(content, suffix); get_results_path(env_id, model, base_path, subdir); get_eval_results_path(config);
    get_eval_runs_dir(env_id, model, env_dir_path, output_dir); is_valid_eval_results_path(path);
    find_latest_incomplete_eval_results_path(env_id, model, num_examples, rollouts_per_example, env_dir_path, output_dir);
    get_gepa_results_path(env_id, model, env_dir_path, output_dir)
utils.thread_utils: get_thread_local_storage(); get_or_create_thread_attr(key, factory); get_or_create_thread_loop();
    register_executor(name, executor, scaling_fn); unregister_executor(name); scale_executors(concurrency); install_default_executor();
    shutdown_executors()
utils.client_utils: resolve_client_config(config); resolve_client_configs(config); load_prime_config(); setup_http_client(config);
    setup_openai_client(config); setup_anthropic_client(config)
utils.config_utils: MissingKeyError; ensure_keys(keys)
"""
"""For each module its names; a function or class with the parameters that it has at least, by their names."""

NAMES = {module: names.split("; ") for module, _, names in (entry.partition(": ") for entry in entries(MODULES))}


@pytest.mark.parametrize("module", NAMES)
def test_the_documented_names_of_a_module(module: str) -> None:
    """Each can be imported, is async where it is documented so, and takes the documented parameters by name."""
    imported = importlib.import_module(f"verifiers.{module}")
    for documented in NAMES[module]:
        name, _, parameters = documented.removeprefix("async ").rstrip(")").partition("(")
        value = getattr(imported, name)
        assert value is not None, documented
        assert inspect.iscoroutinefunction(value) or not documented.startswith("async "), documented
        if parameters:
            assert {*parameters.split(", ")} <= {*inspect.signature(value).parameters}, documented


TOP_LEVEL = """
stop cleanup teardown setup update metric reward advantage Error ModelError InvalidModelResponseError EmptyModelResponseError
OverlongPromptError ToolError ToolParseError ToolCallError InfraError TunnelError SandboxError BrowserSandboxError Parser XMLParser
ThinkParser MaybeThinkParser Rubric RubricGroup JudgeRubric MathRubric Environment MultiTurnEnv SingleTurnEnv ToolEnv SandboxEnv PythonEnv
SWEDebugEnv StatefulToolEnv EnvGroup GymEnv MCPEnv OpenEnvEnv ReasoningGymEnv TextArenaEnv Env EnvConfig Task Taskset TasksetConfig
Harness HarnessConfig Toolset ToolsetConfig MCPTool MCPToolConfig SandboxConfig User UserConfig Client OpenAIChatCompletionsClient
OpenAICompletionsClient OpenAIResponsesClient AnthropicMessagesClient RendererClient OpenAIChatCompletionsTokenClient
NeMoRLChatCompletionsClient load_environment load_example_dataset extract_boxed_answer extract_hash_answer ensure_keys MissingKeyError
setup_logging log_level quiet_verifiers print_prompt_completions_sample DatasetBuilder Messages ChatMessage SystemMessage UserMessage
AssistantMessage ToolMessage TextMessage Info SamplingArgs IndividualRewardFunc GroupRewardFunc RewardFunc ClientType ModelResponse State
RolloutInput RolloutOutput TrajectoryStep TrajectoryStepTokens TimeSpan TimeSpans RolloutTiming TokenUsage GenerateOutputs VersionInfo
GenerateMetadata RolloutScore RolloutScores ProcessedOutputs Response ResponseMessage Tool ToolCall Usage ResponseTokens ClientConfig
EndpointClientConfig EvalConfig EvalRunConfig Endpoint Endpoints StartCallback ProgressCallback LogCallback ErrorInfo
"""


def test_the_documented_names_of_the_package() -> None:
    assert [name for name in TOP_LEVEL.split() if getattr(vf, name, None) is None] == []


def test_the_parsers_are_those_of_vfgym() -> None:
    """`tests/parsers` has the tables of what they read and how they score."""
    assert [name for name in vfgym.parsers.__all__ if getattr(vf, name) is not getattr(vfgym.parsers, name)] == []


def test_the_package_stays_light() -> None:
    """Importing it, the names of `clients` and the helpers loads no SDK and nothing that few need."""
    heavy = "aiohttp anthropic datasets huggingface_hub math_verify openai rich textarena torch"
    modules = " ".join(f"verifiers_compat.{name}" for name in NAMES if not name.startswith(("clients.", "rubrics.")))
    script = (
        f"import importlib, sys\nfor name in '{modules}'.split(): importlib.import_module(name)\n"
        f"print(*(set('{heavy}'.split()) & set(sys.modules)))"
    )
    assert run_python(script, "-W", "error", check=True).stdout.strip() == ""


# Signatures

WHOLE = """
SandboxEnv(sandbox_name='sandbox-env', docker_image='python:3.11-slim', start_command='tail -f /dev/null', cpu_cores=1, memory_gb=2,
    disk_size_gb=5, gpu_count=0, timeout_minutes=60, timeout_per_command_seconds=30, environment_vars=None, team_id=None,
    advanced_configs=None, labels=None, **kwargs)
PythonEnv(pip_install_packages='numpy sympy scipy', max_startup_wait_seconds=30, **kwargs)
OpenEnvEnv(openenv_project, num_train_examples=100, num_eval_examples=50, seed=0, prompt_renderer=None, max_turns=-1, rubric=None,
    **kwargs)
SWEDebugEnv(taskset, dataset=None, *, run_setup=True, debug_step='gold_patch', run_tests=True, debug_command=None, debug_script=None,
    debug_script_path=None, debug_timeout=None, test_timeout=900, cpu_cores=None, memory_gb=None, disk_size_gb=None, labels=None,
    timeout_seconds=1800.0, output_tail_chars=2000, **sandbox_kwargs)
CliAgentEnv(run_command, interception_port=None, interception_url=None, max_turns=-1, poll_interval=5.0, docker_image='python:3.11-slim',
    start_command='tail -f /dev/null', cpu_cores=1, memory_gb=2, disk_size_gb=5, gpu_count=0, environment_vars=None, team_id=None,
    advanced_configs=None, labels=None, max_retries=5, base_delay=0.5, backoff_factor=2.0, max_backoff_seconds=30.0, jitter=0.001,
    sandbox_client_max_workers=50, sandbox_client_max_connections=1000, sandbox_client_max_keepalive_connections=200,
    sandbox_wait_for_creation_max_attempts=120, sandbox_creations_per_minute=128, timeouts=..., keep_sandbox_for_scoring=False, **kwargs)
HarborEnv(run_command, dataset_path, tasks=None, agent_workdir='/app', docker_image='python:3.11-slim', mcp_launch_commands=None,
    mcp_healthcheck=None, **kwargs)
RLMEnv(max_turns=50, tools=None, root_tools=None, sub_tools=None, sub_llm_max_turns=5, sub_max_completion_tokens=None,
    root_max_completion_tokens=None, sub_model=None, sub_prompt_verbosity='light', root_prompt_verbosity='light', enable_sub_llms=True,
    enable_summarization=False, min_turns_in_context=3, max_turns_in_context=None, max_output_length=8192, max_sub_llm_parallelism=5,
    system_prompt=None, repl_language='bash', pip_install_packages='', include_sub_llm_in_trajectory=False, context_warning_threshold=0.8,
    max_startup_wait_seconds=120, code_execution_timeout=120, abort_on_code_timeout=False, retain_filesystem_after_rollout=False,
    sandbox_docker_image='python:3.11-slim', sandbox_cpu_cores=1, sandbox_memory_gb=2, sandbox_disk_size_gb=5, sandbox_gpu_count=0,
    sandbox_timeout_minutes=60, sandbox_environment_vars=None, sandbox_labels=None, sandbox_client_max_workers=50,
    sandbox_client_max_connections=100, sandbox_client_max_keepalive_connections=50, sandbox_transfer_max_retries=3, **kwargs)
GymEnv(env_cls, env_kwargs=None, action_parser=None, obs_to_text=None, num_train_episodes=1000, num_eval_episodes=20,
    max_episode_steps=None, seed=0, system_prompt=None, few_shot=None, parser=None, rubric=None, message_type='chat')
MultiTurnEnv(max_turns=-1, timeout_seconds=None, **kwargs)
ToolEnv(tools=None, max_turns=10, error_formatter=..., stop_errors=None, **kwargs)
StatefulToolEnv(tools=None, max_turns=10, error_formatter=..., stop_errors=None, **kwargs)
MCPEnv(mcp_servers=..., max_turns=10, error_formatter=..., **kwargs)
EnvGroup(envs, env_names=None, map_kwargs=..., **kwargs)
envs.experimental.composable.ComposableEnv(taskset, harness, *, install_env=None, **kwargs)
Taskset.rows(self)
Taskset.eval_rows(self)
Taskset.task(self, row)
Taskset.to_task(self, value)
Taskset.init_group(self, task, num_rollouts)
Taskset.get_dataset(self)
Taskset.get_eval_dataset(self)
Harness.run(self, task, state=None)
Harness.score_group(self, tasks, states)
Harness.cleanup_group(self, tasks, states)
Harness.teardown(self)
v1.State.stop(self, condition='state_done')
v1.State.get_client(self, api='chat_completions', *, sync=False)
v1.State.get_endpoint_config(self, api='chat_completions')
v1.State.get_max_turns(self, default)
v1.State.for_task(task, *, borrow=..., tools=..., transcript='private')
TasksetConfig.from_toml(path, section=None)
envs.experimental.composable.TaskSet(dataset, name='', filter_fn=None)
envs.experimental.composable.SandboxTaskSet(dataset, name='', filter_fn=None)
"""
"""Classes with all documented parameters, in their order. A default that is ``...`` is an object of its own: there must be one."""

PARTS = """
Environment.generate(inputs, client, model, sampling_args=None, max_concurrent=-1, results_path=None, state_columns=None,
    save_results=False, push_to_hf_hub=False, hf_hub_dataset_name=None, independent_scoring=False, max_retries=0, on_start=None,
    on_progress=None, on_log=None)
Environment.evaluate(client, model, sampling_args=None, num_examples=-1, rollouts_per_example=1, max_concurrent=-1, results_path=None,
    state_columns=None, save_results=False, push_to_hf_hub=False, hf_hub_dataset_name=None, independent_scoring=False, max_retries=0,
    on_start=None, on_progress=None, on_log=None)
Environment.rollout(input, client, model, sampling_args=None)
Environment.get_model_response(state, prompt, client=None, model=None, tool_defs=None, sampling_args=None)
Environment.get_dataset(n=-1, seed=None)
Environment.get_eval_dataset(n=-1, seed=None)
Environment.increment_state_usage(state, input_tokens=0, output_tokens=0)
Environment.increment_state_usage_from_response(state, response)
Environment.is_completed(state)
Environment.add_rubric(rubric)
Environment.set_max_seq_len(max_seq_len)
Environment.set_score_rollouts(score_rollouts)
Environment.set_concurrency(concurrency)
Environment.start_server(address=None)
Rubric(funcs=None, weights=None, parser=None)
Rubric.add_reward_func(func, weight=1.0)
Rubric.add_metric(func, weight=0.0)
Rubric.add_class_object(name, obj)
Parser.parse(text)
Parser.parse_answer(completion)
extract_boxed_answer(text, strict=False)
extract_hash_answer(text)
load_environment(env_id)
ensure_keys(keys)
Taskset(source=None, eval_source=None, taskset_id=None, system_prompt=None, user=None, config=None)
Harness(program=None, system_prompt=None, user=None, sandbox=None, client=None, model=None, sampling_args=None, max_turns=None,
    toolsets=None, config=None)
Env(taskset, harness=None)
MCPTool(command, args=None, env=None, cwd=None)
Toolset(show=None, hide=None, bindings=None, objects=None, write=False, scope='rollout', sandbox=None, config=None)
"""
"""Calls with all documented parameters, in any order: those without a default, the others with theirs."""


def find(name: str) -> Any:
    """Return what a dotted name names: something of a module, or of the package."""
    module, _, last = name.rpartition(".")
    if not module:
        return getattr(vf, last)
    return getattr(importlib.import_module(f"verifiers.{module}") if module.islower() else operator.attrgetter(module)(vf), last)


@pytest.mark.parametrize("entry", [*entries(WHOLE), *entries(PARTS)], ids=lambda entry: entry.partition("(")[0])
def test_what_is_documented_can_be_passed_as_documented(entry: str) -> None:
    """Each documented parameter stands in the signature by its name, in its place, with its default.

    Required arguments that have a better default here (``openenv_project``, which ``url`` replaces) may be left out, too.
    """
    name, _, parameters = entry.rstrip(")").partition("(")
    expected = inspect.signature(eval(f"lambda {parameters}: 0", {})).parameters
    ours = inspect.signature(find(name)).parameters
    if entry in entries(WHOLE):
        by_place = [key for key, each in expected.items() if each.kind is each.POSITIONAL_OR_KEYWORD]
        assert [key for key, each in ours.items() if each.kind is each.POSITIONAL_OR_KEYWORD][: len(by_place)] == by_place
    for argument, each in expected.items():
        if each.kind is each.VAR_KEYWORD:
            assert any(one.kind is each.kind for one in ours.values())
        elif each.default is ...:
            assert ours[argument].default is not each.empty
        elif (name, argument) == ("OpenEnvEnv", "openenv_project"):
            assert ours[argument].default is None
        else:
            assert (argument, ours[argument].default) == (argument, each.default)


KEPT: dict[str, Any] = {
    **{"system_prompt": "Be kind.", "parser": vf.Parser(), "message_type": "chat", "env_id": "mine", "env_args": {"x": 1}},
    **{"max_seq_len": 10, "score_rollouts": True, "pass_threshold": 0.5, "max_workers": 512},
}
TAKEN: dict[str, Any] = {
    **{"eval_dataset": [{"question": "?"}], "few_shot": [{"role": "user", "content": "hi"}], "rubric": vf.Rubric()},
    **{"sampling_args": {"temperature": 1.0}, "map_kwargs": {"num_proc": None}},
    "tool_defs": [{"name": "t", "description": "", "parameters": {"type": "object", "properties": {}}}],
}


@pytest.mark.parametrize("argument", KEPT | TAKEN)
def test_documented_arguments_of_environments(argument: str) -> None:
    env = vf.SingleTurnEnv(dataset=[{"question": "?"}], **{argument: (KEPT | TAKEN)[argument]})
    assert argument not in KEPT or getattr(env, argument) == KEPT[argument]
    assert argument != "tool_defs" or env.tool_defs[0].name == "t"


def test_documented_defaults_of_environments() -> None:
    env = vf.SingleTurnEnv(dataset=[{"question": "?"}])
    assert (env.system_prompt, env.max_seq_len, env.score_rollouts, env.pass_threshold) == (None, None, True, 0.5)
    assert (type(env.parser), env.env_args, env.max_turns) == (vf.Parser, {}, 1)
    with pytest.raises(ValueError, match="dataset"):
        vf.SingleTurnEnv()
    with pytest.raises(TypeError, match="max_turns"):
        vf.SingleTurnEnv(dataset=[{"question": "?"}], max_turns=2)


MODELS: dict[str, dict[str, Any]] = {
    "HarnessConfig": {"program": None, "system_prompt": None, "sandbox": None, "model": None, "sampling_args": {}, "max_turns": 10},
    "TasksetConfig": {"taskset_id": None, "system_prompt": None, "source": None, "eval_source": None, "user": None},
    "EnvConfig": {"taskset": None, "harness": None},
    "RolloutTiming": {},
    "TimeSpan": {"start": 0.0, "end": 0.0, "duration": 0.0},
    "TimeSpans": {"spans": [], "duration": 0},
}


@pytest.mark.parametrize("name", MODELS)
def test_documented_defaults_of_models(name: str) -> None:
    made = getattr(vf, name)()
    found = {field: getattr(made, field) for field in MODELS[name]}
    assert {field: [*value] if isinstance(value, tuple) else value for field, value in found.items()} == MODELS[name]


def test_documented_fields_of_evaluations() -> None:
    numbers = dict.fromkeys(("num_examples", "rollouts_per_example", "max_concurrent"), 1)
    config = vf.EvalConfig(
        env_id="x", env_args={}, env_dir_path=".", model="m", client_config=vf.ClientConfig(), sampling_args={}, **numbers
    )
    defaults = {
        **dict.fromkeys(("endpoint_id", "state_columns", "resume_path", "hf_hub_dataset_name")),
        **dict.fromkeys(("independent_scoring", "verbose", "save_results", "save_to_hf_hub"), False),
        **{"extra_env_kwargs": {}, "max_retries": 0},
    }
    assert {name: getattr(config, name) for name in defaults} == defaults


def test_documented_constants() -> None:
    assert vf.State.INPUT_FIELDS == ["prompt", "answer", "info", "example_id"]
    assert set(typing.get_args(vf.ClientType)) == {
        "openai_completions",
        "openai_chat_completions",
        "openai_chat_completions_token",
        "openai_responses",
        "renderer",
        "anthropic_messages",
        "nemorl_chat_completions",
    }
    built_in = {"has_error", "prompt_too_long", "max_turns_reached", "timeout_reached", "max_total_completion_tokens_reached"}
    assert all(hasattr(vf.MultiTurnEnv, name) for name in built_in | {"has_final_env_response"})
    assert hasattr(vf.ToolEnv, "no_tools_called")


@pytest.mark.parametrize("name", [name for name in vf.types.__all__ if name[0].isupper()])
def test_documented_types_can_stand_in_annotations(name: str) -> None:
    """Published modules do not postpone their annotations, so that ``vf.SamplingArgs | None`` is computed."""
    documented = getattr(vf, name)
    assert documented | None == typing.Optional[documented]  # noqa: UP045, it is what the other spelling is compared with
    assert typing.get_type_hints(type("Annotated", (), {"__annotations__": {"x": documented}}))["x"] == documented
