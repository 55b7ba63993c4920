"""`CliAgentEnv`: an agent's own program plays the episode, and each question that it asks its model is a turn."""

from __future__ import annotations

import dataclasses
import logging
import os
from collections.abc import Mapping, Sequence
from typing import Any

from vfgym.calls import Ready, maybe_await
from vfgym.clients import ASKED_BY_PROGRAM, merge_sampling_args
from vfgym.envs.agent_program import TASK_FOLDER, AgentProgram, free_port, read_left_file
from vfgym.envs.sandboxed import SandboxedEnv
from vfgym.errors import AgentError, ConfigurationError
from vfgym.interception import PROGRAM_VARIABLES
from vfgym.lifecycle import cleanup, stop
from vfgym.messages import Message, as_messages, content_text
from vfgym.overrides import hook
from vfgym.rubrics import Rubric
from vfgym.sandboxes import ExecResult, SandboxSpec
from vfgym.state import State
from vfgym.tools import as_tool

logger = logging.getLogger(__name__)

_MOST_QUOTED = 2000
"""Characters of a program's last words that an error has."""


class CliAgentMonitorRubric(Rubric):
    """Measures how programs ended: ``agent_error`` and ``agent_timeout``."""

    def __init__(self) -> None:
        """Make the rubric."""
        super().__init__()
        self.add_metric(self.agent_error)
        self.add_metric(self.agent_timeout)

    def agent_error(self, state: State) -> float:
        """Say whether the program failed."""
        return float(isinstance(state.get("error"), AgentError))

    def agent_timeout(self, state: State) -> float:
        """Say whether the program was ended because its time was up."""
        return float("timed_out" in state)


