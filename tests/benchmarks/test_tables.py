"""Tables of `benchmarks.selection`: their sizes, the same for the same seed, and what is planted is there."""

import itertools

import numpy as np
import pytest

pytest.importorskip("joblib")

from benchmarks.cases import tables
from benchmarks.cases.coded import of_records, shares
from benchmarks.cases.networks import MADE
from benchmarks.cases.tables import REPORT, SOURCES

#: Generated sources -> the same with few records where there are many.
MADE_UP = {
    "sparse16": SOURCES["sparse16"].read,
    "sparse23": SOURCES["sparse23"].read,
    "parity16": SOURCES["parity16"].read,
    "mixed14": SOURCES["mixed14"].read,
    "dense30": lambda folder, seed: tables.factor(seed, records=2_000),
    "wide120": lambda folder, seed: tables.planted_graph(seed, records=2_000),
    "skewed12": SOURCES["skewed12"].read,
    "blocks24": SOURCES["blocks24"].read,
    **{name: SOURCES[name].read for name in ("small9", "free12", "copies6", "chain15")},
    "network": lambda folder, seed: tables.drawn(folder, MADE, seed),
}


@pytest.mark.parametrize("name", MADE_UP)
def test_a_seed_is_a_table(name, tmp_path):
    """The same seed makes the same one, another seed another; codes are in the domain, and no column is constant."""
    first, again, other, report = (MADE_UP[name](tmp_path, seed) for seed in (3, 3, 4, REPORT + 3))
    assert np.array_equal(first.codes, again.codes) and first.planted == again.planted
    assert first.domain == again.domain
    assert not np.array_equal(first.codes, other.codes) and not np.array_equal(first.codes, report.codes)
    assert first.codes.shape[1] == len(first.domain) and first.codes.dtype.itemsize == 1
    assert (first.codes.max(axis=0) < list(first.domain.sizes.values())).all() and (
        np.ptp(first.codes, axis=0) > 0
    ).all()
    assert all(set(clique) <= set(first.domain.names) for clique in first.planted)


def test_sizes_are_those_asked_for(tmp_path):
    """Records and columns of what is generated, and their labels."""
    shapes = {
        name: SOURCES[name].read(tmp_path, 0) for name in ("sparse16", "sparse23", "parity16", "mixed14", "small9")
    }
    assert {name: table.codes.shape for name, table in shapes.items()} == {
        "sparse16": (20_000, 16), "sparse23": (10_000, 23), "parity16": (20_000, 16), "mixed14": (30_000, 14),
        "small9": (300, 9),
    }  # fmt: skip
    assert all(max(shapes[name].domain.sizes.values()) == 2 for name in ("sparse16", "sparse23", "parity16"))
    assert set(shapes["small9"].domain.sizes.values()) == {3}
    assert len(set(shapes["mixed14"].domain.sizes.values())) > 5
    dense, wide = MADE_UP["dense30"](tmp_path, 0), MADE_UP["wide120"](tmp_path, 0)
    assert set(dense.domain.sizes.values()) == {10} and len(dense.domain) == 30
    assert len(wide.domain) == 120 and {2, 30} <= set(wide.domain.sizes.values())


def test_people_with_difficulties_are_few_and_graded():
    """Most questions are denied, harder ones more often, and those of one kind go together."""
    table = tables.survey(16, 20_000, 1)
    yes = table.codes.mean(axis=0)
    assert yes.mean() < 0.25
    together = np.corrcoef(table.codes, rowvar=False)
    for kind in table.planted:
        places = [table.domain.names.index(name) for name in kind]
        assert yes[places[0]] > yes[places[-1]]
        rest = [place for place in range(16) if place not in places]
        assert together[np.ix_(places, places)].mean() > together[np.ix_(places, rest)].mean() + 0.2


def test_parities_hold_for_all_but_one_record_in_twelve():
    """The product of the four signs is 1 - 2/12 on average; that of three of them is less, as of most other fours."""
    table = tables.parities(1)
    signs = dict(zip(table.domain.names, (1 - 2 * table.codes.astype(int)).T, strict=True))

    def product(clique):
        return np.prod([signs[name] for name in clique], axis=0).mean()

    assert len(table.planted) == 10 and {len(clique) for clique in table.planted} == {4}
    for clique in table.planted:
        assert product(clique) == pytest.approx(1 - 2 / 12, abs=0.02)
        assert max(abs(product(three)) for three in itertools.combinations(clique, 3)) < 0.6
    others = set(itertools.combinations(table.domain.names, 4)) - set(table.planted)
    assert np.median([abs(product(clique)) for clique in others]) < 0.1


def test_one_factor_correlates_all_columns_alike():
    """Labels are equally frequent; ranks correlate by 6/pi asin(.5 / 2) = .483."""
    table = tables.factor(1, records=20_000)
    assert all((np.bincount(column) == 2_000).all() for column in table.codes.T)
    found = np.corrcoef(table.codes, rowvar=False)[np.triu_indices(30, 1)]
    assert found.min() > 0.44 and found.max() < 0.52 and found.mean() == pytest.approx(0.478, abs=0.01)


def test_a_column_with_two_parents_depends_on_them():
    """Its parents' labels tell more of each planted column than of the same column shuffled."""
    table = tables.planted_graph(1, columns=40, records=10_000)
    parents = {}
    for above, name in table.planted:
        parents.setdefault(name, []).append(above)
    assert parents and all(len(above) == 2 for above in parents.values())
    rng, gains = np.random.default_rng(0), []
    for name, above in parents.items():
        place = table.domain.names.index(name)
        shuffled = table.codes.copy()
        shuffled[:, place] = rng.permutation(shuffled[:, place])
        noise = tables.Coded(domain=table.domain, codes=shuffled)
        gains.append(told(table, name, above) - told(noise, name, above))
    assert min(gains) > 0 and np.mean(gains) > 0.15


