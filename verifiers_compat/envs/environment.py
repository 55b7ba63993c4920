"""`Environment`: the documented base class, which is `vfgym.ChatEnv` plus the rollout API."""

from __future__ import annotations

import functools
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import vfgym.state
from verifiers_compat.envs.api import RolloutAPI
from verifiers_compat.messages import MESSAGE_TYPES
from verifiers_compat.types import RolloutTiming, State, Tool
from vfgym.aio import threads
from vfgym.aio.steps import Steps, run_each
from vfgym.clients import Client, ClientType, EndpointClientConfig, ProviderClient
from vfgym.envs.chat import ChatEnv
from vfgym.errors import ConfigurationError, HookMissing
from vfgym.messages import MessageTypes
from vfgym.overrides import inline_hook
from vfgym.tools import as_tool

if TYPE_CHECKING:
    from collections.abc import Callable

logger = logging.getLogger("verifiers_compat")

_DOCUMENTED_WORKERS = 512

_NO_SYSTEM_PROMPT = "message_type='completion' has text prompts, which take no system_prompt and no few_shot messages"

_OWN_ARGUMENTS: Mapping[str, Any] = {
    "message_type": "chat",
    "max_workers": None,
    "map_kwargs": None,
    "oai_tools": None,
    "interleaved_rollouts": False,
}
"""Documented arguments that `ChatEnv` does not know, with their defaults."""


def _free_name(name: str, value_of: Callable[[Any], Any]) -> property:
    """Return an attribute that reads what the library has under a name until the author writes it for a purpose of their own."""
    key = f"_author_{name}"

    def read(self: Any) -> Any:
        return self.__dict__[key] if key in self.__dict__ else value_of(self)

    def write(self: Any, value: Any) -> None:
        self.__dict__[key] = value

    return property(read, write, doc=f"What `vfgym` has under this name, or what the author's code has written here: {name}.")


