"""Clients: who is asked for the next message.

`Client` is what the library asks for. `ProviderClient` is the base of those that speak a provider's API; `resolve_client` makes
one of a `ClientConfig`, or of an SDK's client.
"""

from vfgym.clients.client import Client, SamplingArgs, merge_sampling_args
from vfgym.clients.config import PROVIDERS, ClientConfig, ClientType, EndpointClientConfig, Provider
from vfgym.clients.faults import (
    ASKED_BY_PROGRAM,
    OVERLONG_RULES,
    OverlongRule,
    ends_only_rollout,
    is_authentication_error,
    is_overlong_prompt,
    is_permanent_refusal,
)
from vfgym.clients.provider import ProviderClient
from vfgym.clients.resolve import client_class, resolve_client

__all__ = [
    "ASKED_BY_PROGRAM",
    "OVERLONG_RULES",
    "PROVIDERS",
    "Client",
    "ClientConfig",
    "ClientType",
    "EndpointClientConfig",
    "OverlongRule",
    "Provider",
    "ProviderClient",
    "SamplingArgs",
    "client_class",
    "ends_only_rollout",
    "is_authentication_error",
    "is_overlong_prompt",
    "is_permanent_refusal",
    "merge_sampling_args",
    "resolve_client",
]
