"""``vfgym serve-model``: models without a model, for classes and for tests of clients."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vfgym.errors import ConfigurationError
from vfgym.model_server import Faults, ModelServer, Policy, environment_oracle, load_policy, load_script
from vfgym.output.terminal import echo

DEFAULT_MODELS = ("echo", "random")
"""The models that are served where none is named."""


@dataclass(frozen=True)
class ServerSettings:
    """What the command line says."""

    models: Sequence[str] = ()
    """``echo``, ``random``, ``scripted``, ``oracle``, ``module:callable`` or ``NAME=module:callable``."""
    script: Path | None = None
    """Answers of the model ``scripted``."""
    env_id: str | None = None
    """Environment whose answers the model ``oracle`` knows."""
    seed: int = 0
    host: str = "127.0.0.1"
    port: int = 8000
    latency: float = 0.0
    max_model_len: int | None = None
    api_keys: Sequence[str] = ()
    """Keys that are accepted; any where there are none."""
    faults: Faults | None = None


def serve_model(settings: ServerSettings) -> None:
    """Serve until Ctrl-C.

    Raises:
        ConfigurationError: If a model cannot be found, or the address cannot be listened on.
    """
    server = ModelServer(
        _models(settings),
        faults=settings.faults,
        latency=settings.latency,
        max_model_len=settings.max_model_len,
        api_keys=settings.api_keys or None,
        host=settings.host,
        port=settings.port,
    )
    try:
        asyncio.run(_serve(server))
    except KeyboardInterrupt:
        echo(f"\nstopped after {server.num_requests} request(s)")


async def _serve(server: ModelServer) -> None:
    try:
        await server.start()
    except OSError as error:
        raise ConfigurationError(
            f"cannot listen on {server.host}:{server.port}: {error.strerror or error} (give another --port)"
        ) from error
    try:
        echo(_greeting(server), flush=True)
        await asyncio.Event().wait()
    finally:
        await server.aclose()


def _greeting(server: ModelServer) -> str:
    names = list(server.models)
    return "\n".join(
        [
            f"models: {', '.join(names)}",
            f"OpenAI base URL:    {server.openai_url}",
            f"Anthropic base URL: {server.url}",
            f"for example: vfgym eval ID --model {names[0]} --base-url {server.openai_url}",
            "Ctrl-C stops the server.",
        ]
    )


def _models(settings: ServerSettings) -> dict[str, Policy]:
    names = [*(settings.models or DEFAULT_MODELS)]
    extra = [("scripted", settings.script), ("oracle", settings.env_id)]
    names += [name for name, source in extra if source is not None and name not in names]
    return {name: policy for name, policy in (_model(given, settings) for given in names)}


def _model(given: str, settings: ServerSettings) -> tuple[str, Policy]:
    if given == "scripted":
        if settings.script is None:
            raise ConfigurationError("the model 'scripted' needs its answers: --script FILE")
        return given, load_script(settings.script)
    if given == "oracle":
        if settings.env_id is None:
            raise ConfigurationError("the model 'oracle' needs an environment whose answers it knows: --env ID")
        return given, _oracle(settings.env_id)
    name, equals, policy = given.partition("=")
    return name, load_policy(policy if equals else name, seed=settings.seed)


def _oracle(env_id: str) -> Policy:
    from vfgym.cli.environments import made

    env, _ = made(env_id, {})
    return environment_oracle(env)
