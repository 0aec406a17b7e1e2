"""The shape of a model: cliques over a domain, and graph work on their names."""

from dpgm_core.structure.graphs import Clique
from dpgm_core.structure.report import StructureReport, human_bytes
from dpgm_core.structure.shape import Structure

__all__ = ["Clique", "Structure", "StructureReport", "human_bytes"]
