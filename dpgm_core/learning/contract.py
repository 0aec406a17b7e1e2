"""Protocols of learners and fitters, and their resources."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from attrs import Attribute, field, frozen

from dpgm_core._util.html import Html, card, first
from dpgm_core._util.progress import Progress
from dpgm_core._util.randomness import Randomness
from dpgm_core.components.registry import default_registry
from dpgm_core.curator.contract import Curator
from dpgm_core.errors import IncompatiblePlugin, OptionError, TooLarge, brief, clipped, human_bytes, listed
from dpgm_core.inference.contract import Inference
from dpgm_core.models.model import Model
from dpgm_core.releases.release import NoisyTables
from dpgm_core.structure.structure import Structure
from dpgm_core.structure.tables import Tables

__all__ = [
    "ContrastLearner",
    "Fit",
    "Fitter",
    "Learner",
    "MeasuresOtherTables",
    "PROGRAM",
    "Refits",
    "Refitter",
    "ResourceEstimator",
    "Resources",
    "check_contrast_learner",
    "check_resources",
    "memory_limit",
    "name_of",
    "resource_estimate",
]


# --------------------------------------------------------------------------------------------------
# Protocols of learners and the value they return


@frozen(kw_only=True)
class Fit:
    """Result of a learner.

    Attributes
    ----------
    model : Model
        The learned model.
    trace : sequence of mappings
        One mapping of numbers per logged iteration.
    converged : bool
        Whether the stopping rule was met.
    certificate : mapping
        Proven bounds by name, such as a gradient norm or a duality gap.
    notes : sequence of str
        Sentences for the user, e.g. that the maximum-likelihood estimate does not exist.
    tuning : mapping
        Options of the learner with which it would repeat the choices it made in this fit; empty if it chose nothing.
    releases : tuple of NoisyTables
        The noisy tables that were paid for; the pipeline takes them from the curator.
    """

    model: Model
    trace: Sequence[Mapping[str, float]] = field(default=(), repr=False)
    converged: bool = True
    certificate: Mapping[str, float] = field(factory=dict)
    notes: Sequence[str] = ()
    tuning: Mapping[str, Any] = field(factory=dict, repr=False)
    releases: tuple[NoisyTables, ...] = ()

    @property
    def release(self) -> NoisyTables | None:
        """The release it was learned from: the only one, the pooled one, or else the last."""
        learned = [one for one in self.releases if not one.holdout]
        return (self.model.release or learned[-1]) if learned else None

    def __repr__(self) -> str:
        model, converged = self.model, "converged" if self.converged else "NOT CONVERGED"
        sizes = f"{len(model.domain)} attributes", f"{len(model.structure.cliques)} cliques"
        notes = f"{len(self.notes)} note{'' if len(self.notes) == 1 else 's'}"
        cost = "no release" if model.cost is None else str(model.cost)
        return brief(
            "Fit", clipped(model.made_by("learner")), converged, *sizes, cost, f"private={model.private}", notes
        )

    def _repr_html_(self) -> Html:
        certificate = listed([f"{name} = {value:.4g}" for name, value in self.certificate.items()])
        facts = [("converged", "yes" if self.converged else "NO"), ("iterations told", f"{len(self.trace):,}")]
        facts += [("certificate", certificate if self.certificate else ""), ("releases", f"{len(self.releases):,}")]
        notes = first(["notes"], ([clipped(note, 400)] for note in self.notes), len(self.notes))
        return card("Fit", facts, notes, self.model._repr_html_())


class Learner(Protocol):
    """Component that turns releases into a model; it sees records only through the curator."""

    def check(self, structure: Structure, inference: Inference) -> None:
        """Refuse a model over `structure` that this learner could not learn, before anything is charged.

        A learner that needs an engine over the model compiles it here, `inference.compile(structure)`. Nothing is kept.

        Raises
        ------
        TooLarge
            For what does not fit.
        OptionError
            For options that do not go with the structure.
        """
        ...

    def learn(self, curator: Curator, inference: Inference, *, randomness: Randomness, progress: Progress) -> Fit:
        """Spend the curator's budget and learn from what it returns.

        Parameters
        ----------
        randomness : Randomness
            For post-processing such as random starts; its `generator` only.
        """
        ...


@runtime_checkable
class Refitter(Protocol):
    """Learner that can learn from many similar releases for less than a `learn` each: shared work, a warm start."""

    def refitter(self, model: Model, inference: Inference) -> Callable[[NoisyTables], Tables]:
        """Return a function that learns potentials over the model's structure from a release like the model's.

        All tuning is in this learner's options (`Fit.tuning` among them). A learner without it is called through
        `learn`.

        Parameters
        ----------
        model : Model
            The fit to start from; what does not depend on the release is done once, here.

        Returns
        -------
        callable
            It may be `Refits`.
        """
        ...


@runtime_checkable
class Refits(Protocol):
    """Return value of `refitter` where many releases together take less than one after another."""

    def __call__(self, release: NoisyTables) -> Tables:
        """Return log-potentials learned from one release alone."""
        ...

    def many(self, releases: Sequence[NoisyTables]) -> Sequence[Tables]:
        """Return what calling it with each of the releases returns, in their order."""
        ...


@runtime_checkable
class Fitter(Protocol):
    """Learner that can be called in a loop, on releases and structures that grow; it starts from the last fit."""

    def fitter(self, inference: Inference) -> Callable[[NoisyTables, Structure, Fit | None], Fit]:
        """Return a function from a release, the model's structure and the previous fit, if any, to a converged fit.

        Each table of the release lies inside a clique of the structure. The previous fit may be to other cliques and
        other noise; its domain is the same. A learner without it is called through `learn` instead.
        """
        ...


@runtime_checkable
class MeasuresOtherTables(Protocol):
    """Learner that measures other tables than the structure's, or splits the budget over them itself.

    `dpgm plan` calls it; a learner without it is expected to release the structure's tables, with the run's split.
    """

    def planned_tables(self, structure: Structure) -> tuple[Structure, str | None] | None:
        """Return the tables that its release will measure for a model over `structure`, and the name of its split.

        The split is None for the run's own. Returns None where its options make it ask for other than one release.
        Raises what `check` raises.
        """
        ...


@runtime_checkable
class ContrastLearner(Protocol):
    """Learner that can learn from contrasts: sums of products of binary attributes in place of tables of cells.

    Each group of such a release (`NoisyTables.contrasts`) holds the product of its clique alone, with noise of its own;
    its table is filled up from the products of the smaller cliques. Other learners are refused it by name.
    """

    @property
    def takes_contrasts(self) -> bool:
        """True."""
        ...


def name_of(learner: object) -> str:
    """Return the registered name of a learner, or its class."""
    return default_registry().name_of("learner", learner) or type(learner).__name__


def check_contrast_learner(learner: object, contrasts: bool) -> None:
    """Raise OptionError for contrasts with a learner that cannot learn from them."""
    if contrasts and not (isinstance(learner, ContrastLearner) and learner.takes_contrasts is True):
        raise OptionError(
            f"learner {name_of(learner)} learns from tables of cells, and these are contrasts, sums of products of "
            "binary attributes; take learner 'eb-map', or measure tables (split = 'even'; where selector 'mrf-select' "
            "chooses, its option measure = 'tables')"
        )


# --------------------------------------------------------------------------------------------------
# Memory and time of learning, known before anything is charged

#: Bytes: Python, numpy, scipy and an engine.
PROGRAM = 128 * 2**20
#: Where Linux says how much memory the processes of a container may take.
_MEMORY_LIMIT_FILES = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


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
        >>> from dpgm_core.domain.domain import Domain
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
        raise TooLarge(
            f"learner {name_of(learner)} needs about {human_bytes(estimate.memory)} of memory for {structure}, and "
            f"this machine has {human_bytes(limit)}; take smaller cliques, fewer labels or another learner, such as "
            "'cgm-em'"
        )
    return estimate


def resource_estimate(learner: object, structure: Structure, inference: Inference) -> Resources | None:
    """Return the learner's estimate, or None. Raises IncompatiblePlugin for a value of another type."""
    if not isinstance(learner, ResourceEstimator):
        return None
    estimate: object = learner.estimate_resources(structure, inference)
    if not isinstance(estimate, Resources):
        raise IncompatiblePlugin(
            f"learner {name_of(learner)} estimates its resources as {type(estimate).__name__}, not Resources"
        )
    return estimate


def memory_limit() -> int | None:
    """Return the bytes that this process may take, by the machine, its container and its limits; None if unknown."""
    limits = []
    for path in _MEMORY_LIMIT_FILES:
        try:
            limits.append(int(path.read_text()))
        except (OSError, ValueError):  # "max" is no number
            continue
    if sys.platform != "win32":
        import resource

        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
        limits.append(resource.getrlimit(resource.RLIMIT_AS)[0])
    return min((one for one in limits if one > 0), default=None)
