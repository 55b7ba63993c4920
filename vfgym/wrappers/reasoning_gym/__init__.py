"""reasoning-gym's procedural datasets as single-turn environments."""

from vfgym.wrappers.reasoning_gym.curriculum import Curriculum, CurriculumConfig, CurriculumState
from vfgym.wrappers.reasoning_gym.env import ReasoningGymEnv

__all__ = ["Curriculum", "CurriculumConfig", "CurriculumState", "ReasoningGymEnv"]
