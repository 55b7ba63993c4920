"""The older place of ``vf-install`` (see `verifiers_compat.cli.commands.install`)."""

from verifiers_compat.cli.commands.install import main as main

if __name__ == "__main__":
    main()
