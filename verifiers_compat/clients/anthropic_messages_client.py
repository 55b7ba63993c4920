"""The documented module of `AnthropicMessagesClient`."""

from vfgym.clients.providers.anthropic_messages import AnthropicMessagesClient as AnthropicMessagesClient
