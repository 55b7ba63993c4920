"""``python -m vfgym`` is the command ``vfgym``."""

from vfgym.cli import main

if __name__ == "__main__":
    main()