class Environment(RolloutAPI, ChatEnv):
    """An environment as the rollout API documents it: subclass it and write `rollout`, or subclass `MultiTurnEnv`.

    It is a `gymnasium.Env` too, also where `rollout` is the author's own. Besides the arguments of `vfgym.ChatEnv` it takes
    ``message_type`` (``"completion"`` for text prompts), ``max_workers`` (threads for blocking functions), ``map_kwargs`` (for
    ``Dataset.map``), and the older ``oai_tools`` and ``interleaved_rollouts``. Any other keyword argument becomes an attribute.
    """

    message_types: ClassVar[MessageTypes] = MESSAGE_TYPES
    state_type = State
    timing_type = RolloutTiming
    tool_type = Tool
    dropped_columns: ClassVar[frozenset[str]] = frozenset({"env_id"})
    _may_shadow_face: ClassVar[bool] = True

    # An author's code may use these names; the machine never asks for them here.
    state = _free_name("state", lambda self: None if self._episode is None else self._episode.state)
    episode = _free_name("episode", lambda self: self._episode)
    tasks = _free_name("tasks", lambda self: self.tasks_of("train"))
    eval_tasks = _free_name("eval_tasks", lambda self: self.tasks_of("eval"))

    def _take_unknown_arguments(self, unknown: dict[str, Any]) -> None:
        given = {name: unknown.pop(name, default) for name, default in _OWN_ARGUMENTS.items()}
        self.message_type: str = given["message_type"]
        if self.message_type not in ("chat", "completion"):
            raise ConfigurationError(f"message_type must be 'chat' or 'completion', got {self.message_type!r}")
        if self.message_type == "completion":
            self.client_type: ClientType | None = "openai_completions"
        self.max_workers: int = given["max_workers"] or _DOCUMENTED_WORKERS
        if given["max_workers"] is not None:
            threads.allow_workers(given["max_workers"])
        self.logger = logging.getLogger(f"verifiers.{type(self).__module__}.{type(self).__qualname__}")
        self.map_kwargs = dict(given["map_kwargs"] or {})
        self._older_tools = given["oai_tools"]
        self.set_interleaved_rollouts(given["interleaved_rollouts"])
        for name, value in unknown.items():
            setattr(self, name, value)

    def _complete_definition(self) -> None:
        if type(self).rollout is ChatEnv.rollout:
            raise HookMissing(f"{type(self).__name__} must write rollout(input, client, model, sampling_args), or subclass MultiTurnEnv")
        if not self._tasks and type(self).tasks_of is ChatEnv.tasks_of:
            raise ConfigurationError(
                f"{type(self).__name__} needs tasks: give dataset= or eval_dataset= (rows with a question or a prompt)"
            )
        if self.message_type == "completion" and (self.system_prompt or self.few_shot):
            raise ConfigurationError(_NO_SYSTEM_PROMPT)
        if self._older_tools:
            self.tool_defs += [as_tool(tool, Tool) for tool in self._older_tools]
        del self._older_tools
        self.sampling_args = {"n": 1, "extra_body": {}, **self.sampling_args}
        parsers = {type(self.parser), type(self.rubric.parser)}
        if len(parsers) > 1:
            names = " and ".join(sorted(parser.__name__ for parser in parsers))
            logger.warning("%s has different parsers for itself and its rubric: %s", type(self).__name__, names)

    def set_system_prompt(self, system_prompt: str | None) -> None:
        """Replace the system prompt (see `ChatEnv.set_system_prompt`). Datasets are made anew.

        Raises:
            ConfigurationError: If prompts are plain text, which has no system message.
        """
        if self.message_type == "completion" and system_prompt:
            raise ConfigurationError(_NO_SYSTEM_PROMPT)
        super().set_system_prompt(system_prompt)
        self._datasets.clear()

    def initial_state(self, task: dict[str, Any], client: Any, model: str, sampling_args: dict[str, Any] | None) -> vfgym.state.State:
        """Return the state that an episode of a task of its own starts from (see `ChatEnv.initial_state`).

        ``info["oai_tools"]``, the older name of ``info["tool_defs"]``, is read too. A configuration or an SDK's client is resolved. The
        client that is made of it is kept, for the rollouts that follow, and closed with the environment; an SDK's client stays open.
        """
        if client is not None and not isinstance(client, Client):
            client = self._keep_client(client)
        state = super().initial_state(task, client, model, sampling_args)
        info = task.get("info")
        if isinstance(info, Mapping) and info.get("oai_tools") and not info.get("tool_defs"):
            state["tool_defs"] = [as_tool(tool, Tool) for tool in info["oai_tools"]]
        return state

    def _keep_client(self, client: Any) -> Client:
        for given, made in self._kept_clients:
            if given is client or (isinstance(given, EndpointClientConfig) and given == client):
                return made
        made = self._resolve_one_client(client)
        self._kept_clients.append((client, made))
        return made

    @functools.cached_property
    def _kept_clients(self) -> list[tuple[Any, Client]]:
        return []

    def _close(self) -> Steps[None]:
        yield from run_each([super()._close(), self._close_kept_clients()])

    def _close_kept_clients(self) -> Steps[None]:
        while self._kept_clients:
            given, made = self._kept_clients.pop()
            if made is not given and not (isinstance(made, ProviderClient) and made.client is given):
                yield made.close()

    @inline_hook
    def cleanup(self, state: vfgym.state.State, task: object = None, resources: object = None) -> Any:
        """Run the cleanup handlers of one rollout (see `ChatEnv.cleanup`).

        Args:
            state: The rollout.
            task: Accepted for overrides; handlers get the state's.
            resources: Accepted for overrides.
        """
        return super().cleanup(state)

    @property
    def oai_tools(self) -> list[dict[str, Any]]:
        """The tools as the OpenAI chat API takes them: their older name."""
        return [tool.to_openai() for tool in self.tool_defs]
