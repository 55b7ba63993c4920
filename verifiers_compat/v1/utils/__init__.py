"""Functions at the paths where published tasksets and harnesses import them from."""
