"""The benchmark of selections: its mirror descent, errors and noise, runs of their own, and a small run of it all."""

import json
import subprocess
import time

import numpy as np
import pytest

pytest.importorskip("joblib")

from benchmarks import selection
from benchmarks.cases.coded import Coded, of_records, off, shares, wide
from benchmarks.harness.alone import Crashed, alone, peak_megabytes
from benchmarks.harness.main import main
from benchmarks.harness.runs import read
from benchmarks.protocol.selecting import MirrorDescent, descend, noise, smoothness
from dpgm_core import Budget, Domain, SeededRandomness, Structure, Tables, Terms, release
from dpgm_core.inference.junction_tree.engine import JunctionTree
from dpgm_core.releases.pooling import pool

TABLE = wide(5, 2000, 3)
TERMS = Terms(neighbours="add-remove")


def noisy(cliques, rho, seed):
    budget, structure = Budget.zcdp(rho), Structure(TABLE.domain, cliques)
    return release(TABLE.codes, structure, budget, "gaussian", terms=TERMS, randomness=SeededRandomness(seed))


def test_mirror_descent_reaches_the_optimum_of_least_squares():
    """At its end the weighted residuals are orthogonal to every direction that a model could move in."""
    tables = pool([noisy([(name,) for name in TABLE.domain.names], 5, 1), noisy([("x0", "x1"), ("x1", "x2")], 50, 2)])
    theta, how = descend(JunctionTree(), tables, np.zeros(tables.structure.cells), 1500)
    engine = JunctionTree().compile(tables.structure)
    off_by = engine.infer(theta, total=tables.total).marginals.values - tables.tables.values
    gradient = engine.curvature(theta)(off_by / np.repeat(tables.variances, tables.structure.sizes))
    start = engine.curvature(Tables.zeros(tables.structure))(
        tables.tables.values / np.repeat(tables.variances, tables.structure.sizes)
    )
    assert np.abs(gradient).max() < 1e-2 * np.abs(start).max()
    assert how["loss"] == pytest.approx(
        float((off_by**2) @ np.repeat(1 / tables.variances, tables.structure.sizes)) / 2, rel=1e-9
    )


def test_the_first_step_follows_the_stiffest_largest_clique():
    """By hand: each table's precision times the cells of the smallest largest clique that holds it per cell of its own,
    summed by largest clique; the largest sum."""
    tables = noisy([("x0", "x1"), ("x0",), ("x1", "x2")], 1, 4)
    cells = {clique: np.prod(TABLE.domain.shape(clique)) for clique in tables.structure.cliques}
    home = min((("x0", "x1"),), key=cells.get)
    sums = {("x0", "x1"): 1.0, ("x1", "x2"): 1.0}
    sums[home] += cells[home] / cells["x0",]
    assert smoothness(tables) == pytest.approx(max(sums.values()) / tables.variances[0])


def test_a_loop_goes_on_where_it_ended_and_starts_anew_without_a_previous_fit():
    """Two fits of 50 steps end lower than one; without a previous fit the second is the first again."""
    tables = noisy([("x0", "x1"), ("x2", "x3"), ("x4",)], 10, 5)
    fitted = MirrorDescent(steps=50).fitter(JunctionTree())
    first = fitted(tables, tables.structure, None)
    second = fitted(tables, tables.structure, first)
    assert second.certificate["loss"] < first.certificate["loss"]
    again = fitted(tables, tables.structure, None)
    assert np.array_equal(again.model.potentials.values, first.model.potentials.values)


def test_a_fit_to_a_wider_structure_is_the_same_model():
    """The potentials are put into cliques that hold the measured ones."""
    tables = noisy([("x0", "x1"), ("x1", "x2")], 10, 6)
    wider = Structure(TABLE.domain, [("x0", "x1", "x2")])
    one, other = (
        MirrorDescent(steps=30).fitter(JunctionTree())(tables, into, None) for into in (tables.structure, wider)
    )
    assert other.model.structure == wider
    assert np.allclose(one.model.marginal(["x0", "x2"]), other.model.marginal(["x0", "x2"]))


