"""The former place of `vfgym.model_server`. It keeps working for one version."""

import warnings
from typing import Any

from vfgym import model_server


def __getattr__(name: str) -> Any:
    value = getattr(model_server, name)
    warnings.warn("vfgym.testing.model_server is now vfgym.model_server", DeprecationWarning, stacklevel=2)
    return value
