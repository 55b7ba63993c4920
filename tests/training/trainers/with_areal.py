"""Plays episodes as AReaL's workflow of agents, through its own proxy in front of a scripted engine, and prints what it would train on."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
import tempfile
import threading
import time
import types
import urllib.request
from typing import Any

os.environ.update(LITELLM_LOCAL_MODEL_COST_MAP="True", AREAL_LOG_LEVEL="ERROR")

import uvicorn
from areal.api.io_struct import ModelResponse
from areal.experimental.openai.proxy import proxy_rollout_server
from areal.experimental.openai.proxy.workflow import OpenAIProxyWorkflow
from areal.infra import workflow_context

from tests.training.trainers import environments
from tests.training.trainers.tokenizer import CHATML, make_tokenizer
from vfgym.training.areal import ChatWorkflow, dataset


class Engine:
    """AReaL's inference engine, whose answers are scripted by how many answers a prompt has."""

    def __init__(self, folder: str) -> None:
        agent = types.SimpleNamespace(
            tool_call_parser="qwen25",
            reasoning_parser="qwen3",
            engine_max_tokens=None,
            chat_template_type="hf",
            session_timeout_seconds=3600,
            admin_api_key=proxy_rollout_server.DEFAULT_ADMIN_API_KEY,
        )
        self.config = types.SimpleNamespace(tokenizer_path=folder, agent=agent, lora_name="")
        self.asked = 0

    def initialize(self) -> None:
        """Begin; the server's client is made then."""

    async def agenerate(self, request: Any) -> ModelResponse:
        self.asked += 1
        text = request.tokenizer.decode(request.input_ids)
        turn = text.count("<|im_start|>assistant") - 1
        move = environments.ACROSS[turn % len(environments.ACROSS)]
        ids = [*request.tokenizer(f"<action>{move}</action>")["input_ids"], request.tokenizer.eos_token_id]
        return ModelResponse(
            input_tokens=list(request.input_ids),
            output_tokens=ids,
            output_logprobs=[-0.5] * len(ids),
            output_versions=[7] * len(ids),
            tokenizer=request.tokenizer,
        )


def serve_proxy(folder: str) -> tuple[uvicorn.Server, str]:
    """Serve AReaL's proxy on a thread, and return it with its URL."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    proxy_rollout_server._server_host = "127.0.0.1"
    server = uvicorn.Server(uvicorn.Config(proxy_rollout_server.app, port=port, log_level="warning"))
    threading.Thread(target=server.run, daemon=True).start()
    while not server.started:
        time.sleep(0.01)
    url = f"http://127.0.0.1:{port}"
    for path, body in (
        ("create_engine", {"engine": "tests.training.trainers.with_areal.Engine", "init_kwargs": {"folder": folder}}),
        ("call", {"method": "initialize"}),
    ):
        asked = urllib.request.Request(f"{url}/{path}", json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(asked) as answer:
            assert json.load(answer)["status"] == "success"
    return server, url


async def play(url: str, env: Any, number: int) -> Any:
    """Play the first task as AReaL's executor does, and return what its workflow exports, or what it raised."""
    workflow = OpenAIProxyWorkflow(mode="inline", agent=ChatWorkflow(env), proxy_addr=url, export_style="individual")
    workflow_context.set(workflow_context.WorkflowContext(task_id=number))
    [row] = dataset(env, num_examples=1)
    try:
        interactions = await workflow.arun_episode(None, row)
    except Exception as error:
        return {"rejected": type(error).__name__}
    exported = []
    for interaction in interactions.values():
        tensors = interaction.to_tensor_dict()
        exported.append([float(tensors["rewards"][0]), int(tensors["loss_mask"].sum()), sorted(tensors)])
    return exported


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        make_tokenizer(CHATML).save_pretrained(folder)
        server, url = serve_proxy(folder)
        envs = [environments.make_lake(), environments.make_broken(), environments.make_unreachable()]
        found = [await play(url, env, number) for number, env in enumerate(envs)]
        server.should_exit = True
    print(json.dumps(found))


if __name__ == "__main__":
    sys.modules["tests.training.trainers.with_areal"] = sys.modules["__main__"]
    asyncio.run(main())
