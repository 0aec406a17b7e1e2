"""Every picture as SVG, Vega-Lite specification and file: well formed, harmless whatever the labels are."""

import json
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from app.tests.plots.shown import CASES, DRAWN, HOSTILE, SVG, drawn, written
from dpgm import plots
from dpgm.plots.canvas import BAR, BOX, BOX_INK, LINE, WARNING, cut, percent, width_of, wrap_text
from dpgm.plots.heat import contrast, ink, sequential
from dpgm_core import Domain, Structure
from dpgm_core.errors import ModelFileError, OptionError, printable


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


@pytest.mark.parametrize(("kind", "model"), CASES)
def test_a_specification_is_plain_json_with_what_it_names(kind, model):
    """Marks, encodings and values; each field that an encoding names is in the values; labels are printable."""
    spec = drawn(kind, model).vega()
    values = json.loads(json.dumps(spec, allow_nan=False))["data"]["values"]
    assert spec["$schema"].startswith("https://vega.github.io/schema/vega-lite/") and values
    views = spec.get("layer", [spec])
    assert all("mark" in view for view in views)
    encodings = [spec.get("encoding", {}), *(view.get("encoding", {}) for view in views)]
    fields = {channel["field"] for encoding in encodings for channel in encoding.values()}
    assert fields and fields <= {key for value in values for key in value}
    assert all(str(part).isprintable() for value in values for part in value.values())
    assert spec["title"]["text"].isprintable() and spec["title"]["subtitle"]


def test_files_are_written_by_their_names(tmp_path):
    """SVG and JSON need nothing; a picture gives way to a new one, another file does not."""
    one, two = drawn("marginal", "released"), drawn("graph", "released")
    for picture in (one, two):
        for name in ("p.svg", "P.SVG", "p.json"):
            picture.save(tmp_path / name)
        assert (tmp_path / "p.svg").read_text(encoding="utf-8") == f"{picture.svg()}\n"
        assert json.loads((tmp_path / "p.json").read_text(encoding="utf-8")) == picture.vega()
    (tmp_path / "mine.svg").write_text("notes")
    with pytest.raises(ModelFileError, match="only a picture is"):
        one.save(tmp_path / "mine.svg")


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch, tmp_path):
    """And what works without."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for draw in (lambda one: one.draw(), lambda one: one.save(tmp_path / "p.png")):
        with pytest.raises(OptionError, match=r"pip install 'dpgm\[plots\]'.*svg\(\)"):
            draw(drawn("marginal", "released"))
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def figure():
    return pytest.importorskip("matplotlib.figure")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", DRAWN)
@pytest.mark.parametrize("model", ["released", "hostile"])
@pytest.mark.filterwarnings("ignore:Glyph")
@pytest.mark.filterwarnings("ignore:Matplotlib currently does not support")
def test_matplotlib_draws_on_the_axes_it_is_given(figure, kind, model):
    """The title above, the notes below with warnings in red, and no label is read as a formula."""
    picture = drawn(kind, model)
    axes = figure.Figure().subplots()
    assert picture.draw(axes) is axes
    axes.figure.canvas.draw()
    assert axes.get_title(loc="left")[:5] == picture.title[:5] or model == "hostile"
    assert picture.notes[0][0][:8] in axes.get_xlabel()
    red = any(warns for _, warns in picture.notes)
    assert (axes.xaxis.label.get_color() == "#d03c3c") == red
    labels = [*axes.get_yticklabels(), *axes.get_xticklabels()]
    assert not any(text.get_parse_math() for text in labels if "$" in text.get_text())


@pytest.mark.landing
def test_other_kinds_of_files_are_matplotlibs(figure, tmp_path):
    """PNG and PDF, again and again; a kind that nobody writes is refused with those that somebody does."""
    picture = plots.marginal(written(Structure(Domain.from_sizes({"a": 2}), [("a",)])), "a")
    for _ in range(2):
        for name, start in (("p.png", b"\x89PNG"), ("p.pdf", b"%PDF")):
            picture.save(tmp_path / name)
            assert (tmp_path / name).read_bytes().startswith(start)
    for name in ("p.xlsx", "p"):
        with pytest.raises(OptionError, match=r"cannot save a picture as .*\.svg, \.json .*\.png"):
            picture.save(tmp_path / name)


def test_new_axes_are_pyplots(figure):
    """What a notebook shows; they are the caller's to close."""
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    axes = drawn("dependence", "released").draw()
    assert axes.figure.number in pyplot.get_fignums()
    assert np.isfinite(axes.images[0].get_array().compressed()).all()
    pyplot.close(axes.figure)


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("room", [5.0, 40.0, 118.0])
def test_texts_are_cut_to_their_room(text, room):
    """As many letters as fit and an ellipsis, on one line; what fits stays whole."""
    shown = cut(text, 12.0, room)
    assert shown == printable(text) or shown.endswith("…")
    assert width_of(shown, 12.0) <= max(room, 12.0)
    lines = wrap_text(text, 12.0, max(room, 40.0))
    assert max(width_of(line, 12.0) for line in lines) <= max(room, 40.0)


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.0, "0 %"), (1.0, "100.0 %"), (0.01, "1.0 %"), (0.0055, "0.55 %"), (2e-5, "0.002 %"), (1e-9, "< 0.0001 %")],
)
def test_percentages_say_something(share, text):
    """One digit after the point, two that count below one percent, and no powers of ten."""
    assert percent(share) == text


def test_colours_can_be_seen_and_read():
    """Contrast suffices on light and dark pages and on all colours of the scale, whose order lightness alone tells."""
    for name, colour in (BAR, LINE, WARNING):
        assert min(contrast(colour, "#ffffff"), contrast(colour, "#14181d")) >= 3, name
    assert contrast(WARNING[1], "#ffffff") >= 4.5
    assert contrast(BOX[1], BOX_INK[1]) >= 7
    scale = [sequential(at / 100) for at in range(101)]
    assert min(contrast(colour, ink(colour)) for colour in scale) >= 4.5
    depth = [contrast(colour, "#ffffff") for colour in scale]
    assert depth == sorted(depth) and depth[-1] / depth[0] > 8
    assert sequential(-1.0) == scale[0] and sequential(7.0) == scale[-1]
