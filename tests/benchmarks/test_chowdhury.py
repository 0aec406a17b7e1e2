"""The comparison of Bayesian networks: errors are the definition's, ratios and budgets by hand, data may be absent."""

import itertools
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("joblib")

from benchmarks.cases.networks import GENERATED, MADE, Network, network, row_smoothed
from benchmarks.cases.people import MOST, SENSE, sensible, wrong
from benchmarks.harness.main import main
from benchmarks.harness.runs import read
from benchmarks.papers import chowdhury
from benchmarks.protocol.directed import budget_ratio, by_counts, likelihood, over_baseline, tables
from dpgm_core import Budget, Dag, Domain, Model, log_likelihood, release
from tests.fixtures import seeded

NOWHERE = Path("/nowhere")
SIZES = {
    "age": 85, "workclass": 9, "fnlwgt": 100, "education-num": 16, "marital-status": 7, "occupation": 15,
    "relationship": 6, "race": 5, "sex": 2, "capital-gain": 100, "capital-loss": 100, "hours-per-week": 99,
    "native-country": 42, "income>50K": 2,
}  # fmt: skip


def small() -> Network:
    """a -> b, (a, b) -> c, with a zero."""
    dag = Dag(Domain.from_sizes({"c": 3, "a": 2, "b": 2}), {"b": ["a"], "c": ["a", "b"]})
    rng = np.random.default_rng(1)
    c = np.moveaxis(rng.dirichlet(np.ones(3), size=(2, 2)), -1, 0)
    truth = {"a": np.array([0.3, 0.7]), "b": np.array([[1.0, 0.4], [0.0, 0.6]]), "c": c}
    return Network(name="small", dag=dag, truth=truth)


def test_the_divergence_is_that_of_the_joints():
    """By enumeration of all states, against a network with other tables and after its smoothing."""
    net, rng = small(), np.random.default_rng(2)
    other = {
        name: np.moveaxis(rng.dirichlet(np.ones(len(t)), size=t.shape[1:]), -1, 0) for name, t in net.truth.items()
    }
    whole = 0.0
    smooth = row_smoothed(other)
    for c, a, b in itertools.product(range(3), range(2), range(2)):
        p, q = (t["a"][a] * t["b"][b, a] * t["c"][c, a, b] for t in (net.truth, smooth))
        whole += p * np.log(p / q) if p > 0 else 0.0
    assert net.divergence(other) == pytest.approx(whole, rel=1e-12)
    assert net.divergence(other) == pytest.approx(net.model.kl(Model.from_cpds(net.dag, smooth)), rel=1e-9)


def test_records_are_drawn_from_the_truth():
    """Shares of all 12 states of 20,000 records; a false alarm, beyond 5 standard deviations, in 1e-5 of seeds."""
    net = small()
    codes = net.records(20_000, 3)
    for c, a, b in itertools.product(range(3), range(2), range(2)):
        p = net.truth["a"][a] * net.truth["b"][b, a] * net.truth["c"][c, a, b]
        share = np.mean((codes == [c, a, b]).all(axis=1))
        assert abs(share - p) <= 5 * np.sqrt(p * (1 - p) / 20_000)
    assert np.array_equal(codes, net.records(20_000, 3))


def test_the_distance_of_tables_counts_rows_that_have_a_record():
    """By hand: the row b | a = 1 is never seen, so two rows of b, one of a and those seen of c count, alike."""
    net = small()
    codes = np.array([[0, 0, 0], [0, 0, 0], [1, 0, 1], [2, 0, 1]])
    uniform = {"a": np.full(2, 0.5), "b": np.full((2, 2), 0.5), "c": np.full((3, 2, 2), 1 / 3)}
    # a: |1 - .5| * 2; b | a=0: (.5, .5); c | 0, 0: (1, 0, 0); c | 0, 1: (0, .5, .5)
    by_hand = [1.0, 0.0, 4 / 3, 2 / 3]
    assert net.off_the_records(uniform, codes) == pytest.approx(np.mean(by_hand))


