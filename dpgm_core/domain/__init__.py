"""Domains: attributes, their labels and bins, public constraints, and metadata.

The names of `__all__` are for authors who make attributes in Python, or bring metadata in a format of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpgm_core._util.lazy import face

if TYPE_CHECKING:
    from dpgm_core.domain.attribute import RawTexts
    from dpgm_core.domain.bins import PrivateBins, PrivateLabels
    from dpgm_core.domain.constraints import Constraint, Listed, Mapped, Ordered
    from dpgm_core.domain.domain_files import read_metadata
    from dpgm_core.domain.labels import Matching
    from dpgm_core.domain.metadata import Metadata
    from dpgm_core.domain.resolved_constraints import Derived, Rule
    from dpgm_core.domain.values import Values

# module -> its public names
_LAZY = {
    "attribute": ["RawTexts"],
    "bins": ["PrivateBins", "PrivateLabels"],
    "constraints": ["Constraint", "Listed", "Mapped", "Ordered"],
    "domain_files": ["read_metadata"],
    "labels": ["Matching"],
    "metadata": ["Metadata"],
    "resolved_constraints": ["Derived", "Rule"],
    "values": ["Values"],
}

__all__ = [
    "Constraint",
    "Derived",
    "Listed",
    "Mapped",
    "Matching",
    "Metadata",
    "Ordered",
    "PrivateBins",
    "PrivateLabels",
    "RawTexts",
    "Rule",
    "Values",
    "read_metadata",
]

__getattr__, __dir__ = face(__name__, _LAZY)
