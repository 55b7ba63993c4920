"""Where a model is, and how it is asked: `ClientConfig`, and the providers that have a short name."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Self, TypeAlias, get_args
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
    model_validator,
)

from vfgym.bounded_json import parse_json
from vfgym.errors import ConfigurationError, UnknownArgument, did_you_mean
from vfgym.output.redaction import REDACTED, Secret, redact_data, redact_url, secret_url, with_secrets

ClientType: TypeAlias = Literal[
    "openai_completions",
    "openai_chat_completions",
    "openai_chat_completions_token",
    "openai_responses",
    "renderer",
    "anthropic_messages",
    "nemorl_chat_completions",
]
"""Which API is spoken, and so which client class asks."""

CLIENT_TYPES: tuple[ClientType, ...] = get_args(ClientType)
DEFAULT_CLIENT_TYPE: ClientType = "openai_chat_completions"

PRIME_KEY = "PRIME_API_KEY"
NO_KEY = "EMPTY"
"""Stands for the API key of a server that asks for none."""


class Provider(NamedTuple):
    """A place where models are served."""

    url: str
    key_var: str
    """Environment variable of the API key."""
    client_type: ClientType = DEFAULT_CLIENT_TYPE


PROVIDERS: Mapping[str, Provider] = {
    "prime": Provider("https://api.pinference.ai/api/v1", PRIME_KEY),
    "openai": Provider("https://api.openai.com/v1", "OPENAI_API_KEY"),
    "anthropic": Provider("https://api.anthropic.com", "ANTHROPIC_API_KEY", "anthropic_messages"),
    "openrouter": Provider("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "deepseek": Provider("https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
    "minimax": Provider("https://api.minimax.io/v1", "MINIMAX_API_KEY"),
    "glm": Provider("https://api.z.ai/api/paas/v4", "GLM_API_KEY"),
    "local": Provider("http://localhost:8000/v1", "LOCAL_API_KEY"),
    "vllm": Provider("http://localhost:8000/v1", "VLLM_API_KEY"),
}
"""The providers that have a short name."""


def provider_named(name: str) -> Provider:
    """Return a provider by its short name.

    Raises:
        ConfigurationError: If there is none of that name.
    """
    if name not in PROVIDERS:
        raise ConfigurationError(f"there is no provider {name!r}; known: {', '.join(PROVIDERS)}.{did_you_mean(name, PROVIDERS)}")
    return PROVIDERS[name]


def check_client_type(name: str) -> None:
    """Refuse what is not a client type.

    Raises:
        ConfigurationError: If there is none of that name.
    """
    if name not in CLIENT_TYPES:
        raise ConfigurationError(
            f"there is no client type {name!r}; known: {', '.join(CLIENT_TYPES)}.{did_you_mean(str(name), CLIENT_TYPES)}"
        )


def _check_headers(headers: dict[str, str]) -> dict[str, str]:
    if not all(headers):
        raise ValueError(f"the name of a header must not be empty, got the names {list(headers)}")
    return with_secrets({"headers": headers})["headers"]  # type: ignore[no-any-return]


Headers: TypeAlias = Annotated[
    dict[str, str], BeforeValidator(lambda headers: {} if headers is None else headers), AfterValidator(_check_headers)
]


def _check_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        is_whole = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        is_whole = False
    if not is_whole:
        raise ValueError(f"expected the URL of an API, like http://localhost:8000/v1, got {redact_url(url)!r}")
    return secret_url(url)


def _check_variable(name: str) -> str:
    if not name.isidentifier():
        # Not told: it may be a key.
        raise ValueError("expected the name of an environment variable; a key itself is given as api_key")
    return name


def _as_key(key: str | None) -> str | None:
    return key if key is None or key in (NO_KEY, REDACTED) or isinstance(key, Secret) else Secret(key)


class EndpointClientConfig(BaseModel):
    """One endpoint: where it is, the key it asks for, and the limits of its connections."""

    # Pydantic shows what it was given in its errors.
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    client_idx: int = 0
    """Which of several endpoints is meant where only one can be used, modulo their number."""
    client_type: ClientType = DEFAULT_CLIENT_TYPE
    preserve_all_thinking: bool = False
    """For the renderer client: keep the reasoning of every earlier turn in the prompt."""
    preserve_thinking_between_tool_calls: bool = False
    """For the renderer client: keep the reasoning since the last user message, where tools were called since."""
    api_key_var: Annotated[str, AfterValidator(_check_variable)] = PRIME_KEY
    """Environment variable that holds the API key."""
    api_base_url: Annotated[str, AfterValidator(_check_url)] = PROVIDERS["prime"].url
    timeout: float = Field(default=3600.0, gt=0)
    """Seconds that one request may take."""
    connect_timeout: float = Field(default=5.0, gt=0)
    """Seconds that a connection may take to open."""
    max_connections: int = Field(default=28000, ge=1)
    max_keepalive_connections: int = Field(default=28000, ge=0)
    max_retries: int = Field(default=10, ge=0)
    """How often a request is repeated that met a rate limit, a server error or a broken connection."""
    max_body_mb: float = Field(default=64.0, gt=0)
    """Megabytes (2**20 bytes) that the body of an answer may have, uncompressed; one that is larger is an error."""
    extra_headers: Headers = {}
    extra_headers_from_state: Headers = {}
    """Header name to the item of the episode's state that is its value. It wins over a header of the sampling arguments, as that does
    over `extra_headers`."""
    renderer: str = "auto"
    """For the renderer client: name of the chat template's renderer."""
    renderer_model_name: str | None = None
    renderer_pool_size: int | None = Field(default=None, ge=1)
    tool_parser: str | None = None
    reasoning_parser: str | None = None
    provider: str | None = Field(default=None, exclude=True)
    """Short name of a provider, which gives URL, key variable and client type where they are not given (see `PROVIDERS`)."""
    api_key: Annotated[str | None, AfterValidator(_as_key)] = Field(default=None, repr=False, exclude=True)
    """The API key itself. It is a secret, as the values of `extra_headers` and what a URL has of user, password and query are: neither
    results nor logs, ``repr`` or pickles hold them (see `vfgym.output.redaction`). An unpickled configuration says so when it is used."""

    def __init__(self, **fields: Any) -> None:
        """Check the fields.

        Raises:
            UnknownArgument: If there is a field of another name.
            pydantic.ValidationError: If a value does not fit (a ``ValueError``).
        """
        fields = with_secrets(fields) | ({"api_key": _as_key(fields["api_key"])} if isinstance(fields.get("api_key"), str) else {})
        known = type(self).model_fields
        for name in fields:
            if name not in known:
                raise UnknownArgument(f"{type(self).__name__} has no field {name!r}; it has {', '.join(known)}.{did_you_mean(name, known)}")
        super().__init__(**fields)

    # Fields may have been written to since they were checked, so these two look again.

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        return with_secrets(dict(super().__repr_args__())).items()  # type: ignore[no-any-return]

    @model_serializer(mode="wrap", when_used="json")
    def _without_secrets(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return redact_data(serialize(self))  # type: ignore[no-any-return]

    def __getstate__(self) -> dict[Any, Any]:
        state = super().__getstate__()
        return {**state, "__dict__": {**with_secrets(state["__dict__"]), "api_key": _as_key(self.api_key)}}

    @model_validator(mode="after")
    def _take_from_provider(self) -> Self:
        if self.provider is not None:
            provider = provider_named(self.provider)
            given = self.model_fields_set
            for name, value in (("api_base_url", provider.url), ("api_key_var", provider.key_var), ("client_type", provider.client_type)):
                if name not in given:
                    setattr(self, name, value)
        return self

    def resolve_api_key(self) -> str:
        """Return the API key: the one given, else the environment's (for Prime, that of its configuration file too).

        A server on this machine may ask for none: without a key, `NO_KEY` is sent.

        Raises:
            ConfigurationError: If the configuration was pickled, and the key is neither in it any more nor in a variable that it names.
        """
        self._check_secrets()
        if self.api_key not in (None, REDACTED):
            return self.api_key
        key = os.environ.get(self.api_key_var)
        if not key and self.api_key_var == PRIME_KEY:
            key = load_prime_config().get("api_key")
        return Secret(key) if key else NO_KEY

    def _check_secrets(self) -> None:
        """Refuse to send what stands for a secret in a pickle."""
        lost = [f"the header {name}" for name, value in self.extra_headers.items() if value == REDACTED]
        if REDACTED in self.api_base_url:
            lost.append("user, password or query of the URL")
        if self.api_key == REDACTED and not (self._names_its_key() and os.environ.get(self.api_key_var)):
            lost.append("the api_key")
        if lost:
            raise ConfigurationError(
                f"the client of {redact_url(self.api_base_url)} is without {', '.join(lost)}: pickles and results hold no secrets. Give"
                " it again; an API key is found wherever a pickle goes if api_key_var names the environment variable that holds it"
            )

    def _names_its_key(self) -> bool:
        return not self.model_fields_set.isdisjoint({"api_key_var", "provider"})

    def resolve_headers(self) -> dict[str, str]:
        """Return the headers of every request, that of a Prime team included."""
        headers = dict(_check_headers(self.extra_headers))
        if self.api_key_var == PRIME_KEY:
            team = os.environ.get("PRIME_TEAM_ID") or load_prime_config().get("team_id")
            if team:
                headers.setdefault("X-Prime-Team-ID", str(team))
        return headers

    @property
    def base_urls(self) -> str:
        """The URL, as results name it: without secrets; several are joined by commas."""
        return redact_url(self.api_base_url)


_NESTED = "endpoint_configs cannot be nested: an endpoint has no endpoint_configs of its own"


class ClientConfig(EndpointClientConfig):
    """Where a model is: one endpoint, or several that take turns."""

    endpoint_configs: list[EndpointClientConfig] = []
    """Endpoints that rollouts (groups of them, where groups are scored) take in turn. What an endpoint does not set itself
    it takes from here."""

    @model_validator(mode="before")
    @classmethod
    def _take_plain_endpoints(cls, fields: Any) -> Any:
        if not isinstance(fields, Mapping) or not fields.get("endpoint_configs"):
            return fields
        endpoints = []
        for endpoint in fields["endpoint_configs"]:
            if isinstance(endpoint, ClientConfig):
                if endpoint.endpoint_configs:
                    raise ValueError(_NESTED)
                secret = {} if endpoint.api_key is None else {"api_key": endpoint.api_key}
                endpoint = EndpointClientConfig(**endpoint.model_dump(exclude_unset=True, exclude={"endpoint_configs"}), **secret)
            elif isinstance(endpoint, Mapping) and "endpoint_configs" in endpoint:
                if endpoint["endpoint_configs"]:
                    raise ValueError(_NESTED)
                endpoint = {name: value for name, value in endpoint.items() if name != "endpoint_configs"}
            endpoints.append(endpoint)
        return {**fields, "endpoint_configs": endpoints}

    def endpoints(self) -> list[ClientConfig]:
        """Return one configuration for each endpoint: those of `endpoint_configs`, completed from here, or this one alone."""
        if not self.endpoint_configs:
            return [self]
        own = {name: getattr(self, name) for name in self.model_fields_set - {"endpoint_configs"}}
        each = []
        for endpoint in self.endpoint_configs:
            given = {name: getattr(endpoint, name) for name in endpoint.model_fields_set}
            names_its_key = "api_key_var" in given or "provider" in given
            fields = {**{name: value for name, value in own.items() if not (name == "api_key" and names_its_key)}, **given}
            each.append(ClientConfig(**fields))
        return each

    def single(self) -> ClientConfig:
        """Return the one configuration that is meant where only one can be used: number `client_idx`."""
        each = self.endpoints()
        return each[self.client_idx % len(each)]

    @property
    def base_urls(self) -> str:
        """The URLs, as results name them: without secrets; several are joined by commas."""
        return ",".join(redact_url(endpoint.api_base_url) for endpoint in self.endpoints())


def make_config(**fields: Any) -> ClientConfig:
    """Return a configuration of what a user said in a command or a file.

    Raises:
        ConfigurationError: If a value does not fit.
    """
    try:
        return ClientConfig(**fields)
    except ValidationError as error:
        reasons = "; ".join(each["msg"].removeprefix("Value error, ") for each in error.errors())
        raise ConfigurationError(f"the models cannot be asked like this: {reasons}") from None


def load_prime_config() -> dict[str, Any]:
    """Return what ``prime login`` left in ``~/.prime/config.json``; empty where there is nothing to read."""
    try:
        loaded = parse_json((Path.home() / ".prime" / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RuntimeError):
        return {}
    return loaded if isinstance(loaded, dict) else {}
