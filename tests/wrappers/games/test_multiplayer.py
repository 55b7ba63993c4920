"""`MultiplayerEnv`: one seat at a game for several players, with agents or the policy itself at the others."""

from __future__ import annotations

import asyncio
import copy
import itertools
import pickle
import threading
from typing import Any

import pytest
from gymnasium.utils.env_checker import check_env, data_equivalence

import vfgym
from tests.wrappers.games.nim import Nim, NimEnv
from vfgym.aio.background import run_to_end
from vfgym.calls import Ready
from vfgym.codecs import ActionNotFound
from vfgym.errors import ConfigurationError, Error, InfraError, InvalidModelResponseError, ModelError, OverlongPromptError
from vfgym.messages import AssistantMessage, Message, Response, content_text
from vfgym.testing import ScriptedClient, check_environment
from vfgym.wrappers.games.multiplayer import MultiplayerEnv
from vfgym.wrappers.games.turn_based import Played, Player, TurnBasedGame
from vfgym.wrappers.pettingzoo import to_pettingzoo


def takes_one(observation: list[Any], info: dict[str, Any]) -> str:
    return "1"


def winning(observation: list[Any], info: dict[str, Any]) -> str:
    """Leave a multiple of four."""
    left = int([word for word in observation[-1].content.split() if word.isdigit()][-1])
    return str(left % 4 or 1)


def play(env: vfgym.ChatEnv, answers: list[Any], seed: int | None = 0, **options: Any) -> list[Any]:
    outcomes: list[Any] = [env.reset(seed=seed, options=options or None)]
    for answer in answers:
        outcomes.append(env.step(answer))
        if outcomes[-1].terminated or outcomes[-1].truncated:
            break
    return outcomes


def test_the_policy_sees_its_own_seat_and_what_the_opponents_did_since() -> None:
    env = NimEnv(sticks=6, opponents=takes_one)
    (first, info), *outcomes = play(env, ["1", "1", "1"])
    assert [message.content for message in first] == ["You are player 0. There are 6 sticks."]
    assert info["player"] == 0
    assert info["legal_actions"] == ["1", "2", "3"]
    assert [message.content for message in outcomes[1].observation] == [
        "You are player 0. There are 6 sticks.",
        "1",
        "Player 1 takes 1, 4 are left.",
        "1",
        "Player 1 takes 1, 2 are left.",
    ]
    assert outcomes[-1].observation[-1].content == "Player 1 takes 1, 0 are left.\nPlayer 1 wins."
    assert [outcome.reward for outcome in outcomes] == [0.0, 0.0, -1.0]
    assert outcomes[-1].terminated
    assert outcomes[-1].info["rewards"] == {0: -1.0, 1: 1.0}
    assert outcomes[-1].info["stop_condition"] == "game_over"


def test_opponents_before_the_policys_seat_move_first() -> None:
    env = NimEnv(num_players=3, sticks=6, seat=1, opponents=takes_one)
    observation, info = env.reset(seed=0)
    assert observation[-1].content == "You are player 1. There are 6 sticks.\nPlayer 0 takes 1, 5 are left."
    assert info["player"] == 1
    outcome = env.step("2")
    assert outcome.observation[-1].content == "Player 2 takes 1, 2 are left.\nPlayer 0 takes 1, 1 are left."
    assert env.step("1").reward == 1.0


def test_each_opponent_can_be_another_agent_and_each_sees_its_own_conversation() -> None:
    seen: dict[str, list[Any]] = {"a": [], "b": []}

    def watching(name: str) -> Any:
        def answer(observation: list[Any], info: dict[str, Any]) -> str:
            seen[name].append(([message.content for message in observation], info["player"]))
            return "1"

        return answer

    env = NimEnv(num_players=3, sticks=8, opponents={1: watching("a"), 2: watching("b")})
    play(env, ["1", "1", "1"])
    assert seen["a"][0] == (["You are player 1. There are 8 sticks.\nPlayer 0 takes 1, 7 are left."], 1)
    assert seen["b"][1] == (
        [
            "You are player 2. There are 8 sticks.\nPlayer 0 takes 1, 7 are left.\nPlayer 1 takes 1, 6 are left.",
            "1",
            "Player 0 takes 1, 4 are left.\nPlayer 1 takes 1, 3 are left.",
        ],
        2,
    )


class Sampling:
    """Answers with samples of its seat's action space, seeded with `seed` where there is one. Keeps what it answered."""

    def __init__(self, seed: int | None = None) -> None:
        self.seed = seed
        self.said: list[str] = []

    def for_episode(self, env: Any) -> Any:
        if self.seed is not None:
            env.action_space.seed(self.seed)

        def answer(observation: list[Any], info: dict[str, Any]) -> Message:
            message = env.action_space.sample()
            self.said.append(message.content)
            return message

        return answer


