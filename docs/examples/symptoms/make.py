"""Draws the 4,000 records of symptoms.csv from the truth beside it: `python docs/examples/symptoms/make.py`."""

import csv
import tomllib
from pathlib import Path

import numpy as np

from dpgm_core import Domain, Model, SeededRandomness, Structure, Tables

HERE = Path(__file__).parent

truth = tomllib.loads((HERE / "truth.toml").read_text(encoding="utf-8"))
couplings = {(one, other): size for one, other, size in truth["edges"]}
domain = Domain.load(HERE / "domain.toml")
structure = Structure(domain, [*couplings, *((name,) for name in domain.names)])
signs = np.array([1, -1])
tables = [size * np.outer(signs, signs) for size in couplings.values()] + [truth["field"] * signs for _ in domain]
model = Model(structure, Tables(structure, np.concatenate([table.ravel() for table in tables])))
records = model.sample(4000, randomness=SeededRandomness(2020))
with (HERE / "symptoms.csv").open("w", newline="", encoding="utf-8") as file:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(records.column_names)
    writer.writerows(zip(*(column.to_pylist() for column in records.columns), strict=True))
