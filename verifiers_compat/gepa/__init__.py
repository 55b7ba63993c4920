"""Improving the system prompt of an environment, with the optimizer GEPA (the extra ``gepa``; https://github.com/gepa-ai/gepa).

A *candidate* is a system prompt. `optimize_prompt` begins with the environment's own. In each round GEPA takes a candidate, has it played
on a few training examples, shows a reflecting model what came of them, and takes the prompt that this model proposes as a new candidate
where it scores higher on the same examples. Candidates are compared by their mean reward on the validation examples.

* `environment_adapter`: what GEPA asks of a system: play examples with a candidate, and say what came of them.
* `reflection`: the reflecting model.
* `prompts`: how a candidate gets into the conversations of an environment.
* `examples`: which tasks are for training and which for validation.
* `feedback`: what the reflecting model is shown of a rollout.
* `run_directory`: what is on disk. Every answer of a model is, so that a run which was stopped goes on where it was.
* `result`: candidates and their scores; `report`: the same, for readers.
"""

from verifiers_compat.gepa.optimize import optimize_prompt
from verifiers_compat.gepa.result import Candidate, OptimizedPrompt
from verifiers_compat.loading import create_getattr

__all__ = ["Candidate", "OptimizedPrompt", "optimize_prompt"]

__getattr__ = create_getattr(__name__)
