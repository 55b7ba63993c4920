"""The documented environment classes: those of `vfgym`, each with the rollout API."""
