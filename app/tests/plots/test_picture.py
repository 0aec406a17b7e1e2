"""Every picture as SVG, Vega-Lite specification and file: well formed, harmless whatever the labels are."""

import itertools
import json
import math
import re
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from app.tests.made import uniform
from app.tests.plots.shown import CASES, DRAWN, HOSTILE, MODELS, SVG, drawn, released, written
from dpgm import plots
from dpgm.plots.bars import group_labels
from dpgm.plots.canvas import BAR, BOX, BOX_INK, LINE, WARNING, cut, percent, width_of, wrap_text
from dpgm.plots.heat import Cell, Heat, contrast, ink, sequential
from dpgm.plots.network import place_nodes
from dpgm_core import Attribute, Budget, Domain, Model, Structure, Tables, release
from dpgm_core._util.toml import parse_toml
from dpgm_core.errors import ModelFileError, OptionError, printable
from tests.pages import DOCS, run_here


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


# --- The page on pictures: its code runs, and what it shows is what that code draws, but for the numbers --------------

HEALTH = DOCS / "examples/health"
SHOWN = {"marginal": "visits.svg", "dependence": "dependence.svg", "graph": "graph.svg"}


@pytest.fixture(scope="module")
def drawn_page(tmp_path_factory):
    """The folder where the page ran, with a model of other numbers in the place of the tutorial's."""
    spec = parse_toml((HEALTH / "health.toml").read_text(encoding="utf-8"))
    domain = Domain.from_dict(parse_toml((HEALTH / "domain.toml").read_text(encoding="utf-8")))
    structure = Structure.from_dict(domain, spec["structure"])
    rng = np.random.default_rng(0)
    records = np.stack([rng.integers(one.size, size=200) for one in domain], axis=1)
    noisy = release(records, structure, Budget.pure(1), neighbours="add-remove")
    values = 0.5 * rng.normal(size=structure.cells)
    refits = (values + 0.01 * rng.normal(size=(40, structure.cells))).astype(np.float32)
    folder = tmp_path_factory.mktemp("page")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        model = Model(structure, Tables(structure, values), releases=[noisy], replicates=refits)
        place = Path("docs/examples/health/out/health.dpgm")
        place.parent.mkdir(parents=True)
        model.save(place)
        run_here(DOCS / "plots.md")
    return folder


def drawing(path: Path) -> Counter[tuple[str, str]]:
    """The elements of a picture with their texts, numbers left out, and how many there are of each."""
    root = ET.parse(path).getroot()
    shown = (one for one in root.iter() if not one.tag.endswith("desc"))
    return Counter((one.tag, re.sub(r"[\d.]+(e-\d+)?", "#", one.text or "")) for one in shown)


@pytest.mark.landing
@pytest.mark.parametrize("kind", SHOWN)
def test_the_pictures_of_the_page_are_what_its_code_draws(drawn_page, kind):
    """The committed ones have the numbers of one run of the tutorial."""
    assert drawing(DOCS / f"plots/shown-{kind}.svg") == drawing(drawn_page / SHOWN[kind])


def test_what_the_page_says_of_its_files(drawn_page):
    assert {path.name for path in drawn_page.glob("*.svg")} == {*SHOWN.values(), "pair.svg"}


# --- Bars, heat maps and networks: words, whiskers, cells, boxes and lines, however they are drawn --------------------


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
