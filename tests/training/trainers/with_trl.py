"""Runs TRL's `GRPOTrainer` on environments, with a tiny model whose answers are scripted or sampled, and prints what was rewarded."""

from __future__ import annotations

import json
import os
import pickle
import re
import sys
import tempfile
from typing import Any

os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"

from transformers import Qwen2Config, Qwen2ForCausalLM, set_seed
from transformers.utils import get_json_schema
from trl import GRPOConfig, GRPOTrainer
from trl.chat_template_utils import qwen3_chat_template

from tests.training.trainers import environments
from tests.training.trainers.tokenizer import CHATML, make_tokenizer
from vfgym.training.trl import dataset, environment_factory, reward_funcs, rollout_func

GROUP = 4


def make_model(tokenizer: Any) -> Any:
    return Qwen2ForCausalLM(
        Qwen2Config(
            vocab_size=len(tokenizer),
            hidden_size=16,
            intermediate_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            num_key_value_heads=2,
            max_position_embeddings=16384,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
    )


class Recorder(GRPOTrainer):
    """Keeps what was rewarded; where there are scripts, they answer instead of the model."""

    scripts: Any = None

    def __init__(self, **arguments: Any) -> None:
        self.rewarded: list[Any] = []
        self.advantages: list[float] = []
        super().__init__(**arguments)

    def _calculate_rewards(self, inputs: Any, *args: Any) -> Any:
        rewards = super()._calculate_rewards(inputs, *args)
        totals = [None if row.isnan().all() else float(row.nansum()) for row in rewards]
        self.rewarded += [[row.get("example_id"), total] for row, total in zip(inputs, totals, strict=True)]
        return rewards

    def _generate_and_score_completions(self, inputs: Any) -> Any:
        made = super()._generate_and_score_completions(inputs)
        self.advantages += made["advantages"].tolist()
        return made

    def _generate_single_turn(self, prompt_ids: Any, *args: Any, **kwargs: Any) -> Any:
        if self.scripts is None:
            return super()._generate_single_turn(prompt_ids, *args, **kwargs)
        texts = [self._tokenizer.decode(ids) for ids in prompt_ids]
        turns = [text.count("<tool_response>\n") for text in texts]
        if not any(turns):
            self.running = list(range(len(texts)))
        scripts = [self.scripts(text, number) for text, number in zip(texts, self.running, strict=True)]
        answers = [script[turn] if turn < len(script) else "done" for script, turn in zip(scripts, turns, strict=True)]
        self.running = [number for number, answer in zip(self.running, answers, strict=True) if "<tool_call>" in answer]
        return [[*self._tokenizer(answer)["input_ids"], self._tokenizer.eos_token_id] for answer in answers], None


def train(env: Any, scripts: Any, *, use: str, **config: Any) -> dict[str, Any]:
    set_seed(0)
    tokenizer = make_tokenizer(CHATML if use == "rollout_func" else qwen3_chat_template)
    model = make_model(tokenizer)
    with tempfile.TemporaryDirectory() as folder:
        arguments = {
            "output_dir": folder,
            "report_to": "none",
            "use_cpu": True,
            "bf16": False,
            "per_device_train_batch_size": GROUP,
            "num_generations": GROUP,
            "max_completion_length": 4096,
            "max_steps": 3,
            "shuffle_dataset": False,
            "disable_tqdm": True,
            "logging_strategy": "no",
            "save_strategy": "no",
            "chat_template_kwargs": {"enable_thinking": False},
        }
        environment = {"environment_factory": environment_factory(env)} if use == "environment_factory" else {}
        if use == "rollout_func":
            environment = {"rollout_func": rollout_func(env, tokenizer)}
        before = model.lm_head.weight.detach().clone()
        trainer = Recorder(
            model=model,
            args=GRPOConfig(**{**arguments, **config}),
            reward_funcs=reward_funcs(env),
            train_dataset=dataset(env, num_examples=3),
            processing_class=tokenizer,
            **environment,
        )
        trainer.scripts = scripts
        trainer.train()
        return {"rewarded": trainer.rewarded, "advantages": trainer.advantages, "learned": bool((before != model.lm_head.weight).any())}


def sums_of(text: str, number: int) -> list[str]:
    """Return what the nth rollout answers to the sum in a prompt."""
    return environments.answers_to_sums(int(re.findall(r"(\d) \+ 2\?", text)[-1]), number)


def main() -> None:
    which = sys.argv[1]
    if which == "sums":
        found = train(environments.make_sums(), sums_of, use="environment_factory")
        factory = pickle.loads(pickle.dumps(environment_factory(environments.make_sums())))
        found["schema"] = get_json_schema(factory().add)["function"]
    elif which == "lost":
        # After the three of the data set and a group of four: one of the second group, and both times that it is played again.
        found = train(environments.Flaky({8, 11, 12}, max_turns=2), None, use="rollout_func", max_completion_length=24)
    else:
        talk = environments.Counting(max_turns=2)
        found = train(talk, None, use="rollout_func", max_completion_length=24)
        found["played"] = talk.played
    print(json.dumps(found))


main()