def test_questions_are_answered_by_the_truth_itself_but_for_its_smoothing():
    """Both distances are below what 1e-4 of a row can do, and large for uniform tables."""
    net = small()
    assert max(net.answers_off(net.truth).values()) < 1e-3
    uniform = {name: np.full(t.shape, 1 / len(t)) for name, t in net.truth.items()}
    assert min(net.answers_off(uniform).values()) > 0.05


def test_the_baseline_reads_each_table_by_itself():
    """Counts below 0 are 0, and one more in each cell for KL."""
    net = small()
    noisy = release(net.records(50, 4), net.dag.structure(), Budget.pure("0.5"), **seeded(5))
    found = by_counts(noisy, net.dag, agree=False)
    table = np.asarray(noisy.tables["c", "a", "b"], dtype=float)
    assert (table < 0).any()
    clipped = np.maximum(table, 0) + 1
    assert np.allclose(found.for_kl["c"], clipped / clipped.sum(axis=0))
    assert (found.tables["c"] == 0).any()


def test_ratios_are_of_means_over_the_trials_both_have():
    """Three of four trials; the jackknife of equal ratios is 0."""
    ratio, spread, count = over_baseline({0: 1.0, 1: 2.0, 2: 3.0, 9: 100.0}, {0: 2.0, 1: 4.0, 2: 6.0})
    assert (ratio, count) == (0.5, 3)
    assert spread == pytest.approx(0, abs=1e-12)
    assert over_baseline({0: 1.0, 1: 1.0}, {0: 1.0, 1: 3.0})[:2] == (0.5, pytest.approx(1 / 3))
    assert np.isnan(over_baseline({0: 1.0, 1: 1.0}, {0: 0.0, 1: 0.0})[0])
    assert np.isnan(over_baseline({0: 1.0, 1: 1.0}, {0: 0.0, 1: 2.0})[1])


def test_a_budget_of_equal_error_is_interpolated():
    """Errors that fall as epsilon squared, ours nine times smaller: a third of the budget."""
    epsilons = [0.1, 0.25, 0.5, 1.0, 3.0]
    theirs = {epsilon: 9 / epsilon**2 for epsilon in epsilons}
    ours = {epsilon: 1 / epsilon**2 for epsilon in epsilons}
    assert budget_ratio(ours, theirs, 1.0) == budget_ratio(ours, theirs, 3.0) == "3.0"
    assert budget_ratio(ours, theirs, 0.1) == ">1.0"
    assert budget_ratio(theirs, ours, 3.0) == "<1"
    assert budget_ratio(theirs, ours, 1.0) == "0.3"


def test_the_wrong_graph_has_the_shape_of_the_sensible_one_and_none_of_its_arcs():
    """As many arcs and families of each size; no two attributes joined in both."""
    domain = Domain.from_sizes(SIZES)
    one, other = sensible(domain), wrong(domain)
    assert sorted(map(len, one.families)) == sorted(map(len, other.families))
    joined = [{frozenset((f[0], parent)) for f in dag.families for parent in f[1:]} for dag in (one, other)]
    assert len(joined[0]) == len(joined[1]) == sum(map(len, SENSE.values()))
    assert not joined[0] & joined[1]
    assert all(np.prod(domain.shape(family)) <= MOST for family in other.families)


def test_the_likelihood_of_records_is_the_models():
    """On the made-up network's truth; a record that is ruled out counts as the uniform share."""
    net = small()
    codes = net.records(300, 6)
    exact = log_likelihood(net.model, codes, allow_non_private=True) / len(codes)
    assert likelihood(net.model, codes) == pytest.approx(exact, abs=2e-3)
    ruled_out = np.array([[0, 0, 1]])  # b = 1 given a = 0
    assert likelihood(net.model, ruled_out) == pytest.approx(np.log(1e-4 / 12))


def test_a_smoke_run_needs_no_data(tmp_path, capsys):
    """Every kind of method on the made-up network, in the report too."""
    store = tmp_path / "store.jsonl"
    methods = ["non-private", "baseline", "bayes-net local", "two-stage sampled"]
    main(chowdhury.STUDY, ["/nowhere", "--smoke", "--store", str(store), "--only-methods", ",".join(methods)])
    lines = {line["method"]: line for line in read(store)}
    assert set(lines) == set(methods)
    assert 0 < lines["non-private"]["kl"] < lines["baseline"]["kl"]
    assert "| baseline " in capsys.readouterr().out


