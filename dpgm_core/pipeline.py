"""The whole way in one place: records -> counts -> noise -> learning -> model. The file to read first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dpgm_core.components.builtins import INFERENCE, LEARNER, MECHANISM
from dpgm_core.components.registry import make
from dpgm_core.curator.live import LiveCurator
from dpgm_core.curator.replay import ReplayCurator
from dpgm_core.errors import OptionError, StructureError
from dpgm_core.inference.contract import Inference
from dpgm_core.learning.contract import Fit, Learner
from dpgm_core.learning.run import run
from dpgm_core.ledger.ledger import Ledger
from dpgm_core.noise.contract import Mechanism
from dpgm_core.planning import Plan, make_plan
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.contributions import Contributions
from dpgm_core.privacy.sensitivity import Neighbours
from dpgm_core.progress import Progress, silent
from dpgm_core.randomness import Randomness
from dpgm_core.releases.release import NoisyTables
from dpgm_core.sources import as_source
from dpgm_core.structure import Structure

__all__ = ["fit", "learn", "plan", "release"]


def fit(
    data: object,
    structure: Structure,
    budget: Budget,
    mechanism: str | Mapping[str, Any] | Mechanism = MECHANISM,
    learner: str | Mapping[str, Any] | Learner = LEARNER,
    inference: str | Mapping[str, Any] | Inference = INFERENCE,
    *,
    neighbours: Neighbours | str,
    total: str | float = "estimated",
    randomness: Randomness | None = None,
    ledger: Ledger | str | Path | None = None,
    save_release: str | Path | None = None,
    progress: Progress = silent,
    unit: str | None = None,
    person: str | None = None,
    rows_per_person: int = 1,
    split: str = "even",
    contributions: Contributions | None = None,
) -> Fit:
    """Learn a private model from records: release noisy tables once, then learn from them.

    data: a path (CSV, Parquet, Arrow IPC), a data frame or any object with `__arrow_c_stream__`, integer code
    arrays, or a Source. structure: cliques to measure and model. budget: spent in full by the learner's release.
    mechanism, learner, inference: names, tables with options, or objects. neighbours: "add-remove" or
    "replace-one", in persons; no default. total: "estimated", "public" or a declared number. randomness: None takes
    the operating system's; SeededRandomness is for simulations and is stamped. ledger: a Ledger or its path, charged
    before any noise is drawn. save_release: file for the release, written before learning. unit: what is protected, in
    words; the ledger's when None. person, rows_per_person: the person key's column, if persons have several rows, and
    how many of them count. split: how the budget is divided over tables, "even" or "optimal" (see `optimal_split`).
    contributions: how much each of a person's rows counts (see `Contributions`); None: each counts 1.

    Returns a Fit with `.model`, `.release`, `.trace`. Everything that can be refused is refused before anything is
    charged. A learner that fails afterwards raises LearningFailed: the paid release is not lost, it is in
    `save_release` and in the error's `releases`.

    >>> import numpy as np
    >>> from dpgm_core import Budget, Domain, SeededRandomness, Structure
    >>> structure = Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a", "b")])
    >>> codes = np.array([[0, 0], [1, 1], [1, 1], [0, 1]] * 50)
    >>> done = fit(codes, structure, Budget.pure(1), neighbours="add-remove", randomness=SeededRandomness(1))
    >>> done.model.marginal("a").round(1).tolist(), done.release.private
    ([0.5, 0.5], False)
    """
    if not isinstance(structure, Structure):
        raise StructureError(f"fit needs a Structure after the data, got {type(structure).__name__}")
    learner_made: Learner = make("learner", learner)
    inference_made: Inference = make("inference", inference)
    mechanism_made: Mechanism = make("mechanism", mechanism)
    learner_made.check(structure, inference_made)  # what it cannot learn is refused before anything is charged
    with _curator(
        data,
        structure,
        budget,
        mechanism_made,
        neighbours=neighbours,
        total=total,
        randomness=randomness,
        ledger=ledger,
        save_release=save_release,
        progress=progress,
        unit=unit,
        person=person,
        rows_per_person=rows_per_person,
        split=split,
        contributions=contributions,
    ) as curator:
        return run(learner_made, curator, inference_made, randomness=randomness, progress=progress)


def release(
    data: object,
    structure: Structure,
    budget: Budget,
    mechanism: str | Mapping[str, Any] | Mechanism = MECHANISM,
    *,
    neighbours: Neighbours | str,
    total: str | float = "estimated",
    randomness: Randomness | None = None,
    ledger: Ledger | str | Path | None = None,
    save_release: str | Path | None = None,
    progress: Progress = silent,
    unit: str | None = None,
    person: str | None = None,
    rows_per_person: int = 1,
    split: str = "even",
    contributions: Contributions | None = None,
) -> NoisyTables:
    """Only the release: noisy tables of the structure's cliques, for `learn` now or later. Arguments as in `fit`."""
    with _curator(
        data,
        structure,
        budget,
        make("mechanism", mechanism),
        neighbours=neighbours,
        total=total,
        randomness=randomness,
        ledger=ledger,
        save_release=save_release,
        progress=progress,
        unit=unit,
        person=person,
        rows_per_person=rows_per_person,
        split=split,
        contributions=contributions,
    ) as curator:
        return curator.release()


