"""The command `dpgm init`, which writes the two files of a run from public metadata."""

from __future__ import annotations

import os
import re
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from attrs import asdict, evolve, fields, frozen

from dpgm.cli.common import FILE, RECORDS, print_err, print_out
from dpgm_core.errors import OptionError, did_you_mean, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dpgm.spec import Spec
    from dpgm_core.domain.metadata import Metadata

__all__ = ["RowsAndColumns", "init", "print_started", "rows_and_columns_options", "start_run"]

_SHOWN = 8  # names in a line

_QUOTES = (
    "# Fields of a CSV file may stand in double quotes (quoting = true, which needs no word). If quotes are letters:\n"
    '# data = { source = "csv", path = "...", quoting = false }'
)

_SPEC = """\
# One run: what is read, what it may cost, what becomes of it. Paths are relative to this file's folder.
name = {name}
{data}
{domain}# After a look with dpgm validate: refuse to run on a domain that was changed since.
# validated = "spec.validated.json"

{whose}
# add-remove hides whether somebody is in the data; replace-one what they said, and the number of rows is public.
neighbours = {neighbours}
total = "estimated"  # the number of rows, from the noisy tables; "public" if it is published

# The whole cost of this run. A (epsilon, delta), as in {{ epsilon = {epsilon}, delta = 1e-9 }}, buys less noise, and
# labels found privately.
budget = {{ {amounts} }}

# How many rows count, if that is public, or a guess: for dpgm plan, and to be told where far fewer come out.
# records = 10000

# Which tables are measured is chosen privately, within the budget. Or name them, with all other columns alone:
# structure = {{ cliques = [["COLUMN", "ANOTHER"]], singletons = true }}
structure = {{ selector = "{selector}" }}

# What the model is for: without a word all sets of three columns, of two where there are many.
[workload]
# targets = ["COLUMN"]

# What may ever be spent on these data, in all runs together; it is recorded here.
[ledger]
path = {ledger}
budget = {{ {amounts} }}
create = true

[output]
folder = "."

# Error bars on all that the model prints; they take time, and no budget.
# [intervals]
# level = 0.9
"""


_DOMAIN = 'domain = "domain.toml"\n'

_PERSON = """\
# Whose data are protected: one person each, with so many rows at most; more are left out.
person = {person}
rows_per_person = {rows}"""

_WHOSE = """\
# Whose data are protected: one row each. If a person has several, name their key and how many rows may count:
# person = "COLUMN"
# rows_per_person = 10"""

_WHOSE_OF_TWO = """\
# Whose data are protected: a root with all its children, such as a household with its members. In your words:
# unit = "one household with all its members"
# The column of both files whose value is a root's own; it is in no table. {{ root = "id", children = "home" }} if the
# names differ.
key = {key}
# Children that count for each root. Known without the records, and never looked up in them:
# max_children = 5
# A column of the children's file that says who is first and who follows whom; it is not modelled.
# order = "COLUMN\""""


