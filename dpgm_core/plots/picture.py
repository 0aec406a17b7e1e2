"""The protocol of pictures, which can be drawn in several ways."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

__all__ = ["Picture"]


class Picture(Protocol):
    """A picture made of released values only."""

    @property
    def title(self) -> str:
        """What is shown, a line."""
        ...

    @property
    def standing(self) -> str:
        """What it rests on: of all that is shown where that is one thing, else in words."""
        ...

    def svg(self, *, bare: bool = False) -> str:
        """One `<svg>` element with a title and a description in words, in `currentColor` and CSS variables with
        defaults (`--dpgm-bar`, ...), so that a page's light and dark mode apply; no script, no font, no link.

        bare: without a title and notes to be seen, for a page that says them itself."""
        ...

    def vega(self) -> dict[str, Any]:
        """A Vega-Lite specification with the values in it."""
        ...

    def draw(self, axes: Any = None) -> Any:
        """Draw with matplotlib (extra `plots`) on `axes`, or on new ones; returns them."""
        ...

    def save(self, path: str | Path) -> None:
        """Write .svg (ours), .json (Vega-Lite), or what matplotlib writes, such as .png and .pdf; by the name."""
        ...

    def _repr_html_(self) -> str:
        """For notebooks: the SVG."""
        ...
