"""Pictures as SVG, matplotlib figures and Vega-Lite."""

from __future__ import annotations

import importlib
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from dpgm.plots.canvas import WARNING, Note, cut, draw_frame, wrap_text
from dpgm_core._util.files import PICTURE_FILE, atomic_write
from dpgm_core._util.html import Html
from dpgm_core.errors import OptionError, printable

__all__ = [
    "Drawing",
    "Picture",
    "as_json",
    "disable_math",
    "finish_figure",
    "finite",
    "matplotlib",
    "new_axes",
    "save_figure",
    "specification",
]


# --- Protocol ---


class Picture(Protocol):
    """A picture made of released values only."""

    @property
    def title(self) -> str:
        """Title, one line."""

    @property
    def standing(self) -> str:
        """What the picture rests on: one standing, or the number of each."""

    def svg(self, *, bare: bool = False) -> str:
        """One `<svg>` element with a title and a description in words, in `currentColor` and CSS variables with
        defaults (`--dpgm-bar`, ...), so that a page's light and dark mode apply; no script, no font, no link.

        bare: without a title and notes to be seen, for a page that says them itself."""

    def vega(self) -> dict[str, Any]:
        """A Vega-Lite specification with the values in it."""

    def draw(self, axes: Any = None) -> Any:
        """Draw with matplotlib (extra `plots`) on `axes`, or on new ones; returns them."""

    def save(self, path: str | Path) -> None:
        """Write .svg (ours), .json (Vega-Lite), or what matplotlib writes, such as .png and .pdf; by the name."""

    def _repr_html_(self) -> str:
        """For notebooks: the SVG."""


class Drawing:
    """Base of pictures: what all of them do alike with their SVG and their files."""

    __slots__ = ()

    title: str
    notes: tuple[Note, ...]

    def svg(self, *, bare: bool = False) -> Html:
        """One `<svg>` element; see `Picture`."""
        content, width, height = self._content()
        words = self.described()
        return draw_frame(
            content, width=width, height=height, title=self.title, description=words, notes=self.notes, bare=bare
        )

    def described(self) -> str:
        """The picture in words, for those who do not see it."""
        return " ".join([*self._said(), *(text for text, _ in self.notes)])

    def save(self: Picture, path: str | Path) -> None:
        """Write a file; see `Picture`."""
        save_figure(self, path)

    def _repr_html_(self) -> str:
        return self.svg()

    def _content(self) -> tuple[Sequence[Html], float, float]:
        """Below the title, with its width and height."""
        raise NotImplementedError

    def _said(self) -> list[str]:
        """What is to be seen, in words."""
        raise NotImplementedError


# --- Vega-Lite ---


def specification(
    title: str, notes: Sequence[Note], values: Sequence[Mapping[str, Any]], **parts: Any
) -> dict[str, Any]:
    """Return a Vega-Lite specification with its values; the notes are the title's further lines.

    >>> found = specification("ages", [], [{"label": "old", "share": 1.0}], mark="bar")
    >>> sorted(found), found["data"]["values"]
    (['$schema', 'data', 'mark', 'title'], [{'label': 'old', 'share': 1.0}])
    """
    words: dict[str, Any] = {"text": printable(title), "anchor": "start"}
    if notes:
        words["subtitle"] = [printable(text) for text, _ in notes]
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "title": words,
        "data": {"values": list(values)},
        **parts,
    }


def finite(value: float | None) -> float | None:
    """Return a number for JSON: None for NaN.

    >>> finite(0.5), finite(float("nan"))
    (0.5, None)
    """
    return None if value is None or value != value else value


def as_json(plain: Mapping[str, Any]) -> str:
    """Return the text of a specification's file."""
    return json.dumps(plain, indent=1, allow_nan=False) + "\n"


# --- matplotlib and files ---


def matplotlib(part: str = "figure") -> ModuleType:
    """A module of matplotlib. Raises OptionError, with what to install, where it is missing."""
    try:
        return importlib.import_module(f"matplotlib.{part}")
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        raise OptionError(
            "drawing with matplotlib needs it: pip install 'dpgm[plots]'; without it, svg() gives the picture, "
            "and save writes .svg and .json"
        ) from None


def new_axes(axes: Any, width: float, height: float) -> Any:
    """Return the axes, or those of a new figure of this size, inches; pyplot shows such figures."""
    if axes is not None:
        return axes
    return matplotlib("pyplot").subplots(figsize=(width, height), layout="constrained")[1]


def disable_math(texts: Sequence[Any]) -> None:
    """Take matplotlib texts as they are: dollars in a label start no formula."""
    for text in texts:
        text.set_parse_math(False)


def finish_figure(axes: Any, title: str, notes: Sequence[Note], *, below: str = "") -> Any:
    """Add the title above, and below a name and the notes, red where one is a warning."""
    lines = [cut(below, 8, 300)] if below else []
    for text, _ in notes:
        lines += wrap_text(text, 8, 460)
    colour = WARNING[1] if any(warns for _, warns in notes) else "black"
    words = axes.set_xlabel("\n".join(lines), fontsize=8, color=colour)
    disable_math([words, axes.set_title(cut(title, 11, 460), loc="left", fontsize=11)])
    return axes


def save_figure(picture: Picture, path: str | Path) -> None:
    """Write a picture as its name says; one that stands there is replaced, any other file is refused.

    Raises OptionError for a kind of file that nobody writes, ModelFileError.
    """
    place = Path(path)
    kind = place.suffix.lower()
    if kind == ".svg":
        content = f"{picture.svg()}\n".encode()
    elif kind == ".json":
        content = as_json(picture.vega()).encode()
    else:
        content = _render(picture, place, kind)
    atomic_write(place, content, PICTURE_FILE)


def _render(picture: Picture, place: Path, kind: str) -> bytes:
    """Return what matplotlib draws, without pyplot, so that nothing is shown or left open."""
    figure = matplotlib().Figure(layout="constrained", figsize=(7, 5))
    known = figure.canvas.get_supported_filetypes()
    if kind[1:] not in known:
        raise OptionError(
            f"cannot save a picture as {place.name!r}: name a file .svg, .json (Vega-Lite) or, with matplotlib, one of "
            + ", ".join(f".{one}" for one in sorted(known))
        )
    picture.draw(figure.subplots())
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind[1:], dpi=200, bbox_inches="tight")
    return buffer.getvalue()
