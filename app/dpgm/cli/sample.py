"""The command `dpgm sample`."""

from __future__ import annotations

import datetime
import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from attrs import frozen

from dpgm.cli.common import (
    FILE,
    counted_rows,
    evidence_option,
    json_option,
    parse_evidence,
    print_err,
    print_evidence_bins,
    print_json,
    print_left_out,
    print_out,
    progress_option,
    progress_shown,
    stamp,
)
from dpgm.cli.query import DEFAULT_REPLICATES, with_replicates
from dpgm.cli.records import PLAIN, Written, check_output, is_csv, write_records, written
from dpgm_core.components.builtins import INFERENCE
from dpgm_core.errors import OptionError, PluginError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa

    from dpgm_core.domain.attribute import Attribute
    from dpgm_core.models.merged_codes import SampleMethod
    from dpgm_core.models.model import Model
    from dpgm_core.models.queries import Unmeasured
    from dpgm_core.models.sampling import Form

__all__ = ["sample"]


@click.command()
@click.argument("model_file", metavar="MODEL", type=FILE)
@click.option(
    "-n",
    "--count",
    type=click.IntRange(1),
    help="Number of records; of two related tables of roots, by default as many.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    required=True,
    help="The .csv, .csv.gz, .parquet or .arrow file to write; of two related tables a folder.",
)
@click.option("--seed", type=click.IntRange(0), default=None, help="Seed, to repeat a draw. Sampling costs no budget.")
@click.option("--inference", default=INFERENCE, show_default=True, help="Name of the inference engine.")
@click.option(
    "--method",
    type=click.Choice(["independent", "rounded"]),
    default=None,
    help="Draw records independently, or so that their tables are the rounded expected counts. [default: independent; "
    "of two related tables rounded]",
)
@click.option(
    "--datasets",
    type=click.IntRange(2, 1000),
    default=None,
    help="Number of files, OUTPUT-1 and so on, which differ as much as the model is uncertain.",
)
@click.option(
    "--unmeasured",
    type=click.Choice(["omit", "uniform"]),
    default="omit",
    show_default=True,
    help="Leave out the attributes that no release measured, or draw them uniformly.",
)
@evidence_option
@click.option(
    "--dialect",
    "dialects",
    multiple=True,
    metavar="SPEC|KEY=VALUE",
    help="CSV format: that of SPEC's data, or delimiter=, encoding=, quoting=true, line_ends=crlf; repeatable.",
)
@click.option("--labels", is_flag=True, help="Write labels of the domain, also of bins, instead of values.")
@click.option(
    "--made-up",
    "made_up",
    multiple=True,
    metavar="COLUMN=GENERATOR",
    help="Add a column that Faker makes up, such as name=name or town=city:de_DE; repeatable. It does not "
    "depend on the records.",
)
@json_option
@progress_option
def sample(  # noqa: PLR0913 - each option is a parameter
    model_file: Path,
    count: int | None,
    output: Path,
    seed: int | None,
    inference: str,
    method: SampleMethod | None,
    datasets: int | None,
    unmeasured: Unmeasured,
    evidence: tuple[str, ...],
    dialects: tuple[str, ...],
    labels: bool,
    made_up: tuple[str, ...],
    as_json: bool,
) -> None:
    """Draw synthetic records from MODEL into a file, with their guarantee; only an earlier sample is replaced.

    Values have the type and format of their column. Numbers and dates are drawn inside their bins. A column that is
    never null (null_values = []) has a value in each record, unless records are rounded. Attributes that no release
    measured are left out and named on stderr. The guarantee of a .csv file is in OUTPUT.dpgm.json. Use rounded records
    for tables, and independent ones for analyses of variability. Rows alone never carry valid standard errors;
    `dpgm analyse` with --rows has them.

    Of a model of two related tables OUTPUT is a folder for two files, named as the data files; each key of the one is
    in the other.
    """
    from dpgm_core._util.randomness import SeededRandomness
    from dpgm_core.releases.session import caveats_of, stamp_of

    is_file = is_csv(output) or output.suffix in (".parquet", ".arrow")
    if not is_file and _load(model_file).related is not None:
        model = _load(model_file).using(inference, unmeasured=unmeasured)
        given = {"--datasets": datasets is not None, "--given": bool(evidence), "--made-up": bool(made_up)}
        refused = next((option for option, is_given in given.items() if is_given), None)
        if refused is not None:
            raise OptionError(
                f"{refused} is for models of one table, and this one is of two related ones; leave it out"
            )
        _sample_two(model, model_file, output, count, method or "rounded", seed, dialects, labels, as_json)
        return
    if not is_file:
        raise OptionError(f"cannot write {output.name}: the name must end in .csv, .csv.gz, .parquet or .arrow")
    if count is None:
        raise click.UsageError("Missing option '-n' / '--count'.", click.get_current_context())
    if output.is_dir():
        raise click.UsageError(f"File {str(output)!r} is a directory.", click.get_current_context())
    method = method or "independent"
    if dialects and not is_csv(output):
        raise OptionError(f"--dialect is for CSV files, and the name {output.name} is not one; leave it out")
    dialect = written(dialects)
    if datasets is not None and method != "independent":
        raise OptionError(
            "--datasets go with independent records, whose spread the analysis allows for; leave --method"
        )
    model = _load(model_file).using(inference, unmeasured=unmeasured)
    if model.related is not None:
        raise OptionError(
            f"the model is of two related tables, which are two files in a folder: --output {output.stem}, not "
            f"{output.name}"
        )
    randomness = None if seed is None else SeededRandomness(seed)
    form: Form = "labels" if labels else "texts" if is_csv(output) else "values"
    fixed = parse_evidence(evidence, model)
    files = _numbered(output, datasets)
    for file in files:
        check_output(file)
    written_ones = [one for one in model.domain if one.name not in model.left_out]
    more = MadeUp.of(made_up, [one.name for one in written_ones]) if made_up else None
    texts = [*_texts(written_ones, form), *([] if more is None else more.generators)]
    dialect.check(texts)
    ends = (dialect.delimiter, '"', "\r", "\n")  # of a field
    quotes = more is not None or any(sign in text for text in texts for sign in ends)
    drawn = [model]
    if datasets is not None:
        if len(model.replicates) < datasets:
            refitted = with_replicates(_load(model_file), model_file, max(datasets, DEFAULT_REPLICATES), seed)
            model = refitted.using(inference, unmeasured=unmeasured)
        drawn = list(model.replicates[:datasets])
    with progress_shown() as progress:
        for number, (one, file) in enumerate(zip(drawn, files, strict=True)):
            tables = one.sample_batches(count, method=method, given=fixed, form=form, randomness=randomness)
            rows = counted_rows(tables, progress, "sampling", number * count, len(files) * count)
            of_file = None if seed is None else f"{seed} {number}"
            rows = rows if more is None else more.appended(rows, of_file, dialect)
            write_records(rows, file, quoted=quotes, how=dialect)
    if as_json:
        facts = stamp_of(model.releases, model.guarantee())
        named = {"file": str(output)} if datasets is None else {"files": [str(file) for file in files]}
        taken = {"unmeasured": list(model.unmeasured), "unmeasured_as": unmeasured}
        how = {"inference": inference, "approximate": not model.engine.exact, "caveats": list(model.caveats)}
        made = {} if more is None else {"made_up": list(more.generators)}
        print_json({"records": count, "method": method, "given": fixed, **how, **named, **made, **taken, **facts})
        return
    stamp(model_file, caveats_of(model.releases))
    print_left_out(model.left_out)
    print_evidence_bins(model.domain, fixed)
    if unmeasured == "uniform" and model.unmeasured:
        print_err(f"dpgm: uniform, as no release measured them: {', '.join(model.unmeasured)}")
    if not model.engine.exact:
        print_err(
            f"dpgm: approximate: {inference} draws records by chains, which follow the model as far as they converge"
        )
    for caveat in model.caveats:
        print_err(f"dpgm: {caveat}")
    if more is not None:
        print_err(f"dpgm: made up, independent of the records: {', '.join(more.generators)}")
    for file in files:
        print_out(f"{count} synthetic records: {file}")


