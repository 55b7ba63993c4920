"""Environment classes at the paths where the rollout API keeps its newer ones."""

from verifiers_compat.loading import create_getattr

__getattr__ = create_getattr(__name__)
