"""The families: truths over structures of their own, exact KL, unequal noise, the floor and what is reported; and a
small version of the study, which the rule that silenced loud tables fails."""

import json
from argparse import ArgumentParser

import numpy as np
import pytest

pytest.importorskip("joblib")
pytest.importorskip("matplotlib")

from benchmarks import selftuning
from benchmarks.harness.main import main
from benchmarks.harness.runs import Task
from benchmarks.protocol import families
from benchmarks.protocol.populations import GRAPHS, Population, one_way_margins, structure_of
from benchmarks.protocol.trials import FAMILY_BASE, FAMILY_TRUTHS, METHODS, Cell, data_set, serves, work
from dpgm_core import Tables
from dpgm_testing.oracles import enumerated

REPRODUCED = "matched/pairs8/k2/N5e3/rho0.01/zcdp"
# (cell, draws): where most measured tables are silent; the first is the reproduction of issue 13.
SMALL = ((REPRODUCED, 3), ("fourteenth/pairs12/k2/N1e4/rho0.01/zcdp", 1), ("one/path52/k3/N1e4/rho0.1/zcdp", 1))
CONTENDERS = ("uniform", "independent", "naive-path", "ridge-path", "em-fall", "eb-map")


@pytest.mark.parametrize(("cell", "trial"), [(cell, 500 + draw) for cell, draws in SMALL for draw in range(draws)])
def test_the_default_is_as_good_as_the_best_that_the_truth_could_choose(cell, trial):
    """(KL + .01) / (best of naive MLE, ridge and EM, each told the truth, + .01) is at most 1.15, and the
    KL is far below that of the uniform and of the independent model. Fixed seeds, nothing is left to chance. Measured:
    .65 to .82; with one random-effects mean over loud and silent tables it was 7.0 to 7.4, 5.2 and 1.22."""
    results = {}
    for method in CONTENDERS:
        results |= work(Task(cell, trial, method), None)["results"]
    best = min(results[label]["kl"] for label in families.ORACLES)
    assert families.told_ratio(results["eb-map"]["kl"], best) <= families.WORST
    assert results["eb-map"]["kl"] < 0.9 * families.floor(results)


def brute_force(potentials):
    """The joint distribution of a log-linear model, one axis per attribute."""
    domain = potentials.structure.domain
    return enumerated(potentials).probabilities.reshape(domain.shape(domain.names))


@pytest.mark.parametrize(
    ("truth", "graph", "size"), [("half", "pairs4", 3), ("one", "pairs4", 2), ("flat", "grid4", 1)]
)
def test_kl_is_that_of_the_joint_distributions(truth, graph, size):
    """Truth and measured tables have different structures; by summing over all records both ways are the same."""
    population = Population.draw(structure_of(graph, size), 3, truth)
    assert population.potentials.structure != population.structure
    theta = np.random.default_rng(0).normal(size=population.structure.cells)
    true = brute_force(population.potentials)
    learned = brute_force(Tables(population.structure, theta))
    assert population.kl(theta) == pytest.approx(float(np.sum(true * np.log(true / learned))), abs=1e-10)


@pytest.mark.parametrize(
    ("truth", "graph", "loud"),
    [
        ("matched", "pairs8", 4),
        ("half", "pairs8", 14),
        ("sixth", "pairs8", 5),
        ("fourteenth", "pairs8", 2),
        ("one", "path52", 1),
        ("signs", "grid5", 40),
        ("independent", "pairs8", 0),
        ("flat", "pairs8", 0),
    ],
)
def test_so_many_tables_are_loud(truth, graph, loud):
    """Interactions sum to 0 over each row and column and have one size; the others are not in the truth at all."""
    potentials = Population.draw(structure_of(graph, 2), 1, truth).potentials
    tables = [table for table in potentials.arrays() if table.ndim == 2]
    assert len(tables) == loud
    for table in tables:
        assert np.abs(table) == pytest.approx(np.full((2, 2), 0.4))
        assert table.sum(axis=0) == pytest.approx(np.zeros(2), abs=1e-12)
        assert table.sum(axis=1) == pytest.approx(np.zeros(2), abs=1e-12)
    effects = np.concatenate([table for table in potentials.arrays() if table.ndim == 1])
    assert bool(effects.any()) == (truth not in ("matched", "flat"))


def test_a_coupled_pair_is_that_of_the_issue():
    """P(equal) is 1/(1 + exp(-.8)), or one minus that."""
    population = Population.draw(structure_of("pairs8", 2), 0, "matched")
    table = Tables(population.structure, population.marginals)[("x0", "x1")]
    equal = 1 / (1 + np.exp(-0.8))
    assert min(abs(np.trace(table) - share) for share in (equal, 1 - equal)) < 1e-12


def test_the_reproduction_has_the_noise_of_the_issue():
    """All 28 pairs of 8 attributes at rho = .01: a standard deviation of 37 in each cell."""
    data = data_set(REPRODUCED, 500)
    assert len(data.release.structure.cliques) == 28
    assert np.sqrt(data.release.variances) == pytest.approx(np.full(28, 37.4), abs=0.1)


