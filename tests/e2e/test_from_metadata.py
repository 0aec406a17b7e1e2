"""From a schema that somebody else wrote to a synthetic table, with nothing typed but commands."""

import csv
import json
import os
from pathlib import Path

import numpy as np
import pytest

from dpgm.cli import main

SCHEMA = {
    "schema": {
        "AREA": {"dtype": "object", "values": ["25-1", "25-2"]},
        "SEX": {"dtype": "int64", "values": [1, 2]},
        "MSP": {"dtype": "object", "has_null": True, "null_value": "N", "values": ["N", "1", "2"]},
        "AGEP": {"dtype": "int64", "min": 0, "max": 49},
        "PINCP": {"dtype": "object", "has_null": True, "null_value": "N", "min": -4600, "max": 134100},
        "DENSITY": {"dtype": "float64", "min": 1457, "max": 3683},
    }
}
NIST = Path(os.environ.get("DPGM_SHARED", Path(__file__).resolve().parents[3] / "shared")) / "data/nist_acs_ma2019"


def run(*words: object) -> None:
    with pytest.raises(SystemExit) as left:
        main([str(word) for word in words])
        raise SystemExit(0)
    assert not left.value.code


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_schema_becomes_a_table_like_it(tmp_path, monkeypatch):
    """init, fit and sample: three lines. Each value is one that its column may have, and most are as they were.

    The noise is seeded; at epsilon = 100 a share is off by less than 0.05 whatever the seed. A spanning tree is learned
    fast."""
    monkeypatch.chdir(tmp_path)
    draw = np.random.default_rng(0)
    people = ["AREA,SEX,MSP,AGEP,PINCP,DENSITY"]
    for age in draw.integers(0, 50, 2000):
        young = age < 15
        told = ("N", "N") if young else (draw.integers(1, 3), float(draw.integers(0, 900)) * 100)
        people.append(f"25-{draw.integers(1, 3)},{draw.integers(1, 3)},{told[0]},{age},{told[1]},3683.9")
    Path("people.csv").write_text("\n".join(people) + "\n")
    Path("schema.json").write_text(json.dumps(SCHEMA))
    run("init", "schema.json", "--data", "people.csv", "--epsilon", "100", "-o", "run")
    run("fit", "run/spec.toml", "--set", "simulation.seed=1", "--set", "structure.select=mst")
    run("sample", "run/people.dpgm", "-n", "2000", "-o", "synthetic.csv", "--seed", "1")
    found = rows(Path("synthetic.csv"))
    assert list(found[0]) == list(SCHEMA["schema"]) and len(found) == 2000
    for one in found:
        assert one["AREA"] in ("25-1", "25-2") and one["SEX"] in ("1", "2") and one["MSP"] in ("N", "1", "2")
        assert 0 <= int(one["AGEP"]) <= 49
        assert one["PINCP"] == "N" or -4600 <= float(one["PINCP"]) <= 134_100
        assert 1457 <= float(one["DENSITY"]) <= 3683
    assert abs(np.mean([one["PINCP"] == "N" for one in found]) - 0.3) < 0.1
    assert np.mean([float(one["DENSITY"]) > 3600 for one in found]) > 0.9  # beyond a rounded end


@pytest.mark.skipif(not NIST.exists(), reason="the NIST excerpt is not there")
def test_the_nist_excerpt_is_settled_by_its_schema(tmp_path, monkeypatch):
    """Nothing is to do for 24 columns, and the names of the records are those of the schema."""
    monkeypatch.chdir(tmp_path)
    run("init", NIST / "ma2019.json", "--data", NIST / "ma2019.csv", "--codebook", NIST / "data_dictionary.json")
    assert "todo" not in Path("domain.toml").read_text()
    run("plan", "spec.toml")
