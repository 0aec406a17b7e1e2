"""Networks: boxes, of which none lies on another, and the lines between them."""

import itertools
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from app.tests.made import uniform
from app.tests.plots.shown import SVG, drawn, released
from dpgm import plots
from dpgm.plots.network import place_nodes
from dpgm_core import Structure


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


def test_lines_and_boxes_that_no_table_holds_are_dashed():
    """A clique of the model that was not released, such as one of another release; the attribute that nobody measured;
    nothing else."""
    model = released()
    wider = Structure(model.domain, [*model.structure.cliques, ("ill", "place")])
    picture = plots.graph(uniform(wider, releases=model.releases))
    dashed = [one.get("stroke-dasharray") for one in ET.fromstring(picture.svg()).iter(f"{SVG}line")]
    said = [one.said for one in picture.lines]
    assert [bool(dash) for dash in dashed] == [one.startswith("ill and place") for one in said]
    assert any(dashed) and picture.standing == "measured: 2, by structure: 1"
    picture = drawn("graph", "released")
    root = ET.fromstring(picture.svg())
    dashed = [one.get("stroke-dasharray") is not None for one in root.iter(f"{SVG}rect")]
    assert dashed == [one.dashed for one in picture.nodes] and sum(dashed) == 1


def edges_of(kind: str, count: int) -> list[tuple[int, int]]:
    rng = np.random.default_rng(count)
    return {
        "nothing": [],
        "star": [(0, at) for at in range(1, count)],
        "chain": [(at - 1, at) for at in range(1, count)],
        "ring": [(at, (at + 1) % count) for at in range(count)],
        "tree": [(int(rng.integers(at)), at) for at in range(1, count)],
        "parts": [(at - 1, at) for at in range(1, count) if at % 4],
        "all": list(itertools.combinations(range(count), 2)),
    }[kind]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", ["nothing", "star", "chain", "ring", "tree", "parts", "all"])
@pytest.mark.parametrize("count", [2, 5, 40])
def test_boxes_lie_apart_inside_and_where_they_were(kind, count):
    """Of any graph and any sizes; twice the same; a page of a few times the boxes' area."""
    boxes = np.random.default_rng(0).uniform((30, 20), (110, 60), size=(count, 2))
    centres, width, height = place_nodes(boxes, edges_of(kind, count))
    apart = np.abs(centres[:, None] - centres[None]) - (boxes[:, None] + boxes[None]) / 2
    assert all(apart[one, two].max() > 5 for one, two in itertools.combinations(range(count), 2))
    assert (centres - boxes / 2).min() >= 0
    assert (centres + boxes / 2 <= (width, height)).all()
    again, *_ = place_nodes(boxes, edges_of(kind, count))
    assert np.array_equal(centres, again)
    assert width * height < 40 * boxes.prod(axis=1).sum() + 40_000


def test_neighbours_are_nearer_than_others():
    """In a chain of twenty those joined are nearest on average, and the ends are far apart; one box alone has room."""
    boxes = np.full((20, 2), (40.0, 20.0))
    centres, *_ = place_nodes(boxes, edges_of("chain", 20))
    distances = np.hypot(*(centres[:, None] - centres[None]).transpose(2, 0, 1))
    joined = np.diagonal(distances, 1)
    assert joined.max() < 0.3 * distances[0, 19] and joined.mean() < 0.35 * distances.mean() * 20 / 19
    centres, width, height = place_nodes(np.array([[40.0, 20.0]]), [])
    assert centres.shape == (1, 2) and width > 40 and height > 20


@pytest.mark.landing
def test_two_hundred_fit_a_page():
    """Letters of 12 pixels stay legible on a page of 1280: the whole is less than 2000 wide."""
    boxes = np.full((200, 2), (60.0, 22.0))
    _, width, height = place_nodes(boxes, edges_of("tree", 200))
    assert width < 2000 and height < 2000
