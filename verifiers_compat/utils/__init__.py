"""The documented helpers of the rollout API, one module for each subject.

Most are names for what `vfgym` has; what exists only here is small.
"""

from verifiers_compat.loading import create_getattr

__getattr__ = create_getattr(__name__)
