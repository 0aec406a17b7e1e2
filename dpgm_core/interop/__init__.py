"""Other programs' files: Bayesian networks as BIF, models as UAI.

The face is for those who bring a published network, or take a model elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpgm_core.faces import face

if TYPE_CHECKING:
    from dpgm_core.interop.bif import read_bif, read_network
    from dpgm_core.interop.bif_out import write_bif
    from dpgm_core.interop.uai_model import UaiModel, read_uai
    from dpgm_core.interop.uai_out import write_uai

# module -> its public names
_LAZY = {
    "bif": ["read_bif", "read_network"],
    "bif_out": ["write_bif"],
    "uai_model": ["UaiModel", "read_uai"],
    "uai_out": ["write_uai"],
}

__all__ = [
    "UaiModel",
    "read_bif",
    "read_network",
    "read_uai",
    "write_bif",
    "write_uai",
]

__getattr__, __dir__ = face(__name__, _LAZY)
