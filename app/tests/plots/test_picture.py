"""Every picture as SVG: well formed, harmless whatever the labels are, within its frame."""

import xml.etree.ElementTree as ET

import pytest

from app.tests.plots.shown import CASES, DRAWN, SVG, drawn
from dpgm.plots.canvas import width_of
from dpgm_core.errors import printable


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


def test_warnings_are_in_their_colour():
    """A seeded release shows it in every picture, whatever page it is on."""
    for kind in DRAWN:
        root = ET.fromstring(drawn(kind, "released").svg())
        red = [one.text for one in root.iter(f"{SVG}text") if "--dpgm-warning" in (one.get("style") or "")]
        assert "NOT PRIVATE" in " ".join(red), kind


@pytest.mark.parametrize("kind", DRAWN)
def test_a_bare_picture_leaves_title_and_notes_to_its_page(kind):
    """Nobody sees them in it; who does not see it is told all the same."""
    picture = drawn(kind, "released")
    root = ET.fromstring(picture.svg(bare=True))
    seen = " ".join(element.text for element in root.iter(f"{SVG}text"))
    assert picture.title not in seen and "NOT PRIVATE" not in seen
    assert root[0].text == picture.title and "NOT PRIVATE" in root[1].text
