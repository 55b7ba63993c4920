"""`MultiplayerEnv`: one seat at a game for several players as a chat environment.

The other seats are taken by agents, or by the policy itself (self-play): then the environment shows the conversation of
whoever's turn it is.
"""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, cast

import numpy as np

from vfgym.agents.base import Agent
from vfgym.agents.loading import agent_name, as_agent
from vfgym.agents.random import RandomAgent
from vfgym.aio.background import may_wait, wait
from vfgym.aio.bridge import bridge
from vfgym.aio.steps import Steps, begin_to_end, eager
from vfgym.calls import Ready, ReadyList, is_awaitable
from vfgym.codecs import ActionNotFound
from vfgym.errors import ConfigurationError, Error
from vfgym.messages import Content, Message, join_contents
from vfgym.output.pictures import Picture
from vfgym.overrides import inline_hook
from vfgym.rubrics import Rubric
from vfgym.spaces import Sampler
from vfgym.state import State
from vfgym.wrappers.games.opening_moves import OpeningMoves
from vfgym.wrappers.games.opponents import Opponent, OpponentSeat, PlayerView, native_observation
from vfgym.wrappers.games.session import GameSessionEnv
from vfgym.wrappers.games.turn_based import Played, Player, TurnBasedGame, check_begun, check_turn, no_outcome, play_in_turn
from vfgym.wrappers.games.turns import GameState, Turn, game_reward

Opponents: TypeAlias = Agent | str | Mapping[Player, Agent | str]
"""Who takes the other seats: an agent or its name for all of them, or one for each; ``"self"`` is the policy itself."""

SELF = "self"
"""The opponent that is the policy itself."""

CHOSEN_PLAYER = "chosen_player"
"""The column of a game's task that holds the reset option ``player``."""

NOTHING_NEW = "(nothing new)"
"""What a player is shown that has to move again and was told nothing."""


@dataclass
class TableState(GameState):
    """What a game for several players changes at every move."""

    player: Player = None
    """Whom the policy plays."""
    rewards: dict[Player, float] = field(default_factory=dict)
    """What the episode earned everybody so far."""
    earned: dict[Player, float] = field(default_factory=dict)
    """What was earned since the policy's last turn."""
    opponents: dict[Player, Opponent] = field(default_factory=dict)
    game_infos: dict[Player, dict[str, Any]] = field(default_factory=dict)
    legal_actions: list[str] | None = None
    """Moves that are legal now; None where they are not known."""


def reward_without_a_move(state: State) -> float:
    """Return what a game earned the policy that was over before its first turn (the opponent folded, say); 0.0 for all others."""
    table: TableState | None = state.game_state  # none where the game could not begin
    return 0.0 if table is None else table.earned.get(table.player, 0.0)


