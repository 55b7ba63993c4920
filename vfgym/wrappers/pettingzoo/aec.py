"""Conversations as PettingZoo environments. This module imports PettingZoo; `to_pettingzoo` imports it when it is called."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

import gymnasium as gym
import numpy as np
from pettingzoo import AECEnv

from vfgym.agents.base import seat_of
from vfgym.envs.seat import RESET_OPTIONS, Action, as_response, new_since, transcript
from vfgym.errors import ConfigurationError, ResetNeeded
from vfgym.messages import MESSAGE_TYPES, AssistantMessage, Content, Message, SystemMessage, UserMessage, join_contents
from vfgym.messages.responses import for_conversation
from vfgym.output.terminal import echo
from vfgym.spaces import ChatSpace, MessageSpace, TextSampler
from vfgym.state import State
from vfgym.wrappers.games.multiplayer import MultiplayerEnv
from vfgym.wrappers.games.turn_based import Player, TurnBasedGame, play_in_turn

RENDER_MODES = ("ansi", "human")


class Conversation(list[Message]):
    """A conversation as an observation: a list of messages.

    Its ``dtype`` is the one of its space, which is none: `pettingzoo.test.api_test` compares the two.
    """

    dtype = None


class ConversationAEC(AECEnv):  # type: ignore[misc]  # PettingZoo ships no types
    """What games and single agents have in common: spaces, and how conversations are rendered."""

    def __init__(self, action_spaces: dict[str, Any], *, render_mode: str | None, name: str, is_parallelizable: bool) -> None:
        super().__init__()
        if render_mode is not None and render_mode not in RENDER_MODES:
            raise ConfigurationError(f"render_mode must be one of {', '.join(RENDER_MODES)}, or None; got {render_mode!r}")
        self.metadata = {"render_modes": list(RENDER_MODES), "name": name, "is_parallelizable": is_parallelizable, "render_fps": 4}
        self.render_mode = render_mode
        self.possible_agents = [*action_spaces]
        self.agents: list[str] = []
        self.action_spaces = action_spaces
        self.observation_spaces = {agent: ChatSpace() for agent in action_spaces}
        self._has_begun = False

    def observation_space(self, agent: str) -> gym.Space[Any]:
        """Return the space of an agent's conversations."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> gym.Space[Any]:
        """Return the space of an agent's messages. Its samples mean something to the game."""
        space: gym.Space[Any] = self.action_spaces[agent]
        return space

    def _begin(self) -> None:
        """Set all that PettingZoo keeps of a new episode, but for whose turn it is."""
        self._has_begun = True
        self.agents = [*self.possible_agents]
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos: dict[str, dict[str, Any]] = {agent: {} for agent in self.agents}
        self._skip_agent_selection = None  # PettingZoo's own, which an episode that was left early would hand on

    def _must_not_act(self, action: Action | None) -> bool:
        """Say whether the agent whose turn it is has left the game; if so, let it go."""
        if not self.agents:
            raise ResetNeeded("there is no episode to continue: call reset() first")
        agent = self.agent_selection
        if not (self.terminations[agent] or self.truncations[agent]):
            return False
        self._was_dead_step(action)
        return True

    def conversation(self, agent: str) -> list[Message]:
        """Return what an agent has been told and has said so far."""
        raise NotImplementedError

    def observe(self, agent: str) -> Conversation:
        """Return an agent's conversation.

        Raises:
            ResetNeeded: If no episode has begun.
            ConfigurationError: If there is no such agent.
        """
        self._check_begun()
        if agent not in self.possible_agents:
            raise ConfigurationError(f"there is no agent {agent!r}; there are {', '.join(self.possible_agents)}")
        return Conversation(self.conversation(agent))

    def last(self, observe: bool = True) -> tuple[Conversation | None, float, bool, bool, dict[str, Any]]:
        """Return what the agent whose turn it is observes (None without `observe`), its reward, how it ended, and its info.

        Raises:
            ResetNeeded: If no episode has begun.
        """
        self._check_begun()
        last: tuple[Conversation | None, float, bool, bool, dict[str, Any]] = super().last(observe)
        return last

    def _check_begun(self) -> None:
        if not self._has_begun:
            raise ResetNeeded("no episode has begun: call reset() first")

    def render(self) -> str | None:
        """Return all conversations as text (``render_mode="ansi"``); ``"human"`` prints them as they go and returns None."""
        if self.render_mode == "ansi":
            return "\n\n".join(f"{agent}:\n{transcript(self.conversation(agent))}" for agent in self.possible_agents)
        if self.render_mode is None:
            gym.logger.warn("render() was called without a render mode: make the environment with render_mode='ansi' or 'human'")
        return None

    def _print(self, agent: str, messages: list[Message]) -> None:
        if self.render_mode == "human" and messages:
            echo(f"{agent}:\n{transcript(messages)}")


class MoveSampler:
    """Draws legal moves of the agent whose turn it is, and words of any other."""

    def __init__(self, env: ChatAEC, agent: str) -> None:
        self.env = env
        self.agent = agent

    def sample(self, rng: np.random.Generator) -> AssistantMessage:
        """Return one message."""
        game, player, form = self.env.game, self.env.players[self.agent], self.env.form
        if game.turn != player:
            return TextSampler().sample(rng)
        move = game.sample_move(player, rng)
        return cast(AssistantMessage, move if form is None else form.message_of(move))


