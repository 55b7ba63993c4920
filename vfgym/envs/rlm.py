"""`RLMEnv`: recursive language models, which look at long contexts with code, and ask models from inside it."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import time
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from vfgym.calls import maybe_await
from vfgym.envs.agent_program import free_port
from vfgym.envs.python_packages import PackagesEnv
from vfgym.envs.recursion.calls import CallsFromInside
from vfgym.envs.recursion.metrics import BATCH, RLMMonitorRubric
from vfgym.envs.recursion.prompts import describe_context, describe_repl, insert_instructions
from vfgym.envs.recursion.repl import Repl
from vfgym.envs.recursion.sub_calls import Ask, SubAnswer, SubModel
from vfgym.envs.stateful_tool import StatefulToolEnv
from vfgym.errors import ConfigurationError, EpisodeNotPicklable, SandboxError, ToolCallError
from vfgym.interception import Endpoint, open_endpoint
from vfgym.lifecycle import cleanup, stop
from vfgym.messages import Message, Response, as_messages
from vfgym.overrides import hook, items_of
from vfgym.state import State
from vfgym.tasks import Row
from vfgym.tools import Tool, ToolFunction

LANGUAGES = ("bash", "python")


@dataclasses.dataclass
class _Session:
    """What an episode has while it plays."""

    repl: Repl
    calls: CallsFromInside
    endpoint: Endpoint
    """Where the code reaches the calls."""

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise EpisodeNotPicklable("a running REPL cannot be pickled or copied: reset() or close() the environment first")


class RLMEnv(PackagesEnv, StatefulToolEnv):
    """An environment of a recursive language model: a root model with a REPL, from inside which it asks models.

    The REPL runs in a sandbox, behind the tool ``call_bash_repl`` or ``call_python_repl``, and keeps its state. The context of a task does
    not stand in its prompt: ``info["context"]`` (a text, or what JSON can say) is the variable ``context`` of Python, and the file
    ``context.txt`` or ``context.json`` of the working directory; ``info["context_dir"]``, a folder of this machine, is copied there.

    From inside, ``llm_batch([prompt, ...])`` asks the model of the episode, each prompt in a conversation of its own, and gives the
    answers in order; `root_tools` are called in the same way. In Bash they are commands. Where the environment is stepped, each question
    of a sub-call is an observation, and its answer an action, as a turn of the root model is.

    The episode ends when ``answer["ready"]`` is true (in Bash, ``ANSWER_READY=1``), or the root model calls no tool. ``final_answer`` of
    its state is then what ``answer["content"]`` (``ANSWER_CONTENT``) is. ``prompt`` is the task's with instructions for the REPL;
    ``raw_prompt`` is the task's own.
    """

    def __init__(
        self,
        max_turns: int = 50,
        *,
        tools: Sequence[Callable[..., Any]] | None = None,
        root_tools: Sequence[Callable[..., Any]] | None = None,
        sub_tools: Sequence[Callable[..., Any]] | None = None,
        sub_llm_max_turns: int = 5,
        sub_model: str | None = None,
        enable_sub_llms: bool = True,
        max_output_length: int = 8192,
        max_sub_llm_parallelism: int = 5,
        instructions: str | None = None,
        repl_language: str = "bash",
        pip_install_packages: str = "",
        code_execution_timeout: float = 120,
        include_sub_llm_in_trajectory: bool = False,
        **kwargs: Any,
    ) -> None:
        """Define an environment.

        Args:
            max_turns: Most answers of the root model; unlimited where it is not positive.
            tools: Functions that the root model calls as tools, beside the REPL.
            root_tools: Functions that are called from inside the REPL, and run here.
            sub_tools: Functions that the models of sub-calls call as tools.
            sub_llm_max_turns: Most answers of a sub-call that may call tools. After that it is asked once more, without any.
            sub_model: Name of the model of sub-calls; that of the episode if None.
            enable_sub_llms: Whether there is `llm_batch`.
            max_output_length: Most characters that the model reads of what came of its code.
            max_sub_llm_parallelism: Most sub-calls at once, in one episode.
            instructions: What stands before the text of a task; how the REPL is used if None.
            repl_language: ``bash`` or ``python``.
            pip_install_packages: What ``pip install`` is given, once, outside the sandboxes (see `vfgym.PythonEnv`).
            code_execution_timeout: Seconds after which code is interrupted. The calls that it makes count.
            include_sub_llm_in_trajectory: Whether turns of sub-calls are in ``trajectory``, too, once the episode has ended: before the
                root turn that follows them, with ``is_sub_llm_call`` among their extras.
            **kwargs: Passed to `SandboxedEnv` (``sandbox``, ``backend``, ``keep_sandbox_for_scoring``) and `StatefulToolEnv`.

        Raises:
            ConfigurationError: If an argument can't be used, or no such sandbox can be made here: the text says what to install.
        """
        if repl_language not in LANGUAGES:
            raise ConfigurationError(f"repl_language must be one of {', '.join(LANGUAGES)}, got {repl_language!r}")
        limits = {"sub_llm_max_turns": sub_llm_max_turns, "max_output_length": max_output_length}
        for name, value in {**limits, "max_sub_llm_parallelism": max_sub_llm_parallelism}.items():
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ConfigurationError(f"{name} must be an integer of 1 or more, got {value!r}")
        is_number = isinstance(code_execution_timeout, int | float) and not isinstance(code_execution_timeout, bool)
        if not is_number or not code_execution_timeout > 0:
            raise ConfigurationError(f"code_execution_timeout must be a number of seconds above 0, got {code_execution_timeout!r}")
        stop_errors = [SandboxError] if kwargs.get("stop_errors") is None else kwargs["stop_errors"]
        kwargs = {**kwargs, "pip_install_packages": pip_install_packages, "stop_errors": stop_errors}
        super().__init__(max_turns=max_turns, tools=tools, **kwargs)
        self.root_tools = items_of(root_tools, "root_tools", "functions")
        self.sub_tools = items_of(sub_tools, "sub_tools", "functions")
        self.sub_model = sub_model
        self.enable_sub_llms = enable_sub_llms
        self.max_output_length = max_output_length
        self.max_sub_llm_parallelism = max_sub_llm_parallelism
        self.instructions = instructions
        self.repl_language = repl_language
        self.code_execution_timeout = code_execution_timeout
        self.include_sub_llm_in_trajectory = include_sub_llm_in_trajectory
        self._sub_calls = SubModel(self.sub_tools, sub_llm_max_turns, self.message_types, self.tool_type)
        self._root_functions = {function.name: function for function in map(ToolFunction, self.root_tools)}
        offered = [*([BATCH] if enable_sub_llms else []), *(function.name for function in map(ToolFunction, self.root_tools))]
        if len(set(offered)) < len(offered):
            raise ConfigurationError(f"what is called from inside needs different names, got {', '.join(offered)}")
        self.add_rubric(RLMMonitorRubric(offered))
        self.add_tool(self.call_bash_repl if repl_language == "bash" else self.call_python_repl, args_to_skip=["state"])

    @property
    def sub_llm_max_turns(self) -> int:
        """Most answers of a sub-call that may call tools."""
        return self._sub_calls.max_turns

    # The episode

    async def rollout(self, input: Row, client: Any, model: str, sampling_args: dict[str, Any] | None = None) -> State:
        """Play one episode by asking `client`, in sub-calls too, and return its state, not scored."""
        return await super().rollout(input, client, model, sampling_args)

    @hook
    async def setup_state(self, state: State) -> State:
        """Make the sandbox with the context in it, and open the REPL."""
        sub_model = self._sub_calls if self.enable_sub_llms else None
        ask = functools.partial(self._ask_sub_model, state)
        calls = CallsFromInside(self, state, ask, self.answer_sub_call, sub_model, self._root_functions, self.max_sub_llm_parallelism)
        state["recursion_counts"], state["final_answer"] = calls.counts, ""
        port, endpoint = free_port(), await open_endpoint(_refuse_requests, calls.call)
        try:
            sandbox = await self.lease_sandbox(state, forwards={port: endpoint.socket_path})
            context = await self._write_context(state)
            repl = Repl(sandbox, self.repl_language, self.code_execution_timeout, self.max_output_length)
            await repl.open(port=port, path=f"/{endpoint.key}/tools", functions=calls.names, context=context)
        except BaseException:
            await endpoint.close()
            raise
        state["rlm_session"] = _Session(repl, calls, endpoint)
        prompt = as_messages(state["prompt"], self.message_types, name="prompt")
        state["raw_prompt"] = state["prompt"]
        state["prompt"] = insert_instructions(prompt, self.build_instructions(context), self.message_types)
        return state

    def build_instructions(self, context: str | None) -> str:
        """Return what stands before the text of a task, where `context` is the file, or folder, that the context is in."""
        if self.instructions is not None:
            return self.instructions
        root_tools = [function.definition for function in self._root_functions.values()]
        told = describe_repl(self.repl_language, self._sub_calls.tool_defs if self.enable_sub_llms else None, root_tools)
        return "\n\n".join(filter(None, (told, describe_context(self.repl_language, context))))

    async def _write_context(self, state: State) -> str | None:
        """Write the task's context into the working directory, and return where it is there; None if there is none."""
        info = state.get("info") or {}
        folder, context = info.get("context_dir"), info.get("context")
        if folder is not None and context is not None:
            raise ConfigurationError("a task has info['context'] or info['context_dir'], got both")
        if folder is not None:
            if not os.path.isdir(folder):
                raise ConfigurationError(f"info['context_dir'] must be a folder, and {folder!r} is none")
            await state["sandbox"].upload(folder, ".")
            return "."
        if context is None:
            return None
        name, text = ("context.txt", context) if isinstance(context, str) else ("context.json", json.dumps(context))
        await state["sandbox"].write_file(name, text)
        return name

    @hook
    def update_tool_args(
        self, tool_name: str, tool_args: dict[str, Any], messages: list[Message], state: State, **kwargs: Any
    ) -> dict[str, Any]:
        """Return the arguments of a tool, with the hidden one of the REPL's (see `StatefulToolEnv`)."""
        return {**tool_args, "state": state} if tool_name == f"call_{self.repl_language}_repl" else tool_args

    async def call_bash_repl(self, code: str, state: State) -> str:
        """Execute Bash commands in a persistent REPL environment."""
        return await self._call_repl(code, state)

    async def call_python_repl(self, code: str, state: State) -> str:
        """Execute Python code in a persistent REPL environment."""
        return await self._call_repl(code, state)

    async def _call_repl(self, code: str, state: State) -> str:
        began = time.perf_counter()
        repl: Repl = state["rlm_session"].repl
        text = await repl.run(code)
        state["recursion_counts"].repl_seconds.append(time.perf_counter() - began)
        state["final_answer"] = repl.answer
        return text

    @hook
    async def env_response(self, messages: list[Message], state: State, **kwargs: Any) -> Any:
        """Carry out the calls of the model's last message. Once the answer is ready, what they gave ends the episode."""
        answers = await maybe_await(super().env_response, messages, state, **kwargs)
        session: _Session = state["rlm_session"]
        if session.calls.failure is not None:
            raise session.calls.failure
        if session.repl.is_ready:
            state["final_env_response"] = answers
        return answers

    async def answer_sub_call(self, state: State, ask: Ask, conversation: list[Message]) -> SubAnswer:
        """Answer one prompt of `llm_batch`, which begins a conversation: the model goes on with it until it calls no tool."""
        return await self._sub_calls.answer(ask, conversation)

    async def _ask_sub_model(
        self, state: State, messages: list[Message], tools: list[Tool], client: Any = None, model: str | None = None
    ) -> Response:
        response: Response = await maybe_await(self.get_model_response, state, messages, client, model or self.sub_model, tools)
        return response

    # The end

    @stop(priority=50)
    def answer_ready(self, state: State) -> bool:
        """Stop when the answer was said to be ready."""
        session = state.get("rlm_session")
        return session is not None and session.repl.is_ready

    async def look_at_sandbox(self, state: State) -> None:
        """End the model's interpreter, which says what the model wants, then call `post_rollout`: its cells get a new one."""
        if state["sandbox"].is_alive:
            await state["sandbox"].end_interpreter()
        await super().look_at_sandbox(state)

    @cleanup(priority=50)
    async def close_session(self, state: State) -> None:
        """Answer nothing more from inside, and put the turns of sub-calls into the trajectory if they belong there."""
        session: _Session | None = state.pop("rlm_session", None)
        if session is None:
            return
        await session.endpoint.close()
        if self.include_sub_llm_in_trajectory:
            trajectory = state["trajectory"]
            for root_turns, step in reversed(session.calls.sub_steps):
                trajectory.insert(root_turns, step)


async def _refuse_requests(request: Any) -> Response:
    raise ToolCallError("models are asked with llm_batch here")
