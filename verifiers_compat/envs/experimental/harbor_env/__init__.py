"""The documented package of `HarborEnv`."""

from verifiers_compat.envs.experimental.harbor_env.env import HarborEnv
from verifiers_compat.loading import create_getattr

__all__ = ["HarborEnv"]

__getattr__ = create_getattr(__name__)