class ChatAEC(ConversationAEC):
    """A game for several players as a PettingZoo environment. Made by `to_pettingzoo`.

    An agent's observation is its conversation: messages of the user role are what it was told, those of the assistant role what
    it said. It is told things when somebody looks (`observe`, `last`) and at the latest when it acts; what it was told between
    two of its own messages is one message. Its action is a message, and what names no move is the game's matter: where the game
    tells the player why and asks again, ``agent_selection`` stays. So agents need not act in a cycle, and the environment is
    not parallelizable.
    """

    def __init__(
        self,
        make_game: Callable[[], TurnBasedGame],
        *,
        system_prompt: str | None = None,
        max_turns: int = -1,
        shares_turns: bool = False,
        max_invalid_moves: int | None = None,
        tell_legal_actions: bool = True,
        form: MultiplayerEnv | None = None,
        render_mode: str | None = None,
        name: str | None = None,
    ) -> None:
        """Open a table.

        Args:
            make_game: Makes a table of the game.
            system_prompt: The first message of every conversation.
            max_turns: Most messages of each agent; the game is truncated when one who has sent them would act again. Unlimited where it
                is not positive.
            shares_turns: Whether `max_turns` counts the messages of all agents together, as in self-play.
            max_invalid_moves: Messages of an agent in a row that are not a valid move, after which the game is truncated; unlimited
                without it.
            tell_legal_actions: Whether ``info["legal_actions"]`` lists the moves that are legal, where the game knows them.
            form: The environment that finds the moves in messages (`MultiplayerEnv.move_of`); without it, they are messages.
            render_mode: ``"ansi"``, ``"human"`` or None.
            name: The environment's name; the game's class without it.
        """
        self.form = form
        self.game = make_game()
        """The table at which the agents sit."""
        if not self.game.players:  # some games know their players only when they have begun
            self.game.reset(None, None)
        agents = [f"player_{seat}" for seat in range(len(self.game.players))]
        self.players: dict[str, Player] = dict(zip(agents, self.game.players, strict=True))
        """Which player of the game each agent is."""
        spaces = {agent: MessageSpace(MoveSampler(self, agent)) for agent in agents}
        super().__init__(spaces, render_mode=render_mode, name=name or type(self.game).__name__, is_parallelizable=False)
        self._first: list[Message] = [SystemMessage(system_prompt)] if system_prompt else []
        self._max_turns = max_turns if max_turns > 0 else math.inf
        self._shares_turns = shares_turns
        self._max_invalid_moves = math.inf if max_invalid_moves is None else max_invalid_moves
        self._tell_legal_actions = tell_legal_actions
        self._begin_conversations()

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Begin a game.

        Args:
            seed: The same seed gives the same game; None continues the table's own random numbers.
            options: ``game_options`` are given to the game, as those of `vfgym.ChatEnv.reset` are. Others are ignored, as
                PettingZoo's own environments ignore what they do not know.
        """
        self.game.reset(seed, (options or {}).get("game_options"))
        if len(self.game.players) != len(self.possible_agents):
            raise ConfigurationError(
                f"this table was opened for {len(self.possible_agents)} players, and the game has begun with {len(self.game.players)}"
            )
        self.players = dict(zip(self.possible_agents, self.game.players, strict=True))
        self._begin_conversations()
        self._begin()
        self.agent_selection = self.agents[0]
        self._go_on()

    def _begin_conversations(self) -> None:
        self._conversations: dict[str, list[Message]] = {agent: [*self._first] for agent in self.possible_agents}
        self._turns = dict.fromkeys(self.possible_agents, 0)
        self._invalid_moves = dict.fromkeys(self.possible_agents, 0)

    def step(self, action: Action | None) -> None:
        """Send the message of the agent whose turn it is; of one for whom the game is over, None.

        Args:
            action: Text, a message, or a `Response`.

        Raises:
            InvalidAction: If it is not an assistant message; the game stands as it was.
            ResetNeeded: If no game is running.
        """
        if self._must_not_act(action):
            return
        response = as_response(action)
        message = for_conversation(response.message, MESSAGE_TYPES)
        agent = self.agent_selection
        self._tell(agent)
        self._conversations[agent].append(message)
        self._print(agent, [message])
        move_of = None if self.form is None else self.form.move_of
        played, why = play_in_turn(self.game, message, move_of, is_cut_off=response.is_truncated)
        if why:
            self._add(agent, why)
        self._turns[agent] += 1
        self._invalid_moves[agent] = 0 if played.is_valid else self._invalid_moves[agent] + 1
        self._cumulative_rewards[agent] = 0.0
        self.rewards = {each: float(played.rewards.get(player, 0.0)) for each, player in self.players.items()}
        self._accumulate_rewards()
        self.infos[agent] = {}
        self._go_on()

    def _go_on(self) -> None:
        """Select who acts next, or let everybody leave."""
        turn = self.game.turn
        stop_condition = self._stop_condition(turn)
        if stop_condition is not None:
            for agent in self.agents:
                terminated, truncated = self.game.end_flags(self.players[agent])
                # A limit of this environment ends the game for all who are still in it.
                self.terminations[agent], self.truncations[agent] = terminated, truncated or not terminated
            self.infos = {agent: {**self._info(agent), "stop_condition": stop_condition} for agent in self.agents}
            self._deads_step_first()
        else:
            agent = self._agent_of(turn)
            self.agent_selection = agent
            self.infos[agent] = self._info(agent)
            legal = self.game.legal_moves(turn) if self._tell_legal_actions else None
            if legal is not None:
                self.infos[agent]["legal_actions"] = legal if self.form is None else self.form.answers_with(legal)
        if self.render_mode == "human":
            for agent in self.agents if stop_condition is not None else [self.agent_selection]:
                self._tell(agent)

    def _agent_of(self, player: Player) -> str:
        return next(agent for agent, each in self.players.items() if each == player)

    def _stop_condition(self, turn: Player | None) -> str | None:
        """Return what ends the game now, by the names of the chat environment; None if it goes on."""
        if turn is None:
            return "game_over" if any(self.game.end_flags(player)[0] for player in self.players.values()) else "game_truncated"
        if max(self._invalid_moves.values()) >= self._max_invalid_moves:
            return "too_many_invalid_moves"
        turns = sum(self._turns.values()) if self._shares_turns else self._turns[self._agent_of(turn)]
        return "max_turns_reached" if turns >= self._max_turns else None

    def _info(self, agent: str) -> dict[str, Any]:
        player = self.players[agent]
        return {"player": player, "game_info": self.game.info(player)}

    def observe(self, agent: str) -> Conversation:
        """Return an agent's conversation, up to date (see `ConversationAEC.observe`)."""
        if self._has_begun and agent in self.players:
            self._tell(agent)
        return super().observe(agent)

    def conversation(self, agent: str) -> list[Message]:
        """Return what an agent has been told and has said so far."""
        return self._conversations[agent]

    def _tell(self, agent: str) -> None:
        """Bring an agent's conversation up to date."""
        content = self.game.observe(self.players[agent])
        if content:
            self._add(agent, content)

    def _add(self, agent: str, content: Content) -> None:
        """Add what an agent is told to its conversation."""
        self._print(agent, [UserMessage(content)])
        said = self._conversations[agent]
        if said and isinstance(said[-1], UserMessage):
            content = join_contents([said.pop().content, content])
        said.append(UserMessage(content))

    def close(self) -> None:
        """Close the table."""
        self.game.close()


