"""A whole example of the documented rollout API, run as it is written: through ``import verifiers as vf``.

It is the source of a module, without postponed annotations, as users write them. It asks a real server on loopback by a real client; the
data set of the hub is local. What the parts of the other examples promise is tested with the modules that have them.
"""

import ast
import asyncio
import sys
from types import ModuleType
from typing import Any

import datasets
import pytest

from vfgym.clients import config as client_config
from vfgym.model_server import ModelServer

OWN_ROLLOUT = """
import verifiers as vf
from datasets import load_dataset

# Create a simple environment
class MyEnv(vf.Environment):
    async def rollout(
        self,
        input: vf.RolloutInput,
        client: vf.Client,
        model: str,
        sampling_args: vf.SamplingArgs | None = None,
    ) -> vf.State:
        state = await self.init_state(input, client, model, sampling_args)
        
        # Get model response
        response = await self.get_model_response(
            state,
            prompt=state["prompt"]
        )
        
        # Store completion
        state["completion"] = response.message
        state["is_completed"] = True
        
        return state

# Load environment with dataset
def load_environment():
    dataset = load_dataset("gsm8k", "main", split="train")
    
    def reward_fn(answer: str, completion: vf.Messages) -> float:
        # Custom reward logic
        return 1.0 if answer in str(completion) else 0.0
    
    return MyEnv(
        dataset=dataset,
        rubric=vf.Rubric(reward_fn),
        system_prompt="You are a helpful assistant."
    )

# Evaluate
env = load_environment()
results = await env.evaluate(
    client=vf.ClientConfig(
        provider="openai",
        api_key="sk-..."
    ),
    model="gpt-4",
    num_examples=10
)

print(f"Average reward: {results['metadata']['avg_reward']}")
"""  # noqa: W293, it is a quotation


def test_an_environment_with_its_own_rollout(vf: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    loaded: list[Any] = []

    def load_dataset(*args: Any, **kwargs: Any) -> datasets.Dataset:
        loaded.append((args, kwargs))
        question = "Natalia sold 48 clips in April and half as many in May. How many altogether?"
        return datasets.Dataset.from_list([{"question": question, "answer": answer} for answer in ("72", "73")])

    module = ModuleType("documented_example")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    with ModelServer({"gpt-4": lambda request: "It is 72."}) as server:
        monkeypatch.setitem(client_config.PROVIDERS, "openai", client_config.Provider(server.openai_url, "OPENAI_API_KEY"))  # type: ignore[arg-type]
        code = compile(OWN_ROLLOUT, "example.py", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        asyncio.run(eval(code, module.__dict__))
    assert (capsys.readouterr().out, loaded) == ("Average reward: 0.5\n", [(("gsm8k", "main"), {"split": "train"})])
    assert [(output["reward"], output["is_completed"]) for output in module.results["outputs"]] == [(1.0, True), (0.0, True)]
    assert server.requests[0].headers["Authorization"] == "Bearer sk-..."
    assert [message["role"] for message in server.requests[0].body["messages"]] == ["system", "user"]
