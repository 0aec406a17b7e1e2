"""Sampled records as files, each with its stamp."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["check_output", "write_records"]

_LARGEST = 2**20  # bytes that are read of what may be an older stamp


def write_records(table: pa.Table, output: Path, *, quoted: bool) -> None:
    """Write a table of `Model.sample`; a CSV file has quotes only if told, so that `dpgm fit` reads it as it is.

    Its stamp is in the schema's metadata. A CSV file has none, and a comment in it would be a record to most readers,
    so its stamp is the file NAME.csv.dpgm.json beside it. An earlier sample is replaced, and nothing else.
    """
    import io

    from dpgm_core.files import atomic_write

    buffer = io.BytesIO()
    if output.suffix == ".csv":
        import pyarrow.csv

        if quoted:
            pyarrow.csv.write_csv(table, buffer)
        else:
            buffer.write(",".join(table.column_names).encode() + b"\n")
            plain = pyarrow.csv.WriteOptions(include_header=False, quoting_style="none")
            pyarrow.csv.write_csv(table, buffer, plain)
    elif output.suffix == ".parquet":
        import pyarrow.parquet

        pyarrow.parquet.write_table(table, buffer)
    else:
        import pyarrow.ipc

        with pyarrow.ipc.new_file(buffer, table.schema) as writer:
            writer.write_table(table)
    check_output(output)
    output.unlink(missing_ok=True)  # an earlier sample
    if output.suffix == ".csv":
        # The stamp comes first: whatever ends this halfway, no records are without one, nor with another's.
        beside = _beside(output)
        beside.unlink(missing_ok=True)
        atomic_write(beside, json.dumps(json.loads(table.schema.metadata[b"dpgm"]), indent=2).encode() + b"\n")
    atomic_write(output, buffer.getvalue())


def check_output(path: Path) -> None:
    """Refuse, with ModelFileError, a file of samples that would replace anything but an earlier one: its stamp tells.

    The records themselves may stand there, and are no sample.
    """
    from dpgm_core.errors import ModelFileError
    from dpgm_core.files import check_writable

    stamp = _beside(path) if path.suffix == ".csv" else path
    stamped = stamp.is_file() and _is_stamp(_in_file(stamp))
    if stamp != path and stamp.exists() and not stamped:
        raise ModelFileError(
            f"{stamp} exists and is no stamp of dpgm, so no stamp can stand beside the records; name another file"
        )
    if path.is_symlink() or not stamped:
        check_writable(path)


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.name}.dpgm.json")


def _in_file(path: Path) -> bytes:
    """What may be a stamp: a JSON file's text, or the metadata `dpgm` of a Parquet or Arrow file; else nothing."""
    import pyarrow
    import pyarrow.ipc
    import pyarrow.parquet

    try:
        if path.suffix == ".json":
            with path.open("rb") as file:
                return file.read(_LARGEST)
        if path.suffix == ".parquet":
            schema = pyarrow.parquet.read_schema(path)
        else:
            with pyarrow.ipc.open_file(path) as reader:
                schema = reader.schema
        return bytes((schema.metadata or {}).get(b"dpgm", b""))
    except (OSError, pyarrow.ArrowException):
        return b""


def _is_stamp(text: bytes) -> bool:
    try:
        facts = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(facts, dict) and {"dpgm", "guarantee"} <= set(facts)
