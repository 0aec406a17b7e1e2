"""Choosing the structure privately: the contract of selectors, and how one is run against a session.

The face is for those who write selectors: how large a model grows with each clique, and the gradients of regressions
that a session can descend by.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpgm_core.faces import face

if TYPE_CHECKING:
    from dpgm_core.privacy.gradients import NodeGradients, Regressions
    from dpgm_core.releases.verdict import Descent
    from dpgm_core.selection.sizes import Limits, ModelSize

# module -> its public names
_LAZY = {
    "dpgm_core.privacy.gradients": ["NodeGradients", "Regressions"],
    "dpgm_core.releases.verdict": ["Descent"],
    "sizes": ["Limits", "ModelSize"],
}

__all__ = [
    "Descent",
    "Limits",
    "ModelSize",
    "NodeGradients",
    "Regressions",
]

__getattr__, __dir__ = face(__name__, _LAZY)