def test_what_is_absent_is_left_out(tmp_path, capsys):
    """The made-up networks remain, and one line names the others."""
    asked = Namespace(folder=tmp_path, extent="full", draws=2)
    assert {cell.split()[0] for cell in chowdhury.cells(asked)} == set(GENERATED)
    (said,) = capsys.readouterr().err.splitlines()
    assert "alarm" in said and "adult" in said and "left out" in said


def test_claims_are_judged_by_the_lines():
    """A method at a third of the baseline's error everywhere reproduces; without runs nothing was attempted."""
    sizes = {"baseline": 9.0, "two-stage sampled": 1.0, "two-stage": 1.0, "two-stage errors alone": 0.5}
    lines = [
        {"cell": f"made {epsilon}", "trial": trial, "method": method, "cpu": 1.0, "by": "x"}
        | dict.fromkeys(("kl", "l1", "alone", "asked", "map"), size / epsilon**2)
        for epsilon in (0.1, 0.25, 0.5, 1)
        for trial in (0, 1)
        for method, size in sizes.items()
    ]
    found = {one.name: one for one in chowdhury.claims(lines)}
    assert found["C1"].status == found["C3"].status == "reproduced" and "3.0" in found["C1"].found
    assert found["C6"].status == "contradicted" and "made 2.00" in found["C6"].found
    assert found["C7"].status == found["C10"].status == "not attempted"
    assert chowdhury.claims([])[0].status == "not attempted"


def test_the_most_probable_record_of_the_truth_loses_nothing():
    """With evidence; a model that turns every table round loses."""
    net = network(NOWHERE, MADE)
    turned = {name: table[::-1] for name, table in net.truth.items()}
    assert net.answers_off(net.truth)["map"] == pytest.approx(0, abs=1e-9)
    assert net.answers_off(turned)["map"] > 0.5


def test_a_network_that_cannot_be_read_is_one_line(tmp_path, capsys):
    """Exit code 2, before anything is run."""
    (tmp_path / "bif").mkdir()
    (tmp_path / "bif" / "asia.bif").write_text("variable x {")
    with pytest.raises(SystemExit) as left:
        main(chowdhury.STUDY, [str(tmp_path), "--store", str(tmp_path / "store.jsonl")])
    assert left.value.code == 2
    assert "paper-chowdhury cannot read" in capsys.readouterr().err.splitlines()[-1]


def test_the_report_has_ratios_real_records_and_times():
    """Ratios to the baseline, real records and times, from lines as they are kept."""
    errors = {"l1": 0.1, "alone": 0.01, "asked": 0.02}
    lines = [
        {"cell": "sachs 1", "trial": trial, "method": method, "kl": kl} | errors
        for trial in (0, 1)
        for method, kl in (("baseline", 0.1), ("bayes-net", 0.05), ("bayes-net Gaussian", 0.06))
    ]
    times, records = {"whole": 12.0, "learning": 11.0, "nodes": 56}, {"error2": 0.1, "loglik": -20.0, "seconds": 1.0}
    lines.append({"cell": "time hailfinder", "trial": 0, "method": "bayes-net"} | times)
    lines.append({"cell": "adult 1 pure", "trial": 0, "method": "mst", "cells": 9} | records)
    text = tables(lines)
    rows = [[part.strip() for part in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("|")]
    assert ["bayes-net", "0.50 (0.00)"] in rows and ["bayes-net Gaussian", "0.60 (0.00)"] in rows
    assert ["hailfinder", "56", "bayes-net", "12.00", "11.000"] in rows
    assert "-20.0000" in text


def test_the_made_up_network_is_always_the_same():
    """And has overlapping families, some inside others."""
    net = network(NOWHERE, MADE)
    assert net.dag == network(NOWHERE, MADE).dag
    assert len(net.dag.maximal) < len(net.dag.families)
