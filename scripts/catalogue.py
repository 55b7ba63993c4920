"""Write ``docs/catalogue.md``: every registered environment, with what it asks of a player and what the simplest agents reach in it.

``python scripts/catalogue.py`` makes and plays each environment (about ten minutes). ``tests/test_docs.py`` checks that the page has
every id.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).parent.parent / "docs" / "catalogue.md"

EPISODES = 20
"""Episodes of each agent in each environment."""
MOST_TURNS = 300
"""Turns after which an episode of the table is cut off."""
MOST_SECONDS = 120
"""Seconds of CPU time that one environment may take."""


@dataclass
class Row:
    """One environment."""

    env_id: str
    players: str = ""
    actions: str = ""
    observations: str = ""
    goes_back: str = ""
    why_not: str = ""
    since: str = ""
    """The Python from which on it runs (``"Python 3.12"``); empty for every one that vfgym runs on."""
    oracle: str = ""
    random: str = ""

    def cells(self) -> list[str]:
        """Return the row's cells."""
        runs = self.why_not or (f"from {self.since}" if self.since else "yes")
        return [f"`{self.env_id}`", self.players, self.actions, self.observations, self.goes_back, runs, self.oracle, self.random]


def described(env_id: str) -> Row:
    """Make one environment, play it, and describe it."""
    import vfgym
    from vfgym.agents.base import seat_of
    from vfgym.errors import Error
    from vfgym.runs.replicas import make_env
    from vfgym.wrappers.games.multiplayer import MultiplayerEnv
    from vfgym.wrappers.gymnasium.game import GymnasiumGame
    from vfgym.wrappers.textarena import textarena_games
    from vfgym.wrappers.textarena.env import TextArenaEnv

    row = Row(env_id)
    try:
        env = make_env(env_id, {})
        definition = seat_of(env).definition
        _, info = env.reset(seed=0)
    except Exception as error:
        row.why_not = f"no: {error}" if isinstance(error, Error) else f"no: {error!r}"
        return row
    row.players, row.actions, row.observations = "1", "text", "text"
    row.goes_back = "yes" if definition.can_go_back else "no"
    if isinstance(definition, GymnasiumGame):
        row.actions, row.observations = _kind(definition.game_action_space), _kind(definition.game_observation_space)
    if isinstance(definition, MultiplayerEnv):
        row.players = str(len(seat_of(env).state.session.game.players))
        row.actions = "text, legal moves known" if "legal_actions" in info else "text"
    if isinstance(definition, TextArenaEnv):
        missing = textarena_games()[definition.game]["missing"] or ""
        row.since = missing if missing.startswith("Python ") else ""
    has_oracle = definition.oracle(seat_of(env).state) is not None
    if getattr(definition, "max_turns", 0) < 1:
        definition.max_turns = MOST_TURNS
    for agent in ("random", *(["oracle"] if has_oracle else [])):
        metadata = vfgym.evaluate(definition, agent, num_examples=EPISODES, max_concurrent=1, progress=False)["metadata"]
        mean, failed = metadata["avg_reward"], metadata["num_failed"]
        score = ("-" if mean is None else f"{mean:.3g}") + (f" ({failed} failed)" if failed else "")
        setattr(row, agent, score)
    env.close()
    return row


def _kind(space: object) -> str:
    shape = getattr(space, "shape", None)
    size = getattr(space, "n", None)
    return f"{type(space).__name__}{tuple(shape) if shape else f'({size})' if size is not None else ''}".replace(",)", ")")


def guarded(env_id: str) -> Row:
    """Describe one environment, in a process that may be given up."""
    import resource

    resource.setrlimit(resource.RLIMIT_CPU, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    warnings.simplefilter("ignore")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # MuJoCo and games print
    return described(env_id)


def rows(ids: list[str], workers: int) -> Iterator[Row]:
    """Describe environments, several at once, in the order given."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(workers, maxtasksperchild=20) as pool:
        pending = [(env_id, pool.apply_async(guarded, (env_id,))) for env_id in ids]
        for env_id, result in pending:
            try:
                yield result.get(MOST_SECONDS * len(ids))
            except Exception as error:
                yield Row(env_id, why_not=f"no: {error!r}")


TITLES = {
    "gymnasium": "Gymnasium",
    "pettingzoo": "PettingZoo",
    "reasoning-gym": "reasoning-gym",
    "textarena": "TextArena",
}


def page(described_rows: list[Row], python: str) -> str:
    """Return the page."""
    lines = [
        "# Catalogue",
        "",
        "Every environment that `import vfgym` registers. This page is made by `scripts/catalogue.py`, which makes and plays them all"
        f" (here with Python {python}).",
        "",
        f"*Random* and *oracle* are mean rewards of {EPISODES} episodes of at most {MOST_TURNS} turns: of an agent that makes random moves"
        " (legal ones where the game lets them be found) and, where the environment knows right answers, of one that gives them. In games"
        " for several players, the other seats are taken by random agents too. *Goes back* says whether an episode can be copied in the"
        " middle, for [snapshots and branches](environments.md#going-back).",
        "",
        "TextArena's ids come in three variants each (`-train` shows what TextArena shows in training, `-raw` leaves moves as they are);"
        " they play the same game, so one line stands for the three. Other environments can be made from any Gymnasium or PettingZoo id"
        " with `vfgym.to_chat`.",
    ]
    for namespace, title in TITLES.items():
        own = [row for row in described_rows if row.env_id.startswith(f"{namespace}/")]
        if not own:
            continue
        lines += [
            "",
            f"## {title}",
            "",
            "| id | players | actions | observations | goes back | runs offline | oracle | random |",
            "|---|---|---|---|---|---|---|---|",
        ]
        lines += ["| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in row.cells()) + " |" for row in own]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the page."""
    import platform

    from vfgym.registration import list_registered_ids

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="ids that begin so; the page is printed, not written")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    ids = [env_id for env_id in list_registered_ids() if env_id.startswith(arguments.only) and not env_id.endswith(("-train", "-raw"))]
    text = page(list(rows(ids, arguments.workers)), platform.python_version().rpartition(".")[0])
    if arguments.only:
        print(text)
    else:
        PAGE.write_text(text)
        print(f"wrote {PAGE}")


if __name__ == "__main__":
    main()
