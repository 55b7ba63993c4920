"""The files that ``vf-init`` and ``vf-setup`` write."""

from __future__ import annotations

import importlib.metadata
import string

from packaging.version import Version

MODULE = '''\
"""Sums of two numbers: an environment that works, to go on from."""

import random

import verifiers_compat as vf


def make_rows(num_examples: int, max_number: int, seed: int) -> list[dict[str, str]]:
    """Return the tasks. Any rows do that have a `question` (text) or a `prompt` (messages), and, as here, an `answer`."""
    rng = random.Random(seed)
    pairs = [(rng.randint(0, max_number), rng.randint(0, max_number)) for _ in range(num_examples)]
    return [{"question": f"What is {a} + {b}?", "answer": str(a + b)} for a, b in pairs]


def load_environment(num_examples: int = 100, max_number: int = 99, seed: int = 0) -> vf.Environment:
    """Return the environment. Its arguments are what `vf-eval --env-args` can set.

    Go on here: replace the rows by tasks of your own, and the reward functions by what a good answer is. `vf.ToolEnv` gives the
    model tools, and a subclass of `vf.MultiTurnEnv` answers each of its messages.
    """
    parser = vf.XMLParser(["answer"])

    def correct_answer(completion, answer) -> float:
        return 1.0 if parser.parse_answer(completion) == answer else 0.0

    rubric = vf.Rubric(parser=parser)
    rubric.add_reward_func(correct_answer)
    rubric.add_metric(parser.get_format_reward_func())
    return vf.SingleTurnEnv(
        dataset=make_rows(num_examples, max_number, seed),
        eval_dataset=make_rows(num_examples, max_number, seed + 1),
        system_prompt=f"Solve the task. Answer in this form:\\n{parser.get_format_str()}",
        parser=parser,
        rubric=rubric,
    )
'''

PACKAGE_INIT = '''\
"""Sums of two numbers."""

from $module.$module import load_environment

__all__ = ["load_environment"]
'''

PYPROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "$name"
description = "Sums of two numbers"
tags = ["single-turn", "train", "eval"]
version = "0.1.0"
requires-python = ">=3.11"
dependencies = ["vfgym>=$version"]

[tool.hatch.build]
include = ["$included", "pyproject.toml"]  # the latter for the defaults below
dev-mode-dirs = ["."]

[tool.verifiers.eval]
num_examples = 5
rollouts_per_example = 3
"""

README = """\
# $name

An environment of the rollout API (`vf`): sums of two numbers. Say here what yours is about, where its tasks come from, and what
its rewards measure.

## Evaluate a model

```bash
vf-install $name
vf-eval $name --model openai/gpt-4.1-mini
```

Without an API key, `vfgym serve-model` serves models that are no models at `http://localhost:8000/v1`:

```bash
vf-eval $name --provider local --model random
```

Arguments, more examples, and results on disk:

```bash
vf-eval $name -a '{"max_number": 9}' -n 20 -r 4 -s
```

## Arguments

| argument | default | meaning |
|---|---|---|
| `num_examples` | `100` | tasks, of training and of evaluation each |
| `max_number` | `99` | the largest number that is added |
| `seed` | `0` | seed of the tasks |

## Metrics

| metric | meaning |
|---|---|
| `reward` | 1.0 for a right answer |
| `correct_answer` | the same |
| `format_reward_func` | how well the answer keeps to its form; it does not count in the reward |
"""

ENDPOINTS = """\
# Names for models and where they are: `vf-eval my-env -m NAME`. Several entries of one name take turns.
# `key` is the environment variable of the API key. `type` is the API that is spoken, openai_chat_completions by default.

# Models that are no models, to try things out: start them with `vfgym serve-model`.
[[endpoint]]
endpoint_id = "echo"
model = "echo"
url = "http://localhost:8000/v1"
key = "LOCAL_API_KEY"
"""

PROVIDER_ENDPOINT = """
# [[endpoint]]
# endpoint_id = "my-$provider-model"
# model = "name-of-the-model"
# url = "$url"
# key = "$key"
# type = "$client_type"
"""

EVAL_CONFIG = """\
# `vf-eval configs/eval/example.toml` runs these evaluations at the same time.
# What stands above the tables holds for all of them.
endpoints_path = "../endpoints.toml"
endpoint_id = "echo"
num_examples = 5
rollouts_per_example = 2
save_results = true

[[eval]]
env_id = "reasoning-gym/leg_counting-v0"

# One evaluation for each combination of the values:
#
# [[ablation]]
# env_id = "my-env"
#
# [ablation.sweep]
# temperature = [0.0, 1.0]
#
# [ablation.sweep.args]
# max_number = [9, 99]
"""


def filled(template: str, module: str, **values: str) -> str:
    """Return the text of a file of an environment.

    Args:
        template: The text, with ``$module``, ``$name`` (its distribution), ``$version`` (this library's) and `values`.
        module: Name of the environment's module.
        **values: What else stands in it.
    """
    version = Version(importlib.metadata.version("vfgym")).public  # ">=" takes no local part
    return string.Template(template).safe_substitute(module=module, name=module.replace("_", "-"), version=version, **values)