@pytest.mark.parametrize(("noise", "ratios"), [("eps1/laplace-split", (16, 4)), ("rho0.05/zcdp-split", (8, 64**0.25))])
def test_unequal_noise_costs_the_same(noise, ratios):
    """One budget, and standard deviations as `UNEQUAL` says."""
    release = data_set(f"sixth/pairs6/k2/N1e4/{noise}", 500).release
    assert release.cost == Cell.parse(f"sixth/pairs6/k2/N1e4/{noise}").budget
    deviations = np.sqrt(release.variances)
    assert deviations[:2] / deviations[2] == pytest.approx(ratios, rel=0.01)


def test_the_independent_model_is_the_product_of_the_margins():
    """Its KL is that of the product of `one_way_margins`, which follow the less noisy of two tables."""
    data = data_set("half/pairs4/k2/N1e4/eps1/laplace-split", 500)
    margins = one_way_margins(data.release)
    true = brute_force(data.population.potentials)
    product = np.einsum("a,b,c,d->abcd", *(margins[name] for name in data.release.structure.domain.names))
    expected = float(np.sum(true * np.log(true / product)))
    assert METHODS["independent"].function(data)["independent"]["kl"] == pytest.approx(expected, abs=1e-10)
    precise = Tables(data.release.structure, data.release.tables.values)[("x0", "x3")]  # 16 times less noise
    share = precise.sum(axis=1) / precise.sum()
    assert margins["x0"] == pytest.approx(share, abs=0.01)


def test_families_have_their_own_seeds_methods_and_cells():
    """The base is not one that rules were chosen on; peers and rules of the first study are not run; all truths are."""
    assert FAMILY_BASE == 110_000
    assert {method for method in METHODS if serves(REPRODUCED, 0, method)} == set(CONTENDERS)
    assert not serves("dirichlet/chain3/k5/N1e4/eps0.1/laplace", 0, "em-fall")
    assert {cell.truth for cell in families.GRID} == set(FAMILY_TRUTHS)
    assert {cell.graph for cell in families.GRID} <= set(GRAPHS)
    assert {cell.family for grid in ("smoke", "usual", "full") for cell in selftuning.GRIDS[grid]} == {False}
    tasks = selftuning.STUDY.tasks(parsed("--families", "--cells", REPRODUCED, "--draws", "2"))
    assert [task.trial for task in tasks] == [110_000] * 6 + [110_001] * 6


def parsed(*given):
    """The command line of the study as its `tasks` get it."""
    parser = ArgumentParser()
    selftuning.STUDY.add_arguments(parser)
    asked = parser.parse_args(given)
    asked.extent = "families"
    return asked


def test_the_report_says_the_targets_of_the_families(tmp_path, capsys):
    """From made-up results, some of them missing: mean and worst, what is above 1.5, and what is below the floor."""
    store = tmp_path / "trials.jsonl"
    told = {"naive oracle": {"kl": 0.09}, "uniform": {"kl": 0.3}, "independent": {"kl": 0.2}}
    em = {"cgm-em oracle": {"kl": 0.04}}
    unsettled = {"converged": 0.0}
    runs = [
        ("matched/pairs8/k2/N1e3/rho0.01/zcdp", 110_000, {"eb-map": {"kl": 0.09}} | told),  # ratio 1
        ("matched/pairs8/k2/N1e3/rho0.01/zcdp", 110_001, {"eb-map": {"kl": 0.09}} | told | em),  # 2
        # nothing to compare with yet
        ("matched/pairs8/k2/N1e3/rho0.01/zcdp", 110_002, {"eb-map": {"kl": 9.0} | unsettled}),
        (
            "flat/pairs8/k2/N1e3/rho0.01/zcdp",
            110_000,
            {"eb-map": {"kl": 0.22} | unsettled, "naive oracle": {"kl": 0.45}},
        ),
        ("sixth/pairs8/k2/N1e4/eps1/laplace-split", 110_000, {"eb-map": {"kl": 0.22}} | told),
    ]
    lines = [{"cell": cell, "trial": trial, "method": "all", "results": kls, "cpu": 60} for cell, trial, kls in runs]
    store.write_text("".join(json.dumps(line) + "\n" for line in lines))
    main(selftuning.STUDY, ["--report", "--store", str(store)])
    text = (tmp_path / "selftuning.md").read_text()
    table = [[part.strip() for part in line.split("|")[1:-1]] for line in text.splitlines()]
    rows = {row[0]: row[1:] for row in table if row}
    assert rows["all pairs, p/2 disjoint loud"][:9] == ["2", "1", "1.414", "2.00", "1", "1", "0", "0", "no"]
    assert rows["uniform truth"][:9] == ["1", "0", "0.500", "0.50", "0", "0", "-", "1", "-"]
    assert rows["unequal noise"][:9] == ["1", "0", "2.300", "2.30", "1", "1", "1", "0", "no"]
    assert rows["all"][:9] == ["4", "1", "1.231", "2.30", "2", "2", "1", "1", "no"]
    assert "Below the floor: sixth/pairs8/k2/N1e4/eps1/laplace-split, 110000 (0.22 against 0.2)." in text
    assert "## Targets" not in text and not list(tmp_path.glob("*.svg"))
