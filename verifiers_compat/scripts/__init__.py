"""The older places of the commands (see `verifiers_compat.cli.commands`)."""
