"""What pytest leaves out as it looks for doctests: adapters to trainers that are not installed, which cannot be imported."""

from __future__ import annotations

import importlib.util

_TRAINERS = {
    "art": "art",
    "gem": "gem",
    "skyrl": "skyrl_gym",
    "tinker": "tinker_cookbook",
    "torchrl": "torchrl",
    "trl": "trl",
    "verl": "verl",
}

collect_ignore = [f"vfgym/training/{adapter}.py" for adapter, trainer in _TRAINERS.items() if importlib.util.find_spec(trainer) is None]
