"""Heat maps: cells, those of which nothing is known, and what stands in them."""

import math
import xml.etree.ElementTree as ET

import pytest

from app.tests.plots.shown import SVG, drawn
from dpgm.plots.heat import Cell, Heat


def test_unknown_cells_and_measured_pairs_have_an_outline():
    """An unknown cell is neither pale nor dark: it has no colour; of the others measured pairs have an outline, and no
    others."""
    cells = (Cell(row=1, column=0, value=math.nan, said="nothing"),)
    names = {"title": "t", "standing": "s", "rows": ("a", "b"), "columns": ("a", "b")}
    heat = Heat(**names, cells=cells, top=0.0, unit="V", paired=True)
    (rect,) = [one for one in ET.fromstring(heat.svg()).iter(f"{SVG}rect") if one.get("stroke-dasharray")]
    assert rect.get("fill") == "none"
    picture = drawn("dependence", "released")
    cells = ET.fromstring(picture.svg()).findall(f".//{SVG}g[{SVG}title]")
    outlined = {one.findtext(f"{SVG}title") for one in cells if one.find(f"{SVG}rect").get("stroke") == "currentColor"}
    assert outlined == {one.said for one in picture.cells if one.outlined} and len(outlined) == 2


@pytest.mark.parametrize(("columns", "texts"), [(4, 2), (9, 1), (20, 0)])
def test_a_cell_says_what_can_be_read_in_it(columns, texts):
    """Share and interval in large cells, the share in smaller ones, nothing in small ones; the title says all."""
    names = tuple(map(str, range(columns)))
    cell = Cell(row=0, column=0, value=0.5, said="half", shown=("50.0 %", "40.0 - 60.0"))
    heat = Heat(title="t", standing="s", rows=names, columns=names, cells=(cell,), top=1.0, unit="share")
    (group,) = [one for one in ET.fromstring(heat.svg()).iter(f"{SVG}g") if one.findtext(f"{SVG}title") == "half"]
    assert len(group.findall(f"{SVG}text")) == texts


def test_matplotlib_draws_the_numbers():
    """The cells of the table."""
    figure = pytest.importorskip("matplotlib.figure")
    heat = drawn("pair", "released")
    table = heat.draw(figure.Figure().subplots()).images[0].get_array()
    assert [float(table[one.row, one.column]) for one in heat.cells] == pytest.approx([one.value for one in heat.cells])