class CliAgentEnv(SandboxedEnv):
    """An environment that a program plays: any command that speaks OpenAI's or Anthropic's protocol to an address of its environment.

    The program runs in a sandbox, and ``OPENAI_BASE_URL``, ``ANTHROPIC_BASE_URL`` and the keys beside them lead to the model of its
    episode. Each of its requests is an observation, with the request's tools as ``info["tools"]``; the action is what it is answered.
    Requests at once wait in order. While one is answered, ``tool_defs`` and ``sampling_args`` of the state are the request's, under the
    generation parameters of the rollout. The text of the task is in the file that ``AGENT_INSTRUCTION_PATH`` names.

    Once the program has ended, the state has its ``agent_exit_code`` (None where it was killed), ``agent_stdout``, ``agent_stderr`` and
    ``agent_files``. ``prompt`` is what it asked first (``raw_prompt`` is the task's), ``completion`` how that conversation went on; the
    turns of all conversations are in ``trajectory``. While it plays, ``sandbox`` is there. An exit code other than 0 is an `AgentError`.
    A program that ends with 0 before it asks its model is scored as it ended, and a warning says so.
    """

    _is_to_ask = True
    """Whether a program that ends without a question is worth a warning."""

    def __init__(
        self,
        run_command: str,
        *,
        uploads: Mapping[str, str | os.PathLike[str]] | None = None,
        keep_files: Sequence[str] = (),
        readable_paths: Sequence[str] = (),
        environment_vars: Mapping[str, str] | None = None,
        sandbox: SandboxSpec | None = None,
        **kwargs: Any,
    ) -> None:
        """Define an environment.

        Args:
            run_command: The line that a shell of the sandbox runs, in its working directory.
            uploads: Files and folders of this machine that are copied into the sandbox, by their places there.
            keep_files: Files of the sandbox whose text is in ``state["agent_files"]`` once the program has ended, those that are there.
            readable_paths: Files and folders of this machine that the program may read, at the same places.
            environment_vars: Environment variables of the program.
            sandbox: Limits and working directory of the sandbox; the default works in ``/app``, without network.
            **kwargs: Passed to `SandboxedEnv` (``backend``, ``keep_sandbox_for_scoring``) and to `MultiTurnEnv` (``dataset``,
                ``rubric``, ``max_turns``, ``timeout_seconds``, ...).

        Raises:
            ConfigurationError: If the command is not a line of text, there is no file to upload, a variable is one that leads to the model,
                or no sandbox can be made here: the text says what to install.
        """
        if not isinstance(run_command, str) or not run_command.strip():
            raise ConfigurationError(f"run_command must be a line for a shell, got {run_command!r}")
        if taken := PROGRAM_VARIABLES & (environment_vars or {}).keys():
            raise ConfigurationError(f"environment_vars may not have {min(taken)}: it leads the program to the model of its episode")
        for local in (uploads or {}).values():
            if not os.path.exists(local):
                raise ConfigurationError(f"uploads: there is no {os.fspath(local)}")
        if isinstance(keep_files, str):
            raise ConfigurationError(f"keep_files must be a list of paths, got {keep_files!r}")
        base = SandboxSpec(working_dir="/app") if sandbox is None else sandbox
        spec = dataclasses.replace(base, readable_paths=(*base.readable_paths, *readable_paths))
        super().__init__(sandbox=spec, **kwargs)
        self.run_command = run_command
        self.uploads = {inside: os.path.abspath(local) for inside, local in (uploads or {}).items()}
        self.keep_files = tuple(keep_files)
        self.environment_vars = dict(environment_vars or {})
        self.add_rubric(CliAgentMonitorRubric())

    # Hooks

    @hook
    def post_sandbox_setup(self, state: State) -> Any:
        """Prepare ``state["sandbox"]`` before the program starts: upload files, install what it needs. Plain or async."""
        return Ready()

    @hook
    def build_env_vars(self, state: State) -> Any:
        """Return the environment variables of the program, beside those that lead it to its model and its task. Plain or async."""
        return Ready(self.environment_vars.copy())

    # The episode

    @hook
    async def setup_state(self, state: State) -> State:
        """Make the sandbox, and start the program in it."""
        program = state["agent_program"] = AgentProgram(state["sampling_args"] or {})
        state["agent_files"], state[ASKED_BY_PROGRAM] = {}, True
        endpoint = await program.open()
        port = free_port()
        program.variables = endpoint.variables(state["model"] or "model", port)
        state["interception_base_url"] = program.variables["OPENAI_BASE_URL"]
        sandbox = await self.lease_sandbox(state, forwards={port: endpoint.socket_path})
        await sandbox.write_file(f"{TASK_FOLDER}/instruction.md", self.instruction(state))
        for inside, local in self.uploads.items():
            await sandbox.upload(local, inside)
        await maybe_await(self.post_sandbox_setup, state)
        await maybe_await(self.start_agent, state)
        return state

    async def start_agent(self, state: State) -> None:
        """Start the program. Override it to do something right before."""
        program: AgentProgram = state["agent_program"]
        env_vars = await maybe_await(self.build_env_vars, state)
        await program.start(state["sandbox"], self.run_command, {**env_vars, **program.variables})

    def instruction(self, state: State) -> str:
        """Return what the program is told to do: the text of the task's user messages."""
        messages = as_messages(state["prompt"], self.message_types, name="prompt")
        return "\n\n".join(content_text(message.get("content")) for message in messages if message["role"] in ("user", "text"))

    async def get_prompt_messages(self, state: State) -> list[Message]:
        """Answer the program's last question with the last turn, and wait for its next one, or for its end."""
        program: AgentProgram = state["agent_program"]
        trajectory = state["trajectory"]
        asked = await program.next_request(trajectory[-1]["response"] if trajectory else None)
        if isinstance(asked, ExecResult):
            self._note_end(state, asked)
            state["final_env_response"] = []
            last = trajectory[-1] if trajectory else {"prompt": state["prompt"], "completion": []}
            return [*last["prompt"], *last["completion"]]
        messages = as_messages(asked.messages, self.message_types, name="prompt")
        if not trajectory:
            state["raw_prompt"], state["prompt"] = state["prompt"], messages
        state["tool_defs"] = [as_tool(tool, self.tool_type) for tool in asked.tools]
        state["sampling_args"] = merge_sampling_args(asked.sampling_args, program.sampling_args)
        return messages

    def _note_end(self, state: State, result: ExecResult) -> None:
        """Record how the program ended.

        Raises:
            AgentError: If it failed.
        """
        state["agent_completed"] = True
        state["agent_exit_code"], state["agent_stdout"], state["agent_stderr"] = result.exit_code, result.stdout, result.stderr
        asked_nothing = not state["trajectory"] and self._is_to_ask
        if result.exit_code == 0 and not asked_nothing:
            return
        said = (result.stderr.strip() or result.stdout.strip())[-_MOST_QUOTED:] or "it printed nothing"
        ended = f"the program {self.run_command!r} ended with exit code {result.exit_code}"
        if asked_nothing:
            ended += " before it asked its model anything, which it finds at OPENAI_BASE_URL and ANTHROPIC_BASE_URL"
        if result.exit_code != 0:
            raise AgentError(f"{ended}: {said}")
        logger.warning("%s; the episode is scored as it is: %s", ended, said)

    @hook
    def env_response(self, messages: list[Message], state: State) -> Any:
        """Return nothing: what comes next is the program's next question."""
        return Ready([])

    @hook
    def render_completion(self, state: State) -> Any:
        """Set ``state["completion"]``: how the conversation went on that the program began with."""
        opening = list(state["prompt"])
        turns = [step for step in state["trajectory"] if list(step["prompt"][: len(opening)]) == opening]
        state["completion"] = [*turns[-1]["prompt"][len(opening) :], *turns[-1]["completion"]] if turns else []
        return Ready()

    # The end

    @stop
    def agent_completed(self, state: State) -> bool:
        """Stop when the program has ended."""
        return bool(state.get("agent_completed"))

    @cleanup(priority=50)
    async def stop_agent(self, state: State) -> None:
        """Kill what still runs of the program, and close its address."""
        program = state.pop("agent_program", None)
        killed = None if program is None else await program.stop()
        if killed is not None:
            state["agent_exit_code"], state["agent_stdout"], state["agent_stderr"] = None, killed.stdout, killed.stderr

    async def look_at_sandbox(self, state: State) -> None:
        """Keep the files that are to be kept, then call `post_rollout`."""
        await self._keep_files(state)
        await super().look_at_sandbox(state)

    async def _keep_files(self, state: State) -> None:
        """Keep what is in some files, as much of each as is kept of what a command prints."""
        files = state["agent_files"]
        for path in self.keep_files:
            text = await read_left_file(state["sandbox"], path)
            if text is not None:
                files[path] = text
