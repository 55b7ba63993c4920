"""The former place of `vfgym.model_server`. It keeps working for one version."""

import warnings

from vfgym.model_server import *  # noqa: F403

warnings.warn("vfgym.testing.model_server is now vfgym.model_server", DeprecationWarning, stacklevel=2)
