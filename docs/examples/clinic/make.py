"""Draws the 5,000 records of clinic.csv from the made-up network beside it: `python docs/examples/clinic/make.py`."""

import csv
from pathlib import Path

from dpgm.interop import read_bif
from dpgm_core import Model, SeededRandomness

HERE = Path(__file__).parent

records = Model(*read_bif(HERE / "clinic.bif")).sample(5000, randomness=SeededRandomness(2020))
with (HERE / "clinic.csv").open("w", newline="", encoding="utf-8") as file:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(records.column_names)
    writer.writerows(zip(*(column.to_pylist() for column in records.columns), strict=True))