class SoloAEC(ConversationAEC):
    """A chat environment as a PettingZoo environment with one agent, ``player_0``. Made by `to_pettingzoo`."""

    def __init__(self, env: gym.Env[Any, Any], *, render_mode: str | None = None, name: str | None = None) -> None:
        """Take a chat environment, with any wrappers around it.

        Args:
            env: The environment.
            render_mode: ``"ansi"``, ``"human"`` or None.
            name: The environment's name; its id, or its class, without it.
        """
        self.env = env
        """The chat environment."""
        self._seat = seat_of(env)
        name = name or (type(env.unwrapped).__name__ if env.spec is None else env.spec.id)
        super().__init__({"player_0": env.action_space}, render_mode=render_mode, name=name, is_parallelizable=True)
        self._observation: list[Message] = []

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Begin an episode.

        Args:
            seed: Given to the chat environment.
            options: Those that `vfgym.ChatEnv.reset` knows are given to the chat environment. Others are ignored, as PettingZoo's
                own environments ignore what they do not know.
        """
        known = {name: value for name, value in (options or {}).items() if name in RESET_OPTIONS}
        self._observation, info = self.env.reset(seed=seed, options=known)
        self._begin()
        self.agent_selection = "player_0"
        self.infos["player_0"] = info
        self._print("player_0", self._observation)

    def step(self, action: Action | None) -> None:
        """Answer the conversation; once the episode is over, with None.

        Raises:
            InvalidAction: If it is not an assistant message; the episode stands as it was.
            ResetNeeded: If there is no episode to continue.
        """
        if self._must_not_act(action):
            return
        seen = self._observation.copy()
        self._observation, reward, terminated, truncated, info = self.env.step(action)
        if (terminated or truncated) and not cast(State, self._seat.state)["is_completed"]:  # a wrapper ended it, such as a `TimeLimit`
            scored = self._seat.truncate()
            reward, info = float(reward) + scored.reward, {**info, **scored.info}
        self._cumulative_rewards["player_0"] = 0.0
        self.rewards["player_0"] = float(reward)
        self.terminations["player_0"], self.truncations["player_0"] = terminated, truncated
        self.infos["player_0"] = info
        self._accumulate_rewards()
        self._print("player_0", new_since(seen, self._observation))

    def conversation(self, agent: str) -> list[Message]:
        """Return the conversation to answer; at the end all of it."""
        return self._observation

    def close(self) -> None:
        """Close the chat environment."""
        self.env.close()
