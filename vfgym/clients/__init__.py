"""Clients: who is asked for the next message."""

from vfgym.clients.client import Client, SamplingArgs

__all__ = ["Client", "SamplingArgs"]
