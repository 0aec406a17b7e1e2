"""`dpgm query`, `sample` and `evaluate`."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import dpgm_core as dpgm


def test_query(model, dpgm_command, refused):
    """Marginals, conditionals, --top, --map, the description, and JSON of each."""
    code, out, _ = dpgm_command("query", model, "age", "sex", "--json")
    rows = json.loads(out)["rows"]
    assert [row["labels"] for row in rows] == [["young", "F"], ["young", "M"], ["old", "F"], ["old", "M"]]
    assert sum(row["probability"] for row in rows) == pytest.approx(1)
    code, out, _ = dpgm_command("query", model, "sex", "-g", "age=young", "--top", "1")
    assert code == 0
    assert len(out.splitlines()) == 3
    code, out, _ = dpgm_command("query", model, "--map", "--given", "sex=F", "--json")
    assert json.loads(out)["record"]["sex"] == "F"
    assert json.loads(dpgm_command("query", model, "--json")[1])["format"] == "dpgm-model"
    assert "Differential privacy" in dpgm_command("query", model)[1]
    for words, hint in (
        (("sxe",), "did you mean 'sex'"),
        (("sex", "-g", "age=yong"), "did you mean 'young'"),
        (("sex", "-g", "age"), "ATTRIBUTE=LABEL"),
        (("sex", "-g", "age=old", "-g", "age=young"), "twice"),
        (("sex", "--map"), "--map"),
        (("-g", "age=old"), "--given"),
        (("sex", "--top", "0"), "--top"),
        (("sex", "--inference", "loopy"), "loopy-bp"),
    ):
        assert hint in refused("query", model, *words)
    assert "no file" in refused("query", model.with_name("none.dpgm"), "sex")


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow"])
def test_sample(model, dpgm_command, refused, suffix):
    """Records with labels in each format; a seed repeats them; another suffix is refused."""
    made = []
    for name in ("one", "two"):
        path = model.with_name(name + suffix)
        code, out, _ = dpgm_command("sample", model, "-n", 50, "-o", path, "--seed", 3, "--json")
        assert (code, json.loads(out)["records"]) == (0, 50)
        made.append(path.read_bytes())
    assert made[0] == made[1]
    assert "must end in" in refused("sample", model, "-n", 1, "-o", model.with_name("x.txt"))
    refused("sample", model, "-n", -1, "-o", model.with_name("x.csv"))


def test_sample_replaces_samples_only(model, refused):
    """Neither the model nor what may be the records; nothing is drawn, and of several files none is written."""
    records = model.with_name("people.csv")
    records.write_text("sex,age\nF,old\n")
    model.rename(hidden := model.with_suffix(".csv"))
    for path in (records, hidden):
        before = path.read_bytes()
        assert "nothing is replaced there: name another file" in refused("sample", hidden, "-n", 3, "-o", path)
        assert path.read_bytes() == before
    model.with_name("s-2.csv").write_text("sex,age\n")
    assert "s-2.csv exists" in refused("sample", hidden, "-n", 3, "--datasets", 2, "-o", model.with_name("s.csv"))
    assert not model.with_name("s-1.csv").exists()


def test_evaluate(model, dpgm_command, refused):
    """Against its release, another model (infinite KL is JSON too), and records only when allowed."""
    assert dpgm_command("evaluate", model)[0] == 0
    never = model.with_name("never.dpgm")
    structure = dpgm.load_model(model).structure
    values = np.array([0.0, 0.0, 0.0, -np.inf])
    dpgm.Model(structure, dpgm.Tables(structure, values)).save(never)
    code, out, _ = dpgm_command("evaluate", never, "--against", model, "--json")
    assert (code, json.loads(out)["kl"]) == (0, "inf")
    data = model.with_name("d.csv")
    data.write_text("sex,age\nF,old\n")
    assert "--allow-non-private" in refused("evaluate", model, "--data", data)
    code, out, err = dpgm_command("evaluate", model, "--data", data, "--allow-non-private")
    assert code == 0
    assert "NOT PRIVATE" in out
    assert "NOT PRIVATE" in err
    assert "not both" in refused("evaluate", model, "--data", data, "--against", never)
    assert "no release" in refused("evaluate", never)


def test_a_reader_that_leaves_early_is_no_traceback(model):
    """dpgm query ... | head: no noise on stderr."""
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-c", "from dpgm_core.cli import main; main()", "query", str(model), "sex"],
        stdout=writing, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    os.close(writing)
    assert done.returncode == 1
    assert done.stderr == ""
