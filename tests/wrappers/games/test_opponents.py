"""`OpponentSeat` and `Opponent`: agents at the other seats of a game."""

from __future__ import annotations

import asyncio
import copy
import itertools
import pickle
import threading
from typing import Any

import pytest

import vfgym
from tests.wrappers.games.nim import Nim, NimEnv, play, takes_one
from vfgym.calls import Ready
from vfgym.errors import ConfigurationError, Error, InfraError, InvalidModelResponseError, ModelError, OverlongPromptError
from vfgym.messages import AssistantMessage, Message, Response
from vfgym.testing import ScriptedClient
from vfgym.wrappers.games.turn_based import Player


class Sampling:
    """Answers with samples of its seat's action space."""

    def for_episode(self, env: Any) -> Any:
        return lambda observation, info: env.action_space.sample()


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


class Patience(Error, TimeoutError):
    """An `Error` that is a timeout, too."""


def failing(error: Exception, is_async: bool) -> Any:

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


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (42, "the opponent at the seat of 1: an action must be an assistant message"),
        (None, "the opponent at the seat of 1: an action must be an assistant message"),
        ("I do not know.", "the opponent at the seat of 1 found no valid move in 10 answers"),
    ],
)
def test_an_answer_that_is_no_move_is_the_opponents_error(answer: Any, error: str) -> None:
    outcome = play(NimEnv(opponents=lambda observation, info: answer), ["1"])[-1]
    assert (outcome.terminated, error in outcome.info["error"], "InvalidAction" in outcome.info["error"]) == (True, True, False)


def test_an_error_of_an_opponent_who_begins_keeps_the_game_from_beginning() -> None:
    env = NimEnv(seat=1, opponents=failing(OverlongPromptError(""), is_async=True))
    with pytest.raises(Error, match="the opponent at the seat of 0: OverlongPromptError"):
        env.reset(seed=0)


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
    row = vfgym.evaluate(NimEnv(opponents=failing(kind("a defect"), is_async)), "random", num_examples=1)["outputs"][0]
    assert row["error"]["error_chain_repr"].endswith("('a defect') (The opponent at the seat of 1 raised it.)")


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
    results = await asyncio.to_thread(vfgym.evaluate, env(), takes_one, num_examples=2, progress=False)  # on the background loop
    assert [(row["error"], row["stop_condition"]) for row in results["outputs"]] == [(None, "game_over")] * 2


def test_a_model_can_be_the_opponent_and_what_goes_wrong_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A prompt that is too long for it is the opponent's error; a refused key is the SDK's own, which stops whoever asks with it.

    A copy asks the model itself; a pickle holds the name of the key's variable, and no key.
    """
    import openai

    from vfgym.model_server import ModelServer

    monkeypatch.setenv("KEY_OF_THE_OPPONENT", "right")
    with ModelServer(models={"greedy": lambda request: "3"}, max_model_len=400, api_keys={"right"}) as server:

        def env(sticks: int, prompt: str | None = None, **key: str) -> NimEnv:
            config = vfgym.ClientConfig(api_base_url=server.openai_url, max_retries=0, **key)
            return NimEnv(sticks=sticks, opponents=vfgym.ModelAgent(config, "greedy"), system_prompt=prompt)

        model = env(8, api_key_var="KEY_OF_THE_OPPONENT")
        assert play(model, ["1"])[-1].observation[-1].content == "Player 1 takes 3, 4 are left."
        for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
            assert twin.step("1").info["rewards"] == {0: -1.0, 1: 1.0}
        outcome = play(env(7, "word " * 600, api_key="right"), ["1"])[-1]
        refused = env(7, api_key="wrong")
        refused.reset(seed=0)
        with pytest.raises(openai.AuthenticationError):
            refused.step("1")
    assert (outcome.terminated, outcome.truncated) == (True, False)
    assert "the opponent at the seat of 1: the prompt is longer than the context of greedy" in outcome.info["error"]


def test_opponents_are_told_what_the_policy_is_told_each_in_its_own_conversation() -> None:
    """As in self-play: a copy of the policy that sits there sees what the policy would see. They may be async and give responses."""
    seen: dict[Any, list[list[Message]]] = {1: [], 2: []}

    async def watching(observation: list[Message], info: dict[str, Any]) -> Any:
        seen[info["player"]].append(observation)
        return Response("", 0, "", None, AssistantMessage("1"))

    play(NimEnv(3, sticks=8, opponents={1: watching, 2: watching}, system_prompt="Win."), ["1", "1", "1"])
    beside = NimEnv(3, sticks=8, opponents="self", system_prompt="Win.")
    play(beside, ["1"])
    assert seen[1][0] == beside.episode.conversation()
    assert [(message.role, message.content) for message in seen[2][1]] == [
        ("system", "Win."),
        ("user", "You are player 2. There are 8 sticks.\nPlayer 0 takes 1, 7 are left.\nPlayer 1 takes 1, 6 are left."),
        ("assistant", "1"),
        ("user", "Player 0 takes 1, 4 are left.\nPlayer 1 takes 1, 3 are left."),
    ]


def test_an_opponents_valid_move_forgives_the_invalid_ones_before() -> None:
    answers = itertools.cycle(["x", "y", "1"])
    env = NimEnv(sticks=6, opponents=lambda observation, info: next(answers), max_invalid_moves=3)
    assert play(env, ["1", "1", "1"])[-1].info["stop_condition"] == "game_over"


@pytest.mark.parametrize("answer", [Ready("1"), "1"])
async def test_an_opponent_that_is_ready_at_once_leaves_the_table_on_the_callers_thread(answer: Any) -> None:
    """Where a loop runs, too."""
    threads: set[threading.Thread] = set()

    def ready(observation: list[Any], info: dict[str, Any]) -> Any:
        threads.add(threading.current_thread())
        return answer

    outcomes = play(NimEnv(sticks=8, opponents=ready), ["1"] * 4)
    assert outcomes[-1].info["rewards"] == {0: -1.0, 1: 1.0}
    assert threads == {threading.current_thread()}


async def test_where_a_loop_runs_an_opponent_that_blocks_is_asked_on_another_thread() -> None:
    asked_on: set[threading.Thread] = set()

    @vfgym.blocking
    def answer(observation: list[Any], info: dict[str, Any]) -> str:
        asked_on.add(threading.current_thread())
        return "1"

    env = NimEnv(sticks=5, opponents=answer)
    await env.areset(seed=0)
    assert (await env.astep("1")).observation[-1].content == "Player 1 takes 1, 3 are left."
    assert len(asked_on - {threading.current_thread()}) == 1


@pytest.mark.parametrize("tells", [True, False])
def test_an_opponent_is_told_its_own_info_and_may_do_with_its_observation_what_it_likes(tells: bool) -> None:
    infos: list[dict[str, Any]] = []
    lengths: list[int] = []

    def greedy(observation: list[Message], info: dict[str, Any]) -> str:
        infos.append(info)
        lengths.append(len(observation))
        observation.clear()
        return "1"

    play(NimEnv(sticks=4, opponents=greedy, tell_legal_actions=tells), ["1", "1"])
    legal = [{"legal_actions": ["1", "2", "3"]}, {"legal_actions": ["1"]}] if tells else [{}, {}]
    assert infos == [{"example_id": -1, "tools": [], "player": 1, "game_info": {}, **each} for each in legal]
    assert lengths == [1, 3]
