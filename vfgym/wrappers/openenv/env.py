"""`OpenEnvEnv`: an environment on an OpenEnv server as a chat environment."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, get_args

from vfgym.aio.background import on_background_loop, wait
from vfgym.aio.steps import Steps, run_each
from vfgym.envs.tool import ToolMonitorRubric
from vfgym.errors import ConfigurationError, InfraError
from vfgym.lifecycle import cleanup, stop
from vfgym.messages import Message
from vfgym.spaces import Sampler
from vfgym.state import State
from vfgym.tools import Tool
from vfgym.wrappers.games.turns import GameState, GameTurnsEnv
from vfgym.wrappers.openenv.actions import ActionReader
from vfgym.wrappers.openenv.contracts import LIST_TOOLS, GymPlay, McpPlay, Play, contract_of, read_tools
from vfgym.wrappers.openenv.protocol import ActionRefused, ServerError
from vfgym.wrappers.openenv.rendering import Contract, PromptRenderer, Renderer
from vfgym.wrappers.openenv.servers import GivenServer, OpenEnvServer, ServerSource, check_seconds, check_url
from vfgym.wrappers.openenv.session import OpenEnvSession

TIMEOUT = 60.0
"""Seconds that a server has for each answer, where nobody says otherwise."""


@dataclass(kw_only=True)
class OpenEnvState(GameState):
    """What an episode on a server changes at every step."""

    openenv_session: OpenEnvSession
    """The episode's session, which is closed with it."""
    openenv_done: bool = False
    """Whether the server said that the episode is over."""
    observation: dict[str, Any] = field(default_factory=dict)
    """What the server showed last."""