# --- Columns that are made up: names, postcodes and the like from public generators, independent of the records

_KINDS = (str, int, datetime.date)
_SHAPE = "COLUMN=GENERATOR, such as name=name, or of a country town=city:de_DE"


@frozen
class MadeUp:
    """Columns with the generators of Faker that fill them. Each value is drawn by itself, whatever else a record has.

    generators: column -> its generator, and its locale or nothing.
    """

    generators: dict[str, tuple[str, str | None]]

    @classmethod
    def of(cls, options: Iterable[str], others: Sequence[str]) -> MadeUp:
        """Return what `--made-up` says; others: columns that there are. Raises OptionError and PluginError."""
        generators: dict[str, tuple[str, str | None]] = {}
        for text in options:
            column, _, how = text.partition("=")
            generator, _, place = how.partition(":")
            if not column or not generator:
                raise OptionError(f"--made-up {text!r:.80}: say {_SHAPE}")
            if column in others or column in generators:
                raise OptionError(f"--made-up: the records have a column {column!r:.80} already")
            generators[column] = generator, place or None
        made = cls(generators)
        for column, (generator, locale) in generators.items():
            made._check(column, generator, locale)
        return made

    def _check(self, column: str, generator: str, locale: str | None) -> None:
        try:
            fake = _faker(locale)
        except AttributeError:  # as Faker refuses a locale
            raise OptionError(f"--made-up: Faker knows no locale {locale!r:.40}; say one such as de_DE") from None
        known = [name for name in dir(fake) if not name.startswith(("_", "seed", "add_", "set_", "get_", "del_"))]
        if generator not in known:
            raise OptionError(f"--made-up: Faker makes no {generator!r:.40}{did_you_mean(generator, known)}")
        try:
            value = fake.format(generator)
        except (TypeError, ValueError, AttributeError):
            value = None
        if isinstance(value, bool) or not isinstance(value, _KINDS):
            raise OptionError(f"--made-up {column}={generator}: that makes no text, whole number or date")

    def appended(self, tables: Iterable[pa.Table], seed: str | None, how: Written) -> Iterator[pa.Table]:
        """Yield the tables with the columns at their end, named in their stamp as made up. how: refuses values."""
        import pyarrow as pa

        fakes = {column: _faker(locale) for column, (_, locale) in self.generators.items()}
        for number, fake in enumerate(fakes.values()):
            if seed is not None:
                fake.seed_instance(f"{seed} {number}")
        for table in tables:
            stamp = json.loads((table.schema.metadata or {})[b"dpgm"])
            stamp["made_up"] = {column: generator for column, (generator, _) in self.generators.items()}
            for column, fake in fakes.items():
                make = getattr(fake, self.generators[column][0])
                values = [str(make()).replace("\n", ", ") for _ in range(table.num_rows)]
                how.check(values)
                table = table.append_column(column, pa.array(values, pa.string()))
            yield table.replace_schema_metadata({"dpgm": json.dumps(stamp)})


