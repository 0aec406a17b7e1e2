"""Bars, heat maps and networks: words, whiskers, cells, boxes and lines, however they are drawn."""

import itertools
import math
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from app.tests.made import uniform
from app.tests.plots.shown import MODELS, SVG, drawn, released
from dpgm import plots
from dpgm.plots.bars import group_labels
from dpgm.plots.heat import Cell, Heat
from dpgm.plots.network import place_nodes
from dpgm_core import Attribute, Structure
from dpgm_core.errors import printable


@pytest.mark.parametrize("model", MODELS)
def test_each_bar_has_its_whisker_and_its_words(model):
    """What is cut is whole in a title; warnings and standing stand under it."""
    picture = drawn("marginal", model)
    root = ET.fromstring(picture.svg())
    assert len(root.findall(f".//{SVG}path")) == len(picture.labels) == len(picture.shares)
    titles = [one.text for one in root.findall(f".//{SVG}g/{SVG}title")]
    assert titles == [printable(picture.said(at)) for at in range(len(picture.labels))]
    words = " ".join(element.text for element in root.iter(f"{SVG}text"))
    assert all(printable(note).split()[0] in words for note, _ in picture.notes)


def test_whiskers_and_numbers_are_those_of_the_intervals():
    """Whiskers end at the interval's ends on the bars' scale; the specification has the same numbers in order."""
    picture = drawn("marginal", "released")
    root = ET.fromstring(picture.svg())
    bars, whiskers = root.findall(f".//{SVG}rect"), root.findall(f".//{SVG}path")
    for at, (bar, whisker) in enumerate(zip(bars, whiskers, strict=True)):
        scale = float(bar.get("width")) / picture.shares[at]
        low, high = (float(part.split()[0]) for part in whisker.get("d").replace("H", "M").split("M")[1:3])
        assert (low - float(bar.get("x"))) / scale == pytest.approx(picture.low[at], abs=1e-3)
        assert (high - float(bar.get("x"))) / scale == pytest.approx(picture.high[at], abs=1e-3)
    picture = drawn("marginal", "released")
    values = picture.vega()["data"]["values"]
    wanted = zip(picture.labels, picture.shares, picture.low, picture.high, strict=True)
    assert [(one["label"], one["share"], one["low"], one["high"]) for one in values] == list(wanted)


def test_matplotlib_draws_the_bars():
    figure = pytest.importorskip("matplotlib.figure")
    picture = drawn("marginal", "released")
    axes = picture.draw(figure.Figure().subplots())
    assert [patch.get_width() for patch in axes.patches] == pytest.approx(picture.shares)
    assert [tuple(line.get_xdata()) for line in axes.lines] == list(zip(picture.low, picture.high, strict=True))


@pytest.mark.parametrize(("size", "most"), list(itertools.product([2, 3, 7, 40, 300], [2, 3, 12, 40])))
@pytest.mark.parametrize("bins", [True, False])
def test_groups_are_few_and_hold_every_code(size, most, bins):
    """At most so many, each code in one, none empty, in the order of the codes; single codes where they fit."""
    shares = np.random.default_rng(size).dirichlet(np.ones(size + bins))
    binned = Attribute.of_bins("a", range(size + 1), unknown="missing")
    attribute = binned if bins else Attribute.of_size("a", size)
    groups = group_labels(attribute, shares, most)
    count = attribute.size
    assert len(groups.labels) == min(most, count) and groups.whole == (count <= most)
    assert sorted(set(groups.of.tolist())) == list(range(len(groups.labels)))
    assert len(set(groups.labels)) == len(groups.labels)
    if bins:
        assert (np.diff(groups.of) >= 0).all()
    assert groups.summed(shares, 0) == pytest.approx(np.bincount(groups.of, weights=shares))
    square = np.outer(shares, shares)
    assert groups.summed(square, 1).sum(axis=1) == pytest.approx(shares)


def test_unknown_cells_and_measured_pairs_have_an_outline():
    """An unknown cell has no colour; of the others measured pairs have an outline, and no others."""
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
    figure = pytest.importorskip("matplotlib.figure")
    heat = drawn("pair", "released")
    table = heat.draw(figure.Figure().subplots()).images[0].get_array()
    assert [float(table[one.row, one.column]) for one in heat.cells] == pytest.approx([one.value for one in heat.cells])


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
    """A clique of the model that was not released, and an attribute that was not measured, are; nothing else is."""
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
