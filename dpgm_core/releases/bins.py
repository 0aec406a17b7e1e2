"""Private bins that a session found. Safe to publish; their cost is computed again from temperatures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from attrs import frozen

from dpgm_core.arrays import IntArray
from dpgm_core.attribute import Attribute
from dpgm_core.columns.declared import PrivateBins
from dpgm_core.columns.edges import grid_edges
from dpgm_core.components.options import converter
from dpgm_core.errors import ModelFileError, StructureError
from dpgm_core.noise.bisection import BinsPlan
from dpgm_core.noise.choice import MAX_TABLE_LENGTH, MIN_TABLE_LENGTH, entries
from dpgm_core.privacy.amounts import amount
from dpgm_core.privacy.budget import Budget
from dpgm_core.privacy.ranks import nodes_of
from dpgm_core.privacy.sensitivity import Neighbours

__all__ = ["FoundBins", "read_bins"]


@frozen(kw_only=True)
class FoundBins:
    """The bins of one column, found by bisection of a public grid.

    search: how they were found. choices: of each level the grid's edges that were chosen, from low to high; edge e
    stands before cell e. edges: of the bins, places on the column's axis.
    """

    search: BinsPlan
    choices: tuple[tuple[int, ...], ...]
    edges: tuple[float, ...]

    @classmethod
    def of(cls, search: BinsPlan, choices: tuple[tuple[int, ...], ...], grid: Sequence[float]) -> FoundBins:
        """What was chosen; grid: the edges of all cells. Raises StructureError for what no bisection chooses."""
        return cls(search=search, choices=choices, edges=tuple(grid[place] for place in _places(search.cells, choices)))

    @property
    def name(self) -> str:
        """The column."""
        return self.search.attribute.name

    @property
    def cost(self) -> Budget:
        """What they cost, from their temperatures; see `dpgm_core.privacy.ranks`."""
        return self.search.cost

    @property
    def places(self) -> tuple[int, ...]:
        """The edges of the bins, by their number on the grid, both ends too."""
        return _places(self.search.cells, self.choices)

    @property
    def attribute(self) -> Attribute:
        """The attribute with the bins that were found."""
        return self.search.attribute.binned(self.edges)

    def recoding(self, grid: Attribute) -> IntArray:
        """The code under the found bins of each code under the grid, (codes of the grid,)."""
        attribute, cells = self.attribute, self.search.cells
        bins = np.searchsorted(np.asarray(self.places), np.arange(cells), side="right") - 1
        own = [attribute.labels.index(label) for label in grid.labels[cells:]]
        codes: IntArray = np.concatenate([bins, np.asarray(own, np.int64)]).astype(np.int64)
        return codes

    def to_dict(self) -> dict[str, Any]:
        """JSON values for a session's file."""
        return {
            "column": self.name,
            "declared": self.search.attribute.to_dict(),
            "cells": self.search.cells,
            "temperatures": [str(h) for h in self.search.temperatures],
            "choices": [list(level) for level in self.choices],
        }


def read_bins(plain: Any, neighbours: Neighbours, kind: Literal["pure", "zcdp"]) -> FoundBins:
    """The bins of one column out of a session's file. Raises ModelFileError for what no session finds."""
    keys = {"column", "declared", "cells", "temperatures", "choices"}
    if not isinstance(plain, Mapping) or set(plain) != keys:
        raise ModelFileError(f"private bins of its session must state {', '.join(sorted(keys))}")
    attribute = Attribute.from_dict(converter.structure(plain["column"], str), plain["declared"])
    if not isinstance(attribute.private, PrivateBins):
        raise ModelFileError(
            f"its session found bins of {attribute.name!r}, which was not declared to have private bins"
        )
    search = BinsPlan(
        attribute=attribute,
        temperatures=tuple(_temperature(text) for text in converter.structure(plain["temperatures"], list[str])),
        neighbours=neighbours,
        kind=kind,
    )
    if len(search.temperatures) > attribute.private.count.bit_length() - 1:
        raise ModelFileError(f"the private bins of {attribute.name!r} have more levels than bins; it was edited")
    choices = tuple(map(tuple, converter.structure(plain["choices"], list[list[int]])))
    if search.cells != converter.structure(plain["cells"], int) or len(choices) != len(search.temperatures):
        raise ModelFileError(f"the grid or the levels of the private bins of {attribute.name!r} do not fit its choices")
    grid = grid_edges(attribute.name, attribute.private.low, attribute.private.high, attribute.values)
    try:
        bins = FoundBins.of(search, choices, grid)
    except StructureError as error:
        raise ModelFileError(f"the private bins of {attribute.name!r} are none that a session finds: {error}") from None
    return bins


def _temperature(text: str) -> Fraction:
    temperature = amount("the temperature of a level", text)
    if not MIN_TABLE_LENGTH <= entries(temperature) <= MAX_TABLE_LENGTH:
        raise ModelFileError("a level of its private bins has a temperature that no session has")
    return temperature


def _places(cells: int, choices: Sequence[Sequence[int]]) -> tuple[int, ...]:
    nodes = nodes_of(cells, choices)
    return (*(first for first, _ in nodes), nodes[-1][1])
