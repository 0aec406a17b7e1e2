"""The coverage benchmark runs, resumes and reports; and intervals of the self-tuned learner hold the truth."""

import pytest

pytest.importorskip("joblib")

from benchmarks.coverage import GRIDS, PARTS, STUDY
from benchmarks.harness.main import main
from benchmarks.harness.runs import read


def test_the_smoke_run_covers_and_is_not_repeated(tmp_path, capsys):
    """Two small data sets on fixed seeds, two learners: about .9 of 162 entries each (measured: .88 and .87). Without
    the noise in the replicates it is .59 and .51, without the records .76 and .78. One
    selection: .76 to .92 in ten seeds. A second start finds it all done."""
    store = tmp_path / "coverage.jsonl"
    given = ["--smoke", "--store", str(store), "--only-methods", "eb-map,naive-mle,auto"]
    main(STUDY, given)
    lines = read(store)
    assert [line["method"] for line in lines] == ["eb-map", "naive-mle", "auto", "eb-map", "naive-mle"]
    assert 0.6 < lines[2]["covered"]["interval"][0] < 1.0
    for learner in ("eb-map", "naive-mle"):
        shares = [line["covered"]["interval"][0] for line in lines if line["method"] == learner]
        assert 0.8 < sum(shares) / 2 < 0.97
    shown = capsys.readouterr().out
    assert all(part in shown for part in PARTS) and "40 refits / fit" in shown
    assert store.with_suffix(".md").read_text() in shown
    before = store.read_bytes()
    main(STUDY, given)
    assert store.read_bytes() == before


def test_the_usual_grid_is_what_the_page_says():
    """At least 20 data sets, both graphs, both noises, k = 5."""
    names = [cell.name for cell in GRIDS["usual"]]
    assert 2 * len(names) >= 20
    assert {name.split("/")[1] for name in names} == {"chain3", "er"}
    assert {name.split("/")[-1] for name in names} == {"laplace", "gaussian"}
    assert all("/k5/" in name for name in names)
