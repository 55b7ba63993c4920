"""`generate`: rollouts of many inputs against a model, scored in groups or one by one, saved as they finish."""

from verifiers_compat.generation.players import Players
from verifiers_compat.generation.reporting import RunReporter
from verifiers_compat.generation.run import generate
from verifiers_compat.generation.settings import GenerateSettings
from vfgym.runs.inputs import Inputs, ListedInputs, TaskInputs

__all__ = ["GenerateSettings", "Inputs", "ListedInputs", "Players", "RunReporter", "TaskInputs", "generate"]
