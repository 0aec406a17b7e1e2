"""Which learners go with a session: one release of whatever is chosen is all that they will get."""

from __future__ import annotations

from dpgm_core.components.registry import default_registry
from dpgm_core.errors import IncompatiblePlugin, OptionError, StructureError
from dpgm_core.inference.contract import Inference
from dpgm_core.learning.ahead import first_asked
from dpgm_core.learning.contract import Fitter, Learner
from dpgm_core.learning.run import check_contrast_learner
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.terms import Terms
from dpgm_core.selection.contract import Fitting, SelectionPlan
from dpgm_core.structure import Structure
from dpgm_core.structure.dag import Dag

__all__ = ["check_learner", "fitter_of", "name_of"]


def check_learner(
    learner: Learner, inference: Inference, structure: Structure, plan: SelectionPlan, terms: Terms, budget: Budget
) -> None:
    """Refuse, before anything is charged, a learner that trains on rounds or spends a part of the budget first, as a
    session leaves one release and no records; one that needs a directed graph, where the selector chooses none; and one
    that learns from tables alone, where the selector measures contrasts.

    Nothing declares any of it, so it is asked. structure: over the session's domain. plan: the selector's. budget: of
    the session.
    """
    # A directed graph has a node for each attribute, whether the workload wants it or not.
    structure = Structure(structure.domain, [(name,) for name in structure.domain.names])
    check_contrast_learner(learner, plan.contrasts)
    learner.check(structure, inference)  # its options; what is chosen is kept small enough by the selector
    if isinstance(learner, Fitter):
        fitter_of(learner, inference)
    _check_one_release(learner, first_asked(learner, inference, structure, terms, budget))
    if not plan.directed:
        _check_undirected(learner, inference, structure)


def _check_one_release(learner: Learner, asked: str | None) -> None:
    """asked: what it asks for first."""
    if asked == "rounds":
        raise OptionError(
            f"learner {name_of(learner)} trains on many releases of subsampled records, and a structure that is "
            "chosen leaves one release; take another learner, such as 'eb-map', or name the cliques"
        )
    if asked == "session":
        raise OptionError(
            f"learner {name_of(learner)} asks more of the records than tables, and a structure that is chosen leaves "
            "one release of tables; take another learner, such as 'eb-map', or name the cliques"
        )
    if asked == "part":
        raise OptionError(
            f"learner {name_of(learner)} spends a part of the budget first and then the rest, and a structure that is "
            "chosen leaves one release; take another learner, such as 'eb-map', or name the structure"
        )


def _check_undirected(learner: Learner, inference: Inference, structure: Structure) -> None:
    """Ask it about one pair beside the attributes alone."""
    sizes = structure.domain.sizes
    names = sorted(structure.domain.names, key=lambda name: sizes[name])
    if len(names) < 2:
        return
    try:
        learner.check(Structure(structure.domain, [*structure.cliques, (names[0], names[1])]), inference)
    except (OptionError, StructureError) as error:
        graph = Dag(structure.domain, {names[0]: [names[1]]}).structure()
        learner.check(graph, inference)  # where it is not for want of direction it refuses this, too
        raise type(error)(
            f"learner {name_of(learner)} does not take what the selector may choose: {error}; the selector chooses "
            "cliques without direction; take selector = 'privbayes', which chooses a directed graph"
        ) from error


def fitter_of(learner: Fitter, inference: Inference) -> Fitting:
    """The learner's own function for loops. Raises IncompatiblePlugin."""
    found: object = learner.fitter(inference)
    if not callable(found):
        raise IncompatiblePlugin(
            f"learner {name_of(learner)} made a {type(found).__name__} of fitter(inference), not a function that fits"
        )
    return found


def name_of(learner: Learner | Fitter) -> str:
    """As it is registered, or its class."""
    return default_registry().name_of("learner", learner) or type(learner).__name__
