"""`Runtime`: everything live about one running rollout, and the one way in which its model is asked."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import vfgym.state
from verifiers_compat.v1.bindings import Scope
from verifiers_compat.v1.config import SandboxConfig
from verifiers_compat.v1.sandboxes import open_sandbox, port_of
from verifiers_compat.v1.state import State
from verifiers_compat.v1.task import Task, check_visibility
from verifiers_compat.v1.tools import RolloutTool, merge_tools
from verifiers_compat.v1.toolset import Toolset, as_named_toolset, visible
from verifiers_compat.v1.user import User
from vfgym.calls import maybe_await, rollout_failure
from vfgym.clients import Client, ends_only_rollout, is_permanent_refusal, merge_sampling_args, resolve_client
from vfgym.errors import ConfigurationError, ModelError, did_you_mean
from vfgym.interception import Endpoint, Request, check_api, open_endpoint
from vfgym.interception.wire import message_of, plain_data
from vfgym.messages import Message, Response, as_messages
from vfgym.sandboxes import Sandbox
from vfgym.state import MessagesView, step_tokens
from vfgym.tools import Tool

if TYPE_CHECKING:
    from verifiers_compat.v1.harness import Harness

GROUP_KEY = "group_key"
"""Item of ``state["runtime"]`` that the rollouts of one group share."""


AGENT = "agent"
"""Name of the model where an environment is stepped and nobody named one: its agent answers."""


class Runtime:
    """One running rollout: its model, its tools, its user, and what lives as long as it does."""

    def __init__(self, harness: Harness, task: Task, state: State) -> None:
        """Bind a rollout to what plays it. What the state says wins over the task, and the task over the harness.

        Raises:
            ConfigurationError: If ``state["runtime"]`` has something that does not fit.
        """
        self.harness = harness
        self.task = task
        self.state = state
        handles = state.handles
        self.outer = handles.outer
        self.tools: dict[str, RolloutTool] = {}
        self.user: User | None = harness.resolve_user()
        self.system_prompt = harness.resolve_system_prompt(task)
        self.failure: Exception | None = None
        """What a model call that came through the endpoint failed with last."""
        self.sandbox: Sandbox | None = handles.sandbox
        """The sandbox of the program, once it was opened; that of another rollout where it was borrowed."""
        self._endpoint: Endpoint | None = None
        self._rollout_scope = Scope()

        controls = {key: plain_data(task[key]) for key in ("max_turns", "tools") if task.get(key) is not None}
        state["runtime"] = runtime = {**controls, **state.setdefault("runtime", {})}
        self.sampling_args = {**harness.sampling_args, **(handles.sampling_args or {}), **(runtime.get("sampling_args") or {})}
        self.model = runtime.get("model") or handles.model or harness.model or (AGENT if handles.outer is not None else None)
        client = harness.client if handles.client is None else handles.client
        self.client: Client | None = None if client is None else resolve_client(client)
        for key, default in (("artifacts", {}), ("metrics", {}), ("reward", 0.0), ("trajectory", []), ("num_model_requests", 0)):
            state.setdefault(key, default)
        if self.model:
            runtime.setdefault("model", self.model)
        runtime.setdefault("max_turns", harness.max_turns)
        self.transcript: State = state if handles.transcript is None else handles.transcript
        """Whose trajectory the model calls are recorded in."""
        state.running = self

    @property
    def max_turns(self) -> int:
        """Most answers of the model in the base loop; unlimited where it is not positive."""
        return self.state.get_max_turns(self.harness.max_turns)

    # Tools

    async def connect_tools(self) -> None:
        """Make the tools that the rollout may use; servers are connected.

        Raises:
            ConfigurationError: If names clash, or something is shown or hidden that there is not.
        """
        tools: dict[str, RolloutTool] = dict(self.state.handles.tools)
        for toolset in self._toolsets():
            tools = merge_tools(tools, await toolset.tools_for(self))
        chosen = self.state["runtime"].get("tools")
        if chosen is not None:
            names = chosen if isinstance(chosen, Mapping) else {"show": chosen}
            tools = visible(tools, check_visibility(names, "the tools of a rollout"))
        self.tools = tools

    def _toolsets(self) -> list[Toolset]:
        """Return the toolsets of harness and taskset, those that the task hides left out, and the task's own."""
        harness, taskset = self.harness, self.harness.taskset
        toolsets = [*harness.toolsets, *(taskset.toolsets if taskset is not None else ())]
        named = merge_tools(harness.named_toolsets, taskset.named_toolsets if taskset is not None else {})
        asked = dict(self.task.get("toolsets") or {})
        choice = {key: asked.pop(key) for key in ("show", "hide") if key in asked}
        if choice:
            named = visible(named, check_visibility(choice, "a task's toolsets"), kind="toolset")
        own = merge_tools(named, {name: as_named_toolset(name, plain_data(value)) for name, value in asked.items()})
        return [*toolsets, *own.values()]

    def tool(self, name: str) -> RolloutTool:
        """Return a tool that the rollout may use.

        Raises:
            ConfigurationError: If there is none of that name.
        """
        if name not in self.tools:
            raise ConfigurationError(
                f"the rollout has no tool {name!r}; it has {', '.join(self.tools) or 'none'}.{did_you_mean(name, self.tools)}"
            )
        return self.tools[name]

    def scope(self, name: str) -> Scope:
        """Return what holds the objects that live as long as the rollout, its group, or the harness."""
        if name == "global":
            return self.harness.global_scope
        if name == "group" and GROUP_KEY in self.state["runtime"]:
            return self.harness.group_scope(self.state["runtime"][GROUP_KEY])
        return self._rollout_scope

    # The model

    async def ask(
        self, prompt: Sequence[Any], tools: Sequence[Tool] | None = None, sampling_args: Mapping[str, Any] | None = None
    ) -> Response:
        """Ask the rollout's model for the next message, and record the turn.

        Args:
            prompt: The conversation.
            tools: Tools that the model may call.
            sampling_args: Generation parameters; those of the rollout win over them.

        Raises:
            ConfigurationError: If the rollout has no client or no model.
            vfgym.errors.Error: If there is no usable answer.
        """
        if self.client is None:
            raise ConfigurationError("there is no client to ask: give one to the harness, or roll out with an environment")
        messages = as_messages(prompt, name="prompt")
        state: vfgym.state.State = self.state if self.outer is None else self.outer
        asked = time.time()
        response = await self.client.get_response(
            prompt=messages,
            model=self.model or "",
            sampling_args=merge_sampling_args(sampling_args or {}, self.sampling_args),
            tools=list(tools or ()) or None,
            state=state,
        )
        if self.outer is not None:
            self.outer["timing"].model.add(asked, time.time())
        await self._record(messages, response)
        return response

    async def _record(self, prompt: list[Message], response: Response) -> None:
        for state in {id(each): each for each in (self.state, self.transcript)}.values():
            state["num_model_requests"] += 1
        if self.outer is not None and response.usage is not None:
            usage = response.usage
            self.outer["usage_tracker"].add(usage.prompt_tokens, usage.completion_tokens)
        message = message_of(response)
        kept = None if response.tokens is None else step_tokens(response.tokens, self.state.handles.max_seq_len)
        step: dict[str, Any] = {
            "prompt": prompt,
            "completion": [message],
            "response": _plain_response(response, message),
            "tokens": kept,
            "reward": None,
            "advantage": None,
            "is_truncated": response.is_truncated or (kept is not None and kept["is_truncated"]),
            "trajectory_id": self.state["trajectory_id"],
            "extras": {},
        }
        if not await maybe_await(self.harness.keep_trajectory_step, step, self.state):
            return
        self.transcript["trajectory"].append(step)
        episode = self.transcript.handles.outer
        if episode is not None and episode.rollout_state is self.transcript:  # and not a child's that keeps its own
            view = MessagesView(prompt, len(prompt))
            episode["trajectory"].append({**step, "prompt": view, "response": response, "extras": {}})

    # Sandboxes

    async def open_program_sandbox(self, config: SandboxConfig, **changes: Any) -> Sandbox:
        """Return the sandbox of the program: the one that was borrowed, else one that lives as long as `config` says.

        Args:
            config: What it is asked for.
            **changes: Fields of its `vfgym.sandboxes.SandboxSpec`.

        Raises:
            vfgym.errors.SandboxError: If it cannot be made.
        """
        await self.open_endpoint()  # files of the program may name it, in a borrowed sandbox, too
        if self.sandbox is None:
            self.sandbox = await self.open_sandbox(self.harness, config, **changes)
        return self.sandbox

    async def open_sandbox(self, owner: object, config: SandboxConfig, **changes: Any) -> Sandbox:
        """Return the sandbox of `owner` in the scope that `config` names, opened when it is first asked for."""
        await self.open_endpoint()
        socket = self._open_endpoint("chat_completions").socket_path
        # A digest, since a name is told where the object cannot be closed, and environment variables may be secrets.
        name = f"sandbox {hashlib.sha256(config.model_dump_json().encode()).hexdigest()}"
        sandbox: Sandbox = await self.scope(config.scope).object(owner, name, lambda: open_sandbox(config, socket, **changes))
        return sandbox

    # The endpoint

    async def open_endpoint(self) -> None:
        """Make the rollout's model reachable over HTTP, for programs that ask it that way."""
        if self._endpoint is None:
            self._endpoint = await open_endpoint(self._answer_program, self._call_tool)

    async def _answer_program(self, request: Request) -> Response:
        """Ask the model for a program, and keep what that failed with last."""
        try:
            response = await self.ask(request.messages, request.tools, request.sampling_args)
        except (Exception, SystemExit) as error:
            failure = rollout_failure(error)
            # What runs in a sandbox is trusted by nobody; a function of this process is its author's.
            if self.sandbox is not None and is_permanent_refusal(failure) and ends_only_rollout(failure):
                failure = ModelError(f"the model could not be asked: {failure}")
                failure.__cause__ = error
            self.failure = failure
            raise failure from failure.__cause__
        self.failure = None
        return response

    async def _call_tool(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Call a tool for a program, and return its result as JSON data; what has no form there as its text."""
        result = await self.tool(name).call(arguments)
        try:
            json.dumps(result)
        except (TypeError, ValueError):
            return str(result)
        return result

    def endpoint_config(self, api: str, port: int | None = None) -> dict[str, str]:
        """Return how the endpoint is reached, from a sandbox by one of its ports (see `State.get_endpoint_config`)."""
        return self._open_endpoint(api).config(api, self.state.get_model(), port)

    def program_variables(self) -> dict[str, str]:
        """Return the environment variables by which a command finds the model, in the sandbox of the program where it has one."""
        port = None if self.sandbox is None else port_of(self.sandbox)
        return self._open_endpoint("chat_completions").variables(self.model or "", port)

    def sdk_client(self, api: str, *, sync: bool) -> Any:
        """Return a client of an SDK for the endpoint (see `State.get_client`)."""
        return self._open_endpoint(api).sdk_client(api, sync=sync)

    def _open_endpoint(self, api: str) -> Endpoint:
        check_api(api)
        if self._endpoint is None:
            raise ConfigurationError("the model is reachable over HTTP only while the program of the rollout runs")
        return self._endpoint

    async def close(self) -> None:
        """Let go of what lives as long as the rollout."""
        endpoint, self._endpoint = self._endpoint, None
        try:
            if endpoint is not None:
                await endpoint.close()
        finally:
            await self._rollout_scope.release()


def _plain_response(response: Response, message: Message) -> dict[str, Any]:
    return {
        "id": response.id,
        "created": response.created,
        "model": response.model,
        "usage": None if response.usage is None else asdict(response.usage),
        "message": message,
    }


def elapsed_ms(since: float) -> float:
    """Return the milliseconds since a time of `time.time`."""
    return (time.time() - since) * 1e3