@frozen
class RowsAndColumns:
    """Whose the rows are, which columns are left out, and what happens to those that nothing describes.

    drop: names; before `with_columns` also texts of several. private: types, ranges and labels of such columns are
    found from the records. ask: each of these is asked for. is_names: the first line of a CSV file has names, although
    some look like values. encoding: of a CSV file; None takes that of its first line.
    """

    person: str | None
    rows_per_person: int | None
    drop: tuple[str, ...]
    private: bool
    ask: bool
    share: str | None = None
    is_names: bool = False
    encoding: str | None = None

    def __attrs_post_init__(self) -> None:
        from dpgm_core.components.registry import make

        if self.encoding is not None:
            make("source", "csv", path="x.csv", encoding=self.encoding)  # which checks it
        if (self.person is None) != (self.rows_per_person is None):
            raise OptionError(
                "--person and --rows-per-person go together: the column with a person's key, and how many rows of "
                "one person may count, known without the records"
            )

    def whose(self) -> str:
        """Return the lines of the spec on whose data are protected."""
        from dpgm_core._util.toml import toml_value

        if self.person is None:
            return _WHOSE
        return _PERSON.format(person=toml_value(self.person), rows=self.rows_per_person)

    def with_columns(self, columns: Sequence[str]) -> RowsAndColumns:
        """Return these with the names in the texts of `--drop`: each is a column's name, or names as in a CSV file."""
        import csv

        rows = [row for text in self.drop for row in ([[text]] if text in columns else csv.reader(text.splitlines()))]
        return evolve(self, drop=tuple(name for row in rows for name in row if name))

    def apply(self, metadata: Metadata, columns: Sequence[str]) -> Metadata:
        """Return the metadata of the columns that are modelled. columns: of the file, where it is known."""
        names = [*([] if self.person is None else [self.person]), *self.drop]
        known = columns or list(metadata.tables)
        for name in names:
            if name not in known:
                what = "--person" if name == self.person else "--drop"
                raise OptionError(f"{what}: there is no column {name!r:.60}{did_you_mean(name, known)}")
        tables = {
            name: self.open_table() if self.private and "todo" in table else table
            for name, table in metadata.tables.items()
            if name not in names
        }
        if not tables:
            raise OptionError("no column is left to model; leave one out of --drop")
        return evolve(metadata, tables=tables)

    def open_table(self) -> dict[str, object]:
        """Return the table of a column of any type. Raises DomainError for a share that is none."""
        from dpgm_core.domain.bins import exact_share

        return {"private": True} if self.share is None else {"private": True, "share": str(exact_share(self.share))}


_ANSWERS = """\
One line for each column that nothing describes; nothing is read from the records:
  private                 type, range and labels are found in the records, for a part of the budget
  labels no, yes          what it may hold
  integer 0 99            or number, date, time, with the least and the largest value
  drop                    it is not modelled
  later                   it becomes a line to do in domain.toml"""


def _ask(metadata: Metadata, rows: RowsAndColumns) -> tuple[Metadata, RowsAndColumns]:
    """Ask whose the rows are and what columns hold; answers that cannot be are asked for again."""
    from dpgm_core.errors import DomainError

    person, many, drop = rows.person, rows.rows_per_person, list(rows.drop)
    while person is None:
        named = _prompt("Column with a person's key (empty: each row is another person)", default="")
        if not named:
            break
        if named in metadata.tables:
            person = named
            many = _prompt("How many rows of a person may count", type=click.IntRange(1))
        else:
            print_err(f"dpgm: there is no column {named!r:.60}{did_you_mean(named, list(metadata.tables))}")
    tables = dict(metadata.tables)
    todo = [name for name in metadata.todo if name != person and name not in drop]
    if todo:
        print_err(_ANSWERS)
    for name in todo:
        while True:
            answer = _prompt(printable(name), default="private").strip()
            if answer == "drop":
                drop.append(name)
            elif answer != "later":
                try:
                    tables[name] = rows.open_table() if answer == "private" else _table_of_answer(name, answer)
                except DomainError as error:
                    print_err(f"dpgm: {error}")
                    continue
            break
    return evolve(metadata, tables=tables), evolve(rows, person=person, rows_per_person=many, drop=tuple(drop))


def _prompt(question: str, **how: Any) -> Any:
    """Ask on stderr. Raises OptionError where the input has ended, as without a terminal."""
    try:
        return click.prompt(question, err=True, **how)
    except click.Abort as error:
        if not isinstance(error.__context__, EOFError):  # an interrupt
            raise
        print_err("")  # ends the line of the question
        raise OptionError(
            "the input ended before --ask had its answers, so nothing was written; without a terminal leave --ask "
            "out and give --person COLUMN with --rows-per-person if a person has several rows, --drop COLUMN, and "
            "--private for columns that nothing describes"
        ) from None


