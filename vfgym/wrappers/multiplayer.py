"""`MultiplayerEnv`: one seat at a game for several players as a chat environment.

The other seats are taken by agents, or by the policy itself (self-play): then the environment shows the conversation of
whoever's turn it is.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, cast

import numpy as np

from vfgym.agents import Agent, Answering, as_agent, per_episode
from vfgym.calls import Ready, ReadyList, is_awaitable
from vfgym.concurrency import Steps, begin, eager
from vfgym.envs.chat import ChatEnv
from vfgym.envs.face import Fork, as_response
from vfgym.envs.game import GameEnv, GameSession, Turn
from vfgym.errors import ConfigurationError
from vfgym.messages import AssistantMessage, Message
from vfgym.responses import for_conversation
from vfgym.rubrics import Rubric
from vfgym.spaces import MessageSpace
from vfgym.state import State
from vfgym.wrappers.turn_based import Content, Played, Player, TurnBasedGame

Opponents: TypeAlias = Agent | str | Mapping[Player, Agent | str]
"""Who takes the other seats: an agent or its name for all of them, or one for each; ``"self"`` is the policy itself."""

SELF = "self"
"""The opponent that is the policy itself."""

NOTHING_NEW = "(nothing new)"
"""What a player is shown that has to move again and was told nothing."""


class OpponentSeat(Fork):
    """What an agent that plays for an opponent sees of the environment: its own random numbers, a state of its own."""

    def __init__(self, env: ChatEnv, game: TurnBasedGame, player: Player, seed: list[int]) -> None:
        """Sit `player` down.

        Args:
            env: The environment.
            game: The table.
            player: Whose seat it is.
            seed: Seed of the seat's random numbers.
        """
        super().__init__(env)
        self.player = player
        self._game = game
        self.np_random = np.random.default_rng(seed)
        self._own_state = env.state_type(
            sampling_args=None, tool_defs=[], trajectory=[], trajectory_id=f"{player}", input={}, completion=None, error=None
        )
        self.conversation: list[Message] = []
        """What this opponent was told, and what it answered."""

    @property
    def state(self) -> State:
        """The opponent's own state; nothing of the episode's is shown to it."""
        return self._own_state

    @property
    def action_space(self) -> MessageSpace:  # type: ignore[override]
        """Random moves of the game."""
        return MessageSpace(_MoveSampler(self._game, self.player))


class _MoveSampler:
    """Draws random moves of the player whose turn it is."""

    def __init__(self, game: TurnBasedGame, player: Player) -> None:
        self._game = game
        self._player = player

    def sample(self, rng: np.random.Generator) -> AssistantMessage:
        """Return one move."""
        return cast(AssistantMessage, self._game.sample_move(self._player, rng))


class MultiplayerEnv(GameEnv):
    """A chat environment around a game for several players. Subclass it and write `open_table`.

    The policy plays one seat. Before each of its turns the opponents make their moves; the reward of a step is what all of that
    earned the policy's seat, and what it earned everybody stands in ``state["rewards"]`` and, once the game is over, in
    ``info["rewards"]``. ``info["player"]`` tells who the policy plays.

    With ``opponents="self"`` the policy plays every seat: each observation is the conversation of the player whose turn it is
    (``info["player"]``), turns name their player in ``step["extras"]["player"]``, and the reward is still that of `seat`.
    """

    def __init__(
        self,
        *,
        seat: int | Literal["random"] = 0,
        opponents: Opponents = "random",
        tell_legal_actions: bool = True,
        **kwargs: Any,
    ) -> None:
        """Define an environment.

        Args:
            seat: Which player the policy is, in order from 0, or ``"random"`` for another one in each episode.
            opponents: Who takes the other seats: an agent or its name (``"random"``, ``"module:callable"``) for all of them, or a dict
                with one for each player; ``"self"`` lets the policy play every seat.
            tell_legal_actions: Whether ``info["legal_actions"]`` lists the moves that are legal, where the game knows them.
            **kwargs: Passed to `GameEnv`.

        Raises:
            ConfigurationError: If the seat or an opponent is none.
        """
        if seat != "random" and (not isinstance(seat, int) or isinstance(seat, bool) or seat < 0):
            raise ConfigurationError(f'seat must be the number of a player, from 0, or "random"; got {seat!r}')
        self.seat = seat
        self.is_self_play = isinstance(opponents, str) and opponents == SELF
        self._opponents: Agent | Mapping[Player, Agent] | None = None
        if isinstance(opponents, Mapping):
            if SELF in opponents.values():
                raise ConfigurationError('opponents="self" lets the policy play every seat: it cannot be said of some of them')
            self._opponents = {player: as_agent(agent) for player, agent in opponents.items()}
        elif not self.is_self_play:
            self._opponents = as_agent(opponents)
        self.tell_legal_actions = tell_legal_actions
        if self.is_self_play and kwargs.get("history") is not None:
            raise ConfigurationError("history cannot be limited in self-play: each player is shown its own conversation")
        has_own_rubric = kwargs.get("rubric") is not None
        super().__init__(**kwargs)
        if not has_own_rubric:
            self.add_rubric(Rubric(reward_without_a_move))

    @abstractmethod
    def open_table(self) -> TurnBasedGame:
        """Make a table at which the game is played."""

    def open_game(self) -> TurnBasedGame:
        """Make a table at which the game is played."""
        return self.open_table()

    def begin_game(self, game: Any, state: State, seed: int | None, options: Mapping[str, Any] | None) -> list[Message]:
        """Not called: `setup_state` begins games of several players, whose opponents may be awaited."""
        raise NotImplementedError

    def make_move(self, game: Any, message: Message, state: State) -> Turn:
        """Not called: `apply_action` makes moves, and those of opponents, who may be awaited."""
        raise NotImplementedError

    def _overrides(self, name: str) -> bool:
        if name == "get_prompt_messages" and type(self).get_prompt_messages is MultiplayerEnv.get_prompt_messages:
            return self.is_self_play or self.history is not None
        return super()._overrides(name)

    # How it is played

    @eager
    def setup_state(self, state: State) -> Steps[State]:
        """Begin a game, sit the opponents down, and let those move that come before the policy."""
        session = state.session
        if session is None:
            state.session = session = GameSession()
            session.game = yield from self._call(session, self.open_game)
        game: TurnBasedGame = session.game
        task = state["input"]
        seed = task.get("seed")
        yield from self._call(session, game.reset, seed, task.get("game_options"))
        state["rewards"], state["unemitted_reward"] = dict.fromkeys(game.players, 0.0), 0.0
        state["player"] = player = self._seated(game, state)
        state["conversations"] = {player: []}
        if not self.is_self_play:
            state["opponents"] = self._sit_down(game, player, state, seed)
            yield from self._let_opponents_move(state)
            prompt = [self._message((yield from self._call(session, game.observe, player)))]
        else:
            state["conversations"] = {each: [] for each in game.players}
            yield from self._tell_next(state)
            prompt = state["conversations"][game.turn if game.turn is not None else player]
        self._begin(state, prompt)
        if game.turn is None:
            state["turn"] = Turn([], 0.0, not game.was_truncated, game.was_truncated)
        return state

    def _seated(self, game: TurnBasedGame, state: State) -> Player:
        players = game.players
        if self.seat == "random":
            seed = state["input"].get("seed")
            # A game's seed decides everything, in rollouts too, which have no random numbers of a player.
            rng = state.rng if seed is None else np.random.default_rng([seed, len(players)])
            return players[int(rng.integers(len(players)))]
        if self.seat >= len(players):
            raise ConfigurationError(f"seat {self.seat} is none of the {len(players)} seats, which are numbered from 0")
        return players[self.seat]

    def _sit_down(self, game: TurnBasedGame, player: Player, state: State, seed: int | None) -> dict[Player, _Opponent]:
        others = [other for other in game.players if other != player]
        if isinstance(self._opponents, Mapping):
            missing = [other for other in others if other not in self._opponents]
            if missing:
                raise ConfigurationError(f"opponents names no agent for {', '.join(map(repr, missing))}; the players are {game.players}")
        entropy = int(state.rng.integers(2**63)) if seed is None else seed
        seated = {}
        for place, other in enumerate(game.players):
            if other in others:
                agent = self._opponents[other] if isinstance(self._opponents, Mapping) else cast(Agent, self._opponents)
                seat = OpponentSeat(self, game, other, [entropy, place])
                seated[other] = _Opponent(seat, agent)
        return seated

    def _let_opponents_move(self, state: State) -> Steps[None]:
        """Let opponents move until it is the policy's turn, or the game is over."""
        session, policy = state.session, state["player"]
        game: TurnBasedGame = session.game
        on_thread = self._belongs_on_thread(session)
        while (turn := game.turn) is not None and turn != policy:
            opponent = state["opponents"][turn]
            told = (yield session.run(game.observe, turn)) if on_thread else game.observe(turn)
            answer = opponent.answer(self._message(told), self._told(game, turn))
            if is_awaitable(answer):
                answer = yield answer
            message = opponent.take(answer)
            played: Played = (yield session.run(game.move, message)) if on_thread else game.move(message)
            if played.rewards:
                _add(state, played)

    def _message(self, told: Content) -> Message:
        return self.message_types["user"](told or NOTHING_NEW)

    def apply_action(self, message: Message, state: State) -> Any:
        """Make the policy's move, and the opponents' after it."""
        made = begin(self._moves(message, state))
        return None if made.__class__ is Ready else made  # nothing to await, which is faster to see

    def _moves(self, message: Message, state: State) -> Steps[None]:
        """Make the policy's move, and the opponents' after it."""
        session, player = state.session, state["player"]
        game: TurnBasedGame = session.game
        on_thread = (self.blocking or session.worker is not None) and self._belongs_on_thread(session)
        if self.is_self_play:
            state["trajectory"][-1]["extras"]["player"] = game.turn
            state["conversations"][game.turn].append(message)
        played: Played = (yield session.run(game.move, message)) if on_thread else game.move(message)
        if played.rewards:
            _add(state, played)
        if self.is_self_play:
            shown = yield from self._tell_next(state)
        else:
            if game.turn is not None and game.turn != player:
                yield from self._let_opponents_move(state)
            shown = self._message((yield session.run(game.observe, player)) if on_thread else game.observe(player))
        is_over, was_truncated = game.turn is None, game.was_truncated
        ended = is_over and not was_truncated, is_over and was_truncated
        # What opponents' moves earned before the policy's first one counts with that.
        earned = state["unemitted_reward"]
        if earned:
            state["unemitted_reward"] = 0.0
        self._take(Turn([shown], earned, *ended, game.info(player), played.is_valid), state)

    def _tell_next(self, state: State) -> Steps[Message]:
        """Tell whoever's turn it is in self-play (everybody, at the end), and return what that player (the policy's seat) is told."""
        session, conversations = state.session, state["conversations"]
        game: TurnBasedGame = session.game
        on_thread = self._belongs_on_thread(session)
        turn = game.turn
        for player in game.players if turn is None else (turn,):
            told = (yield session.run(game.observe, player)) if on_thread else game.observe(player)
            conversations[player].append(self._message(told))
        shown: Message = conversations[state["player"] if turn is None else turn][-1]
        return shown

    def get_prompt_messages(self, state: State) -> Any:
        """Return the conversation of whoever's turn it is."""
        if not self.is_self_play:
            return super().get_prompt_messages(state)
        turn = state.session.game.turn
        system = [self.message_types["system"](self.system_prompt)] if self.system_prompt else []
        return ReadyList([*system, *state["conversations"][state["player"] if turn is None else turn]])

    def render_completion(self, state: State) -> Any:
        """Set ``state["completion"]``; in self-play that of the policy's own seat, with its prompt."""
        if not self.is_self_play or "conversations" not in state:
            return super().render_completion(state)
        system = [self.message_types["system"](self.system_prompt)] if self.system_prompt else []
        first, *rest = state["conversations"][state["player"]] or [self.message_types["user"](NOTHING_NEW)]
        state["prompt"], state["completion"] = [*system, first], rest
        return Ready()

    # What is told

    def step_info(self, state: State) -> dict[str, Any]:
        """Tell who plays, the legal moves where they are known, and everybody's rewards at the end."""
        game: TurnBasedGame = state.session.game
        turn = game.turn
        player = turn if self.is_self_play and turn is not None else state["player"]
        told = {"player": player, "game_info": game.info(player)}
        if turn is None:
            told["rewards"] = dict(state["rewards"])
        elif self.tell_legal_actions:
            legal = game.legal_moves(player)
            if legal is not None:
                told["legal_actions"] = legal
        return told

    def _told(self, game: TurnBasedGame, player: Player) -> dict[str, Any]:
        """Return the info for an opponent."""
        told: dict[str, Any] = {"example_id": -1, "tools": [], "player": player, "game_info": game.info(player)}
        if self.tell_legal_actions:
            legal = game.legal_moves(player)
            if legal is not None:
                told["legal_actions"] = legal
        return told

    def random_action(self, state: State, rng: np.random.Generator) -> Message | None:
        """Return a random move of whoever's turn it is: a legal one where the game lets them be found."""
        game: TurnBasedGame = state.session.game
        return None if game.turn is None else game.sample_move(game.turn, rng)


