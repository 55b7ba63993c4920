"""The documented helpers of the rollout API, one module for each subject.

Most are names for what `vfgym` has; what exists only here is small.
"""