class OpenEnvEnv(GameTurnsEnv):
    """An environment on a server of `OpenEnv <https://github.com/meta-pytorch/OpenEnv>`_, whose protocol is spoken without the library.

    An episode is a session of its own with the server (see `vfgym.wrappers.openenv.servers.OpenEnvServer`), which begins with the server's
    `reset` and is closed once, whatever ends the episode. A task is a seed, which the server gets. There are two contracts:

    * ``gym``: an answer is an action, a JSON object of the server's schema (`ActionReader` says how it is found in an answer). Its reward
      is that step's. What `prompt_renderer` makes of the observation is shown next.
    * ``mcp``: the server's tools are told to the model; each call is a step, and the rewards of an answer's calls are added up. An answer
      without a call ends the episode (``mcp_no_tool_calls``).

    The server ends an episode with ``done`` (``openenv_done``). A server that goes away, takes too long or answers nonsense is an
    `InfraError` of the episode.

    An episode cannot be gone back to: it lives on the server.
    """

    def __init__(
        self,
        server: str | ServerSource,
        prompt_renderer: PromptRenderer,
        *,
        contract: Contract | None = None,
        request_timeout: float = TIMEOUT,
        **kwargs: Any,
    ) -> None:
        """Define an environment. The server is asked for its schema of actions, and for its tools.

        Args:
            server: URL of a server that runs, or where servers come from.
            prompt_renderer: Makes messages of an observation (see `vfgym.wrappers.openenv.rendering`).
            contract: ``"gym"`` or ``"mcp"``; by the server's schema of actions without it.
            request_timeout: Seconds that the server has for each answer. Where it is full, seconds after which an episode is no longer
                waited for, in which no other one made a step.
            **kwargs: Passed to `GameTurnsEnv` (``max_turns``, ``rubric``, ``system_prompt``, ``history``, ...).

        Raises:
            ConfigurationError: If an argument does not fit, or nothing that speaks the protocol answers.
        """
        if contract is not None and contract not in get_args(Contract):
            raise ConfigurationError(f"contract must be 'gym' or 'mcp', or None to go by the server's schema of actions; got {contract!r}")
        seconds = check_seconds("request_timeout", request_timeout)
        if not callable(prompt_renderer):
            Renderer(prompt_renderer, "gym", {})  # raises, before a server is asked
        source: Any = server if hasattr(server, "lease") else GivenServer(OpenEnvServer(check_url(server), seconds))
        self._source: ServerSource = source
        try:
            schema, known, tools = wait(on_background_loop(_survey, source, contract))
        except InfraError as error:
            hint = ". Is the URL right, and does an OpenEnv server run there?" if isinstance(source, GivenServer) else ""
            raise ConfigurationError(f"{error}{hint}") from error
        self.contract: Contract = known
        self.action_schema = schema
        """The server's JSON schema of actions; empty where it has none."""
        self._reader = ActionReader(schema)
        try:
            self._renderer = Renderer(prompt_renderer, known, schema)
            super().__init__(tool_defs=tools, **kwargs)
        except BaseException:
            wait(on_background_loop(source.close))  # nobody has the environment that would
            raise
        if known == "mcp":
            monitor = ToolMonitorRubric()
            monitor.tool_names += [tool.name for tool in tools]
            self.add_rubric(monitor)

    @property
    def can_go_back(self) -> bool:
        """An episode lives on the server, where it cannot be copied."""
        return False

    # Episodes

    async def setup_state(self, state: State) -> State:
        """Open a session, and begin the episode of the task's seed; one without a seed gets one of the player's random numbers."""
        session = OpenEnvSession(self._source)
        state.begin_game(OpenEnvState(openenv_session=session))
        task = state["input"]
        if task.get("seed") is None:
            task["seed"] = state.rng.integers(2**31)
        seed = task["seed"] = int(task["seed"])
        options = task.get("game_options") or {}
        if "seed" in options:
            raise ConfigurationError("the seed of an episode is that of its task, or of reset(seed=): it cannot be one of the game_options")
        try:
            reply = await session.begin("reset", {**options, "seed": seed})
        except ActionRefused as refusal:
            raise ConfigurationError(f"the server refused the seed and the other options of its reset: {refusal}") from None
        state["observation"], state["openenv_done"] = reply.observation, reply.done
        self._begin(state, self._renderer.render(reply.observation, "reset", seed, self.message_types))
        return state

    async def apply_action(self, message: Message, state: State) -> None:
        """Play what the model answered."""
        seed = state["input"]["seed"]
        turn, reply = await self._play().answer(state["openenv_session"], message, seed, is_cut_off=state.is_cut_off)
        self._take(turn, state)
        if reply is not None:
            state["observation"], state["openenv_done"] = reply.observation, reply.done

    def _play(self) -> Play:
        if self.contract == "mcp":
            return McpPlay(self.message_types)
        return GymPlay(self._reader, self._renderer, self.parser, self.message_types)

    @cleanup
    async def close_openenv_session(self, state: State) -> None:
        """End the episode's session with the server."""
        game_state = state.game_state
        if isinstance(game_state, OpenEnvState):
            await game_state.openenv_session.close()

    def action_sampler(self) -> Sampler:
        """Return what samples the action space: actions of the schema, or calls of the tools."""
        return self._reader if self.contract == "gym" else super().action_sampler()

    # How it ends

    @stop(priority=60)  # before `game_over`, which is what other games call it
    def openenv_done(self, state: State) -> bool:
        """Stop when the server said that the episode is over."""
        return bool(state.get("openenv_done"))

    @stop
    def mcp_no_tool_calls(self, state: State) -> bool:
        """Stop when the model answered without calling a tool, where tools are how a server is played."""
        trajectory = state["trajectory"]
        return self.contract == "mcp" and bool(trajectory) and not trajectory[-1]["completion"][-1].get("tool_calls")

    _known_stops = GameTurnsEnv._known_stops | {openenv_done, mcp_no_tool_calls}

    def may_stop(self, state: State) -> bool:
        """Say whether any stop condition may hold (see `MultiTurnEnv.may_stop`)."""
        return self.contract == "mcp" or bool(state.get("openenv_done")) or super().may_stop(state)

    # The end of the environment

    def _close(self) -> Steps[None]:
        yield from run_each([super()._close(), self._close_source()])

    def _close_source(self) -> Steps[None]:
        yield on_background_loop(self._source.close)


async def _survey(source: ServerSource, contract: Contract | None) -> tuple[dict[str, Any], Contract, list[Tool]]:
    """Return what a server says of itself: its schema of actions, how it is played, and its tools."""
    try:
        server = await source.lease()
        try:
            schema = await server.read_action_schema()
        finally:
            await source.give_back(server)
        known = contract_of(schema) if contract is None else contract
        tools: list[Tool] = []
        if known == "mcp":
            session = OpenEnvSession(source)
            try:
                tools = read_tools(server.url, await session.begin("step", LIST_TOOLS))
            except ActionRefused as refusal:
                raise ServerError(server.url, f"has no tools, as the contract 'mcp' asks for: {refusal}") from None
            finally:
                await session.close()
    except BaseException:
        await source.close()
        raise
    return schema, known, tools
