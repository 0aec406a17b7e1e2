"""Pictures as files and specifications, and drawn with matplotlib where it is installed."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from dpgm_core import Domain, Structure, plots
from dpgm_core.errors import ModelFileError, OptionError
from tests.plots.shown import written
from tests.plots.test_svg import CASES, DRAWN, drawn


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


def test_the_specification_has_the_numbers():
    """Those of the picture, in its order."""
    picture = drawn("marginal", "released")
    values = picture.vega()["data"]["values"]
    assert [(one["label"], one["share"], one["low"], one["high"]) for one in values] == list(
        zip(picture.labels, picture.shares, picture.low, picture.high, strict=True)
    )


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
        with pytest.raises(OptionError, match=r"pip install 'dpgm-core\[plots\]'.*svg\(\)"):
            draw(drawn("marginal", "released"))
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def figure():
    return pytest.importorskip("matplotlib.figure")


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
    assert not any(
        text.get_parse_math() for text in [*axes.get_yticklabels(), *axes.get_xticklabels()] if "$" in text.get_text()
    )


def test_matplotlib_draws_the_numbers(figure):
    """Bars as long as the shares, whiskers over the intervals, cells of the table."""
    picture = drawn("marginal", "released")
    axes = picture.draw(figure.Figure().subplots())
    assert [patch.get_width() for patch in axes.patches] == pytest.approx(picture.shares)
    assert [tuple(line.get_xdata()) for line in axes.lines] == list(zip(picture.low, picture.high, strict=True))
    heat = drawn("pair", "released")
    table = heat.draw(figure.Figure().subplots()).images[0].get_array()
    assert [float(table[one.row, one.column]) for one in heat.cells] == pytest.approx([one.value for one in heat.cells])


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
