"""The source that the README explains is what it says."""

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("dask", reason="dask is not installed")

import dpgm_core as dpgm


def test_the_readmes_source_sums_as_the_embedded_path_does(tmp_path):
    """Its blocks run as they stand; a seeded release over three files is that of one table; sixty lines or fewer."""
    readme = Path(__file__).parents[1].joinpath("README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    names: dict = {}
    for block in blocks:
        exec(block, names)
    assert len(blocks) == 2 and len(blocks[0].splitlines()) <= 60
    table = pa.table({name: np.random.default_rng(place).integers(0, 3, 400) for place, name in enumerate("ab")})
    paths = [str(tmp_path / f"{number}.parquet") for number in range(3)]
    for number, path in enumerate(paths):
        pq.write_table(table.slice(150 * number, 150), path)
    structure = dpgm.Structure.chain(dpgm.Domain.from_sizes({"a": 3, "b": 3}))

    def released(data):
        seeded = dpgm.SeededRandomness(1)
        return dpgm.release(data, structure, dpgm.Budget.pure(1), neighbours="add-remove", randomness=seeded)

    source = names["FilesSource"](paths=paths)
    np.testing.assert_array_equal(released(source).tables.values, released(table).tables.values)
    with pytest.raises(dpgm.DataError, match="no column 'c'"):
        structure = dpgm.Structure(dpgm.Domain.from_sizes({"c": 3}), [("c",)])
        released(source)
