"""Environments on servers of OpenEnv, played over its wire protocol: the library itself is not needed.

`env` is the chat environment; `contracts` how an answer is played, `actions` how it is read, `rendering` how an observation is shown. Below
them, `session` is one episode, `servers` where it is played, `starting` how a server is started for a project, `links` the way to it, and
`protocol` what travels there.
"""

from vfgym.wrappers.openenv.env import OpenEnvEnv

__all__ = ["OpenEnvEnv"]
