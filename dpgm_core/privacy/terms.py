"""What a guarantee says besides its budget."""

from __future__ import annotations

from typing import Literal, TypeAlias

from dpgm_core.errors import BudgetError

__all__ = ["TotalPolicy", "default_unit", "total_policy"]

TotalPolicy: TypeAlias = Literal["estimated", "public", "declared"]


def default_unit(person: str | None) -> str:
    """What is protected when nobody says it: a person if there is a person key, else a record.

    >>> default_unit(None)
    'one record'
    """
    return "one record" if person is None else "one person"


def total_policy(total: object) -> tuple[TotalPolicy, float | None]:
    """Read `total`: "estimated", "public", or a declared number of records. Raises BudgetError.

    >>> total_policy("estimated"), total_policy(500)
    (('estimated', None), ('declared', 500.0))
    """
    if isinstance(total, str) and total == "estimated":
        return "estimated", None
    if isinstance(total, str) and total == "public":
        return "public", None
    if isinstance(total, (int, float)) and not isinstance(total, bool) and 1 <= total < 2**53:
        return "declared", float(total)
    raise BudgetError(
        f"total must be 'estimated', 'public' or a declared number of records of at least 1, got {total!r}"
    )