def test_errors_are_what_the_definition_says():
    """3-way errors not halved, 2-way halved, tables above the limit left out of the first only."""
    domain = Domain.from_sizes({"a": 2, "b": 3, "c": 2, "d": 5000})
    rng = np.random.default_rng(7)
    here, there = (
        Coded(domain=domain, codes=np.column_stack([rng.integers(size, size=400) for size in domain.sizes.values()]))
        for _ in range(2)
    )
    found = off(here, of_records(there))
    triples = [("a", "b", "c")]
    assert found["error3"] == pytest.approx(
        sum(np.abs(shares(here, one) - shares(there, one)).sum() for one in triples)
    )
    pairs = [(one, other) for place, one in enumerate("abcd") for other in "abcd"[place + 1 :]]
    mean = np.mean([np.abs(shares(here, pair) - shares(there, pair)).sum() for pair in pairs])
    assert found["error2"] == pytest.approx(mean / 2)
    assert shares(here, ("c", "a"))[1, 0] == pytest.approx(np.mean((here.codes[:, 2] == 1) & (here.codes[:, 0] == 0)))


@pytest.mark.parametrize("epsilon", selection.EPSILONS)
def test_our_noise_is_never_wider_than_mbis_for_the_same_promise(epsilon):
    """The target, to the twelve digits that a rho has."""
    found = noise(epsilon)
    assert found["ours"] <= found["mbi"] * (1 + 1e-10)
    assert found["ours"] > 0.99 * found["mbi"]


def test_a_run_of_its_own_has_its_own_memory_and_ends_in_time():
    """The parent's memory does not count; a limit ends it; what went wrong is said."""
    ballast = np.ones(20_000_000)  # 160 MB
    assert peak_megabytes() > 160 == ballast.nbytes / 1e6
    assert alone(peak_megabytes) < 80
    with pytest.raises(subprocess.TimeoutExpired):
        alone(time.sleep, 60, limit=0.2)
    with pytest.raises(Crashed, match="ZeroDivisionError"):
        alone(divmod, 1, 0)


def test_a_small_run_of_it_all_on_made_up_people(tmp_path, capsys):
    """A selector and the noise, each kept as a line, and the report says both."""
    (tmp_path / "adult").mkdir()
    (tmp_path / "adult" / "adult-domain.json").write_text(json.dumps(TABLE.domain.sizes))
    rows = [",".join(map(str, row)) for row in (TABLE.domain.names, *TABLE.codes)]
    (tmp_path / "adult" / "adult.csv").write_text("\n".join(rows) + "\n")
    store = tmp_path / "store.jsonl"
    main(selection.STUDY, [str(tmp_path), "--smoke", "--store", str(store), "--only-methods", "mst,noise"])
    lines = {line["cell"]: line for line in read(store)}
    assert set(lines) == {"adult 1", "noise 1"}
    assert lines["adult 1"]["choices"] == len(TABLE.domain) - 1
    assert 0 < lines["adult 1"]["error2"] < 0.3
    assert 50 < lines["adult 1"]["peak"] < 1000
    assert "| mst " in capsys.readouterr().out


def test_without_the_data_it_says_so_and_does_the_rest(tmp_path, capsys):
    """One line, and the cells that need no data."""
    main(selection.STUDY, [str(tmp_path), "--store", str(tmp_path / "store.jsonl"), "--only-methods", "noise"])
    assert "cells on the Adult table are left out" in capsys.readouterr().err
    assert {line["cell"] for line in read(tmp_path / "store.jsonl")} == {"noise 0.1", "noise 1", "noise 10"}


def test_the_report_holds_ratios_against_targets():
    """Geometric means over the seeds that both have, met or missed."""
    lines = [
        run("aim", 0, 0.10) | {"trial": 0},
        run("aim", 1, 0.12),
        run("aim", 2, 0.90),
        run("aim + mirror descent", 0, 0.11),
        run("aim + mirror descent", 1, 0.11),
        {"cell": "adult 1", "trial": 0, "method": "mbi aim", "ended": "no result in 600 s on the wall"},
    ]
    text = selection.tables(lines)
    assert f"{np.sqrt(0.10 * 0.12) / 0.11:.3f} |" in text
    (row,) = [line for line in text.splitlines() if "aim / aim + mirror descent" in line]
    assert "1.00, met" in row and "| yes" in row
    assert "no result in 600 s" in text


def run(method, seed, error):
    measured = {"error3": error, "error2": error / 3, "seconds": 2.0, "peak": 100.0, "measured": 3, "release": "a"}
    return {"cell": "adult 1", "trial": seed, "method": method} | measured
