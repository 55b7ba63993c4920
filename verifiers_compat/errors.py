"""The documented error hierarchy of the rollout API."""

from vfgym.errors import (
    BrowserSandboxError,
    EmptyModelResponseError,
    Error,
    InfraError,
    InvalidModelResponseError,
    ModelError,
    OverlongPromptError,
    SandboxError,
    ToolCallError,
    ToolError,
    ToolParseError,
    TunnelError,
)

__all__ = [
    "BrowserSandboxError",
    "EmptyModelResponseError",
    "Error",
    "InfraError",
    "InvalidModelResponseError",
    "ModelError",
    "OverlongPromptError",
    "SandboxError",
    "ToolCallError",
    "ToolError",
    "ToolParseError",
    "TunnelError",
]
