"""Choosing the structure privately: the contract of selectors, and how one is run against a session.

The face is for those who write selectors: how large a model grows with each clique.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpgm_core.faces import face

if TYPE_CHECKING:
    from dpgm_core.selection.sizes import Limits, ModelSize

# module -> its public names
_LAZY = {
    "sizes": ["Limits", "ModelSize"],
}

__all__ = [
    "Limits",
    "ModelSize",
]

__getattr__, __dir__ = face(__name__, _LAZY)
