"""The benchmark of SDNist's report: columns and rules of the excerpt, SDNist's score by a rewrite, and a small run."""

import csv
import itertools
import json
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("joblib")

from benchmarks import sdnist
from benchmarks.cases.acs import (
    EDGES,
    TEN,
    acs_domain,
    acs_table,
    acs_workload,
    as_published,
    decode,
    encode,
)
from benchmarks.harness.alone import alone
from benchmarks.harness.main import main
from benchmarks.harness.runs import read
from benchmarks.peers import sdnist_worker
from benchmarks.peers.environments import python_of
from dpgm_core import Budget, SeededRandomness, fit

NULLS = ("MSP", "NOC", "NPF", "INDP", "INDP_CAT", "EDU", "PINCP", "PINCP_DECILE", "POVPIP", "DVET", "DREM", "DPHY")
AREAS = {"25-00503": "2872.7", "25-00703": "2195.3"}
INDUSTRIES = {"770": "3", "3990": "4", "4070": "5", "7860": "11", "9920": "18"}
CODES = {
    "PUMA": [*AREAS, "48-02510"], "SEX": "12", "MSP": "123456", "HISP": "01234", "RAC1P": "123456789",
    "HOUSING_TYPE": "123", "OWN_RENT": "012", "INDP_CAT": [*map(str, range(19))], "EDU": [*map(str, range(1, 13))],
    "PINCP_DECILE": "9876543210", "DVET": "123456", "DREM": "12", "DPHY": "12", "DEYE": "12", "DEAR": "12",
}  # fmt: skip
RANGES = {
    "AGEP": (0, 99), "NOC": (0, 19), "NPF": (2, 20), "DENSITY": (16.3, 52864.7), "PINCP": (-9000, 1341000),
    "POVPIP": (0, 501), "PWGTP": (1, 9999), "WGTP": (0, 9999),
}  # fmt: skip


def person(rng):
    """Return a made-up row that breaks no rule of the survey."""
    age, kind = int(rng.choice(100)), int(rng.choice(3, p=(0.7, 0.1, 0.2))) + 1
    area, industry = str(rng.choice(list(AREAS))), str(rng.choice([*INDUSTRIES, "N"]))
    one = {name: str(rng.choice(list("12"))) for name in ("SEX", "DREM", "DPHY", "DEYE", "DEAR", "DVET", "MSP")}
    one |= {"PUMA": area, "DENSITY": AREAS[area], "AGEP": str(age), "HISP": "0", "RAC1P": str(rng.choice(9) + 1)}
    size = int(rng.integers(2, 5))
    family = {"NPF": str(size), "NOC": str(rng.integers(size)), "OWN_RENT": str(rng.choice(2) + 1), "WGTP": "20"}
    one |= family if kind == 1 else dict.fromkeys(family, "N") | {"OWN_RENT": "0", "WGTP": "0"}
    one |= {"INDP": industry, "INDP_CAT": INDUSTRIES.get(industry, "N"), "HOUSING_TYPE": str(kind)}
    one |= {"PINCP": str(float(rng.choice(90_000))), "PINCP_DECILE": str(rng.choice(10)), "PWGTP": str(age + 1)}
    one |= {"POVPIP": str(rng.choice(502)), "EDU": "N" if age < 3 else str(rng.integers(1, 5 if age < 5 else 12))}
    young = [*("MSP", "PINCP", "PINCP_DECILE", "INDP", "INDP_CAT", "DVET")] * (age < 15) + ["DREM", "DPHY"] * (age < 5)
    return one | dict.fromkeys(young, "N")


