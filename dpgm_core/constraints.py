"""Public constraints: what no record can be. Stated by labels or by the order of values, resolved for any table."""

from __future__ import annotations

from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from attrs import frozen

from dpgm_core.attribute import Attribute

__all__ = ["Constraint", "Listed", "Mapped", "Ordered"]

Mask: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]


class Constraint(Protocol):
    """What holds of every record. `name` is for messages, `columns` the attributes it is about."""

    @property
    def name(self) -> str:
        """What messages call it."""
        ...

    @property
    def columns(self) -> tuple[str, ...]:
        """The attributes it is about."""
        ...

    def impossible(self, attributes: tuple[Attribute, ...]) -> Mask:
        """Which cells of the table of `columns` no record can be in, over these attributes, one for each column.

        A block of merged codes or a bin is impossible where all that falls into it is.
        """
        ...

    def to_dict(self) -> dict[str, Any]:
        """As it stands under `[constraints.NAME]`."""
        ...


@frozen(kw_only=True)
class Listed:
    """Combinations of labels that are impossible, or, with `possible`, the only ones there are."""

    name: str
    columns: tuple[str, ...]
    combinations: tuple[tuple[str, ...], ...]
    possible: bool = False


@frozen(kw_only=True)
class Mapped:
    """One column is a function of another: fine label -> coarse label, such as county to state."""

    name: str
    columns: tuple[str, str]
    to: tuple[tuple[str, str], ...]


@frozen(kw_only=True)
class Ordered:
    """The value of the first column is never above that of the second; missing values are above nothing."""

    name: str
    columns: tuple[str, str]
    strict: bool = False


#: What `[constraints.NAME]` may hold besides `columns`.
Form: TypeAlias = Literal["impossible", "possible", "map", "order"]
