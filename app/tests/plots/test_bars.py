"""Bars: their words, whiskers and numbers, however they are drawn; and labels that share one."""

import itertools
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from app.tests.plots.shown import MODELS, SVG, drawn
from dpgm.plots.bars import group_labels
from dpgm_core import Attribute
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
    """Ends of whiskers lie as far along as the interval's, on the scale of the bars; the specification has the numbers
    of the picture, in its order."""
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
    """Bars as long as the shares, whiskers over the intervals."""
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
