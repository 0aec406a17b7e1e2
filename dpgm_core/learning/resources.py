"""Memory and time that learning takes, known before anything is charged, and the machine's memory."""

from __future__ import annotations

import math
import os
import sys
from numbers import Real
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from attrs import Attribute, field, frozen

from dpgm_core.components.registry import default_registry
from dpgm_core.errors import IncompatiblePlugin, TooLarge
from dpgm_core.inference.contract import Inference
from dpgm_core.structure import Structure, human_bytes

__all__ = ["PROGRAM", "ResourceEstimator", "Resources", "check_resources", "resource_estimate", "memory_limit"]

#: Bytes: Python, numpy, scipy and an engine.
PROGRAM = 128 * 2**20
#: Where Linux says how much memory the processes of a container may take.
_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def _amount(_: object, field: Attribute[Any], value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= float(value) < math.inf:
        raise IncompatiblePlugin(
            f"a learner estimates its {field.name} as {value!r:.80}; state a finite number of at least 0"
        )


@frozen(kw_only=True)
class Resources:
    """Estimate of what one fit takes, rather too much than too little.

    Attributes
    ----------
    memory : int
        Bytes of the whole process.
    cpu_seconds : float
        CPU seconds apart from inference.
    calls : int
        Calls of the engine's `infer`.

    Raises
    ------
    IncompatiblePlugin
        For a number that is negative, not finite or a bool: it would pass every comparison with a limit.
    """

    memory: int = field(validator=_amount)
    cpu_seconds: float = field(validator=_amount)
    calls: int = field(validator=_amount)

    @classmethod
    def by_cells(cls, structure: Structure, *, each: int, cpu_seconds: float, calls: int) -> Resources:
        """Estimate by cells: `each` bytes of memory a cell, beyond the program's own, and so many CPU seconds.

        Examples
        --------
        >>> from dpgm_core.domain import Domain
        >>> wide = Structure(Domain.from_sizes({"a": 10_000}), [("a",)])
        >>> Resources.by_cells(wide, each=2000, cpu_seconds=1e-4, calls=100).seconds(0.01)
        2.0
        """
        memory = PROGRAM + each * structure.cells
        return cls(memory=memory, cpu_seconds=cpu_seconds * structure.cells, calls=calls)

    def seconds(self, per_call: float | None) -> float:
        """Return the seconds of a whole fit, with an engine that takes `per_call` a call; None: as if it took none."""
        return self.cpu_seconds + self.calls * (per_call or 0.0)


@runtime_checkable
class ResourceEstimator(Protocol):
    """Learner that estimates what it takes; what the machine lacks is refused before the charge."""

    def estimate_resources(self, structure: Structure, inference: Inference) -> Resources:
        """Return the estimate for a fit over `structure`; allocate nothing large."""
        ...


def check_resources(learner: object, structure: Structure, inference: Inference) -> Resources | None:
    """Return the learner's estimate, or None if it has none.

    Raises TooLarge for more memory than this machine has, and IncompatiblePlugin for a value of another type.
    """
    estimate, limit = resource_estimate(learner, structure, inference), memory_limit()
    if estimate is not None and limit is not None and estimate.memory > limit:
        name = default_registry().name_of("learner", learner) or type(learner).__name__
        raise TooLarge(
            f"learner {name} needs about {human_bytes(estimate.memory)} of memory for {structure}, and this machine "
            f"has {human_bytes(limit)}; take smaller cliques, fewer labels or another learner, such as 'cgm-em'"
        )
    return estimate


def resource_estimate(learner: object, structure: Structure, inference: Inference) -> Resources | None:
    """Return the learner's estimate, or None. Raises IncompatiblePlugin for a value of another type."""
    if not isinstance(learner, ResourceEstimator):
        return None
    estimate: object = learner.estimate_resources(structure, inference)
    if not isinstance(estimate, Resources):
        name = default_registry().name_of("learner", learner) or type(learner).__name__
        raise IncompatiblePlugin(f"learner {name} estimates its resources as {type(estimate).__name__}, not Resources")
    return estimate


def memory_limit() -> int | None:
    """Return the bytes that this process may take, by the machine, its container and its limits; None if unknown."""
    limits = []
    for path in _LIMITS:
        try:
            limits.append(int(path.read_text()))
        except (OSError, ValueError):  # "max" is no number
            continue
    if sys.platform != "win32":
        import resource

        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
        limits.append(resource.getrlimit(resource.RLIMIT_AS)[0])
    return min((one for one in limits if one > 0), default=None)
