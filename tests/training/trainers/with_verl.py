"""Plays batches with verl's own worker of agent loops, with a server whose answers are scripted, and prints what verl made of them."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

os.environ.update(VERL_LOGGING_LEVEL="ERROR", TOKENIZERS_PARALLELISM="false")

import numpy as np
import verl.trainer
from hydra import compose, initialize_config_dir
from transformers import AutoTokenizer, Qwen2Config
from verl import DataProto
from verl.experimental.agent_loop import AgentLoopWorker
from verl.experimental.agent_loop.agent_loop import DictConfigWrap
from verl.workers.rollout.replica import TokenOutput

from tests.training.trainers import environments
from tests.training.trainers.tokenizer import CHATML, make_tokenizer
from vfgym.errors import ConfigurationError
from vfgym.training.counting import RolloutMissing
from vfgym.training.verl import ChatAgentLoop, dataset

AGENT_LOOPS = """
- name: vfgym
  _target_: tests.training.trainers.with_verl.make_loop
  game: {game}
"""
GAMES = {
    "lake": environments.make_lake,
    "short": lambda: environments.make_lake(history=1),
    "unreachable": environments.make_unreachable,
    "sums": environments.make_sums,
}


def make_loop(game: str, **arguments: Any) -> ChatAgentLoop:
    """Make a loop, as verl does it with the class and an id."""
    return ChatAgentLoop(env=GAMES[game](), **arguments)


class Server:
    """What verl asks its servers with, whose answers are scripted: the nth request id is answered by the nth script."""

    def __init__(self, tokenizer: Any, scripts: list[list[str]]) -> None:
        self.tokenizer, self.scripts = tokenizer, scripts
        self.asked: dict[str, list[Any]] = {}

    async def generate(self, request_id: str, *, prompt_ids: list[int], sampling_params: dict[str, Any], **_: Any) -> TokenOutput:
        requests = self.asked.setdefault(request_id, [])
        script = self.scripts[list(self.asked).index(request_id) % len(self.scripts)]
        answer = script[len(requests)]
        requests.append((prompt_ids, sampling_params))
        ids = [*self.tokenizer(answer)["input_ids"], self.tokenizer.eos_token_id][: sampling_params["max_tokens"]]
        steps = {"min_global_steps": len(requests), "max_global_steps": len(requests)}
        logprobs = [-0.5] * len(ids) if sampling_params["logprobs"] else None
        return TokenOutput(token_ids=ids, log_probs=logprobs, stop_reason="completed", extra_fields=steps)


def configure(folder: Path, game: str, response_length: int) -> Any:
    make_tokenizer(CHATML).save_pretrained(folder)
    Qwen2Config(
        vocab_size=512, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2, architectures=["Qwen2ForCausalLM"]
    ).save_pretrained(folder)
    Path(folder, "loops.yaml").write_text(AGENT_LOOPS.format(game=game))
    with initialize_config_dir(config_dir=str(Path(verl.trainer.__path__[0], "config")), version_base=None):
        config = compose(config_name="ppo_trainer")
    config.actor_rollout_ref.model.path = str(folder)
    rollout = config.actor_rollout_ref.rollout
    rollout.name, rollout.mode, rollout.calculate_log_probs = "vllm", "async", True
    rollout.prompt_length, rollout.response_length = 2048, response_length
    rollout.agent.agent_loop_config_path = str(Path(folder, "loops.yaml"))
    return config


def batch_of(rows: Any, count: int) -> DataProto:
    """Return the first row so many times, as verl repeats one for the rollouts of a group."""
    row = {**rows[0], "raw_prompt": rows[0]["prompt"], "index": rows[0]["extra_info"]["index"]}
    columns = {name: np.array([value] * count + [None], dtype=object)[:count] for name, value in row.items() if name != "prompt"}
    return DataProto(non_tensor_batch=columns)


async def play(game: str, scripts: list[list[str]], response_length: int = 4096) -> dict[str, Any]:
    """Play a group in verl's worker, and return what its batch says of each rollout."""
    with tempfile.TemporaryDirectory() as folder:
        config = configure(Path(folder), game, response_length)
        tokenizer = AutoTokenizer.from_pretrained(folder)
        server = Server(tokenizer, scripts)
        worker = AgentLoopWorker(config, server)
        try:
            result = await worker.generate_sequences(batch_of(dataset(GAMES[game](), num_examples=1), len(scripts)))
        except (RolloutMissing, ConfigurationError) as error:
            return {"raised": type(error).__name__, "text": str(error)}
        batch = result.batch
        exact = []
        for row, requests in enumerate(server.asked.values()):
            whole = batch["input_ids"][row][batch["attention_mask"][row].bool()].tolist()
            exact.append(whole[: len(requests[-1][0])] == requests[-1][0])
        written = batch["responses"].masked_select(batch["response_mask"].bool())
        return {
            "rewards": batch["rm_scores"].sum(-1).tolist(),
            "exact": exact,
            "written": tokenizer.decode(written[: int(batch["response_mask"][0].sum())]),
            "logprobs": sorted(set(batch["rollout_log_probs"][batch["response_mask"].bool()].tolist())),
            "turns": result.non_tensor_batch["__num_turns__"].tolist(),
            "steps": [result.non_tensor_batch["min_global_steps"].tolist(), result.non_tensor_batch["max_global_steps"].tolist()],
        }


async def play_by_hand() -> list[Any]:
    """Play a rollout that is several samples as verl's trainer of version 1 does, and return what it stores of each."""
    with tempfile.TemporaryDirectory() as folder:
        config = configure(Path(folder), "short", 4096)
        tokenizer = AutoTokenizer.from_pretrained(folder)
        loop = make_loop(
            "short",
            trainer_config=DictConfigWrap(config),
            server_manager=Server(tokenizer, [[f"<action>{move}</action>" for move in environments.ACROSS]]),
            tokenizer=tokenizer,
            processor=None,
            dataset_cls=None,
            data_config=DictConfigWrap(config.data),
        )
        outputs = await loop.run({"logprobs": False}, session_id=0, extra_info={"example_id": 0, "split": "train"})
    return [[sorted(output.as_dict()), output.reward_score, sum(output.response_mask)] for output in outputs]


async def main() -> None:
    lake = [[f"<action>{move}</action>" for move in moves] for moves in (environments.ACROSS, environments.INTO_A_HOLE)]
    found = {
        "lake": await play("lake", lake),
        "sums": await play("sums", [environments.answers_to_sums(0, number) for number in range(3)]),
        "cut": await play("lake", lake[:1], response_length=100),
        "unreachable": await play("unreachable", [["hello"]]),
        "short": await play("short", lake[:1]),
        "by_hand": await play_by_hand(),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    sys.modules["tests.training.trainers.with_verl"] = sys.modules["__main__"]
    asyncio.run(main())
