"""What is known of a model besides its numbers: its structure, the releases behind it, and what these measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from dpgm_core._version import __version__
from dpgm_core.domain import Domain
from dpgm_core.files import plain
from dpgm_core.models.checked import pairs_left
from dpgm_core.models.levels import Levels, levels_of
from dpgm_core.models.questions import coded, named
from dpgm_core.models.standing import BY_STRUCTURE, MEASURED, Basis, Unmeasured
from dpgm_core.privacy.budget import Budget
from dpgm_core.releases.alike import check_alike
from dpgm_core.releases.pool import check_domain, pool
from dpgm_core.releases.release import NoisyTables, guarantee_of, total_cost
from dpgm_core.releases.stamps import UNKNOWN, stamp_of
from dpgm_core.structure import Clique, Structure

__all__ = ["SCHEMA", "Facts"]

#: Of the file format. 1 held one release at most; it is read for ever.
SCHEMA = 2
#: Components whose name and settings a stamp tells.
_MAKERS = ("selector", "learner", "inference")


class Facts:
    """Structure, releases, their cost and guarantee together, and the provenance; the base of `Model`, which explains.

    Raises BudgetError for releases whose costs or guarantees do not add up, and StructureError for those that measured
    other attributes than the structure's.

    >>> facts = Facts(Structure(Domain.from_sizes({"a": 2}), [("a",)]), [])
    >>> facts.private, facts.unmeasured
    (None, ())
    """

    def __init__(
        self,
        structure: Structure,
        releases: Sequence[NoisyTables],
        provenance: Mapping[str, Any] | None = None,
        conversion_delta: Fraction | None = None,
    ) -> None:
        self.structure = structure
        self.releases = tuple(behind for one in releases for behind in one.published)
        check_alike(self.releases)
        check_domain(structure.domain, self.releases)
        self._levels: Levels | None = levels_of(structure.domain, self.releases)
        self.conversion_delta = conversion_delta
        self.cost: Budget | None = (
            total_cost(self.releases, conversion_delta=conversion_delta) if self.releases else None
        )
        self.provenance: Mapping[str, Any] = dict(provenance or {})
        # What a holdout measured was not learned from: the answer about it is by structure all the same.
        self._basis = Basis(
            self.domain,
            [one.structure for one in self.learned],
            [one.structure for one in self.learned if one.contrasts],
        )
        self._release: NoisyTables | None = None
        self._holdout: NoisyTables | None = None
        self._unmeasured_as: Unmeasured = "omit"

    @property
    def domain(self) -> Domain:
        """The attributes that it answers about; where a session merged codes, as they were before."""
        return self.structure.domain if self._levels is None else self._levels.fine

    @property
    def learned(self) -> tuple[NoisyTables, ...]:
        """The releases that it was learned from: all but that of a holdout."""
        return tuple(one for one in self.releases if not one.holdout)

    @property
    def release(self) -> NoisyTables | None:
        """The release it was learned from: the only one, all in one where they were pooled, else the last.

        Raises BudgetError where releases that do not pool are said to have been.
        """
        if self._release is None and self.learned:
            self._release = pool(self.learned, self.conversion_delta) if self.pooled else self.learned[-1]
        return self._release

    @property
    def pooled(self) -> bool:
        """Whether its learner asked for one release, and was given several as one."""
        return len(self.learned) > 1 and bool(self.provenance.get("pooled", False))

    @property
    def seen(self) -> tuple[NoisyTables, ...]:
        """What its learner saw: each release that it was learned from, or all in one where they were pooled."""
        return (self.release,) if self.pooled and self.release is not None else self.learned

    @property
    def holdout(self) -> NoisyTables | None:
        """The release of its holdout, all in one where there are several; None without one.

        Raises BudgetError where they do not pool.
        """
        steps = (step for one in self.releases for step in (one, *one.steps))
        holdouts = [step for step in steps if isinstance(step, NoisyTables) and step.holdout]
        if self._holdout is None and holdouts:
            self._holdout = pool(holdouts, self.conversion_delta)
        return self._holdout

    @property
    def checked(self) -> bool:
        """Whether a holdout among the releases tells of pairs that it answers by structure."""
        return bool(self._missed)

    @property
    def _missed(self) -> list[Clique]:
        return [] if self.holdout is None else pairs_left(self.holdout.structure, self.structure, self.unmeasured)

    @property
    def private(self) -> bool | None:
        """Whether all releases behind it were drawn without a seed; None for a model without a release."""
        return all(one.private for one in self.releases) if self.releases else None

    @property
    def converged(self) -> bool:
        """Whether the learner said that it had converged."""
        return bool(self.provenance.get("converged", True))

    def made_by(self, kind: str) -> str:
        """The name of the component that made it, such as its "learner"; its class where that has none.

        >>> Facts(Structure(Domain.from_sizes({"a": 2}), [("a",)]), []).made_by("learner")
        'no learner'
        """
        record = self.provenance.get(kind)
        told = record if isinstance(record, Mapping) else {}
        return str(told.get("name") or told.get("class") or f"no {kind}")

    @property
    def unmeasured(self) -> tuple[str, ...]:
        """The attributes that no release behind it measured; none of a model without a release, which is as it is."""
        return self._basis.unmeasured

    def standing(self, attributes: Sequence[str] | str, given: Mapping[str, object] | None = None) -> str:
        """What p(attributes | given) rests on, those given counted among the attributes.

        "measured": one released table holds them all. "by structure": each was measured, but together they need the
        independences of the structure, what ties its tables, or what splits merged codes. "not measured": some
        attribute is in no table. "by definition": the model carries no release. Raises StructureError.

        >>> structure = Structure(Domain.from_sizes({"a": 2, "b": 2}), [("a", "b")])
        >>> Facts(structure, []).standing("a", given={"b": 0})
        'by definition'
        """
        names, fixed = named(self.domain, attributes, given or {}), coded(self.domain, given or {})
        found = self._basis.standing((*names, *fixed))
        if found == MEASURED and self._levels is not None and self._levels.unsure(names, fixed):
            return BY_STRUCTURE
        return found

    def guarantee(self) -> str:
        """The guarantee of all releases behind it together: learning and querying add nothing to it."""
        if self.cost is None:
            return UNKNOWN
        return guarantee_of(self.releases, self.cost)

    def stamp(self) -> dict[str, Any]:
        """What goes with whatever is computed from the model, as plain values: guarantee, conditions, cost, maker.

        private, unsafe and conditions say what the guarantee says in words. provenance: selector, learner and inference
        with their settings, and nothing that was learned. unmeasured: of these attributes nothing is known;
        unmeasured_as: whether they are left out ("omit") or "uniform".

        >>> structure = Structure(Domain.from_sizes({"a": 2}), [("a",)])
        >>> sorted(Facts(structure, []).stamp())
        ['conditions', 'cost', 'dpgm', 'guarantee', 'private', 'provenance', 'unmeasured', 'unmeasured_as', 'unsafe']
        """
        makers = {kind: self.provenance[kind] for kind in _MAKERS if kind in self.provenance}
        return {
            "dpgm": __version__,
            **stamp_of(self.releases, self.guarantee()),
            "cost": None if self.cost is None else self.cost.to_dict(),
            "provenance": plain(makers),
            "unmeasured": list(self.unmeasured),
            "unmeasured_as": self._unmeasured_as,
        }

    @property
    def left_out(self) -> tuple[str, ...]:
        """The attributes it gives no answers about: all that are `unmeasured`, or none after `using(...)`."""
        return self.unmeasured if self._unmeasured_as == "omit" else ()

    def to_document(self) -> dict[str, Any]:
        """All of it as JSON values, as a model file has them."""
        return {
            "format": "dpgm-model",
            "schema": SCHEMA,
            "dpgm": __version__,
            "private": self.private,
            "cost": None if self.cost is None else self.cost.to_dict(),
            "conversion_delta": None if self.conversion_delta is None else str(self.conversion_delta),
            "releases": len(self.releases),
            "guarantee": self.guarantee(),
            "converged": self.converged,
            "provenance": plain(self.provenance),
            "unmeasured": list(self.unmeasured),
            "replicates": 0,
            "structure": self.structure.to_dict(),
            "domain": self.structure.domain.to_dict(),
        }