@pytest.fixture(scope="module")
def excerpt(tmp_path_factory):
    """Return a folder like NIST's, of 300 made-up people."""
    folder = tmp_path_factory.mktemp("data") / "nist_acs_ma2019"
    folder.mkdir()
    rows = [person(np.random.default_rng(seed)) for seed in range(300)]
    with (folder / "ma2019.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    codes = {name: dict.fromkeys(some, "text") for name, some in CODES.items()}
    codes |= {name: {"min": low, "max": high} for name, (low, high) in RANGES.items()}
    dictionary = {name: {"description": name, "values": values} for name, values in codes.items()}
    for name in set(NULLS) - {"INDP"}:
        dictionary[name] = {"description": name, "values": {"N": "none", **codes[name]}}
    dictionary["INDP"] = {"description": "INDP", "details": "many"}
    schema = {name: {"dtype": "object", "values": list(CODES[name])} for name in CODES}
    schema |= {name: {"dtype": "int64", **codes[name]} for name in RANGES}
    schema |= {name: {"dtype": "object", "values": ["N", "2", "3"]} for name in ("NOC", "NPF")}
    schema |= {"INDP": {"dtype": "object", "values": ["N", *INDUSTRIES]}}
    schema["DENSITY"]["dtype"] = "float64"
    schema["PUMA"] = {"dtype": "object", "values": list(AREAS)}
    for name in NULLS:
        schema[name] |= {"dtype": "object", "has_null": True, "null_value": "N"}
    (folder / "data_dictionary.json").write_text(json.dumps(dictionary))
    (folder / "ma2019.json").write_text(json.dumps({"schema": schema}))
    return folder


def breaks(row):
    """Return whether a row of texts breaks a rule, stated here a second time."""
    age, kind, children, family = int(row["AGEP"]), row["HOUSING_TYPE"], row["NOC"], row["NPF"]
    null = {name for name in row if row[name] == "N"}
    adult = {"MSP", "PINCP", "PINCP_DECILE"}
    degree = 0 if row["EDU"] == "N" else int(row["EDU"])
    return (
        (age < 15 and not adult | {"DVET", "INDP", "INDP_CAT"} <= null)
        or (age >= 15 and bool(adult & null))
        or (age < 5) != ("DREM" in null)
        or (age < 5) != ("DPHY" in null)
        or (age < 3) != (degree == 0)
        or degree >= (5 if age < 5 else 12 if age < 15 else 13)
        or INDUSTRIES.get(row["INDP"], "N") != row["INDP_CAT"]
        or (kind == "1") != (row["WGTP"] != "0")
        or (kind == "1") != (row["OWN_RENT"] != "0")
        or (kind == "1") != (children != "N")
        or (kind != "1" and family != "N")
        or ("N" not in (children, family) and int(children) >= int(family))
        or AREAS[row["PUMA"]] != row["DENSITY"]
    )


@pytest.mark.landing
@pytest.mark.parametrize("private", [False, True])
def test_no_row_of_a_model_breaks_a_rule(excerpt, private):
    """With bins by hand and private ones; most rows of independent columns do."""
    domain, table = acs_domain(excerpt, private=private), acs_table(excerpt)
    assert not any(map(breaks, table.to_pylist()))
    terms = {"neighbours": "add-remove", "randomness": SeededRandomness(1)}
    model = fit(table, "auto", Budget.approx(1, "1e-6"), workload=acs_workload(domain), **terms).model
    made = as_published(model.sample(500, method="rounded", form="texts", randomness=SeededRandomness(2)))
    assert set(made.column_names) == set(table.column_names) and not any(map(breaks, made.to_pylist()))
    if not private:
        rng = np.random.default_rng(1)
        independent = np.column_stack([rng.permutation(column) for column in encode(table, domain).T])
        assert sum(map(breaks, decode(independent, domain, rng).to_pylist())) > 150


def test_texts_of_codes_fall_into_their_bins(excerpt):
    """What peers return as codes is written as the excerpt has it, and read as the same codes."""
    domain, rng = acs_domain(excerpt), np.random.default_rng(1)
    codes = np.column_stack([rng.integers(one.size, size=200) for one in domain])
    made = decode(codes, domain, rng)
    assert np.array_equal(encode(made, domain), codes)
    assert {"0"} < set(made["WGTP"].to_pylist()) and "N" not in made["WGTP"].to_pylist()
    assert max(int(value) for value in made["POVPIP"].to_pylist() if value != "N") == 501


def test_labels_are_those_of_the_dictionary_and_not_of_the_records(excerpt):
    """But for areas and industries, of which it says others or nothing; columns that are always there have no label
    for what is not."""
    domain = acs_domain(excerpt)
    assert domain["PUMA"].labels == tuple(AREAS) and domain["DVET"].labels == (*"123456", "N")
    assert domain["NOC"].size == 21 and domain["SEX"].size == 2 and domain["AGEP"].size == len(EDGES["AGEP"]) - 1
    assert domain["INDP"].labels == (*INDUSTRIES, "N")


def test_the_workload_is_what_the_score_is_the_mean_of(excerpt):
    """Pairs by area where there is one, without industry codes, which SDNist leaves out."""
    cliques = acs_workload(acs_domain(excerpt)).weights
    assert all(clique == ("INDP",) or (clique[0] == "PUMA" and len(clique) == 3) for clique in cliques)
    assert len(cliques) == 22 * 21 // 2 + 1
    assert len(acs_workload(acs_domain(excerpt, TEN)).weights) == 45


def without_peers(monkeypatch):
    for name in ("DPGM_PEERS", "DPGM_SDNIST_PYTHON"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.landing
def test_a_smoke_run(excerpt, tmp_path, monkeypatch):
    """Without SDNist its rows are made and not scored; without the excerpt nothing runs, which is no failure."""
    without_peers(monkeypatch)
    store = tmp_path / "sdnist.jsonl"
    given = ["--store", str(store), "--only-methods", "dpgm,fresh*"]
    main(sdnist.STUDY, ["--smoke", *given, str(excerpt.parent)])
    assert {line["method"]: line.get("score") for line in read(store)} == {"dpgm": None, "fresh sample": None}
    with pytest.raises(SystemExit) as left:
        main(sdnist.STUDY, ["--smoke", *given, str(tmp_path)])
    assert left.value.code == 0


def test_a_run_that_could_not_be_scored_is_refused_before_it_starts(excerpt, tmp_path, monkeypatch, capsys):
    """Not after the minutes that a fit takes."""
    without_peers(monkeypatch)
    with pytest.raises(SystemExit) as left:
        main(sdnist.STUDY, ["--store", str(tmp_path / "x.jsonl"), str(excerpt.parent)])
    assert left.value.code == 2 and "with sdnist" in capsys.readouterr().err


def line(trial, exact, **more):
    found = {"score": int(exact), "exact": exact, "inconsistent": 0, "seconds": 3.2}
    return {"cell": "ten 1", "trial": trial, "method": "dpgm"} | found | more


def test_a_table_has_means_with_least_and_most():
    """And what ended without a result."""
    text = sdnist.tables(
        [line(1, 970.0), line(2, 974.0), {"cell": "all 1", "trial": 1, "method": "mbi aim", "ended": "late"}]
    )
    assert "972.0 (970.0 to 974.0)" in text and "| 3 " in text.replace("  ", "") and "late" in text


def test_the_table_on_the_page_is_that_of_the_store():
    """Which has three seeds at least of what it prints, and no row of dpgm that breaks a rule."""
    lines = read(sdnist.STUDY.committed)
    text = sdnist.STUDY.committed.with_suffix(".md").read_text(encoding="utf-8")
    assert text == sdnist.tables(lines) and "<!-- --8<-- [start:table] -->" in text
    assert all(one["inconsistent"] == 0 for one in lines if one["method"] == sdnist.DPGM)
    runs = [(one["cell"], one["method"]) for one in lines]
    assert min(map(runs.count, runs)) >= 3


@pytest.mark.landing
def test_the_score_of_sdnist_is_that_of_its_definition():
    """2-way densities of ages in twentieths of the true ranks and of other codes as they are; (2 - mean L1) * 500."""
    folder = Path(os.environ.get("DPGM_SHARED") or Path(__file__).parents[3] / "shared", "data", "nist_acs_ma2019")
    python = python_of("sdnist")
    if python is None or not folder.is_dir():
        pytest.skip(f"needs an environment with sdnist, and {folder}")
    true = acs_table(folder, TEN)
    rng = np.random.default_rng(1)
    made = true.take(rng.integers(true.num_rows, size=true.num_rows))
    broken = made.set_column(1, "SEX", pa.array(["1"] * made.num_rows))
    for rows in (made, broken):
        said = alone(sdnist_worker.report, str(folder), list(TEN), None, sdnist.rows_of(rows), python=str(python))
        assert said["exact"] == pytest.approx(k_marginal(true, rows), abs=0.01) and said["inconsistent"] == 0
    young = made.set_column(0, "AGEP", pa.array(["14"] * made.num_rows))
    said = alone(sdnist_worker.report, str(folder), list(TEN), None, sdnist.rows_of(young), python=str(python))
    assert said["inconsistent"] > 0.7 * made.num_rows and "child_MSP" in said["rules"]


def k_marginal(true, made):
    """Return the score without areas, by its definition."""
    ages = np.array(true["AGEP"].to_pylist(), dtype=int)
    below, upto = (np.searchsorted(np.sort(ages), ages, side) for side in ("left", "right"))
    ranks = (below + 1 + upto) / 2 / len(ages)
    bins = np.minimum((20 * ranks).astype(int), 19)
    ends = np.array([ages[bins == number].max() for number in np.unique(bins)])
    off = []
    for one, other in itertools.combinations(TEN, 2):
        tables = []
        for table in (true, made):
            columns = [table[name].to_pylist() for name in (one, other)]
            if one == "AGEP":
                columns[0] = np.minimum(np.searchsorted(ends, np.array(columns[0], dtype=int)), len(ends) - 1).tolist()
            cells, counts = np.unique([f"{a} {b}" for a, b in zip(*columns, strict=True)], return_counts=True)
            tables.append(dict(zip(cells, counts / len(columns[0]), strict=True)))
        off.append(sum(abs(tables[0].get(cell, 0) - tables[1].get(cell, 0)) for cell in {*tables[0], *tables[1]}))
    return (2 - np.mean(off)) * 500
