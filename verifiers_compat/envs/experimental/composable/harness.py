"""`Harness`: an agent's program as data: how it is installed and run, and where it finds what it needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from verifiers_compat.envs.experimental.composable.task import SandboxSpec
from verifiers_compat.loading import create_getattr


@dataclass
class Harness:
    """What a `ComposableEnv` runs in the sandbox of a task. Paths are those of the sandbox."""

    install_script: str | None = None
    """A line for the shell that installs the program, once the task is set up."""
    install_timeout: int = 300
    """Seconds for it, and for the one after it."""
    run_command: str = ""
    """The line that runs the program."""
    system_prompt: str | None = None
    """The text of a file for the program."""
    system_prompt_path: str = "/task/system_prompt.txt"
    instruction_path: str = "/task/instruction.md"
    """Where the text of the task is."""
    log_path: str | None = None
    """A file whose text is ``state["agent_logs"]`` once the program has ended."""
    sandbox_spec: SandboxSpec | None = None
    """What sandboxes are asked for whose tasks ask for nothing."""
    skills_path: str | None = None
    """Where the skills of the task set are copied to."""
    upload_dir_mapping: dict[str, str] | None = None
    """Where other folders of the task set, and of `get_upload_dirs`, are copied to, by their names."""
    get_upload_dirs: Callable[[], Mapping[str, Any] | None] | None = None
    """Returns folders of the harness, by name."""
    metrics_path: str | None = None
    """A file of JSON with numbers, which become metrics; ``{workdir}`` in it is the working directory, ``*`` stands for any name."""
    metrics_prefix: str = ""
    """What their names begin with."""
    metrics_key: str | None = None
    """The key of the object with the numbers, where they are in one."""
    metrics_keys: list[str] | None = None
    """Which numbers; None for all."""
    tool_names: list[str] | None = None
    """Tools whose calls are counted: the metrics ``total_tool_calls`` and ``<tool>_calls``."""
    environment_vars: Callable[[Any], Mapping[str, str]] | None = None
    """Returns environment variables of a rollout, of its state."""
    post_install_uploads: dict[str, str] | None = None
    """Texts of files that are written once the program is installed, by their paths."""
    post_install_script: str | None = None
    """A line for the shell that runs after that."""
    keep_trajectory_step: Callable[[Any, Any, Mapping[str, str]], bool] | None = None
    """Says whether a turn stays in the trajectory, of the turn, the state and the headers of its request: those of sub-agents may not."""

    def get_effective_upload_dir_mapping(self) -> dict[str, str] | None:
        """Return where folders are copied to, by their names, with the skills."""
        skills = {} if self.skills_path is None else {"skills": self.skills_path}
        return {**(self.upload_dir_mapping or {}), **skills} or None


__all__ = ["Harness"]

__getattr__ = create_getattr(__name__)