class MultiplayerEnv(GameSessionEnv):
    """A chat environment around a game for several players. Subclass it and write `open_table`.

    The policy plays one seat. Before each of its turns the opponents make their moves; the reward of a step is what all of that
    earned the policy's seat, and what it earned everybody stands in ``step["extras"]["rewards"]``. The sums are
    ``state["rewards"]`` and, once the episode is over, ``info["rewards"]``. ``info["player"]`` tells who the policy plays.

    With ``opponents="self"`` the policy plays every seat: each observation is the conversation of the player whose turn it is
    (``info["player"]``), and turns name their player in ``step["extras"]["player"]``. The reward is still that of `seat`, whoever
    moved.

    An opponent that finds no valid move `max_invalid_moves` times in a row ends the episode with an error, as does one whose agent
    raises an `Error`: whatever it is (an overlong prompt, too), it is recorded as one of the opponent.

    A subclass whose players put their moves into a form (tags, say) overrides `move_of` and `message_of`.
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
                with one for each player (a number may be text, as JSON has it); ``"self"`` lets the policy play every seat.
            tell_legal_actions: Whether ``info["legal_actions"]`` lists the moves that are legal, where the game knows them.
            **kwargs: Passed to `GameSessionEnv`.

        Raises:
            ConfigurationError: If the seat or an opponent is none.
        """
        if seat != "random" and (not isinstance(seat, int) or isinstance(seat, bool) or seat < 0):
            raise ConfigurationError(f'seat must be the number of a player, from 0, or "random"; got {seat!r}')
        self.seat = seat
        self.is_self_play = isinstance(opponents, str) and opponents == SELF
        self._opponents: Agent | Mapping[str, Agent] | None = None
        if isinstance(opponents, Mapping):
            if SELF in opponents.values():
                raise ConfigurationError('opponents="self" lets the policy play every seat: it cannot be said of some of them')
            self._opponents = {str(player): as_agent(agent) for player, agent in opponents.items()}
        elif not self.is_self_play:
            self._opponents = as_agent(opponents)
        agents = self._opponents.values() if isinstance(self._opponents, Mapping) else (self._opponents,)
        self.opponents_are_random = all(type(agent) is RandomAgent for agent in agents)
        """Whether all opponents are the library's own random agents, which wait for nothing."""
        self.tell_legal_actions = tell_legal_actions
        self.has_form = type(self).move_of is not MultiplayerEnv.move_of
        """Whether players put their moves into a form, so that `move_of` is asked for the move in each message."""
        for name in ("history", "images", "max_prompt_tokens"):
            if self.is_self_play and kwargs.get(name) is not None:
                raise ConfigurationError(f"{name} cannot be limited in self-play: each player is shown its own conversation")
        if kwargs.get("rubric") is None:
            kwargs["rubric"] = rubric = Rubric(reward_without_a_move)
            rubric.add_step_reward_func(game_reward)
        super().__init__(**kwargs)

    @abstractmethod
    def open_table(self) -> TurnBasedGame:
        """Make a table at which the game is played."""

    def move_of(self, message: Message) -> Message:
        """Return what of a player's message is handed to the game, whoever plays; by default the message.

        It reads the messages of the policy, of opponents (but for ``"random"``, whose answers are moves) and of `to_pettingzoo`'s agents.
        What it finds is played, also in a message that was cut off: a form says itself whether a move in it is whole.

        Raises:
            ActionNotFound: If there is no move in it, with what the player is told. The game does not get it then: it is an invalid one.
        """
        return message

    def why_no_action(self, message: Message, state: State) -> str | None:
        """Say why there is no move in an answer (see `ChatEnv.why_no_action`). Whether the game takes one, only the table tells."""
        try:
            self.move_of(message)
        except ActionNotFound as error:
            return str(error)
        return None

    def message_of(self, move: Message) -> Message:
        """Return a message in which `move_of` finds this move.

        Random agents and samples of action spaces answer with it, and ``info["legal_actions"]`` lists its text.
        """
        return move

    def answers_with(self, moves: list[str]) -> list[str]:
        """Return the texts of the messages with these moves (`message_of`); the moves themselves where not all messages are text."""
        assistant = self.message_types["assistant"]
        answers = [self.message_of(assistant(move))["content"] for move in moves]
        return answers if all(isinstance(answer, str) for answer in answers) else moves

    def shared_parts(self) -> dict[str, Any]:
        """Return what its episodes share, the agents at the other seats among it."""
        agents = self._opponents if isinstance(self._opponents, Mapping) else {}
        return {**super().shared_parts(), **{f"opponent {player}": agent for player, agent in agents.items()}}

    def open_game(self) -> TurnBasedGame:
        """Make a table at which the game is played.

        Raises:
            ConfigurationError: If `open_table` returns none.
        """
        table: object = self.open_table()
        if not isinstance(table, TurnBasedGame):
            raise ConfigurationError(f"open_table of {type(self).__name__} must return a vfgym.TurnBasedGame, got {type(table).__name__}")
        return table

    def replaced_hooks(self) -> Set[str]:
        """Return which hooks the machine does not do inline (see `ChatEnv.replaced_hooks`): prompts too, in self-play."""
        replaced = super().replaced_hooks()
        return replaced | {"get_prompt_messages"} if self.is_self_play else replaced

    # How it is played

    def _choose_player(self, player: Any) -> dict[str, Any]:
        """Return what a task says of the reset option ``player``."""
        return {CHOSEN_PLAYER: player}

    def find_players(self) -> list[Player]:
        """Return everybody who plays, in order of their seats."""
        table = self.open_game()
        try:
            if not table.players:  # some games know their players only when they have begun
                table.reset(0, None)
            return list(table.players)
        finally:
            table.close()

    def check_players(self, players: Sequence[Player], policy: Player = None) -> None:
        """Check that the seat and the opponents fit a game. Subclasses that know who plays call it when they are made.

        Args:
            players: Everybody who plays, in order of their seats.
            policy: Whom the policy plays; the one at its seat by default.

        Raises:
            ConfigurationError: If there is no such seat, or an opponent is missing or is none of the players.
        """
        if self.seat != "random" and self.seat >= len(players):
            raise ConfigurationError(f"seat {self.seat} is none of the {len(players)} seats, which are numbered from 0")
        if not isinstance(self._opponents, Mapping):
            return
        names = [str(player) for player in players]
        if policy is not None:
            policy = str(policy)
        elif self.seat != "random":
            policy = names[self.seat]
        missing = [name for name in names if name != policy and name not in self._opponents]
        if missing:
            raise ConfigurationError(f"opponents names no agent for {', '.join(missing)}; the players are {', '.join(names)}")
        unknown = [name for name in self._opponents if name not in names]
        if unknown:
            raise ConfigurationError(
                f"opponents names agents for {', '.join(unknown)}, who do not play; the players are {', '.join(names)}"
            )

    @eager
    def setup_state(self, state: State) -> Steps[State]:
        """Begin a game, sit the opponents down, and let those move that come before the policy."""
        return self._begin_alone_at_first(self._begin_steps(state))

    def _begin_steps(self, state: State) -> Steps[State]:
        session = yield from self._session_of(state)
        game: TurnBasedGame = session.game
        task = state["input"]
        seed = task.get("seed")
        yield from self._call(session, game.reset, seed, task.get("game_options"))
        chosen = self._chosen_player(game, task)
        self.check_players(game.players, chosen)
        check_begun(game)
        player = self._seat_players(game, state) if chosen is None else chosen
        table = TableState(player=player, rewards=dict.fromkeys(game.players, 0.0), earned=dict.fromkeys(game.players, 0.0))
        state.begin_game(table)
        if self._limits.drop_moves:
            rules = yield from self._call(session, game.rules, player)
            if rules is not None:
                state["rules"] = rules
        if self.is_self_play:
            state["conversations"] = {each: [] for each in game.players}
            self._tell(state, *(yield from self._call(session, self._look_around, game)))
            prompt = state["conversations"][player if game.turn is None else game.turn]
        else:
            if len(game.players) > 1:  # alone one draws nothing
                entropy = seed if seed is not None else int(state.rng.integers(2**63))
                if self.opponents_are_random:
                    table.opponents = self._take_seat(game, player, entropy)
                else:
                    table.opponents = yield from _call_with_wait(self._take_seat, game, player, entropy)
            view = yield from self._call(session, self._look, game, table)
            content, info, legal = yield from self._let_opponents_move(view, state)
            prompt = [self._message(content)]
            table.game_infos, table.legal_actions = {player: info}, legal
        self._begin(state, prompt)
        if game.turn is None:
            table.turn = Turn([], 0.0, *game.end_flags(player))
        return state

    def _chosen_player(self, game: TurnBasedGame, task: Mapping[str, Any]) -> Player:
        """Return whom the reset option ``player`` names, or numbers; None without it.

        Raises:
            ConfigurationError: If nobody is called so, or the policy plays everybody.
        """
        chosen, players = task.get(CHOSEN_PLAYER), game.players
        if chosen is None:
            return None
        if self.is_self_play:
            raise ConfigurationError("in self-play the policy plays every seat: there is no 'player' to choose")
        for number, player in enumerate(players):
            if chosen == player or (chosen == number and chosen not in players):
                return player
        names = ", ".join(map(repr, players))
        raise ConfigurationError(f"the reset option 'player' must be one of the players ({names}) or a number, got {chosen!r}")

    def _seat_players(self, game: TurnBasedGame, state: State) -> Player:
        players = game.players
        if self.seat != "random":
            return players[self.seat]
        seed = state["input"].get("seed")
        # A game's seed decides everything, in rollouts too, which have no random numbers of a player.
        rng = state.rng if seed is None else np.random.default_rng([seed, len(players)])
        return players[int(rng.integers(len(players)))]

    def _take_seat(self, game: TurnBasedGame, player: Player, entropy: int) -> dict[Player, Opponent]:
        seated = {}
        for place, other in enumerate(game.players):
            if other != player:
                agent = self._opponents[str(other)] if isinstance(self._opponents, Mapping) else cast(Agent, self._opponents)
                # Random moves need no form, and not every form (a parser of one's own) can be put around a move.
                message_of = self.message_of if self.has_form and type(agent) is not RandomAgent else None
                seated[other] = Opponent(OpponentSeat(self, game, other, [entropy, place], message_of), agent)
        return seated

    def apply_action(self, message: Message, state: State) -> Any:
        """Make the policy's move, and the opponents' after it."""
        session = state.session
        if self.is_self_play:
            steps = self._move_in_self_play(message, state)
        elif (self.blocking or session.worker is not None) and self._belongs_on_thread(session):
            steps = self._play_on_thread(message, state)
        else:
            game: TurnBasedGame = session.game
            table: TableState = state.game_state
            rewards, is_valid, view = self._play(game, message, table, is_cut_off=state.is_cut_off)
            if rewards:
                _add(state, rewards)
            turn = game.turn
            if turn is None or turn == table.player:
                self._conclude(is_valid, view, state)
                return None
            steps = self._go_on(is_valid, view, state)
        return begin_to_end(steps)

    def _play_on_thread(self, message: Message, state: State) -> Steps[None]:
        """Make the policy's move on the table's thread, and the opponents' after it."""
        session = state.session
        rewards, is_valid, view = yield session.run(self._play, session.game, message, state.game_state, False, state.is_cut_off)
        if rewards:
            _add(state, rewards)
        yield from self._go_on(is_valid, view, state)

    def _go_on(self, is_valid: bool, view: PlayerView, state: State) -> Steps[None]:
        """Let the opponents move, and conclude the turn of the policy's move."""
        view = yield from self._let_opponents_move(view, state)
        self._conclude(is_valid, view, state)

    def _conclude(self, is_valid: bool, view: PlayerView, state: State) -> None:
        """Conclude the turn of a move of the policy with what it is told then."""
        table: TableState = state.game_state
        content, info, legal = view
        table.game_infos = {table.player: info}
        table.legal_actions = legal
        self._record(table.player, is_valid, self._message(content), info, state)

    def _let_opponents_move(self, view: PlayerView, state: State) -> Steps[PlayerView]:
        """Let opponents move until it is the policy's turn, or the game is over.

        Args:
            view: What the table tells the player whose turn it is.
            state: The episode's state.

        Returns:
            What it tells the policy then.

        Raises:
            Error: If an opponent cannot answer, or finds no valid move for too long.
        """
        session = state.session
        table: TableState = state.game_state
        policy, game = table.player, session.game
        on_thread = self._belongs_on_thread(session)
        while (turn := game.turn) is not None and turn != policy:
            opponent: Opponent = table.opponents[turn]
            prompt = self._message(view[0])
            try:
                if on_thread and opponent.answers_with_moves:
                    answer = yield session.run(opponent.answer, prompt, view)
                else:
                    if opponent.never_waits or may_wait():
                        answer = opponent.answer(prompt, view)
                    else:
                        answer = yield bridge(opponent.answer, prompt, view)  # see `_call_with_wait`
                    if is_awaitable(answer):
                        answer = yield answer
                message = opponent.take(answer)
            except Error as error:
                raise opponent.failure(error) from error
            except Exception as error:
                error.add_note(f"The opponent at the seat of {turn!r} raised it.")
                raise
            if on_thread:
                rewards, is_valid, view = yield session.run(
                    self._play, game, message, table, opponent.answers_with_moves, opponent.is_cut_off
                )
            else:
                rewards, is_valid, view = self._play(game, message, table, opponent.answers_with_moves, opponent.is_cut_off)
            if is_valid:
                opponent.invalid_moves = 0
            else:
                opponent.invalid_moves += 1
                # The game went on without it, or ended: nobody wins by what was no move.
                if opponent.invalid_moves >= self.max_invalid_moves or game.turn != turn:
                    answers = "1 answer" if opponent.invalid_moves == 1 else f"{opponent.invalid_moves} answers"
                    raise Error(f"the opponent at the seat of {turn!r} found no valid move in {answers}")
            if rewards:
                _add(state, rewards)
        return view

    def _move_in_self_play(self, message: Message, state: State) -> Steps[None]:
        """Make the move of whoever's turn it is."""
        session = state.session
        game: TurnBasedGame = session.game
        mover = game.turn
        state["conversations"][mover].append(message)
        played, why = yield from self._call(session, self._take_turn, game, message, state.is_cut_off)
        try:
            rewards, is_valid = played.rewards, played.is_valid
        except AttributeError:
            raise no_outcome(game, played) from None
        if rewards:
            _add(state, rewards)
        try:
            contents, infos, legal = yield from self._call(session, self._look_around, game)
            if why:
                contents[mover] = _first(why, contents[mover])
            prompt = self._tell(state, contents, infos, legal)
        except KeyError:
            check_turn(game)
            raise
        self._record(mover, is_valid, prompt, infos[mover], state)

    def _record(self, mover: Player, is_valid: bool, prompt: Message, info: dict[str, Any], state: State) -> None:
        """Note what came of a turn: what the policy is shown, and what all moves until its next turn earned everybody."""
        game: TurnBasedGame = state.session.game
        # What opponents' moves earned before the policy's first one counts with that.
        table: TableState = state.game_state
        earned = table.earned
        reward = earned[table.player]
        if game.turn is None:
            turn = Turn([prompt], reward, *game.end_flags(table.player), info)
        else:
            turn = Turn([prompt], reward, False, False, info)
        turn.is_valid = is_valid
        self._take(turn, state)
        extras = state["trajectory"][-1]["extras"]
        extras["player"], extras["rewards"] = mover, earned
        if self.is_self_play:
            extras["self_play"] = True
        table.earned = dict.fromkeys(game.players, 0.0)

    def draw_picture(self, game: TurnBasedGame) -> Picture | None:
        """Return the table's picture of itself; None where it has none."""
        return game.render_picture()

    # What the table says. Everything that is asked of it stands here, since a blocking table is only called on its thread.

    def _play(
        self, game: TurnBasedGame, message: Message, table: TableState, is_move: bool = False, is_cut_off: bool = False
    ) -> tuple[Mapping[Player, float], bool, PlayerView]:
        """Make a move. Return what it earned whom, whether it was valid, and what is told to whoever is next.

        Args:
            game: The table.
            message: The message of the player whose turn it is.
            table: How the game stands.
            is_move: Whether the message is a move without the form that this environment has.
            is_cut_off: Whether it was cut off by the limit of its length.
        """
        played, why = (game.move(message), "") if is_move else self._take_turn(game, message, is_cut_off)
        if why:
            content, info, legal = self._look(game, table)
            return played.rewards, False, (_first(why, content), info, legal)
        try:
            rewards, is_valid = played.rewards, played.is_valid
        except AttributeError:
            raise no_outcome(game, played) from None
        return rewards, is_valid, self._look(game, table)

    def _take_turn(self, game: TurnBasedGame, message: Message, is_cut_off: bool) -> tuple[Played, str]:
        return play_in_turn(game, message, self.move_of if self.has_form else None, is_cut_off=is_cut_off)

    def _look(self, game: TurnBasedGame, table: TableState) -> PlayerView:
        """Return what the table tells whoever is next: the policy, where the game is over."""
        player, policy = game.turn, table.player
        if player is None:
            return game.observe(policy), game.info(policy), None
        if player != policy:
            try:
                is_random = table.opponents[player].answers_with_moves
            except KeyError:
                check_turn(game)
                raise
            if is_random:  # it draws its moves from the table itself
                return game.observe(player), {}, None
        content, info = game.observe(player), game.info(player)
        if not self.tell_legal_actions:
            return content, info, None
        legal = game.legal_moves(player)
        return content, info, legal if legal is None or not self.has_form else self.answers_with(legal)

    def _look_around(self, game: TurnBasedGame) -> tuple[dict[Player, Content], dict[Player, dict[str, Any]], list[str] | None]:
        """Return what the table tells whoever's turn it is (everybody, at the end), all infos, and the legal moves."""
        turn = game.turn
        contents = {player: game.observe(player) for player in (game.players if turn is None else (turn,))}
        infos = {player: game.info(player) for player in game.players}
        legal = game.legal_moves(turn) if self.tell_legal_actions and turn is not None else None
        return contents, infos, legal if legal is None or not self.has_form else self.answers_with(legal)

    def _tell(
        self, state: State, contents: Mapping[Player, Content], infos: dict[Player, dict[str, Any]], legal_actions: list[str] | None
    ) -> Message:
        """Write what `_look_around` saw into the conversations of self-play, and return what is shown next."""
        conversations = state["conversations"]
        for player, content in contents.items():
            conversations[player].append(self._message(content))
        table: TableState = state.game_state
        table.game_infos, table.legal_actions = infos, legal_actions
        turn = state.session.game.turn
        prompt: Message = conversations[table.player if turn is None else turn][-1]
        return prompt

    def _message(self, content: Content) -> Message:
        if type(content) is str:
            return self.message_types["user"]._of({"role": "user", "content": content or NOTHING_NEW})
        return self.message_types["user"](content or NOTHING_NEW)

    # What is shown

    @inline_hook
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

    def step_info(self, state: State) -> dict[str, Any]:
        """Tell who plays, the legal moves where they are known, and everybody's rewards at the end."""
        turn = state.session.game.turn
        table: TableState = state.game_state
        is_over = turn is None or state["is_completed"]
        player = turn if self.is_self_play and not is_over else table.player
        info: dict[str, Any] = {"player": player, "game_info": {**table.game_infos[player]}}
        info |= native_observation(state.session.game, player)
        if is_over:
            info["rewards"] = dict(table.rewards)
        elif table.legal_actions is not None:
            info["legal_actions"] = [*table.legal_actions]
        return info

    @functools.cached_property
    def _opening_moves(self) -> OpeningMoves:
        return OpeningMoves(self)

    def action_sampler(self) -> Sampler:
        """Sample moves that may begin a game."""
        return self._opening_moves

    def _close(self) -> Steps[None]:
        self._opening_moves.close()
        yield from super()._close()

    def resample_hidden(self, state: State, rng: np.random.Generator) -> None:
        """Let the game deal anew what is hidden from whoever answers next; everybody else has seen nothing yet of what is so now."""
        game: TurnBasedGame = state.session.game
        table: TableState = state.game_state
        player = game.turn if self.is_self_play else table.player
        game.resample_hidden(player, rng)
        for opponent in table.opponents.values():
            opponent.forget()
        for other, conversation in state.get("conversations", {}).items():
            if other != player:
                conversation.clear()

    _makes_moves = ("apply_action", "open_game", "open_table")
    _game_rewards = (game_reward, reward_without_a_move)

    def who_plays(self, state: State) -> dict[Player, str | None]:
        """Return everybody who plays, in order of their seats, with the name of the agent at each; None for the policy."""
        players, policy, agents = state.session.game.players, cast(TableState, state.game_state).player, self._opponents
        if agents is None:
            return dict.fromkeys(players)
        names = {player: agents[str(player)] if isinstance(agents, Mapping) else agents for player in players if player != policy}
        return {player: agent_name(names[player]) if player in names else None for player in players}

    def listed_moves(self, state: State) -> list[str]:
        """Return the legal moves of whoever's turn it is, as the table lists them."""
        return list(cast(TableState, state.game_state).legal_actions or ())

    def describe_moves(self, state: State) -> str:
        """Return what whoever's turn it is may play, in the words of the table's rules."""
        game: TurnBasedGame = state.session.game
        return "" if game.turn is None else self._ask_table(state, game.describe_moves, game.turn)

    def rules_of(self, state: State) -> Content | None:
        """Return the rules as the table tells them to whoever's turn it is."""
        game: TurnBasedGame = state.session.game
        return None if game.turn is None else self._ask_table(state, game.rules, game.turn)

    def _ask_table(self, state: State, func: Callable[..., Any], *args: Any) -> Any:
        """Call a method of the table, on its thread where it has one."""
        session = state.session
        return func(*args) if session.worker is None else wait(session.run(func, *args))

    def random_action(self, state: State, rng: np.random.Generator) -> Message | None:
        """Return a random move of whoever's turn it is: a legal one where the game lets them be found."""
        session = state.session
        game: TurnBasedGame = session.game
        if game.turn is None:
            return None
        return self.message_of(self._ask_table(state, game.sample_move, game.turn, rng))


def _first(why: str, content: Content) -> Content:
    """Return what a player is told of its message, before what the table tells it."""
    return join_contents([why, content]) if content else why


def _add(state: State, rewards: Mapping[Player, float]) -> None:
    """Note what a move earned."""
    sums, earned = state.game_state.rewards, state.game_state.earned
    try:
        for player, reward in rewards.items():
            value = float(reward)
            sums[player] += value
            earned[player] += value
    except (AttributeError, KeyError, TypeError, ValueError):
        players = ", ".join(map(repr, sums))
        raise ValueError(
            f"the rewards of a move must be a dict of numbers, by player; the players are {players}; got {rewards!r}"
        ) from None


def _call_with_wait(func: Callable[..., Any], *args: Any) -> Steps[Any]:
    """Call an agent's plain code, which may have to `wait`: one that looks ahead plays in an environment of its own."""
    if may_wait():
        return func(*args)
    return (yield bridge(func, *args))
