"""``vf-gepa``, which does not exist here (see `verifiers_compat.cli.commands.unavailable`)."""

from typing import NoReturn

from verifiers_compat.cli.commands.unavailable import refuse


def main() -> NoReturn:
    """Say why, and exit with 2."""
    refuse("vf-gepa")


if __name__ == "__main__":
    main()
