"""The older place of ``vf-init`` (see `verifiers_compat.cli.commands.init`)."""

from verifiers_compat.cli.commands.init import main as main

if __name__ == "__main__":
    main()
