"""The documented module of `SandboxEnv`, which is not offered."""

from verifiers_compat.loading import create_getattr

_HOSTED = "it runs in hosted sandboxes, which this package does not offer"
_NAMES = ("SandboxEnv", "SandboxMonitorRubric", "SandboxState", "SandboxCreationError", "SandboxNotReadyError")

__getattr__ = create_getattr(__name__, unavailable=dict.fromkeys(_NAMES, _HOSTED))
