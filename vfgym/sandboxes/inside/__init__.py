"""What runs inside a sandbox: the agent, and the process that runs cells.

Their sources are sent to an interpreter there (`vfgym.sandboxes.agent_client`), which may be any Python from 3.8 on and has no package of
ours: they import the standard library, and each other. What only type hints name is not imported there: `typing` alone takes 10 ms.
"""
