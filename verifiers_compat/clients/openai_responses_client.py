"""The documented module of `OpenAIResponsesClient`."""

from vfgym.clients.formats.native_output import FIELD as OPENAI_RESPONSES_OUTPUT_FIELD
from vfgym.clients.providers.openai_responses import OpenAIResponsesClient

__all__ = ["OPENAI_RESPONSES_OUTPUT_FIELD", "OpenAIResponsesClient"]
