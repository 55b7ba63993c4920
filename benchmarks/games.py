"""CPU time of games: a step of the chat environment beside the game itself, rollouts of `GymEnv`, and going back to an earlier state."""

from __future__ import annotations

import copy
import json
import logging
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.measuring import MICROSECONDS, MILLISECONDS, Bench, Figure, beside, cpu
from benchmarks.rollouts import bare_client, evaluation

# Steps of one environment


def steps(bench: Bench) -> Iterator[Figure]:
    """A step of plain hooks; and one of CartPole over the game's own, early in an episode and in a whole one, scored at its end."""
    import gymnasium as gym
    import numpy as np

    import vfgym
    from vfgym.messages import Message, UserMessage
    from vfgym.state import State

    class GoOn(vfgym.MultiTurnEnv):
        def env_response(self, messages: list[Message], state: State) -> list[Message]:
            return [UserMessage("go on")]

    def of_a_step(*episodes: tuple[Any, Sequence[Any]]) -> list[float]:
        measures = [lambda env=env, actions=actions: episode_of(env, actions, bench.count(2000, 20)) for env, actions in episodes]
        return [seconds * MICROSECONDS for seconds in bench.best(*measures, rounds=9)]

    story = GoOn(dataset=[{"question": "tell me a story"}])
    yield Figure("step() of plain hooks", of_a_step((story, ["and then?"] * 20))[0], "µs", 15.0)
    bare, chat, actions = gym.make("CartPole-v1", disable_env_checker=True), vfgym.to_chat("CartPole-v1"), balancing()
    for what, few in (("early in an episode", actions[:20]), ("in a whole episode, scored", actions)):
        game, step = of_a_step((bare, [np.int64(action) for action in few]), (chat, [str(action) for action in few]))
        yield Figure(f"step of CartPole {what}: the game's own", game, "µs")
        yield Figure(f"step of CartPole {what}: as chat, over the game's own", step - game, "µs", 18.0)


