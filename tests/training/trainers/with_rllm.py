"""Plays rollouts through rLLM's gateway, in front of a server of scripted models, and prints what came of them."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from typing import Any

import uvicorn
from rllm_model_gateway import AsyncGatewayClient, GatewayConfig, create_app

from tests.training.trainers import environments
from vfgym.model_server import ModelServer
from vfgym.training import samples
from vfgym.training.counting import RolloutMissing
from vfgym.training.rllm import play_session


def serve_gateway(worker: str) -> tuple[uvicorn.Server, str]:
    """Serve rLLM's gateway in front of a model on a thread, and return it with its URL."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    app = create_app(GatewayConfig(workers=[{"url": worker}], store_worker="memory", health_check_interval=3600))
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="warning"))
    threading.Thread(target=server.run, daemon=True).start()
    while not server.started:
        time.sleep(0.01)
    return server, f"http://127.0.0.1:{port}"


async def play(gateway: Any, env: Any, model: str) -> dict[str, Any]:
    try:
        state = await play_session(gateway, env, model=model, example_id=0)
    except RolloutMissing as missing:
        return {"missing": str(missing.ending)}
    [sample] = samples([state], advantage=None)
    return {"reward": state["reward"], "turns": sample.turns, "written": sum(sample.mask), "ids": len(sample.ids)}


async def main() -> None:
    def across(moves: list[str]) -> Any:
        return lambda request: f"<action>{moves[sum(message['role'] == 'assistant' for message in request.messages)]}</action>"

    models = {"across": across(environments.ACROSS), "falls": across(environments.INTO_A_HOLE)}
    with ModelServer(models) as model_server:
        server, url = serve_gateway(model_server.openai_url)
        try:
            async with AsyncGatewayClient(url) as gateway:
                lake = environments.make_lake()
                found = [await play(gateway, lake, model) for model in models]
                found.append(await play(gateway, environments.make_broken(), "across"))
        finally:
            server.should_exit = True
    print(json.dumps(found))


if __name__ == "__main__":
    asyncio.run(main())