def _faker(locale: str | None) -> Any:
    try:
        from faker import Faker
    except ImportError:
        raise PluginError("columns that are made up need Faker: pip install 'dpgm[faker]'") from None
    return Faker(locale)


def synthetic_file(spec: Path, name: str) -> Path:
    """Return the file of synthetic records beside a spec."""
    return spec.with_name(f"{name}.synthetic.csv")


def draw_like(model: Model, count: int, spec: Path, name: str) -> Path:
    """Draw records into a CSV file beside the spec of the model's data, in the dialect of these."""
    output = synthetic_file(spec, name)
    check_output(output)
    dialect = PLAIN
    with suppress(OptionError):  # of data that are no CSV file
        dialect = written([str(spec)])
    texts = _texts([one for one in model.domain if one.name not in model.left_out], "texts")
    dialect.check(texts)
    quotes = any(sign in text for text in texts for sign in (dialect.delimiter, '"', "\r", "\n"))
    with progress_shown() as progress:
        tables = model.sample_batches(count, form="texts")
        write_records(counted_rows(tables, progress, "sampling", 0, count), output, quoted=quotes, how=dialect)
    return output


def _sample_two(
    model: Model,
    model_file: Path,
    folder: Path,
    count: int | None,
    method: SampleMethod,
    seed: int | None,
    dialects: tuple[str, ...],
    labels: bool,
    as_json: bool,
) -> None:
    """Draw two related tables into a folder, with one stamp: which files belong together, by a common number."""
    import secrets

    from dpgm.related import file_names, unanswered
    from dpgm_core._util.files import make_folder
    from dpgm_core._util.randomness import SeededRandomness
    from dpgm_core.models.related import RelatedModel
    from dpgm_core.releases.session import caveats_of, stamp_of

    names = file_names(model)
    files = [folder / name for name in names]
    if dialects and not is_csv(files[0]):
        raise OptionError(f"--dialect is for CSV files, and the name {names[0]} is not one; leave it out")
    dialect = written(dialects)
    randomness = None if seed is None else SeededRandomness(seed)
    form: Form = "labels" if labels else "texts" if is_csv(files[0]) else "values"
    answers, related = RelatedModel(model), model.related
    assert related is not None
    columns = [*filter(None, (*related.key, related.order))]
    texts = [*columns, *_texts(answers.domain, form)]
    dialect.check(texts)
    quotes = any(sign in text for text in texts for sign in (dialect.delimiter, '"', "\r", "\n"))
    with make_folder(folder), progress_shown() as progress:
        for file in files:
            check_output(file)
        progress("sampling", 0, None)
        drawn = answers.sample(count, method=method, form=form, randomness=randomness)
        rows = {"root": drawn.root.num_rows, "children": drawn.children.num_rows}
        # With a seed by the numbers of rows too, so that tables of two samples are not taken for one.
        number = secrets.token_hex(8) if seed is None else f"seed {seed}, {rows['root']} x {rows['children']}"
        for table, file in zip((drawn.root, drawn.children), files, strict=True):
            stated = json.loads(table.schema.metadata[b"dpgm"])
            stated |= {"sample": number, "tables": dict(zip(("root", "children"), names, strict=True))}
            stated_table = table.replace_schema_metadata({"dpgm": json.dumps(stated)})
            write_records([stated_table], file, quoted=quotes, how=dialect)
    left_out = unanswered(model)
    if as_json:
        facts = stamp_of(model.releases, model.guarantee())
        named = {"files": list(map(str, files)), "sample": number, "left_out": list(left_out)}
        print_json({"records": rows, "method": method, **named, **facts})
        return
    stamp(model_file, caveats_of(model.releases))
    print_left_out(left_out)
    for file, (what, one) in zip(files, rows.items(), strict=True):
        print_out(f"{one} synthetic {'roots' if what == 'root' else what}: {file}")


def _numbered(output: Path, datasets: int | None) -> list[Path]:
    """The file of one data set, or those of several: x.csv.gz -> x-1.csv.gz, x-2.csv.gz, ..."""
    if datasets is None:
        return [output]
    stem, dot, endings = output.name.partition(".csv") if is_csv(output) else (output.stem, output.suffix, "")
    return [output.with_name(f"{stem}-{number}{dot}{endings}") for number in range(1, datasets + 1)]


def _texts(attributes: Iterable[Attribute], form: Form) -> list[str]:
    """What the fields of a CSV file may hold besides digits and signs."""
    texts = []
    for one in attributes:
        signs = (one.matching.decimal, one.matching.thousands or "", one.matching.symbol or "")
        written = one.labels if form == "labels" or one.edges is None else signs
        texts += [one.name, *written, *one.null_values[:1], one.values.format or ""]
    return texts


def _load(path: Path) -> Model:
    from dpgm_core.models.model_file import load_model

    return load_model(path)
