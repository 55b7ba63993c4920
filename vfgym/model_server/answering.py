"""How a request becomes an answer: keys, models, faults, limits, and the policy in the middle."""

from __future__ import annotations

import asyncio
import logging
import math
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from vfgym.aio.threads import on_thread
from vfgym.calls import function_name, maybe_await
from vfgym.errors import ConfigurationError, Error, did_you_mean
from vfgym.lifecycle import is_blocking
from vfgym.model_server import wire
from vfgym.model_server.anthropic_messages import MESSAGES, read_prompt
from vfgym.model_server.exchange import ModelRequest, Policy, Reply, RequestRefused, as_reply
from vfgym.model_server.faults import FAULT_HEADER, FaultFunction, Faults, exact_kind
from vfgym.model_server.generation import Generation, generate
from vfgym.model_server.openai_chat import CHAT, TOKENS
from vfgym.model_server.openai_completions import COMPLETIONS
from vfgym.model_server.openai_responses import RESPONSES
from vfgym.model_server.parsed_request import Api, ParsedRequest, dumps
from vfgym.model_server.provider_errors import OVERLONG, Overlong, ProviderName, error_body, forbidden_key_error, unknown_key_error
from vfgym.model_server.token_routes import answer_detokenize, answer_tokenize

logger = logging.getLogger(__name__)

_APIS: Mapping[str, Api] = {
    "/v1/chat/completions": CHAT,
    "/v1/chat/completions/tokens": TOKENS,
    "/v1/completions": COMPLETIONS,
    "/v1/responses": RESPONSES,
    "/v1/messages": MESSAGES,
}
_MODELS_PATH = "/v1/models"
_GET_PATHS = frozenset({"/health", _MODELS_PATH})
_TOKEN_PATHS = frozenset({"/tokenize", "/v1/tokenize", "/detokenize", "/v1/detokenize"})
_COUNT_PATH = "/v1/messages/count_tokens"
PATHS = (*sorted(_GET_PATHS), *_APIS, _COUNT_PATH, *sorted(_TOKEN_PATHS))
"""Every path that the server knows."""

_EMPTY = Reply("")


