"""A learner against a curator: what it returns is checked, and stamped with who made it and how."""

from __future__ import annotations

from attrs import evolve

from dpgm_core.components.registry import default_registry
from dpgm_core.curator.live import LiveCurator
from dpgm_core.curator.replay import ReplayCurator
from dpgm_core.errors import IncompatiblePlugin
from dpgm_core.inference.contract import Inference
from dpgm_core.learning.contract import Fit, Learner
from dpgm_core.models.model import Model
from dpgm_core.progress import Progress, silent
from dpgm_core.randomness import Randomness, SystemRandomness
from dpgm_core.releases.levelled import LevelledCurator

__all__ = ["run"]


def run(
    learner: Learner,
    curator: LiveCurator | ReplayCurator,
    inference: Inference,
    *,
    randomness: Randomness | None = None,
    progress: Progress = silent,
) -> Fit:
    """Let the learner learn from what the curator hands out; its fit, checked and stamped.

    randomness: for post-processing, the operating system's when None. The model's provenance gets the names and options
    of learner and inference, the certificate, notes and tuning. Raises IncompatiblePlugin for what is no Fit.
    """
    source = SystemRandomness() if randomness is None else randomness
    try:
        return _stamped(_learned(learner, curator, inference, source, progress), learner, inference)
    except BaseException as error:
        if isinstance(curator, LiveCurator) and curator.released:
            # What was paid for is not lost: dpgm learn FILE, or learn(error.release).
            error.release = curator.released[-1]  # type: ignore[attr-defined]
            error.add_note("the release is paid for and kept; learn from it again with learn(error.release)")
        raise


def _learned(
    learner: Learner,
    curator: LiveCurator | ReplayCurator,
    inference: Inference,
    randomness: Randomness,
    progress: Progress,
) -> Fit:
    seen = curator if curator.contributions is None else LevelledCurator(curator)
    try:
        learned: object = learner.learn(seen, inference, randomness=randomness, progress=progress)
    except SystemExit as left:
        raise IncompatiblePlugin(f"learner {type(learner).__name__} tried to end the program ({left})") from left
    if not isinstance(learned, Fit) or not isinstance(learned.model, Model):
        raise IncompatiblePlugin(f"learner {type(learner).__name__} returned {type(learned).__name__}, not a Fit")
    return evolve(learned, release=seen.original(learned.release)) if isinstance(seen, LevelledCurator) else learned


def _stamped(learned: Fit, learner: Learner, inference: Inference) -> Fit:
    """The same fit with the makers' names and settings, and whether it converged, in the model's provenance."""
    registry = default_registry()
    provenance = {
        **learned.model.provenance,
        "learner": registry.record("learner", learner),
        "inference": registry.record("inference", inference),
        "converged": learned.converged,
        "certificate": {name: float(value) for name, value in learned.certificate.items()},
        "notes": list(learned.notes),
        "tuning": dict(learned.tuning),
    }
    model = Model(learned.model.structure, learned.model.potentials, release=learned.release, provenance=provenance)
    return evolve(learned, model=model)
