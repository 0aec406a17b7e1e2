"""What a structure says of its size, for people."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from dpgm_core.printable import printable
from dpgm_core.structure.graphs import Clique

__all__ = ["StructureReport", "human_bytes"]


@frozen(kw_only=True)
class StructureReport:
    """What `Structure.describe` says. Sizes are exact integers; memory is bytes of float64.

    cells: parameters, that is cells of all tables. triangulated_cells: summed cells of the clusters an exact
    engine works through. peak_cells: the largest such cluster. duplicates: cliques that were merged. nested:
    cliques contained in another one.
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
        """Bytes of the largest cluster in float64, a bound on any single array of exact inference."""
        return 8 * self.peak_cells

    def __str__(self) -> str:
        lines = [
            f"{self.attributes} attributes, {self.cliques} cliques in {self.groups} tables, {self.cells:,} cells",
            f"{self.components} connected component(s), treewidth {self.treewidth}",
            f"triangulated: {self.triangulated_cells:,} cells, largest cluster {self.peak_cells:,} cells "
            f"({human_bytes(self.memory)})",
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
    amount = float(count)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if amount < 1024 or unit == "TiB":
            return f"{count} B" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    raise AssertionError("unreachable")


def _listed(cliques: Sequence[Clique]) -> str:
    shown = ", ".join("(" + ", ".join(map(printable, clique)) + ")" for clique in cliques[:5])
    return shown + (f", ... {len(cliques)} in all" if len(cliques) > 5 else "")
