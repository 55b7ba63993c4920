"""The documented module of `OpenAICompletionsClient`."""

from vfgym.clients.openai_completions import OpenAICompletionsClient

__all__ = ["OpenAICompletionsClient"]
