"""Pictures as files, and drawn with matplotlib where it is installed."""

import json
import sys

import numpy as np
import pytest

from app.tests.plots.shown import DRAWN, drawn, written
from dpgm import plots
from dpgm_core import Domain, Structure
from dpgm_core.errors import ModelFileError, OptionError


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
    assert not any(
        text.get_parse_math() for text in [*axes.get_yticklabels(), *axes.get_xticklabels()] if "$" in text.get_text()
    )


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
