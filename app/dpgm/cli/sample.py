"""The command `dpgm sample`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

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
from dpgm.cli.records import check_output, is_csv, write_records, written
from dpgm_core.components.builtins import INFERENCE
from dpgm_core.errors import OptionError

if TYPE_CHECKING:
    from dpgm_core.models.merged_codes import SampleMethod
    from dpgm_core.models.model import Model
    from dpgm_core.models.queries import Unmeasured
    from dpgm_core.models.sampling import Form

__all__ = ["sample"]


@click.command()
@click.argument("model_file", metavar="MODEL", type=FILE)
@click.option("-n", "--count", type=click.IntRange(1), required=True, help="Number of records.")
@click.option("-o", "--output", type=FILE, required=True, help="The .csv, .csv.gz, .parquet or .arrow file to write.")
@click.option("--seed", type=click.IntRange(0), default=None, help="Seed, to repeat a draw. Sampling costs no budget.")
@click.option("--inference", default=INFERENCE, show_default=True, help="Name of the inference engine.")
@click.option(
    "--method",
    type=click.Choice(["independent", "rounded"]),
    default="independent",
    show_default=True,
    help="Draw records independently, or so that their tables are the rounded expected counts.",
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
@json_option
@progress_option
def sample(
    model_file: Path,
    count: int,
    output: Path,
    seed: int | None,
    inference: str,
    method: SampleMethod,
    datasets: int | None,
    unmeasured: Unmeasured,
    evidence: tuple[str, ...],
    dialects: tuple[str, ...],
    labels: bool,
    as_json: bool,
) -> None:
    """Draw synthetic records from MODEL into a file, with their guarantee; only an earlier sample is replaced.

    Values have the type and format of their column. Numbers and dates are drawn inside their bins. A column that is
    never null (null_values = []) has a value in each record, unless records are rounded. Attributes that no release
    measured are left out and named on stderr. The guarantee of a .csv file is in OUTPUT.dpgm.json. Use rounded records
    for tables, and independent ones for analyses of variability. Rows alone never carry valid standard errors;
    `dpgm analyse` with --rows has them.
    """
    from dpgm_core._util.randomness import SeededRandomness
    from dpgm_core.releases.session import caveats_of, stamp_of

    if not is_csv(output) and output.suffix not in (".parquet", ".arrow"):
        raise OptionError(f"cannot write {output.name}: the name must end in .csv, .csv.gz, .parquet or .arrow")
    if dialects and not is_csv(output):
        raise OptionError(f"--dialect is for CSV files, and the name {output.name} is not one; leave it out")
    dialect = written(dialects)
    if datasets is not None and method != "independent":
        raise OptionError(
            "--datasets go with independent records, whose spread the analysis allows for; leave --method"
        )
    model = _load(model_file).using(inference, unmeasured=unmeasured)
    randomness = None if seed is None else SeededRandomness(seed)
    form: Form = "labels" if labels else "texts" if is_csv(output) else "values"
    fixed = parse_evidence(evidence)
    files = _numbered(output, datasets)
    for file in files:
        check_output(file)
    texts = _texts(model, form)
    dialect.check(texts)
    ends = (dialect.delimiter, '"', "\r", "\n")  # of a field
    quotes = any(sign in text for text in texts for sign in ends)
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
            write_records(rows, file, quoted=quotes, how=dialect)
    if as_json:
        facts = stamp_of(model.releases, model.guarantee())
        named = {"file": str(output)} if datasets is None else {"files": [str(file) for file in files]}
        taken = {"unmeasured": list(model.unmeasured), "unmeasured_as": unmeasured}
        how = {"inference": inference, "approximate": not model.engine.exact, "caveats": list(model.caveats)}
        print_json({"records": count, "method": method, "given": fixed, **how, **named, **taken, **facts})
        return
    stamp(model_file, caveats_of(model.releases))
    print_left_out(model.left_out)
    print_evidence_bins(model, fixed)
    if unmeasured == "uniform" and model.unmeasured:
        print_err(f"dpgm: uniform, as no release measured them: {', '.join(model.unmeasured)}")
    if not model.engine.exact:
        print_err(
            f"dpgm: approximate: {inference} draws records by chains, which follow the model as far as they converge"
        )
    for caveat in model.caveats:
        print_err(f"dpgm: {caveat}")
    for file in files:
        print_out(f"{count} synthetic records: {file}")


def _numbered(output: Path, datasets: int | None) -> list[Path]:
    """The file of one data set, or those of several: x.csv.gz -> x-1.csv.gz, x-2.csv.gz, ..."""
    if datasets is None:
        return [output]
    stem, dot, endings = output.name.partition(".csv") if is_csv(output) else (output.stem, output.suffix, "")
    return [output.with_name(f"{stem}-{number}{dot}{endings}") for number in range(1, datasets + 1)]


def _texts(model: Model, form: Form) -> list[str]:
    """What the fields of a CSV file may hold besides digits and signs."""
    texts = []
    for one in model.domain:
        if one.name not in model.left_out:
            signs = (one.matching.decimal, one.matching.thousands or "")
            written = one.labels if form == "labels" or one.edges is None else signs
            texts += [one.name, *written, *one.null_values[:1], one.values.format or ""]
    return texts


def _load(path: Path) -> Model:
    from dpgm_core.models.model_file import load_model

    return load_model(path)
