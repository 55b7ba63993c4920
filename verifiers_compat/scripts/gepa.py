"""The older place of ``vf-gepa`` (see `verifiers_compat.cli.commands.gepa`)."""

from verifiers_compat.cli.commands.gepa import main as main

if __name__ == "__main__":
    main()
