"""Releases as they would have been over merged codes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dpgm_core.errors import StructureError
from dpgm_core.releases.release import NoisyTables

__all__ = ["coarsened"]


def coarsened(release: NoisyTables, merges: Mapping[str, Sequence[int]]) -> NoisyTables:
    """The release over the coarser domain."""
    raise StructureError("merging is not there yet")
