"""Wrappers around chat environments, and converters from and to other kinds of environments."""

from vfgym.wrappers.new_messages import NewMessages
from vfgym.wrappers.to_chat import to_chat

__all__ = ["NewMessages", "to_chat"]
