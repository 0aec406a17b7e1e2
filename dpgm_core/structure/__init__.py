"""Structures: cliques and graphs over a domain, workloads, and tables over cliques."""

from dpgm_core.structure.structure import Structure

__all__ = ["Structure"]
