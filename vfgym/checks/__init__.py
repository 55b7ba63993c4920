"""Checks of the promises that the library makes of environments; users call `vfgym.testing.check_environment`."""