def reward_without_a_move(state: State) -> float:
    """Return what a game earned the policy that was over before its first turn (the opponent folded, say); 0.0 for all others."""
    unemitted: float = state.get("unemitted_reward", 0.0)  # there is none where the game could not begin
    return unemitted


class _Opponent:
    """An agent at an opponent's seat, for one game."""

    __slots__ = ("_agent", "_answering", "_seat")

    def __init__(self, seat: OpponentSeat, agent: Agent) -> None:
        self._seat = seat
        self._agent = agent
        self._answering: Answering | None = None

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        # What answers is often a closure. A copy asks the agent for a new one.
        return None, {"_seat": self._seat, "_agent": self._agent, "_answering": None}

    def answer(self, told: Message, info: dict[str, Any]) -> Any:
        """Return the agent's answer to all that it was told; it may have to be awaited."""
        conversation = self._seat.conversation
        conversation.append(told)
        if self._answering is None:
            self._answering = per_episode(self._agent)(self._seat)
        return self._answering(conversation.copy(), info)

    def take(self, answer: Any) -> Message:
        """Return the message that an answer is, which the agent will see again."""
        message = for_conversation(as_response(answer).message, self._seat.definition.message_types)
        self._seat.conversation.append(message)
        return message


def _add(state: State, played: Played) -> None:
    rewards, policy = state["rewards"], state["player"]
    for player, reward in played.rewards.items():
        rewards[player] += reward
        if player == policy:
            state["unemitted_reward"] += reward
