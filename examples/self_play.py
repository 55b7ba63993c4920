"""One policy plays both seats of tic-tac-toe: PettingZoo's game, played in words, in PettingZoo's own loop."""

import functools
import re

import numpy as np

import vfgym
from vfgym.wrappers.pettingzoo import PettingZooGame, to_pettingzoo

LINES = ("012", "345", "678", "036", "147", "258", "048", "246")


def policy(conversation: list[vfgym.Message], legal: list[str], rng: np.random.Generator) -> str:
    """Complete a line, or else keep the other one from it, or else play anywhere. A model would be asked here."""
    rows = re.findall(r"^ (\S) \| (\S) \| (\S)$", conversation[-1].content, re.MULTILINE)
    cells = [rows[row][column] for column in range(3) for row in range(3)]
    marks = "XO" if cells.count("X") == cells.count("O") else "OX"
    for mark in marks:
        for line in LINES:
            free = [cell for cell in line if cells[int(cell)] == cell]
            if len(free) == 1 and sum(cells[int(cell)] == mark for cell in line) == 2:
                return f"There are two {mark} in one line: <action>{free[0]}</action>"
    return f"<action>{rng.choice(legal)}</action>"


env = to_pettingzoo(functools.partial(PettingZooGame, "classic/tictactoe_v3"))
rng = np.random.default_rng(1)
returns = {agent: [] for agent in env.possible_agents}
for seed in range(100):
    env.reset(seed=seed)
    for agent in env.agent_iter():
        conversation, reward, terminated, truncated, info = env.last()
        if terminated or truncated:
            returns[agent].append(reward)
        env.step(None if terminated or truncated else policy(conversation, info["legal_actions"], rng))
print(conversation[-1].content)
for agent, earned in returns.items():
    print(f"{agent} ({env.players[agent]} of the game): {earned.count(1)} won, {earned.count(0)} drawn, {earned.count(-1)} lost")
env.close()
