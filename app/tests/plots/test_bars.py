"""Bars: their words, whiskers and numbers, however they are drawn."""

import xml.etree.ElementTree as ET

import pytest

from app.tests.plots.shown import MODELS, SVG, drawn
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


def test_the_specification_has_the_numbers():
    """Those of the picture, in its order."""
    picture = drawn("marginal", "released")
    values = picture.vega()["data"]["values"]
    assert [(one["label"], one["share"], one["low"], one["high"]) for one in values] == list(
        zip(picture.labels, picture.shares, picture.low, picture.high, strict=True)
    )


def test_matplotlib_draws_the_numbers():
    """Bars as long as the shares, whiskers over the intervals."""
    figure = pytest.importorskip("matplotlib.figure")
    picture = drawn("marginal", "released")
    axes = picture.draw(figure.Figure().subplots())
    assert [patch.get_width() for patch in axes.patches] == pytest.approx(picture.shares)
    assert [tuple(line.get_xdata()) for line in axes.lines] == list(zip(picture.low, picture.high, strict=True))
