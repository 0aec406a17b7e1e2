"""Voters: what a block of records says of a graph, as core's own named values; no plugin's code sees a block."""

from __future__ import annotations

from attrs import frozen

from dpgm_core.structure import Structure

__all__ = ["EdgeVotes", "ThresholdVotes", "Voter"]


@frozen(kw_only=True)
class EdgeVotes:
    """Each of many random blocks of persons votes for edges by l1-penalised regressions of every attribute.

    pairs: the candidates, of two attributes each. blocks: k0, public. least: an edge is one whose parameter is above
    least / 2. penalty: of the l1 norm, in units of sqrt(log p / records of the block). whole: a block votes for one
    graph instead of for each edge (Lemma 5.1 of Zhang et al. 2020).
    """

    pairs: Structure
    blocks: int
    least: float = 0.4
    penalty: float = 0.2
    whole: bool = False


@frozen(kw_only=True)
class ThresholdVotes:
    """Each record is a block of its own: an edge is a pair of binary attributes with |sum z_i z_j| > tau N.

    pairs: the candidates. tau: between 0 and 1. N is that of the terms, declared or public.
    """

    pairs: Structure
    tau: float


Voter = EdgeVotes | ThresholdVotes
