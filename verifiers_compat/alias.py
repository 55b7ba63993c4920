"""The name ``verifiers`` for this package, so that environments written for it run unchanged.

After `install`, ``import verifiers`` and ``import verifiers.<anything>`` give the very modules of `verifiers_compat`: one
object under two names. Nothing is written to disk, and nothing changes for other processes.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.metadata
import importlib.util
import sys
from collections.abc import Iterable, Sequence
from importlib.abc import Loader, MetaPathFinder
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from verifiers_compat.not_offered import find_module_reason
from vfgym.errors import ConfigurationError

ALIAS = "verifiers"
REAL = __name__.partition(".")[0]

API_VERSION = "0.1.14"
"""The version of the rollout API that is offered; what ``importlib.metadata.version("verifiers")`` says after `install`."""


def install(force: bool = False) -> None:
    """Make ``verifiers`` a name of this package, in this process. A second call does nothing.

    An installed `verifiers` is hidden from then on. ``importlib.metadata.version("verifiers")`` gives `API_VERSION`, since
    published environments check it.

    Args:
        force: Whether to go on where another `verifiers` is imported already. What was imported from it stays what it is.

    Raises:
        ConfigurationError: If another `verifiers` is imported already.
    """
    foreign = [name for name, module in sys.modules.items() if _is_aliased(name) and not _is_own(name, module)]
    if foreign and not force:
        where = getattr(sys.modules.get(ALIAS), "__file__", None) or "another place"
        raise ConfigurationError(
            f"{ALIAS} is imported already, from {where}: call {REAL}.install() before anything imports {ALIAS}, or"
            " install(force=True) to replace it for the imports that come"
        )
    for name in foreign:
        del sys.modules[name]
    if not any(map(_is_finder, sys.meta_path)):
        sys.meta_path.insert(0, AliasFinder())
        importlib.invalidate_caches()


def uninstall() -> None:
    """Undo `install`: later imports of ``verifiers`` find what is installed under that name. A second call does nothing."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not _is_finder(finder)]
    for name in [name for name, module in sys.modules.items() if _is_aliased(name) and _is_own(name, module)]:
        del sys.modules[name]


def _is_finder(finder: Any) -> bool:
    return getattr(finder, "alias_of", None) == REAL  # not by class, which another one replaces when this module is reloaded


def _is_aliased(name: str) -> bool:
    return name == ALIAS or name.startswith(f"{ALIAS}.")


def _is_own(name: str, module: ModuleType) -> bool:
    return sys.modules.get(_real(name)) is module


def _real(name: str) -> str:
    return REAL + name.removeprefix(ALIAS)


class AliasFinder(MetaPathFinder):
    """Finds ``verifiers.<x>`` as ``verifiers_compat.<x>``, and a distribution of that name."""

    alias_of = REAL

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of an alias; None for any other name, and where there is no such module.

        Raises:
            ModuleNotFoundError: If the module is documented and not offered, or was elsewhere in an older verifiers. It says so.
        """
        if not _is_aliased(fullname):
            return None
        real = importlib.util.find_spec(_real(fullname))
        if real is None:
            reason = find_module_reason(fullname.partition(".")[2])
            if reason is not None:
                raise ModuleNotFoundError(f"{fullname} is not offered: {reason}", name=fullname)
            return None
        spec = importlib.machinery.ModuleSpec(
            fullname, _AliasLoader(real), origin=real.origin, is_package=real.submodule_search_locations is not None
        )
        spec.submodule_search_locations = real.submodule_search_locations
        spec.has_location = real.has_location
        return spec

    def find_distributions(
        self, context: importlib.metadata.DistributionFinder.Context | None = None
    ) -> Iterable[importlib.metadata.Distribution]:
        """Return the distribution that stands for the alias, where it or any distribution is asked for."""
        wanted = None if context is None else context.name
        return [_AliasDistribution()] if wanted is None or wanted.lower() == ALIAS else []


class _AliasLoader(Loader):
    """Gives the real module, which is imported as itself."""

    def __init__(self, real: importlib.machinery.ModuleSpec) -> None:
        self._real = real

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        module = importlib.import_module(self._real.name)
        self._own_spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._own_spec  # the import system has put the alias's there, with which reload would go astray

    def get_code(self, fullname: str) -> CodeType | None:
        """Return the module's code, for ``python -m verifiers...`` (see `runpy`)."""
        return self._real.loader.get_code(self._real.name)  # type: ignore[union-attr, no-any-return]


class _AliasDistribution(importlib.metadata.Distribution):
    """What ``importlib.metadata`` says of the alias."""

    def read_text(self, filename: str) -> str | None:
        if filename != "METADATA":
            return None
        own = importlib.metadata.version("vfgym")
        return f"Metadata-Version: 2.1\nName: {ALIAS}\nVersion: {API_VERSION}\nSummary: The rollout API, offered by vfgym {own}\n"

    def locate_file(self, path: Any) -> Path:
        return Path(__file__).parent.parent / str(path)
