"""Writes what the code itself says into four pages of docs: commands, components, checks and contracts.

With --check it only compares.

Everything below the line `<!-- generated -->` of a page is generated, and so is what stands between `<!-- list -->` and
`<!-- end -->` above it; edit the rest, or the code.
"""

import html
import importlib
import inspect
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import click

from dpgm.cli import cli
from dpgm_core._util.lazy import FACES
from dpgm_core.components.options import OptionInfo, describe
from dpgm_core.components.registry import Registry
from dpgm_core.plugin import KINDS
from dpgm_testing.check import Check
from dpgm_testing.checks.declaration import CHECKS as DECLARATION
from dpgm_testing.runner import checks_of

DOCS = Path(__file__).parents[1]
FIRST_PARTY = {"dpgm-core", *(path.parent.name for path in DOCS.parent.glob("plugins/*/pyproject.toml"))}
MARK = "<!-- generated -->"
#: The types of options that a default shows.
SHOWN = {"true or false": "true|false", "whole number": r"-?\d+", "number": r"-?\d*\.\d+|-?\d+(\.\d*)?e-?\d+"}
#: An option that so many commands have in the same words is explained once.
MANY = 5
LIST = re.compile(r"(?<=<!-- list -->\n\n).*?(?=<!-- end -->)", re.DOTALL)

# What a component of each kind does, for the list of all of them.
DOES = {
    "mechanism": "draws the noise of a release",
    "inference": "computes marginals from potentials",
    "collective": "infers the hidden true tables from noisy ones",
    "learner": "makes a model of releases",
    "selector": "chooses privately what to measure",
    "source": "reads records, or sums them where they are",
}

# Why the checks of each kind are there, at the head of its table.
WHY = {
    "Every kind": "These checks find a broken contract before a run does.",
    "Mechanism": "A mechanism can leak by its arithmetic alone. These checks compare its claimed cost with the masses "
    "it states, the masses with its draws, and its draws with what attackers use: seeds, streams, types and files.",
    "Inference": "Learners take marginals for gradients and log Z for objectives. Small cases are enumerated; large "
    "ones must be consistent.",
    "Collective": "Learners trust the inferred tables, which must be tables of some data set, follow the evidence, and "
    "carry no false certificate.",
    "Learner": "A learner works from noisy, negative and contradictory tables. It must see records through the "
    "curator alone, survive any noise, and be worth its budget.",
    "Selector": "What a selector returns must follow from its released steps; it must keep to the workload and its "
    "plan, stop, and find strong dependence. The sessions are core's own, with discrete noise; the learner the kit's.",
    "Source": "A source reads raw records: a record that is dropped, refused or quoted is a leak, and so is a code "
    "that depends on other records. Sums taken where the rows are must equal the sums of the rows, bit for bit.",
}

# The protocols of each kind, with the values they hand out.
CONTRACTS = {
    "Mechanism": ["Mechanism", "Noise", "DualTerm", "Randomness"],
    "Inference": ["Inference", "Engine", "Maximizer", "Sampler", "SecondOrder", "Beliefs"],
    "Collective": ["Collective", "CollectiveEngine", "CollectiveBeliefs"],
    "Learner": [
        "Learner",
        "Refitter",
        "Refits",
        "Fitter",
        "MeasuresOtherTables",
        "ResourceEstimator",
        "Resources",
        "Curator",
        "Rounds",
    ],
    "Selector": ["Selector", "SelectionPlan", "Selection", "Session", "TableDistance", "Choice", "NoisyScores"],
    "Source": ["Source", "KeyedSource", "NamedColumns", "RawValues", "RawBatch", "FileSource"],
    "Source that sums": ["ReducingSource", "Pinned", "Reading", "Reduction", "Adding", "Grouped"],
}


def commands(
    command: click.Command, name: str, parent: click.Context | None = None
) -> Iterator[tuple[str, click.Context]]:
    """A command and all below it, in the order of `--help`."""
    context = click.Context(command, info_name=name, parent=parent, **command.context_settings)
    yield context.command_path, context
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            found = command.get_command(context, below)
            assert found is not None
            if not found.hidden:
                yield from commands(found, below, context)


def command_list() -> str:
    """A line for each command, with the first sentence of its help."""
    rows = [
        f"| [`{path}`](#{path.replace(' ', '-')}) | {cell(context.command.get_short_help_str(limit=200))} |"
        for path, context in commands(cli, "dpgm")
        if not isinstance(context.command, click.Group)
    ]
    return "\n".join(["| command | |", "|---|---|", *rows, ""])


def command_sections() -> Iterator[str]:
    """Every command, then the options that many of them have in the same words."""
    contexts = list(commands(cli, "dpgm"))
    counts = Counter(row for _, context in contexts for row in option_rows(context))
    shared = [row for row, count in counts.items() if count >= MANY]
    for path, context in contexts:
        yield command_section(path, context, shared)
    yield "\n".join(["## Options of several commands", "", "| option | |", "|---|---|", *shared, ""])


def option_rows(context: click.Context) -> list[str]:
    """The options of a command as lines of a table, `--help` apart."""
    options = [one for one in context.command.params if isinstance(one, click.Option) and not one.hidden]
    records = filter(None, (option.get_help_record(context) for option in options))
    return [f"| {code(name)} | {cell(text)} |" for name, text in records]


