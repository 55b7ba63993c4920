"""`EnvGroup` with the rollout API."""

from collections.abc import Mapping, Sequence
from typing import Any

from verifiers_compat.envs.environment import Environment
from vfgym.envs import group
from vfgym.envs.chat import ChatEnv
from vfgym.envs.group import ROUTE as ENV_GROUP_INFO_KEY
from vfgym.envs.group import EnvGroupRubric
from vfgym.errors import ConfigurationError, did_you_mean


class EnvGroup(Environment, group.EnvGroup):
    """`vfgym.EnvGroup` with the rollout API. What is set on it is set on its environments too."""

    def __init__(
        self,
        envs: Sequence[ChatEnv],
        env_names: Sequence[str] | None = None,
        map_kwargs: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Join environments (see `vfgym.EnvGroup`)."""
        super().__init__(envs, env_names, map_kwargs=map_kwargs, **kwargs)

    def get_env_for_name(self, name: str) -> ChatEnv:
        """Return the environment of a name.

        Raises:
            ConfigurationError: If there is none.
        """
        if name not in self.env_map:
            raise ConfigurationError(
                f"there is no environment {name!r} in the group; it has {', '.join(self.env_names)}."
                f"{did_you_mean(str(name), self.env_names)}"
            )
        env: ChatEnv = self.env_map[name]
        return env

    def set_kwargs(self, **kwargs: Any) -> None:
        """Set attributes, here and on every environment: by the method ``set_<name>`` where there is one."""
        super().set_kwargs(**kwargs)
        for env in self.envs:
            if isinstance(env, Environment):
                env.set_kwargs(**kwargs)
            else:
                for name, value in kwargs.items():
                    setattr(env, name, value)


__all__ = ["ENV_GROUP_INFO_KEY", "EnvGroup", "EnvGroupRubric"]
