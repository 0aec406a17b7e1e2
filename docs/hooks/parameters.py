"""A griffe extension: our docstrings say "name: meaning." in running text; the reference shows a table of them."""

import re
from collections.abc import Iterable

import griffe

__all__ = ["Parameters", "tabled"]


class Parameters(griffe.Extension):
    """Moves what a docstring says of parameters, or of a class's fields, into a section that is shown as a table."""

    def on_package(self, *, pkg: griffe.Module, **_: object) -> None:
        for obj in below(pkg):
            if isinstance(obj, griffe.Function) and any(str(one.value) == "st.composite" for one in obj.decorators):
                del obj.parameters["draw"]  # Hypothesis gives it; callers do not
            if obj.docstring and isinstance(obj, griffe.Function):
                names = [one.name for one in obj.parameters if one.name not in ("self", "cls")]
                obj.docstring.value = tabled(obj.docstring.value, names, "Args")
            elif obj.docstring and isinstance(obj, griffe.Class):
                fields = [name for name, member in obj.members.items() if member.is_attribute and not member.docstring]
                obj.docstring.value = tabled(obj.docstring.value, fields, "Attributes")


def below(parent: griffe.Object) -> Iterable[griffe.Object]:
    """All that is defined in a module or class, and not merely imported into it."""
    for member in parent.members.values():
        if not member.is_alias:
            yield member
            yield from below(member)


def tabled(text: str, names: list[str], title: str) -> str:
    """The docstring with one section `title` where the first name was explained; code and lists stay as they are."""
    if not names:
        return text
    one = "|".join(map(re.escape, names))
    said = re.compile(rf"(?:^|(?<=[.;)] ))((?:(?:{one}), )*(?:{one})): ")
    meanings: dict[str, str] = {}
    kept: list[str] = []
    place = 0
    paragraphs = text.split("\n\n")
    for number, paragraph in enumerate(paragraphs):
        if "```" in paragraph or ">>>" in paragraph:
            kept += paragraphs[number:]
            break
        line = " ".join(paragraph.split())
        found = [] if paragraph.startswith(("* ", "- ", "    ", "|")) else list(said.finditer(line))
        if not found:
            kept.append(paragraph)
            continue
        kept += [before] if (before := line[: found[0].start()].strip()) else []
        place = place or len(kept)
        for match, end in zip(found, [*(later.start() for later in found[1:]), len(line)], strict=True):
            for name in match[1].split(", "):
                meanings[name] = line[match.end() : end].rstrip("; ")
    if not meanings:
        return text
    rows = [f"    {name}: {meanings[name]}" for name in names if name in meanings]
    return "\n\n".join([*kept[:place], "\n".join([f"{title}:", *rows]), *kept[place:]])