def command_section(path: str, context: click.Context, shared: list[str]) -> str:
    """One command in Markdown: usage, help and options; those that many commands have by name only."""
    command = context.command
    usage = " ".join([path, *command.collect_usage_pieces(context)])
    lines = [f"## {path}", "", f"`{usage}`", ""]
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        # click shows a paragraph that starts with \b as it is written
        verbatim = paragraph.startswith("\b\n")
        lines += ["```text", paragraph.removeprefix("\b\n"), "```", ""] if verbatim else [paragraph, ""]
    rows = option_rows(context)
    own = [row for row in rows if row not in shared]
    if own:
        lines += ["| option | |", "|---|---|", *own, ""]
    names = [f"`{found[0]}`" for row in rows if row in shared and (found := re.search(r"--[a-z-]+", row))]
    if names:
        lines += [f"Also [{', '.join(names)}](#options-of-several-commands).", ""]
    return "\n".join(lines)


def component_list() -> str:
    """The names of each kind, linked to their sections."""
    names = defaultdict(list)
    for offer in Registry.discover():
        if offer.distribution in FIRST_PARTY:
            kind, name = offer.component.kind, offer.component.name
            names[kind].append(f"[`{name}`](#{kind}-{name})")
    rows = [f"| {kind} | {DOES[kind]} | {', '.join(names[kind])} |" for kind in KINDS]
    return "\n".join(["| kind | what it does | names |", "|---|---|---|", *rows, ""])


def component_sections() -> Iterator[str]:
    """Every component of the distributions in this checkout, with its options; those that an earlier component of the
    same distribution has too, all of them, are not said twice."""
    registry = Registry.discover()
    said: dict[str, list[tuple[str, list[str]]]] = defaultdict(list)
    for offer in registry:
        one = offer.component
        if offer.distribution in FIRST_PARTY:
            lines = [f"## {one.kind} `{one.name}`", "", f"{one.summary} (from `{offer.distribution}`)", ""]
            rows = list(map(option_row, describe(registry.load(one.kind, one.name))))
            alike = [other for other in said[offer.distribution] if len(other[1]) > 2 and {*other[1]} <= {*rows}]
            said[offer.distribution].append((f"{one.kind} `{one.name}`", rows))
            if alike:
                name, known = max(alike, key=lambda other: len(other[1]))
                rows = [row for row in rows if row not in known]
                lines += [f"All options of {name}, above{', and:' if rows else '.'}", ""]
            if rows:
                lines += ["| option | default | meaning |", "|---|---|---|", *rows]
            yield "\n".join([*lines, ""])


def option_row(option: OptionInfo) -> str:
    """One option as a line of a table; its type only where the default does not show it."""
    shown = next((name for name, pattern in SHOWN.items() if re.fullmatch(pattern, str(option.default))), None)
    form = [option.type] * (option.type != shown) + [f"in {option.unit}"] * bool(option.unit)
    note = f" (*{cell(', '.join(form))}*)" if form else ""
    return f"| `{option.name}` | {cell(option.default)} | {cell(option.help)}{note} |"


def check_sections() -> Iterator[str]:
    """Every check of the conformance kit: what it claims, what it cannot show, what it needs."""
    shared = {check.name for check in DECLARATION}
    everyone = [one for one in checks_of(next(iter(KINDS))) if one.name in shared]
    yield check_section("Every kind", everyone)
    for kind in KINDS:
        yield check_section(kind.capitalize(), [one for one in checks_of(kind) if one.name not in shared])


def check_section(title: str, checks: list[Check]) -> str:
    """One table of checks."""
    head = "| check | what it tests | what it cannot show, besides |"
    lines = [f"## {title}", "", WHY[title], "", head, "|---|---|---|"]
    for one in checks:
        needs = f" (`{one.needs}`)" if one.needs else ""
        lines.append(f"| `{one.name}`{needs} | {cell(one.claim)} | {cell(one.limit)} |")
    return "\n".join([*lines, ""])


def contract_sections() -> Iterator[str]:
    """The names of all contracts by kind, then each in full, made by mkdocstrings."""
    rows = [
        f"| {title} | {', '.join(f'[`{name}`][{face_of(name)}.{name}]' for name in names)} |"
        for title, names in CONTRACTS.items()
    ]
    yield "\n".join(["| kind | contracts |", "|---|---|", *rows, ""])
    others = ["AnySource", "Shipped", "merged", "received", "SourceRefused", "Url"]
    others += ["Capability", "Codes", "Progress", "silent"]
    for name in [*(name for names in CONTRACTS.values() for name in names), *others]:
        yield f"::: {face_of(name)}.{name}\n"


def face_of(name: str) -> str:
    """The first of the public faces that has the name; empty if it is not public."""
    return next((face for face in FACES if name in importlib.import_module(face).__all__), "")


def cell(text: str) -> str:
    """Text that may stand in a Markdown table."""
    return " ".join(text.split()).replace("|", "\\|")


def code(text: str) -> str:
    """Code that may stand in a Markdown table: a bar inside backticks would show its backslash."""
    if "|" not in text:
        return f"`{' '.join(text.split())}`"
    return f"<code>{html.escape(' '.join(text.split()), quote=False).replace('|', '&#124;')}</code>"


def pages() -> Iterator[tuple[Path, str]]:
    """Each page with the text it should have."""
    bodies = {
        "cli.md": command_sections(),
        "components.md": component_sections(),
        "conformance.md": check_sections(),
        "reference/contracts.md": contract_sections(),
    }
    lists = {"cli.md": command_list(), "components.md": component_list()}
    for name, sections in bodies.items():
        head = (DOCS / name).read_text(encoding="utf-8").split(MARK)[0]
        head = f"{lists.get(name)}\n".join(LIST.split(head))
        yield DOCS / name, head + MARK + "\n\n" + "\n".join(sections)


if __name__ == "__main__":
    stale = [(page, text) for page, text in pages() if page.read_text(encoding="utf-8") != text]
    if sys.argv[1:] == ["--check"]:
        sys.exit(f"out of date: {', '.join(page.name for page, _ in stale)}; run python {sys.argv[0]}" if stale else 0)
    for page, text in stale:
        page.write_text(text, encoding="utf-8")