@dataclass
class Behaviour:
    """How a server answers: the arguments of `vfgym.model_server.ModelServer`. It may be changed while the server runs.

    Raises:
        ConfigurationError: If a value is not as described there.
    """

    models: dict[str, Policy]
    faults: Faults | FaultFunction | None = None
    latency: float = 0.0
    max_model_len: int | None = None
    overlong: Overlong | None = None
    api_keys: Collection[str] | None = None
    forbidden_keys: Collection[str] = ()
    faults_given: Counter[str] = field(default_factory=Counter)
    """How often each kind of fault happened."""

    def __post_init__(self) -> None:
        _check_models(self.models)
        if self.faults is not None and not callable(self.faults):
            raise ConfigurationError(f"faults must be a Faults, a function of the request, or None, got {type(self.faults).__name__}")
        if not isinstance(self.latency, int | float) or not 0 <= self.latency < math.inf:
            raise ConfigurationError(f"latency must be seconds from 0, got {self.latency!r}")
        if self.max_model_len is not None and (not isinstance(self.max_model_len, int) or self.max_model_len < 1):
            raise ConfigurationError(f"max_model_len must be a number of tokens from 1, or None, got {self.max_model_len!r}")
        for name, keys in (("api_keys", self.api_keys), ("forbidden_keys", self.forbidden_keys)):
            if isinstance(keys, str):
                raise ConfigurationError(f"{name} must be a set of keys, got the text {keys!r}: write {{{keys!r}}}")

    async def answer(self, http: web.BaseRequest, body: Any, problem: RequestRefused | None, number: int) -> web.StreamResponse:
        """Answer a request, whatever is wrong with it.

        Args:
            http: The request.
            body: Its parsed body.
            problem: What is wrong with the body, or None.
            number: Number of the request.
        """
        path, provider = http.path.rstrip("/"), _provider(http)
        headers = wire.id_header(provider, number)
        try:
            try:
                return await self._answer(http, path, provider, body, problem, number)
            except (RequestRefused, wire.ConnectionCut, ConnectionError):
                raise
            except Error as error:  # what a policy answered cannot be sent
                raise _unusable(error) from error
            except Exception as error:
                logger.exception("request %d (%s) failed", number, http.path)
                raise _unusable(error) from error
        except RequestRefused as refused:
            return wire.json_response(error_body(provider, refused, number), {**headers, **refused.headers}, refused.status)
        except wire.ConnectionCut:
            return web.Response()  # goes nowhere

    async def _answer(
        self, http: web.BaseRequest, path: str, provider: ProviderName, body: Any, problem: RequestRefused | None, number: int
    ) -> web.StreamResponse:
        headers = wire.id_header(provider, number)
        if path in _GET_PATHS:
            wire.check_method(http, "GET")
            if path == "/health":
                return wire.json_response({"status": "ok"}, headers)
            self._check_key(http, provider)
            return wire.json_response(self._model_list(), headers)
        api = _APIS.get(path)
        if api is None and path != _COUNT_PATH and path not in _TOKEN_PATHS:
            known = f"{', '.join(PATHS)}.{did_you_mean(path, PATHS)}"
            raise RequestRefused(404, f"there is no route {http.method} {http.path}; there are {known}", code="unknown_url")
        wire.check_method(http, "POST")
        self._check_key(http, provider)
        if problem is not None:
            raise problem
        if api is None:
            return wire.json_response(self._token_answer(path, http, body, number), headers)
        asked = api.read(body, http.headers, number)
        policy = self._policy(asked.model)
        fault = self._fault(http, asked)
        if fault is not None:
            self.faults_given[fault] += 1
        self._check_length(asked, provider, is_forced=fault == "overlong")
        if fault is not None:
            await self._fail_early(http, fault)
        if self.latency:
            await asyncio.sleep(self.latency)
        replies = [_EMPTY if fault == "empty_reply" else await _ask(policy, request) for request in asked.requests]
        generations = [self._generate(asked, index, reply) for index, reply in enumerate(replies)]
        if asked.is_stream:
            events = list(api.stream(asked, generations))
            if fault == "malformed_json":
                middle = len(events) // 2
                events[middle] = events[middle][: len(events[middle]) // 2] + b"\n\n"
            return await wire.stream(http, events, headers, is_cut=fault == "cut_in_body")
        data = dumps(api.write(asked, generations))
        if fault == "cut_in_body":
            await wire.send_half(http, data)
        if fault == "malformed_json":
            data = data[: len(data) // 2]
        return wire.json_response(data, headers)

    def _model_list(self) -> dict[str, Any]:
        limit = {} if self.max_model_len is None else {"max_model_len": self.max_model_len}
        models = [{"id": name, "object": "model", "created": 0, "owned_by": "vfgym", **limit} for name in self.models]
        return {"object": "list", "data": models}

    def _token_answer(self, path: str, http: web.BaseRequest, body: Any, number: int) -> dict[str, Any]:
        if path == _COUNT_PATH:
            asked = read_prompt(body, http.headers, number)
            self._policy(asked.model)
            return {"input_tokens": asked.prompt_tokens[0]}
        if "model" in body:
            self._policy(body["model"])
        if path.endswith("/detokenize"):
            return answer_detokenize(body)
        return answer_tokenize(body, self.max_model_len)

    def knows_key(self, http: web.BaseRequest) -> bool:
        """Say whether a request has a key that is accepted."""
        try:
            self._check_key(http, _provider(http))
        except RequestRefused:
            return False
        return True

    def _check_key(self, http: web.BaseRequest, provider: ProviderName) -> None:
        if self.api_keys is None and not self.forbidden_keys:
            return
        key = http.headers.get("x-api-key") if provider == "anthropic" else None
        if key is None:
            scheme, _, given = http.headers.get("Authorization", "").partition(" ")
            key = given.strip() if scheme.lower() == "bearer" else None
        if key in self.forbidden_keys:
            raise forbidden_key_error(provider)
        if self.api_keys is not None and key not in self.api_keys:
            raise unknown_key_error(provider, key)

    def _policy(self, model: Any) -> Policy:
        policy = self.models.get(model) if isinstance(model, str) else None
        if policy is None:
            known = f"{', '.join(self.models)}.{did_you_mean(str(model), self.models)}"
            raise RequestRefused(404, f"the model {model!r} does not exist; there are {known}", code="model_not_found", param="model")
        return policy

    def _check_length(self, asked: ParsedRequest, provider: ProviderName, *, is_forced: bool) -> None:
        limit, longest = self.max_model_len, max(asked.prompt_tokens)
        if is_forced or (limit is not None and longest > limit):
            wording = self.overlong or OVERLONG[provider]
            raise wording.refusal(longest, limit if limit is not None and longest > limit else max(longest - 1, 0))

    def _generate(self, asked: ParsedRequest, index: int, reply: Reply) -> Generation:
        prompt_tokens, limit = asked.prompt_tokens[index], asked.max_tokens
        if self.max_model_len is not None:
            room = self.max_model_len - prompt_tokens
            limit = room if limit is None else min(limit, room)
        return generate(reply, prompt_tokens=prompt_tokens, max_tokens=limit, stops=asked.stops)

    # Faults

    def _fault(self, http: web.BaseRequest, asked: ParsedRequest) -> str | None:
        name = http.headers.get(FAULT_HEADER)
        if name is not None:
            try:
                return exact_kind(name, asked.number)
            except ConfigurationError as error:
                raise RequestRefused(400, f"{FAULT_HEADER}: {error}") from None
        if self.faults is None:
            return None
        chosen = self.faults(asked.requests[0])
        return None if chosen is None else exact_kind(chosen, asked.number)

    async def _fail_early(self, http: web.BaseRequest, fault: str) -> None:
        """Bring about what goes wrong before there is an answer."""
        if fault == "rate_limited":
            seconds = self.faults.retry_after if isinstance(self.faults, Faults) else Faults.retry_after
            headers = {} if seconds is None else {"Retry-After": f"{seconds:g}"}
            raise RequestRefused(
                429, "Rate limit reached: a fault of this server.", code="rate_limit_exceeded", kind="rate_limit_error", headers=headers
            )
        if fault == "server_error":
            raise RequestRefused(500, "The server had an error while processing your request: a fault of this server.")
        if fault == "hung":
            await asyncio.Event().wait()  # until the client goes away, or the server closes
        if fault == "cut_before_headers":
            wire.cut_connection(http)


def _provider(http: web.BaseRequest) -> ProviderName:
    if http.path.rstrip("/") == _MODELS_PATH:  # both providers have it; Anthropic's clients always send their version
        return "anthropic" if "anthropic-version" in http.headers else "openai"
    return "anthropic" if http.path.startswith("/v1/messages") else "openai"


def _check_models(models: Mapping[str, Policy]) -> None:
    if not models:
        raise ConfigurationError("a server needs at least one model: ModelServer(models={'echo': echo})")
    for name, policy in models.items():
        if not isinstance(name, str) or not name:
            raise ConfigurationError(f"the name of a model is a text that is not empty, got {name!r}")
        if not callable(policy):
            raise ConfigurationError(f"model {name!r} must be a function from a request to an answer, got {type(policy).__name__}")


async def _ask(policy: Policy, request: ModelRequest) -> Reply:
    try:
        call = on_thread if is_blocking(policy) else maybe_await
        answer: Any = await call(policy, request)
    except RequestRefused:
        raise
    except Exception as error:
        logger.exception("the model %s (%s) failed", request.model, function_name(policy))
        raise _unusable(error) from error
    return as_reply(answer)


def _unusable(error: Exception) -> RequestRefused:
    # Another try would not help, and both SDKs retry a status 500 unless this header tells them not to.
    return RequestRefused(500, f"the model failed: {type(error).__name__}: {error}", headers={"x-should-retry": "false"})
