"""LLM environments as real `gymnasium.Env` objects: chat messages and tool calls in, rubric rewards out."""

from vfgym.agents import HumanAgent, ModelAgent, OracleAgent, RandomAgent, ScriptedAgent
from vfgym.clients import Client, ClientConfig
from vfgym.envs import ChatEnv, EnvGroup, MultiTurnEnv, SingleTurnEnv, StatefulToolEnv, ToolEnv
from vfgym.lifecycle import advantage, blocking, cleanup, metric, reward, setup, stop, teardown, update
from vfgym.messages import (
    AssistantMessage,
    Message,
    Response,
    ResponseMessage,
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
from vfgym.runs import aevaluate, evaluate
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
    to_chat,
    to_gym,
    to_pettingzoo,
    to_reasoning_gym,
    to_textarena,
)

__version__ = "0.1.0"

register_all()
protect_log_records()

__all__ = [
    "AssistantMessage",
    "ChatEnv",
    "ChatSpace",
    "Client",
    "ClientConfig",
    "EnvGroup",
    "GameEnv",
    "GameSessionEnv",
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
    "RandomAgent",
    "ReasoningGymEnv",
    "Response",
    "ResponseMessage",
    "Rubric",
    "RubricGroup",
    "ScriptedAgent",
    "SingleTurnEnv",
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
    "metric",
    "plain",
    "reward",
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
