"""`SandboxTaskSet`: tasks that are solved, and tested, in a sandbox of their own."""

from verifiers_compat.envs.experimental.composable.task import SandboxSpec, SandboxTaskSet, TaskSet
from verifiers_compat.loading import create_getattr

__all__ = ["SandboxSpec", "SandboxTaskSet", "TaskSet"]

__getattr__ = create_getattr(__name__)