def episode_of(env: Any, actions: Sequence[Any], least: int) -> float:
    """Return the CPU seconds of a step, in as many episodes as have so many steps; `reset` is not counted."""

    def play() -> None:
        for action in actions:
            env.step(action)

    taken, several = 0.0, max(1, least // len(actions))
    for _ in range(several):
        env.reset(seed=0)
        taken += cpu(play)
    return taken / several / len(actions)


def balancing() -> list[int]:
    """Return the actions of an episode of CartPole in which the pole stays up for long."""
    import gymnasium as gym

    game = gym.make("CartPole-v1")
    observation, _ = game.reset(seed=0)
    actions: list[int] = []
    is_over = False
    while not is_over:
        actions.append(int(observation[2] + observation[3] > 0))
        observation, _, terminated, truncated, _ = game.step(actions[-1])
        is_over = terminated or truncated
    return actions


# Rollouts


def unknown_game() -> Any:
    """Return CartPole, made by a function of which nobody knows whether its games take long."""
    import gymnasium as gym

    return gym.make("CartPole-v1")


@beside("verifiers")
def gym_env(bench: Bench) -> Iterator[Figure]:
    """CartPole through `GymEnv`, about ten moves an episode."""
    import gymnasium as gym

    vf, count = bench.vf, bench.count(512, 16)

    def make(maker: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        return vf.GymEnv(maker, arguments, action_parser=int, num_train_episodes=count, num_eval_episodes=0)

    known = make(gym.make, {"id": "CartPole-v1"})
    runs = [evaluation(known, bare_client(vf, "1"), max_concurrent=at_once) for at_once in (1, 256)]
    # Moves are what all play; there is one model call more an episode where the end of a game is noticed late.
    moves = sum(len(output["completion"]) // 2 for output in runs[0]()["outputs"])
    [one, many] = [seconds / moves * MICROSECONDS for seconds in bench.best(*(lambda run=run: cpu(run) for run in runs))]  # type: ignore[misc]
    yield Figure("GymEnv: a step of CartPole, 1 at once", one, "µs")
    yield Figure("GymEnv: a step of CartPole, 256 at once", many, "µs", 60.0)
    game = gym.make("CartPole-v1")

    def play_alone() -> None:
        for seed in range(count):
            str(game.reset(seed=seed)[0])
            is_over = False
            while not is_over:
                observation, _, terminated, truncated, _ = game.step(1)
                str(observation)
                is_over = terminated or truncated

    [alone] = bench.best(lambda: cpu(play_alone))
    yield Figure("GymEnv: such a step of the game alone, with its observation as text", alone / moves * MICROSECONDS, "µs")
    [seconds] = bench.best(lambda: cpu(lambda: make(gym.make, {"id": "CartPole-v1"})))
    yield Figure("GymEnv: its constructor", seconds * MILLISECONDS, "ms")
    if bench.package == "verifiers_compat":  # which alone gives games threads
        run = evaluation(make(unknown_game, {}), bare_client(vf, "1"), max_concurrent=256)
        [seconds] = bench.best(lambda: cpu(run))
        yield Figure("GymEnv: a hop to a thread, 256 at once", seconds / moves * MICROSECONDS - many, "µs", 110.0)


# TextArena

SEED = 3
MOST_MOVES = 40
SLOW = frozenset({"Sokoban", "Sudoku", "RushHour", "Stratego", "WordLadder", "WordSearch", "WordChains", "SpellingBee"})
"""Games whose resets or random moves take seconds."""


class Played(NamedTuple):
    """A game with the moves that are made in it."""

    env_id: str
    players: int
    moves: list[tuple[int, str]]
    """Who moves, and how: random moves, legal ones where they can be found, to the end of the game or `MOST_MOVES`."""


def textarena(bench: Bench) -> Iterator[Figure]:
    """TextArena's games beside TextArena alone: the raw games (each move with its observation), and those in its own default wrappers.

    Here the policy has the first seat, and the others have their moves prepared. The end of an episode and its scoring, which a raw game
    does not have, are part of what is measured first.
    """
    logging.disable(logging.WARNING)  # random moves are wrong often enough
    whole = play_games(bench.count(1000, 3))
    for what, games in (
        ("whole episodes, scored", whole),
        ("moves before the last", [cut for played in whole if (cut := without_the_end(played)).moves]),
    )[: bench.count(2, 1)]:
        rounds = 12
        asked = {"games": [game._asdict() for game in games], "seed": SEED, "small": bench.small, "rounds": rounds}
        command = [sys.executable, "-m", "benchmarks.textarena_alone"]
        ran = subprocess.run(
            command,
            cwd=Path(__file__).parents[1],
            input=json.dumps(asked),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            check=True,
        )
        raw, chat, wrapped = 0.0, 0.0, 0.0
        for played, alone in zip(games, json.loads(ran.stdout.splitlines()[-1]), strict=True):
            if alone is not None:
                raw += alone[0] * len(played.moves)
                wrapped += alone[1] * len(played.moves)
                chat += as_chat(played, bench, rounds) * len(played.moves)
        name = f"TextArena's games together: {what}, over raw moves"
        yield Figure(name, chat / raw, "times", 2.0, wrapped / raw, "TextArena's own wrappers")


def play_games(most: int) -> list[Played]:
    """Return a random game of each of TextArena's games that can be played here."""
    import numpy as np

    from vfgym.wrappers.textarena import textarena_games, why_not
    from vfgym.wrappers.textarena.match import TextArenaGame

    ids: dict[str, str] = {}
    for env_id, facts in textarena_games().items():
        if len(ids) < most and facts["variant"] == "default" and facts["game"] not in SLOW and why_not(env_id) is None:
            ids.setdefault(facts["game"], env_id)
    found = []
    for env_id in ids.values():
        table, rng, moves = TextArenaGame(env_id, max_moves=MOST_MOVES), np.random.default_rng(0), []
        table.reset(SEED)
        while (player := table.turn) is not None:
            move = table.sample_move(player, rng)
            moves.append((player, str(move.content)))
            table.move(move)
        found.append(Played(env_id, len(table.players), moves))
    return found


def as_chat(played: Played, bench: Bench, rounds: int) -> float:
    """Return the microseconds of a move, opponents' moves included, through the chat environment."""
    import vfgym

    others = iter(())
    env = vfgym.TextArenaEnv(
        played.env_id, played.players, opponents=lambda observation, info: next(others), tell_legal_actions=False, max_moves=MOST_MOVES
    )
    own = [text for player, text in played.moves if player == 0]

    def play() -> None:
        for text in own:
            _, _, terminated, truncated, _ = env.step(text)
            if terminated or truncated:
                return

    def measure() -> float:
        nonlocal others
        others = iter([text for player, text in played.moves if player != 0])
        env.reset(seed=SEED)
        return cpu(play) / len(played.moves)

    return bench.best(measure, rounds=rounds)[0] * MICROSECONDS


def without_the_end(played: Played) -> Played:
    """Return a game up to the policy's last move, with which the chat environment ends and scores the episode, as no raw game does."""
    own = [number for number, (player, _) in enumerate(played.moves) if player == 0]
    return played._replace(moves=played.moves[: own[-1]] if len(own) > 1 else [])


# Going back


def branches(bench: Bench) -> Iterator[Figure]:
    """The dearest of a branch, one with a seed, a snapshot and a restore: at most 1.2 times a copy of the game, and 200 µs."""
    import gymnasium as gym
    import numpy as np

    import vfgym

    def dearest(env: Any) -> float:
        snapshot, other = env.snapshot(), env.fork()
        return max(of_a_call(env.branch, lambda: env.branch(1), env.snapshot, lambda: other.restore(snapshot)))

    def of_a_call(*calls: Callable[[], object]) -> list[float]:
        measures = [lambda call=call: cpu(lambda: [call() for _ in range(10)]) / 10 for call in calls]
        return [seconds * MICROSECONDS for seconds in bench.best(*measures, rounds=15)]

    ids = ("gymnasium/CartPole-v1", "gymnasium/FrozenLake-v1", "textarena/TicTacToe-v0", "textarena/Poker-v0", "pettingzoo/tictactoe-v3")
    for env_id in ids[: bench.count(len(ids), 1)]:
        env: Any = gym.make(env_id).unwrapped
        env.reset(seed=0)
        env.step(env.random_action(env.state, rng := np.random.default_rng(0)) or env.action_sampler().sample(rng))
        game = env.state.session.game
        [copied] = of_a_call(lambda game=game: copy.deepcopy(game))
        yield Figure(f"going back in {env_id}", dearest(env), "µs", 1.2 * copied + 200, copied, "copy.deepcopy of the game")
    count = bench.count(100_000, 100)
    env = vfgym.SingleTurnEnv(dataset=[{"question": str(index), "answer": "x"} for index in range(count)])
    env.reset(seed=0)
    yield Figure(f"going back in one of {count:,} tasks", dearest(env), "µs", 200.0)


MEASUREMENTS = (steps, gym_env, textarena, branches)
