"""The documented base class of the model clients: `vfgym.clients.ProviderClient`, under its documented name."""

from vfgym.clients import ProviderClient as Client

__all__ = ["Client"]
