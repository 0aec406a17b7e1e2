"""What a notebook shows of a model."""

from __future__ import annotations

from dpgm_core.markup import Html, card, first
from dpgm_core.models.facts import Facts
from dpgm_core.printable import clipped, listed
from dpgm_core.releases.stamps import caveats_of

__all__ = ["model_card"]


def model_card(model: Facts, replicates: int) -> Html:
    """A model's facts and attributes; nothing is inferred, as that may take long. replicates: how many it has."""
    facts = [("learner", clipped(model.made_by("learner"))), ("converged", "yes" if model.converged else "NO")]
    facts += [("cost", "" if model.cost is None else str(model.cost)), ("releases", f"{len(model.releases):,}")]
    facts += [("attributes", f"{len(model.domain):,}")]
    facts += [("cliques", f"{len(model.structure.cliques):,} with {model.structure.cells:,} cells")]
    facts += [("replicates", f"{replicates:,}" if replicates else "none; bootstrap(model) makes error bars")]
    nothing = set(model.unmeasured)
    rows = ((one.name, one.size, listed(one.labels), "no" if one.name in nothing else "yes") for one in model.domain)
    header = ["attribute", "labels", "", "measured"]
    return card("Model", facts, first(header, rows, len(model.domain)), flaws=caveats_of(model.releases))
