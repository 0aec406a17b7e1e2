"""Structures: cliques and graphs over a domain, workloads, and tables over cliques."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpgm_core._util.lazy import face

if TYPE_CHECKING:
    from dpgm_core.structure.structure import Structure

# module -> its public names
_LAZY = {
    "structure": ["Structure"],
}

__all__ = [
    "Structure",
]

__getattr__, __dir__ = face(__name__, _LAZY)
