"""Public metadata as attribute tables: what `dpgm init` and `[domain] from = "..."` read. No record is looked at.

The face is for those who bring the description of a table in a format of their own: make a `Metadata` of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpgm_core.faces import face

if TYPE_CHECKING:
    from dpgm_core.metadata.described import Metadata
    from dpgm_core.metadata.reading import read_metadata

# module -> its public names
_LAZY = {"described": ["Metadata"], "reading": ["read_metadata"]}

__all__ = ["Metadata", "read_metadata"]

__getattr__, __dir__ = face(__name__, _LAZY)
