"""`RLMEnv` with the rollout API and the documented arguments."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from verifiers_compat.envs.awaitables import awaitable_stop
from verifiers_compat.envs.sandbox_arguments import DEFAULT_IMAGE, spec_of_request
from verifiers_compat.envs.stateful_tool_env import StatefulToolEnv
from verifiers_compat.loading import create_getattr
from verifiers_compat.utils.threaded_sandbox_client import CreateSandboxRequest
from vfgym.calls import Ready, maybe_await
from vfgym.envs import rlm
from vfgym.envs.recursion.metrics import RLMMonitorRubric
from vfgym.errors import ConfigurationError
from vfgym.overrides import hook
from vfgym.sandboxes import Sandbox, SandboxSpec
from vfgym.state import State

_NOT_OFFERED: Mapping[str, Any] = {
    "sub_max_completion_tokens": None,
    "root_max_completion_tokens": None,
    "enable_summarization": False,
    "max_turns_in_context": None,
    "abort_on_code_timeout": False,
    "retain_filesystem_after_rollout": False,
}
"""Documented arguments whose default is all that is offered."""
_WITHOUT_EFFECT = frozenset(
    {
        *("sub_prompt_verbosity", "root_prompt_verbosity", "min_turns_in_context", "context_warning_threshold"),
        *("max_startup_wait_seconds", "sandbox_timeout_minutes", "sandbox_labels", "sandbox_transfer_max_retries"),
        *("sandbox_client_max_workers", "sandbox_client_max_connections", "sandbox_client_max_keepalive_connections"),
    }
)
"""Documented arguments that change nothing: of the texts of prompts, of summaries, and of the hosted service."""


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
        *,
        system_prompt: str | None = None,
        sandbox_docker_image: str = DEFAULT_IMAGE,
        sandbox_cpu_cores: int = 1,
        sandbox_memory_gb: float = 2,
        sandbox_disk_size_gb: float = 5,
        sandbox_gpu_count: int = 0,
        sandbox_environment_vars: Mapping[str, str] | None = None,
        sandbox: SandboxSpec | None = None,
        backend: str | None = None,
        **kwargs: Any,
    ) -> None:
        """Define an environment.

        Args:
            max_turns: Most answers of the root model.
            tools: Tools of the root model, beside the REPL.
            root_tools: Functions that are called from inside the REPL.
            sub_tools: Tools of the models of sub-calls.
            sub_llm_max_turns: Most answers of a sub-call that may call tools.
            system_prompt: What stands before the text of a task; how the REPL is used if None.
            sandbox_docker_image: The image of the sandbox. Any other value than the default of this and of the next one needs the backend
                ``container``.
            sandbox_cpu_cores: How many CPUs the sandbox may use at once, where it is not the default.
            sandbox_memory_gb: Memory of the sandbox.
            sandbox_disk_size_gb: Size of all its files.
            sandbox_gpu_count: 0.
            sandbox_environment_vars: Environment variables in the sandbox.
            sandbox: Other limits, and the working directory.
            backend: What makes the sandboxes (see `vfgym.sandboxes`); None for what works here.
            **kwargs: Passed to `vfgym.RLMEnv` (``sub_model``, ``enable_sub_llms``, ``repl_language``, ``max_output_length``, ...) and to
                `StatefulToolEnv`. Documented arguments about the texts of prompts and about the hosted service change nothing.

        Raises:
            ConfigurationError: If something asks for what is not offered, or no sandbox can be made here.
        """
        for name, default in _NOT_OFFERED.items():
            if kwargs.pop(name, default) != default:
                raise ConfigurationError(f"{name} is not offered here: leave it out, or give {default!r}")
        self._base_spec = SandboxSpec() if sandbox is None else sandbox
        self.sandbox_request = CreateSandboxRequest(
            name="rlm-env",
            docker_image=sandbox_docker_image,
            cpu_cores=sandbox_cpu_cores,
            memory_gb=sandbox_memory_gb,
            disk_size_gb=sandbox_disk_size_gb,
            gpu_count=sandbox_gpu_count,
            environment_vars=None if sandbox_environment_vars is None else dict(sandbox_environment_vars),
        )
        super().__init__(
            max_turns=max_turns,
            tools=tools,
            root_tools=root_tools,
            sub_tools=sub_tools,
            sub_llm_max_turns=sub_llm_max_turns,
            instructions=system_prompt,
            sandbox=spec_of_request(self._base_spec, backend, self.sandbox_request),
            backend=backend,
            **{name: value for name, value in kwargs.items() if name not in _WITHOUT_EFFECT},
        )

    @hook
    def get_sandbox_request(self, state: State) -> Any:
        """Return what the sandbox of a rollout is asked for: a copy of ``sandbox_request``, changed as you like. Plain or async."""
        return self.sandbox_request.model_copy()

    async def get_sandbox_spec(self, state: State) -> SandboxSpec:
        """Return what the sandbox of a rollout is like, as `get_sandbox_request` says, with the packages."""
        request = await maybe_await(self.get_sandbox_request, state)
        return await self.add_packages(spec_of_request(self._base_spec, self.backend, request))

    @hook
    def on_sandbox_ready(self, state: State, sandbox_id: str) -> Any:
        """Prepare the sandbox, ``state["sandbox"]``, before the REPL opens. Plain or async."""
        return Ready()

    async def lease_sandbox(self, state: State, forwards: Mapping[int, str | os.PathLike[str]] | None = None) -> Sandbox:
        """Make the sandbox of a rollout, and have it prepared."""
        sandbox = await super().lease_sandbox(state, forwards)
        await maybe_await(self.on_sandbox_ready, state, sandbox.id)
        return sandbox


__all__ = ["RLMEnv", "RLMMonitorRubric"]

__getattr__ = create_getattr(__name__)
