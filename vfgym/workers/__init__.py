"""Functions called in worker processes that can be killed, with limits for each call.

>>> Workers("math").call_sync("factorial", 5, cpu_seconds=5, wall_seconds=60)
120
"""

from vfgym.workers.pool import Limits, RemoteError, Workers, read_json_outcome

__all__ = ["Limits", "RemoteError", "Workers", "read_json_outcome"]
