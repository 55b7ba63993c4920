"""The documented module of `AnthropicMessagesClient`."""

from vfgym.clients.anthropic_messages import AnthropicMessagesClient

__all__ = ["AnthropicMessagesClient"]
