"""From what is said about an evaluation to the evaluation: defaults, model and endpoint, the environment, the run to resume."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import logging
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gymnasium

from verifiers_compat.cli.evals.endpoints import DEFAULT_PATH, read_endpoints, resolve_endpoints_file
from verifiers_compat.cli.evals.fields import EvalFields, PlayFields
from verifiers_compat.types import Endpoint, Endpoints, EvalConfig
from verifiers_compat.utils.env_utils import module_name, suggest_ids
from verifiers_compat.utils.path_utils import find_latest_incomplete_eval_results_path, get_eval_runs_dir, is_valid_eval_results_path
from vfgym.clients import ClientConfig
from vfgym.clients.config import make_config, provider_named
from vfgym.errors import ConfigurationError
from vfgym.results import find_incomplete

logger = logging.getLogger(__name__)

DEFAULT_MODEL = "openai/gpt-4.1-mini"
DEFAULT_PROVIDER = "prime"
DEFAULT_ENV_DIR = "./environments"
DEFAULT_HEADERS_FROM_STATE: Mapping[str, str] = {"X-Session-ID": "example_id"}
DEFAULTS: Mapping[str, Any] = {"num_examples": 5, "rollouts_per_example": 3, "max_concurrent": 32}
"""Fields of an `EvalConfig` that the command has defaults for; most others have theirs in the class."""


class MissingEnvironment(ConfigurationError):
    """An environment is not installed, or not in the version that was asked for."""


def resolve_config(fields: EvalFields) -> EvalConfig:
    """Return an evaluation with everything filled in: what is said, else the environment's own defaults, else the built-in ones.

    Raises:
        ConfigurationError: If what is said cannot go together, or names something that is not there.
    """
    if not fields.env_id:
        raise ConfigurationError("an evaluation needs the id of an environment")
    if fields.hf_hub_dataset_name and not fields.save_to_hf_hub:
        raise ConfigurationError("hf_hub_dataset_name names a data set on the hub: ask for the upload too (save_to_hf_hub, -H)")
    env_id = fields.env_id.strip()
    said = {name: value for name, value in fields if value is not None and name in EvalConfig.model_fields}
    said["env_id"] = without_version(env_id)
    said["model"], said["client_config"] = resolve_model(fields)
    said["sampling_args"] = resolve_sampling_args(fields)
    said["extra_env_kwargs"] = resolve_env_attributes(fields)
    if fields.num_workers is not None and not fields.disable_env_server:
        if fields.executor is not None or fields.workers is not None:
            raise ConfigurationError("num_workers says where rollouts play, and so do executor and workers: leave one of them out")
        said["executor"], said["workers"] = "process", fields.num_workers
    if fields.num_examples is None and fields.example_ids is not None:
        said["num_examples"] = -1
    said["save_results"] = bool(fields.save_results or fields.save_to_hf_hub or fields.resume)
    config = EvalConfig(**{**DEFAULTS, **evaluation_defaults(env_id), **said})
    return config.model_copy(update={"resume_path": run_to_resume(config, fields.resume)}) if fields.resume else config


def resolve_sampling_args(fields: PlayFields) -> dict[str, Any]:
    """Return the sampling arguments; those that are given as such win over the temperature and the limit of tokens."""
    sampling = {"max_tokens": fields.max_tokens, "temperature": fields.temperature}
    return {**{name: value for name, value in sampling.items() if value is not None}, **(fields.sampling_args or {})}


def resolve_env_attributes(fields: PlayFields) -> dict[str, Any]:
    """Return what is set on the environment."""
    timeout = {} if fields.timeout is None else {"timeout_seconds": fields.timeout}
    return {**(fields.extra_env_kwargs or {}), **timeout}


# The model


def resolve_model(fields: PlayFields) -> tuple[str, ClientConfig]:
    """Return the name of the model and where it is.

    A name of the endpoint registry gives both; a provider, then URL, key variable and client type that are given, win over it.

    Raises:
        ConfigurationError: If there is no such endpoint, provider or client type.
    """
    if fields.endpoint_id and fields.model:
        raise ConfigurationError("endpoint_id names a model of the endpoint registry, so leave model out (or endpoint_id)")
    alias = fields.endpoint_id or fields.model or DEFAULT_MODEL
    variants = _read_registry(fields).get(alias)
    if fields.endpoint_id and not variants:
        raise ConfigurationError(f"there is no endpoint {fields.endpoint_id!r} in {fields.endpoints_path or DEFAULT_PATH}")
    given = {"api_base_url": fields.api_base_url, "api_key_var": fields.api_key_var, "client_type": fields.api_client_type}
    explicit = {name: value for name, value in given.items() if value is not None}
    if variants:
        over = {**(_from_provider(fields.provider) if fields.provider else {}), **explicit}
        endpoints = [{**_from_endpoint(variant), **over} for variant in variants]
    else:
        endpoints = [{**_from_provider(fields.provider or DEFAULT_PROVIDER), **explicit}]
    for endpoint in endpoints:
        endpoint["extra_headers"] = {**endpoint.get("extra_headers", {}), **(fields.headers or {})}
    different = [endpoint for i, endpoint in enumerate(endpoints) if endpoint not in endpoints[:i]]
    config = different[0] if len(different) == 1 else {"endpoint_configs": different}
    from_state = dict(fields.headers_from_state or DEFAULT_HEADERS_FROM_STATE)
    return variants[0]["model"] if variants else alias, make_config(**config, extra_headers_from_state=from_state)


def _read_registry(fields: PlayFields) -> Endpoints:
    file = resolve_endpoints_file(fields.endpoints_path or DEFAULT_PATH)
    if file is not None:
        return read_endpoints(file)
    if fields.endpoints_path is not None:
        raise ConfigurationError(f"there is no endpoint registry {fields.endpoints_path}")
    return {}


def _from_endpoint(endpoint: Endpoint) -> dict[str, Any]:
    """Return an endpoint's fields by the names that a `ClientConfig` has for them."""
    names = {"url": "api_base_url", "key": "api_key_var", "api_client_type": "client_type", "extra_headers": "extra_headers"}
    return {names[name]: value for name, value in endpoint.items() if name in names}


