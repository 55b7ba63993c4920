"""The documented environment classes: those of `vfgym`, each with the rollout API."""

from verifiers_compat.loading import create_getattr

__getattr__ = create_getattr(__name__)
