"""Tree search (UCT) on branches of an episode: tic-tac-toe against a random opponent, whose answers no branch foresees."""

import math
import random

import vfgym

GAMES, SIMULATIONS = 8, 40


def new_node(moves):
    """Return what is known of each move in a new position: how often it was tried, what that earned, and the positions after it."""
    return {move: [0, 0.0, {}] for move in moves}


def choose(node):
    """Return the move with the highest upper confidence bound."""
    total = 1 + sum(count for count, _, _ in node.values())
    bounds = {move: earned / n + math.sqrt(2 * math.log(total) / n) if n else math.inf for move, (n, earned, _) in node.items()}
    return max(bounds, key=bounds.get)


def search(env, moves):
    """Return the move that was tried most, after simulations on branches that each have dice of their own."""
    root = new_node(moves)
    for seed in range(SIMULATIONS):
        branch, node, path, legal = env.branch(seed), root, [], moves
        while not branch.episode.is_over:
            move = choose(node) if node else random.choice(legal)
            observation, reward, _, _, info = branch.step(move)
            legal = info.get("legal_actions", [])
            if node:
                path.append(node[move])
                after, position = node[move][2], observation[-1].content
                node = after.get(position)  # None for a new one: from there the simulation plays at random
                after.setdefault(position, new_node(legal))
        for known in path:
            known[:2] = known[0] + 1, known[1] + reward
    return max(moves, key=lambda move: root[move][0])


random.seed(0)
for player, answer in (("random", lambda env, moves: random.choice(moves)), ("search", search)):
    env, rewards = vfgym.TextArenaEnv("TicTacToe-v0"), []
    for seed in range(GAMES):
        _, info = env.reset(seed=seed)
        while not env.episode.is_over:
            _, reward, _, _, info = env.step(answer(env, info["legal_actions"]))
        rewards.append(reward)
    print(f"{player}: {rewards.count(1)} won, {rewards.count(0)} drawn, {rewards.count(-1)} lost")
