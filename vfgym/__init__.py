"""LLM environments as real `gymnasium.Env` objects: chat messages and tool calls in, rubric rewards out.

An environment is stepped like any other. The observation is the conversation to answer, the action an assistant message; text is one:

>>> import gymnasium
>>> import vfgym
>>> env = vfgym.SingleTurnEnv(
...     dataset=[{"question": "What is 6 times 7?", "answer": "42"}],
...     rubric=vfgym.Rubric(lambda completion, answer: float(answer in completion[-1].content)),
... )
>>> observation, info = env.reset(seed=0)
>>> observation
[UserMessage(content='What is 6 times 7?')]
>>> observation, reward, terminated, truncated, info = env.step("It is 42.")
>>> reward, terminated, info["stop_condition"]
(1.0, True, 'max_turns_reached')

Games of Gymnasium, TextArena and PettingZoo and tasks of reasoning-gym are registered, and converted with `to_chat`; see `vfgym.wrappers`:

>>> lake = gymnasium.make("gymnasium/FrozenLake-v1")
>>> observation, info = lake.reset(seed=0)
>>> observation, reward, terminated, truncated, info = lake.step("down")

A run plays many episodes at once, for any agent: a function, `ModelAgent`, or a name. Its results are rows and metadata:

>>> results = vfgym.evaluate(env, lambda observation, info: "42?", rollouts_per_example=3, progress=False)
>>> results["metadata"]["avg_reward"], [row["rollout"] for row in results["outputs"]]
(1.0, [0, 1, 2])

What is here, from the inside out:

- messages, and what an author writes with: `UserMessage`, `ToolCall`, `Tool`, `Parser`, `Rubric`, and the marks `@reward`, `@stop`, ...
- environments to subclass: `MultiTurnEnv`, `ToolEnv`, `StatefulToolEnv`; `GameEnv` and `MultiplayerEnv` around games; `EnvGroup` of several
- sandboxes: `SandboxEnv` and `PythonEnv`, in which the model runs commands and code; `CliAgentEnv` and `HarborEnv`, which programs play
- who answers: `ModelAgent` with a `ClientConfig` or a `Client`, `RandomAgent`, `OracleAgent`, `ScriptedAgent`, `HumanAgent`
- runs: `evaluate`, `aevaluate`; `RunSpec`, a run as data; `limit` of what is spent; `rollout` for training, whose samples
  `vfgym.training` makes; `replay` of a saved rollout
"""

import importlib
from typing import TYPE_CHECKING, Any

from vfgym.agents import HumanAgent, ModelAgent, OracleAgent, RandomAgent, ScriptedAgent
from vfgym.clients import Client, ClientConfig
from vfgym.envs import ChatEnv, EnvGroup, MultiTurnEnv, SingleTurnEnv, Snapshot, StatefulToolEnv, ToolEnv
from vfgym.lifecycle import advantage, blocking, cleanup, metric, reward, setup, stop, teardown, update
from vfgym.limits import limit
from vfgym.messages import (
    AssistantMessage,
    Message,
    Response,
    ResponseMessage,
    ResponseTokens,
    SystemMessage,
    TextMessage,
    ToolCall,
    ToolMessage,
    Usage,
    UserMessage,
    plain,
)
from vfgym.output.log_records import protect_log_records
from vfgym.parsers import MaybeThinkParser, Parser, ThinkParser, XMLParser, extract_boxed_answer, extract_hash_answer
from vfgym.registration import register_all
from vfgym.rubrics import JudgeRubric, MathRubric, Rubric, RubricGroup
from vfgym.runs import Replay, RunSettings, RunSpec, aevaluate, evaluate, replay, rollout, score
from vfgym.shared_conversations import SharedConversations as _SharedConversations  # noqa: F401 - importing it registers it
from vfgym.spaces import ChatSpace, MessageSpace
from vfgym.state import State
from vfgym.tasks import ProceduralTasks
from vfgym.tools import Tool
from vfgym.wrappers import (
    GameEnv,
    GameSessionEnv,
    MultiplayerEnv,
    NewMessages,
    PettingZooEnv,
    Played,
    ReasoningGymEnv,
    TextArenaEnv,
    Turn,
    TurnBasedGame,
    from_openenv,
    register_description,
    to_chat,
    to_gym,
    to_pettingzoo,
    to_reasoning_gym,
    to_textarena,
)

if TYPE_CHECKING:
    from vfgym.envs.cli_agent import CliAgentEnv
    from vfgym.envs.harbor import HarborEnv
    from vfgym.envs.python import PythonEnv
    from vfgym.envs.rlm import RLMEnv
    from vfgym.envs.sandbox import SandboxEnv
    from vfgym.rubrics.code_rubric import CodeRubric

__version__ = "0.1.0"

register_all()
protect_log_records()

__all__ = [
    "AssistantMessage",
    "ChatEnv",
    "ChatSpace",
    "CliAgentEnv",
    "Client",
    "ClientConfig",
    "CodeRubric",
    "EnvGroup",
    "GameEnv",
    "GameSessionEnv",
    "HarborEnv",
    "HumanAgent",
    "JudgeRubric",
    "MathRubric",
    "MaybeThinkParser",
    "Message",
    "MessageSpace",
    "ModelAgent",
    "MultiTurnEnv",
    "MultiplayerEnv",
    "NewMessages",
    "OracleAgent",
    "Parser",
    "PettingZooEnv",
    "Played",
    "ProceduralTasks",
    "PythonEnv",
    "RLMEnv",
    "RandomAgent",
    "ReasoningGymEnv",
    "Replay",
    "Response",
    "ResponseMessage",
    "ResponseTokens",
    "Rubric",
    "RubricGroup",
    "RunSettings",
    "RunSpec",
    "SandboxEnv",
    "ScriptedAgent",
    "SingleTurnEnv",
    "Snapshot",
    "State",
    "StatefulToolEnv",
    "SystemMessage",
    "TextArenaEnv",
    "TextMessage",
    "ThinkParser",
    "Tool",
    "ToolCall",
    "ToolEnv",
    "ToolMessage",
    "Turn",
    "TurnBasedGame",
    "Usage",
    "UserMessage",
    "XMLParser",
    "advantage",
    "aevaluate",
    "blocking",
    "cleanup",
    "evaluate",
    "extract_boxed_answer",
    "extract_hash_answer",
    "from_openenv",
    "limit",
    "metric",
    "plain",
    "register_description",
    "replay",
    "reward",
    "rollout",
    "score",
    "setup",
    "stop",
    "teardown",
    "to_chat",
    "to_gym",
    "to_pettingzoo",
    "to_reasoning_gym",
    "to_textarena",
    "update",
]

_LAZY = {
    "CliAgentEnv": "vfgym.envs.cli_agent",
    "CodeRubric": "vfgym.rubrics.code_rubric",
    "HarborEnv": "vfgym.envs.harbor",
    "PythonEnv": "vfgym.envs.python",
    "RLMEnv": "vfgym.envs.rlm",
    "SandboxEnv": "vfgym.envs.sandbox",
}
"""What is imported when it is first asked for: who needs no sandbox waits for none of it."""


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
