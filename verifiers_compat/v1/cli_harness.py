"""`CLIHarness`: a command-line agent as a harness; `MiniSWEAgent`, `OpenCode` and `Pi` are such commands, configured."""

from __future__ import annotations

import functools
import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from verifiers_compat.v1.config import HarnessConfig, SandboxConfig
from verifiers_compat.v1.config_base import deep_merge, fields_of, merge_values
from verifiers_compat.v1.harness import Harness
from verifiers_compat.v1.state import State
from verifiers_compat.v1.task import Task
from verifiers_compat.v1.tool_server import MCP_COMMAND
from vfgym.errors import ConfigurationError
from vfgym.messages import as_messages, content_text

_SANDBOX = {"workdir": "/app", "command_timeout": 900, "timeout_minutes": 120}
"""What the sandboxes of the configured agents are like, unless something else is said."""


class CLIHarness(Harness):
    """A harness whose program is a command, in a sandbox unless it says otherwise.

    >>> CLIHarness("my-agent --task /task.txt", sandbox=False).program.command
    ('my-agent', '--task', '/task.txt')
    """

    def __init__(
        self,
        command: str | Sequence[Any],
        *,
        sandbox: bool | Mapping[str, object] | SandboxConfig = True,
        files: Mapping[str, Any] | None = None,
        dirs: Mapping[str, Any] | None = None,
        setup: Any = None,
        env: Mapping[str, Any] | None = None,
        artifacts: Mapping[str, Any] | None = None,
        tools: Any = None,
        program: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Make a harness.

        Args:
            command: The command, as a list of parts or as text.
            sandbox: What its sandbox is like; True for the defaults, False to run it on this machine.
            files: Files that are written into the sandbox (see `verifiers_compat.v1.programs`).
            dirs: Folders of this machine that are copied in.
            setup: What is run before the command.
            env: Environment variables.
            artifacts: Files that are kept.
            tools: ``"mcp"``, or ``{"mcp": what tells the command of the server}``.
            program: More of these, which win over them.
            **kwargs: Passed to `Harness` (``system_prompt``, ``client``, ``rewards``, ``config``, ...).

        Raises:
            ConfigurationError: If something does not fit, or no such sandbox can be made here.
        """
        options = {"files": files, "dirs": dirs, "setup": setup, "env": env, "artifacts": artifacts, "tools": tools}
        given = {"command": command, **{key: value for key, value in options.items() if value is not None}}
        whole = deep_merge({**given, "sandbox": sandbox is not False}, program or {})
        super().__init__(program=whole, sandbox=None if isinstance(sandbox, bool) else sandbox, **kwargs)


def write_instruction(task: Task, state: State) -> str:
    """Return what a program is told to do: the task's ``instruction``, or the text of its user messages."""
    if task.get("instruction") is not None:
        return str(task["instruction"])
    messages = as_messages(task.get("prompt") or [], name="prompt")
    return "\n\n".join(content_text(message.get("content")) for message in messages if message["role"] == "user")


def write_system_prompt(task: Task, state: State) -> str:
    """Return the system prompt of the rollout, as text."""
    return "\n\n".join(content_text(message.get("content")) for message in state.live("write its system prompt").system_prompt)


class InstalledAgent(CLIHarness):
    """An agent that is installed into its sandbox, or found there, and run by a line for bash."""

    def __init__(
        self,
        line: str,
        *,
        agent_workdir: str,
        instruction_path: str,
        packages: Sequence[str] = (),
        files: Mapping[str, Any] | None = None,
        sandbox: bool | Mapping[str, object] | SandboxConfig = True,
        config: HarnessConfig | Mapping[str, object] | None = None,
        **kwargs: Any,
    ) -> None:
        """Make a harness.

        Args:
            line: What bash runs.
            agent_workdir: Where the agent works, unless the task says.
            instruction_path: Where its task is written to.
            packages: What is installed from PyPI.
            files: Other files of the agent.
            sandbox: What its sandbox is like; it wins over `config`, and that over what agents have by default.
            config: Configuration of the harness.
            **kwargs: Passed to `CLIHarness`.

        Raises:
            ConfigurationError: If something does not fit, or there is to be no sandbox.
        """
        if sandbox is not True and not isinstance(sandbox, Mapping | SandboxConfig):
            raise ConfigurationError(
                f"{type(self).__name__} is installed into a sandbox, so sandbox must be True or its fields, got {sandbox!r:.100}."
                " sandbox=False is for CLIHarness, with a command of this machine"
            )
        usual = {**_SANDBOX, "workdir": agent_workdir, **({"packages": list(packages)} if packages else {})}
        configured = fields_of(config, HarnessConfig).get("sandbox")
        layers = [fields_of(layer, SandboxConfig) for layer in (configured, None if sandbox is True else sandbox)]
        super().__init__(
            ["bash", "-c", line],
            sandbox=functools.reduce(merge_values, layers, usual),
            files={instruction_path: write_instruction, **(files or {})},
            config=config,
            **kwargs,
        )


class MiniSWEAgent(InstalledAgent):
    """mini-swe-agent, from PyPI: it is installed once, and solves tasks by commands in its sandbox."""

    def __init__(
        self,
        *,
        agent_workdir: str = "/app",
        instruction_path: str = "/mini-swe-agent/prompt.txt",
        log_path: str = "/logs/agent/mini-swe-agent.log",
        trajectory_path: str = "/logs/agent/mini-swe-agent.traj.json",
        package_version: str = "2.2.8",
        config_spec: str = "mini_textbased",
        model_class: str = "litellm_textbased",
        environment_timeout: int = 120,
        extra_config_specs: Sequence[str] = (),
        sandbox: bool | Mapping[str, object] | SandboxConfig = True,
        program: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Make a harness.

        Args:
            agent_workdir: Where the agent works, unless the task says.
            instruction_path: Where its task is written to.
            log_path: Where what it prints is kept: the artifact ``mini_swe_agent_log``.
            trajectory_path: Where its own record is kept: the artifact ``mini_swe_agent_trajectory``.
            package_version: The version that is installed.
            config_spec: Its configuration, by name: ``mini_textbased`` reads commands from the text, ``mini`` from tool calls.
            model_class: What asks its model: ``litellm_textbased``, or ``litellm`` for tool calls.
            environment_timeout: Seconds that one of its commands may take.
            extra_config_specs: More of its configuration, such as ``agent.step_limit=10``.
            sandbox: What its sandbox is like.
            program: More of the program (see `CLIHarness`).
            **kwargs: Passed to `Harness`.
        """
        specs = [f"{config_spec}.yaml", f"environment.timeout={environment_timeout}", *extra_config_specs]
        options = shlex.join(part for spec in specs for part in ("-c", spec))
        line = (
            f'mkdir -p "$(dirname {log_path})" "$(dirname {trajectory_path})"; set -o pipefail; mini -m "openai/$OPENAI_MODEL"'
            f' --model-class {model_class} {options} -t "$(cat {instruction_path})" -y --exit-immediately -o {trajectory_path}'
            f" 2>&1 < /dev/null | tee {log_path}"
        )
        quiet = {"MSWEA_CONFIGURED": "true", "MSWEA_COST_TRACKING": "ignore_errors", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
        super().__init__(
            line,
            agent_workdir=agent_workdir,
            instruction_path=instruction_path,
            packages=[f"mini-swe-agent=={package_version}", "mcp"],  # its litellm imports mcp without asking for it
            sandbox=sandbox,
            program=program,
            env={**quiet, "COLUMNS": "200"},
            artifacts={
                "mini_swe_agent_log": {"path": log_path, "optional": True},
                "mini_swe_agent_trajectory": {"path": trajectory_path, "format": "json", "optional": True},
            },
            **kwargs,
        )


_OPENCODE_PROMPT = "You are OpenCode, an agent on a command line. Solve the user's task with your tools, and be brief."


class OpenCode(InstalledAgent):
    """OpenCode, which is installed into each sandbox from its release; that needs network, ``curl`` and ``tar`` there."""

    def __init__(
        self,
        *,
        agent_workdir: str = "/app",
        instruction_path: str = "/opencode/instruction.txt",
        system_prompt_path: str = "/opencode/system.txt",
        log_path: str = "/logs/agent/opencode.txt",
        system_prompt: Any = _OPENCODE_PROMPT,
        disabled_tools: Sequence[str] = (),
        release_repo: str = "PrimeIntellect-ai/opencode",
        release_version: str = "1.1.63-rl2",
        release_sha256: str | None = "47f4102796da50769e27d2c9ea6a9cf7941f76898390cb497278cab39c4b6ed4",
        provider_timeout_ms: int = 3600000,
        sandbox: bool | Mapping[str, object] | SandboxConfig = True,
        program: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Make a harness.

        Args:
            agent_workdir: Where the agent works, unless the task says.
            instruction_path: Where its task is written to.
            system_prompt_path: Where its system prompt is written to.
            log_path: Where what it prints is kept: the artifact ``opencode_log``.
            system_prompt: Text, or system messages.
            disabled_tools: Tools of its own that it may not use.
            release_repo: The repository of its releases.
            release_version: The release.
            release_sha256: What its archive must hash to; None where that is not checked.
            provider_timeout_ms: Milliseconds that it waits for an answer.
            sandbox: What its sandbox is like.
            program: More of the program (see `CLIHarness`).
            **kwargs: Passed to `Harness`.
        """

        def write_config(task: Task, state: State) -> str:
            endpoint = state.live("configure its agent").program_variables()
            provider = {"baseURL": endpoint["OPENAI_BASE_URL"], "apiKey": endpoint["OPENAI_API_KEY"], "timeout": provider_timeout_ms}
            model = {"npm": "@ai-sdk/openai-compatible", "options": provider, "models": {"model": {"name": "model"}}}
            build = {"prompt": f"{{file:{system_prompt_path}}}", "tools": dict.fromkeys(disabled_tools, False)}
            config = {"provider": {"rollout": model}, "model": "rollout/model", "agent": {"build": build}}
            tools = {"rollout-tools": {"type": "local", "command": list(MCP_COMMAND), "enabled": True}}
            return json.dumps({**config, "mcp": tools, "compaction": {"auto": False, "prune": False}})

        asset = f"https://github.com/{release_repo}/releases/download/v{release_version}/opencode-linux-$ARCH.tar.gz"
        check = "" if release_sha256 is None else f'; echo "{release_sha256}  /tmp/opencode.tar.gz" | sha256sum --check --quiet'
        install = (
            'set -e; case "$(uname -m)" in x86_64) ARCH=x64 ;; *) ARCH=arm64 ;; esac; mkdir -p "$HOME/.opencode/bin"'
            f'; curl -fsSL "{asset}" -o /tmp/opencode.tar.gz{check}; tar -xzf /tmp/opencode.tar.gz -C "$HOME/.opencode/bin"'
        )
        line = (
            f'mkdir -p "$(dirname {log_path})"; set -o pipefail; PATH="$HOME/.opencode/bin:$PATH" OPENCODE_CONFIG=/opencode/config.json'
            f" opencode run < {instruction_path} 2>&1 | tee {log_path}"
        )
        super().__init__(
            line,
            agent_workdir=agent_workdir,
            instruction_path=instruction_path,
            files={system_prompt_path: write_system_prompt, "/opencode/config.json": write_config},
            sandbox=sandbox,
            program=program,
            setup=install,
            artifacts={"opencode_log": {"path": log_path, "optional": True}},
            tools="mcp",
            system_prompt=system_prompt,
            **kwargs,
        )


_PI_PROMPT = "You are Pi, a coding agent. Do what the user asks, try what you made, and say in a sentence what you did."


class Pi(InstalledAgent):
    """Pi, a coding agent of npm, which is installed into each sandbox; that needs network and ``npm`` there."""

    def __init__(
        self,
        *,
        agent_workdir: str = "/app",
        instruction_path: str = "/pi/instruction.txt",
        system_prompt_path: str = "/pi/system.txt",
        log_path: str = "/logs/agent/pi.txt",
        system_prompt: Any = _PI_PROMPT,
        package: str = "@mariozechner/pi-coding-agent",
        sandbox: bool | Mapping[str, object] | SandboxConfig = True,
        program: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Make a harness.

        Args:
            agent_workdir: Where the agent works, unless the task says.
            instruction_path: Where its task is written to.
            system_prompt_path: Where its system prompt is written to.
            log_path: Where what it prints is kept: the artifact ``pi_log``.
            system_prompt: Text, or system messages.
            package: The package that is installed.
            sandbox: What its sandbox is like.
            program: More of the program (see `CLIHarness`).
            **kwargs: Passed to `Harness`.
        """

        def write_models(task: Task, state: State) -> str:
            endpoint = state.live("configure its agent").program_variables()
            provider = {"baseUrl": endpoint["OPENAI_BASE_URL"], "apiKey": endpoint["OPENAI_API_KEY"], "api": "openai-completions"}
            return json.dumps({"providers": {"rollout": {**provider, "models": [{"id": "model"}]}}})

        line = (
            f'mkdir -p "$(dirname {log_path})" ~/.pi/agent && cp /pi/models.json ~/.pi/agent/; set -o pipefail; PATH="$HOME/.npm/bin:$PATH"'
            f' pi --no-session --no-context-files --provider rollout --model model --system-prompt "$(cat {system_prompt_path})"'
            f" -p @{instruction_path} 2>&1 < /dev/null | tee {log_path}"
        )
        super().__init__(
            line,
            agent_workdir=agent_workdir,
            instruction_path=instruction_path,
            files={system_prompt_path: write_system_prompt, "/pi/models.json": write_models},
            sandbox=sandbox,
            program=program,
            setup=f'npm install --global --prefix "$HOME/.npm" {package}',
            artifacts={"pi_log": {"path": log_path, "optional": True}},
            system_prompt=system_prompt,
            **kwargs,
        )
