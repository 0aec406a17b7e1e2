"""What a learner must offer, and what it returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from attrs import field, frozen

from dpgm_core.curator.contract import Curator
from dpgm_core.inference.contract import Inference
from dpgm_core.markup import Html, card, first
from dpgm_core.models.model import Model
from dpgm_core.printable import brief, clipped, listed
from dpgm_core.progress import Progress
from dpgm_core.randomness import Randomness
from dpgm_core.releases.release import NoisyTables
from dpgm_core.structure import Structure
from dpgm_core.tables import Tables

__all__ = ["ContrastLearner", "Fit", "Fitter", "Foreseen", "Learner", "Refits", "Refitter"]


@frozen(kw_only=True)
class Fit:
    """What a learner returns.

    model: the learned model. trace: one mapping of numbers per logged iteration. converged: whether the stopping rule
    was met. certificate: proven bounds, e.g. a gradient norm or duality gap, by name. notes: sentences for the user,
    e.g. that the maximum-likelihood estimate does not exist. tuning: options of the learner, by name, with which it
    would make again the choices it made in this fit; plain values. Empty: it chose nothing. releases: the noisy tables
    that were paid for; the pipeline fills them in from the curator, whatever a learner shows.
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
        """The release it was learned from: the only one, all in one where they were pooled, else the last."""
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
    """Turns releases into a model; sees records only through the curator."""

    def check(self, structure: Structure, inference: Inference) -> None:
        """Refuse a model over `structure` that this learner could not learn, before anything is charged.

        A learner that needs an engine over the model compiles it here, `inference.compile(structure)`, which raises
        TooLarge for what does not fit; options that do not go with the structure are an OptionError. Nothing is kept.
        """
        ...

    def learn(self, curator: Curator, inference: Inference, *, randomness: Randomness, progress: Progress) -> Fit:
        """Spend what the curator has to spend, and learn from what it hands out.

        randomness: for post-processing such as random starts; its `generator` only.
        """
        ...


@runtime_checkable
class Refitter(Protocol):
    """A learner that can learn from many similar releases for less than a `learn` each: shared work, a warm start."""

    def refitter(self, model: Model, inference: Inference) -> Callable[[NoisyTables], Tables]:
        """From a release like the model's to the potentials learned from it, over the model's structure.

        model: the fit to start from; what does not depend on the release is done once, here. All tuning is what this
        learner's options say (`Fit.tuning` among them). A learner without it is called through `learn` instead. What
        is returned may be `Refits`.
        """
        ...


@runtime_checkable
class Refits(Protocol):
    """What a refitter may return where many releases together take less than one after another."""

    def __call__(self, release: NoisyTables) -> Tables:
        """Log-potentials learned from one release alone."""
        ...

    def many(self, releases: Sequence[NoisyTables]) -> Sequence[Tables]:
        """What calling it with each of the releases gives, in their order."""
        ...


@runtime_checkable
class Fitter(Protocol):
    """A learner that can be called in a loop, on releases and structures that grow; it starts from the last fit."""

    def fitter(self, inference: Inference) -> Callable[[NoisyTables, Structure, Fit | None], Fit]:
        """From a release, the model's structure and the previous fit, if there is one, to a converged fit.

        Each table of the release lies inside a clique of the structure. The previous fit may be to other cliques and
        other noise; its domain is the same. A learner without it is called through `learn` instead.
        """
        ...


@runtime_checkable
class Foreseen(Protocol):
    """A learner that measures other tables than the structure's, or divides a budget over them in its own way.

    `dpgm plan` asks it; a learner without it is expected to release the structure's tables, split as the run says.
    """

    def foreseen(self, structure: Structure) -> tuple[Structure, str | None] | None:
        """What its release will measure for a model over `structure`, and how the budget is split (a name, or None: as
        the run says); None where its options make it ask for other than one release. Raises what `check` raises."""
        ...


@runtime_checkable
class ContrastLearner(Protocol):
    """A learner that can learn from contrasts: sums of products of binary attributes in place of tables of cells.

    Each group of such a release (`NoisyTables.contrasts`) tells the product of its clique alone, with noise of its own;
    its table is filled up from the products of the smaller cliques. Other learners are refused it by name.
    """

    @property
    def takes_contrasts(self) -> bool:
        """True."""
        ...
