"""Parametric bootstrap of a learned model: simulate its release repeatedly and learn from each simulated release.

Post-processing: records are drawn from the model, never read. Source: Efron and Tibshirani (1993), chapter 6.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np

from dpgm_core.arrays import Array
from dpgm_core.blas import one_thread
from dpgm_core.components.options import changed, still_known
from dpgm_core.components.registry import default_registry, make
from dpgm_core.curator.replay import ReplayCurator
from dpgm_core.errors import BudgetError, DpgmError, IncompatiblePlugin, InferenceError, OptionError
from dpgm_core.inference.contract import Inference
from dpgm_core.learning.contract import Learner, Refits, Refitter
from dpgm_core.learning.run import run
from dpgm_core.learning.simulator import Simulator
from dpgm_core.models.intervals import checked_replicates
from dpgm_core.models.model import Model
from dpgm_core.progress import Progress, silent
from dpgm_core.randomness import Randomness, SeededRandomness, SystemRandomness
from dpgm_core.releases.release import NoisyTables
from dpgm_core.tables import Tables

__all__ = ["bootstrap"]

Refit: TypeAlias = Callable[[NoisyTables], Tables]

# Releases refitted together by a learner that can: so many, and of so many cells in all, which take some 30 doubles
# each. Progress is told in between.
_AT_ONCE, _CELLS_AT_ONCE = 40, 2**17


@one_thread
def bootstrap(
    model: Model,
    replicates: int = 40,
    *,
    learner: str | Mapping[str, Any] | Learner | None = None,
    inference: str | Mapping[str, Any] | Inference | None = None,
    randomness: Randomness | None = None,
    progress: Progress | None = None,
) -> Model:
    """Return the model with `replicates` of itself, learned from simulated releases, for error bars.

    A simulated release has records drawn from the model and fresh noise of the released kind; of pooled releases each
    is drawn anew, about the same records. The tuning is fixed. Free in privacy.

    Parameters
    ----------
    learner, inference : name, table or object
        None: those that the model was learned with; only needed when they are not registered.
    randomness : Randomness
        SeededRandomness repeats the draw; None takes the operating system's.

    Raises
    ------
    OptionError
        When the model or its learner cannot be bootstrapped. A refit that fails ends the bootstrap: without the failed
        ones the error bars would be too short.

    Examples
    --------
    >>> from dpgm_core import Budget, Domain, Structure, fit
    >>> structure = Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a", "b")])
    >>> codes = np.array([[0, 0], [1, 1], [1, 1], [0, 1]] * 500)
    >>> done = fit(codes, structure, Budget.pure(1), neighbours="add-remove", randomness=SeededRandomness(1))
    >>> model = bootstrap(done.model, 20, randomness=SeededRandomness(2))
    >>> len(model.replicates), model.standard_errors("a").round(2).tolist()
    (20, [0.01, 0.01])
    """
    refits = _refitted(model, checked_replicates(replicates), learner, inference, randomness, progress or silent)
    return model.with_replicates(refits)


def _refitted(
    model: Model, count: int, learner: object, inference: object, randomness: Randomness | None, progress: Progress
) -> Array:
    """Log-potentials of the refits, (count, cells), float32: enough for error bars, and half of the file."""
    release = model.release
    if release is None:
        raise OptionError("the model carries no release, so its noise is unknown and cannot be drawn again")
    name = str(model.provenance.get("learner", {}).get("name", ""))
    learned = len(model.learned)
    if learned > 1 and not model.pooled:
        raise OptionError(
            f"learner {name} cannot be bootstrapped: it learned from {learned} releases, one asked for "
            "after another was seen, and a simulated release cannot answer what it would have asked; learn with one of "
            "a single release"
        )
    if release.round is not None:
        raise OptionError(
            f"learner {name} cannot be bootstrapped: it trains on many noisy rounds that a simulated release does not "
            "hold; learn with another one"
        )
    if any(one.contributions is not None for one in model.releases):
        raise OptionError(
            "a release with normalised contributions cannot be simulated: it does not say how many rows a person has"
        )
    made: Learner = _component("learner", learner, model.provenance, model.provenance.get("tuning", {}))
    used: Inference = _component("inference", inference, model.provenance, {})
    source = _stream(randomness)
    simulator = Simulator(release, model.engine, model.potentials)
    rows = np.empty((count, model.structure.cells), dtype=np.float32)
    number = at_once = 0
    try:
        refit = _refit(made, used, model, source)
        at_once = max(1, min(_AT_ONCE, _CELLS_AT_ONCE // model.structure.cells)) if isinstance(refit, Refits) else 1
        for number in range(0, count, at_once):
            progress("bootstrap", number, count)
            drawn = [simulator.draw(source) for _ in range(min(at_once, count - number))]
            refits = refit.many(drawn) if isinstance(refit, Refits) else [refit(drawn[0])]
            if len(refits) != len(drawn):
                raise IncompatiblePlugin(f"{len(drawn)} releases refitted by {type(made).__name__} gave {len(refits)}")
            rows[number : number + len(drawn)] = [_potentials(one, model, made) for one in refits]
    except BudgetError as error:  # the learner wants of the curator what one simulated release cannot give
        raise OptionError(f"learner {name or type(made).__name__} cannot be bootstrapped: {error}") from error
    except DpgmError as error:
        last = min(count, number + max(1, at_once))
        which = f"refit {last}" if last == number + 1 else f"refits {number + 1} to {last}"
        error.add_note(f"this happened in {which} of {count} on simulated releases")
        raise
    progress("bootstrap", count, count)
    return rows


def _component(kind: str, component: object, provenance: Mapping[str, Any], tuning: Mapping[str, Any]) -> Any:
    """Return the learner or inference that a model was learned with, or the caller's, with its tuning."""
    record = provenance.get(kind, {})
    if component is not None:
        made = make(kind, component)
        return changed(made, tuning, what=f"{kind} {type(made).__name__}") if tuning else made
    if "name" not in record:
        what = f"{kind} {record['class']}, which is not registered" if "class" in record else f"an unknown {kind}"
        raise OptionError(f"the model was learned with {what}; give it as bootstrap(model, {kind}=...)")
    options = still_known(default_registry().load(kind, record["name"]), record.get("options", {}))
    return make(kind, {**options, **tuning, "name": record["name"]})


def _stream(randomness: Randomness | None) -> Randomness:
    """Return a random stream of its own: the release's seed must not give the release's noise again."""
    if randomness is None:
        return SystemRandomness()
    if randomness.private:
        return randomness
    return SeededRandomness(int(randomness.generator().integers(2**63)))


def _refit(learner: Learner, inference: Inference, model: Model, randomness: Randomness) -> Refit:
    if isinstance(learner, Refitter) and "tuning" in model.provenance:  # a file that lacks it is older than tuning
        return learner.refitter(model, inference)

    def through_learn(release: NoisyTables) -> Tables:
        curator = ReplayCurator(release, model.structure)
        return run(learner, curator, inference, randomness=randomness).model.potentials

    return through_learn


def _potentials(refit: object, model: Model, learner: Learner) -> Array:
    if not isinstance(refit, Tables) or refit.structure != model.structure:
        raise IncompatiblePlugin(f"a refit by {type(learner).__name__} is not over the model's structure")
    if np.isnan(refit.values).any() or (refit.values == np.inf).any():
        raise InferenceError(f"a refit by {type(learner).__name__} has log-potentials that are NaN or +inf")
    return refit.values
