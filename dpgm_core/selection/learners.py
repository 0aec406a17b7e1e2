"""Which learners go with a session: one release of whatever is chosen is all that they will get."""

from __future__ import annotations

import math
from functools import partial

from dpgm_core.components.registry import default_registry
from dpgm_core.errors import IncompatiblePlugin, OptionError, StructureError, TooLarge
from dpgm_core.inference.contract import Inference
from dpgm_core.learning.ahead import first_asked
from dpgm_core.learning.contract import Fitter, Learner
from dpgm_core.learning.resources import check_resources
from dpgm_core.learning.run import check_contrast_learner
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.terms import Terms
from dpgm_core.selection.contract import Fitting, SelectionPlan
from dpgm_core.structure import Clique, Structure
from dpgm_core.structure.dag import Dag
from dpgm_core.workload import Workload

__all__ = ["check_learner", "fitter_of", "name_of"]


def check_learner(
    learner: Learner, inference: Inference, workload: Workload, plan: SelectionPlan, terms: Terms, budget: Budget
) -> None:
    """Refuse, before anything is charged, a learner that trains on rounds or spends a part of the budget first, as a
    session leaves one release and no records; one that needs a directed graph, where the selector chooses none; and one
    that learns from tables alone, where the selector measures contrasts.

    Nothing declares any of it, so the learner is asked to learn from a `Probe`: over the attributes alone, and with the
    smallest candidate table of each order besides, since what a learner asks for may depend on the structure. plan: the
    selector's. budget: of the session.
    """
    # A directed graph has a node for each attribute, whether the workload wants it or not.
    alone = Structure(workload.domain, [(name,) for name in workload.domain.names])
    check_contrast_learner(learner, plan.contrasts)
    learner.check(alone, inference)  # its options; what is chosen is kept small enough by the selector
    check_resources(learner, alone, inference)
    if isinstance(learner, Fitter):
        fitter_of(learner, inference)
    asked = partial(first_asked, learner, inference, terms=terms, budget=budget)
    _check_one_release(learner, asked(structure=alone))
    tables = _smallest(workload)
    if tables and not plan.directed:
        _check_undirected(learner, inference, alone, tables[0])
    for table in ((), *tables):
        chosen = _with_table(alone, table, directed=plan.directed)
        measured = Structure(alone.domain, [*alone.cliques, *([table] if table else [])])
        for served in (None, measured):  # what it asks of records, and what of the release that the session leaves
            try:
                _check_one_release(learner, asked(structure=chosen, served=served))
            except (StructureError, TooLarge):
                if len(table) <= 2:  # of larger tables the selector may choose none
                    raise


def _smallest(workload: Workload) -> list[Clique]:
    """The candidate with the fewest cells of each order from 2 on, pairs first."""
    sizes, found = workload.domain.sizes, dict[int, tuple[int, Clique]]()
    for clique in workload.candidates:
        cells = math.prod(sizes[name] for name in clique)
        if len(clique) > 1 and cells < found.get(len(clique), (math.inf, ()))[0]:
            found[len(clique)] = cells, clique
    return [found[order][1] for order in sorted(found)]


def _with_table(alone: Structure, table: Clique, *, directed: bool) -> Structure:
    """A structure that a selector might choose: one table, and the attributes outside of it alone."""
    if not table:
        return alone
    if directed:
        return Dag(alone.domain, {table[0]: table[1:]}).structure()
    return Structure(alone.domain, [*(one for one in alone.cliques if one[0] not in table), table])


def _check_one_release(learner: Learner, asked: str | None) -> None:
    """asked: what it asks for first."""
    left = "and a structure that is chosen leaves one release"
    why = {
        "rounds": f"trains on many releases of subsampled records, {left}",
        "session": f"asks more of the records than tables, {left} of tables",
        "part": f"spends a part of the budget first and then the rest, {left}",
        "tables": f"names the tables to be released, {left} of tables that the selector has named",
    }.get(asked or "")
    if why is not None:
        raise OptionError(
            f"learner {name_of(learner)} {why}; take another learner, such as 'eb-map', or name the cliques"
        )


def _check_undirected(learner: Learner, inference: Inference, alone: Structure, pair: Clique) -> None:
    """Ask it about one pair beside the attributes alone."""
    try:
        learner.check(Structure(alone.domain, [*alone.cliques, pair]), inference)
    except (OptionError, StructureError) as error:
        graph = _with_table(alone, pair, directed=True)
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
