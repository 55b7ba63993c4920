"""A Ray cluster as an executor: each worker is an actor. Ray is imported where one is made, and nowhere else."""

from __future__ import annotations

import concurrent.futures
import importlib
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from vfgym.errors import ConfigurationError, MissingExtra

T = TypeVar("T")


class RayExecutor(concurrent.futures.Executor):
    """Carries out each call in an actor of its own, in the cluster that runs, or in one that is started on this machine.

    >>> executor = RayExecutor(num_cpus=2)  # doctest: +SKIP
    >>> vfgym.evaluate("reasoning-gym/leg_counting-v0", "random", executor=executor, workers=8)  # doctest: +SKIP
    """

    def __init__(
        self,
        *,
        num_cpus: float = 1.0,
        resources: Mapping[str, float] | None = None,
        scheduling_strategy: Any = "SPREAD",
        max_restarts: int = 0,
        address: str | None = None,
    ) -> None:
        """Connect to the cluster.

        Args:
            num_cpus: Cores that each actor is given.
            resources: What else each needs of the node that it is on, such as ``{"sandboxes": 1}``.
            scheduling_strategy: On which nodes they are placed: ``"SPREAD"`` over all, ``"DEFAULT"``, or a strategy of Ray's.
            max_restarts: How often Ray itself starts an actor again that died; a run starts workers that died again in any case.
            address: Where the cluster is. None for that of ``RAY_ADDRESS``, else the one that this machine belongs to, else a new one here.

        Raises:
            MissingExtra: If Ray is not installed.
            ConfigurationError: If there is no cluster at that address.
        """
        try:
            ray: Any = importlib.import_module("ray")
        except ImportError as error:
            raise MissingExtra("ray", "playing in a Ray cluster") from error
        self._ray = ray
        self._is_own = not ray.is_initialized()
        if self._is_own:
            try:
                ray.init(address=address, log_to_driver=False, logging_level="ERROR")
            except Exception as error:  # Ray raises plain ones, too
                raise ConfigurationError(f"there is no Ray cluster to play in: {error}") from error
        self._options = {
            "num_cpus": num_cpus,
            "resources": dict(resources or {}),
            "scheduling_strategy": scheduling_strategy,
            "max_restarts": max_restarts,
            "max_task_retries": max_restarts,
        }
        self._actors: dict[concurrent.futures.Future[Any], Any] = {}

    @property
    def num_actors(self) -> int:
        """How many actors the cluster has cores for."""
        cores = self._ray.cluster_resources().get("CPU", 1.0)
        return max(1, int(cores / (self._options["num_cpus"] or 1.0)))

    def submit(self, func: Callable[..., T], /, *args: Any, **kwargs: Any) -> concurrent.futures.Future[T]:
        """Start an actor that calls a function, and ends then."""
        actor = self._ray.remote(_Caller).options(**self._options).remote()
        future: concurrent.futures.Future[T] = actor.call.remote(func, args, kwargs).future()
        self._actors[future] = actor  # an actor lives as long as somebody has its handle
        future.add_done_callback(lambda done: self._actors.pop(done, None))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Kill the actors that are left, and leave the cluster if it was joined, or started, for this."""
        for actor in list(self._actors.values()):
            self._ray.kill(actor)
        if self._is_own:
            self._ray.shutdown()


class _Caller:
    """The actor."""

    def call(self, func: Callable[..., object], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Call a function. What it returns stays here."""
        func(*args, **kwargs)
