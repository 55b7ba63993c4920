"""`RLMEnv` with the rollout API and the documented arguments."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NotRequired, TypedDict

from verifiers_compat.envs.awaitables import awaitable_stop
from verifiers_compat.envs.sandbox_arguments import DEFAULT_IMAGE, spec_of_request
from verifiers_compat.envs.stateful_tool_env import StatefulToolEnv
from verifiers_compat.loading import create_getattr
from verifiers_compat.utils.threaded_sandbox_client import CreateSandboxRequest
from vfgym.calls import Ready, maybe_await
from vfgym.context import given, in_force
from vfgym.envs import rlm
from vfgym.envs.recursion.metrics import RLMMonitorRubric
from vfgym.envs.recursion.sub_calls import Ask, SubAnswer
from vfgym.errors import ConfigurationError
from vfgym.messages import Message, Response, as_messages
from vfgym.overrides import hook
from vfgym.sandboxes import Sandbox, SandboxSpec
from vfgym.state import State
from vfgym.tools import Tool


class SubLLMTurn(TypedDict):
    """One answer in a sub-call."""

    prompt_messages: list[Any]
    response: Response
    tool_call_count: int


class SubLLMResult(TypedDict):
    """What came of a sub-call: of these, ``final_content`` must be there."""

    final_content: str
    turns: NotRequired[list[SubLLMTurn]]
    total_prompt_tokens: NotRequired[int]
    total_completion_tokens: NotRequired[int]
    tool_call_count: NotRequired[int]
    num_turns: NotRequired[int]
    max_turns_reached: NotRequired[bool]


class RLMEnv(StatefulToolEnv, rlm.RLMEnv):
    """`vfgym.RLMEnv` with the rollout API: a recursive language model, whose REPL runs in a sandbox of this machine.

    `get_sandbox_request` says what the sandbox is like, and `on_sandbox_ready` is called before the REPL opens.
    """

    answer_ready = awaitable_stop(rlm.RLMEnv.answer_ready)

    def __init__(
        self,
        max_turns: int = 50,
        tools: Sequence[Callable[..., Any]] | None = None,
        root_tools: Sequence[Callable[..., Any]] | None = None,
        sub_tools: Sequence[Callable[..., Any]] | None = None,
        sub_llm_max_turns: int = 5,
        sub_max_completion_tokens: int | None = None,
        root_max_completion_tokens: int | None = None,
        sub_model: str | None = None,
        sub_prompt_verbosity: str = "light",
        root_prompt_verbosity: str = "light",
        enable_sub_llms: bool = True,
        enable_summarization: bool = False,
        min_turns_in_context: int = 3,
        max_turns_in_context: int | None = None,
        max_output_length: int = 8192,
        max_sub_llm_parallelism: int = 5,
        system_prompt: str | None = None,
        repl_language: str = "bash",
        pip_install_packages: str = "",
        include_sub_llm_in_trajectory: bool = False,
        context_warning_threshold: float = 0.8,
        max_startup_wait_seconds: int = 120,
        code_execution_timeout: float = 120,
        abort_on_code_timeout: bool = False,
        retain_filesystem_after_rollout: bool = False,
        sandbox_docker_image: str = DEFAULT_IMAGE,
        sandbox_cpu_cores: int = 1,
        sandbox_memory_gb: float = 2,
        sandbox_disk_size_gb: float = 5,
        sandbox_gpu_count: int = 0,
        sandbox_timeout_minutes: int = 60,
        sandbox_environment_vars: Mapping[str, str] | None = None,
        sandbox_labels: Sequence[str] | None = None,
        sandbox_client_max_workers: int = 50,
        sandbox_client_max_connections: int = 100,
        sandbox_client_max_keepalive_connections: int = 50,
        sandbox_transfer_max_retries: int = 3,
        *,
        sandbox: SandboxSpec | None = None,
        backend: str | None = None,
        strict_image: bool = False,
        **kwargs: Any,
    ) -> None:
        """Define an environment.

        Args:
            max_turns: Most answers of the root model.
            tools: Tools of the root model, beside the REPL.
            root_tools: Functions that are called from inside the REPL.
            sub_tools: Tools of the models of sub-calls.
            sub_llm_max_turns: Most answers of a sub-call that may call tools.
            sub_max_completion_tokens: None: a budget of sub-calls is not offered, nor what the next one asks for.
            root_max_completion_tokens: None. ``max_total_completion_tokens`` limits a rollout.
            sub_model: Name of the model of sub-calls; that of the episode if None.
            sub_prompt_verbosity: Accepted, as the next one: there is one text.
            root_prompt_verbosity: Accepted.
            enable_sub_llms: Whether there is `llm_batch`.
            enable_summarization: False: turns are not summarized.
            min_turns_in_context: Accepted; it is about summaries.
            max_turns_in_context: None: turns stay in the context.
            max_output_length: Most characters that the model reads of what came of its code.
            max_sub_llm_parallelism: Most sub-calls at once, in one episode.
            system_prompt: What stands before the text of a task; how the REPL is used if None.
            repl_language: ``bash`` or ``python``.
            pip_install_packages: What ``pip install`` is given, once, outside the sandboxes (see `vfgym.PythonEnv`).
            include_sub_llm_in_trajectory: Whether turns of sub-calls are in ``trajectory``, too.
            context_warning_threshold: Accepted; it is about summaries.
            max_startup_wait_seconds: Accepted.
            code_execution_timeout: Seconds after which code is interrupted.
            abort_on_code_timeout: False: the model is told, and goes on.
            retain_filesystem_after_rollout: Whether what is in the working directory is copied to this machine when a rollout has ended:
                to the folder ``state["rlm_fs_root"]``, below that of temporary files, which nobody removes.
            sandbox_docker_image: The image of the sandbox. The default asks for nothing; another one is run by a container engine, or this
                machine stands for it (``python:*``, ``debian:*``, ``ubuntu:*``, ``node:*``).
            sandbox_cpu_cores: How many CPUs the sandbox may use at once. Only a container engine keeps it, and a warning says so elsewhere.
            sandbox_memory_gb: Memory of the sandbox.
            sandbox_disk_size_gb: Size of all its files.
            sandbox_gpu_count: 0.
            sandbox_timeout_minutes: Accepted, as all that follows but the variables: there is no service between.
            sandbox_environment_vars: Environment variables in the sandbox.
            sandbox_labels: Accepted.
            sandbox_client_max_workers: Accepted.
            sandbox_client_max_connections: Accepted.
            sandbox_client_max_keepalive_connections: Accepted.
            sandbox_transfer_max_retries: Accepted.
            sandbox: Other limits, and the working directory.
            backend: What makes the sandboxes (see `vfgym.sandboxes`); None for what works here.
            strict_image: Whether an image is refused where no container engine answers, also one that this machine can stand for.
            **kwargs: Passed to `vfgym.RLMEnv` and to `StatefulToolEnv`.

        Raises:
            ConfigurationError: If something asks for what is not offered, or no sandbox can be made here.
        """
        for name, value, default in (
            ("sub_max_completion_tokens", sub_max_completion_tokens, None),
            ("root_max_completion_tokens", root_max_completion_tokens, None),
            ("enable_summarization", enable_summarization, False),
            ("max_turns_in_context", max_turns_in_context, None),
            ("abort_on_code_timeout", abort_on_code_timeout, False),
        ):
            if value != default:
                raise ConfigurationError(f"{name} is not offered here: leave it out, or give {default!r}")
        self.retain_filesystem_after_rollout = retain_filesystem_after_rollout
        self._base_spec = SandboxSpec() if sandbox is None else sandbox
        self.sandbox_request = CreateSandboxRequest(
            name="rlm-env",
            docker_image=sandbox_docker_image,
            cpu_cores=sandbox_cpu_cores,
            memory_gb=sandbox_memory_gb,
            disk_size_gb=sandbox_disk_size_gb,
            gpu_count=sandbox_gpu_count,
            timeout_minutes=sandbox_timeout_minutes,
            labels=list(sandbox_labels or ()),
            environment_vars=None if sandbox_environment_vars is None else dict(sandbox_environment_vars),
        )
        super().__init__(
            max_turns=max_turns,
            tools=tools,
            root_tools=root_tools,
            sub_tools=sub_tools,
            sub_llm_max_turns=sub_llm_max_turns,
            sub_model=sub_model,
            enable_sub_llms=enable_sub_llms,
            max_output_length=max_output_length,
            max_sub_llm_parallelism=max_sub_llm_parallelism,
            instructions=system_prompt,
            repl_language=repl_language,
            pip_install_packages=pip_install_packages,
            code_execution_timeout=code_execution_timeout,
            include_sub_llm_in_trajectory=include_sub_llm_in_trajectory,
            sandbox=spec_of_request(self._base_spec, backend, self.sandbox_request, strict_image=strict_image),
            backend=backend,
            strict_image=strict_image,
            **kwargs,
        )

    @hook
    def get_sandbox_request(self, state: State) -> Any:
        """Return what the sandbox of a rollout is asked for: a copy of ``sandbox_request``, changed as you like. Plain or async."""
        return self.sandbox_request.model_copy()

    async def get_sandbox_spec(self, state: State) -> SandboxSpec:
        """Return what the sandbox of a rollout is like, as `get_sandbox_request` says, with the packages."""
        request = await maybe_await(self.get_sandbox_request, state)
        return await self.add_packages(spec_of_request(self._base_spec, self.backend, request, strict_image=self.strict_image))

    @hook
    def on_sandbox_ready(self, state: State, sandbox_id: str) -> Any:
        """Prepare the sandbox, ``state["sandbox"]``, before the REPL opens. Plain or async."""
        return Ready()

    async def lease_sandbox(self, state: State, forwards: Mapping[int, str | os.PathLike[str]] | None = None) -> Sandbox:
        """Make the sandbox of a rollout, and have it prepared."""
        sandbox = await super().lease_sandbox(state, forwards)
        state["rlm_fs_root_remote"] = sandbox.spec.working_dir
        await maybe_await(self.on_sandbox_ready, state, sandbox.id)
        return sandbox

    async def look_at_sandbox(self, state: State) -> None:
        """Keep the files, if they are to be kept, then call `post_rollout`."""
        if self.retain_filesystem_after_rollout and state["sandbox"].is_alive:
            state["rlm_rollout_dir"] = tempfile.mkdtemp(prefix="rlm_rollout_")
            state["rlm_fs_root"] = os.path.join(state["rlm_rollout_dir"], "rlm_fs")
            await state["sandbox"].download(".", state["rlm_fs_root"])
        await super().look_at_sandbox(state)

    # Sub-calls

    async def answer_sub_call(self, state: State, ask: Ask, conversation: list[Message]) -> SubAnswer:
        """Answer one prompt of `llm_batch`, as `_run_sub_llm` does."""
        asked: list[Response] = []

        async def ask_and_note(*args: Any, **kwargs: Any) -> Response:
            asked.append(await ask(*args, **kwargs))
            return asked[-1]

        with given(sub_call=ask_and_note):
            result = await self._run_sub_llm(state, state["client"], self.sub_model or state["model"], conversation)
        if not asked:  # else the tokens of its answers were counted
            counts = state["recursion_counts"]
            counts.sub_prompt_tokens += result.get("total_prompt_tokens", 0)
            counts.sub_completion_tokens += result.get("total_completion_tokens", 0)
        return SubAnswer(
            text=str(result["final_content"]),
            turns=result.get("num_turns", 1),
            tool_calls=result.get("tool_call_count", 0),
            reached_limit=result.get("max_turns_reached", False),
        )

    async def _run_sub_llm(self, state: State, client: Any, model: str, messages: list[Message]) -> SubLLMResult:
        """Answer one prompt of `llm_batch`: the model goes on with a conversation. Packages write it anew, and may call this."""
        turns = list[SubLLMTurn]()
        ask: Ask = in_force().sub_call

        async def ask_them(messages: list[Message], tools: list[Tool], *_: Any) -> Response:
            response = await ask(messages, tools, client, model)
            turns.append(SubLLMTurn(prompt_messages=messages, response=response, tool_call_count=len(response.message.tool_calls or ())))
            return response

        said = await self._sub_calls.answer(ask_them, as_messages(messages, self.message_types, name="messages"))
        usages = [turn["response"].usage for turn in turns if turn["response"].usage is not None]
        return SubLLMResult(
            final_content=said.text,
            turns=turns,
            total_prompt_tokens=sum(usage.prompt_tokens for usage in usages),
            total_completion_tokens=sum(usage.completion_tokens for usage in usages),
            tool_call_count=said.tool_calls,
            num_turns=said.turns,
            max_turns_reached=said.reached_limit,
        )


__all__ = ["RLMEnv", "RLMMonitorRubric", "SubLLMResult", "SubLLMTurn"]

__getattr__ = create_getattr(__name__)
