"""The documented model clients of the rollout API, one module each."""

from verifiers_compat.clients.client import Client
from verifiers_compat.loading import module_getattr
from vfgym.clients import resolve_client

__getattr__ = module_getattr(
    __name__,
    lazy={
        "AnthropicMessagesClient": "vfgym.clients.providers.anthropic_messages:AnthropicMessagesClient",
        "NeMoRLChatCompletionsClient": "vfgym.clients.providers.nemorl_chat_completions:NeMoRLChatCompletionsClient",
        "OpenAIChatCompletionsClient": "vfgym.clients.providers.openai_chat_completions:OpenAIChatCompletionsClient",
        "OpenAIChatCompletionsTokenClient": "vfgym.clients.providers.openai_chat_completions_token:OpenAIChatCompletionsTokenClient",
        "OpenAICompletionsClient": "vfgym.clients.providers.openai_completions:OpenAICompletionsClient",
        "OpenAIResponsesClient": "vfgym.clients.providers.openai_responses:OpenAIResponsesClient",
        "RendererClient": "vfgym.clients.providers.renderer:RendererClient",
    },
)

__all__ = ["Client", "resolve_client"]
