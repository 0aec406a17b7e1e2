"""The scale of colours."""

from dpgm.plots.heat import contrast, ink, sequential


def test_the_scale_can_be_read():
    """Texts on every colour of it; lightness alone tells the order, so that no hue has to be seen."""
    scale = [sequential(at / 100) for at in range(101)]
    assert min(contrast(colour, ink(colour)) for colour in scale) >= 4.5
    depth = [contrast(colour, "#ffffff") for colour in scale]
    assert depth == sorted(depth) and depth[-1] / depth[0] > 8
    assert sequential(-1.0) == scale[0] and sequential(7.0) == scale[-1]
