"""The documented place of `NeMoRLChatCompletionsClient`."""

from vfgym.clients.providers.nemorl_chat_completions import NeMoRLChatCompletionsClient as NeMoRLChatCompletionsClient
