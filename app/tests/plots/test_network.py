"""Networks: boxes and the lines between them."""

import xml.etree.ElementTree as ET

import pytest

from app.tests.plots.shown import SVG, drawn, released
from dpgm import plots
from dpgm_core import Structure, Tables
from dpgm_core.models.model import Model


@pytest.mark.parametrize("kind", ["graph", "junction tree"])
def test_lines_join_the_boxes_they_name(kind):
    """From centre to centre, as wide as they weigh, behind the boxes; each says what it is."""
    picture = drawn(kind, "released")
    root = ET.fromstring(picture.svg())
    drawn_lines = root.findall(f".//{SVG}line")
    assert len(drawn_lines) == len(picture.lines) > 0
    for line, shape in zip(picture.lines, drawn_lines, strict=True):
        first, second = picture.nodes[line.first], picture.nodes[line.second]
        wanted = [first.x, first.y, second.x, second.y, 1 + 7 * line.weight]
        got = [float(shape.get(key)) for key in ("x1", "y1", "x2", "y2", "stroke-width")]
        assert got == pytest.approx(wanted, abs=0.01)
        assert shape.findtext(f"{SVG}title") == line.said
    order = [one.tag.removeprefix(SVG) for one in root.iter() if one.tag in (f"{SVG}line", f"{SVG}rect")]
    assert order == sorted(order)


def test_lines_that_no_table_holds_are_dashed():
    """A clique of the model that was not released, such as one of another release."""
    model = released()
    wider = Structure(model.domain, [*model.structure.cliques, ("ill", "place")])
    picture = plots.graph(Model(wider, Tables.zeros(wider), releases=model.releases))
    dashed = [one.get("stroke-dasharray") for one in ET.fromstring(picture.svg()).iter(f"{SVG}line")]
    said = [one.said for one in picture.lines]
    assert [bool(dash) for dash in dashed] == [one.startswith("ill and place") for one in said]
    assert any(dashed) and picture.standing == "measured: 2, by structure: 1"


def test_dashes_are_dashes():
    """Of the attribute that nobody measured, and of nothing else."""
    picture = drawn("graph", "released")
    root = ET.fromstring(picture.svg())
    dashed = [one.get("stroke-dasharray") is not None for one in root.iter(f"{SVG}rect")]
    assert dashed == [one.dashed for one in picture.nodes] and sum(dashed) == 1
