"""Samples: every credit and every advantage is a sum over the trajectory that is written out here, and masks select the model's tokens."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import vfgym
from vfgym.endings import Ending
from vfgym.errors import ConfigurationError, Error
from vfgym.messages import Message, ResponseMessage, ResponseTokens
from vfgym.results import load_results, processed_outputs
from vfgym.results.credit import accounts_of
from vfgym.results.samples import group_advantages, group_rewards
from vfgym.training import NoTokens, samples

CREDITS = ("return", "step", "to_go")


def turn(reward: float, player: Any = None, rewards: dict[Any, float] | None = None) -> dict[str, Any]:
    extras: dict[str, Any] = {"reward": reward}
    if player is not None:
        extras |= {"player": player, "rewards": rewards or {}, "self_play": True}
    return {"prompt": [], "completion": [], "tokens": None, "extras": extras}


def rollout(*rewards: float, example_id: int = 0, joined: bool = True, **fields: Any) -> dict[str, Any]:
    """A rollout of turns that earned this; where they are not joined, no prompt extends the turn before."""
    trajectory = [turn(reward) for reward in rewards]
    for number, step in enumerate(trajectory):
        step["prompt"] = [{"role": "user", "content": f"{number if not joined else 'begin'}"}]
        if joined:
            for before in trajectory[:number]:
                step["prompt"] = [*before["prompt"], *before["completion"]]
        step["completion"] = [{"role": "assistant", "content": str(number)}]
    return {"example_id": example_id, "reward": sum(rewards), "error": None, "trajectory": trajectory, **fields}


def mean(numbers: Sequence[float]) -> float:
    return sum(numbers) / len(numbers)


# Credit and advantage


def test_a_sample_a_turn_is_credited_with_what_comes_from_it_on() -> None:
    group = [rollout(1.0, 2.0, 4.0, joined=False), rollout(8.0, joined=False)]
    assert [(s.turns, s.reward, s.advantage) for s in samples(group, credit="to_go")] == [
        ([0], 7.0, 7.0 - 7.5),
        ([1], 6.0, 6.0 - 3.0),  # the other one has ended, and counts with 0
        ([2], 4.0, 4.0 - 2.0),
        ([0], 8.0, 8.0 - 7.5),
    ]
    assert [s.reward for s in samples(group[:1], credit="to_go", gamma=0.5)] == [1 + 1 + 1, 2 + 2, 4]
    assert [(s.reward, s.advantage) for s in samples(group, credit="step")] == [(1.0, -3.5), (2.0, 1.0), (4.0, 2.0), (8.0, 3.5)]
    assert [(s.reward, s.advantage) for s in samples(group)] == [(7.0, -0.5)] * 3 + [(8.0, 0.5)]


@given(st.lists(st.lists(st.integers(-8, 8).map(float), max_size=4), min_size=1, max_size=5), st.booleans(), st.sampled_from([1.0, 0.5]))
def test_every_number_is_a_sum_over_the_trajectory(returns: list[list[float]], joined: bool, gamma: float) -> None:
    group = [rollout(*rewards, joined=joined) for rewards in returns]
    for credit, advantage in itertools.product(CREDITS, ("group", "leave_one_out")):
        if gamma != 1.0 and credit != "to_go":
            continue

        def earned(rewards: list[float], turns: list[int], credit: str = credit) -> float:
            if credit == "return":
                return sum(rewards)
            if credit == "step":
                return sum(rewards[turn] for turn in turns if turn < len(rewards))
            first = turns[0]
            return sum(gamma ** (later - first) * reward for later, reward in enumerate(rewards) if later >= first)

        found = iter(samples(group, credit=credit, gamma=gamma, advantage=advantage))
        for own, rewards in enumerate(returns):
            chains = [list(range(len(rewards)))] if joined else [[turn] for turn in range(len(rewards))]
            for turns in chains if rewards else []:
                sample = next(found)
                others = [each for number, each in enumerate(returns) if advantage == "group" or number != own]
                baseline = mean([earned(each, turns) for each in others]) if others else 0.0
                assert sample.turns == turns
                assert sample.reward == pytest.approx(earned(rewards, turns))
                assert sample.advantage == pytest.approx(earned(rewards, turns) - baseline)
        assert next(found, None) is None


# Failed rollouts


# Self-play


def table(*moves: tuple[Any, dict[Any, float]], **fields: Any) -> dict[str, Any]:
    trajectory = [turn(rewards[0], player, rewards) for player, rewards in moves]
    for number, step in enumerate(trajectory):
        step["prompt"] = [{"role": "user", "content": f"move {number}"}]
    total = sum(rewards[0] for _, rewards in moves)
    return {"example_id": 0, "reward": total, "error": None, "trajectory": trajectory, **fields}


def test_each_seat_is_credited_with_its_own_rewards() -> None:
    won = table((0, {0: 0.0, 1: 0.0}), (1, {0: 0.0, 1: 0.5}), (0, {0: 1.0, 1: -1.0}))
    lost = table((0, {0: 0.0, 1: 0.0}), (1, {0: -1.0, 1: 1.0}))
    found = samples([won, lost], credit="to_go")
    assert [(s.player, s.turns) for s in found] == [(0, [0]), (1, [1]), (0, [2]), (0, [0]), (1, [1])]
    assert [s.reward for s in found] == [1.0, -0.5, 1.0, -1.0, 1.0]
    assert [s.advantage for s in found] == [1.0 - 0.0, -0.5 - 0.25, 1.0 - 0.5, -1.0 - 0.0, 1.0 - 0.25]
    assert [s.reward for s in samples([won], player="1")] == [-0.5] * 3
    assert [s.reward for s in samples([won, lost], credit="step")] == [0.0, 0.5 - 1.0, 1.0, -1.0, 1.0]
    assert samples(json.loads(json.dumps([won, lost]))) == samples([won, lost])
    with pytest.raises(ConfigurationError, match="no player '2'; its players are 0, 1"):
        samples([won], player="2")


GAMES: dict[str, tuple[Callable[[], Any], list[str], dict[Any, list[float]]]] = {
    # What each turn of each seat is credited with: whatever came of the others' turns after it, too.
    "won in the last move": (
        lambda: vfgym.TextArenaEnv("TicTacToe-v0", opponents="self"),
        [f"[{cell}]" for cell in (0, 3, 1, 4, 2)],
        {0: [0.0, 0.0, 1.0], 1: [0.0, -1.0]},
    ),
    "rewarded after each round": (
        lambda: vfgym.PettingZooEnv("classic/rps_v2", opponents="self", game_options={"max_cycles": 3}),
        [f"<action>{hand}</action>" for hand in ("rock", "paper", "rock", "scissors", "paper", "paper")],
        {"player_0": [-1.0, 1.0, 0.0], "player_1": [1.0, -1.0, 0.0]},
    ),
    "folded at once": (
        lambda: vfgym.PettingZooEnv("classic/leduc_holdem_v4", opponents="self"),
        ["<action>raise</action>", "<action>fold</action>"],
        {"player_0": [1.0], "player_1": [-1.0]},
    ),
    "won against two others": (
        lambda: vfgym.TextArenaEnv("ThreePlayerTicTacToe-v0", opponents="self"),
        [f"[{cell}]" for cell in (0, 5, 10, 1, 6, 11, 2, 7, 12, 3)],
        {0: [0.0, 0.0, 0.0, 1.0], 1: [0.0, 0.0, -1.0], 2: [0.0, 0.0, -1.0]},
    ),
}


@pytest.mark.parametrize("game", GAMES)
def test_what_the_others_did_is_booked_on_a_seats_own_turns(game: str) -> None:
    make, moves, expected = GAMES[game]
    said = iter(moves)

    async def play() -> vfgym.State:
        groups = vfgym.rollout(make(), lambda observation, info: next(said), example_ids=[0], max_concurrent=1)
        return (await anext(groups)).states[0]

    state = asyncio.run(play())
    assert {account.seat: account.earned for account in accounts_of(state)} == expected
    by_seat = {sample.player: sample for sample in samples([state], credit="step")}
    assert {seat: sample.reward for seat, sample in by_seat.items()} == {seat: sum(earned) for seat, earned in expected.items()}
    assert {seat: sample.reward for seat, sample in by_seat.items()} == state["rewards"]
    discounted = {sample.player: sample.reward for sample in samples([state], credit="to_go", gamma=0.5)}
    assert discounted == {seat: sum(0.5**turn * reward for turn, reward in enumerate(earned)) for seat, earned in expected.items()}


@given(st.lists(st.tuples(st.integers(0, 3), st.lists(st.integers(-4, 4).map(float), min_size=4, max_size=4)), min_size=1, max_size=12))
def test_the_steps_of_every_seat_sum_to_its_return(moves: list[tuple[int, list[float]]]) -> None:
    game = table(*((player, dict(enumerate(rewards))) for player, rewards in moves))
    found = samples([game], credit="step")
    assert [sample.turns for sample in found] == [[turn] for turn in range(len(moves))]
    for seat in {player for player, _ in moves}:
        own = [sample for sample in found if sample.player == seat]
        assert sum(sample.reward for sample in own) == sum(rewards[seat] for _, rewards in moves)
        assert samples([game])[own[0].turns[0]].reward == sum(rewards[seat] for _, rewards in moves)
        for number, sample in enumerate(own):
            [first] = sample.turns if number else [0]  # what came before a seat's first turn is booked on that
            last = own[number + 1].turns[0] if number + 1 < len(own) else len(moves)
            assert sample.reward == sum(rewards[seat] for _, rewards in moves[first:last])


# Endings


def ended(*rewards: float, ending: Ending, **fields: Any) -> dict[str, Any]:
    return rollout(*rewards, ending=str(ending), failed=ending.failed, **fields)


@pytest.mark.parametrize("ending", Ending)
def test_samples_say_how_their_rollout_ended(ending: Ending) -> None:
    [sample] = samples([ended(1.0, ending=ending, attempt=3)], failures="least")
    flags = (sample.terminated, sample.truncated, sample.cut, sample.failed)
    assert flags == tuple(ending.kind == kind for kind in ("terminated", "truncated", "cut", "failed"))
    assert (sample.ending, sample.cause, sample.attempt) == (ending, ending.cause, 3)


def test_what_was_cut_counts_with_the_least_of_what_it_earned_and_of_what_failing_earns() -> None:
    """MountainCar: -1 a step, and a limit of 5 turns. Whoever is cut off early must not look better than who drove up."""
    whole, cut = ended(*[-1.0] * 100, ending=Ending.TERMINATED), ended(*[-1.0] * 5, ending=Ending.CUT)
    assert [s.reward for s in samples([whole, {**cut, "counted_reward": -200.0}])] == [-100.0, -200.0]
    assert [s.reward for s in samples([whole, {**cut, "counted_reward": -7.0, "failure_reward": -3.0}])] == [-100.0, -100.0]
    assert [s.reward for s in samples([whole, cut])] == [-100.0, -100.0]  # nothing is declared
    assert [s.reward for s in samples([ended(-1.0, ending=Ending.CUT), cut])] == [-5.0, -5.0]  # and nobody got to an end
    assert [s.reward for s in samples([ended(4.0, ending=Ending.CUT), ended(9.0, ending=Ending.TRUNCATED)])] == [4.0, 9.0]
    assert samples([whole, cut], credit="step")[1].reward == -100.0


@pytest.mark.parametrize("ending", [Ending.INFRASTRUCTURE_FAILED, Ending.ENVIRONMENT_FAILED])
def test_what_says_nothing_of_the_policy_is_in_no_sample_and_no_baseline(ending: Ending) -> None:
    broken = ended(-9.0, ending=ending, counted_reward=-100.0)
    group = [ended(1.0, ending=Ending.TERMINATED), broken, ended(3.0, ending=Ending.TRUNCATED)]
    for credit, advantage in itertools.product(CREDITS, ("group", "leave_one_out", "group_std")):
        found = samples(group, credit=credit, advantage=advantage)
        without = samples(group[::2], credit=credit, advantage=advantage)
        assert [(s.rollout, s.reward, s.advantage) for s in found] == [(2 * s.rollout, s.reward, s.advantage) for s in without]
        assert found.dropped == {ending.cause: 1}
        assert without.dropped == {}
    assert [s.reward for s in samples(group, failures="least")] == [1.0, -100.0, 3.0]
    assert samples([broken]) == []
    assert group_rewards(group) == [1.0, None, 3.0]
    assert group_advantages(group, group_rewards(group), has_own=False) == [-1.0, 0.0, 1.0]
    assert group_advantages([broken], group_rewards([broken]), has_own=False) == [0.0]


@given(st.floats(-1e9, 1e9), st.integers(2, 40), st.sampled_from([1.0, 0.9]))
def test_equal_rewards_have_advantages_of_exactly_nothing(reward: float, size: int, gamma: float) -> None:
    """The sum of ten times 0.1 is not 1, and its tenth is not 0.1."""
    for credit, advantage, joined in itertools.product(CREDITS, ("group", "leave_one_out", "group_std"), (True, False)):
        group = [rollout(reward, reward / 3, joined=joined) for _ in range(size)]
        found = samples(group, credit=credit, advantage=advantage, gamma=gamma if credit == "to_go" else 1.0)
        assert {sample.advantage for sample in found} == {0.0}
    rewards = group_rewards(group)
    assert group_advantages(group, rewards, has_own=False) == [0.0] * size


def test_the_last_observation_is_kept_where_a_limit_of_the_task_ended_it() -> None:
    def turns_with_tokens() -> list[dict[str, Any]]:
        steps = rollout(1.0, 2.0)["trajectory"]
        for number, step in enumerate(steps):
            ids = list(range(1 + 2 * number))
            step["tokens"] = {"prompt_ids": ids, "completion_ids": [7], "completion_mask": [1], "completion_logprobs": [-1.0]}
        return steps

    steps = turns_with_tokens()
    whole = [*steps[-1]["prompt"], *steps[-1]["completion"]]
    spoken = {"trajectory": steps, "prompt": whole[:1], "completion": whole[1:], "example_id": 0, "reward": 3.0}
    reply = [{"role": "user", "content": "and then?"}]
    for ending in Ending:
        found = samples([{**spoken, "ending": str(ending)}], failures="least")
        kept = [(sample.last_observation, sample.last_ids) for sample in found]
        assert kept == [(whole, [0, 1, 2, 7]) if ending is Ending.TRUNCATED else (None, None)] * len(found)
    truncated = {**spoken, "ending": "truncated"}
    goes_on = {**truncated, "completion": [*whole[1:], *reply]}
    assert [(s.last_observation, s.last_ids) for s in samples([goes_on])][-1] == ([*whole, *reply], None)
    noted = {**goes_on, "last_observation": reply, "last_ids": [5, 6]}
    assert [(s.last_observation, s.last_ids) for s in samples([noted])][-1] == (reply, [5, 6])


def with_tokens(*turns: tuple[list[int], list[int]], messages_go_on: bool = True, **fields: Any) -> dict[str, Any]:
    """A rollout whose turns have these ids of their prompts and of their completions."""
    made = rollout(*[1.0] * len(turns), joined=messages_go_on, **fields)
    for step, (prompt, completion) in zip(made["trajectory"], turns, strict=True):
        many = len(completion)
        step["tokens"] = {"prompt_ids": prompt, "completion_ids": completion} | {"completion_mask": [1] * many}
        step["tokens"]["completion_logprobs"] = [-0.5] * many
    return made


@pytest.mark.parametrize(
    ("ids", "messages_go_on", "fork"),
    [
        ([1, 2, 3], True, None),
        ([1, 2, 3, 4], False, None),
        ([9, 2, 3, 4], True, "at token 0, in the prompt of that turn: its messages go on from there, but were tokenised anew"),
        ([1, 9, 3, 4], False, "at token 1, in the prompt of that turn: its messages do not go on from there"),
        ([1, 2, 9, 4], True, "at token 2, in the completion of that turn: its messages go on from there, but were tokenised anew"),
        ([1, 2], False, "at token 2, in the completion of that turn: its messages do not go on from there"),
        ([], False, "at token 0, in the prompt of that turn: its messages do not go on from there"),
    ],
)
def test_a_turn_goes_on_where_its_ids_begin_with_those_of_the_turn_before(ids: list[int], messages_go_on: bool, fork: str | None) -> None:
    found = samples([with_tokens(([1, 2], [3]), (ids, [5]), messages_go_on=messages_go_on)])
    assert [sample.fork for sample in found] == ([None] if fork is None else [None, f"turn 1 leaves turn 0 {fork}"])


@pytest.mark.parametrize("without", [0, 1])
def test_where_one_of_two_turns_has_no_tokens_their_messages_say_whether_it_goes_on(without: int) -> None:
    for joined in (True, False):
        made = with_tokens(([1], [2]), ([1, 2], [3]), messages_go_on=joined)
        made["trajectory"][without]["tokens"] = None
        found = samples([made])
        assert [sample.turns for sample in found] == ([[0, 1]] if joined else [[0], [1]])
        assert found[-1].fork == (None if joined else "turn 1 does not extend turn 0: its messages do not go on from there")
        with pytest.raises(NoTokens, match=f"turn {without} of example 0 has no token data"):
            found[0 if joined else without].tokens  # noqa: B018
        if not joined:
            assert found[1 - without].ids == [[1, 2, 3], [1, 2]][without]
    made["trajectory"][0]["prompt"] = "not messages"
    assert [sample.turns for sample in samples([made])] == [[0], [1]]


def test_token_data_have_one_entry_for_each_id_and_the_spans_of_the_answers() -> None:
    made = with_tokens(([1, 2], [3, 4]), ([1, 2, 3, 4, 5], [6]), ([1, 2, 3, 4, 5, 6], []))
    made["trajectory"][0]["tokens"]["completion_mask"] = [1, 0]
    [sample] = samples([made])
    assert (sample.ids, sample.mask) == ([1, 2, 3, 4, 5, 6], [0, 0, 1, 0, 0, 1])
    assert (sample.logprobs, sample.num_prompt_ids) == ([0.0, 0.0, -0.5, 0.0, 0.0, -0.5], 2)
    assert (sample.tokens.spans, sample.is_truncated) == ([(2, 4), (5, 6), (6, 6)], False)
    for number, place in ((0, "step"), (2, "step"), (0, "tokens"), (2, "tokens")):
        cut = with_tokens(([1, 2], [3, 4]), ([1, 2, 3, 4, 5], [6]), ([1, 2, 3, 4, 5, 6], []))
        step = cut["trajectory"][number]
        (step if place == "step" else step["tokens"])["is_truncated"] = True
        assert samples([cut])[0].is_truncated, "one of its turns is enough"


def test_the_last_ids_are_not_known_where_the_last_turn_has_none_or_not_all() -> None:
    made = with_tokens(([1], [2]), ending="truncated")
    made |= {"prompt": made["trajectory"][0]["prompt"], "completion": made["trajectory"][0]["completion"]}
    tokens = made["trajectory"][0]["tokens"]
    assert samples([made])[0].last_ids == [1, 2]
    noted = [4]
    [sample] = samples([{**made, "last_ids": noted}])
    noted.append(5)
    assert sample.last_ids == [4]
    assert samples([{**made, "last_ids": []}])[0].last_ids == []
    assert samples([{**made, "last_observation": []}])[0].last_observation == []
    tokens["is_truncated"] = True
    assert samples([made])[0].last_ids is None
    made["trajectory"][0]["tokens"] = None
    assert samples([made])[0].last_ids is None


def test_of_a_truncated_game_each_seat_keeps_what_it_saw_itself() -> None:
    game = table((0, {0: 0.0, 1: 0.0}), (1, {0: 0.0, 1: 0.0}), ending="truncated", prompt=["all"], completion=["seen"])
    for number, step in enumerate(game["trajectory"]):
        step["completion"] = [{"role": "assistant", "content": f"answer {number}"}]
        step["tokens"] = {"prompt_ids": [number], "completion_ids": [7], "completion_mask": [1], "completion_logprobs": [0.0]}
    assert [(sample.last_observation, sample.last_ids) for sample in samples([game])] == [
        ([*step["prompt"], *step["completion"]], [number, 7]) for number, step in enumerate(game["trajectory"])
    ]


def test_a_sample_names_its_rollout_its_group_its_attempt_and_its_policies() -> None:
    rollouts = [rollout(1.0, 2.0, example_id=4), rollout(3.0, example_id=4, group=0, attempt=None), rollout(5.0, example_id=5, group=0)]
    for version, step in zip((0, None), rollouts[0]["trajectory"], strict=True):
        step["extras"] |= {} if version is None else {"policy_version": version}
    rollouts[1]["trajectory"][0]["extras"] = {"reward": 3.0, "policy_version": None}
    found = samples(rollouts)
    assert [(s.rollout, s.example_id, s.group, s.attempt, s.advantage) for s in found] == [
        (0, 4, 4, 1, 0.0),
        (1, 4, 0, 1, -1.0),
        (2, 5, 0, 1, 1.0),
    ]
    assert [s.policy_versions for s in found] == [[0, None], [None], [None]]
    assert [s.advantage for s in samples(rollouts, advantage=None)] == [None] * 3


def test_a_groups_advantages_may_be_the_rubrics_own() -> None:
    group = [
        ended(4.0, ending=Ending.TERMINATED, advantage=0.25),
        ended(2.0, ending=Ending.TRUNCATED, advantage=0.0),
        ended(9.0, ending=Ending.CUT, advantage=0.5),
        ended(9.0, ending=Ending.POLICY_FAILED, advantage=0.5),
        ended(9.0, ending=Ending.INFRASTRUCTURE_FAILED, advantage=0.5),
    ]
    rewards = group_rewards(group)
    assert rewards == [4.0, 2.0, 2.0, 2.0, None]
    assert group_advantages(group, rewards, has_own=True) == [0.25, 0.0, -0.5, -0.5, 0.0]
    assert group_advantages(group, rewards, has_own=False) == [1.5, -0.5, -0.5, -0.5, 0.0]
    assert group_rewards(group, "least") == [4.0, 2.0, 2.0, 2.0, 2.0]
    assert group_rewards([{"reward": None, "trajectory": []}, rollout(0.0)]) == [0.0, 0.0]
    assert (group_rewards([]), group_advantages([], [], has_own=True)) == ([], [])


# Bad input


@pytest.mark.parametrize("arguments", [{"failures": "dorp"}, {"credit": "retrun"}, {"advantage": "mean"}, {"gamma": 0.9}])
def test_choices_that_there_are_not_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        samples([rollout(1.0)], **arguments)


def test_what_cannot_be_a_sample_is_named() -> None:
    with pytest.raises(Error, match="example 3 has no trajectory"):
        samples([{"example_id": 3, "reward": 1.0}])
    with pytest.raises(Error, match="turn 0 of example 0 earned nan"):
        samples([rollout(float("nan"))])
    [silent] = samples([rollout(1.0)])
    with pytest.raises(NoTokens, match="turn 0 of example 0 has no token data"):
        silent.ids  # noqa: B018
    broken = rollout(1.0)
    broken["trajectory"][0]["tokens"] = {"prompt_ids": [1], "completion_ids": [2, 3], "completion_mask": [1], "completion_logprobs": [-1.0]}
    with pytest.raises(Error, match="turn 0 of example 0 has 2 completion ids, a mask of 1 and 1 log-probabilities"):
        samples([broken])


# Tokens of real episodes


class Typist:
    """A model whose tokens are letters: it continues from the very tokens of the conversation, or spells it anew."""

    def __init__(self, *, keeps_tokens: bool = True) -> None:
        self.keeps_tokens = keeps_tokens
        self.policy_version = 3

    def for_episode(self, env: Any) -> Any:
        seen: list[int] = []

        def answer(observation: list[Message], info: dict[str, Any]) -> vfgym.Response:
            text = "".join(f"<{message['role'][0]}>{message['content']}" for message in observation)
            prompt = [ord(letter) for letter in text]
            if not self.keeps_tokens and len(observation) > 1:
                prompt[3] += 1
            said = [ord(letter) for letter in "<a>ok"]
            tokens = ResponseTokens(prompt, [0] * len(prompt), said, [1] * len(said), [-0.25 * each for each in range(len(said))])
            seen.append(len(prompt))
            return vfgym.Response("r", 0, "letters", None, ResponseMessage("ok", tokens=tokens))

        return answer


class Talk(vfgym.MultiTurnEnv):
    """Asks again; each turn earns its number."""

    def __init__(self) -> None:
        rubric = vfgym.Rubric(lambda state: 10.0)
        rubric.add_step_reward_func(lambda state: float(len(state["trajectory"])))
        super().__init__(dataset=[{"question": "go"}], max_turns=3, rubric=rubric)

    def env_response(self, messages: Any, state: vfgym.State) -> list[Message]:
        return [vfgym.UserMessage("again")]


def test_the_ids_are_those_that_the_model_saw_and_the_mask_selects_those_that_it_wrote(tmp_path: Any) -> None:
    outputs = vfgym.evaluate(Talk(), Typist(), state_columns=["trajectory"], results_path=tmp_path, progress=False)
    [sample] = samples(outputs["outputs"])
    assert "".join(map(chr, sample.ids)) == "<u>go<a>ok<u>again<a>ok<u>again<a>ok"
    assert "".join(chr(id) for id, kept in zip(sample.ids, sample.mask, strict=True) if kept) == "<a>ok" * 3
    in_answer = [-0.25 * place if kept else 0.0 for place, kept in zip(_places_in_answers(sample.mask), sample.mask, strict=True)]
    assert sample.logprobs == in_answer
    assert (sample.reward, sample.turns, sample.fork, sample.policy_versions) == (16.0, [0, 1, 2], None, [3, 3, 3])
    assert samples(load_results(tmp_path)["outputs"]) == [sample]
    assert processed_outputs(outputs["outputs"], interleaved=True)["rewards"] == [sample.reward]


def _places_in_answers(mask: list[int]) -> list[int]:
    places, place = [], 0
    for kept in mask:
        places.append(place)
        place = place + 1 if kept else 0
    return places


def test_a_prompt_that_was_tokenised_anew_is_a_fork_that_says_where() -> None:
    outputs = vfgym.evaluate(Talk(), Typist(keeps_tokens=False), state_columns=["trajectory"], progress=False)
    first, second = samples(outputs["outputs"], credit="to_go")
    assert (first.turns, second.turns) == ([0], [1, 2])
    assert (
        second.fork == "turn 1 leaves turn 0 at token 3, in the prompt of that turn: its messages go on from there, but were tokenised anew"
    )
    assert (first.reward, second.reward) == (16.0, 15.0)
