"""`generate`: rollouts of many inputs against a model, scored in groups or one by one, saved as they finish."""

from verifiers_compat.generation.run import generate
from verifiers_compat.generation.settings import Callbacks, Settings
from vfgym.runs.inputs import Inputs, ListedInputs, TaskInputs

__all__ = ["Callbacks", "Inputs", "ListedInputs", "Settings", "TaskInputs", "generate"]
