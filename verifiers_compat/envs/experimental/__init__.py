"""Environment classes at the paths where the rollout API keeps its newer ones."""

from verifiers_compat.loading import create_getattr

__getattr__ = create_getattr(
    __name__,
    {
        "verifiers_compat.envs.experimental.cli_agent_env": ["CliAgentEnv"],
        "verifiers_compat.envs.experimental.harbor_env": ["HarborEnv"],
        "verifiers_compat.envs.experimental.rlm_env": ["RLMEnv"],
        "verifiers_compat.envs.experimental.sandbox_mixin": ["SandboxMixin"],
        "verifiers_compat.envs.experimental.swe_debug_env": ["SWEDebugEnv"],
    },
)
