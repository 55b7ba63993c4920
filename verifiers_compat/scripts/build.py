"""The older place of ``vf-build`` (see `verifiers_compat.cli.commands.build`)."""

from verifiers_compat.cli.commands.build import main as main

if __name__ == "__main__":
    main()
