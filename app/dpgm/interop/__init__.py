"""Other programs' files: Bayesian networks as BIF, models as UAI.

The face is for those who bring a published network, or take a model elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpgm_core._util.lazy import face

if TYPE_CHECKING:
    from dpgm.interop.bif import read_bif, read_network, write_bif
    from dpgm.interop.uai import UaiModel, read_uai, write_uai

# module -> its public names
_LAZY = {"bif": ["read_bif", "read_network", "write_bif"], "uai": ["UaiModel", "read_uai", "write_uai"]}

__all__ = ["UaiModel", "read_bif", "read_network", "read_uai", "write_bif", "write_uai"]

__getattr__, __dir__ = face(__name__, _LAZY)
