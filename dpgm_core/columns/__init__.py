"""Parts of an attribute: matching of raw values, types of values, private bins and labels."""

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
