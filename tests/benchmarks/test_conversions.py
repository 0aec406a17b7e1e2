"""The benchmark of conversions: curves against closed forms, dpgm against curves, and what its store holds."""

import math
from pathlib import Path

import pytest

pytest.importorskip("joblib")

from benchmarks import conversions
from benchmarks.conversions import BAR, CELLS, DELTAS, WIDER, differences, ours
from benchmarks.harness.main import main
from benchmarks.harness.runs import read
from benchmarks.peers.pld import exact

STORED = differences(read(conversions.STUDY.committed))


@pytest.mark.parametrize(
    ("parts", "epsilon", "delta"),
    [
        # Balle and Wang's formula at mu = 1.
        ([("gaussian", 2.0, 1, 4, 1.0)], 1, 0.12693673750664397),
        # One cell of Laplace noise is a randomised response of epsilon 1/2, and two are two.
        ([("discrete_laplace", 2.0, 1, 1, 1.0)], 0.25, (math.exp(0.5) - math.exp(0.25)) / (1 + math.exp(0.5))),
        ([("discrete_laplace", 2.0, 1, 2, 1.0)], 0.5, (math.e - math.exp(0.5)) / (1 + math.exp(0.5)) ** 2),
    ],
)
def test_the_curves_are_closed_forms(parts, epsilon, delta):
    """What dpgm and dp-accounting are compared with shares no code with either."""
    assert exact(parts, [delta]) == pytest.approx([epsilon], abs=1e-9)


@pytest.mark.parametrize(
    "cell", ["continuous, mu = 1", "tables, 1, sigma 4", "Laplace, 24, scale 40", "3 rows, 1 table, sigma 4"]
)
def test_no_epsilon_is_below_the_curve(cell):
    """Nor above it by more than what the bisection leaves."""
    curve = exact(CELLS[cell], [float(delta) for delta in DELTAS])
    for delta, true in zip(DELTAS, curve, strict=True):
        assert 0 <= ours(cell, delta) - true + 1e-12 <= 2e-9


def test_the_smallest_run(tmp_path):
    """All three methods answer, dp-accounting in a process of its own; dpgm's epsilon is within its bounds."""
    pytest.importorskip("dp_accounting")
    store = tmp_path / "store.jsonl"
    main(conversions.STUDY, ["--smoke", "--store", str(store)])
    ((cell, each),) = differences(read(store)).items()
    assert cell == "tables, 1, sigma 4" and len(each) == len(DELTAS)
    for _, mine, upper, lower in each:
        assert -1e-4 < lower < 0 <= mine < upper < 1e-4


def test_the_store_keeps_the_bar():
    """Of every cell: never below the curve; at most 1e-4 above it, but for rho, which covers all noise."""
    assert STORED.keys() == CELLS.keys()
    for cell, each in STORED.items():
        assert all(one[1] >= 0 for one in each)
        assert all(one[1] <= BAR for one in each) or cell.startswith(WIDER)


def test_the_page_states_what_the_store_holds():
    """The largest difference but of rho, rounded up."""
    page = " ".join((Path(__file__).parents[2] / "docs" / "noise.md").read_text(encoding="utf-8").split())
    largest = max(one[1] for cell, each in STORED.items() if not cell.startswith(WIDER) for one in each)
    assert f"at most {math.ceil(largest * 1e5)} · 10⁻⁵ above it" in page
