"""The paper's oracle tuning of DP-SGD: try every setting, keep what looks best by the truth. NOT PRIVATE."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from attrs import evolve, field, frozen

from dpgm_core import (
    Budget,
    Inference,
    InferenceError,
    LearningFailed,
    Mechanism,
    Model,
    NonPrivateError,
    OptionError,
    Randomness,
    Structure,
    Terms,
    fit,
    log_likelihood,
)
from dpgm_psgd.learner import Psgd

__all__ = ["PAPER_GRID", "Trial", "oracle_grid_search"]

#: ALGORITHMS section B: learning rates and epochs tried for the paper's comparison.
PAPER_GRID: Mapping[str, Sequence[Any]] = {"learning_rate": (0.1, 0.3, 1.0, 3.0, 10.0), "epochs": (1, 5, 10, 50)}


@frozen(kw_only=True)
class Trial:
    """One setting's score: mean KL(truth || model), or mean negative log-likelihood of records; nats, lower is better.

    private: always False, because the choice among trials looked at the truth.
    """

    settings: Mapping[str, Any]
    score: float
    learner: Psgd = field(repr=False)
    private: bool = False


def oracle_grid_search(  # noqa: PLR0913 - the arguments of `fit`, and what to try
    data: object,
    structure: Structure,
    budget: Budget,
    *,
    terms: Terms,
    truth: Model | None = None,
    records: object = None,
    grid: Mapping[str, Sequence[Any]] = PAPER_GRID,
    base: Psgd | None = None,
    mechanism: str | Mapping[str, Any] | Mechanism = "gaussian",
    inference: str | Mapping[str, Any] | Inference = "junction-tree",
    repeats: int = 1,
    randomness: Randomness | None = None,
    allow_non_private: bool = False,
) -> list[Trial]:
    """Every combination of options in `grid`, scored against the truth, best first. NOT PRIVATE.

    Each trial spends `budget` afresh and the best is chosen with `truth`, or by the likelihood of `records`, in hand:
    for simulations and for reproducing papers, never for protected records. grid: option of Psgd -> values. base:
    the other options. repeats: runs per setting, averaged. A setting that runs away scores infinity.

    Raises NonPrivateError unless allow_non_private is True, OptionError unless exactly one of truth and records is
    given.
    """
    if allow_non_private is not True:
        raise NonPrivateError(
            "oracle_grid_search chooses settings by looking at the truth and is NOT PRIVATE; if the records are yours "
            "to show, ask for it with allow_non_private=True"
        )
    if (truth is None) == (records is None):
        raise OptionError("oracle_grid_search scores against truth, a model, or against records; give exactly one")
    trials = []
    for values in itertools.product(*grid.values()):
        settings = dict(zip(grid, values, strict=True))
        learner = _with_settings(base or Psgd(), settings)
        scores = []
        for _ in range(repeats):
            try:
                model = fit(
                    data, structure, budget, mechanism, learner, inference, terms=terms, randomness=randomness
                ).model
                scores.append(_score(model, truth, records))
            except LearningFailed as failed:
                if not isinstance(failed.__cause__, InferenceError):
                    raise
                scores.append(math.inf)
            except InferenceError:
                scores.append(math.inf)
        trials.append(Trial(settings=settings, score=float(np.mean(scores)), learner=learner))
    return sorted(trials, key=lambda trial: trial.score)


def _with_settings(base: Psgd, settings: Mapping[str, Any]) -> Psgd:
    try:
        return evolve(base, **settings)
    except TypeError:
        raise OptionError(f"psgd has no such options: {', '.join(settings)}; see dpgm plugins psgd") from None


def _score(model: Model, truth: Model | None, records: object) -> float:
    if truth is not None:
        return truth.kl(model)
    return -log_likelihood(model, records, allow_non_private=True)
