"""The command line of the rollout API: ``vf-eval``, ``vf-init``, ``vf-install``, ``vf-setup``, and the plugin of the ``prime`` tool.

Each command is a module in `verifiers_compat.cli.commands`, with a function ``main``.
"""

from verifiers_compat.loading import create_getattr

__getattr__ = create_getattr(__name__)