@pytest.mark.parametrize("seed", [None, 7])
def test_samples_of_an_opponents_action_space_follow_from_seeds(seed: int | None) -> None:
    def said(reset_seed: int, seed: int | None) -> list[str]:
        agent = Sampling(seed)
        env = NimEnv(sticks=40, opponents=agent)
        env.reset(seed=reset_seed)
        for _ in range(8):
            env.step("1")
        return agent.said

    assert said(0, seed) == said(0, seed)
    assert len(set(said(0, seed))) > 1
    assert (said(0, seed) == said(1, seed)) == (seed is not None)
    assert said(0, seed) != said(0, 8)


@pytest.mark.parametrize("kind", ["an agent that samples", "the random agent"])
def test_every_seats_random_opponent_has_a_stream_of_its_own(kind: str) -> None:
    """Seats that drew from one stream, or from equal ones, would play the same moves."""

    class Draws(Nim):
        def sample_move(self, player: Player, rng: Any) -> Message:
            draws.setdefault(player, []).append(int(rng.bit_generator.random_raw()))
            return AssistantMessage("1")

    class Table(NimEnv):
        def open_table(self) -> Nim:
            return Draws(self.num_players, self.sticks)

    def drawn(seed: int, seat: int) -> dict[Player, list[int]]:
        draws.clear()
        env = Table(num_players=4, sticks=32, seat=seat, opponents="random" if kind == "the random agent" else Sampling())
        play(env, ["1"] * 5, seed=seed)
        return draws.copy()

    draws: dict[Player, list[int]] = {}
    all_draws = [drawn(seed, seat=0) for seed in (0, 1)]
    values = [value for each in all_draws for stream in each.values() for value in stream]
    assert len(all_draws[0]) == len(all_draws[1]) == 3
    assert len(set(values)) == len(values) >= 2 * 3 * 5
    assert drawn(0, seat=0) == all_draws[0]
    same_seats = drawn(0, seat=1)
    assert all(same_seats[player][:5] == all_draws[0][player][:5] for player in (2, 3)), "a stream is the seat's, whoever sits beside it"


def test_opponents_may_be_async_and_may_answer_with_responses() -> None:
    async def answer(observation: list[Any], info: dict[str, Any]) -> Response:
        return Response("", 0, "", None, AssistantMessage("1"))

    plain, later = NimEnv(sticks=6, opponents=takes_one), NimEnv(sticks=6, opponents=answer)
    assert data_equivalence(play(plain, ["1"] * 3), play(later, ["1"] * 3))


def test_a_model_can_be_the_opponent() -> None:
    from vfgym.model_server import ModelServer

    with ModelServer(models={"greedy": lambda request: "3"}) as server:
        model = vfgym.ModelAgent(vfgym.ClientConfig(api_base_url=server.openai_url, api_key="none"), "greedy")
        env = NimEnv(sticks=7, opponents=model)
        outcomes = play(env, ["1", "3"])
        env.close()
    assert outcomes[1].observation[-1].content == "Player 1 takes 3, 3 are left."
    assert outcomes[-1].reward == 1.0


class Patience(Error, TimeoutError):
    """An `Error` that is a timeout, too."""


def failing(error: Exception, is_async: bool) -> Any:
    """Return an opponent that raises `error`."""

    def plain(observation: list[Any], info: dict[str, Any]) -> str:
        raise error

    async def later(observation: list[Any], info: dict[str, Any]) -> str:
        raise error

    return later if is_async else plain


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("blocking", [False, True])
@pytest.mark.parametrize("kind", [OverlongPromptError, Patience, ModelError, InvalidModelResponseError, InfraError, ConfigurationError])
async def test_an_error_of_an_opponent_is_none_of_the_policy(kind: type[Error], blocking: bool, is_async: bool) -> None:
    """It names the seat. What may go away by itself stays so, for runs that repeat rollouts; nothing truncates the policy."""
    error = kind("out of order")
    env = NimEnv(sticks=7, opponents=failing(error, is_async), blocking=blocking)
    await env.areset(seed=0)
    outcome = await env.astep("1")
    assert (outcome.terminated, outcome.truncated, outcome.info["stop_condition"]) == (True, False, "has_error")
    raised = env.state["error"]
    assert str(raised) == "the opponent at the seat of 1: out of order"
    assert raised.__cause__ is error
    assert type(raised) is (InfraError if issubclass(kind, ModelError | InfraError) else Error)
    assert not env.state["is_truncated"]
    await env.aclose()


