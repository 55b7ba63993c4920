"""``vfgym serve-model``: models without a model, for classes and for tests of clients."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from vfgym.errors import ConfigurationError
from vfgym.model_server import ModelServer, Policy, environment_oracle, load_policy, load_script
from vfgym.output.terminal import echo

DEFAULT_MODELS = ("echo", "random")
"""The models that are served where none is named."""


def serve(server: ModelServer) -> None:
    """Serve until Ctrl-C.

    Raises:
        ConfigurationError: If the address cannot be listened on.
    """
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


def load_models(names: Sequence[str] = (), script: Path | None = None, env_id: str | None = None, seed: int = 0) -> dict[str, Policy]:
    """Return the models to serve, by their names.

    Args:
        names: ``echo``, ``random``, ``scripted``, ``oracle``, ``module:callable`` or ``NAME=module:callable``; without any,
            `DEFAULT_MODELS`.
        script: Answers of the model ``scripted``, which is served then.
        env_id: Environment whose answers the model ``oracle`` knows, which is served then.
        seed: Seed of the model ``random``.

    Raises:
        ConfigurationError: If a model cannot be found.
    """
    given = [*(names or DEFAULT_MODELS)]
    given += [name for name, source in (("scripted", script), ("oracle", env_id)) if source is not None and name not in given]
    models: dict[str, Policy] = {}
    for each in given:
        name, _, policy = each.partition("=")
        if each == "scripted":
            if script is None:
                raise ConfigurationError("the model 'scripted' needs its answers: --script FILE")
            models[name] = load_script(script)
        elif each == "oracle":
            if env_id is None:
                raise ConfigurationError("the model 'oracle' needs an environment whose answers it knows: --env ID")
            models[name] = _load_oracle(env_id)
        else:
            models[name] = load_policy(policy or name, seed=seed)
    return models


def _load_oracle(env_id: str) -> Policy:
    from vfgym.cli.environments import make_environment

    env, _ = make_environment(env_id, {})
    return environment_oracle(env)
