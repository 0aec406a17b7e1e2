"""Public constraints: what no record can be. Stated by labels or by the order of values, resolved for any table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpgm_core.faces import face

if TYPE_CHECKING:
    from dpgm_core.constraints.forms import ANY, Constraint, Listed, Mapped
    from dpgm_core.constraints.order import Ordered
    from dpgm_core.constraints.reading import read_constraint, read_constraints
    from dpgm_core.constraints.resolved import Derived

# module -> its public names
_LAZY = {
    "forms": ["ANY", "Constraint", "Listed", "Mapped"],
    "order": ["Ordered"],
    "reading": ["read_constraint", "read_constraints"],
    "resolved": ["Derived"],
}

__all__ = ["ANY", "Constraint", "Derived", "Listed", "Mapped", "Ordered", "read_constraint", "read_constraints"]

__getattr__, __dir__ = face(__name__, _LAZY)
