"""Sampled records as files, each with its stamp."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from dpgm_core.cli.dialect import PLAIN, Written, is_csv, sink
from dpgm_core.models.stamped import read_stamp, sidecar_path

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["check_output", "records_of", "take_over", "write_records"]


def write_records(tables: Iterable[pa.Table], output: Path, *, quoted: bool, how: Written = PLAIN) -> None:
    """Write tables of `Model.sample_batches`, one after the other; a CSV file has quotes only if told, so that
    `dpgm fit` reads it as it is. how: its dialect.

    Their stamp is in the schema's metadata. A CSV file has none, and a comment in it would be a record to most readers,
    so its stamp is the file NAME.csv.dpgm.json beside it. An earlier sample is replaced, and nothing else.
    """
    from dpgm_core.files import atomic_file

    parts = iter(tables)
    first = next(parts)
    with atomic_file(output) as file:
        with _writer(file, first.schema, output, quoted, how) as write:
            for table in itertools.chain([first], parts):
                write(table)
        facts = json.loads(first.schema.metadata[b"dpgm"])
        if (how.delimiter, how.encoding) != (PLAIN.delimiter, PLAIN.encoding):  # for `dpgm compare`
            facts["dialect"] = {"delimiter": how.delimiter, "encoding": how.encoding}
        take_over(output, facts)


def take_over(output: Path, stamp: Mapping[str, Any]) -> None:
    """Make way for records that are ready: an earlier sample goes, and a CSV file's stamp is put beside it.

    The stamp comes first: whatever ends this halfway, no records are without one, nor with another's.
    """
    from dpgm_core.files import atomic_write

    check_output(output)
    output.unlink(missing_ok=True)
    if is_csv(output):
        stamp_file = sidecar_path(output)
        stamp_file.unlink(missing_ok=True)
        atomic_write(stamp_file, json.dumps(stamp, indent=2).encode() + b"\n")


@contextmanager
def _writer(
    file: IO[bytes], schema: pa.Schema, output: Path, quoted: bool, how: Written
) -> Iterator[Callable[[pa.Table], object]]:
    """What writes tables of one schema to a file of this kind."""
    if output.suffix == ".parquet":
        import pyarrow.parquet

        with pyarrow.parquet.ParquetWriter(file, schema) as parquet:
            yield parquet.write_table
    elif output.suffix == ".arrow":
        import pyarrow.ipc

        with pyarrow.ipc.new_file(file, schema) as arrow:
            yield arrow.write_table
    else:
        import pyarrow.csv

        # Names in quotes tell whoever reads the file without them that there are some, see `column_names`.
        mixed, quoted, delimiter = quoted and not how.quoting, quoted or how.quoting, how.delimiter
        style = "needed" if quoted else "none"
        names = [f'"{name.replace(chr(34), chr(34) * 2)}"' if quoted else name for name in schema.names]
        options = pyarrow.csv.WriteOptions(include_header=False, quoting_style=style, delimiter=delimiter)
        with sink(file, output, how) as lines:
            lines.write(delimiter.join(names).encode() + b"\n")
            yield (
                lambda table: (
                    _write_lines(table, lines, delimiter) if mixed else pyarrow.csv.write_csv(table, lines, options)
                )
            )


def _write_lines(table: pa.Table, lines: IO[bytes], delimiter: str) -> None:
    """Lines whose fields have quotes where they need them; pyarrow puts all texts in quotes, or none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not table.num_rows:
        return
    mark, nothing, sign = (pa.scalar(text, pa.large_string()) for text in ('"', "", delimiter))
    columns = []
    for column in table.itercolumns():
        cells = column.combine_chunks()
        cells = cells if pa.types.is_dictionary(cells.type) else cells.dictionary_encode()
        plain = cells.dictionary.cast(pa.large_string())
        inside = pc.binary_join_element_wise(mark, pc.replace_substring(plain, '"', '""'), mark, nothing)
        needs = pc.match_substring_regex(plain, f'[{re.escape(delimiter)}"\r\n]|^$')  # an empty text is no null
        columns.append(pc.if_else(needs, inside, plain).take(cells.indices).fill_null(""))
    joined = pc.binary_join_element_wise(*columns, sign)
    whole = pa.LargeListArray.from_arrays(pa.array([0, len(joined)], pa.int64()), joined)
    lines.write(pc.binary_join(whole, pa.scalar("\n", pa.large_string()))[0].as_buffer())
    lines.write(b"\n")


def records_of(data: Path | str) -> object:
    """Records named by a file or a URL, or by the spec that says how to read them."""
    if isinstance(data, str) or data.suffix != ".toml":
        return data
    from dpgm_core.spec import load_spec

    return load_spec(data).data


def check_output(path: Path) -> None:
    """Refuse, with ModelFileError, a file of samples that would replace anything but an earlier one: its stamp tells.

    The records themselves may stand there, and are no sample.
    """
    from dpgm_core.errors import ModelFileError
    from dpgm_core.files import check_writable

    stamp = sidecar_path(path) if is_csv(path) else path
    stamped = stamp.is_file() and read_stamp(stamp) is not None
    if stamp != path and stamp.exists() and not stamped:
        raise ModelFileError(
            f"{stamp} exists and is no stamp of dpgm, so no stamp can stand beside the records; name another file"
        )
    if path.is_symlink() or not stamped:
        check_writable(path)
