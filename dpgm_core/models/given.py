"""Evidence: attribute values that a query conditions on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from attrs import frozen

from dpgm_core.constraints.order import Ordered
from dpgm_core.domain import Domain
from dpgm_core.errors import DomainError
from dpgm_core.models.questions import encode_evidence
from dpgm_core.models.within import bin_distribution

__all__ = ["Evidence", "read_evidence"]


@frozen(kw_only=True)
class Evidence:
    """The evidence that all records share. codes: attribute -> code. places: of evidence given as values, on the axis.

    >>> read_evidence(Domain.from_dict({"sex": {"labels": ["F", "M"], "unknown": "F"}}), {"sex": "M"}).codes
    {'sex': 1}
    """

    codes: Mapping[str, int]
    places: Mapping[str, float]

    def stamp(self, domain: Domain) -> dict[str, Any]:
        """Return the entry of the evidence in the stamp of records; empty without evidence."""
        return {"given": {name: domain[name].labels[code] for name, code in self.codes.items()}} if self.codes else {}

    def bins(self, domain: Domain) -> dict[str, str]:
        """Return attribute -> label of the bin, for evidence given as values."""
        return {name: domain[name].labels[self.codes[name]] for name in self.places}


def read_evidence(domain: Domain, values: Mapping[str, Any] | None) -> Evidence:
    """Read evidence as a user writes it. Raises StructureError and DomainError, also where orders rule it out.

    >>> from dpgm_core.attribute import Attribute
    >>> ages = Domain([Attribute.of_bins("age", [0, 18, 65], unknown="missing")])
    >>> found = read_evidence(ages, {"age": 37.0})
    >>> found.codes, found.places, found.bins(ages)
    ({'age': 1}, {'age': 37.0}, {'age': '[18, 65]'})
    """
    codes = encode_evidence(domain, values or {})
    places = {}
    for name, value in (values or {}).items():
        one = domain[name]
        place = None if one.edges is None or value in one.labels else one.place(value)
        dist = bin_distribution(one)
        if place is not None and dist is not None and math.isfinite(place) and dist.has(place):
            places[name] = place
    _check_orders(domain, places)
    return Evidence(codes=codes, places=places)


def _check_orders(domain: Domain, places: Mapping[str, float]) -> None:
    """Refuse values that an order, or a chain of orders, forbids though their bins do not, such as two in one bin."""
    orders = [one for one in domain.constraints if isinstance(one, Ordered)]
    for start, place in places.items():
        waiting, seen = [(start, False)], set[tuple[str, bool]]()
        while waiting:
            name, strict = waiting.pop()
            for one in orders:
                step = one.columns[1], strict or one.strict
                if one.columns[0] != name or step in seen:
                    continue
                seen.add(step)
                waiting.append(step)
                other = places.get(step[0])
                if other is not None and (place > other or (step[1] and place == other)):
                    raise DomainError(
                        f"the values given of {start!r} and {step[0]!r} are impossible: constraint {one.name!r} rules "
                        "them out"
                    )
