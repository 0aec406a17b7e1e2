"""The command `dpgm complete`, which fills the missing cells of rows from a model."""

from __future__ import annotations

import codecs
import gzip
import itertools
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, cast

import click
from attrs import evolve

from dpgm.cli.common import (
    FILE,
    counted_rows,
    json_option,
    print_err,
    print_json,
    print_left_out,
    print_out,
    progress_option,
    progress_shown,
    stamp,
)
from dpgm.cli.records import (
    DELIMITERS,
    PLAIN,
    Layout,
    Written,
    bare,
    delimiter_said,
    line_end,
    quoted,
    transcoded,
    written,
)
from dpgm_core.errors import DataError, OptionError

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from dpgm_core._util.progress import Progress
    from dpgm_core.models.completion import Completion
    from dpgm_core.models.model import Model
    from dpgm_core.sources.csv import Encoding

__all__ = ["complete"]

#: An input's ending -> what its output must end in.
_SUFFIXES = {".csv": ".csv", ".csv.gz": ".csv", ".parquet": ".parquet", ".arrow": ".arrow", ".feather": ".arrow"}


@click.command()
@click.argument("model_file", metavar="MODEL", type=FILE)
@click.argument("rows_file", metavar="ROWS", type=FILE)
@click.option("-o", "--output", type=FILE, required=True, help="The file to write, in the format of ROWS.")
@click.option(
    "--dialect",
    "dialects",
    multiple=True,
    metavar="SPEC|KEY=VALUE",
    help="CSV format of ROWS: that of SPEC's data, or delimiter= and encoding=; repeatable.",
)
@click.option("--seed", type=click.IntRange(0), default=None, help="Seed, to repeat a draw.")
@json_option
@progress_option
def complete(
    model_file: Path, rows_file: Path, output: Path, dialects: tuple[str, ...], seed: int | None, as_json: bool
) -> None:
    """Fill the missing cells of ROWS from MODEL, each given the rest of its row.

    Empty cells and null values are missing. Columns that ROWS lacks are added. Everything else is copied unchanged. The
    output holds your own ROWS, so no guarantee covers it; its stamp says so.

    Of two related tables ROWS are public roots, with their size and first.COLUMN of their first child where these are
    known, and OUTPUT are children drawn for them, with the keys of ROWS, or the numbers of their rows.
    """
    from dpgm.cli.records import check_output
    from dpgm_core._util.randomness import SeededRandomness, randomness_or_system
    from dpgm_core.models.model_file import load_model
    from dpgm_core.releases.session import caveats_of

    _check_suffixes(rows_file, output)
    dialect = _said(dialects, rows_file, output)
    check_output(output)
    if output.exists() and rows_file.exists() and output.samefile(rows_file):
        raise OptionError(f"--output {output} is ROWS itself; name another file")
    model = load_model(model_file)
    if model.related is not None:
        _complete_roots(model, model_file, rows_file, output, dialect, delimiter_said(dialects), seed, as_json)
        return
    generator = randomness_or_system(None if seed is None else SeededRandomness(seed)).generator()
    with progress_shown() as progress:
        if dialect is not None:
            columns, rows, cells = _csv(
                model, rows_file, output, dialect, delimiter_said(dialects), generator, progress
            )
        else:
            columns, rows, cells = _arrow(model, rows_file, output, generator, progress)
    known = model._completion().names
    carried = [name for name in columns if name not in known]
    added = [name for name in known if name not in columns]
    facts = _stamp(model)
    if as_json:
        named = {"rows": rows, "filled": dict(cells), "carried": carried, "added": added, "file": str(output)}
        print_json({**named, "left_out": list(model.left_out), **facts})
        return
    stamp(model_file, caveats_of(model.releases))
    print_left_out(model.left_out)
    for names, what in (
        (carried, "carried through, as the model does not know them"),
        (added, "added, as ROWS lack them"),
    ):
        if names:
            print_err(f"dpgm: {what}: {', '.join(names)}")
    print_err(f"dpgm: the given rows are in {output} as they are: NOT COVERED by any guarantee, whoever they are about")
    print_out(f"{rows} rows, {sum(cells.values())} cells filled: {output}")