def test_an_error_of_an_opponent_who_begins_keeps_the_game_from_beginning() -> None:
    env = NimEnv(seat=1, opponents=failing(OverlongPromptError("too long"), is_async=True))
    with pytest.raises(Error, match="the opponent at the seat of 0: too long"):
        env.reset(seed=0)


def test_an_answer_that_is_none_names_the_opponent() -> None:
    outcome = play(NimEnv(opponents=lambda observation, info: None), ["1"])[-1]
    assert "the opponent at the seat of 1: an action must be an assistant message" in outcome.info["error"]


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("kind", [ZeroDivisionError, TimeoutError])
def test_an_exception_of_an_opponents_own_code_is_raised_as_it_is(kind: type[Exception], is_async: bool) -> None:
    error = kind("a defect")
    env = NimEnv(opponents=failing(error, is_async))
    env.reset(seed=0)
    with pytest.raises(kind) as caught:
        env.step("1")
    assert caught.value is error
    assert error.__notes__ == ["The opponent at the seat of 1 raised it."]


def test_results_name_the_seat_of_an_opponent_whose_code_failed() -> None:
    env = NimEnv(opponents=failing(KeyError("a defect"), False))
    results = vfgym.evaluate(env, "random", num_examples=1)
    assert results["outputs"][0]["error"]["error_chain_repr"] == "KeyError('a defect') (The opponent at the seat of 1 raised it.)"


class LooksAhead:
    """Takes what leads a game of its own furthest, which lives on a thread where a loop runs; begins one before its first move, too."""

    def __init__(self) -> None:
        self.inner = NimEnv(sticks=9, opponents=takes_one, blocking=True)

    def for_episode(self, env: Any) -> Any:
        self.rewards("1")

        def answer(observation: list[Any], info: dict[str, Any]) -> str:
            return max(info["legal_actions"], key=self.rewards)

        return answer

    def rewards(self, move: str) -> float:
        game = self.inner.fork()
        game.reset(seed=0)
        outcome = game.step(move)
        game.close()
        return outcome.reward


@pytest.mark.parametrize("blocking", [False, True])
async def test_a_plain_opponent_may_play_environments_of_its_own(blocking: bool) -> None:
    """In a script, in an evaluation, in rollouts, and where a loop runs already, as in a notebook."""

    def env() -> NimEnv:
        return NimEnv(sticks=9, opponents=LooksAhead(), blocking=blocking)

    expected = play(alone := await asyncio.to_thread(env), ["1"] * 9)[-1].info["rewards"]
    alone.close()
    inside = env()
    assert play(inside, ["1"] * 9)[-1].info["rewards"] == expected
    inside.close()
    results = await vfgym.aevaluate(env(), takes_one, num_examples=2, state_columns=["rewards"], progress=False)
    assert [row["error"] for row in results["outputs"]] == [None, None]
    state = await env().rollout({"prompt": [], "example_id": 0, "seed": 0}, ScriptedClient(["1"] * 9), "scripted")
    assert (state["error"], state["rewards"]) == (None, expected)


async def test_where_a_loop_runs_plain_opponents_play_on_the_thread_of_who_steps() -> None:
    asked_on = []

    def answer(observation: list[Any], info: dict[str, Any]) -> str:
        asked_on.append(threading.current_thread())
        return "1"

    play(NimEnv(sticks=5, opponents=answer, blocking=False), ["1"] * 5)
    assert {*asked_on} == {threading.current_thread()}


def test_a_plain_opponent_may_play_environments_of_its_own_on_the_background_loop() -> None:
    env = NimEnv(sticks=9, opponents=LooksAhead(), blocking=True)
    results = vfgym.evaluate(env, takes_one, num_examples=2, progress=False)
    assert [(row["error"], row["stop_condition"]) for row in results["outputs"]] == [(None, "game_over")] * 2
    state = run_to_end(env.rollout({"prompt": [], "example_id": 0, "seed": 0}, ScriptedClient(["1"] * 9), "scripted"))
    assert (state["error"], state["stop_condition"]) == (None, "game_over")


