"""The documented module of `SandboxEnv`, which is not offered."""

from verifiers_compat.loading import module_getattr

_HOSTED = "it runs in hosted sandboxes, which this package does not offer"

__getattr__ = module_getattr(
    __name__,
    left_out=dict.fromkeys(("SandboxEnv", "SandboxMonitorRubric", "SandboxState", "SandboxCreationError", "SandboxNotReadyError"), _HOSTED),
)
