"""What a published environment's package is made of, read from its files: nothing of it is run or installed.

`targets` finds a package and `sources` its modules; `imports` and `uses` say what those import and which names of verifiers they
use, `needs` what has to be installed for that, and `check` puts it all together.
"""