def told(table, name, above):
    """The share of records whose label is the most frequent one for their parents' labels."""
    return shares(table, (*above, name)).max(axis=-1).sum()


def test_few_records_depend_mildly():
    """Neighbours agree by about .3 (1 - chance) more than by chance."""
    agree, chance = [], []
    for seed in range(5):
        table = tables.few(seed)
        for pair in table.planted:
            agree.append(np.trace(shares(table, pair)))
            chance.append(shares(table, pair[:1]) @ shares(table, pair[1:]))
    assert np.mean(agree) - np.mean(chance) == pytest.approx(0.3 * (1 - np.mean(chance)), abs=0.05)


def test_columns_of_a_file_become_codes(tmp_path):
    """Labels keep their order, many numbers fall into 20 even bins, and columns that do not vary are left out."""
    ages = [str(number) for number in range(100)] + ["unknown"] * 5
    rows = [f"{age},{'no' if place % 3 else 'yes'},1" for place, age in enumerate(ages)]
    (tmp_path / "people.csv").write_text("age,there,one\n" + "\n".join(rows) + "\n")
    table = tables.coded_csv(tmp_path / "people.csv")
    assert table.domain.sizes == {"age": 21, "there": 2}
    assert np.bincount(table.codes[:, 0]).tolist() == [5] * 21 and (np.diff(table.codes[:, 0]) >= 0).all()
    assert table.codes[:3, 1].tolist() == [1, 0, 0]


def test_real_tables_are_read_once_they_are_there(tmp_path, monkeypatch):
    """The project's own example always; hours of a folder of person-days; a file that a variable names."""
    health = SOURCES["health"].read(tmp_path, 0)
    assert health.codes.shape == (20_190, 7) and SOURCES["health"].missing(tmp_path) is None
    assert of_records(health)([("health",)])["health",].argmax() == 0  # most are in excellent health
    (tmp_path / "lbs_workweek").mkdir()
    hours = [f"h{hour:02}" for hour in range(24)]
    (tmp_path / "lbs_workweek" / "days.csv").write_text(",".join(hours) + "\n" + ",".join(["1"] * 23 + ["2"]) + "\n")
    labels = '["null", "home", "work", "other"]'
    domain = ", ".join(f'"{hour}": {labels}' for hour in hours)
    (tmp_path / "lbs_workweek" / "domain.json").write_text(f"{{{domain}}}")
    week = SOURCES["lbs"].read(tmp_path, 0)
    assert week.codes.tolist() == [[1] * 23 + [2]] and week.domain.sizes == {f"x{n}": 4 for n in range(1, 25)}
    monkeypatch.delenv("DPGM_LFS", raising=False)
    assert SOURCES["lfs"].missing(tmp_path)
    (tmp_path / "survey.csv").write_text("a,b\n1,2\n2,1\n")
    monkeypatch.setenv("DPGM_LFS", str(tmp_path / "survey.csv"))
    assert SOURCES["lfs"].missing(tmp_path) is None
    assert SOURCES["lfs"].read(tmp_path, 0).codes.tolist() == [[0, 1], [1, 0]]


def test_the_other_small_tables_are_independent_alike_or_a_chain(tmp_path):
    """Agreement of neighbours beyond chance, of what is possible: none, nine in ten, six in ten."""
    for name, (shape, strength) in {
        "free12": ((500, 12), 0.0), "copies6": ((200, 6), 0.9), "chain15": ((1000, 15), 0.6)
    }.items():  # fmt: skip
        beyond = []
        for seed in range(5):
            table = SOURCES[name].read(tmp_path, seed)
            assert table.codes.shape == shape and bool(table.planted) == bool(strength)
            for pair in itertools.pairwise(table.domain.names):
                chance = shares(table, pair[:1]) @ shares(table, pair[1:])
                beyond.append((np.trace(shares(table, pair)) - chance) / (1 - chance))
        assert np.mean(beyond) == pytest.approx(strength, abs=0.05)


def test_a_skewed_tree_has_rare_labels_and_tells_each_column_by_its_parent():
    """Every column but the first has one parent; most labels are those of fewer than one record in fifty."""
    table = tables.skewed_tree(1)
    names = table.domain.names
    assert [name for _, name in table.planted] == list(names[1:])
    assert np.mean(np.concatenate([shares(table, (name,)) for name in names]) < 0.02) > 0.5
    for above, name in table.planted:
        assert told(table, name, [above]) > shares(table, (name,)).max() + 0.02


def test_blocks_are_independent_of_one_another():
    """Columns of a block agree more than by chance, those of two blocks do not."""
    table = tables.blocks(1)
    block = {name: number for number, names in enumerate(table.planted) for name in names}
    assert sorted(map(len, table.planted)) == [4] * 6
    beyond = {True: [], False: []}
    for pair in itertools.combinations(table.domain.names, 2):
        chance = shares(table, pair[:1]) @ shares(table, pair[1:])
        beyond[block[pair[0]] == block[pair[1]]].append(np.trace(shares(table, pair)) - chance)
    assert min(beyond[True]) > 0.08 and max(map(abs, beyond[False])) < 0.03
