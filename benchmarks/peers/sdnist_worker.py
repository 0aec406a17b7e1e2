"""SDNist's own report on synthetic records, made in an environment of its own. Needs nothing of dpgm.

SDNist 2.4 pins numpy, pandas and scipy, and runs on Python 3.8 to 3.11 with those.
"""

import contextlib
import csv
import io
import json
import shutil
import tempfile
from pathlib import Path


def report(folder, names, target, synthetic, full=False):
    """Return what SDNist says of synthetic records: its k-marginal score and the rows that break one of its rules.

    folder: with the excerpt, as NIST has it: ma2019.csv, ma2019.json, data_dictionary.json, mappings.json. names:
    columns. target: rows of all columns in place of those of ma2019.csv, with the names first; None for these.
    synthetic: rows of texts. full: make the whole report too, whose file must say the same; it takes half a minute to
    two, for regressions and pictures. Nothing is downloaded.
    """
    from sdnist.load import TestDatasetName
    from sdnist.report import Dataset
    from sdnist.report.__main__ import run
    from sdnist.report.score.utility import KMarginal
    from sdnist.report.score.utility.inconsistency import Inconsistencies
    from sdnist.utils import SimpleLogger

    with tempfile.TemporaryDirectory(prefix="sdnist-") as scratch, contextlib.redirect_stdout(io.StringIO()):
        root, made, out = Path(scratch, "data"), Path(scratch, "made.csv"), Path(scratch, "report")
        lay_out(Path(folder), root, target)
        write_rows(made, [names, *synthetic])
        data = Dataset(made, SimpleLogger(), TestDatasetName.ma2019, root, download=False)
        score = KMarginal(data.d_target_data, data.d_synthetic_data, data.config["k_marginal"]["group_features"])
        score.compute_score()
        examples = Path(scratch, "rows")
        examples.mkdir()
        rows = Inconsistencies(data.c_synthetic_data, examples)
        rows.compute()
        answer = {"score": int(score.score), "exact": round(float(score.score), 3)} | broken(rows.report_data)
        if len(data.features) != len(names):
            raise ValueError(f"of {names} only {data.features} were scored: {data.validation_log}")
        if full:
            out.mkdir()
            run(made, out, TestDatasetName.ma2019, root, download=False, show_report=False)
            said = json.loads((out / "report.json").read_text())
            summary = said["k_marginal"]["k_marginal_synopsys"]
            answer["subsample"] = summary["sub_sampling_equivalent"]
            if {"score": summary["k_marginal_score"]} | broken(said["inconsistencies"]) != {
                name: answer[name] for name in ("score", "inconsistent", "rules")
            }:
                raise ValueError(f"the report says {said['k_marginal']}, its parts {answer}")
    return answer


def broken(data):
    """Return how many rows break a rule, and how many break each."""
    found = [one for kind in ("age", "work", "housing") for one in data[kind]["inconsistencies"]]
    return {
        "inconsistent": len({row for one in found for row in one["inconsistent_data_indexes"]}),
        "rules": {one["inconsistency_name"]: one["inconsistency_violations"] for one in found},
    }


def lay_out(folder, root, target):
    """Write the folder in which SDNist looks for its data."""
    table = root / "massachusetts" / "ma2019.csv"
    table.parent.mkdir(parents=True)
    for name in ("data_dictionary.json", "mappings.json"):
        shutil.copy(folder / name, root / name)
    (root / "config.json").write_text("{}")  # the package's own has all settings
    shutil.copy(folder / "ma2019.json", table.with_suffix(".json"))
    if target is None:
        shutil.copy(folder / "ma2019.csv", table)
    else:
        write_rows(table, target)


def write_rows(path, rows):
    """Write a CSV file."""
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
