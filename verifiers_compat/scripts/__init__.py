"""The older places of the commands (see `verifiers_compat.cli.commands`)."""

from verifiers_compat.loading import create_getattr

__getattr__ = create_getattr(__name__)
