"""Colours: a sequential scale whose lightness alone orders it, so that it is read in grey and without red or green."""

from __future__ import annotations

import math

__all__ = ["contrast", "ink", "sequential"]

#: Lightness, chroma and hue (degrees) of OKLCH at 0 and at 1: from a pale yellow through green to a dark blue.
_PALE, _DARK = (0.965, 0.045, 108.0), (0.33, 0.115, 272.0)


def sequential(share: float) -> str:
    """The colour of a number from 0, pale, to 1, dark, as `#rrggbb`; of what is outside that of the nearer end.

    >>> sequential(0.0), sequential(1.0)
    ('#f6f6d4', '#232d6f')
    """
    at = min(max(share, 0.0), 1.0)
    lightness, chroma, hue = (pale + at * (dark - pale) for pale, dark in zip(_PALE, _DARK, strict=True))
    return "#" + "".join(f"{round(255 * part):02x}" for part in _srgb(lightness, chroma, hue))


def ink(paper: str) -> str:
    """Black or white, whichever is read better on a colour.

    >>> ink(sequential(0.0)), ink(sequential(1.0))
    ('#000000', '#ffffff')
    """
    return max("#000000", "#ffffff", key=lambda one: contrast(one, paper))


def contrast(one: str, other: str) -> float:
    """The contrast of two colours as WCAG 2 defines it, from 1 to 21; texts need 4.5, lines and bars 3.

    >>> contrast("#000000", "#ffffff")
    21.0
    """
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _srgb(lightness: float, chroma: float, hue: float) -> tuple[float, float, float]:
    """OKLCH as sRGB, cut to 0 to 1. Source: Ottosson (2020), A perceptual color space for image processing."""
    a, b = chroma * math.cos(math.radians(hue)), chroma * math.sin(math.radians(hue))
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    middle = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    linear = (
        4.0767416621 * long - 3.3077115913 * middle + 0.2309699292 * short,
        -1.2684380046 * long + 2.6097574011 * middle - 0.3413193965 * short,
        -0.0041960863 * long - 0.7034186147 * middle + 1.7076147010 * short,
    )
    red, green, blue = (
        min(max(12.92 * part if part <= 0.0031308 else 1.055 * part ** (1 / 2.4) - 0.055, 0.0), 1.0) for part in linear
    )
    return red, green, blue
