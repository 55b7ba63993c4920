"""Agents: who answers the conversation."""

from vfgym.agents.human import HumanAgent
from vfgym.agents.model import ModelAgent
from vfgym.agents.oracle import OracleAgent
from vfgym.agents.random import RandomAgent
from vfgym.agents.scripted import ScriptedAgent

__all__ = ["HumanAgent", "ModelAgent", "OracleAgent", "RandomAgent", "ScriptedAgent"]
