"""Self-play with a table: one policy takes both seats of tic-tac-toe, each credited with its own rewards. Takes seconds.

A game that is played against oneself is won as often as it is lost; so the curve is that of games against random moves, from both seats.
It is on-policy (``max_staleness=0``): every game that it learns from was played with the very table that it changes.
"""

import asyncio
from collections import defaultdict

import numpy as np
from curves import read_arguments, shuffle_rewards, write_curve

import vfgym
from vfgym.training import samples

GAME = "classic/tictactoe_v3"
SEATS = ("player_1", "player_2")
UPDATES, GROUPS, GROUP_SIZE, RATE, EXPLORES = 16, 8, 32, 1.0, 0.3


class TablePolicy:
    """A preference for each move on each board that the environment shows."""

    policy_version = 0  # is kept with each turn, so that it is known how old a game is

    def __init__(self):
        self.preferences = defaultdict(lambda: defaultdict(float))
        self.explores = False  # whether some moves are random, so that it meets boards that it would not play to

    def probabilities(self, board):
        """Return the legal moves and the probability of each."""
        moves = [cell for cell in board if cell.isdigit()]
        weights = np.array([self.preferences[board][move] for move in moves])
        weights = np.exp(weights - weights.max())
        return moves, weights / weights.sum()

    def for_episode(self, env):
        """Return what answers in one episode, with random numbers of its own."""
        rng = env.unwrapped.np_random.spawn(1)[0]

        def answer(observation, info):
            moves, probabilities = self.probabilities(board_of(observation))
            if self.explores and rng.random() < EXPLORES:
                probabilities = np.full(len(moves), 1 / len(moves))
            return f"<action>{rng.choice(moves, p=probabilities)}</action>"

        return answer

    def update(self, states):
        """Make moves likelier that earned their seat more than it earned in the other games of the group."""
        changes = []
        for sample in samples(states):
            for turn in sample.turns:
                step = states[sample.rollout]["trajectory"][turn]
                board, played = board_of(step["prompt"]), step["completion"][0]["content"].split(">")[1][0]
                for move, probability in zip(*self.probabilities(board), strict=True):
                    changes.append((board, move, sample.advantage * ((move == played) - probability)))
        for board, move, change in changes:
            self.preferences[board][move] += RATE * change
        self.policy_version += 1


def board_of(messages):
    """Return the nine cells in the newest observation: X, O, or the number of a move."""
    rows = [line.split("|") for line in messages[-1]["content"].splitlines() if line.count(" | ") == 2]
    return "".join(cell.strip() for row in rows[-3:] for cell in row)


def against_random(policy, seed, num_games):
    """Return the mean reward of each seat in so many games against random moves."""
    means, policy.explores = {}, False
    for seat, name in enumerate(SEATS):
        env = vfgym.PettingZooEnv(GAME, seat=seat, opponents="random")
        results = vfgym.evaluate(env, policy, num_examples=num_games, split="eval", seed=seed, progress=False)
        means[name] = results["metadata"]["avg_reward"]
    return means


async def train(policy, arguments):
    """Return the mean reward against random moves, of both seats, after each update."""
    env = vfgym.PettingZooEnv(GAME, opponents="self")
    rng = np.random.default_rng(arguments.seed)
    means, states, number = [], [], 0
    policy.explores = True
    async for group in vfgym.rollout(env, policy, group_size=GROUP_SIZE, seed=arguments.seed, max_concurrent=1, max_staleness=0):
        if arguments.shuffle_rewards:
            shuffle_rewards(group, rng)
        states += group.states
        number += 1
        if number == GROUPS:
            means.append(float(np.mean(list(against_random(policy, arguments.seed, 60).values()))))
            policy.update(states)
            states, number, policy.explores = [], 0, True
            if len(means) == UPDATES:
                return means


if __name__ == "__main__":
    arguments = read_arguments(__doc__.splitlines()[0])
    policy = TablePolicy()
    before = against_random(policy, 1_000_003, 500)
    means = asyncio.run(train(policy, arguments))
    after = against_random(policy, 1_000_003, 500)
    seats = {name: {"before": before[name], "after": after[name]} for name in SEATS}
    held_out = {"before": float(np.mean(list(before.values()))), "after": float(np.mean(list(after.values())))}
    write_curve(arguments, means, held_out, seats=seats)
