"""The documented model clients of the rollout API, one module each."""

from verifiers_compat.clients.client import Client
from verifiers_compat.loading import create_getattr
from vfgym.clients import resolve_client

__getattr__ = create_getattr(
    __name__,
    {
        "vfgym.clients.providers.anthropic_messages": ["AnthropicMessagesClient"],
        "vfgym.clients.providers.nemorl_chat_completions": ["NeMoRLChatCompletionsClient"],
        "vfgym.clients.providers.openai_chat_completions": ["OpenAIChatCompletionsClient"],
        "vfgym.clients.providers.openai_chat_completions_token": ["OpenAIChatCompletionsTokenClient"],
        "vfgym.clients.providers.openai_completions": ["OpenAICompletionsClient"],
        "vfgym.clients.providers.openai_responses": ["OpenAIResponsesClient"],
        "vfgym.clients.providers.renderer": ["RendererClient"],
    },
)

__all__ = ["Client", "resolve_client"]
