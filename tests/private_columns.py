"""Columns with something to be found privately, for tests."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from attrs import evolve

from dpgm_core import Attribute
from dpgm_core.columns.declared import PrivateBins, PrivateLabels
from dpgm_core.columns.values import Values


def private_bins(
    name: str, count: int = 32, *, low: float = 0, high: float = 100, cells: int = 100, share: Fraction | None = None
) -> Attribute:
    """A whole number from low to high with private bins on an even grid; missing and unknown apart."""
    edges = np.linspace(low, high, min(count, cells) + 1).tolist()
    private = PrivateBins(count=count, low=low, high=high, cells=cells, share=share)
    return evolve(Attribute.of_bins(name, edges, unknown="missing"), private=private, values=Values(kind="integer"))


def private_labels(name: str) -> Attribute:
    """An open column."""
    labels = ["label 1", "label 2", "other"]
    return evolve(Attribute.of_labels(name, labels, unknown="missing"), private=PrivateLabels(keep=2))
