"""Runs that play in other processes, here and elsewhere: one process coordinates, and any number of workers play.

The coordinator (`coordinator`) is the process that was asked for a run. It gives its rollouts to workers and takes the rows that come back;
it alone writes files and keeps the run's limits. A worker (`worker`) makes the environment once and plays with the ordinary
engine. Whatever carries out calls can start workers: a `concurrent.futures.Executor`, which `processes` and `on_ray` are, too. What the two
say to each other is JSON (`link`), so what is played must have a name (`travelling`), and nothing is unpickled.
"""

from vfgym.runs.executors.worker import serve_rollouts

__all__ = ["serve_rollouts"]
