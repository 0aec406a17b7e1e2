"""Runs of a learner, and notes on how well its model fits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import evolve

from dpgm_core._util.arrays import FloatArray
from dpgm_core._util.blas import one_thread
from dpgm_core._util.progress import Progress, silent
from dpgm_core._util.randomness import Randomness, randomness_or_system
from dpgm_core.components.registry import default_registry
from dpgm_core.curator.contract import Curator
from dpgm_core.curator.live import holdouts_of
from dpgm_core.errors import BudgetError, DpgmError, IncompatiblePlugin, LearningFailed
from dpgm_core.inference.contract import Inference
from dpgm_core.inference.junction_tree.engine import JunctionTree
from dpgm_core.learning.contract import Fit, Learner, check_contrast_learner, name_of
from dpgm_core.models.misfit import joint_score
from dpgm_core.models.model import Model
from dpgm_core.models.range_margins import likely_shares, margin_estimate, ranged
from dpgm_core.releases.pooling import pool
from dpgm_core.releases.release import NoisyTables
from dpgm_core.releases.saving import saved_text
from dpgm_core.releases.totals import contradictions, mostly_missing
from dpgm_core.releases.views import equalize_totals, implausible
from dpgm_core.structure.tables import Tables

__all__ = ["goodness_of_fit", "rake_margins", "run_learner", "with_goodness_of_fit"]


@one_thread
def run_learner(
    learner: Learner,
    curator: Curator,
    inference: Inference,
    *,
    randomness: Randomness | None = None,
    progress: Progress = silent,
) -> Fit:
    """Let the learner learn from the curator; return its fit, checked and with provenance.

    The model's provenance gets the names and options of learner and inference, the certificate, notes and tuning; the
    model carries all that was paid for, the release of a holdout included. randomness: for post-processing, the
    operating system's when None.

    Raises OptionError, with nothing charged, for contrasts and a learner that is no `ContrastLearner`;
    IncompatiblePlugin for what is no Fit; LearningFailed, with the releases, in place of any error after something was
    paid for. An interrupt stays one; the LearningFailed is its cause.
    """
    check_contrast_learner(learner, curator.contrasts)
    source = randomness_or_system(randomness)
    try:
        # With np.seterr(all='raise') an underflow in the tail of a density would end the run after the charge.
        with np.errstate(under="ignore"):
            learned = _learn(learner, curator, inference, source, progress)
            return _with_provenance(learned, curator, learner, inference, (*curator.released, *holdouts_of(curator)))
    except BaseException as error:
        paid = () if curator.replayed else (*curator.released, *holdouts_of(curator))
        if not paid:
            raise
        failed = _learning_failed(learner, error, paid)
        if isinstance(error, Exception):
            raise failed from error
        raise error from failed


def _learning_failed(learner: Learner, error: BaseException, paid: tuple[NoisyTables, ...]) -> LearningFailed:
    kind = "" if isinstance(error, DpgmError) else f"{type(error).__name__}: "
    what, again = "the release is", "with dpgm learn FILE where it was saved, or with learn(error.releases)"
    if sum(not one.holdout for one in paid) > 1:  # any learner can learn from one
        what = f"{len(paid)} releases are"
        again = (
            "from one of them with dpgm learn FILE where it was saved or with learn(error.releases[0]), or from all "
        )
        again += "with a learner that asks for each"
    outcome = saved_text(paid) or f"paid for and kept: learn again, at no cost, {again}"
    return LearningFailed(f"learner {name_of(learner)} failed, {kind}{error}; {what} {outcome}", releases=paid)


def _learn(learner: Learner, curator: Curator, inference: Inference, randomness: Randomness, progress: Progress) -> Fit:
    try:
        learned: object = learner.learn(curator, inference, randomness=randomness, progress=progress)
    except SystemExit as left:
        raise IncompatiblePlugin(f"learner {type(learner).__name__} tried to end the program ({left})") from left
    if not isinstance(learned, Fit) or not isinstance(learned.model, Model):
        raise IncompatiblePlugin(f"learner {type(learner).__name__} returned {type(learned).__name__}, not a Fit")
    _check_served(learner, curator)
    return learned


def _with_provenance(
    learned: Fit, curator: Curator, learner: Learner, inference: Inference, releases: tuple[NoisyTables, ...]
) -> Fit:
    """Return the fit with the curator's releases, and with the makers' names and settings in the provenance.

    The cost of a model comes from the curator: a learner may show fewer releases than it received.
    """
    registry = default_registry()
    notes = [*learned.notes, *_implausible_note(curator.released), *contradictions(releases)]
    provenance = {
        **learned.model.provenance,
        "learner": registry.record("learner", learner),
        "inference": registry.record("inference", inference),
        "converged": learned.converged,
        "certificate": {name: float(value) for name, value in learned.certificate.items()},
        "notes": notes,
        "tuning": dict(learned.tuning),
    }
    if curator.pooled:
        provenance["pooled"] = True
    model = Model(
        learned.model.structure,
        rake_margins(learned.model, [one for one in releases if not one.holdout], inference),
        releases=releases,
        provenance=provenance,
        conversion_delta=curator.conversion_delta,
        latent=learned.model.latent,
    )
    return evolve(learned, model=model, notes=notes, releases=releases)


def _implausible_note(releases: Sequence[NoisyTables]) -> list[str]:
    """Return a note where learners saw other tables than the release has."""
    views = [equalize_totals(one) for one in releases]
    count, cells = sum(map(implausible, views)), sum(view.structure.cells for view in views)
    if not count:
        return []
    return [
        f"{count} of {cells} noisy cells are further from what {max(view.total for view in views):,.0f} records allow "
        "than their noise reaches, and were taken as at its end; the total is wrong or the release damaged or made up"
    ]


def _check_served(learner: Learner, curator: Curator) -> None:
    """Refuse a fit to nothing, and one to fewer saved releases than the user passed, who believes them to be in it."""
    name = name_of(learner)
    if not curator.released:
        raise IncompatiblePlugin(f"learner {name} asked the curator for nothing, so its model is about no records")
    if curator.replayed and not curator.remaining.is_zero:
        raise BudgetError(
            f"learner {name} asked for {len(curator.released)} of the saved releases and left {curator.remaining} of "
            "them unused; learn from those it asks for"
        )


# --- Ranges ---------------------------------------------------------------------------------------
# A learner takes the noise of a table's cells as independent, and that of cells estimated from windows is not. So the
# margin that all released tables tell together, by their true covariances, is given to the model by a factor of that
# attribute alone; what is conditional on the attribute stays as it was learned. It is post-processing.


#: Passes over the attributes, each of which moves the margins of those it depends on, and the distance that ends them.
_MAX_RAKES, _RAKED = 20, 1e-6


def rake_margins(model: Model, releases: Sequence[NoisyTables], inference: Inference) -> Tables:
    """Return the log-potentials of a model with the margins of the attributes whose ranges were measured.

    releases: what the model was learned from. The potentials themselves where no ranges were measured, where releases
    do not pool or are over other codes, and for an attribute of no clique that has a table of its own.
    """
    potentials, structure = model.potentials, model.structure
    if not any(ranged(one) for one in releases):
        return potentials
    try:
        view = pool(releases, model.conversion_delta)
    except DpgmError:  # such as subsampled rounds: it is paid for, and the model stays as it was learned
        return potentials
    measured = view.structure.domain
    holders: dict[str, int] = {}
    for name in ranged(view):
        holding = [number for number, group in enumerate(structure.groups) if len(group) == 1 and name in group[0]]
        if holding and name in measured and structure.domain[name] == measured[name]:
            holders[name] = holding[0]
    targets: dict[str, FloatArray] = {}
    delta, latent = model.conversion_delta, model.latent
    for _ in range(_MAX_RAKES if len(holders) > 1 else 1):
        moved = 0.0
        for name, holder in holders.items():
            now = Model(structure, potentials, releases=model.releases, conversion_delta=delta, latent=latent)
            now = now.using(inference)
            before = np.maximum(np.asarray(now.coarse.marginal(name), dtype=np.float64), np.finfo(np.float64).tiny)
            if name not in targets:
                targets[name] = likely_shares(*margin_estimate(view, name), view.total, before)
            after = targets[name]
            moved = max(moved, float(np.abs(after - before).sum()))
            shape = [len(after) if one == name else 1 for one in structure.groups[holder][0]]
            parts = potentials.arrays()
            parts[holder] = parts[holder] + np.log(after / before).reshape(shape)
            potentials = potentials.like(np.concatenate([part.reshape(-1) for part in parts]))
        if moved <= _RAKED:
            break
    return potentials


# --- Notes on the goodness of fit -----------------------------------------------------------------


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
