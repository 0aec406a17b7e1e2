"""Options, progress and errors that commands share."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpgm_core.errors import BudgetError, DataError, LearningFailed, OptionError, Overspent, printable

if TYPE_CHECKING:
    import pyarrow as pa

    from dpgm.spec import Spec
    from dpgm_core._util.progress import Progress
    from dpgm_core.domain.domain import Domain
    from dpgm_core.models.model import Model
    from dpgm_core.privacy.columns import ColumnsPlan
    from dpgm_core.privacy.ledger import Ledger
    from dpgm_core.releases.release import NoisyTables

__all__ = [
    "FILE",
    "RECORDS",
    "check_has_records",
    "counted_rows",
    "evidence_option",
    "explain_saved_releases",
    "json_option",
    "learn_again",
    "open_ledger",
    "paid_command",
    "parse_evidence",
    "print_err",
    "print_evidence_bins",
    "print_json",
    "print_left_out",
    "print_lines",
    "print_out",
    "print_remarks",
    "print_table",
    "progress_option",
    "progress_shown",
    "releases_of",
    "saved_files",
    "selector_of",
    "settings_option",
    "stamp",
    "unexpected_number",
    "unmeasured_note",
    "warn_moved",
    "warn_renamed",
]


# --- Options and output ---
#
# The one place where commands write. Names and labels come from files, so all that does not print is spelled out here.


class _Records(click.Path):
    """A path, or the URL of remote records as a text, because a Path would drop one of its slashes."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from dpgm_core._util.locations import is_url

        return value if is_url(value) else super().convert(value, param, ctx)


RECORDS = _Records(path_type=Path)


FILE = click.Path(dir_okay=False, path_type=Path)