def _complete_roots(
    model: Model,
    model_file: Path,
    rows_file: Path,
    output: Path,
    dialect: Written | None,
    stated: bool,
    seed: int | None,
    as_json: bool,
) -> None:
    """Draw children for public roots into a file."""
    import pyarrow as pa

    from dpgm.cli.records import write_records
    from dpgm.related import unanswered
    from dpgm_core._util.randomness import SeededRandomness
    from dpgm_core.models.related import RelatedModel
    from dpgm_core.releases.session import caveats_of

    related = model.related
    assert related is not None
    if dialect is None:
        batches, schema = _batches(rows_file)
        roots = pa.concat_tables([schema.empty_table(), *batches])
    else:
        roots = _roots(rows_file, dialect, stated, [*related.key[:1], *related.root.names])
    here = next((name for name in related.children.names if name in roots.column_names), None)
    if here is not None:
        raise OptionError(
            f"{rows_file.name} has the column {here!r}, which children have; roots get children of their own, and rows "
            "of children are not completed: leave the column out"
        )
    with progress_shown() as progress:
        progress("completing", 0, None)
        form: Literal["texts", "values"] = "values" if dialect is None else "texts"
        randomness = None if seed is None else SeededRandomness(seed)
        children = RelatedModel(model).complete(roots, form=form, randomness=randomness).children
        # Written anew, mark and all; what flat rows keep is their bytes.
        how = PLAIN if dialect is None else evolve(dialect, encoding=_encoding(dialect))
        signs = (how.delimiter, '"', "\r", "\n")
        cells = itertools.chain(
            children.column_names, *(map(str, one.unique().to_pylist()) for one in children.columns)
        )
        write_records([children], output, quoted=any(sign in text for text in cells for sign in signs), how=how)
    if as_json:
        rows = {"root": roots.num_rows, "children": children.num_rows}
        print_json({"rows": rows, "file": str(output), "left_out": list(unanswered(model)), **_stamp(model)})
        return
    stamp(model_file, caveats_of(model.releases))
    print_left_out(unanswered(model))
    print_err(f"dpgm: {output} has children of the given rows: NOT COVERED by any guarantee, whoever they are about")
    print_out(f"{roots.num_rows} roots, {children.num_rows} children: {output}")


def _roots(path: Path, how: Written, stated: bool, columns: Sequence[str]) -> pa.Table:
    """All of a CSV file, as texts."""
    import pyarrow as pa

    from dpgm_core.sources.csv import CsvSource
    from dpgm_core.sources.encoding import as_text

    source = CsvSource(path=path, delimiter=how.delimiter, encoding=cast("Encoding", _encoding(how)))
    source = source if stated else source.naming_most(columns)
    names, batches = source.names(), list(source.raw_batches(source.names()))
    if any(batch.malformed for batch in batches):
        raise DataError(f"{path} has lines with another number of fields than the first one; correct them")
    arrays = zip(*(batch.columns for batch in batches), strict=True) if batches else [[] for _ in names]
    texts = [pa.chunked_array([as_text(one).cast(pa.string()) for one in parts], pa.string()) for parts in arrays]
    return pa.table(dict(zip(names, texts, strict=True)))


def _encoding(how: Written) -> str:
    return "utf-16" if how.encoding.startswith("utf-16") else how.encoding


def _stamp(model: Model) -> dict[str, Any]:
    from dpgm_core.models.completion import stamp_own_rows

    return stamp_own_rows(model.stamp())


def _check_suffixes(rows_file: Path, output: Path) -> None:
    name = rows_file.name.lower()
    ending = next((suffix for suffix in (".csv.gz", *_SUFFIXES) if name.endswith(suffix)), None)
    if ending is None:
        raise OptionError(f"cannot read {rows_file.name}: the name must end in {', '.join(_SUFFIXES)}")
    suffix = _SUFFIXES[ending]
    if output.suffix != suffix:
        raise OptionError(f"cannot write {output.name}: completed rows keep their format; end it in {suffix}")


def _said(dialects: tuple[str, ...], rows_file: Path, output: Path) -> Written | None:
    """The dialect of a CSV file, None of others. A mark at its start that says UTF-16 needs no word."""
    if output.suffix != ".csv":
        if dialects:
            raise OptionError(f"--dialect is for CSV files, and the name {rows_file.name} is not one; leave it out")
        return None
    dialect = written(dialects)
    if dialect.line_ends != PLAIN.line_ends:
        raise OptionError("completed rows keep their line ends; leave --dialect line_ends out")
    if dialect.encoding not in ("utf-8", "utf-16"):
        return dialect
    with _opened(rows_file) as stream:
        start = stream.read(2)
    # Of what is read and written as it stands, mark and all, the byte order must be known.
    if start == codecs.BOM_UTF16_BE or (dialect.encoding == "utf-16" and start[:1] == b"\0"):
        return evolve(dialect, encoding="utf-16-be")
    if start == codecs.BOM_UTF16_LE or dialect.encoding == "utf-16":
        return evolve(dialect, encoding="utf-16-le")
    return dialect


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    """A CSV file, packed or not. Raises DataError where it cannot be read, then or later."""
    try:
        with cast(IO[bytes], (gzip.open if path.suffix.lower() == ".gz" else open)(path, "rb")) as stream:
            yield stream
    except (OSError, EOFError) as error:
        raise DataError(f"{path} cannot be read as CSV: {getattr(error, 'strerror', None) or 'damaged'}") from None


