"""`RLM`: the program ``rlm``, a recursive language model of its own repository, as a harness."""

from __future__ import annotations

import os
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from verifiers_compat.v1.checkouts import Repository
from verifiers_compat.v1.cli_harness import InstalledAgent
from verifiers_compat.v1.config import HarnessConfig, SandboxConfig
from verifiers_compat.v1.sandboxes import upload_package
from verifiers_compat.v1.state import State
from verifiers_compat.v1.task import Task
from vfgym.errors import ConfigurationError
from vfgym.messages import content_text
from vfgym.sandboxes import Sandbox

_CHECKOUT = "/tmp/rlm-checkout"
"""Where the program is copied to, in the sandbox."""
_ENVIRONMENT = "/tmp/rlm-environment"
"""The virtual environment that it is installed into."""
_INSTALL = (
    f"python3 -m venv {_ENVIRONMENT} && {_ENVIRONMENT}/bin/python -m pip install --quiet --disable-pip-version-check --no-input {_CHECKOUT}"
)
_APPENDED = "/rlm/append_to_system_prompt.txt"
_SKILLS = "/rlm/skills"
_DEPTH = "RLM_MAX_DEPTH"


class RLM(InstalledAgent):
    """The program ``rlm``, which looks at its task with code and calls of its own model, and may start others like it.

    It is installed by pip from a checkout: a folder of this machine, or a repository that is cloned here once. That needs a ``python3``
    with ``venv`` in the sandbox, and the network where the checkout depends on other packages or on ones that build it. What it
    measures, if it does, is the artifact ``rlm_metrics``. This follows what is documented of the program, and was never tried with it.
    """

    def __init__(
        self,
        *,
        workdir: str = "/workspace",
        instruction_path: str = "/rlm/instruction.txt",
        rlm_repo_url: str = "github.com/PrimeIntellect-ai/rlm-harness.git",
        rlm_ref: str = "main",
        rlm_max_turns: int = 100,
        rlm_exec_timeout: int = 300,
        rlm_max_depth: int = 0,
        summarize_at_tokens: int | tuple[int, int] | None = None,
        include_sub_rlm_trajectories: bool = False,
        append_to_system_prompt: str = "",
        local_checkout: str | os.PathLike[str] | None = None,
        gh_token: str | None = None,
        rlm_tools: Sequence[str] | None = None,
        rlm_env: Mapping[str, Any] | None = None,
        skills: str | os.PathLike[str] | None = None,
        sandbox: bool | Mapping[str, object] | SandboxConfig = True,
        program: Mapping[str, Any] | None = None,
        config: HarnessConfig | Mapping[str, object] | None = None,
        **kwargs: Any,
    ) -> None:
        """Make a harness.

        Args:
            workdir: Where the program works, unless the task says.
            instruction_path: Where its task is written to.
            rlm_repo_url: The repository, without ``https://``. It is cloned once for each ref, into the cache of this machine.
            rlm_ref: A branch, a tag or a commit of it.
            rlm_max_turns: Most answers of its model in one conversation.
            rlm_exec_timeout: Seconds that code of the model may run.
            rlm_max_depth: How deep programs may start others; 0 for none.
            summarize_at_tokens: At how many tokens it summarizes a conversation: a number, or the least and the most of one that is drawn
                for each rollout, which is in ``state["rlm_summarize_at_tokens"]``. None leaves that to the program.
            include_sub_rlm_trajectories: Whether the turns of programs that it started are in the trajectory, too. Where they are not,
                a turn counts as the root's whose first user message is that of the first turn: the task. With a depth of 0 all turns are.
            append_to_system_prompt: What stands at the end of its system prompt.
            local_checkout: A folder of this machine with the program, in place of the repository.
            gh_token: What a private repository is cloned with, over HTTPS. It does not enter the sandbox.
            rlm_tools: Names of the tools that the model has; None leaves that to the program.
            rlm_env: More environment variables, which win over those that follow from these arguments.
            skills: A folder of this machine that is copied to ``/rlm/skills``.
            sandbox: What its sandbox is like.
            program: More of the program (see `CLIHarness`).
            config: Configuration of the harness.
            **kwargs: Passed to `Harness`.

        Raises:
            ConfigurationError: If something does not fit, a folder is not there, or no such sandbox can be made here.
        """
        for name, folder in (("local_checkout", local_checkout), ("skills", skills)):
            if folder is not None and not Path(folder).is_dir():
                raise ConfigurationError(f"{name} must be a folder of this machine, got {os.fspath(folder)!r}, which is none")
        if isinstance(rlm_tools, str):
            raise ConfigurationError(f"rlm_tools must be a list of names, got {rlm_tools!r}")
        summarizing = _range_of(summarize_at_tokens)
        repository = Repository(rlm_repo_url, rlm_ref, gh_token)

        def draw_limit(state: State) -> str:
            return str(state.setdefault("rlm_summarize_at_tokens", random.randint(*summarizing)))

        async def copy_checkout(sandbox: Sandbox) -> None:
            folder = await repository.checkout() if local_checkout is None else local_checkout
            await upload_package(folder, _CHECKOUT, sandbox, "the checkout of rlm")

        env: dict[str, Any] = {
            "RLM_MODEL": _name_model,
            "RLM_MAX_TURNS": str(rlm_max_turns),
            "RLM_EXEC_TIMEOUT": str(rlm_exec_timeout),
            _DEPTH: str(rlm_max_depth),
            **({} if summarize_at_tokens is None else {"RLM_SUMMARIZE_AT_TOKENS": draw_limit}),
            **({} if rlm_tools is None else {"RLM_TOOLS": ",".join(rlm_tools)}),
            **(rlm_env or {}),
        }
        self._keeps_all = include_sub_rlm_trajectories or str(env[_DEPTH]) == "0"
        super().__init__(
            f'PATH="{_ENVIRONMENT}/bin:$PATH" rlm "$(cat {instruction_path})" < /dev/null',
            agent_workdir=workdir,
            instruction_path=instruction_path,
            files={_APPENDED: lambda: append_to_system_prompt},  # a text may look like the name of something else
            dirs=None if skills is None else {_SKILLS: os.fspath(skills)},
            setup=[copy_checkout, _INSTALL],
            env=env,
            artifacts={"rlm_metrics": {"path": ".rlm/sessions/*/meta.json", "format": "json", "key": "metrics", "optional": True}},
            sandbox=sandbox,
            program=program,
            config=config,
            **kwargs,
        )

    def keep_trajectory_step(self, step: Mapping[str, Any], state: State) -> bool:
        """Say whether a turn goes into the trajectory: see ``include_sub_rlm_trajectories``."""
        task = _first_user_text(step)
        return bool(self._keeps_all or state.setdefault("rlm_task", task) == task)


def _name_model(task: Task, state: State) -> str:
    return state.get_model()


def _first_user_text(step: Mapping[str, Any]) -> str:
    return next((content_text(message.get("content")) for message in step["prompt"] if message["role"] == "user"), "")


def _range_of(tokens: Any) -> tuple[int, int]:
    """Return the least and the most that is drawn.

    Raises:
        ConfigurationError: If it is neither a number nor a pair of them.
    """
    if tokens is None:
        return 0, 0
    pair = list(tokens) if isinstance(tokens, list | tuple) else [tokens, tokens]
    are_numbers = all(isinstance(number, int) and not isinstance(number, bool) and number > 0 for number in pair)
    if len(pair) != 2 or not are_numbers or pair[0] > pair[1]:
        raise ConfigurationError(f"summarize_at_tokens must be a number above 0, or the least and the most of one, got {tokens!r}")
    return pair[0], pair[1]
