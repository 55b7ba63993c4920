"""`generate`: rollouts of many inputs against a model, scored in groups or one by one, saved as they finish."""

from verifiers_compat.generation.engine import generate
from verifiers_compat.generation.inputs import Inputs, ListedInputs, TaskInputs
from verifiers_compat.generation.settings import Callbacks, Settings

__all__ = ["Callbacks", "Inputs", "ListedInputs", "Settings", "TaskInputs", "generate"]
