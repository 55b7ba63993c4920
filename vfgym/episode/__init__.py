"""The episode machine: one run of an environment, played turn by turn and then scored."""

from vfgym.episode.machine import BaseEpisode, Episode, Outcome, play

__all__ = ["BaseEpisode", "Episode", "Outcome", "play"]
