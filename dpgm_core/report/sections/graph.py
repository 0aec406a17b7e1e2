"""The graph of the model, and its junction tree on demand."""

from __future__ import annotations

from dpgm_core import plots
from dpgm_core.report.material import Material
from dpgm_core.report.parts import Section, figure, fold, join, paragraph, several

__all__ = ["section"]

#: Size of each picture, bytes.
_MAX_PICTURE_BYTES = 250_000


def section(material: Material) -> Section:
    """The graph."""
    shape = material.model.structure.describe()
    words = (
        f"Attributes are joined where a clique of the model holds both: {several(shape.cliques, 'clique')} over "
        f"{several(shape.attributes, 'attribute')} in {several(shape.components, 'connected part')}. What no line "
        "joins depends on each other only through what lies between. A line alone is no finding: its width shows how "
        f"much it tells. Exact answers work through tables of at most {several(shape.peak_cells, 'cell')} (treewidth "
        f"{shape.treewidth})."
    )
    tree = figure(lambda: plots.graph(material.model, junction_tree=True), most=_MAX_PICTURE_BYTES)
    parts = [
        paragraph(words),
        figure(lambda: plots.graph(material.model), most=_MAX_PICTURE_BYTES),
        fold("The junction tree", tree) if tree else "",
    ]
    return Section("graph", "The graph", join(parts))
