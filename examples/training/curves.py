"""What the examples of training share: their arguments, shuffled rewards to compare with, and the files they write."""

import argparse
import json
from pathlib import Path


def read_arguments(description):
    """Return the command's arguments: a seed, a directory, and whether rewards are shuffled inside groups."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--seed", type=int, default=0, help="decides everything that is random")
    parser.add_argument("--out", type=Path, default=Path("outputs/training"), help="where curve.png and curve.json are written")
    parser.add_argument(
        "--shuffle-rewards", action="store_true", help="permute the rewards inside each group: then there is nothing to learn"
    )
    return parser.parse_args()


def shuffle_rewards(group, rng):
    """Give each rollout of a group what another one of it earned, in its last turn; but for those that infrastructure broke."""
    states = [state for state, reward in zip(group.states, group.rewards, strict=True) if reward is not None and state["trajectory"]]
    earned = [(states[number]["reward"], total_of(states[number])) for number in rng.permutation(len(states))]
    for state, (reward, rewards) in zip(states, earned, strict=True):
        state["reward"] = reward
        for turn, step in enumerate(state["trajectory"]):
            is_last = turn == len(state["trajectory"]) - 1
            step["extras"]["reward"] = reward if is_last else 0.0
            if rewards:
                step["extras"]["rewards"] = rewards if is_last else dict.fromkeys(rewards, 0.0)


def total_of(state):
    """Return what a game earned each of its players; nothing for other environments."""
    players = state["trajectory"][-1]["extras"].get("rewards", {})
    return {player: sum(step["extras"]["rewards"][player] for step in state["trajectory"]) for player in players}


def write_curve(arguments, train, held_out, **more):
    """Write the mean rewards of training, and those of fresh episodes before and after it, as data and as a picture.

    Args:
        arguments: Those of the command.
        train: The mean reward of each update.
        held_out: The mean reward of fresh episodes, ``before`` and ``after``.
        more: What the data hold besides. ``without`` has the ``train`` and ``held_out`` of what this is compared with.
    """
    from matplotlib.figure import Figure

    arguments.out.mkdir(parents=True, exist_ok=True)
    curve = {"seed": arguments.seed, "train": train, "held_out": held_out, **more}
    (arguments.out / "curve.json").write_text(json.dumps(curve, indent=1) + "\n", encoding="utf-8")
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    for part, label in ((curve, ""), (curve.get("without"), ", without")):
        if part:
            [line] = axes.plot(range(1, len(part["train"]) + 1), part["train"], label=f"training{label}")
            ends, fresh = [1, len(part["train"])], [part["held_out"]["before"], part["held_out"]["after"]]
            axes.plot(ends, fresh, "o", color=line.get_color(), label=f"fresh episodes{label}")
    axes.set_xlabel("update")
    axes.set_ylabel("mean reward")
    axes.legend()
    figure.savefig(arguments.out / "curve.png", dpi=150)
    print(f"fresh episodes: {held_out['before']:.3f} before, {held_out['after']:.3f} after; the curve is in {arguments.out}")
