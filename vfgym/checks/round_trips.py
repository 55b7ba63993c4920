"""Round trips: what an environment was made of is played or scored beside it, and must give the same, bit for bit.

A Gymnasium game that became a chat environment is turned back and played beside the bare game, an answer to a dataset of
reasoning-gym is scored by its own scorer. `table_round_trips` does the same for games of several players.
"""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable
from typing import Any

import gymnasium as gym

from vfgym.agents.base import seat_of
from vfgym.bounded_json import parse_json
from vfgym.checks.comparison import Broken, Promise, expect_same, same
from vfgym.checks.table_round_trips import (
    InSelfPlay,
    draws_its_own_numbers,
    is_its_table,
    is_pettingzoos_game,
    is_textarenas_game,
    plays_pettingzoo,
    takes_its_own_moves,
)
from vfgym.envs import ChatEnv
from vfgym.wrappers.games.answers import Answers
from vfgym.wrappers.games.multiplayer import MultiplayerEnv
from vfgym.wrappers.games.turns import game_reward
from vfgym.wrappers.gymnasium.game import GymnasiumGame
from vfgym.wrappers.reasoning_gym import ReasoningGymEnv
from vfgym.wrappers.reasoning_gym.items import ItemRows
from vfgym.wrappers.reasoning_gym.package import borrow_random_numbers
from vfgym.wrappers.reasoning_gym.scoring import score
from vfgym.wrappers.textarena.env import TextArenaEnv
from vfgym.wrappers.to_chat import to_chat
from vfgym.wrappers.to_gym import By, to_gym
from vfgym.wrappers.to_reasoning_gym import to_reasoning_gym

_SEED = 3
_SAMPLES = 100
"""Actions of a game that are written and read back."""
_MOVES = 100
"""Moves that are played."""
_ITEMS = 3
"""Tasks of reasoning-gym that are answered."""
_GARBAGE = ("", "zzz", "0", "[1, 2]", "None", "\N{PILE OF POO} <answer>")


def round_trips(definition: ChatEnv, make: Callable[[], gym.Env[Any, Any]]) -> list[Promise]:
    """Return the promises that follow from what an environment was made of; none for one that its author wrote.

    Args:
        definition: The environment.
        make: Makes one more of it, perhaps inside wrappers, which have no part in the round trips.
    """
    promises: list[Promise] = []

    def promise(text: str, check: Callable[[Any], str]) -> None:
        promises.append((text, lambda: check(seat_of(make()).definition)))

    if isinstance(definition, GymnasiumGame):
        promise("reads each action of its game as it writes it", _reads_what_it_writes)
        promise("is its game again when turned back with to_gym, by text", lambda env: _is_the_bare_game(env, "text"))
        promise("is its game again when turned back with to_gym, by tool call", lambda env: _is_the_bare_game(env, "tool"))
    if isinstance(definition, MultiplayerEnv):
        promise("tells and pays what the table does for the same moves", is_its_table)
        if not definition.is_self_play:
            promise("tells and pays the same in self-play", lambda env: is_its_table(InSelfPlay(env)))
        promise("takes the moves that it samples and those that it calls legal", takes_its_own_moves)
        promise("draws from no random numbers but its own", draws_its_own_numbers)
    if isinstance(definition, TextArenaEnv):
        promise("is TextArena's own game again, with to_textarena too", is_textarenas_game)
    if isinstance(definition, MultiplayerEnv) and plays_pettingzoo(definition):
        promise("is PettingZoo's own game again, with to_pettingzoo too", is_pettingzoos_game)
    if isinstance(definition, ReasoningGymEnv):
        promise("pays what the dataset's own scorer gives", _pays_the_original_score)
        promise("is its dataset again when turned back with to_reasoning_gym", _is_the_original_dataset)
    return promises


# Games of Gymnasium


def _reads_what_it_writes(definition: GymnasiumGame) -> str:
    """Write actions as text, as an answer, as a tool call and as JSON, and read them back."""
    codec = definition.codec
    answers = Answers(codec, as_tool=True)
    space = copy.deepcopy(codec.space)  # its random numbers may be in use
    space.seed(0)
    for _ in range(_SAMPLES):
        action = space.sample()
        data = json.dumps(codec.to_json(action), allow_nan=False)
        for written, again in (
            (codec.encode(action), codec.decode(codec.encode(action))),
            (data, codec.from_json(parse_json(data))),
            (answers.in_text(action), answers.read(answers.in_text(action))),
            (answers.as_call(action), answers.read(answers.as_call(action))),
        ):
            if not same(again, action):
                raise Broken(f"the action {action!r} is written as {written!r}, which is read as {again!r}")
    return f"{_SAMPLES} samples"


