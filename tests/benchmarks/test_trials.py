"""The grid of trials: names, seeds, order, methods and their oracles, and the command line."""

import json
import math
from argparse import Namespace

import numpy as np
import pytest
from attrs import evolve

pytest.importorskip("joblib")
pytest.importorskip("matplotlib")

from benchmarks import selftuning
from benchmarks.harness.main import main
from benchmarks.harness.runs import Task, read
from benchmarks.protocol.populations import Population, draw_release, structure_of
from benchmarks.protocol.trials import (
    METHODS,
    Cell,
    Method,
    cells,
    data_set,
    interval,
    kl_of,
    plain_oracle,
    ranks,
    study,
    summary,
    work,
)
from dpgm_core import InferenceError

TINY = "dirichlet/chain1/k2/N3e3/eps0.5/laplace"


@pytest.mark.parametrize("name", [TINY, "weak/er/k5/N1e6/eps0.01/gaussian", "health/health/k0/N20190/eps1/laplace"])
def test_a_cell_is_its_name(name):
    """Names on the command line and in the store are read back as the same cell."""
    assert Cell.parse(name).name == name
    assert Cell.parse(name.replace("N1e6", "N1e6")).records in (3000, 10**6, 20190)


@pytest.mark.parametrize("name", ["", "a/b", TINY.replace("chain1", "ring"), TINY.replace("k2", "k0"), TINY + "x"])
def test_other_names_are_refused(name):
    """An unknown graph, truth, noise or size, or another spelling of a number."""
    with pytest.raises(ValueError, match="is not a cell"):
        Cell.parse(name)


def test_every_grid_is_of_cells_that_can_be_named():
    """So that --cells and the store can say each of them."""
    for grid in selftuning.GRIDS.values():
        assert all(Cell.parse(cell.name) == cell for cell in grid)


def test_draws_reuse_five_populations_with_other_records_and_noise():
    """The same draw of two cells is the same population but other records; draw 5 is population 0 again."""
    first, fifth, other = data_set(TINY, 1000), data_set(TINY, 1005), data_set(TINY.replace("0.5", "1"), 1000)
    again, next_one = data_set(TINY, 1000), data_set(TINY, 1001)
    assert np.array_equal(first.release.tables.values, again.release.tables.values)
    for data in (fifth, other):
        assert np.array_equal(first.population.potentials.values, data.population.potentials.values)
        assert not np.array_equal(first.counts.values, data.counts.values)
    assert not np.array_equal(first.population.potentials.values, next_one.population.potentials.values)


def test_every_cell_gets_a_draw_before_any_gets_its_second(monkeypatch):
    """An early end leaves something everywhere; methods are left out where they do not serve."""
    one, two = cells(("chain3", "er"), 5, [(10**6, 0.1)])
    monkeypatch.setitem(METHODS, "psgd", evolve(METHODS["psgd"], missing=lambda: None))
    tasks = of({one: 2, two: 1}).tasks(asked("uniform,psgd", base=500))
    assert tasks == [Task(one.name, 500, "uniform"), Task(two.name, 500, "uniform"), Task(one.name, 501, "uniform")]
    few = cells(("chain3",), 5, [(10**4, 1.0)])[0]
    assert [task.trial for task in of({few: 9}).tasks(asked("psgd", base=0))] == [0, 1, 2]


def of(grid, text=lambda lines: "", pictures=lambda lines, folder: (), name="trials"):
    """A study of one grid."""
    return study(None, name, {"usual": grid}, text, pictures)


def asked(methods, base):
    """What the command line would say."""
    return Namespace(extent="usual", cells="*", only_methods=methods, base=base, draws=1000)


@pytest.fixture(scope="module")
def found():
    names = ("uniform", "non-private", "naive-tiny", "naive-discrepancy", "naive-path", "ridge-path", "consistent-path")
    names += ("em-plateau", "em-path", "soft-path", "one-shot")
    results = {}
    for name in names:
        line = work(Task(TINY, 2000, name), None)
        results |= line["results"]
    return results


def test_an_oracle_is_no_worse_than_its_rules(found):
    """The truth's choice beats the rules of the same family (up to the grid), and the exact tables beat the noisy."""
    assert found["naive oracle"]["kl"] <= 1.01 * found["naive discrepancy"]["kl"]
    assert found["naive oracle"]["kl"] <= found["naive tiny"]["kl"]
    assert found["cgm-em oracle"]["kl"] <= 1.02 * found["cgm-em plateau"]["kl"]
    assert found["cgm-em oracle"]["kl"] <= found["cgm-em converged"]["kl"]
    assert found["non-private"]["kl"] < plain_oracle(found) < found["uniform"]["kl"]
    assert plain_oracle(found) == min(numbers["kl"] for label, numbers in found.items() if label.endswith("oracle"))


def test_every_result_says_what_it_took(found):
    """KL in nats and CPU seconds, finite; oracles say what they chose."""
    for label, numbers in found.items():
        assert {"kl", "seconds"} <= set(numbers) and all(map(math.isfinite, numbers.values()))
        assert not label.endswith("oracle") or {"l2", "tau"} & set(numbers)


