"""Sums of clipped scores."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dpgm_core.arrays import Codes, FloatArray, IntArray
from dpgm_core.privacy.contributions import ClippedScore
from dpgm_core.structure import Structure

__all__ = ["cell_numbers", "clipped_sum"]

# Persons are scored so many cells at a time, about 32 MB of doubles.
_CHUNK = 2**22


def cell_numbers(structure: Structure, columns: Sequence[str], codes: Codes) -> IntArray:
    """(cliques, rows): the cell of the tables' buffer that each row hits, clique by clique, ties included."""
    place = dict(zip(columns, codes, strict=True))
    sizes = structure.domain.sizes
    rows = len(codes[0])
    numbers = []
    for group, cells in zip(structure.groups, structure.slices, strict=True):
        for clique in group:
            number = np.zeros(rows, np.int64)
            for name in clique:
                number *= sizes[name]
                number += place[name]
            number += cells.start
            numbers.append(number)
    return np.array(numbers, np.int64).reshape(len(numbers), rows)


def clipped_sum(cells: IntArray, lengths: IntArray | None, mu: FloatArray, clip: ClippedScore) -> IntArray:
    """Sum over persons of the clipped, truncated score, (all cells,), units of 1/D.

    cells: (cliques, rows) from `cell_numbers`. lengths: rows of each person, in order; None: one each. mu: (all
    cells,), the model's marginals for one record.
    """
    total = np.zeros(len(mu), np.int64)
    rows = cells.shape[1]
    lengths = np.ones(rows, np.int64) if lengths is None else lengths
    ends = np.concatenate([[0], np.cumsum(lengths)])
    step = max(1, _CHUNK // len(mu))
    most = math.floor((clip.norm * clip.grid) ** 2)
    for start in range(0, len(lengths), step):
        own = lengths[start : start + step]
        some = cells[:, ends[start] : ends[start + len(own)]]
        person = np.repeat(np.arange(len(own)), own)
        flat = (some + person * len(mu)).ravel()
        # g = sum over the person's rows of (T(x) - mu)
        score = np.bincount(flat, minlength=len(own) * len(mu)).reshape(len(own), -1) - own[:, None] * mu
        norms = np.sqrt(np.einsum("ij,ij->i", score, score))
        # min(1, norm / |g|), where it shortens a hair less against rounding; truncation is towards zero
        norm = float(clip.norm)
        scale = clip.grid * np.where(norms <= norm, 1.0, norm / np.maximum(norms, norm) * (1 - 1e-12))
        units = np.trunc(score * scale[:, None])
        # exact in doubles, so the bound needs no trust in the lines above; nobody is ever left out by it
        units[~(np.einsum("ij,ij->i", units, units) <= most)] = 0.0
        total += units.sum(axis=0).astype(np.int64)
    return total
