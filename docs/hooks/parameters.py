"""A griffe extension that turns "name: meaning." in the prose of a docstring into a numpy section."""

import re
from collections.abc import Iterable

import griffe

__all__ = ["Parameters", "tabled"]

#: The heading of a numpy section.
SECTION = re.compile(r"^[A-Z][A-Za-z ]+\n-+$", re.MULTILINE)
#: What ends the prose of a docstring: code, or a section.
END = re.compile(rf"```|>>>|{SECTION.pattern}", re.MULTILINE)


class Parameters(griffe.Extension):
    """Moves explanations of parameters, or of a class's fields, into a section that is shown as a table."""

    def on_package(self, *, pkg: griffe.Module, **_: object) -> None:
        for obj in below(pkg):
            if isinstance(obj, griffe.Function) and any(str(one.value) == "st.composite" for one in obj.decorators):
                del obj.parameters["draw"]  # passed by Hypothesis, not by callers
            if obj.docstring and isinstance(obj, griffe.Function):
                names = [one.name for one in obj.parameters if one.name not in ("self", "cls")]
                obj.docstring.value = tabled(obj.docstring.value, names, "Parameters")
            elif obj.docstring and isinstance(obj, griffe.Class):
                fields = [name for name, member in obj.members.items() if member.is_attribute and not member.docstring]
                obj.docstring.value = tabled(obj.docstring.value, fields, "Attributes")


def below(parent: griffe.Object) -> Iterable[griffe.Object]:
    """Yield every object defined in a module or class, and not those imported into it."""
    for member in parent.members.values():
        if not member.is_alias:
            yield member
            yield from below(member)


def tabled(text: str, names: list[str], title: str) -> str:
    """Return the docstring with a numpy section `title`, between its prose and its sections and examples.

    A docstring that has the section, or explains none of the names, is returned as it is. Lists and code stay too.
    """
    if not names or re.search(rf"^{title}\n-+$", text, re.MULTILINE):
        return text
    one = "|".join(map(re.escape, names))
    start = re.compile(rf"(?:^|(?<=[.;)] ))((?:(?:{one}), )*(?:{one})): ")
    meanings: dict[str, str] = {}
    prose: list[str] = []
    paragraphs = text.split("\n\n")
    ends = [number for number, paragraph in enumerate(paragraphs) if END.search(paragraph)]
    end = min(ends, default=len(paragraphs))
    for paragraph in paragraphs[:end]:
        line = " ".join(paragraph.split())
        matches = [] if paragraph.startswith(("* ", "- ", "    ", "|")) else list(start.finditer(line))
        if not matches:
            prose.append(paragraph)
            continue
        prose += [before] if (before := line[: matches[0].start()].strip()) else []
        for match, stop in zip(matches, [*(later.start() for later in matches[1:]), len(line)], strict=True):
            for name in match[1].split(", "):
                meanings[name] = line[match.end() : stop].rstrip("; ")
    if not meanings:
        return text
    rows = [f"{name}\n    {meanings[name]}" for name in names if name in meanings]
    rest = paragraphs[end:]
    if rest and not SECTION.search(rest[0]):
        rest[0] = "Examples\n--------\n" + rest[0].lstrip("\n")
    return "\n\n".join([*prose, "\n".join([title, "-" * len(title), *rows]), *rest])
