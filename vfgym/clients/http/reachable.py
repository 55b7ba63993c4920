"""Whether anybody listens where a model is said to be.

A request to an address that cannot be reached is sent again for almost a minute, since the server may come back, and each of
hundreds of rollouts would find out for itself. Who starts a run can ask here first.
"""

from __future__ import annotations

import asyncio
import contextlib
from urllib.parse import urlsplit

from vfgym.clients.config import ClientConfig, EndpointClientConfig
from vfgym.clients.http.transport import proxy_of, ssl_context
from vfgym.errors import ConfigurationError
from vfgym.output.redaction import redact_url

_PORTS = {"http": 80, "https": 443}


async def check_reachable(config: EndpointClientConfig) -> None:
    """Open a connection to each endpoint and close it again. Nothing is sent but, for ``https``, the handshake.

    Where the environment names a proxy, the connection is one to the proxy.

    Args:
        config: Where the endpoints are; ``connect_timeout`` is the time that each has.

    Raises:
        ConfigurationError: If one cannot be reached.
    """
    for endpoint in config.endpoints() if isinstance(config, ClientConfig) else [config]:
        await _check(endpoint)


async def _check(config: EndpointClientConfig) -> None:
    proxy = proxy_of(config.api_base_url)
    parts = urlsplit(proxy or config.api_base_url)
    if parts.scheme not in _PORTS:
        return
    try:
        async with asyncio.timeout(config.connect_timeout):
            context = ssl_context() if parts.scheme == "https" else None
            _, writer = await asyncio.open_connection(parts.hostname, parts.port or _PORTS[parts.scheme], ssl=context)
    except (OSError, UnicodeError) as error:
        reason = f"no answer within {config.connect_timeout:g} s" if isinstance(error, TimeoutError) else _reason(error)
        url = redact_url(config.api_base_url)
        where = f"{url} (by the proxy {parts.hostname})" if proxy else url
        raise ConfigurationError(f"{where} cannot be reached: {reason}. Is the URL right, and does the server run?") from error
    writer.transport.abort()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


def _reason(error: OSError | UnicodeError) -> str:
    if isinstance(error, ConnectionRefusedError):
        return "the connection is refused"
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
