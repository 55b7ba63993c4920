"""Environments put together of tasks and of an agent's program: `ComposableEnv` of a `TaskSet` and a `Harness`."""

from verifiers_compat.envs.experimental.composable.composable_env import ComposableEnv
from verifiers_compat.envs.experimental.composable.harness import Harness
from verifiers_compat.envs.experimental.composable.task import SandboxSpec, SandboxTaskSet, Task, TaskSet, discover_sibling_dir
from verifiers_compat.loading import create_getattr

__all__ = ["ComposableEnv", "Harness", "SandboxSpec", "SandboxTaskSet", "Task", "TaskSet", "discover_sibling_dir"]

__getattr__ = create_getattr(__name__)
