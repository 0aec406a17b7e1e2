"""What comes out of the door: noisy tables with everything a reader must know. Safe to publish.

The face is for those who write selectors and learners of sessions: what votes and descents hand out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpgm_core.faces import face

if TYPE_CHECKING:
    from dpgm_core.releases.verdict import Descent, Verdict

# module -> its public names
_LAZY = {"verdict": ["Descent", "Verdict"]}

__all__ = ["Descent", "Verdict"]

__getattr__, __dir__ = face(__name__, _LAZY)
