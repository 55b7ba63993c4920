"""The documented module of ``vf-gepa``, which does not exist here."""

from verifiers_compat.cli.commands.unavailable import gepa as main

if __name__ == "__main__":
    main()