settings_option = click.option(
    "--set", "settings", multiple=True, metavar="KEY=VALUE", help="Override a key: learner.l2=0.001."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
evidence_option = click.option(
    "-g",
    "--given",
    "evidence",
    multiple=True,
    metavar="ATTRIBUTE=LABEL",
    help="Condition on a label, or on a number or date, whose bin is looked up; repeatable.",
)


def parse_evidence(pairs: Sequence[str], model: Model) -> dict[str, str]:
    """Return attribute -> label or value of the texts of `--given`. Raises OptionError.

    A text is split at the first "=" that follows the name of an attribute.
    """
    from dpgm.related import answering

    fixed: dict[str, str] = {}
    names = answering(model).domain.names if pairs else ()
    for pair in pairs:
        starts = (pair[:at] for at, letter in enumerate(pair) if letter == "=" and pair[:at] in names)
        name = next(starts, pair.partition("=")[0])
        label = pair[len(name) + 1 :]
        if not name or name == pair:
            raise OptionError(f"--given must look like ATTRIBUTE=LABEL, got {pair!r}")
        if name in fixed:
            raise OptionError(f"--given names {name!r} twice; fix each attribute once")
        fixed[name] = label
    return fixed


def print_evidence_bins(domain: Domain, evidence: Mapping[str, str]) -> None:
    """Print on stderr the bins of values in the evidence."""
    from dpgm_core.models.queries import read_evidence

    for name, label in read_evidence(domain, evidence).bins(domain).items():
        print_err(f"dpgm: {name}={evidence[name]} is in the bin {label}")


def print_json(value: Any) -> None:
    """One JSON document on stdout; JSON has no infinity, so it is the text "inf".

    A line that prints stays as it is; in others all but ASCII is escaped as JSON escapes it, so a reader gets it back.
    """
    from dpgm_core._util.files import plain

    encoding = sys.stdout.encoding or "utf-8"
    for line in json.dumps(plain(value), indent=2, ensure_ascii=False, allow_nan=False).split("\n"):
        as_it_is = line.isprintable() and line.encode(encoding, "ignore").decode(encoding) == line
        click.echo(line if as_it_is else "".join(map(_json_letter, line)))


def print_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print aligned columns on stdout: texts to the left, numbers to the right."""
    names, cells = list(map(printable, header)), [list(map(printable, row)) for row in rows]
    widths = [max(len(row[i]) for row in [names, *cells]) for i in range(len(names))]
    numeric = [all(isinstance(row[i], (int, float)) or _is_number(row[i]) for row in rows) for i in range(len(header))]

    def line(row: Sequence[str]) -> str:
        parts = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ]
        return "  ".join(parts).rstrip()

    print_out(line(names))
    print_out("  ".join("-" * width for width in widths))
    for row in cells:
        print_out(line(row))


def print_out(line: object = "") -> None:
    """Print one line on stdout."""
    click.echo(_encodable(printable(line), sys.stdout.encoding))


def print_lines(text: object) -> None:
    """Print a text of several lines on stdout, whose names are escaped already."""
    for line in str(text).split("\n"):
        print_out(line)


def print_err(message: object) -> None:
    """Print one line on stderr."""
    click.echo(_encodable(printable(message), sys.stderr.encoding), err=True)


def stamp(path: Path, caveats: Iterable[str]) -> None:
    """Print on stderr why results are less private than the budget of their source; nothing without caveats.

    path: the source. caveats: as `caveats_of` words them.
    """
    text = "; ".join(caveats)
    if text:
        print_err(f"dpgm: {path}: {text}")


def unmeasured_note(names: Sequence[str]) -> str:
    """Return a line that names all attributes that no table measured."""
    return f"not measured, so unknown to the model: {', '.join(names)}"


def print_left_out(names: Sequence[str]) -> None:
    """Print on stderr the attributes that were left out, if there are any."""
    if names:
        print_err(f"dpgm: left out, as no release measured them: {', '.join(names)}")


def _json_letter(letter: str) -> str:
    return letter if letter.isascii() and letter.isprintable() else json.dumps(letter)[1:-1]


def _encodable(line: str, encoding: str | None) -> str:
    """Return the line with letters escaped that the stream cannot encode."""
    return line.encode(encoding or "utf-8", "backslashreplace").decode(encoding or "utf-8")


def _is_number(cell: object) -> bool:
    try:
        float(str(cell).rstrip("%"))
    except ValueError:
        return False
    return True


# --- Releases and ledgers of commands that pay ---

_MAX_DELTA = Fraction(1, 10)
#: Of a table of unknown length.
_MANY_RECORDS = 50_000


def selector_of(run: Spec) -> str | None:
    """Return the name of a run's selector; None if its cliques are named."""
    return run.selector if run.selector is None or isinstance(run.selector, str) else str(run.selector["name"])


def saved_files(releases: Sequence[NoisyTables]) -> list[Path]:
    """Return the files of a run's releases."""
    return [one.saved_as for one in releases if one.saved_as is not None]


def releases_of(error: BaseException) -> Sequence[NoisyTables]:
    """Return what was released before a run failed; for an interrupt its cause has it."""
    return next((one.releases for one in (error, error.__cause__) if isinstance(one, LearningFailed)), ())


@contextmanager
def explain_saved_releases() -> Iterator[None]:
    """Explain, if the block fails after a charge, how to learn from the saved releases."""
    try:
        yield
    except BaseException as error:
        paid = releases_of(error)
        warn_moved(paid)
        files = saved_files(paid)
        if files:
            print_err(f"dpgm: {learn_again(files, saved_files([one for one in paid if one.holdout]))}")
        elif isinstance(error.__cause__, LearningFailed) and error.__cause__.discovery is not None:
            print_err(f"dpgm: {error.__cause__}")
        raise


def learn_again(files: Sequence[Path], holdouts: Sequence[Path]) -> str:
    """Return a sentence on the releases of a failed run; those of holdouts are learned from too."""
    learned = [file for file in files if file not in holdouts]
    what = "the release is paid for and saved; learn from it"
    if len(learned) > 1:
        what = f"{len(learned)} releases are paid for and saved, the last as {learned[-1]}; learn from one"
    return f"{what} with: dpgm learn {shlex.join(str(file) for file in [*learned[:1], *holdouts])}"


def warn_renamed(run: Spec, planned: Path, releases: Sequence[NoisyTables]) -> None:
    """Print a warning if the release has another place or a numbered name."""
    from dpgm_core.releases.labels import labels_file

    files = saved_files(releases)
    warn_moved(releases)
    if not planned.name.startswith(f"{run.name}.release."):
        first = planned.with_name(f"{run.name}.release.dpgm")
        taken = f"{run.name}.dpgm is there from an earlier run, or its release is"
        labels, others = labels_file(first), (first, first.with_name(f"{run.name}.dpgm"))
        if os.path.lexists(labels) and not any(os.path.lexists(file) for file in others):
            taken = f"{labels.name} is there, with the labels of a run that did not finish"
        print_err(
            f"dpgm: {taken}; what was paid for is never replaced, so these files are "
            f"{planned.name.removesuffix('.release.dpgm')}"
        )
    if files and planned not in files and releases[0].save_error is None:
        print_err(f"dpgm: another process wrote {planned} during the run, so the release was saved as {files[0]}")


def warn_moved(releases: Sequence[NoisyTables]) -> None:
    """Print a warning if a release had to be saved in another folder."""
    for one in releases:
        if one.save_error is not None and one.saved_as is not None:
            print_err(
                f"dpgm: WARNING: {one.save_error}; the release is saved as {one.saved_as}, which only you can read; "
                "move it to where it is safe"
            )


def unexpected_number(run: Spec, releases: Sequence[NoisyTables]) -> list[str]:
    """Return a sentence if the number of records differs from the one that the spec expects; otherwise nothing."""
    from dpgm_core.releases.totals import far_from

    return [] if run.records is None else far_from(run.records, releases)


def check_has_records(run: Spec) -> None:
    """Refuse a CSV file that ends with its header, before anything is charged.

    This tells the file from its neighbour with one record under add-remove, so sources themselves treat both alike. The
    size of an input file is not hidden (docs/privacy.md), and whoever runs a spec on such a file has named a wrong one.
    """
    from dpgm_core.curator.redaction import redact_source_errors
    from dpgm_core.sources import as_source
    from dpgm_core.sources.csv import CsvSource

    # Of two related tables the roots: all of them may be without children.
    source = as_source(run.data if run.terms.related is None else run.data["root"])
    cliques = run.domain.names if run.structure is None else [name for one in run.structure.cliques for name in one]
    columns = run.workload.attributes if run.workload is not None else cliques
    columns = columns if run.terms.related is None else run.terms.related.root.names
    if isinstance(source, CsvSource) and redact_source_errors(source, lambda: source.has_header_alone(columns)):
        raise DataError(f"{source.path} has no record behind the line that names its columns; nothing was charged")


def print_remarks(run: Spec) -> None:
    """Print what the owner should know before a release."""
    from dpgm_core.pipeline.planning import budget_notes
    from dpgm_core.releases.labels import load_discovery

    unused = [one.unused for one in _searches(run) if one.unused]
    for remark in (*run.remarks, *budget_notes(run.budget, run.expected_records), *unused):
        print_err(f"dpgm: {remark}")
    if run.labels_from is not None and run.ledger is not None and not load_discovery(run.labels_from).is_identified:
        print_err(
            f"dpgm: {run.labels_from} was written before ledgers had identities: that this ledger paid for its labels "
            "is checked by the ledger's name and the number and cost of the charge alone"
        )
    if run.seed is not None:
        print_err("dpgm: a seed is set: this is a simulation, and everything it writes is stamped private = false")


@contextmanager
def open_ledger(run: Spec) -> Iterator[Ledger | None]:
    """Open the ledger of a run, or create it if the spec asks for that; None, with a message, without one."""
    from dpgm_core.privacy.ledger import Ledger

    _check_amounts(run)
    if run.ledger is None:
        print_err("dpgm: no [ledger] in the spec, so nothing records what these people's data have cost so far")
        yield None
        return
    if run.ledger.create and not run.ledger.path.exists():
        _check_before_creating(run)
        assert run.ledger.budget is not None  # checked by the spec
        try:
            Ledger.create(
                run.ledger.path,
                name=run.name,
                budget=run.ledger.budget,
                account=run.ledger.account,
                other=run.ledger.other,
                neighbours=run.terms.neighbours,
                unit=run.terms.unit,
                person=run.terms.person,
                rows_per_person=run.terms.rows_per_person,
                related=run.terms.related,
            )
            print_err(f"dpgm: created ledger {run.ledger.path} with {run.ledger.budget}")
        except BudgetError:
            if not run.ledger.path.exists():
                raise  # else another run made it meanwhile; its terms are checked like those of any that exists
    ledger = Ledger.open(run.ledger.path)
    try:
        yield ledger
    except Overspent as error:
        try:
            ledger.check(
                run.to_run(ledger=ledger).charged.budget
            )  # is it the ledger that is spent, or did the learner ask for more than its budget?
        except Overspent:
            from dpgm.cli.earlier import explain_rest

            stated, words = run.ledger.budget, run.ledger.when_spent
            parts = [str(error), explain_rest(run, ledger)]
            if stated is not None and stated != ledger.budget:
                parts.append(f"a ledger keeps the budget that it was created with, and not the spec's {stated}")
            if words is not None:
                parts.append(f"the spec says of {run.ledger.path}: {words}")
            raise Overspent("; ".join(filter(None, parts))) from None
        raise


def _check_amounts(run: Spec) -> None:
    """Refuse a delta that protects nobody, and a search of columns that finds nothing, but in a simulation."""
    from dpgm_core._util.exact_numbers import decimal_text

    if run.seed is not None:
        return
    if run.budget.delta >= _MAX_DELTA:
        raise BudgetError(
            f"delta = {decimal_text(run.budget.delta)} would allow publishing one of {1 / float(run.budget.delta):.3g} "
            "records as it is; choose a delta far below 1 / number of people, such as 1e-6"
        )
    records = _MANY_RECORDS if run.expected_records is None else run.expected_records
    for plan in _searches(run):
        needed = plan.noise(len(plan.columns)).edge
        if needed > records:
            fewer = "fewer rows_per_person, " if plan.labels > 1 else ""
            raise BudgetError(
                f"nothing is found of {len(plan.columns)} columns for {plan.whole} that fewer than {needed:,} persons "
                f"have: give {_enough(plan, records)}{fewer}or describe columns in the domain"
                + ("" if run.expected_records else f", or say how many there are: --set records={2 * needed}")
            )


def _enough(plan: ColumnsPlan, records: float) -> str:
    """Return words on the least of 1e-6, 2e-6, 5e-6, 1e-5, ... as epsilon whose search needs a tenth of the records."""
    from attrs import evolve

    for power in range(-6, 1):
        for digit in (1, 2, 5):
            whole = evolve(plan.whole, epsilon=digit * Fraction(10) ** power)
            with suppress(BudgetError):
                if evolve(plan, whole=whole).noise(len(plan.columns)).edge <= records / 10:
                    return f"epsilon = {float(whole.epsilon):g} or more, "
    return "a larger epsilon, "


def _searches(run: Spec) -> list[ColumnsPlan]:
    """Return the plan of a search of columns of any type; none where a file has what was found."""
    from dpgm_core.privacy.columns import ColumnsPlan
    from dpgm_core.privacy.labels import plan_labels

    plans = plan_labels(run.domain, run.budget, run.terms) if run.labels_from is None else ()
    return [one for one in plans if isinstance(one, ColumnsPlan)]


def _check_before_creating(run: Spec) -> None:
    """Refuse invalid runs, without reading records, before a ledger is created."""
    whole = None if run.ledger is None else run.ledger.budget
    if run.labels_from is not None:
        raise BudgetError(
            f"the labels in {run.labels_from} were not charged to the ledger to be created; name the one that paid for "
            "them, --set ledger.path=..., or find them again"
        )
    if whole is not None and whole.kind == run.budget.kind and not run.budget <= whole:
        raise Overspent(f"{run.budget} was asked, but the ledger to be created holds only {whole}; ask for less")
    run.to_run().check()


# --- Progress ---

_PROGRESS_KEY = "dpgm.cli.common"


def _store_progress(context: click.Context, _: click.Parameter, how: str | None) -> None:
    context.meta[_PROGRESS_KEY] = how or "auto"


#: For every command that can take over a second; `progress_shown` reads it.
progress_option = click.option(
    "--progress",
    type=click.Choice(["plain", "bar", "none"]),
    default=None,
    expose_value=False,
    callback=_store_progress,
    help="How to show progress on stderr. Default: bars on a terminal; elsewhere lines, for steps longer than 5 s.",
)


def progress_shown() -> AbstractContextManager[Progress]:
    """Return a Progress on stderr, in the form that `--progress` chose."""
    from dpgm.progress import shown

    context = click.get_current_context(silent=True)
    return shown("auto" if context is None else context.meta.get(_PROGRESS_KEY, "auto"))


def counted_rows(
    tables: Iterable[pa.Table], progress: Progress, task: str, done: int, total: int | None
) -> Iterator[pa.Table]:
    """Yield the tables and report the number of rows, from `done` on.

    For synthetic records, and rows that their owner completes; never for records that are counted.
    """
    progress(task, done, total)
    for table in tables:
        yield table
        done += table.num_rows
        progress(task, done, total)


def paid_command(function: Callable[..., None]) -> click.Command:
    """Make the command of a run that is charged: SPEC, `--set`, `--validated`, `--again`, `--json` and `--progress`."""
    validated = "A file written by dpgm validate. It must name this domain; nothing else in it is used."
    again = "Spend budget again, although a paid run of this name did not finish."
    parts = [
        click.argument("spec", type=FILE),
        settings_option,
        click.option("--validated", type=FILE, help=validated),
        click.option("--again", is_flag=True, help=again),
        json_option,
        progress_option,
    ]
    decorated: Callable[..., None] = click.pass_obj(function)
    for part in reversed(parts):
        decorated = part(decorated)
    return click.command()(decorated)
