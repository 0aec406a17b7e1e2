"""Public constraints: what no record can be, stated by labels or by the order of values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpgm_core.faces import face

if TYPE_CHECKING:
    from dpgm_core.constraints.chains import Rule
    from dpgm_core.constraints.forms import Constraint, Listed, Mapped
    from dpgm_core.constraints.order import Ordered
    from dpgm_core.constraints.resolved import Derived

# module -> its public names
_LAZY = {"chains": ["Rule"], "forms": ["Constraint", "Listed", "Mapped"], "order": ["Ordered"], "resolved": ["Derived"]}

__all__ = ["Constraint", "Derived", "Listed", "Mapped", "Ordered", "Rule"]

__getattr__, __dir__ = face(__name__, _LAZY)
