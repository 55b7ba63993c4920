"""Steps in the calling thread and on the event loop: nobody can tell one from the other."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import gymnasium as gym
import pytest
from gymnasium.utils.env_checker import data_equivalence
from gymnasium.vector import AutoresetMode

import vfgym
from tests.environments import Talk
from tests.interruptions import ctrl_c
from tests.vector.called import Called, vector_of
from vfgym.errors import EpisodeBusy, ResetNeeded
from vfgym.vector import ChatVectorEnv

SOME = ["gymnasium/FrozenLake-v1", "reasoning-gym/leg_counting-v0", "textarena/GuessTheNumber-v0", "textarena/TicTacToe-v0"]


def moves(envs: ChatVectorEnv) -> list[int]:
    return [state.session.game.moves for state in envs.get_attr("state")]


@pytest.mark.parametrize("mode", AutoresetMode)
@pytest.mark.parametrize("env_id", SOME)
def test_both_places_give_the_same(env_id: str, mode: AutoresetMode) -> None:
    """Observations, rewards, flags, infos and random numbers, with resets of some in between."""
    here, on_loop = (gym.make_vec(env_id, num_envs=3, autoreset_mode=mode) for _ in range(2))
    assert isinstance(here, ChatVectorEnv)
    assert isinstance(on_loop, ChatVectorEnv)
    assert here._plays_here
    on_loop._plays_here = False
    here.action_space.seed(1)
    assert data_equivalence(here.reset(seed=5), on_loop.reset(seed=5))
    for _ in range(12):
        actions = here.action_space.sample()
        stepped, expected = here.step(actions), on_loop.step(actions)
        assert all(data_equivalence(part, other) for part, other in zip(stepped, expected, strict=True))
        over = expected[2] | expected[3]
        if mode is AutoresetMode.DISABLED and over.any():
            again, expected_again = (envs.reset(options={"reset_mask": over}) for envs in (here, on_loop))
            assert data_equivalence(again, expected_again)
    assert here.np_random_seed == on_loop.np_random_seed
    here.close()
    on_loop.close()


def test_games_play_in_the_thread_that_steps_them_also_inside_a_running_loop() -> None:
    seen: list[str] = []
    envs = vector_of(lambda action: seen.append(threading.current_thread().name), 2)

    async def play() -> None:
        envs.reset(seed=0)
        envs.step(["0", "0"])

    asyncio.run(play())
    envs.step(["0", "0"])
    assert seen == [threading.current_thread().name] * 4
    envs.send(["0", "0"], [0, 1])
    envs.recv(min_ready=2)
    assert seen[4:] == ["vfgym-loop"] * 2, "what is sent is played while the caller goes on"
    envs.step(["0", "0"])
    assert (seen[6:], moves(envs)) == ([threading.current_thread().name] * 2, [4, 4])
    envs.close()


@pytest.mark.parametrize("here", [True, False])
def test_an_error_of_one_is_raised_and_the_others_can_be_received(here: bool) -> None:
    def fail(action: int) -> None:
        if action:
            raise OSError("the disk is full")

    envs = vector_of(fail, 3, here=here)
    envs.reset(seed=0)
    with pytest.raises(OSError, match="the disk is full"):
        envs.step(["0", "1", "0"])
    *_, infos = envs.recv(min_ready=2)
    assert infos["env_id"].tolist() == [0, 2]
    with pytest.raises(ResetNeeded, match=r"environment 1: it raised OSError\('the disk is full'\)"):
        envs.step(["0", "0", "0"])
    assert moves(envs) == [1, 0, 1]
    envs.reset(seed=0)
    envs.step(["0", "0", "0"])
    assert moves(envs) == [1, 1, 1]
    envs.close()


def test_ctrl_c_breaks_off_the_one_that_moves_and_loses_no_other() -> None:
    with ctrl_c() as interrupt:
        envs = vector_of(lambda action: interrupt() if action else None, 3)
        envs.reset(seed=0)
        with pytest.raises(KeyboardInterrupt):
            envs.step(["0", "1", "0"])
        observations, *_, infos = envs.recv(min_ready=2)
        assert (infos["env_id"].tolist(), len(observations)) == ([0, 2], 2)
        with pytest.raises(ResetNeeded, match=r"environment 1: its step was interrupted by KeyboardInterrupt\(\)"):
            envs.step(["0", "0", "0"])
        envs.reset(seed=0)
        envs.step(["0", "0", "0"])
        assert moves(envs) == [1, 1, 1]
        envs.close()


def test_ctrl_c_in_a_reset_gives_all_of_it_up() -> None:
    class Interrupted(Called):
        def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[int, dict[str, Any]]:
            if options:
                interrupt()
            return super().reset(seed=seed)

    with ctrl_c() as interrupt:
        envs = ChatVectorEnv(vfgym.to_chat(lambda: Interrupted(int), blocking=False), 3)
        assert envs._plays_here
        envs.reset(seed=0)
        with pytest.raises(KeyboardInterrupt):
            envs.reset(options=[None, {"game_options": {"interrupt": True}}, None])
        with pytest.raises(ResetNeeded, match="environment 0: its reset did not end"):
            envs.step(["0", "0", "0"])
        envs.reset(seed=0)
        envs.step(["0", "0", "0"])
        assert moves(envs) == [1, 1, 1]
        envs.close()


def test_a_step_inside_a_step_is_refused() -> None:
    envs: ChatVectorEnv
    raised: list[BaseException] = []

    def step_again(action: int) -> None:
        if action:
            with pytest.raises(EpisodeBusy) as caught:
                envs.step(["0", "0"])
            raised.append(caught.value)

    envs = vector_of(step_again, 2)
    envs.reset(seed=0)
    envs.step(["0", "1"])
    assert (len(raised), moves(envs)) == (1, [1, 1])
    envs.close()


class AllAsk(Talk):
    def __init__(self, several: int) -> None:
        super().__init__()
        self.several = several
        self.asked = 0

    async def env_response(self, messages: list[vfgym.Message], state: vfgym.State) -> Any:
        self.asked += 1
        while self.asked % self.several:
            await asyncio.sleep(0)
        return [vfgym.UserMessage("all are here")]


def test_what_waits_against_expectation_holds_up_nobody() -> None:
    """Plain code that waits for something async: the loop takes the other steps meanwhile, and all is as on the loop."""
    other = AllAsk(3)

    def ask(action: int) -> None:
        fork = other.fork()
        fork.reset(seed=0)
        assert fork.step("?").observation[-1].content == "all are here"

    envs = vector_of(ask, 3)
    envs.reset(seed=0)
    for _ in range(2):
        observations, rewards, *_ = envs.step(["0"] * 3)
    assert (moves(envs), rewards.tolist(), len(observations)) == ([2, 2, 2], [1.0, 1.0, 1.0], 3)
    envs.close()


def test_a_tool_that_is_added_later_may_wait() -> None:
    asking: list[int] = []

    async def meet() -> str:
        """Wait for the others."""
        asking.append(1)
        while len(asking) % 3:
            await asyncio.sleep(0)
        return "met"

    env = vfgym.ToolEnv(dataset=[{"question": "?"}])
    envs = ChatVectorEnv(env, 3)
    assert envs._plays_here
    env.add_tool(meet)
    envs.reset(seed=0)
    call = {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": {"name": "meet", "arguments": "{}"}}]}
    observations, *_ = envs.step([call] * 3)
    assert [conversation[-1]["content"] for conversation in observations] == ["met"] * 3
    envs.close()
