"""Wrappers around chat environments, and converters from and to other kinds of environments."""

from vfgym.wrappers.new_messages import NewMessages
from vfgym.wrappers.to_chat import to_chat
from vfgym.wrappers.to_gym import to_gym
from vfgym.wrappers.to_textarena import to_textarena

__all__ = ["NewMessages", "to_chat", "to_gym", "to_textarena"]
