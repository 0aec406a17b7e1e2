"""Commands and Python to query and sample the model, with this file's name."""

from __future__ import annotations

import shlex

from dpgm_core.markup import Html, tag, text
from dpgm_core.printable import printable
from dpgm_core.report.material import Material
from dpgm_core.report.parts import Section, join, paragraph

__all__ = ["section"]

#: Names that are longer make no example.
_MAX_LETTERS = 40


def section(material: Material) -> Section:
    """Commands."""
    file = shlex.quote(material.file)
    plain = [one for one in material.names if len(one) <= _MAX_LETTERS and printable(one) == one]
    first = shlex.quote(plain[0]) if plain else "ATTRIBUTE"
    second = shlex.quote(plain[1]) if len(plain) > 1 else first
    evidence = _evidence(material, plain[1]) if len(plain) > 1 else ""
    shell = [
        f"dpgm query {file}",
        f"dpgm query {file} {first}{' --intervals 0.9' if material.model.replicates else ''}",
        f"dpgm query {file} {first} {second}" if len(plain) > 1 else "",
        f"dpgm query {file} {first} --given {evidence}" if evidence else "",
        f"dpgm sample {file} -n 10000 -o synthetic.csv",
        f"dpgm export {file} --uai model.uai",
    ]
    attribute = repr(plain[0]) if plain else "'ATTRIBUTE'"
    python = [
        "import dpgm_core as dpgm",
        f"model = dpgm.load_model({material.file!r})",
        f"model.marginal({attribute})",
        f"model.table({attribute}{f', level={material.level:g}' if material.model.replicates else ''})",
        "model.sample(10_000)",
        "model.guarantee()",
    ]
    words = "All of this is computed from what was released, costs nothing, and can be done as often as you like."
    return Section("use", "How to use it", join([paragraph(words), _lines(shell, "sh"), _lines(python, "python")]))


def _evidence(material: Material, attribute: str) -> str:
    label = material.model.domain[attribute].labels[0]
    if len(label) > _MAX_LETTERS or printable(label) != label:
        return ""
    return shlex.quote(f"{attribute}={label}")


def _lines(lines: list[str], of: str) -> Html:
    shown = "\n".join(printable(line) for line in lines if line)
    label = {"sh": "Commands", "python": "Python"}[of]
    return tag("pre", tag("code", Html(_escaped(shown))), tabindex="0", role="group", aria_label=label)


def _escaped(lines: str) -> str:
    """Several lines as a text; `text` alone would spell out their ends."""
    return "\n".join(text(line) for line in lines.split("\n"))
