"""The benchmark of directed graphs: its methods, its table, and one run on made-up people."""

import json

import pytest

pytest.importorskip("joblib")

from benchmarks import privbayes, selection
from benchmarks.cases.coded import wide
from benchmarks.harness.main import main
from benchmarks.harness.runs import read
from benchmarks.protocol.selecting import DIRECTED
from dpgm_core import make

TABLE = wide(5, 2000, 3)


def test_a_run_on_made_up_people(tmp_path):
    """At most one choice for each attribute but the first, in one round."""
    (tmp_path / "adult").mkdir()
    (tmp_path / "adult" / "adult-domain.json").write_text(json.dumps(TABLE.domain.sizes))
    rows = [",".join(map(str, row)) for row in (TABLE.domain.names, *TABLE.codes)]
    (tmp_path / "adult" / "adult.csv").write_text("\n".join(rows) + "\n")
    store = tmp_path / "store.jsonl"
    main(privbayes.STUDY, [str(tmp_path), "--smoke", "--store", str(store), "--only-methods", "privbayes 1"])
    (line,) = read(store)
    assert line["cell"] == "adult 0.1" and 1 <= line["choices"] <= len(TABLE.domain) - 1
    assert 0 < line["error3"] < 2


def test_a_pair_that_informs_only_together_is_worth_its_choice():
    """One generated network of seven: half of its children are the exclusive or of their parents."""
    ours, by_one = (
        privbayes.of_network(method, "parity", 7, "100", 1)["kl"] for method in (privbayes.TOGETHER, privbayes.BY_ONE)
    )
    assert 0 < ours < by_one / 3
    line = {"cell": "parity 8 1", "method": privbayes.GIVEN, "trial": 1, "kl": 0.25}
    assert "| parity | " in privbayes.tables([line]) and "0.2500 (0.250)" in privbayes.tables([line])


def test_without_the_data_it_is_refused(tmp_path, capsys):
    """One line, exit 2."""
    with pytest.raises(SystemExit) as left:
        main(privbayes.STUDY, [str(tmp_path)])
    assert left.value.code == 2 and "name a folder that holds adult/" in capsys.readouterr().err


def test_its_table_has_the_rows_of_selections_on_the_same_seeds():
    """Of a seed that was run here; their ratio is of those seeds."""
    known = {
        line["trial"]: line["error3"]
        for line in read(selection.STUDY.committed)
        if (line["cell"], line["method"]) == ("adult 1", "mst")
    }
    ours = {"cell": "adult 1", "trial": 1, "method": "privbayes", "error3": known[1] / 2, "error2": 0.1, "seconds": 1.0}
    rows = privbayes.tables([ours]).splitlines()
    (row,) = [row for row in rows if "| privbayes " in row]
    (mst,) = [row for row in rows if "| mst " in row]
    assert " 0.50 " in row and f"{known[1]:.4f}" in mst


def test_every_selector_of_it_can_be_made():
    """What is misspelt fails here, not hours later."""
    assert all(make("selector", method.selector) for method in DIRECTED.values())
    assert not privbayes.serves("adult 1", 0, "mst") and not privbayes.serves("pure 1", 0, "oneshot")
    assert privbayes.serves("pure 1", 0, "mst") and privbayes.serves("adult 1", 0, "privbayes")
