"""The documented place of `OpenAIChatCompletionsTokenClient`."""

from vfgym.clients.providers.openai_chat_completions_token import OpenAIChatCompletionsTokenClient as OpenAIChatCompletionsTokenClient
