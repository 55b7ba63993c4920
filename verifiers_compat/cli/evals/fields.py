"""`EvalFields`: what a command line or a config file says about an evaluation, before defaults are filled in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from vfgym.clients import ClientType
from vfgym.errors import ConfigurationError, did_you_mean
from vfgym.output.redaction import excerpt, with_secrets

SPELLINGS: Mapping[str, str] = {
    "id": "env_id",
    "args": "env_args",
    "max_concurrent_generation": "max_concurrent",
    "resume_path": "resume",
    "header": "headers",
    "extra_headers": "headers",
    "header_from_state": "headers_from_state",
    "extra_headers_from_state": "headers_from_state",
}
"""Other names of fields."""


def _header_table(value: Any) -> Any:
    """Return headers as a dict; they may be a list of texts ``"Name: value"``, as on the command line."""
    if value is None or isinstance(value, Mapping):
        return value
    texts = [value] if isinstance(value, str) else list(value)
    headers: dict[str, str] = {}
    for text in texts:
        name, colon, content = (part.strip() for part in str(text).partition(":"))
        if not (colon and name and content):
            raise ValueError("a header is written 'Name: value'")
        headers[name] = content
    return headers


def _names(value: Any) -> Any:
    """Return names as a list; they may be one text, separated by commas."""
    return [name.strip() for name in value.split(",") if name.strip()] if isinstance(value, str) else value


Headers = Annotated[dict[str, str], BeforeValidator(_header_table)]


def _not_zero(value: int) -> int:
    if value == 0:
        raise ValueError("must be positive, or -1 for all")
    return value


Count = Annotated[int, Field(ge=1)]


class EvalFields(BaseModel):
    """What is said about an evaluation. A field that nobody named is None."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    env_id: str | None = None
    env_args: dict[str, Any] | None = None
    env_dir_path: str | None = None
    endpoints_path: str | None = None
    endpoint_id: str | None = None
    model: str | None = None
    provider: str | None = None
    api_client_type: ClientType | None = None
    api_key_var: str | None = None
    api_base_url: str | None = None
    headers: Headers | None = None
    headers_from_state: Headers | None = None
    num_examples: Annotated[int, Field(ge=-1), AfterValidator(_not_zero)] | None = None
    rollouts_per_example: Count | None = None
    max_concurrent: Annotated[int, Field(ge=-1)] | None = None
    max_concurrent_scoring: Annotated[int, Field(ge=-1)] | None = None
    max_tokens: Count | None = None
    temperature: float | None = None
    sampling_args: dict[str, Any] | None = None
    output_dir: str | None = None
    verbose: bool | None = None
    save_results: bool | None = None
    state_columns: Annotated[list[str], BeforeValidator(_names)] | None = None
    resume: bool | str | None = None
    """True for the newest run that fits; or the directory of one."""
    redo_errors: bool | None = None
    independent_scoring: bool | None = None
    max_retries: Annotated[int, Field(ge=0)] | None = None
    timeout: Annotated[float, Field(gt=0)] | None = None
    """Seconds that a rollout may take."""
    extra_env_kwargs: dict[str, Any] | None = None
    save_to_hf_hub: bool | None = None
    hf_hub_dataset_name: str | None = None
    no_interleave_scoring: bool | None = None
    num_workers: int | str | None = None
    disable_env_server: bool | None = None

    @classmethod
    def of(cls, given: Mapping[str, Any], where: str) -> EvalFields:
        """Return checked fields.

        Args:
            given: The fields by their names, or other spellings of them.
            where: What the errors name as the place.

        Raises:
            ConfigurationError: If there is no such field, or a value does not fit.
        """
        try:
            return cls(**normalized(given, where))
        except ValidationError as error:
            raise ConfigurationError(f"{where}: {'; '.join(map(_problem, error.errors()))}") from None


def _problem(error: Mapping[str, Any]) -> str:
    """Return what is wrong with a field. Headers are not shown, as they may be secrets."""
    field = error["loc"][0] if error["loc"] else ""
    got = "" if field == "headers" else f", got {excerpt(with_secrets({field: error['input']})[field], 80)}"
    return f"{'.'.join(map(str, error['loc']))}: {error['msg']}{got}"


def known_fields(extra: Iterable[str] = ()) -> list[str]:
    """Return all names that a field may have."""
    return [*EvalFields.model_fields, *SPELLINGS, *extra]


def normalized(given: Mapping[str, Any], where: str, extra: Iterable[str] = ()) -> dict[str, Any]:
    """Return fields under their own names.

    Args:
        given: The fields.
        where: What the errors name as the place.
        extra: Further names that are let through.

    Raises:
        ConfigurationError: If there is no such field, or one is given in two spellings.
    """
    known = known_fields(extra)
    fields: dict[str, Any] = {}
    for name, value in given.items():
        if name not in known:
            hint = did_you_mean(name, known) or f" There are {', '.join(known)}."
            raise ConfigurationError(f"{where}: there is no field {name!r}.{hint}")
        own = SPELLINGS.get(name, name)
        if own in fields:
            both = [spelling for spelling in given if SPELLINGS.get(spelling, spelling) == own]
            raise ConfigurationError(f"{where} says the same twice, as {' and '.join(both)}: leave one of them out")
        fields[own] = str(value) if isinstance(value, Path) else value
    return fields
