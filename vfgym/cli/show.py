"""``vfgym list``, ``vfgym info`` and ``vfgym check``."""

from __future__ import annotations

import contextlib
import fnmatch
import io
from typing import Any, cast

from vfgym.cli.environments import check_id, description, make_environment
from vfgym.cli.table import print_table
from vfgym.envs.chat import ChatEnv
from vfgym.envs.seat import transcript
from vfgym.errors import ConfigurationError
from vfgym.output.terminal import echo
from vfgym.registration import list_registered_ids, nearest_ids
from vfgym.state import State
from vfgym.wrappers.games.multiplayer import MultiplayerEnv
from vfgym.wrappers.gymnasium.game import GymnasiumGame
from vfgym.wrappers.pettingzoo import PettingZooGame


def print_ids(pattern: str) -> None:
    """Print the registered ids that hold `pattern`, or match it where it has wildcards."""
    wanted = pattern if any(sign in pattern for sign in "*?[") else f"*{pattern}*"
    found = [env_id for env_id in list_registered_ids() if fnmatch.fnmatchcase(env_id.lower(), wanted.lower())]
    if not found:
        near = nearest_ids(pattern)
        raise ConfigurationError(f"no id matches {pattern!r}." + (f" Near are {', '.join(near)}." if near else ""))
    print_table(["id", "description"], [[env_id, description(env_id)] for env_id in found])


def print_info(env_id: str, env_args: dict[str, Any]) -> None:
    """Print what an environment is, and its first evaluation task."""
    env, seat = make_environment(env_id, env_args)
    try:
        definition = seat.definition
        tasks = definition.tasks_of("eval")
        facts = {
            "id": env_id,
            "class": f"{type(definition).__module__}.{type(definition).__name__}",
            "about": (type(definition).__doc__ or "").strip().partition("\n")[0],
            "arguments": str(env.spec.kwargs if env.spec is not None else env_args),
            "evaluation tasks": "endless" if tasks.is_endless else str(len(tasks)),
            "turns": _turns(getattr(definition, "max_turns", None)),
            "goes back": "yes" if definition.can_go_back else "no",
            **_game_facts(definition),
            "observations": str(env.observation_space),
            "actions": str(env.action_space),
            "metrics": ", ".join(definition.rubric.metric_names),
        }
        print_table(["", ""], [[name, value] for name, value in facts.items() if value])
        for tool in definition.tool_defs:
            echo(f"\ntool {tool.name}: {tool.description}\n  {tool.parameters}")
        if definition.requires_group_rollouts:
            echo("\nThe rubric scores whole groups: evaluate it with --rollouts-per-example above 1.")
            return
        observation, _ = env.reset(seed=0, options={"example_id": tasks.example_id_of(0), "split": "eval"})
        echo(f"\nan example:\n{transcript(observation)}")
        oracle = definition.oracle(cast(State, seat.state))
        if oracle is not None:
            echo(f"\na right answer:\n{oracle}")
    finally:
        env.close()


def _game_facts(definition: ChatEnv) -> dict[str, str]:
    """Return what there is to say of a game: the spaces of one of Gymnasium, the players of one for several."""
    if isinstance(definition, GymnasiumGame):
        return _spaces(definition.game_action_space, definition.game_observation_space)
    if not isinstance(definition, MultiplayerEnv):
        return {}
    players = definition.find_players()
    seat = "every one (self-play)" if definition.is_self_play else str(definition.seat)
    facts = {"players": f"{len(players)}: {', '.join(map(str, players))}", "the policy's seat": seat}
    with contextlib.closing(definition.open_table()) as table:
        if isinstance(table, PettingZooGame):
            facts |= _spaces(table.env.action_space(players[0]), table.env.observation_space(players[0]))
    return facts


def _spaces(actions: Any, observations: Any) -> dict[str, str]:
    return {"game's action space": str(actions), "game's observation space": str(observations)}


def _turns(max_turns: int | None) -> str:
    if max_turns is None:
        return ""
    return str(max_turns) if max_turns > 0 else "unlimited"


def print_checks(env_id: str) -> bool:
    """Print which promises an environment keeps, and return whether it keeps all of them."""
    from vfgym.testing import check_environment

    check_id(env_id)
    with contextlib.redirect_stdout(io.StringIO()):  # check_env renders in every mode, and "human" prints the episodes
        checks = check_environment(env_id)
    print_table(["promise", "kept", "detail"], [[check.promise, "yes" if check.passed else "NO", check.detail] for check in checks])
    return all(check.passed for check in checks)
