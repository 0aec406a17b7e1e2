"""The benchmark of errors to expect: its populations, a small run, its tables, its rule of thumb, and its page."""

import math

import numpy as np
import pytest

pytest.importorskip("joblib")

from benchmarks import accuracy
from benchmarks.cases.coded import Coded, of_records
from benchmarks.cases.sampled import GENERATED, Population
from benchmarks.harness.main import main
from benchmarks.harness.runs import read
from benchmarks.protocol.selecting import selection
from dpgm_core import Domain
from tests.pages import DOCS, assert_prints, run_page

PAIR = Domain.from_sizes({"a": 2, "b": 2})


def people(rows):
    return Population.of(Coded(domain=PAIR, codes=np.array(rows, dtype=np.uint8)))


def test_a_small_run_has_errors_of_answers_and_of_records(tmp_path, capsys):
    """Of two seeds, which differ; a kind that was not run is no row, and without enough cells there is no rule."""
    store = tmp_path / "store.jsonl"
    main(accuracy.STUDY, [str(tmp_path), "--smoke", "--store", str(store)])
    lines = read(store)
    assert [line["cell"].split()[0] for line in lines] == ["weak", "health", "weak"]
    assert all(0 < line[f"{kind}tv{order}"] < 1 for line in lines for kind in ("", "sample_") for order in (1, 2))
    assert lines[0]["tv1"] != lines[2]["tv1"]
    assert lines[0]["independent_tv1"] < 1e-12 < lines[0]["independent_tv2"]
    text = " ".join(capsys.readouterr().out.split())
    assert "| health, 7 x 4 | 1,000 |" in text and "| 10 | 1,000 | 2 |" in text and "Rule" not in text
    assert (tmp_path / "accuracy.svg").is_file() and not (tmp_path / "accuracy-rule.svg").exists()
    assert "error2" not in lines[0] and "said" not in lines[0]


def test_a_run_is_judged_by_the_population_and_pays_for_the_delta_it_states():
    """The judge gets the model's marginals; at a larger delta noise is less, so another release is made."""
    whole = Population.of(GENERATED["weak"](3, 4000, 1))
    records = whole.draw(1000, 1)
    runs = [selection("auto", records, "1", 1, delta=delta, judge=whole.errors) for delta in ("1e-9", "1e-3")]
    assert runs[0]["release"] != runs[1]["release"]
    assert all({"tv1", "tv2", "tv3"} < run.keys() and "error1" not in run for run in runs)
    assert "error1" in selection("singles", records, "1", 1)


def test_errors_are_half_the_sums_of_absolute_differences():
    """By hand: two dependent bits against their product, and against themselves."""
    whole = people([[0, 0]] * 3 + [[1, 1]])
    alone = whole.independence()
    assert alone["tv1"] == 0 and alone["tv2"] == pytest.approx((3 / 4 * 1 / 4 * 4) / 2)
    assert whole.errors(of_records(whole.people)) == pytest.approx({"tv1": 0, "tv2": 0})
    assert whole.cells() == {"cells1": 2, "cells2": 4}


def test_records_are_drawn_with_replacement_anew_for_each_seed():
    """The error of a bit's share is that of a binomial, on average; N may exceed the people."""
    whole = people([[0, 0], [1, 0]])
    shares = [whole.draw(400, seed).codes[:, 0].mean() for seed in range(300)]
    assert np.std(shares) == pytest.approx(0.5 / 20, rel=0.15)
    assert np.array_equal(whole.draw(9, 1).codes, whole.draw(9, 1).codes)


@pytest.mark.parametrize("name", GENERATED)
def test_generated_populations_have_the_size_asked_for(name):
    """Columns and people; another seed is another population, and columns depend on one another."""
    one, other = (GENERATED[name](6, 3000, seed) for seed in (1, 2))
    assert one.codes.shape == (3000, 6) and not np.array_equal(one.codes, other.codes)
    assert Population.of(one).independence()["tv2"] > 0.02


def line(name="weak", k=10, count="1e4", epsilon="1", trial=0, tv=0.02, **more):
    errors = {f"{kind}tv{order}": tv for kind in ("", "sample_", "independent_") for order in (1, 2, 3)}
    cells = {f"cells{order}": 4.0**order for order in (1, 2, 3)}
    cell = f"{name} k={k} N={count} epsilon={epsilon}"
    return {"cell": cell, "trial": trial, "method": "auto", "by": "dpgm 1+abc numpy 2", **errors, **cells, **more}


def test_tables_say_mean_and_range_in_percentage_points():
    """By hand; cells without runs are a dash, and real tables do not enter the rows of generated ones."""
    lines = [line(trial=0, tv2=0.01), line(trial=1, tv2=0.03), line("skewed", tv2=0.2), line("adult", 14, tv2=0.5)]
    text = " ".join(accuracy.tables(lines).split())
    assert "| 10 | 10,000 | 3 | 2.0 | - | 8.0 (1.0\N{EN DASH}20) | - |" in text
    assert "| weak, 10 x 4 | 10,000 | 2.0 | 2.0 | - | 2.0 (1.0\N{EN DASH}3.0) | - |" in text
    assert "| adult, 14 x 4 | 10,000 | 2.0 | 2.0 | - | 50 (50\N{EN DASH}50) | - |" in text


def test_the_rule_is_fitted_to_generated_runs_and_measured_on_real_ones():
    """Constants that made the runs are found again; real runs twice as large are off by two, and change no constant."""
    true = accuracy.Rule(2, sample=0.3, noise=0.7, power=0.6)
    made = [
        line(name, k, count, epsilon, cells1=float(cells), cells2=float(cells**2))
        for name, cells in (("weak", 4), ("skewed", 30))
        for k, count in ((10, "1e3"), (10, "1e5"), (30, "1e4"))
        for epsilon in accuracy.EPSILONS
    ]
    made = [one | {f"tv{order}": true.predict(one) for order in (1, 2, 3)} for one in made]
    rule = accuracy.fit_rule(made, 2)
    assert (rule.sample, rule.noise, rule.power) == pytest.approx((0.3, 0.7, 0.6), rel=1e-4)
    real = [line("adult", 14)]
    real[0]["tv2"] = 2 * true.predict(real[0])
    row = next(row for row in accuracy.tables(made + real).splitlines() if row.startswith("| pairs "))
    assert [cell.strip() for cell in row.split("|")[2:-1]] == [
        "0.3", "0.7", "0.6", "1.00, at most 1.0 (mean 1.00)", "2.00, at most 2.0 (mean 2.00)", "adult (mean 2.00)",
    ]  # fmt: skip
    assert true.predict(line()) == pytest.approx(0.3 * math.sqrt(4e-4) + 0.7 * (4 * math.sqrt(10) / 1e4) ** 0.6)


def test_the_page_is_of_the_store(tmp_path, capsys):
    """The report is that of the store, and the example has the rule's constants and prints what it says."""
    store = accuracy.STUDY.committed
    lines = read(store)
    assert store.with_suffix(".md").read_text(encoding="utf-8") == accuracy.tables(lines)
    page = (DOCS / "accuracy.md").read_text(encoding="utf-8")
    assert all(f"accuracy.md:{part}" in page for part in ("singles", "pairs", "triples", "pairs-by-table", "rule"))
    rule = accuracy.fit_rule([line for line in lines if line["cell"].split()[0] in GENERATED], 2)
    assert f"a, b, c = {rule.sample:.2g}, {rule.noise:.2g}, {rule.power:.2g}\n" in page
    run_page(DOCS / "accuracy.md", tmp_path)
    assert_prints(DOCS / "accuracy.md", capsys.readouterr().out)
