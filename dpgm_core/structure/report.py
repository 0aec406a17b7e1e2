"""Sizes of a structure, for people."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from dpgm_core.markup import Html, card
from dpgm_core.printable import brief, clipped, thousands
from dpgm_core.structure.graphs import Clique

__all__ = ["StructureReport", "human_bytes"]


@frozen(kw_only=True)
class StructureReport:
    """Sizes of a structure, as `Structure.describe` returns them; exact integers.

    Attributes
    ----------
    attributes, cliques, groups, components : int
        Numbers of attributes, cliques, tables and connected components.
    cells : int
        Cells of all tables, which are the parameters.
    treewidth : int
        Attributes in the largest cluster of the triangulated graph, less one.
    triangulated_cells, peak_cells : int
        Cells of all clusters that exact inference works through, and of the largest.
    duplicates : tuple of cliques
        Cliques that were merged with an equal one.
    nested : tuple of cliques
        Cliques contained in another one.
    """

    attributes: int
    cliques: int
    groups: int
    cells: int
    components: int
    treewidth: int
    triangulated_cells: int
    peak_cells: int
    duplicates: tuple[Clique, ...]
    nested: tuple[Clique, ...]

    @property
    def memory(self) -> int:
        """Bytes of the largest cluster in float64, which bounds any single array of exact inference."""
        return 8 * self.peak_cells

    def __repr__(self) -> str:
        sizes = f"{self.attributes} attributes", f"{self.cliques} cliques", f"{thousands(self.cells)} cells"
        return brief("StructureReport", *sizes, f"treewidth {self.treewidth}")

    def _repr_html_(self) -> Html:
        sizes = ["attributes", "cliques", "groups", "cells"]
        sizes += ["components", "treewidth", "triangulated_cells", "peak_cells"]
        facts = [(what.replace("_", " "), thousands(getattr(self, what))) for what in sizes]
        facts += [("memory", human_bytes(self.memory)), ("merged duplicates", _listed(self.duplicates))]
        return card("StructureReport", [*facts, ("contained in another clique", _listed(self.nested))])

    def __str__(self) -> str:
        cells, triangulated, peak = map(thousands, (self.cells, self.triangulated_cells, self.peak_cells))
        lines = [
            f"{self.attributes} attributes, {self.cliques} cliques in {self.groups} tables, {cells} cells",
            f"{self.components} connected component(s), treewidth {self.treewidth}",
            f"triangulated: {triangulated} cells, largest cluster {peak} cells ({human_bytes(self.memory)})",
        ]
        if self.duplicates:
            lines.append(f"merged duplicates: {_listed(self.duplicates)}")
        if self.nested:
            lines.append(f"contained in another clique: {_listed(self.nested)}")
        return "\n".join(lines)


def human_bytes(count: int) -> str:
    """Bytes for people, in powers of 1024.

    >>> human_bytes(32), human_bytes(3 * 2**20)
    ('32 B', '3.0 MiB')
    """
    if count >= 10**300:  # beyond what a float can be
        return f"{thousands(count)} B"
    amount = float(count)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if amount < 1024 or unit == "TiB":
            return f"{count} B" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    raise AssertionError("unreachable")


def _listed(cliques: Sequence[Clique]) -> str:
    shown = ", ".join("(" + ", ".join(map(clipped, clique)) + ")" for clique in cliques[:5])
    return shown + (f", ... {len(cliques)} in all" if len(cliques) > 5 else "")