def _arrow(
    model: Model, rows_file: Path, output: Path, generator: np.random.Generator, progress: Progress
) -> tuple[Sequence[str], int, Counter[str]]:
    """Parquet and Arrow files, batch by batch: the names of their columns, the rows, and the cells filled in each."""
    from dpgm.cli.records import write_records
    from dpgm_core.domain.attribute import first_repeated

    batches, schema = _batches(rows_file)
    twice = first_repeated(schema.names)
    if twice is not None:
        raise DataError(f"{rows_file} has two columns {twice!r}; rename one")
    filling, cells, rows = model._completion(), Counter[str](), 0
    stated = {"dpgm": json.dumps(_stamp(model))}

    def filled() -> Iterator[pa.Table]:
        nonlocal rows
        for table in batches:
            completed = filling.table(table, generator, start=rows)
            for name in filling.names:
                before = table.column(name).null_count if name in table.column_names else table.num_rows
                cells[name] += before - completed.column(name).null_count
            rows += table.num_rows
            yield completed.replace_schema_metadata(stated)

    write_records(counted_rows(filled(), progress, "completing", 0, None), output, quoted=False)
    return schema.names, rows, cells


def _batches(path: Path) -> tuple[Iterator[pa.Table], pa.Schema]:
    """The tables of a Parquet or Arrow file, at least one."""
    import pyarrow as pa
    import pyarrow.parquet

    from dpgm_core._util.locations import open_regular
    from dpgm_core.models.completion import ROWS_AT_ONCE

    try:
        open_regular(path).close()
        if path.suffix.lower() == ".parquet":
            file = pyarrow.parquet.ParquetFile(path)
            schema, batches = file.schema_arrow, file.iter_batches(ROWS_AT_ONCE)
        else:
            reader = pa.ipc.open_file(pa.memory_map(str(path)))
            schema, batches = reader.schema, map(reader.get_batch, range(reader.num_record_batches))
    except (OSError, pa.ArrowException):
        raise DataError(f"{path} cannot be read as {path.suffix[1:].lower()}") from None
    return (pa.Table.from_batches([one]) for one in itertools.chain(batches, _empty(schema))), schema


def _empty(schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """A batch without rows, so that a file without rows has a schema."""
    import pyarrow as pa

    yield pa.RecordBatch.from_arrays([pa.nulls(0, one.type) for one in schema], schema=schema)


def _csv(
    model: Model,
    rows_file: Path,
    output: Path,
    how: Written,
    stated: bool,
    generator: np.random.Generator,
    progress: Progress,
) -> tuple[Sequence[str], int, Counter[str]]:
    """A CSV file, line by line; what stands in it comes out byte for byte. stated: whether `how` has its delimiter."""
    from dpgm.cli.records import take_over
    from dpgm_core._util.files import atomic_file
    from dpgm_core.models.completion import ROWS_AT_ONCE
    from dpgm_core.sources.csv import as_utf8

    filling, cells, rows = model._completion(), Counter[str](), 0
    with _opened(rows_file) as raw:
        stream = as_utf8(raw, cast("Encoding", how.encoding))
        layout = Layout(stream.readline(), filling.names, rows_file, how.delimiter.encode() if stated else DELIMITERS)
        with atomic_file(output) as file:
            file.writelines(transcoded([layout.header()], how.encoding))
            while lines := list(itertools.islice(stream, ROWS_AT_ONCE)):
                parts = [layout.fields(line, rows + number) for number, line in enumerate(lines, start=1)]
                _fill(filling, layout, parts, rows, cells, generator)
                ends = map(line_end, lines)
                completed = (layout.delimiter.join(part) + end for part, end in zip(parts, ends, strict=True))
                file.writelines(transcoded(completed, how.encoding))
                rows += len(lines)
                progress("completing", rows, None)
            take_over(output, _stamp(model))
    return layout.names, rows, cells


def _fill(
    filling: Completion,
    layout: Layout,
    parts: list[list[bytes]],
    start: int,
    cells: Counter[str],
    generator: np.random.Generator,
) -> None:
    """Put what is missing into the fields of some lines, in place."""
    import pyarrow as pa

    columns = {
        name: pa.array([bare(part[at]) for part in parts], pa.binary())
        for at, name in enumerate(layout.names)
        if name in filling.names
    }
    place = {name: at for at, name in enumerate([*layout.names, *layout.added])}
    for part in parts:
        part.extend([b""] * len(layout.added))
    for name, filled in filling.fill(columns, len(parts), generator, start=start).items():
        at = place[name]
        cells_of = zip(filled.rows.tolist(), filled.texts().to_pylist(), filled.answers.tolist(), strict=True)
        for row, text, answer in cells_of:
            if answer:
                parts[row][at] = quoted(text.encode(), layout.delimiter)
                cells[name] += 1
