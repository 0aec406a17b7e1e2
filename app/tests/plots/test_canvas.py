"""Texts in their room, and the colours they are in."""

import pytest

from app.tests.plots.shown import HOSTILE
from dpgm.plots.canvas import BAR, BOX, BOX_INK, LINE, WARNING, cut, percent, width_of, wrap_text
from dpgm.plots.heat import contrast, ink, sequential
from dpgm_core.errors import printable


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
    """Bars, lines and warnings on light and dark pages, texts on boxes and on every colour of the scale; there
    lightness alone tells the order, so that no hue has to be seen."""
    for name, colour in (BAR, LINE, WARNING):
        assert min(contrast(colour, "#ffffff"), contrast(colour, "#14181d")) >= 3, name
    assert contrast(WARNING[1], "#ffffff") >= 4.5
    assert contrast(BOX[1], BOX_INK[1]) >= 7
    scale = [sequential(at / 100) for at in range(101)]
    assert min(contrast(colour, ink(colour)) for colour in scale) >= 4.5
    depth = [contrast(colour, "#ffffff") for colour in scale]
    assert depth == sorted(depth) and depth[-1] / depth[0] > 8
    assert sequential(-1.0) == scale[0] and sequential(7.0) == scale[-1]