def _table_of_answer(name: str, answer: str) -> dict[str, object]:
    """Return the table of a column. Raises DomainError for an answer that describes none."""
    from dpgm_core.domain.attribute_tables import attribute_fields
    from dpgm_core.errors import DomainError

    word, _, rest = answer.partition(" ")
    table: dict[str, object]
    if word == "labels" and rest:
        table = {"labels": [label.strip() for label in rest.split(",")]}
    elif word in ("integer", "number", "date", "datetime", "time") and len(rest.split()) == 2:
        ends = [_number(end) for end in rest.split()] if word in ("integer", "number") else rest.split()
        table = {"type": word, "min": ends[0], "max": ends[1]}
    else:
        raise DomainError(f"{answer!r:.60} is no answer; say private, labels a, b or integer 0 99, drop or later")
    attribute_fields(name, table)
    return table


def _number(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def rows_and_columns_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options that `RowsAndColumns` holds, which the function gets as `rows`."""
    from functools import wraps

    options = [
        click.option("--person", metavar="COLUMN", help="Column with a person's key, where a person has many rows."),
        click.option("--rows-per-person", type=click.IntRange(1), help="Rows of one person that count, at most."),
        click.option("--drop", metavar="COLUMN,...", multiple=True, help="Columns that are not modelled; repeatable."),
        click.option(
            "--private",
            is_flag=True,
            help="Find what nothing describes from the records, for a part of the budget.",
        ),
        click.option("--ask", is_flag=True, help="Ask for what nothing describes, line by line."),
        click.option(
            "--share", help="Of the budget, as mu squared, for what is found from the records.  [default: 1/20]"
        ),
        click.option(
            "--first-line-is-names",
            "is_names",
            is_flag=True,
            help="Names in the first line may look like numbers or dates.",
        ),
        click.option("--encoding", help="Of a CSV file, such as cp1252.  [default: by its first line]"),
    ]

    @wraps(function)
    def collected(*arguments: object, **named: Any) -> None:
        parts = {one.name: named.pop(one.name) for one in fields(RowsAndColumns)}
        function(*arguments, rows=RowsAndColumns(**parts), **named)

    decorated: Callable[..., None] = collected
    for option in reversed(options):
        decorated = option(decorated)
    return decorated


@click.command()
@click.argument("sources", metavar="[SOURCE [CHILDREN]]", nargs=-1, type=RECORDS)
@click.option(
    "-o", "--output", type=click.Path(file_okay=False, path_type=Path), default=Path(), help="Folder to write."
)
@click.option("--data", type=RECORDS, help="The file of records, if SOURCE only describes them.")
@click.option(
    "--codebook",
    "codebooks",
    multiple=True,
    type=FILE,
    help="Further metadata, which overrides SOURCE column by column; as CSV, a line for each code.",
)
@click.option(
    "--schema-is-public", is_flag=True, help="Use a schema's categories: they were not collected from the records."
)
@click.option("--name", help="Name of the run and its files; by default that of the data.")
@click.option("--epsilon", default="1", show_default=True, help="Epsilon of the budget, exact, such as 1 or 0.5.")
@click.option("--delta", help="Delta of the budget, far below 1 / number of people, such as 1e-9. [default: none]")
@click.option("--neighbours", default="add-remove", show_default=True, help="Or replace-one; the spec explains both.")
@click.option("--overwrite", is_flag=True, help="Replace domain.toml and spec.toml.")
@rows_and_columns_options
def init(
    sources: tuple[Path | str, ...],
    output: Path,
    data: Path | str | None,
    codebooks: tuple[Path, ...],
    schema_is_public: bool,
    name: str | None,
    epsilon: str,
    delta: str | None,
    neighbours: str,
    overwrite: bool,
    rows: RowsAndColumns,
) -> None:
    """Write domain.toml and spec.toml from public metadata. SOURCE is a schema, or a file of records that are not read.

    Of a CSV file only the first line is read; of Parquet and Arrow files, names and types. A NIST schema or data
    dictionary, a Frictionless table schema or a codebook gives more. Missing facts become `todo` lines in domain.toml,
    and a run does not start before they are filled in; with --private the run finds them itself.

    Of two related tables, such as households and persons, CHILDREN is the second one's; spec.toml then holds the
    domains of both.
    """
    from dpgm.spec import check_shared
    from dpgm_core.domain.attribute_tables import attribute_fields
    from dpgm_core.domain.domain_files import is_data, read_metadata
    from dpgm_core.domain.metadata import apply_defaults

    source = sources[0] if sources else None
    if any(isinstance(one, str) for one in sources):
        raise OptionError("init reads what describes the columns on this machine; name remote records by --data")
    if isinstance(data, str):
        check_shared("--data", data)
    if len(sources) > 1:
        more = {"--data": data is not None, "--codebook": bool(codebooks), "--person": rows.person is not None}
        more |= {"--drop": bool(rows.drop), "--private": rows.private, "--ask": rows.ask, "--share": bool(rows.share)}
        more |= {"--encoding": rows.encoding is not None}
        options = (schema_is_public, rows.is_names, epsilon, delta, neighbours)
        _init_two([one for one in sources if isinstance(one, Path)], output, name, options, more, overwrite)
        return
    assert not isinstance(source, str)
    if source is None and not codebooks:
        raise OptionError("init needs a SOURCE that describes the columns, or a --codebook")
    if source is not None and is_data(source):
        if data is not None:
            raise OptionError(f"{source.name} is a file of records, so --data is not needed; leave it out")
        data = source
    metadata = read_metadata(
        source,
        codebooks=codebooks,
        schema_is_public=schema_is_public,
        first_line_is_names=rows.is_names,
        encoding=rows.encoding,
    )
    left_out = _left_out(metadata, data, rows) if isinstance(data, Path) and data != source else ()
    rows = rows.with_columns([*metadata.tables, *left_out])
    if rows.ask:
        metadata, rows = _ask(metadata, rows)
    if delta is None and (rows.private or any("private" in table for table in metadata.tables.values())):
        raise OptionError("columns found privately have labels, which cost a delta too; give --delta, such as 1e-6")
    metadata = rows.apply(metadata, [*metadata.tables, *left_out])
    left_out = [name for name in left_out if name not in rows.drop and name != rows.person]
    for column, table in apply_defaults(metadata.tables, metadata.defaults).items():
        if "todo" not in table:
            attribute_fields(column, table)  # what a run would refuse is refused here
    amounts = {"epsilon": epsilon} if delta is None else {"epsilon": epsilon, "delta": delta}
    parts = {
        "data": _data_line(data, output, rows),
        "domain": _DOMAIN,
        "whose": rows.whose(),
        "selector": "auto",
    }
    spec = _spec(name, parts, data, amounts, neighbours)
    written = {"domain.toml": metadata.to_toml(), "spec.toml": spec}
    _write(output, written, overwrite, [one for one in (source, data, *codebooks) if isinstance(one, Path)])
    _print_summary(metadata, output, left_out, data)
    if isinstance(data, Path) and data == source and not codebooks:
        _print_records_notes(data, metadata)


def start_run(data: Path, output: Path | None, rows: RowsAndColumns, amounts: dict[str, str], undo: ExitStack) -> Path:
    """Write domain.toml and spec.toml of a file of records of which nothing else is known, and return the spec.

    undo: gets what removes them again. Raises OptionError where a spec is there already.
    """
    from dpgm_core._util.files import make_folder
    from dpgm_core._util.toml import toml_value
    from dpgm_core.domain.domain_files import read_metadata

    folder = Path(_stem(data)) if output is None else output
    spec = folder / "spec.toml"
    metadata = read_metadata(data, first_line_is_names=rows.is_names, encoding=rows.encoding)
    columns = list(metadata.tables)
    rows = rows.with_columns(columns)
    if os.path.lexists(spec):
        raise OptionError(_spec_is_there(spec, data, rows, amounts, columns))
    if rows.ask:
        metadata, rows = _ask(metadata, rows)
    metadata = rows.apply(metadata, columns)
    parts = {
        "data": _data_line(data, folder, rows),
        "domain": _DOMAIN,
        "whose": rows.whose(),
        "selector": "auto",
    }
    spec_text = _spec(None, parts, data, amounts, "add-remove")
    if len(metadata.tables) == 1:  # no pairs to choose from
        alone = f'{{ cliques = {toml_value([list(metadata.tables)])} }}\nmechanism = "gaussian"'
        spec_text = spec_text.replace('{ selector = "auto" }', alone).replace("[workload]\n", "")
    texts = {"domain.toml": metadata.to_toml(), "spec.toml": spec_text}
    with suppress(OSError):  # which is refused below
        undo.enter_context(make_folder(folder))
    _write(folder, texts, False, [data])
    for name in texts:
        undo.callback((folder / name).unlink)
    return spec


def print_started(spec: Path, run: Spec) -> None:
    """Print where the files of `start_run` are, and which rows count."""
    print_err(f"dpgm: {spec} and domain.toml beside it say what is run")
    if run.terms.person is not None:
        print_err(
            f"dpgm: of each person at most {run.terms.rows_per_person} rows count, and of all rows without a key "
            f"together; the others are left out: for their number see dpgm validate {spec}"
        )


def _spec_is_there(
    spec: Path, data: Path, rows: RowsAndColumns, amounts: dict[str, str], columns: Sequence[str]
) -> str:
    """Return of which run a spec is, and how to go on; columns: of the file of records."""
    from dpgm.cli.earlier import explain_run
    from dpgm.spec import load_spec
    from dpgm_core.errors import DpgmError
    from dpgm_core.privacy.budget import Budget

    asked = Budget.parse(amounts)
    try:
        run = load_spec(spec)
    except DpgmError as error:
        return f"{spec} is there from an earlier run, and cannot be read ({error}); name another folder, -o"
    read = run.data.get("path", "") if isinstance(run.data, dict) else run.data
    person, named = (rows.person, rows.rows_per_person or 1), (run.terms.person, run.terms.rows_per_person)
    modelled = [name for name in columns if name not in (*rows.drop, rows.person)]
    other = None
    if os.path.realpath(read) != os.path.realpath(data):
        other = f"of {read}"
    elif run.budget != asked:
        other = f"with {run.budget}, and not {asked}"
    elif person != named:
        other = "of one row each" if named[0] is None else f"with person = {named[0]!r}, rows_per_person = {named[1]}"
    elif not rows.ask and {*modelled} != {*run.domain.names}:
        other = "of other columns"
    if other is not None:
        return f"{spec} is there from an earlier run {other}; name another folder, -o"
    return f"{spec} is there from an earlier run: {explain_run(run, spec)}"


def _init_two(
    sources: Sequence[Path],
    output: Path,
    name: str | None,
    options: tuple[bool, bool, str, str | None, str],
    more: dict[str, bool],
    overwrite: bool,
) -> None:
    """Write one spec of two related tables, with both domains in it. more: options, and whether they were given."""
    from dpgm.spec import related_selector
    from dpgm_core._util.toml import toml_value
    from dpgm_core.domain.domain_files import is_data, read_metadata
    from dpgm_core.domain.metadata import Metadata
    from dpgm_core.privacy.budget import Budget

    given = next((option for option, is_given in more.items() if is_given), None)
    if given is not None:
        raise OptionError(f"{given} is for one SOURCE; leave it out, and edit spec.toml")
    if len(sources) > 2:
        raise OptionError(f"two tables can be related, and {sources[2]} is a third; leave it out")
    public, is_names, epsilon, delta, neighbours = options
    read = [read_metadata(one, schema_is_public=public, first_line_is_names=is_names) for one in sources]
    both = [column for column in read[0].tables if column in read[1].tables]
    key = both[0] if len(both) == 1 else "TODO"
    tables = [
        Metadata(
            tables={column: table for column, table in one.tables.items() if column != key},
            comments=one.comments,
            meanings=one.meanings,
            defaults=one.defaults,
            constraints=one.constraints,
        )
        for one in read
    ]
    files = [_data_value(one, output, is_names) if is_data(one) else "TODO" for one in sources]
    data = dict(zip(("root", "children"), files, strict=True))
    amounts = {"epsilon": epsilon} if delta is None else {"epsilon": epsilon, "delta": delta}
    parts = {
        "data": f"data = {toml_value(data)}",
        "domain": "",
        "whose": _WHOSE_OF_TWO.format(key=toml_value(key)),
        "selector": related_selector(Budget.parse(amounts)),
    }
    spec = _spec(name, parts, sources[0], amounts, neighbours)
    domains = [one.to_toml(f"domain.{what}.") for what, one in zip(data, tables, strict=True)]
    roots, children = domains[0], domains[1].partition("\n\n")[2]  # both have the same words at their head
    _write(output, {"spec.toml": f"{spec}\n{roots}\n# The columns of the children.\n\n{children}"}, overwrite, sources)
    for what, one in zip(data, tables, strict=True):
        print_out(
            f"{what}: {len(one.tables)} columns, {len(one.tables) - len(one.todo)} settled, {len(one.todo)} to do"
        )
        for reason, columns in _by_reason(one).items():
            print_out(f"  to do: {_listed(columns)}: {reason}")
    if key == "TODO":
        print_out(f"to do: key: the two tables have {_listed(both) if both else 'no column'} in common; name the key")
    print_out("to do: max_children: how many children of a root count; known without the records")
    path = output / "spec.toml"
    print_out(f"next: fill in what is to do in {path}, then dpgm plan {path}; dpgm validate {path}; dpgm fit {path}")


def _left_out(metadata: Metadata, data: Path, rows: RowsAndColumns) -> Sequence[str]:
    """Return columns without metadata. Raises DomainError for metadata of columns that do not exist."""
    from dpgm_core.domain.domain_files import check_columns, is_data, read_metadata

    if not data.exists() or not is_data(data):
        return ()  # not there yet, or another source's format
    columns = read_metadata(data, first_line_is_names=rows.is_names, encoding=rows.encoding).tables
    check_columns(metadata, columns, data)
    return [column for column in columns if column not in metadata.tables]


def _spec(
    name: str | None, parts: dict[str, str], data: Path | str | None, amounts: dict[str, str], neighbours: str
) -> str:
    """Return the text of the spec. Raises OptionError or BudgetError for invalid choices."""
    from dpgm_core._util.toml import toml_value
    from dpgm_core.privacy.budget import Budget

    relations = ("add-remove", "replace-one")
    if neighbours not in relations:
        raise OptionError(f"--neighbours: there is no relation {neighbours!r:.40}{did_you_mean(neighbours, relations)}")
    Budget.parse(amounts)
    if name is None:
        name = _stem(data) if data else "run"
    elif not name.strip() or not name.isprintable() or any(one in name for one in "/\\") or name.startswith("."):
        raise OptionError(f"--name {name!r:.80} names files: no slashes or line breaks, no dot at the start")
    # A number stays one; 1/3 is a text.
    written = {
        key: one if re.fullmatch(r"[0-9]+(\.[0-9]+)?(e-[0-9]+)?", one) else toml_value(one)
        for key, one in amounts.items()
    }
    return _SPEC.format(
        name=toml_value(name),
        **parts,
        neighbours=toml_value(neighbours),
        epsilon=written["epsilon"],
        amounts=", ".join(f"{key} = {one}" for key, one in written.items()),
        ledger=toml_value(f"{name}.ledger"),
    )


def _stem(data: Path | str) -> str:
    """Return the name of a run on these data."""
    from dpgm_core._util.locations import place

    stem = re.sub(r"\.(csv|tsv|txt|parquet|arrow|feather|ipc)(\.gz)?$", "", place(data).name, flags=re.IGNORECASE)
    return re.sub(r"[^\w.-]", "-", stem).lstrip(".")[:60] or "run"


def _data_line(data: Path | str | None, folder: Path, rows: RowsAndColumns) -> str:
    """Return the data line of the spec: a file name, with its dialect where that is not the default."""
    from dpgm_core._util.toml import toml_value
    from dpgm_core.domain.domain_files import CSV

    is_csv = isinstance(data, Path) and data.name.lower().endswith(CSV)
    if rows.encoding is not None and not is_csv:
        raise OptionError("--encoding is for a CSV file on this machine; leave it out, and edit spec.toml")
    if data is None:
        return 'data = "TODO"  # the file of records'
    how = data if isinstance(data, str) else _data_value(data, folder, rows.is_names, rows.encoding)
    line = f"data = {toml_value(how)}"
    return f"{_QUOTES}\n{line}" if is_csv else line


def _data_value(data: Path, folder: Path, is_names: bool, encoding: str | None = None) -> str | dict[str, object]:
    """Return a file name, or a table with its dialect where that is not the default."""
    from dpgm_core.domain.domain_files import CSV, Header, read_header

    path = os.path.relpath(data, folder) if not data.is_absolute() else str(data)
    path = Path(path).as_posix()
    if not data.name.lower().endswith(CSV):
        return path
    usual = asdict(Header(names=()))
    header = asdict(read_header(data, is_names=is_names, encoding=encoding))
    dialect = {key: value for key, value in header.items() if key != "names" and value != usual[key]}
    plain = not dialect and data.name.lower().endswith((".csv", ".csv.gz"))
    return path if plain else {"source": "csv", "path": path, **dialect}


def _write(folder: Path, texts: dict[str, str], overwrite: bool, read: Sequence[Path]) -> None:
    """Write both files or none. Existing files are replaced only with --overwrite, and input files never."""
    from dpgm_core._util.files import make_folder

    try:
        with make_folder(folder):
            for path in (folder / one for one in texts):
                if not os.path.lexists(path):
                    continue
                if any(one.exists() and path.exists() and path.samefile(one) for one in read):
                    raise OptionError(f"{path} is what is read; write to another folder with -o")
                if not overwrite:
                    raise OptionError(f"{path} exists; write to another folder with -o, or replace it with --overwrite")
                if not path.is_file() or path.is_symlink():
                    raise OptionError(f"{path} is not a regular file; write to another folder with -o")
            for name, text in texts.items():
                (folder / name).write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise OptionError(f"cannot write to the folder {folder}: {error.strerror or type(error).__name__}") from None


def _print_summary(metadata: Metadata, folder: Path, left_out: Sequence[str], data: Path | str | None) -> None:
    """Print which columns are described, what is left to do and what comes next."""
    todo = metadata.todo
    finished = len(metadata.tables) - len(todo)
    print_out(f"{folder / 'domain.toml'}: {len(metadata.tables)} columns, {finished} settled, {len(todo)} to do")
    for reason, columns in _by_reason(metadata).items():
        print_out(f"  to do: {_listed(columns)}: {reason}")
    print_out(
        f"{folder / 'spec.toml'}: "
        + ("what to run" if data is not None else "to do: name the file of records, data = ...")
    )
    if left_out:
        print_out(f"left out, as nothing describes them: {_listed(left_out)}")
    spec = folder / "spec.toml"
    what = f"fill in what is to do, then {'' if todo else 'run '}" if todo or data is None else ""
    print_out(
        f"next: {what}dpgm plan {spec}, which touches no record; dpgm validate {spec}, for the owner; dpgm fit {spec}"
    )


def _by_reason(metadata: Metadata) -> dict[str, list[str]]:
    reasons: dict[str, list[str]] = {}
    for column in metadata.todo:
        reasons.setdefault(str(metadata.tables[column]["todo"]), []).append(column)
    return reasons


def _print_records_notes(data: Path, metadata: Metadata) -> None:
    """Print notes that need a person: the first line may be a record, or the file a codebook."""
    from dpgm_core.domain.domain_files import CSV
    from dpgm_core.domain.formats.codebook import is_codebook

    if not data.name.lower().endswith(CSV):
        return
    if is_codebook(tuple(metadata.tables)):
        print_err(f"dpgm: {data.name} looks like a codebook; if it is one: dpgm init --codebook {data}")
    print_err(f"dpgm: the first line of {data.name} was taken as names; if it is a record, delete what was written")


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(printable(name) for name in names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown}, ... ({len(names)} in all)"
