"""Public constraints: what no record can be. Stated by labels or by the order of values, resolved for any table."""

from dpgm_core.constraints.forms import ANY, Constraint, Listed, Mapped, Mask
from dpgm_core.constraints.order import Ordered
from dpgm_core.constraints.reading import read_constraint, read_constraints
from dpgm_core.constraints.resolved import Derived, Resolved

__all__ = [
    "ANY",
    "Constraint",
    "Derived",
    "Listed",
    "Mapped",
    "Mask",
    "Ordered",
    "Resolved",
    "read_constraint",
    "read_constraints",
]
