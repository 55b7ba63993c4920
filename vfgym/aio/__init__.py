"""What the library does for synchronous and asynchronous callers alike.

Steps and their drivers, the background loop, the greenlet bridge, deadlines, and threads for functions that block.
"""
