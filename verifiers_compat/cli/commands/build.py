"""The documented module of ``vf-build``, which does not exist here."""

from verifiers_compat.cli.commands.unavailable import build

main = build

if __name__ == "__main__":
    main()
