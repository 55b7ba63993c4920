"""The documented module of `OpenAICompletionsClient`."""

from vfgym.clients.providers.openai_completions import OpenAICompletionsClient as OpenAICompletionsClient
