"""The endpoint registry: names for models and where they are, kept in ``configs/endpoints.toml`` (or the older ``endpoints.py``)."""

from __future__ import annotations

import logging
import runpy
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from verifiers_compat.types import Endpoint, Endpoints
from vfgym.cli.fields import TableFields
from vfgym.clients import ClientType
from vfgym.errors import ConfigurationError

logger = logging.getLogger(__name__)

DEFAULT_PATH = "./configs/endpoints.toml"


class EndpointFields(TableFields):
    """What a row of a registry says of one variant of an endpoint; the names are those of an `Endpoint`."""

    spellings = {"api_base_url": "url", "api_key_var": "key", "type": "api_client_type", "headers": "extra_headers"}
    hidden = frozenset({"url", "key", "extra_headers"})

    model: str
    url: str
    key: str
    api_client_type: ClientType | None = None
    extra_headers: dict[str, str] | None = None


def resolve_endpoints_file(endpoints_path: str | Path) -> Path | None:
    """Return the file of a registry; None where there is none.

    Args:
        endpoints_path: The file, or the directory of an ``endpoints.toml`` or ``endpoints.py``. Where it names one of these
            two and only the other is there, that is meant.
    """
    path = Path(endpoints_path)
    if path.is_dir():
        candidates = [path / "endpoints.toml", path / "endpoints.py"]
    elif path.suffix in (".toml", ".py"):
        candidates = [path, path.with_suffix(".py" if path.suffix == ".toml" else ".toml")]
    else:
        candidates = [path]
    return next((candidate for candidate in candidates if candidate.is_file()), None)


def read_endpoints(file: str | Path) -> Endpoints:
    """Read a registry.

    A TOML file has a table ``[[endpoint]]`` for each variant, with ``endpoint_id``, ``model``, ``url`` (or ``api_base_url``), ``key``
    (or ``api_key_var``: the environment variable of the API key), and optionally ``type`` (or ``api_client_type``) and ``headers``
    (or ``extra_headers``). A Python file has a dict ``ENDPOINTS``: for each id the same fields, or a list of variants.

    Args:
        file: The file.

    Returns:
        The variants of each endpoint, in the order of the file.

    Raises:
        ConfigurationError: If it cannot be read, or says something that an endpoint does not have.
    """
    file = Path(file)
    endpoints: Endpoints = {}
    for endpoint_id, row in _python_rows(file) if file.suffix == ".py" else _toml_rows(file):
        fields = EndpointFields.parse(row, f"{file}: the endpoint {endpoint_id!r}")
        endpoints.setdefault(endpoint_id, []).append(cast("Endpoint", fields.model_dump(exclude_unset=True)))
    for endpoint_id, variants in endpoints.items():
        models = sorted({variant["model"] for variant in variants})
        if len(models) > 1:
            raise ConfigurationError(
                f"{file}: the variants of the endpoint {endpoint_id!r} take turns, so they must serve one model; got {', '.join(models)}"
            )
    return endpoints


def load_endpoints(endpoints_path: str | Path = DEFAULT_PATH) -> Endpoints:
    """Return the endpoints of a registry; with a warning, none where it is missing or cannot be read (see `read_endpoints`)."""
    file = resolve_endpoints_file(endpoints_path)
    if file is None:
        logger.warning("there is no endpoint registry %s", endpoints_path)
        return {}
    try:
        return read_endpoints(file)
    except ConfigurationError as error:
        logger.warning("the endpoint registry is not used: %s", error)
        return {}


def _toml_rows(file: Path) -> list[tuple[str, Mapping[str, Any]]]:
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"the endpoint registry {file} cannot be read: {error}") from error
    unknown = next((name for name in content if name not in ("endpoint", "endpoints")), None)
    if unknown is not None:
        raise ConfigurationError(f"{file}: expected tables [[endpoint]], got {unknown!r}")
    rows = [row for name in ("endpoint", "endpoints") for row in _as_list(file, content.get(name, []))]
    named: list[tuple[str, Mapping[str, Any]]] = []
    for number, row in enumerate(rows, start=1):
        endpoint_id = row.get("endpoint_id")
        if not isinstance(endpoint_id, str) or not endpoint_id:
            raise ConfigurationError(f"{file}: endpoint number {number} needs an endpoint_id (text), got {endpoint_id!r}")
        named.append((endpoint_id, {name: value for name, value in row.items() if name != "endpoint_id"}))
    return named


def _python_rows(file: Path) -> list[tuple[str, Mapping[str, Any]]]:
    try:
        content = runpy.run_path(str(file)).get("ENDPOINTS")
    except Exception as error:
        raise ConfigurationError(f"the endpoint registry {file} cannot be read: {type(error).__name__}: {error}") from error
    if not isinstance(content, Mapping):
        raise ConfigurationError(f"{file}: expected a dict ENDPOINTS, got {type(content).__name__}")
    return [(str(name), row) for name, rows in content.items() for row in _as_list(file, rows)]


def _as_list(file: Path, rows: Any) -> list[Mapping[str, Any]]:
    """Return the tables of a file in a list, also where there is only one."""
    tables: list[Any] = rows if isinstance(rows, list) else [rows]
    for each in tables:
        if not isinstance(each, Mapping):  # which may be a key, or hold one
            kind = type(each).__name__
            raise ConfigurationError(f"{file}: an endpoint must be a table with its fields ([[endpoint]] in TOML), got {kind}")
    return tables
