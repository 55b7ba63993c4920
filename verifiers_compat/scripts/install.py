"""The older place of ``vf-install`` (see `verifiers_compat.cli.commands.install`)."""

from verifiers_compat.cli.commands.install import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
