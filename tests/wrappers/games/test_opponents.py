"""`OpponentSeat` and `Opponent`: agents at the other seats of a game."""

from __future__ import annotations

import asyncio
import copy
import itertools
import pickle
import threading
from typing import Any

import pytest
from gymnasium.utils.env_checker import data_equivalence

import vfgym
from tests.wrappers.games.nim import Nim, NimEnv
from tests.wrappers.games.playing import InBrackets, play, takes_one
from vfgym.aio.background import run_to_end
from vfgym.calls import Ready
from vfgym.errors import ConfigurationError, Error, InfraError, InvalidModelResponseError, ModelError, OverlongPromptError
from vfgym.messages import AssistantMessage, Message, Response
from vfgym.testing import ScriptedClient
from vfgym.wrappers.games.turn_based import Player


class FindsNoMove:
    """An opponent that never finds a move. It gives up, so that a test that fails ends."""

    def __init__(self, most: int) -> None:
        self.asked = 0
        self.most = most

    def __call__(self, conversation: list[Any], info: dict[str, Any]) -> str:
        self.asked += 1
        if self.asked > self.most:
            raise AssertionError(f"asked {self.asked} times")
        return "I do not know."


@pytest.mark.parametrize("game", ["nim", "pettingzoo"])
def test_an_opponent_that_finds_no_move_is_not_asked_for_ever(game: str) -> None:
    opponent = FindsNoMove(most=100)
    env = NimEnv(opponents=opponent) if game == "nim" else vfgym.PettingZooEnv("classic/tictactoe_v3", opponents=opponent)
    _, info = env.reset(seed=0)
    _, _, terminated, truncated, _ = env.step(info["legal_actions"][0])
    assert terminated or truncated


def test_an_opponents_answer_that_is_no_message_is_the_opponents_error() -> None:
    env = NimEnv(opponents=lambda conversation, info: 42)
    env.reset(seed=0)
    *_, info = env.step("1")
    assert "opponent" in info["error"]
    assert "InvalidAction" not in info["error"]  # that is what the policy's own answers are told


@pytest.mark.parametrize("opponents", ["random", vfgym.ScriptedAgent(["1", "2", "3", "1", "2", "3"])], ids=["random", "scripted"])
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))], ids=["deepcopy", "pickle"])
def test_the_opponents_of_a_copy_play_on_as_those_of_the_original(opponents: Any, copied: Any) -> None:
    for seed in range(8):
        env = NimEnv(sticks=30, opponents=opponents)
        env.reset(seed=seed)
        env.step("1")
        twin = copied(env)
        for _ in range(3):
            assert twin.step("1")[0] == env.step("1")[0]


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


def test_opponents_are_told_legal_actions_in_the_form() -> None:
    env = InBrackets(opponents=lambda observation, info: info["legal_actions"][0], max_invalid_moves=1)
    assert play(env, ["[1]"] * 9)[-1].info["stop_condition"] == "game_over"


def test_an_opponents_valid_move_forgives_the_invalid_ones_before() -> None:
    answers = itertools.cycle(["x", "y", "1"])
    env = NimEnv(sticks=6, opponents=lambda observation, info: next(answers), max_invalid_moves=3)
    assert play(env, ["1", "1", "1"])[-1].info["stop_condition"] == "game_over"


def test_an_agent_that_cannot_play_a_seat_is_refused_when_the_game_begins() -> None:
    with pytest.raises(ConfigurationError, match="oracle cannot play"):
        NimEnv(opponents="oracle").reset(seed=0)


def test_an_opponent_that_is_ready_at_once_leaves_the_table_on_the_callers_thread() -> None:
    threads: set[threading.Thread] = set()

    def ready(observation: list[Any], info: dict[str, Any]) -> Any:
        threads.add(threading.current_thread())
        return Ready("1")

    outcomes = play(NimEnv(sticks=8, opponents=ready), ["1"] * 4)
    assert outcomes[-1].info["rewards"] == {0: -1.0, 1: 1.0}
    assert threads == {threading.current_thread()}