def learn(
    release: NoisyTables,
    learner: str | Mapping[str, Any] | Learner = LEARNER,
    inference: str | Mapping[str, Any] | Inference = INFERENCE,
    *,
    structure: Structure | None = None,
    randomness: Randomness | None = None,
    progress: Progress = silent,
) -> Fit:
    """Learn a model from a release; free in privacy, as often as wanted.

    structure: the model's cliques, each measured clique inside one of them; the release's own when None.
    """
    if not isinstance(release, NoisyTables):
        raise OptionError(f"learn takes a release (NoisyTables), got {type(release).__name__}; see load_release(path)")
    curator = ReplayCurator(release, structure)
    made: Learner = make("learner", learner)
    return run(made, curator, make("inference", inference), randomness=randomness, progress=progress)


def plan(
    structure: Structure,
    budget: Budget,
    mechanism: str | Mapping[str, Any] | Mechanism = MECHANISM,
    inference: str | Mapping[str, Any] | Inference = INFERENCE,
    *,
    neighbours: Neighbours | str,
    rows_per_person: int = 1,
    records: float | None = None,
    split: str = "even",
    contributions: Contributions | None = None,
) -> Plan:
    """What a release would cost and how accurate it would be, without touching any data (see `dpgm plan`).

    records: a publicly known or guessed number of records, for relative errors.
    """
    return make_plan(
        structure,
        budget,
        make("mechanism", mechanism),
        make("inference", inference),
        neighbours=neighbours,
        rows_per_person=rows_per_person,
        records=records,
        split=split,
        contributions=contributions,
    )


@contextmanager
def _curator(
    data: object,
    structure: Structure,
    budget: Budget,
    mechanism: Mechanism,
    *,
    neighbours: Neighbours | str,
    total: str | float,
    randomness: Randomness | None,
    ledger: Ledger | str | Path | None,
    save_release: str | Path | None,
    progress: Progress,
    unit: str | None,
    person: str | None,
    rows_per_person: int,
    split: str,
    contributions: Contributions | None,
) -> Iterator[LiveCurator]:
    opened = Ledger.open(ledger) if isinstance(ledger, (str, Path)) else ledger
    try:
        yield LiveCurator(
            as_source(data),
            structure,
            mechanism,
            neighbours=neighbours,
            budget=budget,
            randomness=randomness,
            ledger=opened,
            unit=unit,
            person=person,
            rows_per_person=rows_per_person,
            total=total,
            save_to=None if save_release is None else Path(save_release),
            split=split,
            contributions=contributions,
            progress=progress,
        )
    finally:
        if opened is not None and opened is not ledger:
            opened.close()