def test_what_goes_wrong_with_an_opponents_model() -> None:
    """A prompt that is too long for it is the opponent's error; a refused key is the SDK's own, which stops whoever asks with it."""
    import openai

    from vfgym.model_server import ModelServer

    with ModelServer(models={"greedy": lambda request: "3"}, max_model_len=8, api_keys={"right"}) as server:

        def env(api_key: str) -> NimEnv:
            config = vfgym.ClientConfig(api_base_url=server.openai_url, api_key=api_key, max_retries=0)
            return NimEnv(sticks=7, opponents=vfgym.ModelAgent(config, "greedy"))

        outcome = play(env("right"), ["1"])[-1]
        refused = env("wrong")
        refused.reset(seed=0)
        with pytest.raises(openai.AuthenticationError):
            refused.step("1")
    assert (outcome.terminated, outcome.truncated) == (True, False)
    assert "the opponent at the seat of 1: the prompt is longer than the context of greedy" in outcome.info["error"]


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_a_copy_asks_the_opponents_model_itself(copied: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pickle holds the name of the key's variable, and no key."""
    from vfgym.model_server import ModelServer

    monkeypatch.setenv("KEY_OF_THE_OPPONENT", "none")
    with ModelServer(models={"careful": lambda request: "1"}) as server:
        config = vfgym.ClientConfig(api_base_url=server.openai_url, api_key_var="KEY_OF_THE_OPPONENT")
        env = NimEnv(sticks=9, opponents=vfgym.ModelAgent(config, "careful"))
        play(env, ["1"])
        twin = copied(env)
        assert data_equivalence(twin.step("2"), env.step("2"))


def test_opponents_are_told_what_the_policy_is_told() -> None:
    """As in self-play and as agents of PettingZoo: a copy of the policy that sits there sees what the policy would see."""
    seen: list[list[Message]] = []

    def watching(observation: list[Message], info: dict[str, Any]) -> str:
        seen.append(observation)
        return "1"

    env = NimEnv(sticks=9, opponents=watching, system_prompt="Win.")
    play(env, ["1", "1"])
    beside = NimEnv(sticks=9, opponents="self", system_prompt="Win.")
    play(beside, ["1"])
    assert seen[0] == beside.episode.conversation()
    assert [message.role for message in seen[1]] == ["system", "user", "assistant", "user"]


class InBrackets(NimEnv):
    """Nim whose players put their moves into brackets."""

    def move_of(self, message: Message) -> Message:
        text = content_text(message["content"])
        if "[" not in text:
            raise ActionNotFound("Put your move into brackets.")
        return AssistantMessage(text[text.index("[") + 1 : text.index("]")])

    def message_of(self, move: Message) -> Message:
        return AssistantMessage(f"[{move['content']}]")


@pytest.mark.parametrize("blocking", [False, True])
async def test_moves_in_a_form_are_found_in_the_messages_of_the_policy_and_of_opponents(blocking: bool) -> None:
    answers = iter(["1", "one: [1]"])
    env = InBrackets(sticks=9, opponents=lambda observation, info: next(answers), blocking=blocking)
    await env.areset(seed=0)
    outcome = await env.astep("2")
    assert outcome.observation[-1].content == "Put your move into brackets.", "the game did not see the message"
    assert (await env.astep("I take [nine].")).observation[-1].content == "'nine' is not a move."
    outcome = await env.astep("I take [2], not 3.")
    assert outcome.observation[-1].content == "Player 1 takes 1, 6 are left."
    assert [step["extras"]["rewards"] for step in env.state["trajectory"]] == [{0: 0.0, 1: 0.0}] * 3
    await env.aclose()


def test_messages_without_the_form_are_limited_as_invalid_moves_are() -> None:
    outcome = play(InBrackets(max_invalid_moves=2), ["1", "1"])[-1]
    assert (outcome.terminated, outcome.info["stop_condition"], outcome.info["ending"]) == (True, "too_many_invalid_moves", "policy_failed")
    outcome = play(InBrackets(max_invalid_moves=2, opponents=takes_one), ["[1]"])[-1]
    assert "seat of 1 found no valid move in 2 answers" in outcome.info["error"]


def test_moves_in_a_form_in_self_play_and_as_pettingzoo() -> None:
    env = InBrackets(sticks=9, opponents="self")
    outcomes = play(env, ["2", "[2]"])
    assert (outcomes[1].info["player"], outcomes[1].observation[-1].content) == (0, "Put your move into brackets.")
    assert outcomes[2].info["player"] == 1
    pytest.importorskip("pettingzoo")
    aec = to_pettingzoo(InBrackets(sticks=9, max_invalid_moves=3))
    aec.reset(seed=0)
    aec.step("2")
    assert aec.agent_selection == "player_0"
    assert [message.content for message in aec.last()[0]] == ["You are player 0. There are 9 sticks.", "2", "Put your move into brackets."]
    aec.step("[2]")
    assert aec.agent_selection == "player_1"
    assert aec.action_space("player_1").sample().content in {"[1]", "[2]", "[3]"}
    for answer in "abc":
        aec.step(answer)
    assert aec.last()[2:4] == (False, True)


def test_random_players_and_samples_answer_in_the_form() -> None:
    env = InBrackets(num_players=3)
    assert {env.action_space.sample().content for _ in range(40)} == {"[1]", "[2]", "[3]"}
    assert all(row["stop_condition"] == "game_over" for row in vfgym.evaluate(env, "random", num_examples=4, seed=0)["outputs"])
    assert [check for check in check_environment(lambda: InBrackets(sticks=9)) if not check.passed] == []

    class Sampling:
        def for_episode(self, env: Any) -> Any:
            return lambda observation, info: env.action_space.sample()

    assert play(InBrackets(sticks=5, opponents=Sampling()), ["[1]", "[1]", "[1]"])[-1].info["stop_condition"] == "game_over"


@pytest.mark.parametrize("opponents", ["random", "self"])
def test_legal_actions_are_answers_in_the_form(opponents: str) -> None:
    env = InBrackets(opponents=opponents)
    _, info = env.reset(seed=0)
    assert info["legal_actions"] == ["[1]", "[2]", "[3]"]
    while "rewards" not in info:
        info = env.step(info["legal_actions"][-1]).info
    assert info["metrics"]["invalid_answers"] == 0.0
    assert info["stop_condition"] == "game_over"


def test_opponents_are_told_legal_actions_in_the_form() -> None:
    env = InBrackets(opponents=lambda observation, info: info["legal_actions"][0], max_invalid_moves=1)
    assert play(env, ["[1]"] * 9)[-1].info["stop_condition"] == "game_over"


def test_agents_are_told_legal_actions_in_the_form() -> None:
    pytest.importorskip("pettingzoo")
    aec = vfgym.to_pettingzoo(InBrackets())
    aec.reset(seed=0)
    for _ in aec.agent_iter():
        _, _, terminated, truncated, info = aec.last()
        assert not truncated
        aec.step(None if terminated else info["legal_actions"][0])


def test_legal_actions_are_moves_where_the_form_is_no_text() -> None:
    class AsCalls(InBrackets):
        def message_of(self, move: Message) -> Message:
            return AssistantMessage(None, tool_calls=[vfgym.ToolCall("1", "take", '{"sticks": ' + move["content"] + "}")])

    _, info = AsCalls().reset(seed=0)
    assert info["legal_actions"] == ["1", "2", "3"]


class Cautious(Nim):
    """Nim whose author thinks that somebody who plays at random takes one."""

    def sample_move(self, player: Player, rng: Any) -> Message:
        return AssistantMessage("1")


@pytest.mark.parametrize("tell_legal_actions", [False, True])
@pytest.mark.parametrize("blocking", [False, True])
async def test_random_players_draw_their_moves_from_the_table(blocking: bool, tell_legal_actions: bool) -> None:
    class CautiousEnv(NimEnv):
        def open_table(self) -> Nim:
            return Cautious(sticks=12)

    env = CautiousEnv(blocking=blocking, tell_legal_actions=tell_legal_actions)
    results = await vfgym.aevaluate(env, "random", num_examples=4, state_columns=["trajectory"], progress=False)
    assert {len(row["trajectory"]) for row in results["outputs"]} == {6}
    assert {row["reward"] for row in results["outputs"]} == {-1.0}


class KnockOut(Nim):
    """Nim that a limit ends, after which those who took three sticks at once are out by the rules."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.out: set[Player] = set()

    def move(self, message: Message) -> Played:
        mover = self.turn
        played = super().move(message)
        if message["content"] == "3":
            self.out.add(mover)
        if self.sticks < 6 and self.turn is not None:
            self.turn, self.was_truncated = None, True
        return played

    def end_flags(self, player: Player) -> tuple[bool, bool]:
        return (True, False) if player in self.out else super().end_flags(player)


class KnockOutEnv(MultiplayerEnv):
    def open_table(self) -> KnockOut:
        return KnockOut(num_players=2, sticks=9)


@pytest.mark.parametrize("opponents", [takes_one, "self"])
@pytest.mark.parametrize(("seat", "ends"), [(0, (True, False)), (1, (False, True))])
def test_each_player_has_an_end_of_its_own(seat: int, ends: tuple[bool, bool], opponents: Any) -> None:
    agents = (lambda observation, info: "3") if seat == 1 and opponents != "self" else opponents
    outcome = play(KnockOutEnv(seat=seat, opponents=agents), ["3", "1"] if opponents == "self" else ["3" if seat == 0 else "1"])[-1]
    assert (outcome.terminated, outcome.truncated) == ends
    assert outcome.info["stop_condition"] == ("game_over" if outcome.terminated else "game_truncated")


def test_a_game_that_is_over_at_once_ends_for_the_policy_as_the_game_says() -> None:
    env = KnockOutEnv(seat=1, opponents=lambda observation, info: "3")
    env.reset(seed=0, options={"game_options": {"sticks": 7}})
    assert env.step("1")[2:4] == (False, True)


def test_a_game_that_is_over_before_the_policys_turn_has_its_reward() -> None:
    env = NimEnv(sticks=2, seat=1, opponents=lambda observation, info: "2")
    observation, info = env.reset(seed=0)
    assert observation[-1].content.endswith("Player 0 wins.")
    assert info["stop_condition"] == "game_over"
    outcome = env.step("1")
    assert (outcome.reward, outcome.terminated) == (-1.0, True)
    assert env.state["reward"] == -1.0
    assert env.state["trajectory"] == []


def test_an_invalid_move_is_asked_for_again_and_limited() -> None:
    env = NimEnv(sticks=6, opponents=takes_one, max_invalid_moves=2)
    outcomes = play(env, ["nine", "1", "x", "y"])
    assert outcomes[1].observation[-1].content == "'nine' is not a move."
    assert outcomes[2].observation[-1].content == "Player 1 takes 1, 4 are left."
    assert (outcomes[-1].terminated, outcomes[-1].info["stop_condition"]) == (True, "too_many_invalid_moves")


def test_the_same_seed_gives_the_same_games_with_random_opponents_and_a_random_seat() -> None:
    def games(env: NimEnv) -> list[Any]:
        agent = vfgym.RandomAgent()
        told = []
        for seed in (3, None, None, 9):
            observation, info = env.reset(seed=seed)
            answer = agent.for_episode(env)
            told.append((observation, info))
            over = False
            while not over:
                outcome = env.step(answer(observation, info))
                observation, info, over = outcome.observation, outcome.info, outcome.terminated
                told.append(outcome)
        return told

    first, again, other = (NimEnv(num_players=3, seat="random") for _ in range(3))
    told = games(first)
    assert data_equivalence(told, games(again))
    assert data_equivalence(games(first), told)
    assert len({info["player"] for seed in range(20) for _, info in [other.reset(seed=seed)]}) == 3


def test_self_play_shows_the_conversation_of_whoever_is_to_move() -> None:
    env = NimEnv(sticks=4, opponents="self")
    (first, info), *outcomes = play(env, ["1", "2", "1"])
    assert [message.content for message in first] == ["You are player 0. There are 4 sticks."]
    assert info["player"] == 0
    assert outcomes[0].info["player"] == 1
    assert [message.content for message in outcomes[0].observation] == [
        "You are player 1. There are 4 sticks.\nPlayer 0 takes 1, 3 are left."
    ]
    assert [message.content for message in outcomes[1].observation] == [
        "You are player 0. There are 4 sticks.",
        "1",
        "Player 1 takes 2, 1 are left.",
    ]
    assert outcomes[2].terminated
    assert outcomes[2].reward == 1.0
    assert outcomes[2].info["rewards"] == {0: 1.0, 1: -1.0}
    assert [step["extras"]["player"] for step in env.state["trajectory"]] == [0, 1, 0]
    assert [message.content for message in outcomes[2].observation] == [
        "You are player 0. There are 4 sticks.",
        "1",
        "Player 1 takes 2, 1 are left.",
        "1",
        "Player 0 wins.",
    ]


def test_self_play_from_another_seat_reports_that_seat() -> None:
    env = NimEnv(sticks=4, seat=1, opponents="self")
    outcome = play(env, ["1", "2", "1"])[-1]
    assert outcome.reward == -1.0
    assert outcome.observation[0].content == "You are player 1. There are 4 sticks.\nPlayer 0 takes 1, 3 are left."


def test_a_turn_notes_what_its_moves_earned_everybody() -> None:
    """In self-play each move, else the policy's move and those of the opponents up to its next turn, those before its first included."""
    env = NimEnv(sticks=4, opponents="self")
    play(env, ["1", "2", "1"])
    assert [step["extras"]["rewards"] for step in env.state["trajectory"]] == [{0: 0.0, 1: 0.0}, {0: 0.0, 1: 0.0}, {0: 1.0, 1: -1.0}]
    assert [env.state["rewards"][step["extras"]["player"]] for step in env.state["trajectory"]] == [1.0, -1.0, 1.0]
    env = NimEnv(sticks=4, seat=1, opponents=takes_one)
    assert play(env, ["2"])[-1].reward == -1.0
    (step,) = env.state["trajectory"]
    assert (step["extras"]["player"], step["extras"]["rewards"]) == (1, {0: 1.0, 1: -1.0})


class TrickleEnv(MultiplayerEnv):
    """Nim in which every move earns whoever makes it a bit."""

    def open_table(self) -> TurnBasedGame:
        class Trickle(Nim):
            def move(self, message: Message) -> Played:
                mover = self.turn
                played = super().move(message)
                return played._replace(rewards={**played.rewards, mover: played.rewards.get(mover, 0.0) + 0.25})

        return Trickle(sticks=5)


def test_what_opponents_earn_before_the_policys_first_turn_is_noted_at_that() -> None:
    env = TrickleEnv(seat=1, opponents=takes_one, blocking=False)
    env.reset(seed=0)
    env.step("1")
    assert env.state["trajectory"][0]["extras"]["rewards"] == {0: 0.5, 1: 0.25}
    env.step("1")
    assert env.state["trajectory"][1]["extras"]["rewards"] == {0: 1.25, 1: -0.75}
    assert env.state["rewards"] == {0: 1.75, 1: -0.5}


def test_the_info_of_a_step_is_its_own() -> None:
    env = vfgym.TextArenaEnv("TicTacToe-v0")
    env.reset(seed=0)
    *_, info = env.step("[4]")
    info["game_info"].clear()
    assert env.state["trajectory"][0]["extras"]["game_info"]["role"] == "Player 0"


def test_an_opponents_valid_move_forgives_the_invalid_ones_before() -> None:
    answers = itertools.cycle(["x", "y", "1"])
    env = NimEnv(sticks=6, opponents=lambda observation, info: next(answers), max_invalid_moves=3)
    assert play(env, ["1", "1", "1"])[-1].info["stop_condition"] == "game_over"


def test_an_agent_that_cannot_play_a_seat_is_refused_when_the_game_begins() -> None:
    with pytest.raises(ConfigurationError, match="oracle cannot play"):
        NimEnv(opponents="oracle").reset(seed=0)


@pytest.mark.parametrize("opponents", ["random", "self"])
async def test_rollouts_ask_the_model_once_a_move_and_end_as_steps_do(opponents: str) -> None:
    env = NimEnv(sticks=9, opponents=opponents, system_prompt="Win.")
    answers: list[Any] = []
    observation, info = env.reset(options={"example_id": 5})
    agent = vfgym.RandomAgent(seed=1).for_episode(env)
    over = False
    while not over:
        answers.append(agent(observation, info))
        observation, _, over, _, info = await env.astep(answers[-1])
    client = ScriptedClient(answers)
    state = await env.rollout({"prompt": [], "example_id": 5, "seed": 5}, client, "scripted")
    await env.rubric.score_rollout(state)
    stepped = env.state
    for key in ("prompt", "completion", "reward", "metrics", "stop_condition", "rewards"):
        assert state[key] == stepped[key], key
    assert len(state["trajectory"]) == len(answers)


@pytest.mark.parametrize("opponents", ["random", "self"])
def test_it_keeps_every_promise(opponents: str) -> None:
    checks = check_environment(lambda: NimEnv(num_players=3, opponents=opponents))
    assert [check for check in checks if not check.passed] == []
    check_env(NimEnv(opponents=opponents), skip_render_check=True)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
@pytest.mark.parametrize("opponents", [takes_one, "self"])
def test_a_copy_in_the_middle_goes_on_alone(copied: Any, opponents: Any) -> None:
    env = NimEnv(sticks=8, opponents=opponents)
    play(env, ["1"])
    other = copied(env)
    assert data_equivalence(other.step("2"), env.step("2"))
    env.step("1")
    assert other.state["rewards"] == {0: 0.0, 1: 0.0}
    assert data_equivalence(other.step("1").observation, env.episode.conversation())


def test_a_table_that_could_not_be_opened_is_opened_at_the_next_reset() -> None:
    class Busy(NimEnv):
        opened = 0

        def open_table(self) -> Nim:
            self.opened += 1
            if self.opened == 1:
                raise InfraError("port busy")
            return super().open_table()

    env = Busy(sticks=1)
    with pytest.raises(InfraError, match="port busy"):
        env.reset(seed=0)
    assert [play(env, ["1"])[-1].reward for _ in range(2)] == [1.0, 1.0]
    assert env.opened == 2


def test_evaluate_reports_the_seats_reward() -> None:
    results = vfgym.evaluate(NimEnv(opponents=takes_one), winning, num_examples=12, seed=0)
    assert results["metadata"]["avg_reward"] > 0
    assert all(row["reward"] in (1.0, -1.0) for row in results["outputs"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seat": 2}, "none of the 2 seats"),
        ({"seat": -1}, "from 0"),
        ({"seat": "first"}, "from 0"),
        ({"opponents": "nobody"}, "no agent 'nobody'"),
        ({"opponents": {2: "random"}}, "names no agent for 1"),
        ({"opponents": {1: "random", 2: "random"}}, "agents for 2, who do not play; the players are 0, 1"),
        ({"opponents": {"1": "random"}, "seat": "random"}, "names no agent for 0"),
        ({"opponents": {1: "self"}}, "every seat"),
        ({"opponents": "self", "history": 1}, "self-play"),
    ],
)
def test_what_cannot_work_is_said(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        NimEnv(**arguments).reset(seed=0)


class Mistaken(Nim):
    """Nim in which an author's function is put in the place of the last line of `reset` or `move`."""

    def __init__(self, begin: Any = None, outcome: Any = None) -> None:
        super().__init__(sticks=9)
        self.begin, self.outcome = begin, outcome

    def reset(self, *args: Any) -> None:
        super().reset(*args)
        if self.begin is not None:
            self.begin(self)

    def move(self, message: Message) -> Any:
        played = super().move(message)
        return played if self.outcome is None else self.outcome(self)


def turn_to_nobody(table: Nim) -> Played:
    table.turn = "q"
    return Played({})


def mistaken(opponents: Any, blocking: bool, **mistake: Any) -> MultiplayerEnv:
    class MistakenEnv(MultiplayerEnv):
        def open_table(self) -> Nim:
            return Mistaken(**mistake)

    return MistakenEnv(opponents=opponents, blocking=blocking)


@pytest.mark.parametrize("blocking", [False, True])
@pytest.mark.parametrize("opponents", [takes_one, "self"])
@pytest.mark.parametrize(
    ("outcome", "kind", "message"),
    [
        (lambda table: {"rewards": {}}, TypeError, "`move` of Mistaken must be .* returns a vfgym.Played, got dict"),
        (lambda table: None, TypeError, "returns a vfgym.Played, got NoneType"),
        (lambda table: Played({"zed": 1.0}), ValueError, r"the players are 0, 1; got \{'zed': 1.0\}"),
        (lambda table: Played({0: None}), ValueError, r"dict of numbers, by player; .* got \{0: None\}"),
        (lambda table: Played([0.5, 0.5]), ValueError, r"dict of numbers, by player; .* got \[0.5, 0.5\]"),
        (turn_to_nobody, ValueError, "`turn` of Mistaken is 'q', who does not play; the players are 0, 1"),
    ],
)
async def test_what_a_table_does_by_mistake_is_said(
    outcome: Any, kind: type[Exception], message: str, opponents: Any, blocking: bool
) -> None:
    env = mistaken(opponents, blocking, outcome=outcome)
    await env.areset(seed=0)
    with pytest.raises(kind, match=message):
        await env.astep("1")
    await env.aclose()


@pytest.mark.parametrize("opponents", [takes_one, "self"])
@pytest.mark.parametrize(
    ("begin", "message"),
    [
        (lambda table: vars(table).pop("turn"), "reset of Mistaken must set `turn`"),
        (turn_to_nobody, "`turn` of Mistaken is 'q', who does not play"),
    ],
)
def test_a_game_that_nobody_can_begin_is_refused(begin: Any, message: str, opponents: Any) -> None:
    with pytest.raises(ValueError, match=message):
        mistaken(opponents, blocking=False, begin=begin).reset(seed=0)


def test_an_environment_without_a_table_says_so() -> None:
    class Bare(MultiplayerEnv):
        pass

    with pytest.raises(ConfigurationError, match=r"open_table of Bare must return a vfgym\.TurnBasedGame, got NoneType"):
        Bare().reset(seed=0)  # type: ignore[abstract]
    with pytest.raises(ConfigurationError, match=r"open_table of Bare must return a vfgym\.TurnBasedGame, got NoneType"):
        Bare().action_space.sample()  # type: ignore[abstract]


def test_the_table_is_closed_once() -> None:
    env = NimEnv(sticks=4)
    env.reset(seed=0)
    table = env.state.session.game
    env.reset(seed=1)
    assert env.state.session.game is table
    env.close()
    env.close()
    assert table.closed == 1


def test_samples_of_the_action_space_are_moves_of_the_game() -> None:
    env = NimEnv(sticks=9)
    assert {env.action_space.sample().content for _ in range(40)} == {"1", "2", "3"}
    env.action_space.seed(1)
    drawn = [env.action_space.sample() for _ in range(5)]
    env.reset(seed=0)
    env.action_space.seed(1)
    assert [env.action_space.sample() for _ in range(5)] == drawn
    assert env.fork().action_space == env.action_space == copy.deepcopy(env).action_space
    env.close()


def test_an_opponent_that_is_ready_at_once_leaves_the_table_on_the_callers_thread() -> None:
    threads: set[threading.Thread] = set()

    def ready(observation: list[Any], info: dict[str, Any]) -> Any:
        threads.add(threading.current_thread())
        return Ready("1")

    outcomes = play(NimEnv(sticks=8, opponents=ready), ["1"] * 4)
    assert outcomes[-1].info["rewards"] == {0: -1.0, 1: 1.0}
    assert threads == {threading.current_thread()}