@pytest.mark.parametrize("truth", ["gaussian", "weak", "sparse"])
def test_truths_are_what_they_are_called(truth):
    """Spread of the log-potentials, and half of the cliques without interaction."""
    structure = structure_of("chain3", 4)
    population = Population.draw(structure, 0, truth)
    tables = population.potentials.arrays()
    idle = sum(not table.any() for table in tables)
    assert idle == (len(tables) // 2 if truth == "sparse" else 0)
    if truth != "sparse":
        assert np.std(population.potentials.values) == pytest.approx({"gaussian": 1.0, "weak": 0.3}[truth], rel=0.15)


def test_an_impossible_kl_is_refused():
    """A log-partition that underflowed would otherwise be the best result of all."""
    population = Population.draw(structure_of("chain1", 3), 0)
    assert population.kl(population.potentials.values) == pytest.approx(0, abs=1e-9)
    far = population.potentials.values + np.random.default_rng(0).normal(size=population.structure.cells)
    assert population.kl(far) > 0

    class Wrong:
        def infer(self, theta):
            beliefs = population.engine.infer(theta)
            return type("", (), {"log_partition": beliefs.log_partition - 50})()

    with pytest.raises(InferenceError, match="impossible KL"):
        evolve(population, engine=Wrong()).kl(far)


def test_the_older_benchmarks_draw_as_before():
    """`draw_release` of a population and one seed, as cgm_em.py uses it."""
    population = Population.draw(structure_of("chain1", 2), 3)
    noisy = draw_release(population, 500, 1.0, 7)
    assert noisy.total == 500
    assert np.array_equal(noisy.tables.values, draw_release(population, 500, 1.0, 7).tables.values)


def test_summaries_and_ranks_by_hand():
    """Ratios are geometric means over draws, and certain ranks have no interval."""
    cell = Cell.parse(TINY)
    trials = {
        0: {"a": {"kl": 1.0}, "b": {"kl": 2.0}, "c": {"kl": 3.0}},
        1: {"a": {"kl": 1.0}, "b": {"kl": 8.0}, "c": {"kl": 3.0}},
    }
    against = summary({cell: trials}, "b", kl_of("a"))
    assert (against.count, against.worst, against.cell) == (2, 8.0, cell) and against.mean == pytest.approx(4.0)
    assert summary({cell: trials}, "d", kl_of("a")).count == 0
    trials[1]["rare"] = {"kl": 0.5}
    trials[2] = {label: trials[0][label] for label in "abc"}
    count, order = ranks(trials, ["c", "b", "rare", "a"])
    assert (count, [(label, low, high) for label, _, low, high in order]) == (
        3,
        [("a", 1, 1), ("c", 2, 3), ("b", 2, 3)],
    )
    assert ranks(trials, ["d"]) == (0, [])
    assert interval([2.0]) == pytest.approx((2.0, 2.0))
    low, high = interval([1.0, 4.0])
    assert low == pytest.approx(1.0) and high == pytest.approx(4.0)


def test_a_missing_peer_is_left_out_with_one_line(tmp_path, capsys, monkeypatch):
    """The others run all the same."""
    monkeypatch.setitem(METHODS, "mbi", Method(function=METHODS["mbi"].function, missing=lambda: "mbi is not here"))
    grid = dict.fromkeys(cells(("chain1",), 2, [(3000, 0.5)]), 1)
    store = tmp_path / "trials.jsonl"
    main(of(grid), ["--only-methods", "uniform,mbi", "--store", str(store)])
    assert "mbi is left out: mbi is not here" in capsys.readouterr().err
    assert [line["method"] for line in read(store)] == ["uniform"]


def test_the_study_says_its_targets(tmp_path, capsys):
    """From made-up results: targets met and missed, the worst cell, and losses to the uniform model and to mbi."""
    cell = Cell.parse("dirichlet/er/k5/N1e5/eps0.5/laplace").name
    oracles = {f"{name} oracle": {"kl": 2.0} for name in ("naive", "consistent", "cgm-em", "soft-sign")}
    store = tmp_path / "trials.jsonl"
    with store.open("w") as file:
        for trial, kl in ((70000, 2.0), (70001, 2.2), (80000, 9.0)):
            results = {"eb-map": {"kl": kl}, "uniform": {"kl": 8.0}, "mbi": {"kl": 4.0}, **oracles}
            line = {"cell": cell, "trial": trial, "method": "all", "results": results}
            file.write(json.dumps(line) + "\n")
    main(selftuning.STUDY, ["--report", "--store", str(store)])
    rows = [
        line.split("|")[1:-1] for line in (tmp_path / "selftuning.md").read_text().splitlines() if "eb-map, " in line
    ]
    told = [[entry.strip() for entry in row] for row in rows]
    assert told == [
        ["70000", "eb-map, k = 5", "<= 1.02 / 1.15", "1.049 / 1.10", "2", cell, "no"],
        ["70000", "eb-map, never worse than uniform", "0", "0", "2", "", "yes"],
        ["70000", "eb-map, cells where it beats mbi's default", "all", "1", "1", "", "yes"],
        ["80000", "eb-map, k = 5", "<= 1.02 / 1.15", "4.500 / 4.50", "1", cell, "no"],
        ["80000", "eb-map, never worse than uniform", "0", "1", "1", cell, "no"],
        ["80000", "eb-map, cells where it beats mbi's default", "all", "0", "1", cell, "no"],
    ]
    assert (tmp_path / "selftuning.svg").exists()
