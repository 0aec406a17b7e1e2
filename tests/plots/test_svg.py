"""Every picture as SVG: well formed, harmless whatever the labels are, within its frame, in readable colours."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET

import pytest

from dpgm_core import plots
from dpgm_core.plots.canvas import BAR, BOX, BOX_INK, LINE, WARNING, cut, percent, width_of, wrapped
from dpgm_core.plots.palette import contrast, ink, sequential
from dpgm_core.printable import printable
from tests.plots.shown import HOSTILE, hostile, released

DRAWN = {
    "marginal": lambda m: plots.marginal(m, m.domain.names[0]),
    "given": lambda m: plots.marginal(m, m.domain.names[0], {m.domain.names[1]: m.domain[m.domain.names[1]].labels[0]}),
    "pair": lambda m: plots.pair(m, *m.domain.names[:2]),
    "dependence": plots.dependence,
    "graph": plots.graph,
    "junction tree": lambda m: plots.graph(m, junction_tree=True),
}
MODELS = {"released": released, "hostile": hostile}
CASES = [(kind, model) for kind in DRAWN for model in MODELS]
SVG = "{http://www.w3.org/2000/svg}"


def drawn(kind: str, model: str):
    return DRAWN[kind](MODELS[model]())


@pytest.mark.parametrize(("kind", "model"), CASES)
def test_it_is_one_harmless_element(kind, model):
    """Only shapes and texts: nothing runs, loads, links or styles a page; every label is a text."""
    picture = drawn(kind, model)
    root = ET.fromstring(picture.svg())
    assert root.tag == f"{SVG}svg" and root.get("role") == "img" and root.get("viewBox")
    assert [child.tag for child in root[:2]] == [f"{SVG}title", f"{SVG}desc"]
    assert root[0].text == printable(picture.title) and len(root[1].text) > 40
    shapes = {"svg", "title", "desc", "g", "text", "rect", "path", "line"}
    for element in root.iter():
        assert element.tag.removeprefix(SVG) in shapes
        assert not any(key.startswith("on") or key.endswith("href") for key in element.attrib)
        assert "url(" not in (element.get("style") or "")
    assert "max-width:100%" in root.get("style")
    assert picture._repr_html_() == picture.svg()
    assert all(letter.isprintable() for letter in picture.svg())


def texts(element, x=0.0, y=0.0, turned=False, anchor="start"):
    """(text, its anchor's place, size, anchor, whether turned) of all texts, through groups that move them."""
    anchor = element.get("text-anchor", anchor)
    move = element.get("transform", "")
    if move.startswith("translate("):
        across, down = map(float, move[len("translate(") : move.index(")")].split())
        x, y, turned = x + across, y + down, turned or "rotate(-90)" in move
    if element.tag == f"{SVG}text":
        place = x + float(element.get("x", 0)), y + float(element.get("y", 0))
        yield element.text, place, float(element.get("font-size")), anchor, turned
    for child in element:
        yield from texts(child, x, y, turned, anchor)


@pytest.mark.parametrize(("kind", "model"), CASES)
def test_no_text_leaves_the_frame(kind, model):
    """By the widths that texts are taken to have, which are above those of common fonts."""
    root = ET.fromstring(drawn(kind, model).svg())
    width, height = map(float, root.get("viewBox").split()[2:])
    found = list(texts(root))
    assert len(found) > 3
    for text, (x, y), size, anchor, turned in found:
        long = width_of(text, size)
        if turned:
            assert y - long >= 0 and y <= height, text
        else:
            start = x - {"start": 0.0, "middle": long / 2, "end": long}[anchor]
            assert start >= -0.01 and start + long <= width + 0.01 and size <= y <= height, text
    assert min(size for _, _, size, _, _ in found) >= 7


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


def test_whiskers_are_where_the_intervals_are():
    """Their ends lie as far along as the interval's, on the scale of the bars."""
    picture = drawn("marginal", "released")
    root = ET.fromstring(picture.svg())
    bars, whiskers = root.findall(f".//{SVG}rect"), root.findall(f".//{SVG}path")
    for at, (bar, whisker) in enumerate(zip(bars, whiskers, strict=True)):
        scale = float(bar.get("width")) / picture.shares[at]
        low, high = (float(part.split()[0]) for part in whisker.get("d").replace("H", "M").split("M")[1:3])
        assert (low - float(bar.get("x"))) / scale == pytest.approx(picture.low[at], abs=1e-3)
        assert (high - float(bar.get("x"))) / scale == pytest.approx(picture.high[at], abs=1e-3)


def test_warnings_are_in_their_colour():
    """A seeded release shows it in every picture, whatever page it is on."""
    for kind in DRAWN:
        root = ET.fromstring(drawn(kind, "released").svg())
        red = [one.text for one in root.iter(f"{SVG}text") if "--dpgm-warning" in (one.get("style") or "")]
        assert "NOT PRIVATE" in " ".join(red), kind


def test_colours_can_be_read_on_light_and_dark_pages():
    """Bars, lines and warnings on both; texts on boxes and on every colour of the scale."""
    for name, colour in (BAR, LINE, WARNING):
        assert min(contrast(colour, "#ffffff"), contrast(colour, "#14181d")) >= 3, name
    assert contrast(WARNING[1], "#ffffff") >= 4.5
    assert contrast(BOX[1], BOX_INK[1]) >= 7
    scale = [sequential(at / 100) for at in range(101)]
    assert min(contrast(colour, ink(colour)) for colour in scale) >= 4.5
    depth = [contrast(colour, "#ffffff") for colour in scale]
    assert depth == sorted(depth) and depth[-1] / depth[0] > 8  # lightness alone tells the order
    assert sequential(-1.0) == scale[0] and sequential(7.0) == scale[-1]


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("room", [5.0, 40.0, 118.0])
def test_texts_are_cut_to_their_room(text, room):
    """As many letters as fit and an ellipsis, on one line; what fits stays whole."""
    shown = cut(text, 12.0, room)
    assert shown == printable(text) or shown.endswith("…")
    assert width_of(shown, 12.0) <= max(room, 12.0)
    lines = wrapped(text, 12.0, max(room, 40.0))
    assert max(width_of(line, 12.0) for line in lines) <= max(room, 40.0)


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.0, "0 %"), (1.0, "100.0 %"), (0.01, "1.0 %"), (0.0055, "0.55 %"), (2e-5, "0.002 %"), (1e-9, "< 0.0001 %")],
)
def test_percentages_say_something(share, text):
    """One digit after the point, two that count below one percent, and no powers of ten."""
    assert percent(share) == text


def test_an_unknown_cell_is_an_outline():
    """It is neither pale nor dark: it has no colour."""
    from dpgm_core.plots.heat import Cell, Heat

    cells = (Cell(row=1, column=0, value=math.nan, said="nothing"),)
    heat = Heat(
        title="t", standing="s", rows=("a", "b"), columns=("a", "b"), cells=cells, top=0.0, unit="V", paired=True
    )
    (rect,) = [one for one in ET.fromstring(heat.svg()).iter(f"{SVG}rect") if one.get("stroke-dasharray")]
    assert rect.get("fill") == "none"
