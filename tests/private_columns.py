"""Columns with something to be found privately, for tests."""

from __future__ import annotations

from fractions import Fraction

from dpgm_core import Attribute


def private_bins(name: str, count: int = 32, *, cells: int = 100, share: Fraction | None = None) -> Attribute:
    """A whole number from 0 to cells - 1 with private bins; missing and unknown values apart."""
    bins = {"private": count} | ({} if share is None else {"share": str(share)})
    return Attribute.from_dict(name, {"type": "integer", "min": 0, "max": cells - 1, "bins": bins})


def private_labels(name: str) -> Attribute:
    """An open column."""
    return Attribute.from_dict(name, {"labels": {"private": True, "keep": 2}})
