"""Sections on origin and use."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

from dpgm.report.inputs import Material
from dpgm.report.noise import drawn_steps
from dpgm.report.parts import cut, data_table, facts, join, listing, number, paragraph, section, several
from dpgm_core._util.files import plain
from dpgm_core._util.html import Html, tag, text
from dpgm_core._util.version import __version__
from dpgm_core.errors import printable

__all__ = ["origin_section", "use_section"]


# --- Provenance ---

_COMPONENTS = (("selector", "Selector"), ("learner", "Learner"), ("inference", "Inference"))


@section("origin", "Versions and provenance")
def origin_section(material: Material) -> list[object]:
    """Return the section on versions and provenance."""
    model = material.model
    pairs: list[tuple[object, object]] = [("File", cut(material.file))]
    if material.digest is not None:
        pairs.append(("SHA-256 of the file", tag("code", material.digest)))
    pairs.append(("dpgm that made this page", __version__))
    made = ((title, model.provenance.get(kind)) for kind, title in _COMPONENTS)
    pairs += [(title, _maker(one)) for title, one in made if isinstance(one, Mapping) and "name" in one]
    pairs += [("Mechanism", mechanism) for mechanism in _mechanisms(material)]
    pairs += [
        ("Randomness of the noise", _randomness(material)),
        ("Converged", "yes" if model.converged else "no"),
        ("Replicates for intervals", f"{len(model.replicates)}"),
        (
            "Structure",
            f"{several(len(model.structure.cliques), 'clique')}, {several(model.structure.cells, 'parameter')}",
        ),
    ]
    if model.conversion_delta is not None:
        pairs.append(("zCDP converted at", f"δ' = {float(model.conversion_delta):.3g}"))
    if model.pooled:
        pairs.append(("Releases", "pooled: the mean of each table, weighted by how little noise it has"))
    parts: list[object] = [facts(pairs), *_certificate(model.provenance.get("certificate"))]
    notes = [str(note) for note in model.provenance.get("notes", [])]
    if notes:
        parts += [
            Html("<h3>Notes of the learner</h3>"),
            listing([cut(note) if len(note) > 1000 else note for note in notes[:30]]),
        ]
    words = (
        "The release behind the model gives the same model again with the same learner, options and versions, at no "
        "cost; the noise itself is drawn once and cannot be drawn again."
        if material.promises
        else "The same seed gives the same noise again."
        if material.releases
        else "Nothing is known of where its numbers come from."
    )
    return [*parts, paragraph(words)]


def _maker(record: Mapping[str, Any]) -> Html:
    version = " ".join(str(record[key]) for key in ("distribution", "version") if record.get(key) is not None)
    options = record.get("options")
    parts: list[object] = [tag("strong", cut(record["name"])), f" ({cut(version)})" if version else ""]
    if isinstance(options, Mapping) and options:
        parts.append(Html("<br>"))
        parts.append(
            tag("code", ", ".join(f"{cut(key)} = {_value(str(key), value)}" for key, value in options.items()))
        )
    return join(parts)


def _value(key: str, value: object) -> str:
    """Return an option; of a seed only that there is one."""
    if "seed" in key.lower() and value is not None:
        return "(stated)"
    return cut(json.dumps(plain(value), ensure_ascii=False))


def _mechanisms(material: Material) -> list[Html]:
    mechanisms: dict[str, Html] = {}
    for release in drawn_steps(material.releases):
        for one in release.measurement.calibrations:
            record = {"name": one.component or "an unregistered mechanism", "options": dict(one.options)}
            mechanisms.setdefault(json.dumps(plain(record), sort_keys=True), _maker(record))
    return list(mechanisms.values())[:5]


def _randomness(material: Material) -> object:
    if not material.releases:
        return "unknown"
    if not material.promises:
        return tag("span", "seeded, for simulation only", class_="over")
    return "the operating system's, not repeatable"


def _certificate(certificate: object) -> list[Html]:
    if not isinstance(certificate, Mapping) or not certificate:
        return []
    rows = [
        [cut(key).replace("_", " "), number(float(value))]
        for key, value in certificate.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    ]
    return (
        [data_table("What the learner says of its end", ["figure", "value"], rows, number_columns={1})] if rows else []
    )


# --- Examples of use ---

#: Names that are longer make no example.
_MAX_LETTERS = 40


@section("use", "How to use it")
def use_section(material: Material) -> list[Html]:
    """Return the section on use: commands and Python."""
    file, related = shlex.quote(material.file), material.model.related is not None
    plain = [one for one in material.columns if len(one) <= _MAX_LETTERS and printable(one) == one]
    first = shlex.quote(plain[0]) if plain else "ATTRIBUTE"
    second = shlex.quote(plain[1]) if len(plain) > 1 else first
    evidence = _evidence(material, plain[1]) if len(plain) > 1 else ""
    shell = [
        f"dpgm query {file}",
        f"dpgm query {file} {first} --intervals 0.9",
        f"dpgm query {file} {first} {second}" if len(plain) > 1 else "",
        f"dpgm query {file} {first} --given {evidence}" if evidence else "",
        f"dpgm sample {file} -n 10000 -o synthetic{'/' if related else '.csv'}",
        f"dpgm export {file} --uai model.uai",
    ]
    attribute = repr(plain[0]) if plain else "'ATTRIBUTE'"
    python = [
        "import dpgm_core as dpgm",
        f"model = dpgm.load_model({material.file!r})",
        f"model.marginal({attribute})",
        f"model.table({attribute}, level={material.level:g})",
        "model.sample(10_000)",
        "model.guarantee()",
    ]
    if related:
        python = [
            "import dpgm",
            f"model = dpgm.RelatedModel.load({material.file!r})",
            f"model.marginal({attribute})",
            f"model.intervals({attribute}, level={material.level:g})",
            "model.sample().children",
            "model.model.guarantee()",
        ]
    words = "All of this is computed from what was released, costs nothing, and can be done as often as you like."
    return [paragraph(words), _lines(shell, "sh"), _lines(python, "python")]


def _evidence(material: Material, attribute: str) -> str:
    label = material.answers.domain[attribute].labels[0]
    if len(label) > _MAX_LETTERS or printable(label) != label:
        return ""
    return shlex.quote(f"{attribute}={label}")


def _lines(lines: list[str], of: str) -> Html:
    shown = "\n".join(printable(line) for line in lines if line)
    label = {"sh": "Commands", "python": "Python"}[of]
    # Line by line: `text` alone would escape the line ends.
    escaped = Html("\n".join(map(text, shown.split("\n"))))
    return tag("pre", tag("code", escaped), tabindex="0", role="group", aria_label=label)
