"""What a model was learned from: releases, cost and provenance."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from dpgm_core.releases.pooling import pool
from dpgm_core.releases.release import NoisyTables, check_alike, guarantee_of, total_cost
from dpgm_core.releases.session import UNKNOWN
from dpgm_core.releases.steps import Choice, NoisyScores, Verdict

__all__ = ["Learned"]


class Learned:
    """Releases, cost and provenance of a model; the parameters are those of `Model`.

    >>> Learned([], {"learner": {"name": "eb-map"}}, None).made_by("learner")
    'eb-map'
    """

    def __init__(
        self, releases: Sequence[NoisyTables], provenance: Mapping[str, Any] | None, conversion_delta: Fraction | None
    ) -> None:
        self.releases = tuple(behind for one in releases for behind in one.published)
        check_alike(self.releases)
        self.conversion_delta = conversion_delta
        self.cost = total_cost(self.releases, conversion_delta=conversion_delta) if self.releases else None
        self.provenance: Mapping[str, Any] = dict(provenance or {})
        self._release: NoisyTables | None = None
        self._holdout: NoisyTables | None = None

    @property
    def learned(self) -> tuple[NoisyTables, ...]:
        """The releases that the model was learned from: all except those of a holdout."""
        return tuple(one for one in self.releases if not one.holdout)

    @property
    def release(self) -> NoisyTables | None:
        """The release the model was learned from: the only one, all as one where they were pooled, otherwise the last.

        Raises BudgetError where releases that do not pool are said to have been.
        """
        if self._release is None and self.learned:
            self._release = pool(self.learned, self.conversion_delta) if self.pooled else self.learned[-1]
        return self._release

    @property
    def pooled(self) -> bool:
        """Whether the learner takes one release and got several as one."""
        return len(self.learned) > 1 and bool(self.provenance.get("pooled", False))

    @property
    def seen(self) -> tuple[NoisyTables, ...]:
        """The releases as the learner saw them: each of `learned`, or all as one where they were pooled."""
        return (self.release,) if self.pooled and self.release is not None else self.learned

    @property
    def holdout(self) -> NoisyTables | None:
        """The release of the holdout, all as one where there are several; None without a holdout.

        Raises BudgetError where they do not pool.
        """
        steps = (step for one in self.releases for step in (one, *one.steps))
        holdouts = [step for step in steps if isinstance(step, NoisyTables) and step.holdout]
        if self._holdout is None and holdouts:
            self._holdout = pool(holdouts, self.conversion_delta)
        return self._holdout

    @property
    def is_selected(self) -> bool:
        """Whether scores or votes about the records chose what was measured."""
        return any(isinstance(step, Choice | NoisyScores | Verdict) for one in self.learned for step in one.steps)

    @property
    def rows_note(self) -> str | None:
        """A sentence on intervals where a person may have several rows; None where each has one."""
        rows = max((one.rows_per_person for one in self.releases), default=1)
        if rows == 1:
            return None
        return (
            "Intervals take rows as independent; where the rows of a person are alike, they are up to "
            f"{math.sqrt(rows):.2g} times too narrow (the square root of {rows} rows per person)."
        )

    @property
    def private(self) -> bool | None:
        """Whether all releases were drawn without a seed; None for a model without a release."""
        return all(one.private for one in self.releases) if self.releases else None

    @property
    def converged(self) -> bool:
        """Whether the learner reported convergence."""
        return bool(self.provenance.get("converged", True))

    def made_by(self, kind: str) -> str:
        """Return the name of the component of a kind, such as "learner", or its class where it has no name."""
        record = self.provenance.get(kind)
        facts = record if isinstance(record, Mapping) else {}
        return str(facts.get("name") or facts.get("class") or f"no {kind}")

    def guarantee(self) -> str:
        """Return the guarantee of all releases together as text; learning and querying add nothing to it."""
        if self.cost is None:
            return UNKNOWN
        return guarantee_of(self.releases, self.cost)
