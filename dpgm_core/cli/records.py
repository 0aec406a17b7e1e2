"""Sampled records as files, each with its stamp."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["write_records"]

_LARGEST = 2**20  # bytes that are read of what may be an older stamp


def write_records(table: pa.Table, output: Path, *, quoted: bool) -> None:
    """Write a table of `Model.sample`; a CSV file has quotes only if told, so that `dpgm fit` reads it as it is.

    Its stamp is in the schema's metadata. A CSV file has none, and a comment in it would be a record to most readers,
    so its stamp is the file NAME.csv.dpgm.json beside it, replaced with it.
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
    if output.suffix != ".csv":
        atomic_write(output, buffer.getvalue())
        return
    beside = output.with_name(f"{output.name}.dpgm.json")
    _remove(beside)  # first: no crash leaves a stamp beside records that are not its own
    atomic_write(output, buffer.getvalue())
    atomic_write(beside, json.dumps(json.loads(table.schema.metadata[b"dpgm"]), indent=2).encode() + b"\n")


def _remove(path: Path) -> None:
    """Remove an older stamp, if there is one; refuse to touch any other file."""
    from dpgm_core.errors import ModelFileError

    try:
        with path.open("rb") as file:
            facts = json.loads(file.read(_LARGEST))
        if not isinstance(facts, dict) or not {"dpgm", "guarantee"} <= set(facts):
            raise ValueError
        path.unlink()
    except FileNotFoundError:
        return
    except (OSError, ValueError, RecursionError):
        raise ModelFileError(
            f"{path} exists and is no stamp of dpgm, so no stamp can stand beside the records; name another file"
        ) from None
