"""Notes on the goodness of fit: a model's distance from its own tables, and from those of a holdout."""

from __future__ import annotations

import numpy as np
from attrs import evolve

from dpgm_core.errors import DpgmError
from dpgm_core.inference.contract import Inference
from dpgm_core.inference.junction_tree.engine import JunctionTree
from dpgm_core.learning.contract import Fit
from dpgm_core.models.misfit import joint_score
from dpgm_core.models.model import Model
from dpgm_core.releases.totals import mostly_missing

__all__ = ["goodness_of_fit", "with_goodness_of_fit"]

#: Deviations above which a misfit is noted: at most one of 1,000 fits of a right model (one-sided).
_NOTED_DEVIATIONS = 3.0902


def with_goodness_of_fit(fit: Fit, inference: Inference) -> Fit:
    """Return the fit with its `goodness_of_fit` among its notes, in the model's provenance too.

    inference: what it was learned with; where that is approximate, an exact one may not fit.
    """
    model = fit.model if isinstance(inference, JunctionTree) else fit.model.using(inference)  # which keeps its engine
    sentences = [note for notes in goodness_of_fit(model) for note in notes]
    if not sentences:
        return fit
    all_notes = [*fit.notes, *sentences]
    return evolve(fit, model=fit.model.noted(all_notes), notes=all_notes)


def goodness_of_fit(model: Model) -> tuple[list[str], list[str]]:
    """Return sentences on what is wrong with the fit, and on what the structure misses.

    The first list reports columns that are mostly missing (see `releases.missing`), and a model further from the tables
    it was learned from than their noise explains, which happens to a right model in at most one of 1,000 fits; the
    second is empty without a holdout. Where exact inference does not fit, or the model fails otherwise, both
    are empty: a paid release is worth more than a note.
    """
    try:
        with np.errstate(under="ignore"):
            return [*mostly_missing(model.releases), *_misfit(model)], _missed(model)
    except (DpgmError, FloatingPointError, Warning):  # an owner may have numpy raise
        return [], []


def _misfit(model: Model) -> list[str]:
    scores = model.misfit()
    if not scores or joint_score(list(scores.values())) <= _NOTED_DEVIATIONS:
        return []
    worst = max(scores, key=lambda clique: scores[clique])
    beyond = sum(score > _NOTED_DEVIATIONS for score in scores.values())
    others = "" if beyond < 2 else f", and {beyond - 1} more of {len(scores)} by more than {_NOTED_DEVIATIONS:.1f}"
    return [
        f"table ({', '.join(worst)}) lies {scores[worst]:.1f} standard errors from the model{others}: it does not fit "
        "what it was learned from; try another learner, or see whether the total is right"
    ]


def _missed(model: Model) -> list[str]:
    if not model.checked:
        return []
    error = model.structure_error()
    return [
        f"the structure misses about {float(error.estimate):.3f} TV on pairs it did not measure "
        f"({float(error.low):.3f} to {float(error.high):.3f})"
    ]
