"""A server of models that are functions, behind the HTTP APIs of OpenAI and Anthropic.

It lets a class work without API keys, and lets every client be tested over real HTTP: with tools, streams, token ids, limits,
and with everything that goes wrong between a client and a model (`Faults`). A model is a *policy*: a function from a `ModelRequest`
to an answer.
"""

from vfgym.model_server.exchange import Answer, ApiName, ModelRequest, Policy, Reply, RequestRefused
from vfgym.model_server.faults import FAULTS, FaultFunction, Faults
from vfgym.model_server.policies import (
    echo,
    environment_oracle,
    load_policy,
    load_script,
    oracle,
    random_policy,
    scripted,
)
from vfgym.model_server.provider_errors import Overlong
from vfgym.model_server.server import ModelServer, RecordedRequest
from vfgym.model_server.tokenizer import detokenize, tokenize

__all__ = [
    "FAULTS",
    "Answer",
    "ApiName",
    "FaultFunction",
    "Faults",
    "ModelRequest",
    "ModelServer",
    "Overlong",
    "Policy",
    "RecordedRequest",
    "Reply",
    "RequestRefused",
    "detokenize",
    "echo",
    "environment_oracle",
    "load_policy",
    "load_script",
    "oracle",
    "random_policy",
    "scripted",
    "tokenize",
]
