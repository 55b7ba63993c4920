"""Configurations of an author's own, for tests of what all configurations share."""

from __future__ import annotations

import uuid
from typing import Any, Literal

from pydantic import Field, model_validator

import verifiers_compat.v1 as vf


class Level(vf.TasksetConfig):
    level: int = 1
    options: dict[str, Any] = {}
    run_id: str = Field(default_factory=lambda: uuid.uuid4().hex)

    @model_validator(mode="after")
    def _check(self) -> Level:
        if self.level < 0:
            raise ValueError("levels are counted from 0")
        return self


class Deeper(Level):
    depth: int = 1


class Other(vf.TasksetConfig):
    level: int = 7
    colour: str = "red"


class Style(vf.HarnessConfig):
    style: Literal["plain", "loud"] = "plain"


class MyEnv(vf.EnvConfig):
    taskset: Level = Level(level=2, options={"a": 1, "b": {"x": 1}})
    harness: Style | None = None
    split: str = "train"


class Levels(vf.Taskset):
    config_type = Level
