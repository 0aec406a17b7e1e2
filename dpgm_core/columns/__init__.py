"""What one column's values mean: how raw values match labels, which numbers or dates they are, and what is found of
them privately.

The face is for those who make attributes in Python: the types of their parts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpgm_core.faces import face

if TYPE_CHECKING:
    from dpgm_core.columns.declared import PrivateBins, PrivateLabels
    from dpgm_core.columns.matching import Matching
    from dpgm_core.columns.values import Values

# module -> its public names
_LAZY = {
    "declared": ["PrivateBins", "PrivateLabels"],
    "matching": ["Matching"],
    "values": ["Values"],
}

__all__ = ["Matching", "PrivateBins", "PrivateLabels", "Values"]

__getattr__, __dir__ = face(__name__, _LAZY)
