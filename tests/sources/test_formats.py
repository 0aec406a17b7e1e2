"""What the extra `formats` is for: the lines of "My 30-column CSV" that make a frame of another program's file."""

from pathlib import Path

import numpy as np
import pytest

import dpgm_core as dpgm
from dpgm_core.sources import as_source

pandas = pytest.importorskip("pandas")
ROWS = {"smoker": ["no", "yes", "yes", "no"], "age": [31, 47, 18, 64]}
PAGE = (Path(__file__).resolve().parents[2] / "docs/my-csv.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("reader", "file", "needs"),
    [("read_excel", "a.xlsx", "openpyxl"), ("read_spss", "a.sav", "pyreadstat"), ("read_stata", "a.dta", None)],
)
def test_a_file_of_another_program_has_the_codes_of_the_frame(reader, file, needs, tmp_path, monkeypatch):
    """Written by that program's library, read by the page's line: the codes are those of the rows themselves."""
    monkeypatch.chdir(tmp_path)
    writer = pytest.importorskip(needs) if needs else None
    frame = pandas.DataFrame(ROWS)
    if needs == "pyreadstat":
        writer.write_sav(frame, file)
    elif needs == "openpyxl":
        frame.to_excel(file, index=False)
    else:
        frame.to_stata(file, write_index=False)
    assert f'`frame = pandas.{reader}("{file}")`' in PAGE
    bins = {"type": "number", "bins": [0, 20, 40, 65]}
    attributes = {"smoker": {"labels": ["no", "yes"], "unknown": "no"}, "age": {"unknown": "0-20", **bins}}
    domain = dpgm.Domain.from_dict({"attributes": attributes})
    ((smoker, age),) = as_source(getattr(pandas, reader)(file)).batches(domain, domain.names)
    assert np.array_equal(smoker, [0, 1, 1, 0])
    assert np.array_equal(age, [1, 2, 0, 2])