def _from_provider(name: str) -> dict[str, Any]:
    provider = provider_named(name)
    return {"api_base_url": provider.url, "api_key_var": provider.key_var, "client_type": provider.client_type}


# The environment


def without_version(env_id: str) -> str:
    """Return an id without the version that it may name.

    >>> without_version("primeintellect/gsm8k@0.1.2")
    'primeintellect/gsm8k'
    """
    return env_id.partition("@")[0]


def check_installed(env_id: str, env_dir_path: str = DEFAULT_ENV_DIR) -> None:
    """Refuse an environment that is not installed, or is in another version than its id names (``@0.1.2``; any for ``@latest``).

    Raises:
        MissingEnvironment: If it is not there; the text says how to install it.
    """
    name, _, version = env_id.partition("@")
    if name in gymnasium.registry:
        return
    module = module_name(name)
    if _module_file(module) is None:
        folder = Path(env_dir_path) / module
        if folder.is_dir():
            hint = f" Install it with: vf-install {module.replace('_', '-')} -p {env_dir_path}"
        else:
            hint = suggest_ids(name) or f" Make it with: vf-init {module.replace('_', '-')} -p {env_dir_path}"
        raise MissingEnvironment(f"the environment {name!r} is not installed: there is no module {module!r}.{hint}")
    if version and version != "latest":
        try:
            installed = importlib.metadata.version(module.replace("_", "-"))
        except importlib.metadata.PackageNotFoundError:
            installed = "without a version"
        if installed != version:
            raise MissingEnvironment(
                f"the environment {name!r} is installed ({installed}), but not as version {version}: install that first"
            )


def _module_file(module: str) -> Path | None:
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return None
    if spec is None:
        return None
    where = spec.origin or next(iter(spec.submodule_search_locations or ()), None)
    return None if where is None else Path(where)


def evaluation_defaults(env_id: str) -> dict[str, int]:
    """Return what an installed environment says in its ``pyproject.toml`` under ``[tool.verifiers.eval]``.

    Only ``num_examples`` and ``rollouts_per_example`` count. The file lies beside the environment's module (or above its package).
    """
    if without_version(env_id) in gymnasium.registry:
        return {}
    module = module_name(without_version(env_id))
    origin = _module_file(module)
    if origin is None:
        return {}
    folders = [origin.parent, origin.parent.parent] if origin.name == "__init__.py" else [origin.parent]
    for file in (folder / "pyproject.toml" for folder in folders):
        try:
            content = tomllib.loads(file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            logger.warning("%s cannot be read, so its defaults for evaluations are not used: %s", file, error)
            continue
        # Installed wheels put the file of every environment into one directory, where the last one stays.
        if str(content.get("project", {}).get("name", module)).replace("-", "_").replace(".", "_").lower() != module.lower():
            continue
        section = content.get("tool", {}).get("verifiers", {}).get("eval", {})
        defaults = {name: section[name] for name in ("num_examples", "rollouts_per_example") if name in section}
        return EvalFields.parse(defaults, f"{file}, [tool.verifiers.eval]").model_dump(exclude_unset=True)
    return {}


# The run to resume


def run_to_resume(config: EvalConfig, resume: bool | str) -> Path:
    """Return the directory of the run that goes on.

    Args:
        config: The evaluation.
        resume: Its directory; or True for the newest run that fits and is not finished.

    Raises:
        ConfigurationError: If there is none.
    """
    if isinstance(resume, str):
        if not is_valid_eval_results_path(resume):
            raise ConfigurationError(f"{resume} holds no results of a run (results.jsonl and metadata.json), so it cannot be resumed")
        return Path(resume)
    runs = get_eval_runs_dir(config.env_id, config.model, config.env_dir_path, config.output_dir)
    names = ("env_id", "model", "rollouts_per_example", "env_args", "sampling_args", "limits_each", "seed")
    wanted = {name: getattr(config, name) for name in names}
    wanted |= {"num_examples": len(config.example_ids or ()) or config.num_examples, "shard": config.shard and list(config.shard)}
    found = find_incomplete(runs, wanted)
    if found is None:  # one that is finished may have fewer examples than are asked for now
        found = find_latest_incomplete_eval_results_path(
            config.env_id, config.model, config.num_examples, config.rollouts_per_example, config.env_dir_path, config.output_dir
        )
    if found is None:
        raise ConfigurationError(
            f"there is no run to resume in {runs}: none that is unfinished, with {config.rollouts_per_example} rollouts an example and"
            f" no more than {config.num_examples} examples. Leave --resume out to begin a new one"
        )
    return found
