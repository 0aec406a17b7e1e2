"""A griffe extension: docstrings end with a doctest; fence it, or Markdown takes `>>>` for a quotation."""

import griffe

__all__ = ["Doctests"]


class Doctests(griffe.Extension):
    """Puts every run of doctest lines into a fenced block."""

    def on_object(self, *, obj: griffe.Object, **_: object) -> None:
        if obj.docstring:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    """From the first `>>>` to the next blank line is a code block."""
    lines: list[str] = []
    inside = False
    for line in text.splitlines():
        if not inside and line.lstrip().startswith(">>>"):
            lines += ["", "```pycon"]
            inside = True
        elif inside and not line.strip():
            lines.append("```")
            inside = False
        lines.append(line.strip() if inside and line.lstrip().startswith((">>>", "...")) else line)
    return "\n".join([*lines, "```"] if inside else lines)