def _is_the_bare_game(definition: GymnasiumGame, by: By) -> str:
    """Play the bare game beside the chat environment that was turned back, with the same seeds and actions."""
    env: Any = definition
    if by == "tool" and not definition.answers.as_tool:
        env = to_chat(definition.open_game, as_tool=True, action_names=definition.codec.names, obs_to_text=repr)
    pays_the_game = _pays_what_its_game_does(env)
    seat = env.fork()
    back, native = to_gym(seat, by), definition.open_game()
    try:
        space = copy.deepcopy(native.action_space)
        space.seed(_SEED)
        expect_same("the first observation and info", back.reset(seed=_SEED), native.reset(seed=_SEED), f"after reset(seed={_SEED})")
        for move in range(1, _MOVES + 1):
            action = space.sample()
            # Observations are compared as they come: some games hand out an array that they go on changing.
            given = back.step(action)
            observation, reward, terminated, truncated, info = native.step(copy.deepcopy(action))
            state: Any = seat.state
            where = f"of move {move} ({action!r:.50})"
            expect_same("the observation", given[0], observation, where)
            expect_same("the game's reward", state["trajectory"][-1]["reward"], float(reward), where)
            if pays_the_game:
                expect_same("the reward", given[1], float(reward), where)
            if state["stop_condition"] in (None, "game_over", "game_truncated"):  # and not a limit of the chat environment's own
                expect_same("terminated and truncated", given[2:4], (bool(terminated), bool(truncated)), where)
            expect_same("the info", given[4], info, where)
            if given[2] or given[3]:
                expect_same("the first observation and info", back.reset(), native.reset(), f"of the game after move {move}")
    finally:
        seat.close()
        native.close()
        if env is not definition:
            env.close()
    return f"{_MOVES} moves"


def _pays_what_its_game_does(env: ChatEnv) -> bool:
    """Say whether the rubric emits the game's rewards and nothing else."""
    steps = [function for function, _ in env.rubric.step_scorers() if function.weight]
    paying = [(function.plan.func, function.weight) for function in (*steps, *(each for each in env.rubric.functions if each.weight))]
    return paying == [(game_reward, 1.0)]


# Datasets of reasoning-gym


def _tasks_of_its_dataset(env: ReasoningGymEnv) -> list[int]:
    """Return the ids of a few tasks; none where the tasks are not items of the dataset any more."""
    rows = env.tasks_of("train").rows
    return list(rows.example_ids[:_ITEMS]) if isinstance(rows, ItemRows) else []


def _pays_the_original_score(env: ReasoningGymEnv) -> str:
    """Compare rewards with the scorer of the dataset, of right, wrong, empty and unreadable answers.

    Where the scorer lets wrong answers pass, the environment may give less: what `vfgym.wrappers.reasoning_gym.scoring` documents.
    """
    example_ids = _tasks_of_its_dataset(env)
    paying = [function.plan.func for function in env.rubric.functions if function.weight]
    if not example_ids or paying != [env.check_answer_reward_func] or env.rubric.step_scorers():
        return "not compared: its rewards are not those of its dataset alone"
    seat = env.fork()
    known: list[str | None] = []
    """The right answers, of which each is a wrong one to the next task."""
    for example_id in example_ids:
        seat.reset(options={"example_id": example_id})
        answer = env.oracle(seat.state)  # type: ignore[arg-type]  # an episode has begun
        known.append(None if answer is None else env.answer_in(answer))
    repaired = 0
    for place, example_id in enumerate(example_ids):
        entry, level = env.items.entry(example_id), example_id // env.items.size
        dataset, name = env.items.dataset(level), env.items.source(entry)
        for answer in (known[place], known[place - 1], *_GARBAGE):
            if answer is None:
                continue
            seat.reset(options={"example_id": example_id})
            reward = seat.step(_tag_answer(env, answer)).reward
            expected = _original_score(dataset, env.answer_in(_tag_answer(env, answer)), entry)
            if reward < expected and answer != known[place] and reward == score(dataset, name, answer.strip(), entry):
                repaired += 1
            elif reward != expected:
                raise Broken(f"the answer {answer!r:.80} to task {example_id} pays {reward}, and the dataset's scorer gives {expected}")
        if known[place] is not None and _original_score(dataset, known[place], entry) != 1.0:
            raise Broken(f"the oracle's answer {known[place]!r:.80} to task {example_id} is not right")
    seat.close()
    notes = f", {repaired} of them scored lower than by the dataset, whose scorer lets wrong ones pass" if repaired else ""
    return f"answers to {len(example_ids)} task(s){notes}"


def _tag_answer(env: ReasoningGymEnv, answer: str) -> str:
    """Return an answer as the parser wants it; an empty one stays empty."""
    field = getattr(env.parser, "answer_field", None)
    return f"<{field}>{answer}</{field}>" if field and answer else answer


def _original_score(dataset: Any, answer: str | None, entry: dict[str, Any]) -> float:
    """Return what a dataset's scorer gives; some raise on text that they cannot read, or give no number, which is worth 0.0."""
    try:
        value = float(dataset.score_answer(answer, entry))
    except Exception:
        return 0.0
    return value if math.isfinite(value) else 0.0


def _is_the_original_dataset(env: ReasoningGymEnv) -> str:
    """Compare entries and scores of the environment, turned back into a dataset, with those of the original dataset and the environment."""
    example_ids = _tasks_of_its_dataset(env)
    if not example_ids or env.curriculum is not None:
        return "not compared: it has a curriculum, or other tasks than its dataset's"
    from vfgym.wrappers.reasoning_gym.dataset import ItemDataset  # which imports reasoning-gym

    back = to_reasoning_gym(env)
    if not isinstance(back, ItemDataset):
        return "not compared: its tasks are played to be scored, since its rewards are not those of its dataset alone"
    dataset, seat = env.items.dataset(), env.fork()
    for index, example_id in enumerate(example_ids):
        with borrow_random_numbers(env.items.seed + example_id):  # from which some items are made
            entry = dataset[example_id]
        expect_same("the entry", back[index], entry, f"number {index}")
        for answer in (str(entry["answer"]), *_GARBAGE):
            seat.reset(options={"example_id": example_id})
            expect_same("the score", back.score_answer(answer, entry), seat.step(answer).reward, f"of {answer!r:.80} in entry {index}")
    seat.close()
    return f"{len(example_ids)} entries"
