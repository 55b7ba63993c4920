"""The older place of ``vf-eval`` (see `verifiers_compat.cli.commands.eval`)."""

from verifiers_compat.cli.commands.eval import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
