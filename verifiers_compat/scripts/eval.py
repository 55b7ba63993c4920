"""The older place of ``vf-eval`` (see `verifiers_compat.cli.commands.eval`)."""

from verifiers_compat.cli.commands.eval import main as main

if __name__ == "__main__":
    main()
