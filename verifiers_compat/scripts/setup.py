"""The older place of ``vf-setup`` (see `verifiers_compat.cli.commands.setup`)."""

from verifiers_compat.cli.commands.setup import main as main

if __name__ == "__main__":
    main()
