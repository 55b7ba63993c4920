"""Games as chat environments, and back.

`to_chat` makes a chat environment of any Gymnasium environment; what the codec of its action space writes is what a model answers with:

>>> import vfgym
>>> env = vfgym.to_chat("FrozenLake-v1", is_slippery=False)
>>> observation, info = env.reset(seed=0)
>>> observation, reward, terminated, truncated, info = env.step("I go <action>right</action>")
>>> env.state["observation"]
1

`to_gym` goes back to the original spaces, exactly; each kind of environment has its own way back:

>>> native = vfgym.to_gym(env)
>>> native.action_space
Discrete(4)
>>> first, info = native.reset(seed=0)
>>> native.step(2)[0]
1

Games for several players give the policy one seat, and the others to agents:

>>> tic_tac_toe = vfgym.TextArenaEnv("TicTacToe-v0", opponents="random")
>>> observation, info = tic_tac_toe.reset(seed=0)
>>> info["legal_actions"][:2]
['[0]', '[1]']

What changes chat environments is a `gymnasium.Wrapper`, such as `NewMessages`, which shows only what is new:

>>> wrapped = vfgym.NewMessages(env)

`from_openenv` makes a chat environment of any OpenEnv server that runs, given its URL.

A folder holds what belongs to one library (`gymnasium/`, `textarena/`, `pettingzoo/`, `reasoning_gym/`, `openenv/`), `games/` what games
share; a module `to_*.py` or `from_*.py` is a converter, and any other module here a wrapper.
"""

from vfgym.wrappers.from_openenv import from_openenv
from vfgym.wrappers.games.game import GameEnv
from vfgym.wrappers.games.multiplayer import MultiplayerEnv
from vfgym.wrappers.games.session import GameSessionEnv
from vfgym.wrappers.games.turn_based import Played, TurnBasedGame
from vfgym.wrappers.games.turns import Turn
from vfgym.wrappers.gymnasium.registered import register_description
from vfgym.wrappers.new_messages import NewMessages
from vfgym.wrappers.pettingzoo.env import PettingZooEnv
from vfgym.wrappers.reasoning_gym import ReasoningGymEnv
from vfgym.wrappers.textarena.env import TextArenaEnv
from vfgym.wrappers.to_chat import to_chat
from vfgym.wrappers.to_gym import to_gym
from vfgym.wrappers.to_pettingzoo import to_pettingzoo
from vfgym.wrappers.to_reasoning_gym import to_reasoning_gym
from vfgym.wrappers.to_textarena import to_textarena

__all__ = [
    "GameEnv",
    "GameSessionEnv",
    "MultiplayerEnv",
    "NewMessages",
    "PettingZooEnv",
    "Played",
    "ReasoningGymEnv",
    "TextArenaEnv",
    "Turn",
    "TurnBasedGame",
    "from_openenv",
    "register_description",
    "to_chat",
    "to_gym",
    "to_pettingzoo",
    "to_reasoning_gym",
    "to_textarena",
]
