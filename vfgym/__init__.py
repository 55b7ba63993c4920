"""LLM environments as real `gymnasium.Env` objects: chat messages and tool calls in, rubric rewards out."""

from vfgym.clients import Client
from vfgym.envs import ChatEnv, MultiTurnEnv, SingleTurnEnv, StatefulToolEnv, ToolEnv
from vfgym.lifecycle import advantage, cleanup, metric, reward, setup, stop, teardown, update
from vfgym.messages import AssistantMessage, Message, SystemMessage, TextMessage, ToolCall, ToolMessage, UserMessage, plain
from vfgym.parsers import MaybeThinkParser, Parser, ThinkParser, XMLParser, extract_boxed_answer, extract_hash_answer
from vfgym.responses import Response, ResponseMessage, Usage
from vfgym.rubrics import Rubric, RubricGroup
from vfgym.spaces import ChatSpace, MessageSpace
from vfgym.state import State
from vfgym.tasks import ProceduralTasks
from vfgym.tools import Tool

__version__ = "0.1.0"
