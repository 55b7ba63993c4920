"""`Reflection`: the model that is shown rollouts and writes prompts, as GEPA calls it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from verifiers_compat.gepa.run_directory import RunDirectory
from vfgym.aio.background import run_to_end
from vfgym.clients import ClientConfig, EndpointClientConfig, resolve_client
from vfgym.errors import ModelError
from vfgym.messages import UserMessage, content_text
from vfgym.output.redaction import redact


class ReflectionFailed(BaseException):
    """The reflecting model could not be asked.

    Where its function raises an `Exception`, GEPA begins the next round, and so on, until the budget is spent.
    """

    def __init__(self, reason: Exception) -> None:
        """Give the reason."""
        super().__init__(reason)
        self.reason = reason


@dataclass
class Reflection:
    """Asks the reflecting model."""

    client: Any
    model: str
    directory: RunDirectory | None

    def __call__(self, prompt: str) -> str:
        """Return the model's answer to a prompt, or the one that it gave before the run was stopped."""
        prompt = redact(prompt)
        try:
            return self.ask(prompt) if self.directory is None else self.directory.recall(prompt, self.ask)
        except Exception as error:
            raise ReflectionFailed(error) from error

    def ask(self, prompt: str) -> str:
        """Ask the model.

        Raises:
            ModelError: If it has no answer.
        """
        answer = redact(run_to_end(self._ask(prompt)))
        if not answer.strip():
            raise ModelError(f"the reflecting model {self.model} answered with no text: raise the limit of its tokens, or choose another")
        return answer

    async def _ask(self, prompt: str) -> str:
        config = self.client.endpoints()[0] if isinstance(self.client, ClientConfig) else self.client
        client = resolve_client(config)
        try:
            response = await client.get_response([UserMessage(prompt)], self.model, {})
        finally:
            if isinstance(config, EndpointClientConfig):  # one that was given is its owner's to close
                await client.close()
        return content_text(response.message.content)
