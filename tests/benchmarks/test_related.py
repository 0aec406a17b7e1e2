"""The benchmark of two related tables: its worlds, its errors, and the bars of its report."""

import itertools

import numpy as np
import pytest

pytest.importorskip("joblib")

from benchmarks import related
from benchmarks.cases.related import KINDS, MAX_CHILDREN, Roots, distances, generated, resampled


@pytest.mark.parametrize("kind", KINDS)
def test_worlds_have_codes_in_their_ranges_and_repeat(kind):
    """Records are a function of seed and world; another seed has the same distribution, another world does not."""
    one, again = generated(kind, 3000, 1), generated(kind, 3000, 1)
    assert all(np.array_equal(one.children[name], again.children[name]) for name in one.child)
    assert one.size.max() <= MAX_CHILDREN and len(one.keys) == one.size.sum()
    for sizes, columns in ((one.root, one.roots), (one.child, one.children)):
        assert all(columns[name].min() >= 0 and columns[name].max() < size for name, size in sizes.items())
    near, far = distances(one, generated(kind, 3000, 2)), distances(one, generated(kind, 3000, 2, world=1))
    assert near["cross"] < 0.06 and (far["cross"] > 1.5 * near["cross"] or kind == "couples")


def test_resampled_roots_keep_their_children():
    """Each drawn root has the children of one root, in their order."""
    real = generated("episodes", 50, 3)
    known = set(rows(real))
    drawn = rows(resampled(real, 400, 1))
    assert set(drawn) <= known and len(set(drawn)) > 20
    assert rows(real)[0] in known


def rows(data):
    ends = np.cumsum(data.size)
    children = np.stack(list(data.children.values()), axis=1).tolist()
    above = np.stack(list(data.roots.values()), axis=1).tolist()
    return [
        (*root, tuple(map(tuple, children[end - size : end])))
        for root, size, end in zip(above, data.size.tolist(), ends.tolist(), strict=True)
    ]


def test_errors_are_those_of_an_enumeration():
    """Siblings are all ordered pairs of two children of a root; `later` are those without the first."""
    one, other = generated("couples", 60, 1), generated("couples", 70, 2)
    found = distances(one, other)
    names = list(one.child)
    expected = np.mean([gap(one, other, first, second, 0) for first, second in pairs(names)])
    assert found["sibling"] == pytest.approx(expected)
    assert found["later"] == pytest.approx(np.mean([gap(one, other, name, name, 1) for name in names]))
    crossed = [
        0.5 * abs(shares(one, above, name) - shares(other, above, name)).sum() for above in one.root for name in names
    ]
    sized = [0.5 * abs(shares(one, None, name) - shares(other, None, name)).sum() for name in names]
    assert found["cross"] == pytest.approx(np.mean(crossed + sized))


def pairs(names):
    return [(first, second) for at, first in enumerate(names) for second in names[at:]]


def gap(one, other, first, second, skipped):
    tables = []
    for data in (one, other):
        table = np.zeros((data.child[first], data.child[second]))
        at = [list(data.child).index(name) for name in (first, second)]
        for *_, children in rows(data):
            for a, b in itertools.permutations(children[skipped:], 2):
                table[a[at[0]], b[at[1]]] += 1
        tables.append(table / table.sum())
    return 0.5 * abs(tables[0] - tables[1]).sum()


def shares(data, above, name):
    column = data.size if above is None else data.roots[above]
    table = np.zeros((MAX_CHILDREN + 1, data.child[name]))
    np.add.at(table, (column[data.keys], data.children[name]), 1)
    return table / table.sum()


def test_methods_return_roots_with_their_children():
    """Each on a few hundred roots; the number of roots stays, and sizes are those of the children."""
    for method in ("aim", "two models", "wide"):
        found = related.measure("visits", 0, method, 300, None)
        assert found.keys() == {*related.ERRORS, "seconds", "peak"} and all(
            0 <= found[key] <= 1 for key in related.ERRORS
        )
    same = related.measure("visits", 0, "floor", 300, None)
    assert 0 < same["cross"] < 0.3


def test_the_report_holds_ratios_against_bars():
    """Of means over common seeds; the best alternative needs all of them."""
    lines = [line("aim", seed, 0.01, 0.02) for seed in range(2)]
    lines += [line("two models", seed, 0.01, 0.05) for seed in range(2)]
    lines += [line("wide", seed, 0.008, 0.041) for seed in range(2)] + [line("wide", 5, 9.0, 9.0)]
    found = {(row[2], row[3], row[5]) for row in related._bars(lines)}
    assert {("cross / two models", "1.00", "met"), ("cross / wide", "1.25", "missed")} <= found
    assert {("sibling / best", "0.49", "met"), ("size", "0.0010", "met"), ("seconds", "70", "missed")} <= found
    assert not [row for row in related._bars(lines[:3]) if row[2] == "sibling / best"]
    text = related.tables(lines)
    assert "| couples" in text and "0.49" in text and text.count("| abc ") == 3


def line(method, seed, cross, sibling):
    errors = dict.fromkeys(related.ERRORS, 0.001) | {"cross": cross, "sibling": sibling}
    spent = {"seconds": 70.0, "peak": 400.0, "by": "dpgm 1.0+abc numpy"}
    return {"cell": "couples", "trial": seed, "method": method, **errors, **spent}


def test_cells_without_the_file_are_left_out(tmp_path):
    """ACS needs its file; cells that end in `report` have seeds of their own."""
    asked = type("Asked", (), {"extent": "usual", "folder": tmp_path, "data": None, "seeds": 2})()
    cells = related.STUDY.cells(asked)
    assert "acs" not in cells and cells["couples report"] == 2
    assert related.STUDY.trial(asked, "couples report", 1) == 1001 and related.STUDY.trial(asked, "couples", 1) == 1
    assert Roots(root={}, child={}, roots={}, size=np.array([2, 0, 1]), children={}).places.tolist() == [0, 1, 0]
